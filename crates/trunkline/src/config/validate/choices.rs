//! Bundles and agents of one layer. Each is decoded separately; one with an error is disabled,
//! because it might show more without the part that cannot be decoded (BUN-2, TOOL-6).

use std::collections::{HashMap, HashSet};

use super::containers::{ContainerKind, Containers};
use super::{LayerReader, list_places, patterns, tool_lists};
use crate::config::decode::{ErrorPlaces, NamedValues, WithSpan};
use crate::config::diagnostic::Code;
use crate::config::jsonc::{Node, ObjectMember};
use crate::config::model::{Agent, Agents, ItemToolSettings, ListLocations, ToolLists, ToolMode};
use crate::config::raw::{AgentEntry, AgentsEntry, BundleEntry, FileEntry};
use crate::config::source::{Location, Span};
use crate::name::{AgentName, BundleName};

/// A bundle of one layer.
pub(crate) enum BundleDraft {
    /// An entry without errors.
    Whole(Box<WholeBundle>),
    /// An entry with errors. It is not used, and nothing from a lower layer takes its place.
    Broken,
}

/// A bundle whose server is not yet known to exist.
pub(crate) struct WholeBundle {
    pub(crate) server: WithSpan<Box<str>>,
    pub(crate) mode: ToolMode,
    pub(crate) item_tools: ItemToolSettings,
    pub(crate) tools: ToolLists,
    pub(crate) places: ListLocations,
    pub(crate) location: Location,
    pub(crate) server_location: Location,
}

impl LayerReader<'_, '_> {
    pub(super) fn bundles(
        &mut self,
        root: Option<&Node>,
        file: &FileEntry,
        containers: &Containers<'_>,
    ) -> Vec<(BundleName, BundleDraft)> {
        let read = file.bundles.as_ref().map(|bundles| &bundles.value);
        let read = read.map(by_key).unwrap_or_default();
        let mut bundles = Vec::new();
        for (member, is_sound) in self.entries(root, ContainerKind::Bundles, containers) {
            let ObjectMember { key, .. } = member;
            let Some(name) = self.name(BundleName::new(&key.text), key.span) else { continue };
            let entry = read.get(&key.span.start()).filter(|_| is_sound);
            let draft = match entry.and_then(|entry| self.bundle(&name, key.span, entry)) {
                Some(bundle) => BundleDraft::Whole(Box::new(bundle)),
                None => {
                    self.disabled("bundle", name.as_str(), key.span);
                    BundleDraft::Broken
                }
            };
            bundles.push((name, draft));
        }
        bundles
    }

    fn bundle(
        &mut self,
        name: &BundleName,
        key: Span,
        entry: &WithSpan<BundleEntry>,
    ) -> Option<WholeBundle> {
        let Some(server) = &entry.value.server else {
            let message = format!("bundle `{name}` does not say which server it is of");
            let found = self.decoder.error(Code::MissingKey, key, message);
            self.decoder.push(found.help("add `\"serverId\": \"<name of a server>\"`"));
            return None;
        };
        let lists = (entry.value.allow_tools.as_ref(), entry.value.deny_tools.as_ref());
        Some(WholeBundle {
            server_location: self.decoder.location(server.span),
            server: server.clone(),
            mode: entry.value.mode.as_ref().map_or(ToolMode::Direct, |mode| mode.value),
            item_tools: item_tools(&entry.value.resources_as_tools, &entry.value.prompts_as_tools),
            tools: tool_lists(lists.0, lists.1),
            places: list_places(lists.0, lists.1, self.decoder),
            location: self.decoder.location(key),
        })
    }

    pub(super) fn agents(
        &mut self,
        root: Option<&Node>,
        file: &FileEntry,
        containers: &Containers<'_>,
    ) -> Option<Agents> {
        let is_ambiguous = containers.is_ambiguous(ContainerKind::Agents);
        let written = file.agents.as_ref().map(|agents| &agents.value);
        let mut agents = Agents::default();
        let read = match written {
            None if !is_ambiguous => return None,
            Some(AgentsEntry::Files(files)) if !is_ambiguous => {
                agents.files = files.iter().map(|file| file.value.clone()).collect();
                return Some(agents);
            }
            Some(AgentsEntry::Named(read)) => by_key(read),
            None | Some(AgentsEntry::Files(_)) => HashMap::new(),
        };
        for (member, is_sound) in self.entries(root, ContainerKind::Agents, containers) {
            let ObjectMember { key, .. } = member;
            let Some(name) = self.name(AgentName::new(&key.text), key.span) else {
                continue;
            };
            let entry = read.get(&key.span.start()).filter(|_| is_sound);
            let agent = entry.and_then(|entry| self.agent(&name, key.span, entry));
            let agent = agent.unwrap_or_else(|| {
                self.disabled("agent", name.as_str(), key.span);
                Agent::disabled(self.decoder.location(key.span))
            });
            agents.named.insert(name, agent);
        }
        Some(agents)
    }

    fn agent(
        &mut self,
        name: &AgentName,
        key: Span,
        entry: &WithSpan<AgentEntry>,
    ) -> Option<Agent> {
        let tools = patterns(name, entry.value.tools.as_ref(), self.decoder).ok()?;
        let description = entry.value.description.as_ref().map(|text| text.value.clone());
        let location = self.decoder.location(key);
        let access = entry.value.access.as_ref().map(|access| access.value);
        let mode = entry.value.mode.as_ref().map(|mode| mode.value);
        let item_tools = item_tools(&entry.value.resources_as_tools, &entry.value.prompts_as_tools);
        Some(Agent { tools, access, mode, item_tools, description, location, is_disabled: false })
    }

    /// The entries of a kind, each name once, with whether it has no errors. A name that is written
    /// twice, or in an ambiguous container, counts as an error, because the intended entry is
    /// unknown.
    fn entries<'n>(
        &self,
        root: Option<&'n Node>,
        kind: ContainerKind,
        containers: &Containers<'n>,
    ) -> Vec<(&'n ObjectMember, bool)> {
        let errors = self.decoder.error_places();
        let mistakes = ErrorPlaces::of(&self.mistakes);
        let entries = containers.entries(root, kind);
        let (mut seen, mut unclear) = (HashSet::new(), HashSet::new());
        for entry in &entries {
            if !seen.insert(&*entry.key.text) {
                unclear.insert(&*entry.key.text);
            }
        }
        unclear.extend(containers.ambiguous_keys(kind).map(|key| &*key.text));
        let is_sound = |entry: &ObjectMember| {
            let is_clear = !unclear.contains(&*entry.key.text);
            is_clear && !errors.any_within(entry) && !mistakes.any_within(entry)
        };
        let mut firsts = HashSet::new();
        let firsts = entries.into_iter().filter(|entry| firsts.insert(&*entry.key.text));
        firsts.map(|entry| (entry, is_sound(entry))).collect()
    }

    /// Reports that an entry with errors is disabled.
    fn disabled(&mut self, what: &str, name: &str, key: Span) {
        let message = format!("{what} `{name}` is disabled until its errors are corrected");
        let found = self.decoder.warning(Code::Disabled, key, message);
        self.decoder.push(found.label("shows nothing"));
    }
}

fn item_tools(
    resources: &Option<WithSpan<bool>>,
    prompts: &Option<WithSpan<bool>>,
) -> ItemToolSettings {
    let value = |written: &Option<WithSpan<bool>>| written.as_ref().map(|written| written.value);
    ItemToolSettings { resources: value(resources), prompts: value(prompts) }
}

/// The decoded entries, by the position of their key.
fn by_key<T>(NamedValues(entries): &NamedValues<T>) -> HashMap<usize, &WithSpan<T>> {
    entries.iter().map(|(key, entry)| (key.span.start(), entry)).collect()
}
