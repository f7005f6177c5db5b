//! `trunkline read`: one resource.

use std::sync::Arc;

use anyhow::Result;
use trunkline::call::CallOptions;
use trunkline::config::printable;

use crate::arguments::ReadArguments;
use crate::environment::Environment;
use crate::exit::Outcome;
use crate::finding::Search;
use crate::results::Shown;
use crate::servers::{Asked, with_host};
use crate::settings::Settings;
use crate::terminal::Terminal;

pub(crate) fn run(
    arguments: &ReadArguments,
    settings: &Settings,
    environment: &Arc<Environment>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    with_host(settings, environment, terminal, async |hosted, terminal| {
        let address = arguments.address.as_str();
        let search = Search { hosted, who: &arguments.who, name: address };
        let server = arguments.server.as_deref().map(|name| hosted.find(name)).transpose()?;
        // Anybody may have it: addresses do not say whose they are.
        let asked = match &server {
            Some(server) => Asked::Only(std::slice::from_ref(server)),
            None => Asked::All,
        };
        let view = search.address(asked, terminal).await?;
        let shown = Shown {
            settings,
            environment,
            bounds: &arguments.bounds,
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
