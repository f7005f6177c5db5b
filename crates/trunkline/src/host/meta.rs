//! Answers the meta tools that concern no single server: search, description and the servers.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use super::Host;
use super::blocking::blocking;
use super::unready::UnreadyServers;
use crate::catalog::{Catalog, CatalogServer, Entry, ItemKind};
use crate::config::{Trust, closest_match, escape_control};
use crate::message::Raw;
use crate::meta::{
    ArgumentError, DescribeArguments, MetaTool, SearchArguments, SearchHit, ShownTool, ToolIndex,
    search_line,
};
use crate::name::ServerName;
use crate::view::{DescriptionStyle, RouteError, View};

/// Limit in bytes of the definitions of one description.
const MAX_DEFINITIONS_BYTES: usize = 256 * 1024;

/// Characters of the description of a server.
const MAX_SERVER_CHARS: usize = 160;

/// Characters of a name that a model wrote and that is repeated.
const MAX_NAME_CHARS: usize = 80;

/// Tools that are named as similar to one that was found.
const MAX_SIMILAR: usize = 5;

/// Servers that are listed.
const MAX_SERVERS: usize = 500;

/// A tool that was found, by exposed name.
struct FoundTool {
    name: String,
    score: f32,
    similar: Vec<String>,
}

impl FoundTool {
    fn of(hit: &SearchHit<'_>) -> Self {
        let name = |entry: &Entry| entry.exposed().to_owned();
        let similar = hit.similar.iter().map(|entry| name(entry)).collect();
        Self { name: name(hit.entry), score: hit.score, similar }
    }

    fn in_view(self, view: &View) -> Option<SearchHit<'_>> {
        let entry = |name: &String| view.route(ItemKind::Tool, name).ok();
        let similar = self.similar.iter().filter_map(entry).collect();
        Some(SearchHit { entry: entry(&self.name)?, score: self.score, similar })
    }
}

/// The answer of a meta tool.
#[derive(Debug, Default)]
pub struct MetaAnswer {
    /// Text for the model.
    pub text: String,
    /// Whether the arguments cannot be used.
    pub is_error: bool,
    /// The tools that it shows, by exposed name. A tool that differs in the shown part when it is
    /// called is not the one that the model was shown.
    pub shown: Vec<(String, ShownTool)>,
}

impl From<ArgumentError> for MetaAnswer {
    fn from(error: ArgumentError) -> Self {
        Self { text: error.to_string(), is_error: true, shown: Vec::new() }
    }
}

impl MetaAnswer {
    /// The answer as a result of `tools/call`.
    pub fn to_result(&self) -> Raw {
        let mut result = serde_json::json!({ "content": [{ "type": "text", "text": self.text }] });
        if self.is_error {
            result["isError"] = true.into();
        }
        Raw::from_value(&result)
    }

    /// An answer that says what is wrong.
    pub(super) fn error(text: String) -> Self {
        Self { text, is_error: true, shown: Vec::new() }
    }

    /// Names tools that are nearly the same as the one before. A model may call one by that line, so
    /// it counts as shown.
    fn show_similar(&mut self, view: &View, similar: &[&Entry]) {
        let named = similar.iter().take(MAX_SIMILAR);
        let mut names = Vec::new();
        for entry in named {
            names.push(entry.exposed().to_owned());
            self.show(entry, ShownTool::line(&search_line(view, entry)));
        }
        if similar.len() > MAX_SIMILAR {
            names.push(format!("and {} more", similar.len() - MAX_SIMILAR));
        }
        if !names.is_empty() {
            let _ = writeln!(self.text, "  similar: {}", names.join(", "));
        }
    }

    /// Adds a definition, if there is room. Of one that is too long by itself, the beginning.
    fn describe(&mut self, name: &str, definition: &str) -> bool {
        let room = MAX_DEFINITIONS_BYTES.saturating_sub(self.text.len());
        if definition.len() <= room {
            let _ = writeln!(self.text, "{definition}");
            return true;
        }
        if !self.text.is_empty() {
            return false;
        }
        let end = definition.floor_char_boundary(MAX_DEFINITIONS_BYTES);
        let (shown, missing) = definition.split_at_checked(end).unwrap_or((definition, ""));
        let _ = writeln!(self.text, "{shown}\n{} bytes of {name} are missing", missing.len());
        true
    }

    fn show(&mut self, entry: &Entry, tool: ShownTool) {
        self.shown.push((entry.exposed().to_owned(), tool));
    }
}

impl Host {
    /// The search index of a catalog. That of the newest one is built in the background.
    pub async fn tool_index(&self, catalog: &Arc<Catalog>) -> Arc<ToolIndex> {
        self.shared.search.of(catalog).await
    }

    /// Finds tools of a view by what they do, best first. Blocks no thread of the runtime: for the
    /// first search of a view, the rules are asked for every tool.
    pub async fn search_tools<'v>(
        &self,
        view: &'v View,
        search: &SearchArguments,
    ) -> Vec<SearchHit<'v>> {
        let index = self.tool_index(view.catalog()).await;
        let (own, wanted) = (view.clone(), search.clone());
        let found = blocking(move || {
            index.search(&own, &wanted).iter().map(FoundTool::of).collect::<Vec<_>>()
        });
        let found = found.await;
        found.into_iter().filter_map(|it| it.in_view(view)).collect()
    }

    /// Answers a meta tool other than [`MetaTool::Call`], for which it only explains how the tool
    /// is used.
    pub async fn answer_meta_tool(
        &self,
        view: &View,
        tool: MetaTool,
        arguments: &Raw,
    ) -> MetaAnswer {
        match tool {
            MetaTool::Search => match SearchArguments::read(arguments) {
                Ok(search) => self.answer_search(view, &search).await,
                Err(error) => error.into(),
            },
            MetaTool::Describe => match DescribeArguments::read(arguments) {
                Ok(names) => {
                    let (host, view) = (self.clone(), view.clone());
                    // Suggestions for unknown names compare them with all others.
                    blocking(move || host.describe_tools(&view, &names)).await
                }
                Err(error) => error.into(),
            },
            MetaTool::Servers => {
                let (host, view) = (self.clone(), view.clone());
                // The rules are asked for every tool.
                blocking(move || host.list_servers(&view)).await
            }
            MetaTool::Call => MetaAnswer {
                text: format!("{} calls a tool: pass its `name`", MetaTool::Call.name()),
                is_error: true,
                shown: Vec::new(),
            },
        }
    }

    async fn answer_search(&self, view: &View, search: &SearchArguments) -> MetaAnswer {
        if let Some(server) = &search.server
            && !visible_servers(view).any(|it| it.name.as_str() == server)
        {
            return unknown_server(view, server);
        }
        let own = view.clone();
        let unready = blocking(move || UnreadyServers::of_tools(&own)).await;
        if let Some(server) = search.server.as_ref().and_then(|server| unready.get(server)) {
            let text = format!("server `{}` is {server}, so that its tools", server.name());
            return MetaAnswer::error(format!("{text} cannot be searched; call again later"));
        }
        let mut answer = MetaAnswer::default();
        for hit in self.search_tools(view, search).await {
            let line = search_line(view, hit.entry);
            let _ = writeln!(answer.text, "{line}");
            answer.show(hit.entry, ShownTool::line(&line));
            answer.show_similar(view, &hit.similar);
        }
        if answer.shown.is_empty() {
            answer.text = "no tool fits; try other words, or fewer\n".to_owned();
        }
        // A search in one server that is ready has seen everything.
        if let Some(note) = unready.note().filter(|_| search.server.is_none()) {
            let _ = writeln!(answer.text, "{note}");
        }
        answer
    }

    fn describe_tools(&self, view: &View, names: &DescribeArguments) -> MetaAnswer {
        let mut answer = MetaAnswer::default();
        let (unready, mut left_out) = (UnreadyServers::of_tools(view), names.left_out);
        for name in &names.names {
            match view.route(ItemKind::Tool, name) {
                Ok(entry) => {
                    // An untrusted server is always named.
                    let style = match view.rules().trust(&entry.server().name) {
                        Trust::Untrusted => DescriptionStyle::WithServer,
                        Trust::Trusted => self.description_style(),
                    };
                    let definition = view.definition(entry, style);
                    match answer.describe(entry.exposed(), definition.text()) {
                        true => answer.show(entry, ShownTool::definition(entry)),
                        false => left_out += 1,
                    }
                }
                Err(error) => {
                    let message = match &error {
                        RouteError::Unknown { .. } => not_ready(view, &unready, name),
                        _ => None,
                    };
                    let message = message.unwrap_or_else(|| error.to_string());
                    let _ = writeln!(answer.text, "{}", escape_control(&message));
                }
            }
        }
        if left_out > 0 {
            let _ = writeln!(answer.text, "{left_out} more are left out: describe fewer at once");
        }
        answer.is_error = answer.shown.is_empty();
        answer
    }

    fn list_servers(&self, view: &View) -> MetaAnswer {
        let mut answer = MetaAnswer::default();
        let (mut counts, mut left_out) = (std::collections::BTreeMap::new(), 0_usize);
        for entry in view.entries(ItemKind::Tool) {
            *counts.entry(&entry.server().name).or_insert(0_usize) += 1;
        }
        let unready = UnreadyServers::of_tools(view);
        // A server without a visible tool does not exist for the caller, unless it may have some.
        let is_shown = |it: &&CatalogServer| {
            counts.contains_key(&it.name) || unready.get(it.name.as_str()).is_some()
        };
        for (index, server) in visible_servers(view).filter(is_shown).enumerate() {
            if index >= MAX_SERVERS {
                left_out += 1;
                continue;
            }
            let count = counts.get(&server.name).copied().unwrap_or_default();
            let tools = if count == 1 { "tool" } else { "tools" };
            let _ = match unready.get(server.name.as_str()) {
                Some(unready) => {
                    write!(answer.text, "{}: {unready}; call again later", server.name)
                }
                None => write!(answer.text, "{}: {count} {tools}", server.name),
            };
            let described = self.described(&server.name);
            if let Some(line) = described.lines().find(|line| !line.trim().is_empty()) {
                let line: String = line.trim().chars().take(MAX_SERVER_CHARS).collect();
                let _ = write!(answer.text, ". {}", escape_control(&line));
            }
            answer.text.push('\n');
        }
        if left_out > 0 {
            let _ = writeln!(answer.text, "{left_out} more servers are left out");
        }
        if answer.text.is_empty() {
            answer.text = "there are no servers".to_owned();
        }
        answer
    }

    /// The description of a server: its title or instructions. Empty for an untrusted server, whose
    /// text a model would follow.
    fn described(&self, server: &ServerName) -> String {
        let connections = self.servers().connections();
        let found = connections.iter().find(|it| it.server().name == *server);
        let Some(connection) = found.filter(|it| it.server().trust == Trust::Trusted) else {
            return String::new();
        };
        let status = connection.watch().borrow().clone();
        let info = status.server_info.as_ref();
        let text = |raw: Option<Raw>| raw.as_ref().and_then(Raw::as_str).map(Cow::into_owned);
        let described = info.and_then(|info| text(info.get("description")));
        let title = || info.and_then(|info| text(info.get("title")));
        described.or_else(|| text(status.instructions)).or_else(title).unwrap_or_default()
    }
}

pub(super) fn is_untrusted(host: &Host, entry: &Entry) -> bool {
    let config = host.config();
    config.server(entry.server().name.as_str()).is_none_or(|it| it.trust == Trust::Untrusted)
}

/// The servers that may have tools for a caller.
fn visible_servers(view: &View) -> impl Iterator<Item = &CatalogServer> {
    view.catalog().servers().filter(|server| view.could_contain(&server.name))
}

/// The message for an unknown tool that a server may have which is not ready.
fn not_ready(view: &View, unready: &UnreadyServers, name: &str) -> Option<String> {
    let owners = view.possible_owners(name);
    let owner = owners.iter().find_map(|owner| unready.get(owner.as_str()))?;
    let shown: String = name.chars().take(MAX_NAME_CHARS).collect();
    let server = owner.name();
    Some(format!("`{shown}` is not known: server `{server}` is {owner}; call again later"))
}

/// The answer to a search in a server that does not exist for the caller.
fn unknown_server(view: &View, server: &str) -> MetaAnswer {
    let names: Vec<_> = visible_servers(view).map(|it| it.name.as_str()).collect();
    let shown: String = server.chars().take(MAX_NAME_CHARS).collect();
    let mut text = format!("there is no server `{}`", escape_control(&shown));
    if let Some(near) = closest_match(server, names.iter().copied()) {
        let _ = write!(text, "; did you mean `{near}`?");
    } else {
        let _ = write!(text, "; {} lists the servers", MetaTool::Servers.name());
    }
    MetaAnswer { text, is_error: true, shown: Vec::new() }
}
