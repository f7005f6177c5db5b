//! Callers: an agent, bundles and the toggles of a conversation, all of them optional. A caller may
//! have several limits, each of which must admit an item.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::rules::{AgentRules, BundleRules, Rules};
use super::toggles::{Toggle, Toggles};
use crate::config::{Access, Agent, AgentPattern, ItemToolSettings, Suggestions, ToolMode};
use crate::name::{AgentName, BundleName, NamePattern, ServerName};

/// A caller, by the names of its agent and bundles.
#[derive(Clone, Debug, Default)]
pub struct CallerSpec<'n> {
    /// The name of the agent, if the caller is one.
    pub agent: Option<&'n str>,
    /// The bundles it is limited to; empty for no limit.
    pub bundles: &'n [&'n str],
    /// The conversation it belongs to, whose stored toggles apply (TOOL-9).
    pub conversation: Option<&'n str>,
    /// Toggles of its own, which go over those of its conversation.
    pub switches: Toggles,
    /// Its access, if that is stricter than the configuration.
    pub access: Option<Access>,
    /// Further limits. The agent, the bundles and the access above form one limit; each of these is
    /// another, and an item is visible only if all of them admit it.
    pub within: &'n [Limit<'n>],
    /// How much the caller learns about hidden items.
    pub disclosure: Disclosure,
}

/// The rules as they apply to one caller.
#[derive(Clone, Copy)]
pub(crate) struct CallerRules<'r> {
    pub(crate) rules: &'r Rules,
    pub(crate) caller: &'r Caller,
}

/// How much a caller learns when it requests an item that a rule hides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disclosure {
    /// Nothing: the error is the same as for an item that does not exist.
    #[default]
    Nothing,
    /// The rule that hides the item, for the owner of the configuration.
    Reasons,
}

/// One limit on a caller, by names: that of an endpoint or of a token, for example. Several limits
/// together show the items that each of them shows. A limit without fields has no effect.
///
/// ```
/// use trunkline::config;
/// use trunkline::policy::{Limit, Rules, CallerSpec};
///
/// let text = r#"{ "servers": { "docs": { "command": "x" }, "prod": { "command": "x" } },
///                 "bundles": { "read": { "serverId": "docs" }, "ops": { "serverId": "prod" } } }"#;
/// let config = config::parse("mcp.json", text).config;
/// let rules = Rules::new(&config, config.agents().named.clone());
/// let address = Limit { name: Some("address"), bundles: &["ops"], ..Limit::default() };
/// let token = Limit { name: Some("token"), bundles: &["read"], ..Limit::default() };
///
/// let caller = |within: &[Limit<'_>]| rules.caller(CallerSpec { within, ..CallerSpec::default() }).unwrap();
/// let prod = &config.server("prod").unwrap().name;
/// assert!(caller(&[address.clone()]).may_have(prod, "prod"));
/// assert!(!caller(&[address, token]).may_have(prod, "prod"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Limit<'n> {
    /// The source of the limit, for explanations: `address`, `token`.
    pub name: Option<&'static str>,
    /// The agent whose patterns must include an item.
    pub agent: Option<&'n str>,
    /// The bundles that must contain an item: at least one of them is a bundle of its server, and
    /// none of those may exclude it. Empty for no limit.
    pub bundles: &'n [&'n str],
    /// The access, if it is stricter than the configuration.
    pub access: Option<Access>,
}

/// A caller with its rules resolved. The default has no limits.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The limits that have an effect.
    limits: Vec<CallerLimit>,
    conversation: Option<Box<str>>,
    /// Toggles of its own.
    own_switches: Toggles,
    /// All toggles that apply.
    pub(super) switches: Toggles,
    disclosure: Disclosure,
}

/// Keeps a resolved caller for as long as the rules stay the same. Each caller needs a cache of its own: what one resolved
/// would apply to the other.
#[derive(Debug, Default)]
pub struct CallerCache {
    resolved: Mutex<Option<(Weak<Rules>, Arc<Caller>)>>,
}

impl CallerCache {
    /// The caller under these rules, resolved at most once for them.
    pub(crate) fn get_or_resolve(
        &self,
        rules: &Arc<Rules>,
        resolve: impl FnOnce(&Rules) -> Result<Caller, UnknownCaller>,
    ) -> Result<Arc<Caller>, UnknownCaller> {
        let mut resolved = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, caller)) = &*resolved
            && std::ptr::eq(of.as_ptr(), Arc::as_ptr(rules))
        {
            return Ok(Arc::clone(caller));
        }
        let caller = Arc::new(resolve(rules)?);
        *resolved = Some((Arc::downgrade(rules), Arc::clone(&caller)));
        Ok(caller)
    }
}

/// One limit on a caller, with its rules resolved.
#[derive(Clone, Debug)]
pub(super) struct CallerLimit {
    pub(super) name: Option<&'static str>,
    pub(super) agent: Option<Arc<AgentRules>>,
    pub(super) bundles: Vec<Arc<BundleRules>>,
    pub(super) access: Option<Access>,
}

/// The limit of a caller that has none.
static UNLIMITED: CallerLimit =
    CallerLimit { name: None, agent: None, bundles: Vec::new(), access: None };

/// An agent or a bundle that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCaller {
    /// The missing kind: an agent or a bundle.
    pub what: &'static str,
    /// The requested name.
    pub name: String,
    /// The most similar name, if one is similar.
    pub suggestion: Option<String>,
    /// Whether it is configured, but disabled because its entry has errors.
    pub is_disabled: bool,
}

impl fmt::Display for UnknownCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_disabled {
            let (what, name) = (self.what, &self.name);
            return write!(f, "{what} `{name}` is disabled because its entry has errors");
        }
        write!(f, "there is no {} `{}`", self.what, self.name)?;
        match &self.suggestion {
            Some(near) => write!(f, "; did you mean `{near}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnknownCaller {}

impl Rules {
    /// Resolves the agent and the bundles of a caller.
    pub fn caller(&self, who: CallerSpec<'_>) -> Result<Caller, UnknownCaller> {
        let CallerSpec { agent, bundles, conversation, switches, access, within, disclosure } = who;
        let first = Limit { name: None, agent, bundles, access };
        let limits = self.limits([&first].into_iter().chain(within))?;
        let caller = Caller { limits, disclosure, ..Caller::default() };
        Ok(caller.with_conversation(conversation.map(Into::into)).with_own_toggles(self, switches))
    }

    /// Resolves a caller again under these rules, which may have other agents and bundles.
    pub fn refreshed_caller(&self, caller: &Caller) -> Result<Caller, UnknownCaller> {
        let bundles: Vec<_> = caller.limits.iter().map(CallerLimit::bundle_names).collect();
        let named = caller.limits.iter().zip(&bundles);
        let limits: Vec<_> = named.map(|(limit, bundles)| limit.by_names(bundles)).collect();
        let limits = self.limits(&limits)?;
        let own = caller.own_switches.clone();
        let refreshed = Caller { limits, disclosure: caller.disclosure, ..Caller::default() };
        Ok(refreshed.with_conversation(caller.conversation.clone()).with_own_toggles(self, own))
    }

    /// Resolves the limits that have an effect.
    fn limits<'l>(
        &self,
        limits: impl IntoIterator<Item = &'l Limit<'l>>,
    ) -> Result<Vec<CallerLimit>, UnknownCaller> {
        let set = limits.into_iter().filter(|limit| limit.is_set());
        set.map(|limit| self.limit(limit)).collect()
    }

    fn limit(&self, limit: &Limit<'_>) -> Result<CallerLimit, UnknownCaller> {
        let agent = limit.agent.map(|name| {
            let known = || self.agent_names().map(AgentName::as_str);
            let found = self.agent_rules(name).cloned();
            match found.ok_or_else(|| unknown("agent", name, known()))? {
                found if found.agent.is_disabled => Err(disabled("agent", name)),
                found => Ok(found),
            }
        });
        let bundle = |name: &&str| {
            let known = || self.bundle_names().map(BundleName::as_str);
            self.bundle(name).cloned().ok_or_else(|| match self.is_disabled_bundle(name) {
                true => disabled("bundle", name),
                false => unknown("bundle", name, known()),
            })
        };
        let agent = agent.transpose()?;
        let bundles = limit.bundles.iter().map(bundle).collect::<Result<_, _>>()?;
        Ok(CallerLimit { name: limit.name, agent, bundles, access: limit.access })
    }
}

impl Limit<'_> {
    /// Whether the limit has an effect.
    fn is_set(&self) -> bool {
        self.agent.is_some() || !self.bundles.is_empty() || self.access.is_some()
    }
}

impl CallerLimit {
    fn by_names<'l>(&'l self, bundles: &'l [&'l str]) -> Limit<'l> {
        let agent = self.agent.as_ref().map(|it| it.name.as_str());
        Limit { name: self.name, agent, bundles, access: self.access }
    }

    fn bundle_names(&self) -> Vec<&str> {
        self.bundles.iter().map(|bundle| bundle.name.as_str()).collect()
    }

    /// Whether both refer to the same agent and bundles of the same rules.
    fn is_same(&self, other: &Self) -> bool {
        let is_same_agent = match (&self.agent, &other.agent) {
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            (None, None) => true,
            _ => false,
        };
        let (one, two) = (&self.bundles, &other.bundles);
        is_same_agent
            && self.access == other.access
            && one.len() == two.len()
            && one.iter().zip(two).all(|(one, two)| Arc::ptr_eq(one, two))
    }

    /// The patterns of its agent, if it has any.
    pub(super) fn patterns(&self) -> Option<&[AgentPattern]> {
        self.agent.as_ref()?.agent.tools.as_deref()
    }

    /// The patterns of its agent, each with its lowercase form.
    pub(super) fn spelled_patterns(
        &self,
    ) -> Option<impl DoubleEndedIterator<Item = (&AgentPattern, &NamePattern)>> {
        let rules = self.agent.as_ref()?;
        Some(rules.agent.tools.as_ref()?.iter().zip(&rules.small))
    }

    /// Its bundles for one server.
    pub(super) fn bundles_of(&self, server: &ServerName) -> impl Iterator<Item = &BundleRules> {
        self.bundles.iter().map(|bundle| &**bundle).filter(move |bundle| bundle.server == *server)
    }

    /// Whether it can admit any item of a server whose exposed names have this prefix.
    fn could_have(&self, server: &ServerName, prefix: &str) -> bool {
        let may_match = |it: &AgentPattern| !it.pattern.excludes() && it.pattern.may_match(prefix);
        (self.bundles.is_empty() || self.bundles_of(server).next().is_some())
            && self.patterns().is_none_or(|patterns| patterns.iter().any(may_match))
    }
}

fn unknown<'k>(
    what: &'static str,
    name: &str,
    known: impl Iterator<Item = &'k str>,
) -> UnknownCaller {
    let suggestion = Suggestions::default().nearest(name, known).map(str::to_owned);
    UnknownCaller { what, name: name.to_owned(), suggestion, is_disabled: false }
}

fn disabled(what: &'static str, name: &str) -> UnknownCaller {
    UnknownCaller { what, name: name.to_owned(), suggestion: None, is_disabled: true }
}

/// Modes that list fewer tools have a higher rank.
fn listing_rank(mode: &ToolMode) -> u8 {
    match mode {
        ToolMode::Direct => 0,
        ToolMode::Auto => 1,
        ToolMode::Meta => 2,
    }
}

impl Caller {
    /// The agents of the caller; each of them must admit an item.
    pub fn agents(&self) -> impl Iterator<Item = (&AgentName, &Agent)> {
        let agents = self.limits.iter().filter_map(|limit| limit.agent.as_ref());
        agents.map(|rules| (&rules.name, &rules.agent))
    }

    /// The toggles of its conversation.
    pub fn toggles(&self) -> &Toggles {
        &self.switches
    }

    /// Whether the same items are visible to both, if both were resolved by the same rules.
    pub(crate) fn has_limits_of(&self, other: &Self) -> bool {
        let (one, two) = (&self.limits, &other.limits);
        self.switches == other.switches
            && one.len() == two.len()
            && one.iter().zip(two).all(|(one, two)| one.is_same(two))
    }

    /// Whether the rules can admit any item of a server to this caller, judged by the prefix of the
    /// server's names.
    pub fn may_have(&self, server: &ServerName, prefix: &str) -> bool {
        self.switches.get(server) == Toggle::On
            && self.limits.iter().all(|limit| limit.could_have(server, prefix))
    }

    /// The mode that its bundles and agents give to the tools of a server; `None` if they decide
    /// nothing. If they differ, the one that lists fewer tools applies.
    pub(crate) fn tool_mode(&self, server: &ServerName) -> Option<ToolMode> {
        let bundles = self.limits.iter().flat_map(|limit| limit.bundles_of(server));
        bundles.map(|bundle| bundle.mode).chain(self.agent_mode()).max_by_key(listing_rank)
    }

    /// The modes that its bundles and agents give to the tools of any server.
    pub(crate) fn tool_modes(&self) -> impl Iterator<Item = ToolMode> {
        let bundles = self.limits.iter().flat_map(|limit| &limit.bundles);
        bundles.map(|bundle| bundle.mode).chain(self.agent_mode())
    }

    fn agent_mode(&self) -> Option<ToolMode> {
        self.agents().filter_map(|(_, agent)| agent.mode).max_by_key(listing_rank)
    }

    /// Whether its bundles and agents offer resources and prompts as tools: if one of them does.
    /// `None` if they decide nothing.
    pub(crate) fn item_tools(&self) -> ItemToolSettings {
        let of_agents = self.agents().map(|(_, agent)| agent.item_tools);
        let bundles = self.limits.iter().flat_map(|limit| &limit.bundles);
        let all = of_agents.chain(bundles.map(|bundle| bundle.item_tools));
        all.fold(ItemToolSettings::default(), |one, other| ItemToolSettings {
            // `None` is less than `false`, and that less than `true`.
            resources: one.resources.max(other.resources),
            prompts: one.prompts.max(other.prompts),
        })
    }

    /// How much the caller learns about hidden items.
    pub fn disclosure(&self) -> Disclosure {
        self.disclosure
    }

    /// Whether the caller has no limits, and no server is switched off in its conversation.
    pub fn is_unlimited(&self) -> bool {
        self.limits.is_empty() && self.switches.is_empty()
    }

    /// Its limits, at least one.
    pub(super) fn limits(&self) -> &[CallerLimit] {
        match &*self.limits {
            [] => std::slice::from_ref(&UNLIMITED),
            limits => limits,
        }
    }

    /// The conversation it belongs to.
    pub fn conversation(&self) -> Option<&str> {
        self.conversation.as_deref()
    }

    fn with_conversation(self, conversation: Option<Box<str>>) -> Self {
        Self { conversation, ..self }
    }

    /// Applies the toggles of the conversation, and then its own.
    fn with_own_toggles(self, rules: &Rules, own_switches: Toggles) -> Self {
        let mut switches = match rules.toggles().is_empty() {
            // Most callers: nothing is stored.
            true => Toggles::default(),
            false => rules.toggles().merged(self.conversation.as_deref()),
        };
        switches.extend(&own_switches);
        Self { own_switches, switches, ..self }
    }
}
