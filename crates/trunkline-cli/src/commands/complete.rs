//! `trunkline complete`: what an argument of a prompt or of a template may be.

use std::sync::Arc;

use anyhow::Result;
use trunkline::call::{CallOptions, Completion, CompletionOf};
use trunkline::catalog::Kind;
use trunkline::config::printable;
use trunkline::message::Raw;

use crate::arguments::CompleteArguments;
use crate::environment::Environment;
use crate::exit::Outcome;
use crate::finding::{Found, Search, TimeLimit};
use crate::results::{Shown, pairs};
use crate::servers::{Problems, with_host};
use crate::settings::Settings;
use crate::terminal::Terminal;
use crate::who::Asker;

pub(crate) fn run(
    arguments: &CompleteArguments,
    settings: &Settings,
    environment: &Arc<Environment>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let time = TimeLimit::new(arguments.bounds.timeout);
    let known = pairs(&arguments.arguments, Raw::from_string)?;
    let known = (!arguments.arguments.is_empty()).then_some(&known);
    let (argument, value) = arguments.argument.split_once('=').unwrap_or((&arguments.argument, ""));
    let who = Asker::read(&arguments.who, settings, environment)?;
    with_host(Problems::Counted, settings, environment, terminal, async |hosted, terminal| {
        let name = arguments.name.as_str();
        let search = Search { hosted, who: &who, name, server: None, time };
        let (found, of) = if name.contains("://") {
            (search.address(terminal).await?, CompletionOf::Template(name))
        } else {
            (search.named(Kind::Prompt, terminal).await?, CompletionOf::Prompt(name))
        };
        let Found { view, server } = found;
        let shown = Shown {
            settings,
            environment,
            bounds: &arguments.bounds,
            time,
            hosted,
            server: &server,
            doing: format!("completing {}", printable(argument)),
            checks_arguments: false,
        };
        shown
            .run(terminal, async |options: CallOptions<'_>| {
                let completion = Completion { of, argument, value, known };
                hosted.host.complete(&view, &completion, options).await
            })
            .await
    })
}
