//! The servers behind a view: which there are, and which cannot be used just now.

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

/// The state of a server whose configuration file nobody has consented to.
const NOT_TRUSTED: &str = "not-trusted";

/// The state of a server that is switched off in the configuration.
const DISABLED: &str = "disabled";

/// The connections of every server of which a view shows something.
pub(crate) fn visible_servers(host: &Host, view: &View) -> Vec<Arc<Connection>> {
    let entries = ItemKind::ALL.iter().flat_map(|kind| view.entries(*kind));
    let names: BTreeSet<&ServerName> = entries.map(|entry| &entry.server().name).collect();
    names.into_iter().filter_map(|name| host.servers().get(name.as_str())).collect()
}

/// The servers of a scope that cannot be used just now, each with why, for programs to read.
pub(crate) fn unavailable_servers(host: &Host, view: &View, scope: &CallerScope) -> Vec<Value> {
    // Whoever is limited learns of a server only through what it would have for them.
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
    // Everything is looked through for that, which those who learn of all servers need not.
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

/// A server whose entry has errors. What they are is for whoever runs the gateway.
fn unconfigured(server: &ServerName) -> Value {
    json!({
        "server": server.as_str(),
        "state": State::Failed.as_str(),
        "reason": "its entry in the configuration has errors",
        "retry": false,
    })
}

/// A server of a configuration file that nobody has consented to. Which file that is, is for whoever
/// runs the gateway.
fn held_back(server: &ServerName) -> Value {
    json!({
        "server": server.as_str(),
        "state": NOT_TRUSTED,
        "reason": "its configuration file was found and is not trusted yet; run `trunkline trust` \
                   where the gateway was started",
        "retry": false,
    })
}

/// A server that is switched off in the configuration: a client may show it, to be switched on.
fn disabled_entry(server: &ServerName) -> Value {
    json!({
        "server": server.as_str(),
        "state": DISABLED,
        "reason": "it is switched off in the configuration",
        "retry": false,
    })
}

/// Whether a server can be called, or has said before what it has.
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
        (State::Failed, Some(error)) => error.message().to_owned(),
        (State::Failed, None) => "it failed".to_owned(),
        (State::Starting, _) => "it is being started".to_owned(),
        _ => return None,
    };
    Some(json!({
        "server": connection.server().name.as_str(),
        "state": status.state.as_str(),
        "reason": reason,
        "retry": may_return,
    }))
}
