//! `trunkline read`: one resource.

use std::sync::Arc;

use anyhow::Result;
use trunkline::call::CallOptions;
use trunkline::config::printable;

use crate::arguments::ReadArguments;
use crate::environment::Environment;
use crate::exit::Outcome;
use crate::finding::{Found, Search, TimeLimit};
use crate::results::Shown;
use crate::servers::{Problems, with_host};
use crate::settings::Settings;
use crate::terminal::Terminal;
use crate::who::Asker;

pub(crate) fn run(
    arguments: &ReadArguments,
    settings: &Settings,
    environment: &Arc<Environment>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let time = TimeLimit::new(arguments.bounds.timeout);
    let who = Asker::read(&arguments.who, settings, environment)?;
    with_host(Problems::Counted, settings, environment, terminal, async |hosted, terminal| {
        let address = arguments.address.as_str();
        let server = arguments.server.as_deref().map(|name| hosted.find(name)).transpose()?;
        let search = Search { hosted, who: &who, name: address, server, time };
        let Found { view, server } = search.address(terminal).await?;
        let shown = Shown {
            settings,
            environment,
            bounds: &arguments.bounds,
            time,
            hosted,
            server: &server,
            doing: format!("reading {}", printable(address)),
            checks_arguments: false,
        };
        shown
            .run(terminal, async |options: CallOptions<'_>| {
                hosted.host.read(&view, address, options).await
            })
            .await
    })
}
