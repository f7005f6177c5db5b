//! Loads the lists of servers, from the cache or from the servers themselves, within a time limit.

use trunkline::catalog::ItemKind;
use trunkline::config::escape_control;
use trunkline::connection::{Connection, State};
use trunkline::name::ServerName;

use super::command_host::CommandHost;
use super::remembered_lists::RememberedLists;
use super::resolve::TimeLimit;
use crate::arguments::RefreshArguments;
use crate::output::exit::{Failure, FailureKind};
use crate::output::terminal::Terminal;

/// The result of loading lists.
pub(crate) struct ServerLists {
    pub(crate) remembered: RememberedLists,
    /// Servers whose lists are missing.
    pub(crate) failures: Vec<Failure>,
}

impl ServerLists {
    /// Loads the lists of some servers. When the time is over, the lists that are known by then are used, and each server
    /// whose list is missing is a failure.
    pub(crate) async fn load(
        arguments: &RefreshArguments,
        asked: &[ServerName],
        kinds: &[ItemKind],
        hosted: &CommandHost,
        terminal: &mut Terminal,
    ) -> Self {
        let remembered = match arguments.refresh {
            true => RememberedLists::default(),
            false => RememberedLists::of(hosted, asked, kinds),
        };
        let missing = asked.iter().filter(|server| !remembered.contains(server));
        let missing: Vec<_> = missing.cloned().collect();
        let time = TimeLimit::new(arguments.timeout);
        let failures = match time.bound(hosted.refresh(&missing, kinds, terminal)).await {
            Some(errors) => errors.iter().map(Failure::unavailable).collect(),
            None => {
                terminal.clear_progress();
                let servers = hosted.host.servers();
                let connections = missing.iter().filter_map(|name| servers.get(name.as_str()));
                connections.filter_map(|it| late(&it, kinds, time)).collect()
            }
        };
        Self { remembered, failures }
    }
}

/// The failure of a server whose lists are not known when the time is over.
fn late(connection: &Connection, kinds: &[ItemKind], time: TimeLimit) -> Option<Failure> {
    let status = connection.status();
    let is_missing = |kind: &&ItemKind| connection.offers(**kind) && !connection.is_loaded(**kind);
    let what = match (status.state, kinds.iter().find(is_missing)) {
        (State::Failed, _) => return status.last_error.as_ref().map(Failure::unavailable),
        (State::Ready, None) => return None,
        (State::Ready, Some(kind)) => format!("did not list its {}", kind.list_key()),
        _ => "was not ready".to_owned(),
    };
    let name = &connection.server().name;
    let (shown, limit) = (escape_control(name.as_str()), time.limit.unwrap_or_default());
    let message = format!("server `{shown}` {what} within {limit:?} (`--timeout`)");
    let failure = Failure::new(FailureKind::NoAnswer, message).of(name);
    Some(
        failure.with_hint(
            "give it more time, or see with `trunkline status` how long it takes to start",
        ),
    )
}
