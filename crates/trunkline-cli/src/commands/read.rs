//! `trunkline read`: reads one resource.

use std::sync::Arc;

use anyhow::Result;
use trunkline::call::CallOptions;
use trunkline::config::escape_control;

use crate::arguments::ReadArguments;
use crate::environment::ProcessEnv;
use crate::host::caller::CallerOptions;
use crate::host::command_host::{ProblemDetail, with_host};
use crate::host::elicitation::UserInput;
use crate::host::resolve::{NameSearch, ResolvedName, TimeLimit};
use crate::host::run_call::CallRunner;
use crate::output::exit::Outcome;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

pub(crate) fn run(
    arguments: &ReadArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let time = TimeLimit::new(arguments.bounds.timeout);
    let who = CallerOptions::read(&arguments.who, settings, environment)?;
    with_host(ProblemDetail::Counted, settings, environment, terminal, async |hosted, terminal| {
        let address = arguments.address();
        let server = arguments.server.as_deref().map(|name| hosted.find(name)).transpose()?;
        let search = NameSearch { hosted, who: &who, name: address, server, time };
        let ResolvedName { caller, view, server } = search.address(terminal).await?;
        let named = search.address_in(&view);
        let shown = CallRunner {
            settings,
            environment,
            bounds: &arguments.bounds,
            time,
            hosted,
            server: &server,
            doing: format!("reading {}", escape_control(address)),
            input: &UserInput::default(),
            check: None,
        };
        shown
            .run(terminal, async |options: CallOptions<'_>| {
                caller.read_resource(&named, options).await
            })
            .await
    })
}
