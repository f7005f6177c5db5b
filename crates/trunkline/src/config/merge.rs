//! Merges layers into one configuration and checks references between entries (CFG-4).
//!
//! A higher entry replaces a lower one entirely; an entry with only a toggle changes only that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::diagnostic::{Code, Diagnostic, Severity};
use super::identity::ConfigIdentity;
use super::model::{
    Agent, Bundle, Config, ConsentHold, Origin, Provenance, Server, ServerSettings, Trust,
};
use super::redact::quoted;
use super::source::Location;
use super::suggest::Suggestions;
use super::validate::{
    BundleDraft, Layer, LayerServer, ServerDraft, UnreadableSetting, WholeBundle, WholeServer,
};
use crate::name::{BundleName, NameOptions, Namespaces, ServerName};

/// Maximum number of servers that one message names: about a line of text.
const MAX_NAMED_SERVERS: usize = 8;

/// A merged configuration with its diagnostics.
pub(crate) struct MergeResult {
    pub(crate) config: Config,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Merges layers, the lowest first.
pub(crate) fn merge(layers: Vec<Layer>, suggestions: &mut Suggestions) -> MergeResult {
    let mut merger = Merger::default();
    for layer in layers {
        merger.add(layer);
    }
    merger.finish(suggestions)
}

#[derive(Default)]
struct Merger {
    config: Config,
    slots: BTreeMap<ServerName, ServerSlot>,
    bundles: BTreeMap<BundleName, BundleDraft>,
    access_place: Option<Location>,
    /// Unreadable settings for all servers that no higher layer replaces.
    unreadable_settings: Vec<UnreadableSetting>,
    diagnostics: Vec<Diagnostic>,
}

/// The merged state of one server so far.
struct ServerSlot {
    /// `None` if the effective entry has errors.
    server: Option<Box<WholeServer>>,
    provenance: Provenance,
    /// The reason why it may not be started.
    hold: Option<Arc<ConsentHold>>,
}

impl Merger {
    fn add(&mut self, layer: Layer) {
        self.disable_below(&layer);
        for server in layer.servers {
            self.add_server(server, &layer.origin, layer.hold.as_ref());
        }
        if layer.hold.is_some() {
            // Its rules and settings could widen the permissions of other layers.
            return;
        }
        self.bundles.extend(layer.bundles);
        if let Some(agents) = layer.agents {
            if !agents.files.is_empty() {
                self.config.agents.files = agents.files;
                self.config.agents.folder = layer.origin.workspace().to_owned();
            }
            self.config.agents.named.extend(agents.named);
        }
        self.access_place = layer.access_place.or(self.access_place.take());
        let is_replaced = |it: &UnreadableSetting| {
            it.setting.is_some_and(|setting| layer.behaviour.sets(setting))
        };
        self.unreadable_settings.retain(|it| !is_replaced(it));
        self.unreadable_settings.extend(layer.unreadable_settings);
        layer.secrets.apply(&mut self.config.secrets);
        layer.audit.apply(&mut self.config.audit);
        layer.naming.apply(&mut self.config.naming);
        layer.surface.apply(&mut self.config.surface);
        layer.behaviour.apply(&mut self.config.defaults);
        let place = &mut self.config.max_result_place;
        *place = layer.max_result_place.or(place.take());
        self.config.unknown.extend(layer.unknown);
    }

    /// Disables entries of lower layers if this layer cannot be read: it may contain restrictions.
    fn disable_below(&mut self, layer: &Layer) {
        let parts = layer.unreadable;
        self.config.agents.has_unreadable_naming |= parts.naming;
        let mut disabled = Vec::new();
        if parts.servers && self.slots.values().any(|slot| slot.server.is_some()) {
            self.slots.values_mut().for_each(|slot| slot.server = None);
            disabled.push("servers");
        }
        if parts.bundles && !self.bundles.is_empty() {
            self.bundles.values_mut().for_each(|bundle| *bundle = BundleDraft::Broken);
            disabled.push("bundles");
        }
        let agents = &mut self.config.agents;
        if parts.agents && !(agents.named.is_empty() && agents.files.is_empty()) {
            agents.files.clear();
            for agent in agents.named.values_mut() {
                *agent = Agent::disabled(agent.location.clone());
            }
            disabled.push("agents");
        }
        if !disabled.is_empty() {
            let what = disabled.join(" and ");
            let message = format!("the {what} below {} are disabled", layer.origin);
            let help = "correct its errors: what it switches off or hides cannot be read";
            let found = Diagnostic::new(Severity::Warning, Code::Disabled, message);
            self.diagnostics.push(found.help(help));
        }
    }

    fn add_server(&mut self, added: LayerServer, origin: &Origin, hold: Option<&Arc<ConsentHold>>) {
        let LayerServer { name, location, draft } = added;
        let server = match draft {
            ServerDraft::Whole(server) => Some(server),
            ServerDraft::Broken => None,
            ServerDraft::Switch(enabled) => {
                let Some(slot) = self.slots.get_mut(&name) else {
                    let message = format!("there is no server `{name}` to switch on or off");
                    let found = Diagnostic::new(Severity::Warning, Code::NothingToSwitch, message)
                        .help("add `command` or `url`, or remove the entry");
                    self.diagnostics.push(found.at_location(location).of_server(&name));
                    return;
                };
                if let Some(server) = &mut slot.server {
                    server.enabled = enabled;
                    server.places.enabled = Some(location.clone());
                }
                slot.provenance.switched_by = Some((origin.clone(), location));
                return;
            }
        };
        let provenance = Provenance { origin: origin.clone(), location, switched_by: None };
        let slot = ServerSlot { server, provenance: provenance.clone(), hold: hold.cloned() };
        if let Some(lower) = self.slots.insert(name.clone(), slot) {
            let message = format!("server `{name}` is replaced by {}", provenance.origin);
            let found = Diagnostic::new(Severity::Warning, Code::ShadowedServer, message)
                .at_location(lower.provenance.location)
                .label("has no effect")
                .related(provenance.location, "this one counts");
            self.diagnostics.push(found.of_server(&name));
        }
    }

    fn finish(mut self, suggestions: &mut Suggestions) -> MergeResult {
        let whole = self.bundles.values().filter_map(|bundle| match bundle {
            BundleDraft::Whole(bundle) => Some(bundle.server.value.clone()),
            BundleDraft::Broken => None,
        });
        let bundled: BTreeSet<Box<str>> = whole.collect();
        if self.config.agents.has_unreadable_naming {
            self.config.agents.named.values_mut().for_each(Agent::without_known_names);
        }
        self.disable_without_settings();
        self.finish_bundles(suggestions);
        self.invisible_servers(&bundled);
        for (name, slot) in self.slots {
            match slot.server {
                Some(mut server) => {
                    let access = server.places.access.take();
                    server.places.access = access.or_else(|| self.access_place.clone());
                    let mut server =
                        finished(&name, *server, slot.provenance, &self.config.defaults);
                    // Disabled, so that code that checks only `enabled` does not start it.
                    server.hold = slot.hold.filter(|_| server.enabled);
                    server.enabled &= server.hold.is_none();
                    self.config.servers.insert(name, server);
                }
                None => self.config.broken.push(name),
            }
        }
        self.diagnostics.extend(shared_prefixes(&self.config));
        MergeResult { config: self.config, diagnostics: self.diagnostics }
    }

    /// Disables the servers that would use an unreadable setting.
    fn disable_without_settings(&mut self) {
        for unreadable in std::mem::take(&mut self.unreadable_settings) {
            let UnreadableSetting { key, setting, location } = unreadable;
            let uses = |server: &WholeServer| {
                setting.is_none_or(|setting| !server.behaviour.sets(setting))
            };
            let mut disabled = Vec::new();
            for (name, slot) in &mut self.slots {
                if slot.server.as_ref().is_some_and(|server| uses(server)) {
                    slot.server = None;
                    disabled.push(format!("`{name}`"));
                }
            }
            if disabled.is_empty() {
                continue;
            }
            self.config.unreadable_settings.push(key.clone());
            let more = disabled.len().saturating_sub(MAX_NAMED_SERVERS);
            disabled.truncate(MAX_NAMED_SERVERS);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            let (key, disabled) = (quoted(&key), disabled.join(", "));
            let message = format!("{key} cannot be used, so these are disabled: {disabled}{more}");
            let found = Diagnostic::new(Severity::Warning, Code::Disabled, message);
            let help = "correct or remove it: without it they could show or do more than was meant";
            self.diagnostics.push(found.at_location(location).help(help));
        }
    }

    fn finish_bundles(&mut self, suggestions: &mut Suggestions) {
        for (name, bundle) in std::mem::take(&mut self.bundles) {
            let BundleDraft::Whole(bundle) = bundle else {
                self.config.disabled_bundles.push(name);
                continue;
            };
            let Some((server, slot)) = self.slots.get_key_value(&*bundle.server.value) else {
                self.unknown_server(&name, &bundle, suggestions);
                self.config.disabled_bundles.push(name);
                continue;
            };
            // A bundle is disabled with its server, whose errors are reported already.
            let Some(whole) = &slot.server else {
                self.config.disabled_bundles.push(name);
                continue;
            };
            let untrusted = whole.trust == Trust::Untrusted;
            if untrusted && bundle.tools.allow.is_none() {
                let message = format!("bundle `{name}` is of an untrusted server and allows all");
                let found = error(Code::UntrustedWithoutAllowList, message)
                    .at_location(bundle.location)
                    .related(slot.provenance.location.clone(), "the untrusted server")
                    .help("name the tools that may be seen under `allowTools`; `*` is not enough");
                self.diagnostics.push(found);
                self.config.disabled_bundles.push(name);
                continue;
            }
            let bundle = Bundle {
                server: server.clone(),
                mode: bundle.mode,
                item_tools: bundle.item_tools,
                tools: bundle.tools,
                places: bundle.places,
                location: bundle.location,
            };
            self.config.bundles.insert(name, bundle);
        }
    }

    fn unknown_server(
        &mut self,
        name: &BundleName,
        bundle: &WholeBundle,
        suggestions: &mut Suggestions,
    ) {
        let server = &bundle.server.value;
        let near = suggestions.nearest(server, self.slots.keys().map(ServerName::as_str));
        let help = near.map(|near| format!("did you mean `{near}`?"));
        let server = quoted(server);
        let message = format!("bundle `{name}` is of a server {server} that does not exist");
        let found = error(Code::UnknownServer, message);
        self.diagnostics.push(found.at_location(bundle.server_location.clone()).maybe_help(help));
    }

    /// Warns about untrusted servers without a visible tool.
    fn invisible_servers(&mut self, bundled: &BTreeSet<Box<str>>) {
        for (name, slot) in &self.slots {
            let Some(server) = &slot.server else { continue };
            let listed = server.tools.allow.is_some() || bundled.contains(name.as_str());
            if server.trust == Trust::Trusted || !server.enabled || listed {
                continue;
            }
            let message = format!("no tool of the untrusted server `{name}` can be seen");
            let code = Code::UntrustedWithoutAllowList;
            let found = Diagnostic::new(Severity::Warning, code, message)
                .at_location(slot.provenance.location.clone())
                .help("name the tools that may be seen under `allowTools`; `*` is not enough");
            self.diagnostics.push(found.of_server(name));
        }
    }
}

/// Warns about servers with the same prefix: items with the same name are renamed (TOOL-2).
fn shared_prefixes(config: &Config) -> Vec<Diagnostic> {
    let separator = config.naming.separator.clone();
    let options = NameOptions { separator, ..NameOptions::default() };
    let servers = config.servers.values().map(|server| (&server.name, server.prefix.as_deref()));
    let spaces = Namespaces::new(options, servers);
    let mut first_with: BTreeMap<&str, &Server> = BTreeMap::new();
    let mut found = Vec::new();
    for server in config.servers.values() {
        let prefix = spaces.prefix(&server.name).unwrap_or_default();
        let first = *first_with.entry(prefix).or_insert(server);
        if first.name == server.name {
            continue;
        }
        // An empty prefix for several servers is a deliberate choice.
        let severity = if prefix.is_empty() { Severity::Note } else { Severity::Warning };
        let message = format!(
            "servers `{}` and `{}` have the same prefix {}",
            first.name,
            server.name,
            quoted_prefix(prefix)
        );
        let diagnostic = Diagnostic::new(severity, Code::SharedPrefix, message)
            .at_location(server.provenance.location.clone())
            .related(first.provenance.location.clone(), "the other one")
            .help("what both have under one name gets a digest in it; `trunkline tools --all` lists them");
        found.push(diagnostic.of_server(&server.name));
    }
    found
}

fn quoted_prefix(prefix: &str) -> String {
    if prefix.is_empty() { "`\"\"`".to_owned() } else { quoted(prefix) }
}

fn error(code: Code, message: String) -> Diagnostic {
    Diagnostic::new(Severity::Error, code, message)
}

/// Fills in defaults for settings that a server does not have.
fn finished(
    name: &ServerName,
    server: WholeServer,
    provenance: Provenance,
    defaults: &ServerSettings,
) -> Server {
    let mut behaviour = defaults.clone();
    server.behaviour.apply(&mut behaviour);
    Server {
        name: name.clone(),
        enabled: server.enabled,
        transport: server.transport,
        trust: server.trust,
        auth_provider: server.auth_provider,
        prefix: server.prefix,
        tools: server.tools,
        behaviour,
        places: server.places,
        provenance,
        hold: None,
        unknown: server.unknown,
        inputs: server.inputs,
        identity: ConfigIdentity::default(),
    }
}
