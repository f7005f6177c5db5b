//! `trunkline prompt`: one prompt, filled in.

use std::sync::Arc;

use anyhow::Result;
use trunkline::call::CallOptions;
use trunkline::catalog::Kind;
use trunkline::config::printable;
use trunkline::message::Raw;

use crate::arguments::PromptArguments;
use crate::environment::Environment;
use crate::exit::Outcome;
use crate::finding::{Found, Search, TimeLimit};
use crate::results::{Shown, pairs};
use crate::servers::{Problems, with_host};
use crate::settings::Settings;
use crate::terminal::Terminal;
use crate::who::Asker;

pub(crate) fn run(
    arguments: &PromptArguments,
    settings: &Settings,
    environment: &Arc<Environment>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let time = TimeLimit::new(arguments.bounds.timeout);
    // The protocol has nothing but texts here.
    let given = pairs(&arguments.arguments, Raw::from_string)?;
    let who = Asker::read(&arguments.who, settings, environment)?;
    with_host(Problems::Counted, settings, environment, terminal, async |hosted, terminal| {
        let name = arguments.name.as_str();
        let search = Search { hosted, who: &who, name, server: None, time };
        let Found { view, server } = search.named(Kind::Prompt, terminal).await?;
        let shown = Shown {
            settings,
            environment,
            bounds: &arguments.bounds,
            time,
            hosted,
            server: &server,
            doing: format!("getting {}", printable(name)),
            checks_arguments: false,
        };
        shown
            .run(terminal, async |options: CallOptions<'_>| {
                hosted.host.prompt(&view, name, given, options).await
            })
            .await
    })
}
