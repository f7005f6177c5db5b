//! Answers the tools for resources and prompts (TOOL-14).

use std::fmt::Write as _;
use std::time::Duration;

use tokio::time::timeout;

use super::blocking::blocking;
use super::caller::HostCaller;
use super::meta::{MetaAnswer, is_untrusted};
use super::unready::UnreadyServers;
use super::{Host, WaitFor};
use crate::call::{CallError, CallOptions, Outcome};
use crate::catalog::{CatalogServer, Entry, ItemKind};
use crate::config::{closest_match, escape_control};
use crate::message::Raw;
use crate::meta::{ItemListArguments, ItemRequest, ItemTool, item_contains, item_line};
use crate::name::digest;
use crate::view::View;

/// Limit in bytes of the lines of one list, after which it continues with a cursor. One line may be
/// longer.
const MAX_ITEM_LIST_BYTES: usize = 64 * 1024;

/// Characters of a server's name that are repeated.
const MAX_SERVER_CHARS: usize = 64;

/// Letters of a cursor.
const CURSOR_LETTERS: usize = 16;

impl HostCaller {
    /// Calls a tool for resources or prompts. The outcome is that of a tool call.
    pub(super) async fn call_item_tool(
        &self,
        tool: ItemTool,
        arguments: &Raw,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let request = ItemRequest::read(tool, arguments);
        let request = request.map_err(|error| CallError::bad_arguments(&error))?;
        let refresh = self.host.refresh(tool.kinds(), WaitFor::Grace);
        // A list that comes later is found by the next call.
        let _ = timeout(options.time_left().unwrap_or(Duration::MAX), refresh).await;
        let view = self.view()?;
        let text = |raw: &Raw| raw.as_str().unwrap_or_default().into_owned();
        let outcome = match request {
            ItemRequest::List(wanted) => {
                let list = self.host.list_items(&view, tool, wanted).await;
                return Ok(Outcome::of_host(list.to_result()));
            }
            ItemRequest::Read { uri } => self.host.read(&view, &text(&uri), options).await?,
            ItemRequest::Prompt { name, arguments } => {
                let arguments = arguments.unwrap_or_else(Raw::empty_object);
                self.host.prompt(&view, &text(&name), arguments, options).await?
            }
        };
        Ok(outcome.into_tool_result())
    }
}

impl Host {
    /// Lists resources or prompts of a view for a model, one per line. Blocks no thread of the
    /// runtime: the rules are asked for every item.
    pub async fn list_items(
        &self,
        view: &View,
        tool: ItemTool,
        wanted: ItemListArguments,
    ) -> MetaAnswer {
        let (host, view) = (self.clone(), view.clone());
        blocking(move || ItemListing { host: &host, view: &view, tool, wanted: &wanted }.answer())
            .await
    }
}

/// A list that a model asked for.
struct ItemListing<'l> {
    host: &'l Host,
    view: &'l View,
    tool: ItemTool,
    wanted: &'l ItemListArguments,
}

impl ItemListing<'_> {
    fn answer(&self) -> MetaAnswer {
        if let Some(server) = &self.wanted.server
            && !self.servers().any(|it| it.name.as_str() == server)
        {
            return self.unknown_server(server);
        }
        let (mut text, mut last, mut listed, mut left) = (String::new(), None, 0_usize, 0_usize);
        let mut is_before = self.wanted.cursor.is_some();
        for entry in self.entries() {
            if is_before {
                is_before = self.wanted.cursor != Some(cursor(entry));
                continue;
            }
            if left > 0 || listed == self.wanted.limit {
                left += 1;
                continue;
            }
            let mark = if is_untrusted(self.host, entry) { "[untrusted] " } else { "" };
            let line = format!("{mark}{}\n", item_line(entry));
            if listed > 0 && text.len() + line.len() > MAX_ITEM_LIST_BYTES {
                left += 1;
                continue;
            }
            text.push_str(&line);
            (last, listed) = (Some(entry), listed + 1);
        }
        if is_before {
            let message = "`cursor` is not the end of this list any more: list without it";
            return MetaAnswer::error(format!("{}: {message}", self.tool.name()));
        }
        let unready = UnreadyServers::of_items(self.host, self.view, self.tool.kinds());
        if listed == 0 {
            if let Some(server) = self.wanted.server.as_ref().and_then(|it| unready.get(it)) {
                let text = format!("server `{}` is {server}, so that its", server.name());
                let text = format!("{text} {} cannot be listed", self.items());
                return MetaAnswer::error(format!("{text}; call again later"));
            }
            let _ = writeln!(text, "{}", self.none(&unready));
        }
        if let Some(last) = last.filter(|_| left > 0) {
            let cursor = cursor(last);
            let _ = writeln!(text, "{left} more: call again with \"cursor\": \"{cursor}\"");
        }
        let note = match &self.wanted.server {
            None => unready.note(),
            Some(server) => {
                unready.get(server).map(|it| format!("{server} is {it}; call again later"))
            }
        };
        if let Some(note) = note {
            let _ = writeln!(text, "{note}");
        }
        MetaAnswer { text, ..MetaAnswer::default() }
    }

    /// The selected items, in the order of the catalog.
    fn entries(&self) -> impl Iterator<Item = &Entry> {
        let query = self.wanted.query.as_ref().map(|query| query.trim().to_lowercase());
        let server = self.wanted.server.as_deref();
        let all = self.tool.kinds().iter().flat_map(|kind| self.view.entries(*kind));
        all.filter(move |entry| {
            server.is_none_or(|server| entry.server().name.as_str() == server)
                && query.as_ref().is_none_or(|query| item_contains(entry, query))
        })
    }

    fn none(&self, unready: &UnreadyServers) -> String {
        let items = self.items();
        match (&self.wanted.query, &self.wanted.server, &self.wanted.cursor) {
            (None, None, None) if !unready.is_empty() => format!("no {items} are known yet"),
            (None, None, None) => format!("there are no {items}"),
            (None, Some(server), None) => format!("server `{server}` has no {items}"),
            _ => format!("there are no {items} like that"),
        }
    }

    fn items(&self) -> &'static str {
        match self.tool.kinds() {
            [ItemKind::Prompt] => "prompts",
            _ => "resources",
        }
    }

    /// The servers that may have items for the caller.
    fn servers(&self) -> impl Iterator<Item = &CatalogServer> {
        self.view.catalog().servers().filter(|server| self.view.could_contain(&server.name))
    }

    fn unknown_server(&self, server: &str) -> MetaAnswer {
        let shown: String = server.chars().take(MAX_SERVER_CHARS).collect();
        let names: Vec<_> = self.servers().map(|it| it.name.as_str()).collect();
        let advice = match closest_match(server, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("leave out `server` to list the {} of all", self.items()),
        };
        MetaAnswer::error(format!("there is no server `{}`; {advice}", escape_control(&shown)))
    }
}

/// The position after an item. It is short, because a model repeats it.
fn cursor(entry: &Entry) -> String {
    let kind = [entry.kind() as u8];
    digest(&[&kind, entry.exposed().as_bytes()], CURSOR_LETTERS)
}
