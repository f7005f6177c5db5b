//! The servers behind a view, and the reasons why some of them are unavailable.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use trunkline::connection::{Connection, State};
use trunkline::host::Host;
use trunkline::item::ItemKind;
use trunkline::name::ServerName;
use trunkline::policy::Rule;
use trunkline::view::View;

use crate::access::scope::CallerScope;

/// The state of a server whose configuration file is not trusted.
const NOT_TRUSTED: &str = "not-trusted";

/// The state of a server that is disabled in the configuration.
const DISABLED: &str = "disabled";

/// The connections of all servers with at least one visible item.
pub(crate) fn visible_servers(host: &Host, view: &View) -> Vec<Arc<Connection>> {
    let entries = ItemKind::ALL.iter().flat_map(|kind| view.entries(*kind));
    let names: BTreeSet<&ServerName> = entries.map(|entry| &entry.server().name).collect();
    names.into_iter().filter_map(|name| host.servers().get(name.as_str())).collect()
}

/// The unavailable servers of a scope, each with its reason, as JSON.
pub(crate) fn unavailable_servers(host: &Host, view: &View, scope: &CallerScope) -> Vec<Value> {
    // A limited caller learns of a server only through the items that it would see.
    let is_limited = scope.is_limited();
    let config = host.config();
    let broken = config.broken().iter().filter(|_| !is_limited).map(unconfigured);
    let held = config.servers().filter(|server| !is_limited && server.hold.is_some());
    let broken = broken.chain(held.map(|server| held_back(&server.name)));
    let disabled =
        config.servers().filter(|server| !is_limited && !server.enabled && server.hold.is_none());
    let broken = broken.chain(disabled.map(|server| disabled_entry(&server.name)));
    let connections = host.servers().connections();
    let mut troubled = connections.iter().filter(|it| !is_usable(it)).peekable();
    if troubled.peek().is_none() {
        return broken.collect();
    }
    // This scans all hidden items, which is needed only for limited callers.
    let kinds = if is_limited { &ItemKind::ALL[..] } else { &[] };
    let denied: BTreeSet<&ServerName> = kinds
        .iter()
        .flat_map(|kind| view.hidden(*kind))
        .filter(|(_, reason)| reason.rule() == Rule::Available)
        .map(|(entry, _)| &entry.server().name)
        .collect();
    let concerned = troubled.filter(|it| !is_limited || denied.contains(&it.server().name));
    concerned.filter_map(|connection| describe(connection)).chain(broken).collect()
}

/// A server whose entry has errors. Their text is only for the operator of the gateway.
fn unconfigured(server: &ServerName) -> Value {
    json!({
        "server": server.as_str(),
        "state": State::Failed.as_str(),
        "reason": "its entry in the configuration has errors",
        "retry": false,
    })
}

/// A server of a configuration file that is not trusted. The path is only for the operator of the
/// gateway.
fn held_back(server: &ServerName) -> Value {
    json!({
        "server": server.as_str(),
        "state": NOT_TRUSTED,
        "reason": "its configuration file was found and is not trusted yet; run `trunkline trust` \
                   where the gateway was started",
        "retry": false,
    })
}

/// A server that is disabled in the configuration: a client may offer to enable it.
fn disabled_entry(server: &ServerName) -> Value {
    json!({
        "server": server.as_str(),
        "state": DISABLED,
        "reason": "it is switched off in the configuration",
        "retry": false,
    })
}

/// Whether a server can be called, or has lists from before.
fn is_usable(connection: &Connection) -> bool {
    let state = connection.watch().borrow().state;
    match state {
        State::Failed => false,
        State::Starting => ItemKind::ALL.iter().any(|kind| !connection.list(*kind).is_empty()),
        State::Idle | State::Ready | State::Stopped => true,
    }
}

fn describe(connection: &Connection) -> Option<Value> {
    let may_return = connection.will_recover();
    let watch = connection.watch();
    let status = watch.borrow();
    let reason = match (status.state, &status.last_error) {
        (State::Failed, Some(error)) => error.message_with_login().into_owned(),
        (State::Failed, None) => "it failed".to_owned(),
        (State::Starting, _) => "it is being started".to_owned(),
        _ => return None,
    };
    Some(json!({
        "server": connection.server().name.as_str(),
        "state": status.name(),
        "reason": reason,
        "retry": may_return,
    }))
}
