//! Resolves which configured server would own a name that the catalog does not contain yet.

use trunkline::call::{CallError, CallErrorKind};
use trunkline::connection::State;
use trunkline::host::{RelayMethod, WaitFor};
use trunkline::item::ItemKind;
use trunkline::message::Raw;
use trunkline::name::{ServerName, parse_qualified_uri};
use trunkline::policy::Visibility;
use trunkline::view::View;

use super::error_codes::Failure;
use super::gateway::Gateway;
use crate::client::caller::Caller;

/// The servers that the requested name or URI would belong to. Servers on which the caller could
/// not see it are left out.
pub(crate) fn owners(view: &View, relay_method: RelayMethod, params: &Raw) -> Vec<ServerName> {
    let about = match relay_method {
        RelayMethod::Completion => params.get("ref"),
        RelayMethod::Call | RelayMethod::Prompt | RelayMethod::Read => Some(params.clone()),
    };
    let text = |key: &str| Some(about.as_ref()?.get(key)?.as_str()?.into_owned());
    match (relay_method, text("name"), text("uri")) {
        (RelayMethod::Read, _, Some(address)) | (RelayMethod::Completion, None, Some(address)) => {
            owner_of_uri(view, &address).into_iter().collect()
        }
        (RelayMethod::Read, ..) | (_, None, _) => Vec::new(),
        (_, Some(name), _) => {
            let owners = view.catalog().namespaces().owners(&name).into_iter();
            let may_see =
                |owner: &&ServerName| view.could_contain_name(owner, &name) == Visibility::Possible;
            owners.filter(may_see).cloned().collect()
        }
    }
}

/// The server of a qualified URI.
fn owner_of_uri(view: &View, address: &str) -> Option<ServerName> {
    let (server, own) = parse_qualified_uri(address)?;
    (view.could_contain_uri(&server, own) == Visibility::Possible).then_some(server)
}

impl Gateway {
    /// Waits until servers are ready or have failed. Returns whether any of them had to be
    /// refreshed.
    pub(crate) async fn wait_for(&self, servers: Vec<ServerName>, kinds: &[ItemKind]) -> bool {
        let mut servers = servers;
        servers.retain(|server| {
            let connection = self.host.servers().get(server.as_str());
            connection.is_some_and(|it| self.is_worth_refreshing(&it, kinds))
        });
        if servers.is_empty() {
            return false;
        }
        self.host.refresh_servers(&servers, kinds, WaitFor::AllReady).await;
        true
    }

    /// The failure of the server of a request, if that explains the error better: a login that it needs, or
    /// why it is down.
    pub(crate) async fn owner_failure(
        &self,
        caller: &Caller,
        view: &View,
        request: (RelayMethod, &Raw),
        error: &CallError,
    ) -> Option<Failure> {
        match self.login_required(caller, view, request, error).await {
            Some(failure) => Some(failure),
            None => self.down_owner(view, request, error),
        }
    }

    /// The failure of a server that would own an unknown item, if there is one.
    fn down_owner(
        &self,
        view: &View,
        (relay_method, params): (RelayMethod, &Raw),
        error: &CallError,
    ) -> Option<Failure> {
        if error.kind() != CallErrorKind::Unknown {
            return None;
        }
        owners(view, relay_method, params).iter().find_map(|owner| {
            let connection = self.host.servers().get(owner.as_str())?;
            let status = connection.status();
            let why = status.last_error.filter(|_| status.state == State::Failed)?;
            Some(Failure::unlisted(&why, connection.will_recover()))
        })
    }

    /// The link to log in to the server of a request that failed for want of a login, if the client opens
    /// URLs. Only for the owner of the configuration: the login
    /// serves all clients.
    async fn login_required(
        &self,
        caller: &Caller,
        view: &View,
        (relay_method, params): (RelayMethod, &Raw),
        error: &CallError,
    ) -> Option<Failure> {
        if !caller.client.declares(&["elicitation", "url"]) || !caller.identity.is_owner() {
            return None;
        }
        let server = match error.server() {
            Some(server) => server.clone(),
            None => owners(view, relay_method, params).into_iter().find(|owner| {
                let connection = self.host.servers().get(owner.as_str());
                connection.is_some_and(|it| it.status().needs_login())
            })?,
        };
        let link = self.host.login_link(&server).await?;
        Some(Failure::login_required(&server, &link))
    }
}
