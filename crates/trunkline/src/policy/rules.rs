//! The rules of a configuration, prepared for evaluation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::HashMap;

use super::lists::{NameList, UnreadableEntry};
use super::project_toggles::ProjectToggles;
use crate::catalog::Entry;
use crate::config::{
    Access, Agent, Bundle, Config, ItemToolSettings, ListLocations, Location, RuleLocations,
    Server, ToolLists, ToolMode, ToolSurface, Trust,
};
use crate::name::{AgentName, BundleName, CharacterPairs, NamePattern, ServerName};

/// All rules of a configuration.
#[derive(Clone, Debug)]
pub struct Rules {
    servers: HashMap<ServerName, ServerRules>,
    bundles: BTreeMap<BundleName, Arc<BundleRules>>,
    disabled_bundles: BTreeSet<BundleName>,
    agents: BTreeMap<AgentName, Arc<AgentRules>>,
    surface: ToolSurface,
    /// The toggles of conversations.
    toggles: Arc<ProjectToggles>,
}

#[derive(Clone, Debug)]
pub(super) struct ServerRules {
    pub(super) enabled: bool,
    /// Whether it is disabled because its configuration file is not trusted yet.
    pub(super) is_held: bool,
    pub(super) trust: Trust,
    pub(super) access: Access,
    pub(super) lists: Lists,
    pub(super) places: RuleLocations,
    pub(super) location: Location,
}

/// The allow and deny lists of a server or a bundle, by upstream names.
#[derive(Clone, Debug)]
pub(super) struct Lists {
    pub(super) allow: Option<NameList>,
    pub(super) deny: NameList,
    pub(super) places: ListLocations,
}

#[derive(Clone, Debug)]
pub(super) struct BundleRules {
    pub(super) name: BundleName,
    pub(super) server: ServerName,
    pub(super) mode: ToolMode,
    pub(super) item_tools: ItemToolSettings,
    pub(super) lists: Lists,
    pub(super) location: Location,
}

/// The patterns of one agent.
#[derive(Clone, Debug)]
pub(super) struct AgentRules {
    pub(super) name: AgentName,
    pub(super) agent: Agent,
    /// The character pairs of each pattern.
    pub(super) pairs: Vec<CharacterPairs>,
    /// Each pattern in lowercase, for matching with spellings of URIs.
    pub(super) small: Vec<NamePattern>,
}

impl Rules {
    /// The rules of a configuration and of all its agents, including those from files.
    pub fn new(config: &Config, agents: BTreeMap<AgentName, Agent>) -> Self {
        let server = |server: &Server| (server.name.clone(), ServerRules::of(server));
        let bundle = |(name, bundle): (&BundleName, &Bundle)| {
            (name.clone(), Arc::new(BundleRules::of(name, bundle)))
        };
        let agent = |(name, agent): (AgentName, Agent)| {
            (name.clone(), Arc::new(AgentRules::of(name, agent)))
        };
        Self {
            servers: config.servers().map(server).collect(),
            bundles: config.bundles().map(bundle).collect(),
            disabled_bundles: config.disabled_bundles().iter().cloned().collect(),
            agents: agents.into_iter().map(agent).collect(),
            surface: config.tool_surface(),
            toggles: Arc::default(),
        }
    }

    /// The same rules with other toggles of conversations.
    #[must_use]
    pub fn with_toggles(self, toggles: Arc<ProjectToggles>) -> Self {
        Self { toggles, ..self }
    }

    /// The toggles of the project and its conversations.
    pub fn toggles(&self) -> &Arc<ProjectToggles> {
        &self.toggles
    }

    pub(super) fn server(&self, name: &ServerName) -> Option<&ServerRules> {
        self.servers.get(name)
    }

    /// Whether a server is trusted. One that is not configured is not.
    pub(crate) fn trust(&self, server: &ServerName) -> Trust {
        self.server(server).map_or(Trust::Untrusted, |rules| rules.trust)
    }

    pub(super) fn bundle(&self, name: &str) -> Option<&Arc<BundleRules>> {
        self.bundles.get(name)
    }

    pub(super) fn agent_rules(&self, name: &str) -> Option<&Arc<AgentRules>> {
        self.agents.get(name)
    }

    /// Whether a bundle has errors, so that it cannot be used.
    pub(super) fn is_disabled_bundle(&self, name: &str) -> bool {
        self.disabled_bundles.contains(name)
    }

    /// An agent and its name, by its name.
    pub fn agent(&self, name: &str) -> Option<(&AgentName, &Agent)> {
        self.agents.get(name).map(|rules| (&rules.name, &rules.agent))
    }

    /// The form in which models receive tools where bundles and agents do not decide.
    pub(crate) fn surface(&self) -> ToolSurface {
        self.surface
    }

    /// Whether any caller may receive tools in another form than directly.
    pub(crate) fn has_meta_tools(&self) -> bool {
        let of_bundles = self.bundles.values().map(|bundle| bundle.mode);
        let of_agents = self.agents.values().filter_map(|rules| rules.agent.mode);
        let mut modes = of_bundles.chain(of_agents).chain([self.surface.mode]);
        modes.any(|mode| mode != ToolMode::Direct)
    }

    /// The names of all bundles.
    pub fn bundle_names(&self) -> impl Iterator<Item = &BundleName> {
        self.bundles.keys()
    }

    /// The names of all agents.
    pub fn agent_names(&self) -> impl Iterator<Item = &AgentName> {
        self.agents.keys()
    }
}

impl ServerRules {
    fn of(server: &Server) -> Self {
        Self {
            enabled: server.enabled,
            is_held: server.hold.is_some(),
            trust: server.trust,
            access: server.behaviour.access,
            lists: Lists::of(&server.tools, &server.places.tools),
            places: server.places.clone(),
            location: server.provenance.location.clone(),
        }
    }
}

impl ServerRules {
    /// Whether the rules hide no item of the server, whatever it lists.
    pub(super) fn hide_nothing(&self) -> bool {
        self.enabled
            && self.trust == Trust::Trusted
            && self.access == Access::ReadWrite
            && self.lists.is_empty()
    }
}

impl BundleRules {
    fn of(name: &BundleName, bundle: &Bundle) -> Self {
        Self {
            name: name.clone(),
            server: bundle.server.clone(),
            mode: bundle.mode,
            item_tools: bundle.item_tools,
            lists: Lists::of(&bundle.tools, &bundle.places),
            location: bundle.location.clone(),
        }
    }
}

impl AgentRules {
    fn of(name: AgentName, agent: Agent) -> Self {
        let patterns = || agent.tools.iter().flatten().map(|it| &it.pattern);
        let pairs = patterns().map(NamePattern::pairs).collect();
        let small = patterns().map(NamePattern::in_small_letters).collect();
        Self { name, agent, pairs, small }
    }
}

impl Lists {
    fn of(lists: &ToolLists, places: &ListLocations) -> Self {
        Self {
            allow: lists
                .allow
                .as_ref()
                .map(|names| NameList::of(names, UnreadableEntry::MatchesNothing)),
            deny: NameList::of(&lists.deny, UnreadableEntry::MatchesAll),
            places: places.clone(),
        }
    }

    /// Whether there are no entries.
    pub(super) fn is_empty(&self) -> bool {
        self.allow.is_none() && self.deny.is_empty()
    }

    /// Whether the allow list names an item.
    pub(super) fn names(&self, own: &str) -> bool {
        self.allow.as_ref().is_some_and(|allow| allow.matches(own))
    }

    /// Whether the deny list matches an entry: by its upstream name, by a template that its URI
    /// matches, or by its exposed name, unless that is the upstream name of another item of the
    /// server.
    pub(super) fn deny(&self, entry: &Entry) -> bool {
        if self.deny.is_empty() {
            return false;
        }
        let is_exposed = |exposed: &str| self.deny.names(exposed);
        self.deny.matches(entry.name())
            || (entry.kind().is_uri() && self.deny.has_template_of(entry.item()))
            || (!entry.is_uri_exposed_by_other() && is_exposed(entry.exposed()))
            || entry.adjustment().is_some_and(|adjusted| is_exposed(&adjusted.plain))
    }
}

/// One entry of an allow or deny list, of a server or of a bundle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListEntry<'r> {
    pub(crate) pattern: &'r NamePattern,
    /// The key of the list.
    pub(crate) key: &'static str,
    pub(crate) server: &'r ServerName,
    pub(crate) bundle: Option<&'r BundleName>,
    pub(crate) location: Option<&'r Location>,
}

impl Rules {
    /// All entries of all lists: those of servers in the order of their names, then those of
    /// bundles.
    pub(crate) fn list_entries(&self) -> Vec<ListEntry<'_>> {
        let with_lists = self.servers.iter().filter(|(_, rules)| !rules.lists.is_empty());
        let mut servers: Vec<_> = with_lists.collect();
        servers.sort_unstable_by_key(|(name, _)| *name);
        let of_servers = servers.into_iter().map(|(name, rules)| (name, None, &rules.lists));
        let bundles = self.bundles.values();
        let of_bundles = bundles.map(|it| (&it.server, Some(&it.name), &it.lists));
        let mut entries = Vec::new();
        for (server, bundle, lists) in of_servers.chain(of_bundles) {
            let allow = lists.allow.as_ref();
            let keys = [
                ("allowTools", allow, lists.places.allow.as_ref()),
                ("denyTools", Some(&lists.deny), lists.places.deny.as_ref()),
            ];
            for (key, list, location) in keys {
                let patterns = list.into_iter().flat_map(NameList::entries);
                let entry = |pattern| ListEntry { pattern, key, server, bundle, location };
                entries.extend(patterns.map(entry));
            }
        }
        entries
    }
}
