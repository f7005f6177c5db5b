//! `trunkline prompt`: gets one prompt with its arguments.

use std::sync::Arc;

use anyhow::Result;
use trunkline::call::CallOptions;
use trunkline::catalog::ItemKind;
use trunkline::config::escape_control;
use trunkline::message::Raw;

use crate::arguments::PromptArguments;
use crate::environment::ProcessEnv;
use crate::host::caller::CallerOptions;
use crate::host::command_host::{ProblemDetail, with_host};
use crate::host::resolve::{NameSearch, ResolvedName, TimeLimit};
use crate::host::run_call::{CallRunner, pairs};
use crate::output::exit::Outcome;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

pub(crate) fn run(
    arguments: &PromptArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let time = TimeLimit::new(arguments.bounds.timeout);
    // Arguments of prompts are always strings.
    let given = pairs(&arguments.arguments, Raw::from_string)?;
    let who = CallerOptions::read(&arguments.who, settings, environment)?;
    with_host(ProblemDetail::Counted, settings, environment, terminal, async |hosted, terminal| {
        let name = arguments.name.as_str();
        let search = NameSearch { hosted, who: &who, name, server: None, time };
        let ResolvedName { view, server } = search.named(ItemKind::Prompt, terminal).await?;
        let shown = CallRunner {
            settings,
            environment,
            bounds: &arguments.bounds,
            time,
            hosted,
            server: &server,
            doing: format!("getting {}", escape_control(name)),
            checks_arguments: false,
        };
        shown
            .run(terminal, async |options: CallOptions<'_>| {
                hosted.host.prompt(&view, name, given, options).await
            })
            .await
    })
}
