//! Who asks: an agent, a choice of bundles, a conversation with its switches; any of them, or none.
//! What limits a caller are separate limits, each of which has to admit what the caller sees.

use std::fmt;
use std::sync::Arc;

use super::rules::{AgentRules, BundleRules, Rules};
use super::toggles::{Toggle, Toggles};
use crate::config::{Access, Agent, AgentPattern, Suggestions};
use crate::name::{AgentName, BundleName, NamePattern, ServerName};

/// Who asks, by names.
#[derive(Clone, Debug, Default)]
pub struct CallerSpec<'n> {
    /// The agent, if it is one.
    pub agent: Option<&'n str>,
    /// The bundles it is limited to; none for no limit.
    pub bundles: &'n [&'n str],
    /// The switches of the conversation it is part of.
    pub switches: Toggles,
    /// The most that they may do, if that is less than the configuration allows.
    pub access: Option<Access>,
    /// Further limits. The agent, the bundles and the access above are one limit; each of these is
    /// another, and an entry is seen only if all of them admit it.
    pub within: &'n [Limit<'n>],
    /// What they hear about what rules hide.
    pub disclosure: Disclosure,
}

/// What a caller hears who asks for something that a rule hides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disclosure {
    /// That it is unknown: the same as of something that does not exist.
    #[default]
    Nothing,
    /// That it is hidden, and by which rule: for the owner of the configuration.
    Reasons,
}

/// One limit on a caller, by names: the one that an address sets, for example, or a token. What
/// several limits show together is what every one of them shows by itself. One in which nothing is set
/// is no limit.
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
    /// What sets it, for explanations: `address`, `token`.
    pub name: Option<&'static str>,
    /// The agent whose patterns have to include an entry.
    pub agent: Option<&'n str>,
    /// The bundles that have to hold an entry: one of those of its server, and none of those may
    /// exclude it. None for no limit.
    pub bundles: &'n [&'n str],
    /// The most that may be done, if that is less than the configuration allows.
    pub access: Option<Access>,
}

/// Who asks, with the rules for them at hand. The default is somebody without any limits.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// Those in which something is set.
    limits: Vec<CallerLimit>,
    pub(super) switches: Toggles,
    disclosure: Disclosure,
}

/// One limit on a caller, with its rules at hand.
#[derive(Clone, Debug)]
pub(super) struct CallerLimit {
    pub(super) name: Option<&'static str>,
    pub(super) agent: Option<Arc<AgentRules>>,
    pub(super) bundles: Vec<Arc<BundleRules>>,
    pub(super) access: Option<Access>,
}

/// The limit on a caller that has none.
static UNLIMITED: CallerLimit =
    CallerLimit { name: None, agent: None, bundles: Vec::new(), access: None };

/// An agent or a bundle that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCaller {
    /// What it would be: an agent or a bundle.
    pub what: &'static str,
    /// The name it was asked for by.
    pub name: String,
    /// What may have been meant.
    pub suggestion: Option<String>,
    /// Whether it is in the configuration, and disabled because of its errors.
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
    /// Looks up who asks.
    pub fn caller(&self, who: CallerSpec<'_>) -> Result<Caller, UnknownCaller> {
        let CallerSpec { agent, bundles, switches, access, within, disclosure } = who;
        let first = Limit { name: None, agent, bundles, access };
        let limits = self.limits([&first].into_iter().chain(within))?;
        Ok(Caller { limits, switches, disclosure })
    }

    /// The same caller under these rules; its agents or its bundles may be other ones, or gone.
    pub fn refreshed_caller(&self, caller: &Caller) -> Result<Caller, UnknownCaller> {
        let bundles: Vec<_> = caller.limits.iter().map(CallerLimit::bundle_names).collect();
        let named = caller.limits.iter().zip(&bundles);
        let limits: Vec<_> = named.map(|(limit, bundles)| limit.by_names(bundles)).collect();
        let limits = self.limits(&limits)?;
        Ok(Caller { limits, switches: caller.switches.clone(), disclosure: caller.disclosure })
    }

    /// The rules of those limits in which something is set.
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
    /// Whether it limits anything.
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

    /// The patterns of its agent, if that has any.
    pub(super) fn patterns(&self) -> Option<&[AgentPattern]> {
        self.agent.as_ref()?.agent.tools.as_deref()
    }

    /// The same, each with its form in small letters.
    pub(super) fn spelled_patterns(
        &self,
    ) -> Option<impl DoubleEndedIterator<Item = (&AgentPattern, &NamePattern)>> {
        let rules = self.agent.as_ref()?;
        Some(rules.agent.tools.as_ref()?.iter().zip(&rules.small))
    }

    /// Its bundles of one server.
    pub(super) fn bundles_of(&self, server: &ServerName) -> impl Iterator<Item = &BundleRules> {
        self.bundles.iter().map(|bundle| &**bundle).filter(move |bundle| bundle.server == *server)
    }

    /// Whether it can admit anything of a server whose names start so.
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

impl Caller {
    /// The agents that ask; each of them has to admit what is seen.
    pub fn agents(&self) -> impl Iterator<Item = (&AgentName, &Agent)> {
        let agents = self.limits.iter().filter_map(|limit| limit.agent.as_ref());
        agents.map(|rules| (&rules.name, &rules.agent))
    }

    /// The switches of its conversation.
    pub fn toggles(&self) -> &Toggles {
        &self.switches
    }

    /// Whether anything of a server can be for this caller, whatever the server has. What its names
    /// start with is enough to tell.
    pub fn may_have(&self, server: &ServerName, prefix: &str) -> bool {
        self.switches.get(server) == Toggle::On
            && self.limits.iter().all(|limit| limit.could_have(server, prefix))
    }

    /// What the caller hears about what rules hide.
    pub fn disclosure(&self) -> Disclosure {
        self.disclosure
    }

    /// Whether nothing limits this caller, and no server is switched off in its conversation.
    pub fn is_unlimited(&self) -> bool {
        let is_on = |(_, switch)| switch == Toggle::On;
        self.limits.is_empty() && self.switches.iter().all(is_on)
    }

    /// Its limits, of which there is at least one.
    pub(super) fn limits(&self) -> &[CallerLimit] {
        match &*self.limits {
            [] => std::slice::from_ref(&UNLIMITED),
            limits => limits,
        }
    }

    /// The same caller after somebody used a switch.
    #[must_use]
    pub fn with_toggles(self, switches: Toggles) -> Self {
        Self { switches, ..self }
    }
}
