//! Who asks: an agent, a choice of bundles, a conversation with its switches; any of them, or none.

use std::fmt;

use super::rules::{BundleRules, Rules};
use super::switches::{Switch, Switches};
use crate::config::{Access, Agent, AgentPattern, Suggestions};
use crate::name::{AgentName, BundleName, Pairs, ServerName};

/// Who asks, by names.
#[derive(Clone, Debug, Default)]
pub struct Who<'n> {
    /// The agent, if it is one.
    pub agent: Option<&'n str>,
    /// The bundles it is limited to; none for no limit.
    pub bundles: &'n [&'n str],
    /// The switches of the conversation it is part of.
    pub switches: Switches,
    /// The most that they may do, if that is less than the configuration allows.
    pub access: Option<Access>,
}

/// Who asks, with the rules for them at hand. The default is somebody without any limits.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    pub(super) agent: Option<(AgentName, Agent)>,
    /// The pairs of characters of each pattern of the agent.
    pub(super) pairs: Vec<Pairs>,
    pub(super) bundles: Vec<BundleRules>,
    pub(super) switches: Switches,
    pub(super) access: Option<Access>,
}

/// An agent or a bundle that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchCaller {
    /// What it would be: an agent or a bundle.
    pub what: &'static str,
    /// The name it was asked for by.
    pub name: String,
    /// What may have been meant.
    pub suggestion: Option<String>,
}

impl fmt::Display for NoSuchCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no {} `{}`", self.what, self.name)?;
        match &self.suggestion {
            Some(near) => write!(f, "; did you mean `{near}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for NoSuchCaller {}

impl Rules {
    /// Looks up who asks.
    pub fn caller(&self, who: Who<'_>) -> Result<Caller, NoSuchCaller> {
        let agent = match who.agent {
            None => None,
            Some(name) => {
                let known = || self.agent_names().map(AgentName::as_str);
                let found = self.agent(name).ok_or_else(|| no_such("agent", name, known()))?;
                Some((found.0.clone(), found.1.clone()))
            }
        };
        let bundle = |name: &&str| {
            let known = || self.bundle_names().map(BundleName::as_str);
            self.bundle(name).cloned().ok_or_else(|| no_such("bundle", name, known()))
        };
        let bundles = who.bundles.iter().map(bundle).collect::<Result<_, _>>()?;
        let patterns = agent.iter().flat_map(|(_, agent)| agent.tools.iter().flatten());
        let pairs = patterns.map(|it| it.pattern.pairs()).collect();
        Ok(Caller { agent, pairs, bundles, switches: who.switches, access: who.access })
    }
}

impl Rules {
    /// The same caller under these rules; its agent or its bundles may be other ones, or gone.
    pub fn caller_again(&self, caller: &Caller) -> Result<Caller, NoSuchCaller> {
        let bundles: Vec<&str> = caller.bundles.iter().map(|bundle| bundle.name.as_str()).collect();
        self.caller(Who {
            agent: caller.agent.as_ref().map(|(name, _)| name.as_str()),
            bundles: &bundles,
            switches: caller.switches.clone(),
            access: caller.access,
        })
    }
}

fn no_such<'k>(
    what: &'static str,
    name: &str,
    known: impl Iterator<Item = &'k str>,
) -> NoSuchCaller {
    let suggestion = Suggestions::default().nearest(name, known).map(str::to_owned);
    NoSuchCaller { what, name: name.to_owned(), suggestion }
}

impl Caller {
    /// The agent that asks.
    pub fn agent(&self) -> Option<(&AgentName, &Agent)> {
        self.agent.as_ref().map(|(name, agent)| (name, agent))
    }

    /// The switches of its conversation.
    pub fn switches(&self) -> &Switches {
        &self.switches
    }

    /// Whether anything of a server can be for this caller, whatever the server has. What its names
    /// start with is enough to tell.
    pub fn may_have(&self, server: &ServerName, prefix: &str) -> bool {
        let is_bundled =
            self.bundles.is_empty() || self.bundles.iter().any(|bundle| bundle.server == *server);
        let patterns = self.agent.as_ref().and_then(|(_, agent)| agent.tools.as_ref());
        let may_match = |it: &AgentPattern| !it.pattern.excludes() && it.pattern.may_match(prefix);
        self.switches.get(server) == Switch::On
            && is_bundled
            && patterns.is_none_or(|patterns| patterns.iter().any(may_match))
    }

    /// The same caller after somebody used a switch.
    #[must_use]
    pub fn with_switches(self, switches: Switches) -> Self {
        Self { switches, ..self }
    }
}
