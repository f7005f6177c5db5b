//! `trunkline call`: makes one call, prints its result, and stops the server again.

use std::sync::Arc;

use anyhow::Result;
use trunkline::call::CallOptions;
use trunkline::catalog::ItemKind;
use trunkline::config::escape_control;
use trunkline::message::Raw;

use crate::arguments::CallArguments;
use crate::environment::ProcessEnv;
use crate::host::caller::CallerOptions;
use crate::host::command_host::{ProblemDetail, with_host};
use crate::host::resolve::{NameSearch, ResolvedName, TimeLimit};
use crate::host::run_call::{CallRunner, object, pairs};
use crate::output::exit::Outcome;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

pub(crate) fn run(
    arguments: &CallArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let given = given(arguments, terminal)?;
    let time = TimeLimit::new(arguments.bounds.timeout);
    let who = CallerOptions::read(&arguments.who, settings, environment)?;
    with_host(ProblemDetail::Counted, settings, environment, terminal, async |hosted, terminal| {
        let name = arguments.name.as_str();
        let search = NameSearch { hosted, who: &who, name, server: None, time };
        let ResolvedName { view, server } = search.named(ItemKind::Tool, terminal).await?;
        let shown = CallRunner {
            settings,
            environment,
            bounds: &arguments.bounds,
            time,
            hosted,
            server: &server,
            doing: format!("calling {}", escape_control(name)),
            checks_arguments: arguments.check,
        };
        shown
            .run(terminal, async |options: CallOptions<'_>| {
                hosted.host.call(&view, name, given, options).await
            })
            .await
    })
}

/// The arguments of the call.
fn given(arguments: &CallArguments, terminal: &mut Terminal) -> Result<Raw> {
    match (&arguments.json, &arguments.input) {
        (Some(text), _) => object(text, "`--json`"),
        (None, Some(_)) => object(&terminal.read_input()?, "standard input"),
        (None, None) => pairs(&arguments.arguments, value),
    }
}

/// Parses a value as JSON; anything else becomes a string.
fn value(text: &str) -> Raw {
    Raw::from_text(text).unwrap_or_else(|_| Raw::from_string(text))
}
