//! Whose something would be that nobody has said to have: servers that are on their way up, or down.

use trunkline::call::{CallError, CallErrorKind, NoResult};
use trunkline::connection::State;
use trunkline::error::Error;
use trunkline::host::{Patience, Relayed};
use trunkline::item::Kind;
use trunkline::message::{Raw, RpcError};
use trunkline::name::{ServerName, split_address};
use trunkline::policy::Chance;
use trunkline::protocol::{Era, code};
use trunkline::view::View;

use super::gateway::Gateway;
use crate::request::response::Answer;
use crate::request::translate;

/// The servers that what a request is about would be of, by the name or the address it has. Whoever
/// could not see it learns nothing of its server.
pub(crate) fn owners(view: &View, relayed: Relayed, params: &Raw) -> Vec<ServerName> {
    let about = match relayed {
        Relayed::Completion => params.get("ref"),
        Relayed::Call | Relayed::Prompt | Relayed::Read => Some(params.clone()),
    };
    let text = |key: &str| Some(about.as_ref()?.get(key)?.as_str()?.into_owned());
    match (relayed, text("name"), text("uri")) {
        (Relayed::Read, _, Some(address)) | (Relayed::Completion, None, Some(address)) => {
            owner_of_address(view, &address).into_iter().collect()
        }
        (Relayed::Read, ..) | (_, None, _) => Vec::new(),
        (_, Some(name), _) => {
            let owners = view.catalog().namespaces().owners(&name).into_iter();
            let may_see =
                |owner: &&ServerName| view.may_hold_name(owner, &name) == Chance::Possible;
            owners.filter(may_see).cloned().collect()
        }
    }
}

/// The server that an address names.
fn owner_of_address(view: &View, address: &str) -> Option<ServerName> {
    let (server, own) = split_address(address)?;
    (view.may_hold_address(&server, own) == Chance::Possible).then_some(server)
}

/// A server that is down, and has never said what it has.
pub(crate) struct Down {
    why: Error,
    may_return: bool,
}

impl Down {
    /// What is said to whoever wants something of it.
    pub(crate) fn answer(&self, era: Era, relayed: Relayed) -> Answer {
        let words = self.why.to_string();
        if relayed == Relayed::Call {
            let result = NoResult::Unreachable.result(&words, self.may_return);
            return Ok(translate::result(era, relayed, &result));
        }
        let data = Raw::from_value(&serde_json::json!({ "retry": self.may_return }));
        let words = format!("MCP server unreachable: {words}");
        Err(RpcError::new(code::INTERNAL_ERROR, &words).with_data(&data))
    }
}

impl Gateway {
    /// Waits until servers are ready, or have failed. Says whether there are any that were not.
    pub(crate) async fn wait_for(&self, servers: Vec<ServerName>, kinds: &[Kind]) -> bool {
        let mut servers = servers;
        servers.retain(|server| {
            let connection = self.host.servers().get(server.as_str());
            connection.is_some_and(|it| self.is_worth_asking(&it, kinds))
        });
        if servers.is_empty() {
            return false;
        }
        self.host.gather_of(&servers, kinds, Patience::UntilAllAreReady).await;
        true
    }

    /// Whoever would have something that is unknown, if that is a server that has never come up.
    pub(crate) fn down_owner(
        &self,
        view: &View,
        (relayed, params): (Relayed, &Raw),
        error: &CallError,
    ) -> Option<Down> {
        if error.kind() != CallErrorKind::Unknown {
            return None;
        }
        owners(view, relayed, params).iter().find_map(|owner| {
            let connection = self.host.servers().get(owner.as_str())?;
            let status = connection.status();
            let why = status.last_error.filter(|_| status.state == State::Failed)?;
            Some(Down { why, may_return: connection.may_return() })
        })
    }
}
