//! `trunkline call`: one call, its result, and nothing left behind.

use std::sync::Arc;

use anyhow::Result;
use trunkline::call::CallOptions;
use trunkline::catalog::Kind;
use trunkline::config::printable;
use trunkline::message::Raw;

use crate::arguments::CallArguments;
use crate::environment::Environment;
use crate::exit::Outcome;
use crate::finding::{Found, Search, TimeLimit};
use crate::results::{Shown, object, pairs};
use crate::servers::{Problems, with_host};
use crate::settings::Settings;
use crate::terminal::Terminal;
use crate::who::Asker;

pub(crate) fn run(
    arguments: &CallArguments,
    settings: &Settings,
    environment: &Arc<Environment>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let given = given(arguments, terminal)?;
    let time = TimeLimit::new(arguments.bounds.timeout);
    let who = Asker::read(&arguments.who, settings, environment)?;
    with_host(Problems::Counted, settings, environment, terminal, async |hosted, terminal| {
        let name = arguments.name.as_str();
        let search = Search { hosted, who: &who, name, server: None, time };
        let Found { view, server } = search.named(Kind::Tool, terminal).await?;
        let shown = Shown {
            settings,
            environment,
            bounds: &arguments.bounds,
            time,
            hosted,
            server: &server,
            doing: format!("calling {}", printable(name)),
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

/// A value that is JSON is taken as that, anything else is a text.
fn value(text: &str) -> Raw {
    Raw::from_text(text).unwrap_or_else(|_| Raw::from_string(text))
}
