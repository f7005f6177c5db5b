//! Validates one layer: converts all dialects to one form and reports mistakes, so that layers can
//! be merged.

use std::collections::HashMap;
use std::sync::Arc;

use super::decode::{Decoder, FromNode, RawObject, WithSpan};
use super::diagnostic::{Code, Diagnostic};
use super::dialect::Dialect;
use super::foreign::{self, HostDocument, SourcePart, holds_servers, json_text};
use super::format::TextFormat;
use super::jsonc::{Node, ObjectKey, ObjectMember, Value};
use super::limits::is_comment;
use super::model::{Access, Agents, ConsentHold, Inputs, Origin, UnknownKey};
use super::raw::{FileEntry, InputEntry, NamedServer, ServerMap};
use super::redact::quoted;
use super::secret::Secret;
use super::source::{Location, Source, Span};
use super::suggest::Suggestions;
use crate::name::{BundleName, ServerName};

mod settings;
mod transport;
mod tool_lists;
mod server;
mod patterns;
mod containers;
mod choices;
mod gemini;
mod global;
mod audit;
mod secrets;

pub(crate) use audit::AuditLayer;
pub(crate) use choices::{BundleDraft, WholeBundle};
use containers::{ContainerKind, Containers};
pub(crate) use global::UnreadableSetting;
pub(crate) use patterns::patterns;
pub(crate) use secrets::SecretsLayer;
use server::ServerReader;
pub(crate) use server::{ServerDraft, WholeServer};
pub(crate) use settings::{NamingLayer, ServerSettingsLayer, SurfaceLayer};
use tool_lists::{list_places, tool_lists};
pub(crate) use transport::{is_command_line, usable_url};

/// One layer, validated as far as possible without the others.
pub(crate) struct Layer {
    pub(crate) origin: Origin,
    /// The reason why its servers are not started, if there is one.
    pub(crate) hold: Option<Arc<ConsentHold>>,
    pub(crate) servers: Vec<LayerServer>,
    pub(crate) bundles: Vec<(BundleName, BundleDraft)>,
    pub(crate) agents: Option<Agents>,
    pub(crate) unreadable: UnreadableParts,
    pub(crate) secrets: SecretsLayer,
    pub(crate) audit: AuditLayer,
    pub(crate) naming: NamingLayer,
    pub(crate) surface: SurfaceLayer,
    pub(crate) behaviour: ServerSettingsLayer,
    /// Settings for all servers that cannot be decoded.
    pub(crate) unreadable_settings: Vec<UnreadableSetting>,
    /// The location of the access rule for all servers.
    pub(crate) access_place: Option<Location>,
    /// The location of `maxResultBytes` for all servers.
    pub(crate) max_result_place: Option<Location>,
    pub(crate) unknown: Vec<UnknownKey>,
}

impl Layer {
    /// A layer that cannot be parsed at all.
    pub(crate) fn unreadable(origin: Origin) -> Self {
        let mut behaviour = ServerSettingsLayer::default();
        behaviour.limit();
        Self {
            secrets: SecretsLayer::unreadable(&origin),
            audit: AuditLayer::unreadable(&origin),
            origin,
            servers: Vec::new(),
            bundles: Vec::new(),
            agents: None,
            unreadable: UnreadableParts::ALL,
            naming: NamingLayer::default(),
            surface: SurfaceLayer::default(),
            behaviour,
            unreadable_settings: Vec::new(),
            access_place: None,
            max_result_place: None,
            unknown: Vec::new(),
            hold: None,
        }
    }
}

/// The parts of a layer that exist and cannot be decoded. They may restrict lower layers, so
/// nothing below them is used.
#[derive(Clone, Copy, Default)]
pub(crate) struct UnreadableParts {
    pub(crate) servers: bool,
    pub(crate) bundles: bool,
    pub(crate) agents: bool,
    /// The naming: with another one, patterns of agents may match other names.
    pub(crate) naming: bool,
}

impl UnreadableParts {
    /// All parts, for a layer that cannot be parsed at all.
    pub(crate) const ALL: Self = Self { servers: true, bundles: true, agents: true, naming: true };
}

/// A server of one layer.
pub(crate) struct LayerServer {
    pub(crate) name: ServerName,
    pub(crate) location: Location,
    pub(crate) draft: ServerDraft,
}

/// Decodes a source, or a part of it, into a layer, and reports all problems in it.
pub(crate) fn read_layer(
    source: &Arc<Source>,
    part: SourcePart<'_>,
    origin: Origin,
    suggestions: &mut Suggestions,
) -> (Layer, Vec<Diagnostic>) {
    let HostDocument { root, mistakes, is_whole, notes, dialect } = foreign::read(source, part);
    let mut all = Decoder::new(source, suggestions);
    let decoder = &mut all;
    let mut reader = LayerReader { decoder, source, origin, mistakes, is_whole, dialect };
    let layer = reader.layer(root.as_ref());
    let mistakes = reader.mistakes;
    let mut diagnostics = all.into_diagnostics();
    diagnostics.extend(mistakes.into_iter().chain(notes));
    diagnostics.sort_by_key(|found| found.location.as_ref().map(|place| place.span().start()));
    (layer, diagnostics)
}

struct LayerReader<'r, 'd> {
    decoder: &'r mut Decoder<'d>,
    source: &'r Arc<Source>,
    origin: Origin,
    mistakes: Vec<Diagnostic>,
    /// Whether all of the source could be parsed.
    is_whole: bool,
    /// The dialect of the servers under `mcpServers`.
    dialect: Dialect,
}

impl LayerReader<'_, '_> {
    fn layer(&mut self, root: Option<&Node>) -> Layer {
        let file = root.and_then(|root| self.file(root));
        self.is_whole &= file.is_some();
        let file = file.unwrap_or_default();
        let containers = Containers::of(root, &file);
        self.unknown_keys(&file, &containers);
        let inputs = Arc::new(inputs(&file));
        let mut behaviour = ServerSettingsLayer::of_file(&file);
        behaviour.apply_host_wide(&file, self.decoder);
        let naming = NamingLayer::of_file(&file, self.decoder);
        let access_place = self.access_place(root, &file, &mut behaviour);
        let unreadable_settings = self.unreadable_settings(root, &file);
        let max_result = file.max_result.as_ref();
        let max_result_place = max_result.map(|written| self.decoder.location(written.span));
        Layer {
            unreadable_settings,
            servers: self.servers(&file, &inputs, &containers),
            bundles: self.bundles(root, &file, &containers),
            agents: self.agents(root, &file, &containers),
            unreadable: self.unreadable_parts(root, &containers),
            secrets: self.secrets(root, &file),
            audit: self.audit(root, &file),
            naming,
            surface: SurfaceLayer::of_file(&file),
            behaviour,
            access_place,
            max_result_place,
            unknown: self.kept(&file),
            origin: self.origin.clone(),
            hold: None,
        }
    }

    /// The location of the access rule for all servers. One that cannot be decoded, or that may be
    /// missing from a source with syntax errors, is replaced by the strictest.
    fn access_place(
        &mut self,
        root: Option<&Node>,
        file: &FileEntry,
        behaviour: &mut ServerSettingsLayer,
    ) -> Option<Location> {
        let written = file.access.as_ref().map(|it| self.decoder.location(it.key));
        let unreadable = members(root, "access").filter(|_| written.is_none());
        let again = members(root, "access").skip(1);
        let is_slip = |it: &&ObjectMember| FileEntry::near_rule(&it.key.text) == Some("access");
        let slips = file.unknown.iter().filter(is_slip);
        let mut mistaken = unreadable.chain(again).chain(slips);
        match mistaken.next() {
            Some(member) => {
                behaviour.limit_access(Access::ReadOnlyStrict);
                Some(self.decoder.location(member.key.span))
            }
            None if !self.is_whole => {
                behaviour.limit();
                written
            }
            None => written,
        }
    }

    /// The parts that exist and cannot be decoded.
    fn unreadable_parts(
        &self,
        root: Option<&Node>,
        containers: &Containers<'_>,
    ) -> UnreadableParts {
        if !self.is_whole {
            return UnreadableParts::ALL;
        }
        let errors = self.decoder.error_places();
        let is_unusable = |key: &str, is_part: fn(&Node) -> bool| {
            members(root, key).any(|it| !is_part(&it.value) && errors.any_within(it))
        };
        let object = |node: &Node| matches!(node.value, Value::Object(_));
        let holds_none = |kind: ContainerKind| {
            containers.is_ambiguous(kind) || kind.keys().iter().any(|key| is_unusable(key, object))
        };
        let naming = ["naming", "separator"];
        UnreadableParts {
            servers: holds_none(ContainerKind::Servers),
            bundles: holds_none(ContainerKind::Bundles),
            agents: holds_none(ContainerKind::Agents),
            naming: naming
                .into_iter()
                .any(|key| is_unusable(key, |_| false) || members(root, key).count() > 1),
        }
    }

    /// All unknown members outside of servers.
    fn kept(&mut self, file: &FileEntry) -> Vec<UnknownKey> {
        let mut all = kept(self.source, &file.unknown);
        all.extend(kept(self.source, &self.decoder.take_unknown()));
        all
    }

    fn file(&mut self, root: &Node) -> Option<FileEntry> {
        if let Value::Object(_) = root.value {
            return FileEntry::from_node(root, self.decoder);
        }
        if root.value != Value::Broken {
            let message = format!("the configuration must be an object, not {}", root.kind());
            let start = Span::new(root.span.start(), root.span.start() + 1);
            let found = self.decoder.error(Code::NotAnObject, start, message);
            let help = "write `{ \"mcpServers\": { \"name\": { \"command\": … } } }`";
            self.decoder.push(found.help(help));
        }
        None
    }

    /// Reports unknown keys at the top: similar ones individually, the rest in one message, because
    /// the settings file of a whole host has many unrelated ones.
    fn unknown_keys(&mut self, file: &FileEntry, containers: &Containers<'_>) {
        let mut others = Vec::new();
        for member @ ObjectMember { key, .. } in &file.unknown {
            if containers.is_misspelt(member) {
                self.misspelt_container(member, roots(file).is_empty());
                continue;
            }
            if global::is_limit(file, member) && !holds_servers(&member.value) {
                self.decoder.unknown_key::<FileEntry>(member);
                continue;
            }
            match self.decoder.closest_match(&key.text, FileEntry::KEYS.iter().copied()) {
                Some(help) => {
                    let message = format!("{} is not a known key", quoted(&key.text));
                    let holds_servers = roots(file).is_empty() && holds_servers(&member.value);
                    if !holds_servers {
                        self.decoder.unknown_key::<FileEntry>(member);
                        continue;
                    }
                    let found = self.decoder.error(Code::NoServers, key.span, message);
                    self.decoder.push(found.label("has no effect").help(help));
                }
                None if is_comment(&key.text) => {}
                None => others.push(member),
            }
        }
        if roots(file).is_empty() && self.servers_elsewhere(&others) {
            return;
        }
        let Some(first) = others.first() else { return };
        let names = others.iter().take(MAX_NAMED).map(|member| quoted(&member.key.text));
        let mut names = names.collect::<Vec<_>>().join(", ");
        if let Some(more) = others.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
            names += &format!(" and {more} more");
        }
        let message = format!("not known at the top: {names}");
        let is_other_host = self.dialect != Dialect::McpServers;
        let whole_settings = file.mcp.is_some() || file.context_servers.is_some() || is_other_host;
        let found = if whole_settings {
            self.decoder.note(Code::UnknownKey, first.key.span, message)
        } else {
            self.decoder.hint(Code::UnknownKey, first.key.span, message)
        };
        self.decoder.push(found.label("has no effect"));
    }

    /// Reports servers in places that are not read.
    fn servers_elsewhere(&mut self, unknown: &[&ObjectMember]) -> bool {
        let Some(misplaced) = unknown.iter().find_map(misplaced) else {
            return false;
        };
        let found = self.decoder.error(Code::NoServers, misplaced.key.span, misplaced.message);
        self.decoder.push(found.label("not used here").help(misplaced.help));
        true
    }

    fn servers(
        &mut self,
        file: &FileEntry,
        inputs: &Arc<Inputs>,
        containers: &Containers<'_>,
    ) -> Vec<LayerServer> {
        let roots = roots(file);
        let doubles = self.duplicate_servers(&roots);
        let mut servers = Vec::new();
        for (dialect, root) in roots {
            let dialect = if dialect == Dialect::McpServers { self.dialect } else { dialect };
            for named in &root.0 {
                match doubles.get(&named.name) {
                    None => servers.push(self.server(dialect, named, inputs)),
                    Some(first) if *first == named.key => {
                        servers.push(self.layer_server(named, ServerDraft::Broken));
                    }
                    Some(_) => {}
                }
            }
        }
        self.gemini_rules(file, containers, &mut servers);
        self.ambiguous_servers(containers, &mut servers);
        servers
    }

    fn layer_server(&self, named: &NamedServer, draft: ServerDraft) -> LayerServer {
        let location = self.decoder.location(named.key);
        LayerServer { name: named.name.clone(), location, draft }
    }

    fn server(
        &mut self,
        dialect: Dialect,
        named: &NamedServer,
        inputs: &Arc<Inputs>,
    ) -> LayerServer {
        let unreadable = self.claim_mistakes(named);
        let draft = match &named.entry {
            Some(entry) if !unreadable => {
                let (draft, clean) = self.decoder.within_server(&named.name, |decoder| {
                    ServerReader { decoder, source: self.source, dialect, inputs, named }
                        .draft(entry)
                });
                draft.filter(|_| clean).unwrap_or(ServerDraft::Broken)
            }
            _ => ServerDraft::Broken,
        };
        let draft = if named.clean { draft } else { ServerDraft::Broken };
        self.layer_server(named, draft)
    }

    /// Assigns the mistakes inside an entry to its server. Returns whether there are any.
    fn claim_mistakes(&mut self, named: &NamedServer) -> bool {
        let mut claimed = false;
        for mistake in &mut self.mistakes {
            let place = mistake.location.as_ref().map(|location| location.span().start());
            if place.is_some_and(|place| named.span.range().contains(&place)) {
                mistake.server = Some(named.name.clone());
                claimed = true;
            }
        }
        claimed
    }

    /// Reports names that occur twice in one file; returns them with their first location.
    fn duplicate_servers(&mut self, roots: &[(Dialect, &ServerMap)]) -> HashMap<ServerName, Span> {
        let mut firsts: HashMap<&ServerName, Span> = HashMap::new();
        let mut doubles = HashMap::new();
        for named in roots.iter().flat_map(|(_, servers)| &servers.0) {
            let first = *firsts.entry(&named.name).or_insert(named.key);
            if first == named.key {
                continue;
            }
            doubles.insert(named.name.clone(), first);
            let message = format!("two servers are called `{}`", named.name);
            let found = self
                .decoder
                .error(Code::DuplicateServer, named.key, message)
                .label("again here")
                .related(self.decoder.location(first), "first here")
                .help("neither is used until one has another name")
                .of_server(&named.name);
            self.decoder.push(found);
        }
        doubles
    }

    fn name<T>(&mut self, name: Result<T, crate::name::InvalidName>, key: Span) -> Option<T> {
        name.map_err(|reason| {
            let found = self.decoder.error(Code::BadName, key, reason.to_string());
            self.decoder.push(found);
        })
        .ok()
    }
}

fn roots(file: &FileEntry) -> Vec<(Dialect, &ServerMap)> {
    let plain = [
        (Dialect::McpServers, file.mcp_servers.as_ref()),
        (Dialect::Servers, file.servers.as_ref()),
        (Dialect::Zed, file.context_servers.as_ref()),
    ];
    let plain = plain.into_iter().filter_map(|(dialect, root)| Some((dialect, &root?.value)));
    let opencode = file.mcp.as_ref().and_then(|mcp| mcp.value.servers.as_ref());
    plain.chain(opencode.map(|servers| (Dialect::Opencode, servers))).collect()
}

/// The members at the top with this key.
fn members<'n>(root: Option<&'n Node>, key: &'n str) -> impl Iterator<Item = &'n ObjectMember> {
    let members = root.map_or(&[][..], |root| match &root.value {
        Value::Object(members) => members,
        _ => &[],
    });
    members.iter().filter(move |member| &*member.key.text == key)
}

/// Maximum number of unknown keys in one message.
const MAX_NAMED: usize = 8;

/// A member at the top that is a server or contains servers.
struct MisplacedServer<'m> {
    key: &'m ObjectKey,
    message: String,
    help: &'static str,
}

/// The problem with a member at the top that is a server or contains servers, and a hint.
fn misplaced<'m>(member: &&'m ObjectMember) -> Option<MisplacedServer<'m>> {
    let key = &member.key;
    let has = |node: &Node, keys: [&str; 2]| keys.iter().any(|key| node.get(key).is_some());
    let name = quoted(&member.key.text);
    if matches!(&*member.key.text, "command" | "url") {
        let help = "put it under a name: `{ \"mcpServers\": { \"name\": { … } } }`";
        let message = "this is a server without a name".to_owned();
        return Some(MisplacedServer { key, message, help });
    }
    if has(&member.value, ["command", "url"]) {
        let help = "put servers under one key: `{ \"mcpServers\": { … } }`";
        let message = format!("{name} looks like a server in the wrong place");
        return Some(MisplacedServer { key, message, help });
    }
    let projects = || {
        let Value::Object(projects) = &member.value.value else { return false };
        projects.iter().any(|project| project.value.get("mcpServers").is_some())
    };
    let vscode = member.value.get("vscode").and_then(|vscode| vscode.get("mcp"));
    if (&*member.key.text == "projects" && projects()) || vscode.is_some() {
        let help = "copy the servers you want to a file of their own, under `mcpServers`";
        let message = format!("the servers inside {name} are not read");
        return Some(MisplacedServer { key, message, help });
    }
    None
}

fn inputs(file: &FileEntry) -> Inputs {
    let nested = file.mcp.as_ref().and_then(|mcp| mcp.value.inputs.as_ref());
    let mut all = declared(file.inputs.as_ref());
    all.extend(declared(nested));
    all
}

fn declared(written: Option<&WithSpan<Vec<WithSpan<InputEntry>>>>) -> Inputs {
    let entries = written.iter().flat_map(|inputs| &inputs.value);
    let input = |entry: &WithSpan<InputEntry>| {
        let default = entry.value.default.as_ref().map(|text| Secret::new(text.value.clone()));
        Some((entry.value.id.as_ref()?.value.clone(), default))
    };
    entries.filter_map(input).collect()
}

/// Members as written, to preserve them.
fn kept(source: &Source, members: &[ObjectMember]) -> Vec<UnknownKey> {
    let is_json = TextFormat::of(source) == TextFormat::Json;
    let kept = |member: &ObjectMember| {
        let json = match is_json {
            true => Secret::new(source.text().get(member.value.span.range())?),
            false => Secret::new(json_text(&member.value)),
        };
        Some(UnknownKey { key: member.key.text.clone(), json })
    };
    members.iter().filter_map(kept).collect()
}
