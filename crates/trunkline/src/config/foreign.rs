//! Reads a configuration text of any supported host and format into one tree with the keys of `raw`.
//!
//! Files in TOML and YAML, and those of mcporter, have keys that no other file has. They are translated here, with
//! their spans, so that every later stage handles one set of keys. A value that cannot be translated is
//! passed on unchanged, and reported where it is decoded.

mod nodes;
mod codex;
mod goose;
mod librechat;
mod continue_dev;
mod mcporter;
mod section;

use std::sync::Arc;

use super::diagnostic::{Code, Diagnostic, Severity};
use super::dialect::Dialect;
use super::format::TextFormat;
use super::jsonc::{self, Document, Node, ObjectMember, Value};
use super::redact::{self, quoted};
use super::source::{Source, Span};
use super::yaml::YamlStyle;
use super::{toml, yaml};
use nodes::{has_entries_with, member_of};
pub(crate) use nodes::{holds_servers, json_text};
pub(crate) use section::SourcePart;

/// The key of servers in every translated tree.
const SERVERS: &str = "mcpServers";

/// The keys by which an entry is recognized as a server, of all hosts in these formats.
const TRANSPORT_KEYS: &[&str] = &["command", "url", "cmd", "uri"];

/// A configuration text as a tree, whatever its host and format.
pub(crate) struct HostDocument {
    /// `None` if the text is empty or cannot be parsed.
    pub(crate) root: Option<Node>,
    /// Errors of the text.
    pub(crate) mistakes: Vec<Diagnostic>,
    /// Whether the tree is complete.
    pub(crate) is_whole: bool,
    /// Parts that have no equivalent here.
    pub(crate) notes: Vec<Diagnostic>,
    /// The dialect of the servers under `mcpServers`.
    pub(crate) dialect: Dialect,
}

impl HostDocument {
    fn of_json(document: Document) -> Self {
        let Document { root, mistakes, is_whole } = document;
        Self { root, mistakes, is_whole, notes: Vec::new(), dialect: Dialect::McpServers }
    }

    fn of_tree(root: Node) -> Self {
        Self::of_json(Document { root: Some(root), mistakes: Vec::new(), is_whole: true })
    }

    fn unreadable(mistakes: Vec<Diagnostic>) -> Self {
        Self::of_json(Document { root: None, mistakes, is_whole: false })
    }
}

/// Reads a text, or one part of it.
pub(crate) fn read(source: &Arc<Source>, part: SourcePart<'_>) -> HostDocument {
    let document = parse(source);
    match part {
        SourcePart::Whole => translated(source, document),
        SourcePart::Section(path) => section::read(source, document, path),
    }
}

/// The keys of the object under a key at the top of a text; none if there is no such object.
pub(crate) fn section_names(source: &Arc<Source>, key: &str) -> Vec<String> {
    let root = parse(source).root;
    match root.as_ref().and_then(|root| root.get(key)).map(|node| &node.value) {
        Some(Value::Object(members)) => {
            members.iter().map(|member| member.key.text.to_string()).collect()
        }
        _ => Vec::new(),
    }
}

/// Parses a text of any format, without translating its keys.
fn parse(source: &Arc<Source>) -> HostDocument {
    let mistake = |message: String, span: Span| {
        Diagnostic::new(Severity::Error, Code::Syntax, message).at(source, span)
    };
    let format = TextFormat::of(source);
    if format != TextFormat::Json {
        // Set before a message can quote the text: the default rules are those of JSON.
        source.sensitive(redact::sensitive_lines);
    }
    match format {
        TextFormat::Json => HostDocument::of_json(jsonc::read(source)),
        TextFormat::Toml => match toml::read(source.text()) {
            Ok(root) => HostDocument::of_tree(root),
            Err(found) => {
                let found = found.into_iter();
                let mistakes =
                    found.map(|it| mistake(format!("this is not TOML: {}", it.message), it.span));
                HostDocument::unreadable(mistakes.collect())
            }
        },
        TextFormat::Yaml => match yaml::read(source.text(), 0, YamlStyle::Plain) {
            Ok(root) => HostDocument::of_tree(root),
            Err(it) => {
                let found = mistake(format!("this is not YAML: {}", it.message), it.span);
                HostDocument::unreadable(vec![found])
            }
        },
    }
}

/// Translates the tree of a host with keys of its own.
fn translated(source: &Arc<Source>, mut document: HostDocument) -> HostDocument {
    let format = TextFormat::of(source);
    let Some(root) = document.root.take() else { return document };
    let is_whole = document.is_whole;
    let mut translator = Translator { source, is_whole, notes: Vec::new(), mistakes: Vec::new() };
    let (root, dialect) = match format {
        TextFormat::Json => translator.json(root),
        TextFormat::Toml => translator.toml(root),
        TextFormat::Yaml => translator.yaml(root),
    };
    let Translator { notes, mistakes, is_whole, .. } = translator;
    document.mistakes.extend(mistakes);
    HostDocument { root: Some(root), notes, dialect, is_whole, ..document }
}

/// Translates one tree, and collects diagnostics.
struct Translator<'s> {
    source: &'s Arc<Source>,
    is_whole: bool,
    notes: Vec<Diagnostic>,
    mistakes: Vec<Diagnostic>,
}

impl Translator<'_> {
    /// A file in JSON. Only that of mcporter has values to translate.
    fn json(&mut self, root: Node) -> (Node, Dialect) {
        match Dialect::of_json_path(self.source.name()) {
            Dialect::Mcporter => (self.mcporter(root), Dialect::Mcporter),
            other => (root, other),
        }
    }

    /// A file of Codex, or a configuration of Trunkline in TOML.
    fn toml(&mut self, root: Node) -> (Node, Dialect) {
        if let Some(servers) = member_of(&root, "mcp_servers") {
            let entries = servers.value.clone();
            let entries = self.entries(entries, Self::codex_entry);
            return (only_servers(&root, servers, entries), Dialect::Codex);
        }
        if has_servers(&root) {
            return (root, Dialect::McpServers);
        }
        (self.no_servers(&root, "mcp_servers"), Dialect::Codex)
    }

    /// A file of goose, Continue or LibreChat, or a configuration of Trunkline in YAML.
    fn yaml(&mut self, root: Node) -> (Node, Dialect) {
        if let Some(servers) = member_of(&root, SERVERS) {
            if let Value::Array(items) = &servers.value.value {
                self.check_single(&root, servers);
                let entries = self.continue_entries(items, servers.value.span);
                return (only_servers(&root, servers, entries), Dialect::Continue);
            }
            return (self.librechat(root), Dialect::LibreChat);
        }
        if let Some(extensions) = member_of(&root, "extensions") {
            self.check_single(&root, extensions);
            let entries = self.goose_entries(extensions.value.clone());
            return (only_servers(&root, extensions, entries), Dialect::Goose);
        }
        if has_servers(&root) || !matches!(root.value, Value::Object(_)) {
            return (root, Dialect::McpServers);
        }
        (self.no_servers(&root, SERVERS), Dialect::McpServers)
    }

    /// Reports a key for servers that is written twice: only the first is translated.
    fn check_single(&mut self, root: &Node, first: &ObjectMember) {
        let Value::Object(members) = &root.value else { return };
        let mut same = members.iter().filter(|it| it.key.text == first.key.text);
        if let Some(again) = same.nth(1) {
            self.is_whole = false;
            let message = format!("{} is written twice", quoted(&again.key.text));
            self.mistake(
                Code::DuplicateKey,
                again.key.span,
                message,
                "write all servers under one key",
            );
        }
    }

    /// Translates each entry of an object with servers by name.
    fn entries(
        &mut self,
        servers: Node,
        entry: fn(&mut Self, Vec<ObjectMember>) -> Vec<ObjectMember>,
    ) -> Node {
        let Value::Object(members) = servers.value else { return servers };
        let translate = |ObjectMember { key, value }| {
            let span = value.span;
            let value = match value.value {
                Value::Object(members) => Value::Object(entry(self, members)),
                other => other,
            };
            ObjectMember { key, value: Node { span, value } }
        };
        let members = members.into_iter().map(translate).collect();
        Node { span: servers.span, value: Value::Object(members) }
    }

    /// Reports a file of another host that has no servers, and reads nothing else in it.
    fn no_servers(&mut self, root: &Node, key: &str) -> Node {
        let nothing = Node { span: root.span, value: Value::Object(Vec::new()) };
        let Value::Object(members) = &root.value else { return nothing };
        if let Some(misspelt) =
            members.iter().find(|it| has_entries_with(&it.value, TRANSPORT_KEYS))
        {
            let message = format!("{} is not a known key", quoted(&misspelt.key.text));
            let help = format!("did you mean `{key}`?");
            self.mistake(Code::NoServers, misspelt.key.span, message, &help);
            return nothing;
        }
        let message = format!("there are no servers here: `{key}` is missing");
        self.note(Severity::Hint, Code::NoServers, Span::new(0, 0), message);
        nothing
    }

    fn note(&mut self, severity: Severity, code: Code, span: Span, message: impl Into<String>) {
        self.notes.push(Diagnostic::new(severity, code, message).at(self.source, span));
    }

    fn mistake(&mut self, code: Code, span: Span, message: impl Into<String>, help: &str) {
        let found = Diagnostic::new(Severity::Error, code, message).at(self.source, span);
        self.mistakes.push(found.help(help));
    }
}

/// A tree with servers alone: the other keys are settings of their host.
fn only_servers(root: &Node, member: &ObjectMember, entries: Node) -> Node {
    let key = jsonc::ObjectKey { text: SERVERS.into(), span: member.key.span };
    let servers = ObjectMember { key, value: entries };
    Node { span: root.span, value: Value::Object(vec![servers]) }
}

/// Whether a tree has one of the keys for servers.
fn has_servers(root: &Node) -> bool {
    section::CONTAINERS.iter().any(|key| root.get(key).is_some())
}
