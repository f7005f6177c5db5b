//! Reports names in the rules of agents, servers and bundles that no server has, each once
//! (TOOL-6).

use std::collections::BTreeSet;
use std::sync::Arc;

use trunkline::catalog::ItemKind;
use trunkline::config::escape_control;
use trunkline::connection::{Connection, State};
use trunkline::host::{Host, WaitFor};
use trunkline::name::ServerName;
use trunkline::policy::CallerSpec;
use trunkline::view::{UnmatchedListEntry, UnmatchedName};

use crate::output::terminal::Terminal;

/// Limit of reported names: enough to recognize the mistake in the rest.
const MAX_REPORTED: usize = 100;

/// The names reported so far, so that none is repeated.
#[derive(Default)]
pub(crate) struct UnmatchedNames(BTreeSet<String>);

impl UnmatchedNames {
    /// Reports unknown names after a server has become ready and, once the tools of all servers are
    /// known, those that belong to no server.
    pub(crate) async fn report_of(
        &mut self,
        servers: &[ServerName],
        host: &Host,
        terminal: &Terminal,
    ) {
        host.refresh_servers(servers, &[ItemKind::Tool], WaitFor::NoWait).await;
        self.report(host, terminal).await;
    }

    /// Reports every unknown name. Starts no server.
    pub(crate) async fn report(&mut self, host: &Host, terminal: &Terminal) {
        refresh_prompts(host).await;
        for text in unknown_names(host) {
            if self.0.len() < MAX_REPORTED && self.0.insert(text.clone()) {
                terminal.warn(&text);
            }
        }
    }
}

/// Requests the prompts of ready servers whose list entries may be prompts.
pub(crate) async fn refresh_prompts(host: &Host) {
    let Ok(view) = host.view(CallerSpec::default()) else { return };
    let mut open = view.servers_with_open_list_entries();
    let connection = |name: &ServerName| host.servers().get(name.as_str());
    open.retain(|name| connection(name).is_some_and(|it| it.status().state == State::Ready));
    if !open.is_empty() {
        host.refresh_servers(&open, &[ItemKind::Prompt], WaitFor::NoWait).await;
    }
}

/// A message for each unknown name.
fn unknown_names(host: &Host) -> Vec<String> {
    let connections = host.servers().connections();
    let is_known = |it: &Arc<Connection>| it.is_loaded(ItemKind::Tool);
    let are_all_known = connections.iter().all(is_known);
    let is_server_known = |name: &ServerName| {
        host.servers().get(name.as_str()).is_some_and(|connection| is_known(&connection))
    };
    let mut texts = Vec::new();
    if let Ok(view) = host.view(CallerSpec::default()) {
        // Entries of servers with unknown prompts are reported once the prompts are known.
        let entries = view.unmatched_list_entries().into_iter().filter(|it| it.are_prompts_known);
        texts.extend(entries.map(|it| list_entry(&it)));
    }
    for agent in host.agent_names() {
        let who = CallerSpec { agent: Some(agent.as_str()), ..CallerSpec::default() };
        let Ok(view) = host.view(who) else { continue };
        let mut unknown = view.unmatched_names();
        unknown.retain(|it| it.server.map_or(are_all_known, is_server_known));
        texts.extend(unknown.iter().map(agent_name));
    }
    texts
}

/// The message for an agent's pattern that matches no name. A name with no server's prefix may be a
/// tool of the host that the agent was written for.
pub(crate) fn agent_name(unknown: &UnmatchedName<'_>) -> String {
    let name = escape_control(unknown.pattern.pattern.as_str());
    let place = escape_control(&unknown.pattern.location.to_string());
    let agent = escape_control(unknown.agent.as_str());
    let meant =
        unknown.suggestion.map(|near| format!("; did you mean `{}`?", escape_control(near)));
    let meant = meant.unwrap_or_default();
    match unknown.server {
        Some(server) => {
            let server = escape_control(server.as_str());
            format!("{place}: agent `{agent}`: server `{server}` has no tool `{name}`{meant}")
        }
        None => format!("{place}: agent `{agent}`: no server has a tool `{name}`{meant}"),
    }
}

/// The message for an entry of `allowTools` or `denyTools` that matches no item of its server.
pub(crate) fn list_entry(unknown: &UnmatchedListEntry<'_>) -> String {
    let UnmatchedListEntry { entry, key, server, bundle, location, suggestion, .. } = unknown;
    let place = location.map(|it| format!("{}: ", escape_control(&it.to_string())));
    let place = place.unwrap_or_default();
    let (entry, server) = (escape_control(entry), escape_control(server.as_str()));
    let owner = match bundle {
        Some(bundle) => format!("bundle `{}`", escape_control(bundle.as_str())),
        None => format!("server `{server}`"),
    };
    let advice = match (suggestion, unknown.is_exposed_name) {
        (Some(own), true) => {
            format!(
                "; that is an exposed name: write `{}`, the server's own name",
                escape_control(own)
            )
        }
        (Some(near), false) => format!("; did you mean `{}`?", escape_control(near)),
        (None, true) => "; it matches exposed names, but lists hold the server's own names".into(),
        (None, false) => String::new(),
    };
    let kinds = match unknown.are_prompts_known {
        true => "tool or prompt",
        // A cached server may never have been asked for prompts.
        false => "tool",
    };
    format!("{place}`{key}` of {owner}: server `{server}` has no {kinds} `{entry}`{advice}")
}
