//! Agents in files: markdown with YAML frontmatter (TOOL-7).

mod blocks;
mod exclusions;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::decode::{Decoder, FromNode, WithSpan};
use super::diagnostic::{Code, Diagnostic, Severity};
use super::discovery::decoded;
use super::environment::Environment;
use super::jsonc::{Node, ObjectKey, ObjectMember, Value};
use super::limits::LimitKeyword;
use super::model::{Access, Agent, AgentPattern, Agents, ItemToolSettings, ToolMode};
use super::raw::PatternsEntry;
use super::source::{Source, Span};
use super::suggest::Suggestions;
use super::validate::patterns;
use super::yaml::{self, YamlStyle};
use crate::name::AgentName;
use blocks::FrontmatterBlock;
use exclusions::exclusions;

/// Largest accepted agent file. It is a prompt for a model.
const MAX_FILE_BYTES: usize = 1024 * 1024;

/// Maximum number of files read from one directory.
const MAX_FILES: usize = 1000;

/// The key of the patterns of an agent, with the spellings of Claude Code.
const TOOLS: &[&str] = &["tools", "allowed-tools", "allowedTools"];

/// Known keys of a block. The last two are exclusions of other hosts.
const KNOWN: &[&str] = &[
    "name",
    "access",
    "description",
    "mode",
    "model",
    RESOURCES_AS_TOOLS,
    PROMPTS_AS_TOOLS,
    "disallowedTools",
    "permission",
];

/// The keys for resources and prompts as tools (TOOL-14).
const RESOURCES_AS_TOOLS: &str = "resourcesAsTools";
const PROMPTS_AS_TOOLS: &str = "promptsAsTools";

/// Values of `mode` in agent files of opencode and VS Code, where it is about other things.
const FOREIGN_MODES: &[&str] = &["primary", "subagent", "all", "agent", "ask", "edit", "chat"];

/// Claude Code's key for additional servers of an agent.
const MCP_SERVERS: &str = "mcpServers";

/// The agents that a file contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentFile<'n> {
    /// Any number, each in a block with a `name`.
    Several,
    /// One, with this name unless its block has a `name`.
    One(&'n str),
}

/// Agents with the diagnostics of loading them.
#[derive(Debug, Default)]
pub struct LoadedAgents {
    /// All agents whose names are known. Those with errors are disabled.
    pub agents: BTreeMap<AgentName, Agent>,
    /// All diagnostics.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses one agent file. Messages refer to it as `name`.
///
/// ```
/// use trunkline::config::{self, AgentFile};
///
/// let text = "---\nname: Architect\ntools: [*, !web_*]\n---\nYou are an architect.\n";
/// let loaded = config::parse_agents("AGENTS.md", text, AgentFile::Several);
/// assert!(loaded.diagnostics.is_empty());
/// let tools = loaded.agents["Architect"].tools.as_ref().unwrap();
/// assert_eq!(tools[1].pattern.as_str(), "!web_*");
/// assert_eq!(tools[1].location.to_string(), "AGENTS.md:3:12");
/// ```
pub fn parse_agents(name: &str, text: impl AsRef<[u8]>, file: AgentFile<'_>) -> LoadedAgents {
    let mut collection = AgentCollection::default();
    collection.add_file(name, text.as_ref(), file);
    collection.finish()
}

/// Loads all agents of a configuration: those written in it, and those in the files it names.
///
/// A path of a directory stands for the `*.md` files in it, one agent each.
pub fn load_agents(surroundings: &dyn Environment, agents: &Agents) -> LoadedAgents {
    let mut collection = AgentCollection::default();
    for (name, agent) in &agents.named {
        collection.add(name.clone(), agent.clone());
    }
    for file in &agents.files {
        let path = agents.folder.join(&**file);
        match surroundings.read(&path) {
            Ok(bytes) => collection.add_file(file, &bytes, AgentFile::Several),
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                collection.add_folder(surroundings, &path, file);
            }
            Err(error) => collection.unreadable(file, &error),
        }
    }
    let mut loaded = collection.finish();
    if agents.has_unreadable_naming {
        loaded.agents.values_mut().for_each(Agent::without_known_names);
    }
    loaded
}

/// The agents so far, including all that share a name.
#[derive(Default)]
struct AgentCollection {
    agents: BTreeMap<AgentName, Vec<Agent>>,
    suggestions: Suggestions,
    diagnostics: Vec<Diagnostic>,
}

impl AgentCollection {
    fn add(&mut self, name: AgentName, agent: Agent) {
        self.agents.entry(name).or_default().push(agent);
    }

    fn add_folder(&mut self, surroundings: &dyn Environment, folder: &Path, name: &str) {
        let mut paths = match surroundings.files_in(folder) {
            Ok(paths) => paths,
            Err(error) => return self.unreadable(name, &error),
        };
        paths.retain(|path| path.extension().is_some_and(|end| end == "md"));
        paths.sort();
        if paths.len() > MAX_FILES {
            let message = format!("only the first {MAX_FILES} agents in {name} are read");
            self.diagnostics.push(Diagnostic::new(Severity::Warning, Code::TooLarge, message));
        }
        for path in paths.iter().take(MAX_FILES) {
            let shown = format!("{}/{}", name.trim_end_matches('/'), file_name(path));
            match surroundings.read(path) {
                Ok(bytes) => self.add_file(&shown, &bytes, AgentFile::One(&stem(path))),
                Err(error) => self.unreadable(&shown, &error),
            }
        }
    }

    fn unreadable(&mut self, name: &str, error: &io::Error) {
        let (code, problem) = match error.kind() {
            io::ErrorKind::NotFound => (Code::FileMissing, "does not exist".to_owned()),
            _ => (Code::FileUnreadable, format!("cannot be read: {error}")),
        };
        let message = format!("the agent file {name} {problem}");
        let found = Diagnostic::new(Severity::Error, code, message);
        self.diagnostics.push(found.help("correct the path under `agents`, or remove it"));
    }

    fn add_file(&mut self, name: &str, bytes: &[u8], file: AgentFile<'_>) {
        if bytes.len() > MAX_FILE_BYTES {
            let message = format!("{name} is larger than 1 MiB, which no agent is");
            self.diagnostics.push(Diagnostic::new(Severity::Error, Code::TooLarge, message));
            return;
        }
        let source = match decoded(name, bytes) {
            Ok(source) => Arc::new(source),
            Err(found) => return self.diagnostics.push(*found),
        };
        // Before any part of it is shown: a block may contain credentials of its own servers.
        source.sensitive(blocks::sensitive_spans);
        let mut decoder = Decoder::new(&source, &mut self.suggestions);
        let mut reader = BlockReader { decoder: &mut decoder, source: &source, file };
        let agents = reader.agents();
        self.diagnostics.extend(decoder.into_diagnostics());
        for (name, agent) in agents {
            self.add(name, agent);
        }
    }

    fn finish(mut self) -> LoadedAgents {
        let mut agents = BTreeMap::new();
        for (name, mut found) in self.agents {
            if found.len() == 1 {
                agents.extend(found.pop().map(|agent| (name, agent)));
                continue;
            }
            let Some(first) = found.first() else { continue };
            let message = format!("{} agents are called `{name}`", found.len());
            let mut report = Diagnostic::new(Severity::Error, Code::DuplicateAgent, message)
                .at_location(first.location.clone())
                .help("none of them is used until they have names of their own");
            for other in &found[1..] {
                report = report.related(other.location.clone(), "also here");
            }
            self.diagnostics.push(report);
            agents.insert(name, Agent::disabled(first.location.clone()));
        }
        LoadedAgents { agents, diagnostics: self.diagnostics }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The name of an agent by its file: `reviewer.md`, or VS Code's `reviewer.agent.md`.
fn stem(path: &Path) -> String {
    let stem = PathBuf::from(file_name(path)).with_extension("").display().to_string();
    stem.strip_suffix(".agent").map(str::to_owned).unwrap_or(stem)
}

/// Decodes the blocks of one file.
struct BlockReader<'r, 'd> {
    decoder: &'r mut Decoder<'d>,
    source: &'r Source,
    file: AgentFile<'r>,
}

impl BlockReader<'_, '_> {
    fn agents(&mut self) -> Vec<(AgentName, Agent)> {
        let mut blocks = blocks::blocks(self.source.text());
        if let AgentFile::One(_) = self.file {
            blocks.truncate(1);
            blocks.retain(|block| block.is_first);
        }
        if blocks.is_empty() {
            let message = format!("there is no agent in {}", self.source.name());
            let found = self.decoder.note(Code::AgentSyntax, Span::default(), message);
            self.decoder.push(found.help("an agent starts with `---`, `name: …`, `---`"));
        }
        blocks.iter().filter_map(|block| self.agent(block)).collect()
    }

    /// The agent of a block. One with errors is disabled; one without a name is left out.
    fn agent(&mut self, block: &FrontmatterBlock) -> Option<(AgentName, Agent)> {
        let Some(node) = self.node(block) else {
            let AgentFile::One(name) = self.file else { return None };
            let name = AgentName::new(name).ok()?;
            return Some(self.disabled(name, block.opening));
        };
        let members = match &node.value {
            Value::Object(members) => members.as_slice(),
            _ => &[],
        };
        let before = self.decoder.diagnostic_count();
        let is_switched = self.keys(members);
        let name = self.name(block, &node)?;
        let place = node.get("name").map_or(block.opening, |name| name.span);
        let (tools, access) = (self.tools(&name, members), self.value::<Access>("access", &node));
        let mode = self.mode(&node);
        let item_tools = ItemToolSettings {
            resources: self.value(RESOURCES_AS_TOOLS, &node).flatten(),
            prompts: self.value(PROMPTS_AS_TOOLS, &node).flatten(),
        };
        // Any error may concern a limit, as in an agent of the configuration itself.
        let is_usable = !is_switched && !self.decoder.has_errors_since(before);
        let (true, Some(tools), Some(access)) = (is_usable, tools, access) else {
            return Some(self.disabled(name, place));
        };
        let description = match node.get("description").map(|it| &it.value) {
            Some(Value::String(text)) => Some(text.clone()),
            _ => None,
        };
        let location = self.decoder.location(place);
        let is_disabled = false;
        Some((name, Agent { tools, access, mode, item_tools, description, location, is_disabled }))
    }

    fn disabled(&mut self, name: AgentName, place: Span) -> (AgentName, Agent) {
        let message = format!("agent `{name}` is disabled until its errors are corrected");
        let found = self.decoder.warning(Code::Disabled, place, message);
        self.decoder.push(found.label("shows nothing"));
        let agent = Agent::disabled(self.decoder.location(place));
        (name, agent)
    }

    /// The keys of a block; `None` if they cannot be parsed, which is reported.
    fn node(&mut self, block: &FrontmatterBlock) -> Option<Node> {
        if !block.is_closed {
            let message = "this block is not closed";
            let found = self.decoder.error(Code::AgentSyntax, block.opening, message);
            self.decoder.push(found.help("add a line `---` after its last key"));
            return None;
        }
        let text = self.source.text().get(block.yaml.range())?;
        let node = match yaml::read(text, block.yaml.start(), YamlStyle::Patterns) {
            Ok(node) => node,
            Err(error) => {
                let message = format!("this is not YAML: {}", error.message);
                let found = self.decoder.error(Code::AgentSyntax, error.span, message);
                self.decoder.push(found);
                return None;
            }
        };
        if matches!(node.value, Value::Object(_) | Value::Null) {
            return Some(node);
        }
        let message = "a block has to hold keys such as `name:` and `tools:`";
        let found = self.decoder.error(Code::AgentSyntax, node.span, message);
        self.decoder.push(found);
        None
    }

    /// Reports keys that occur twice or may be misspelt. Returns whether one of them may switch the
    /// agent off, which is only a warning.
    fn keys(&mut self, members: &[ObjectMember]) -> bool {
        let mut seen: BTreeMap<&str, &ObjectKey> = BTreeMap::new();
        let mut is_switched = false;
        for ObjectMember { key, value } in members {
            let text = &*key.text;
            let meaning = if TOOLS.contains(&text) { "tools" } else { text };
            if let Some(first) = seen.insert(meaning, key) {
                self.decoder.duplicate_key(key, first.span);
            } else if text == MCP_SERVERS {
                self.connected_servers(members, key, value);
            } else if !TOOLS.contains(&text) && !KNOWN.contains(&text) {
                is_switched |= self.is_switch(key, value);
            }
        }
        is_switched
    }

    /// Checks Claude Code's `mcpServers`. It adds servers to the others there, so it hides none; a
    /// list of names without `tools` may have been intended as a limit.
    fn connected_servers(&mut self, members: &[ObjectMember], key: &ObjectKey, value: &Node) {
        let has_tools = members.iter().any(|it| TOOLS.contains(&&*it.key.text));
        let is_choice = LimitKeyword::written(&key.text, value) == Some(LimitKeyword::Scope);
        if has_tools || !is_choice {
            return;
        }
        let message = "`mcpServers` hides no tools from this agent";
        let found = self.decoder.warning(Code::NotApplied, key.span, message);
        self.decoder.push(found.help(LimitKeyword::Scope.advice(|_| false)));
    }

    /// Reports an unknown key that is a misspelt one, or a limit, without which the agent would see
    /// more. Returns whether it may switch the agent off.
    fn is_switch(&mut self, key: &ObjectKey, value: &Node) -> bool {
        let text = &*key.text;
        let message = format!("`{text}` is not known here");
        let known = ["name", "tools", "access"].into_iter();
        if let Some(near) = Suggestions::default().nearest(text, known) {
            let found = match near {
                "tools" | "access" => self.decoder.error(Code::UnknownKey, key.span, message),
                _ => self.decoder.warning(Code::UnknownKey, key.span, message),
            };
            let help = format!("did you mean `{near}`?");
            self.decoder.push(found.label("has no effect").help(help));
            return false;
        }
        let Some(word) = LimitKeyword::written(text, value) else { return false };
        // opencode disables agents with `disable`.
        let is_switch = matches!(word, LimitKeyword::Switch(_));
        let found = match is_switch {
            true => self.decoder.warning(Code::UnknownKey, key.span, message),
            false => self.decoder.error(Code::UnknownKey, key.span, message),
        };
        let help = word.advice(|rule| matches!(rule, "tools" | "access"));
        self.decoder.push(found.label("a rule that is not applied").help(help));
        is_switch
    }

    fn name(&mut self, block: &FrontmatterBlock, node: &Node) -> Option<AgentName> {
        let written = node.get("name");
        let text = match (written.map(|name| &name.value), self.file) {
            (Some(Value::String(text)), _) => text.to_string(),
            (Some(Value::Bool(value)), _) => value.to_string(),
            (None | Some(Value::Null), AgentFile::One(name)) => name.to_owned(),
            (None | Some(Value::Null), AgentFile::Several) => {
                let message = "this agent has no name";
                let found = self.decoder.error(Code::AgentWithoutName, block.opening, message);
                self.decoder.push(found.help("add `name: …` to its block"));
                return None;
            }
            (Some(_), _) => {
                let node = written?;
                self.decoder.about("`name`".to_owned(), |it| it.wrong_type(node, "a string"));
                return None;
            }
        };
        let place = written.map_or(block.opening, |name| name.span);
        AgentName::new(&text)
            .map_err(|reason| {
                let found = self.decoder.error(Code::BadName, place, reason.to_string());
                self.decoder.push(found);
            })
            .ok()
    }

    /// The value of a key, if it is set; `None` if it cannot be decoded.
    fn value<T: FromNode>(&mut self, key: &str, node: &Node) -> Option<Option<T>> {
        let Some(written) = node.get(key) else { return Some(None) };
        let read = |decoder: &mut Decoder<'_>| T::from_node(written, decoder);
        self.decoder.about(format!("`{key}`"), read).map(Some)
    }

    /// The mode of the agent, if it has one, and not one of another host.
    fn mode(&mut self, node: &Node) -> Option<ToolMode> {
        match node.get("mode").map(|written| &written.value) {
            Some(Value::String(word)) if FOREIGN_MODES.contains(&&**word) => None,
            _ => self.value("mode", node).flatten(),
        }
    }

    /// The patterns of the agent; `None` if they cannot be decoded.
    fn tools(
        &mut self,
        agent: &AgentName,
        members: &[ObjectMember],
    ) -> Option<Option<Vec<AgentPattern>>> {
        let excluded = exclusions(members, self.decoder)?;
        let written = members.iter().find(|it| TOOLS.contains(&&*it.key.text));
        let Some(ObjectMember { key, value: node }) = written else {
            let Some(first) = excluded.first() else { return Some(None) };
            // Everything except the exclusions.
            let (span, key) = (first.span, first.key);
            let all = WithSpan { value: "*".into(), span, key };
            let value = PatternsEntry([all].into_iter().chain(excluded).collect());
            return patterns(agent, Some(&WithSpan { value, span, key }), self.decoder).ok();
        };
        if node.value == Value::Null {
            let message = format!("`{}` is empty", key.text);
            let found = self.decoder.error(Code::WrongType, key.span, message);
            let help = "write `tools: []` for no tools, or remove the key for all tools";
            self.decoder.push(found.help(help));
            return None;
        }
        let read = |decoder: &mut Decoder<'_>| PatternsEntry::from_node(node, decoder);
        let mut value = self.decoder.about(format!("`{}`", key.text), read)?;
        value.0.extend(excluded);
        let written = WithSpan { value, span: node.span, key: key.span };
        patterns(agent, Some(&written), self.decoder).ok()
    }
}
