//! Applies rules of Gemini CLI that are written apart from the servers they concern.

use std::collections::HashSet;

use super::containers::Containers;
use super::{LayerReader, LayerServer};
use crate::config::decode::WithSpan;
use crate::config::diagnostic::Code;
use crate::config::raw::{FileEntry, McpEntry};
use crate::config::redact::quoted;
use crate::name::ServerName;

impl LayerReader<'_, '_> {
    /// Applies `mcp.allowed` and `mcp.excluded`, with which Gemini CLI enables and disables
    /// servers.
    pub(super) fn gemini_rules(
        &mut self,
        file: &FileEntry,
        containers: &Containers<'_>,
        servers: &mut [LayerServer],
    ) {
        // A source that is not whole may have lost them.
        if containers.has_rules() || !self.is_whole {
            servers.iter_mut().for_each(|server| server.draft.switch_off());
        }
        let Some(mcp) = &file.mcp else { return };
        let names = |list: &WithSpan<Vec<WithSpan<Box<str>>>>| -> HashSet<Box<str>> {
            list.value.iter().map(|item| item.value.clone()).collect()
        };
        let allowed = mcp.value.allowed.as_ref().map(names);
        let excluded = mcp.value.excluded.as_ref().map(names);
        let are_names = self.are_server_names(&mcp.value, servers);
        // If servers are elsewhere, `mcp` contains rules: a list under any other key is an unknown
        // rule.
        let is_beside = [&file.mcp_servers, &file.servers, &file.context_servers];
        let is_beside = is_beside.into_iter().any(Option::is_some);
        let is_unknown = is_beside && mcp.value.has_unknown_rule;
        let is_unreadable = mcp.value.has_unreadable_rule || !are_names || is_unknown;
        for server in servers {
            let name = server.name.as_str();
            let is_allowed = allowed.as_ref().is_none_or(|names| names.contains(name));
            let is_excluded = excluded.as_ref().is_some_and(|names| names.contains(name));
            if !is_allowed || is_excluded || is_unreadable {
                server.draft.switch_off();
            }
        }
    }

    /// Whether every entry of Gemini CLI's lists can be the name of a server. Reports those that
    /// cannot, and names that no server in the file has.
    fn are_server_names(&mut self, mcp: &McpEntry, servers: &[LayerServer]) -> bool {
        let mut are_names = true;
        let lists = [mcp.allowed.as_ref(), mcp.excluded.as_ref()];
        for item in lists.into_iter().flatten().flat_map(|list| &list.value) {
            if servers.iter().any(|server| server.name.as_str() == &*item.value) {
                continue;
            }
            let is_name = ServerName::new(&item.value).is_ok() && item.value.trim() == &*item.value;
            if !is_name || item.value.contains(['*', '?', '!']) {
                are_names = false;
                let message = "this is not the name of a server";
                let found = self.decoder.error(Code::BadPattern, item.span, message);
                self.decoder.push(found.help("name each server; there are no patterns here"));
                continue;
            }
            let message = format!("there is no server {} in this file", quoted(&item.value));
            self.decoder.push(self.decoder.warning(Code::UnknownServer, item.span, message));
        }
        are_names
    }
}
