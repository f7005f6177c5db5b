//! Reasons for policy decisions, with their text and the location of the rule.

use std::fmt;

use crate::config::{Access, Location};
use crate::name::{AgentName, BundleName, NamePattern, ServerName};

/// A rule of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The server is configured and enabled (TOOL-8).
    Server,
    /// The server is enabled in this conversation (TOOL-9).
    Conversation,
    /// Items of an untrusted server are hidden unless a list names them (TOOL-10).
    Trust,
    /// The allow and deny lists of the server.
    ServerLists,
    /// Tools that write are restricted (TOOL-5).
    Access,
    /// The bundles of the caller (BUN-2).
    Bundles,
    /// The patterns of the agent (TOOL-6).
    Agent,
    /// The server is available (TOOL-8).
    Available,
}

impl Rule {
    /// The name of the rule.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Conversation => "conversation",
            Self::Trust => "trust",
            Self::ServerLists => "tool lists",
            Self::Access => "access",
            Self::Bundles => "bundles",
            Self::Agent => "agent",
            Self::Available => "available",
        }
    }
}

/// The reason for a rule's verdict.
#[derive(Clone, Copy, Debug)]
pub struct Reason<'r> {
    pub(super) rule: Rule,
    pub(super) finding: Finding<'r>,
    pub(super) location: Option<&'r Location>,
    /// The limit of the caller that the rule was evaluated for.
    pub(super) limit: Option<&'static str>,
}

/// The access rule that applies, and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AccessRule<'r> {
    pub(super) access: Access,
    pub(super) source: AccessSource<'r>,
}

/// The source of an access rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessSource<'r> {
    /// The configuration, or its default.
    Configuration,
    /// An option of this run.
    Run,
    /// The embedding host.
    Host,
    /// A limit of the caller, such as that of a token.
    Limit,
    /// The agent of the caller.
    Agent(&'r AgentName),
}

impl fmt::Display for AccessRule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = self.access.as_str();
        match self.source {
            AccessSource::Configuration | AccessSource::Limit => {
                write!(f, "access is `{access}`")
            }
            AccessSource::Run => write!(f, "access is `{access}` for this run"),
            AccessSource::Host => write!(f, "the host allows at most `{access}`"),
            AccessSource::Agent(name) => write!(f, "access of agent `{name}` is `{access}`"),
        }
    }
}

/// The finding of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding<'r> {
    NotConfigured,
    Enabled,
    Disabled,
    Held,
    SwitchedOn,
    SwitchedOff,
    ItemSwitchedOff,
    Trusted,
    UntrustedAndNamed,
    UntrustedWithoutList,
    UntrustedAndNotNamed,
    NoList,
    InAllowList,
    NotInAllowList,
    InDenyList,
    GuardsToolsOnly,
    Writes(AccessRule<'r>),
    DeclaresNothing(AccessRule<'r>),
    DeclaresReading(AccessRule<'r>),
    NotBelieved(AccessRule<'r>),
    AnyAccess,
    NoBundle,
    InBundles,
    NoBundleOfServer,
    NotInBundle(&'r BundleName),
    DeniedByBundle(&'r BundleName),
    NoAgent,
    AgentSeesAll(&'r AgentName),
    IncludedBy(&'r NamePattern),
    ExcludedBy(&'r NamePattern),
    NoPattern(&'r AgentName),
    Available,
    Down(&'r ServerName, &'r str),
}

impl<'r> Reason<'r> {
    pub(super) fn new(rule: Rule, finding: Finding<'r>, location: Option<&'r Location>) -> Self {
        Self { rule, finding, location, limit: None }
    }

    /// The rule.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// Location of the rule; `None` for a default.
    pub fn location(&self) -> Option<&'r Location> {
        self.location
    }

    /// The limit that the reason is about, by the name in [`Limit::name`](super::Limit::name).
    pub fn limit(&self) -> Option<&'static str> {
        self.limit
    }

    /// The unavailable server, if the reason is that a server is down.
    pub fn unavailable(&self) -> Option<&'r ServerName> {
        match self.finding {
            Finding::Down(server, _) => Some(server),
            _ => None,
        }
    }

    /// Whether an explicit deny list or exclusion hides the item, rather than a missing allow
    /// entry.
    pub(crate) fn excludes(&self) -> bool {
        matches!(
            self.finding,
            Finding::InDenyList | Finding::DeniedByBundle(_) | Finding::ExcludedBy(_)
        )
    }

    /// Whether a list or an agent would have to name the item, and does not.
    pub(crate) fn is_unnamed(&self) -> bool {
        matches!(
            self.finding,
            Finding::UntrustedAndNotNamed
                | Finding::NotInAllowList
                | Finding::NotInBundle(_)
                | Finding::NoPattern(_)
        )
    }

    /// The access that would show the item, if the configuration or an option of this run restricts
    /// it.
    pub fn needed_access(&self) -> Option<Access> {
        let (rule, needed) = match self.finding {
            Finding::Writes(rule) => (rule, Access::ReadWrite),
            Finding::DeclaresNothing(rule) | Finding::NotBelieved(rule) => (rule, Access::ReadOnly),
            _ => return None,
        };
        matches!(rule.source, AccessSource::Configuration | AccessSource::Run).then_some(needed)
    }

    /// How to allow the hidden item.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self.finding {
            Finding::NotConfigured => "add the server to the configuration",
            Finding::Disabled => "set `\"enabled\": true` on the server",
            Finding::Held => "run `trunkline trust` in the folder of the configuration",
            Finding::SwitchedOff => {
                "`trunkline enable` switches the server on, or the toggles of the conversation do"
            }
            Finding::ItemSwitchedOff => {
                "`trunkline enable` switches it on, or the toggles of the conversation do"
            }
            Finding::UntrustedWithoutList | Finding::UntrustedAndNotNamed => {
                "name it under `allowTools` of the server, or of a bundle"
            }
            Finding::NotInAllowList => "add it to `allowTools` of the server",
            Finding::InDenyList => "remove it from `denyTools` of the server",
            Finding::Writes(rule) => rule.source.hint_for_writing(),
            Finding::DeclaresNothing(rule) | Finding::NotBelieved(rule) => {
                rule.source.hint_for_undeclared()
            }
            Finding::NoBundleOfServer | Finding::NotInBundle(_) => {
                "add it to `allowTools` of the bundle, or ask without the bundle"
            }
            Finding::DeniedByBundle(_) => "remove it from `denyTools` of the bundle",
            Finding::ExcludedBy(_) => "add a pattern that includes it after this one",
            Finding::NoPattern(_) => "add a pattern that includes it to `tools` of the agent",
            Finding::Down(..) => "see the status of the server",
            _ => return None,
        })
    }
}

impl AccessSource<'_> {
    /// How to allow a tool that declares that it writes.
    fn hint_for_writing(self) -> &'static str {
        match self {
            Self::Configuration => "set `\"access\": \"read-write\"` on the server",
            Self::Agent(_) => "set `access: read-write` on the agent",
            _ => self.hint_for_limit(),
        }
    }

    /// How to allow a tool that is not declared read-only, or whose declaration is not trusted.
    fn hint_for_undeclared(self) -> &'static str {
        match self {
            Self::Configuration => "set `\"access\": \"read-only\"` on the server",
            Self::Agent(_) => "set `access: read-only` on the agent",
            _ => self.hint_for_limit(),
        }
    }

    fn hint_for_limit(self) -> &'static str {
        match self {
            Self::Run => "give another `--access`, or none",
            Self::Host => "only the host that runs this can allow more",
            _ => "ask without this limit on access",
        }
    }
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.finding.fmt(f)?;
        match self.limit {
            Some(limit) => write!(f, " (limit of the {limit})"),
            None => Ok(()),
        }
    }
}

impl Finding<'_> {
    /// The text of the finding, where it is constant.
    fn words(self) -> &'static str {
        match self {
            Self::NotConfigured => "its server is not in the configuration",
            Self::Enabled => "its server is switched on",
            Self::Disabled => "its server is switched off",
            Self::Held => "its server is of a configuration file that is not trusted yet",
            Self::SwitchedOn => "its server is not switched off here",
            Self::SwitchedOff => "its server is switched off in this project or conversation",
            Self::ItemSwitchedOff => "it is switched off in this project or conversation",
            Self::Trusted => "its server is trusted",
            Self::UntrustedAndNamed => "its server is not trusted, and a list names it",
            Self::UntrustedWithoutList => {
                "its server is not trusted, and no list says what may be seen of it"
            }
            Self::UntrustedAndNotNamed => "its server is not trusted, and no list names it",
            Self::NoList => "its server has no list that concerns it",
            Self::InAllowList => "its server's `allowTools` names it",
            Self::NotInAllowList => "its server's `allowTools` does not name it",
            Self::InDenyList => "its server's `denyTools` names it",
            Self::GuardsToolsOnly => "only tools can write",
            Self::Writes(_) => "it declares that it writes",
            Self::DeclaresNothing(_) => "it does not declare whether it writes",
            Self::DeclaresReading(_) => "it declares that it only reads",
            Self::NotBelieved(_) => "an untrusted server is not believed when it declares to read",
            Self::AnyAccess => "access is `read-write`",
            Self::NoBundle => "no bundle was asked for",
            Self::InBundles => "the bundles asked for hold it",
            Self::NoBundleOfServer => "no bundle asked for is of its server",
            Self::NotInBundle(_) => "a bundle does not name it",
            Self::DeniedByBundle(_) => "a bundle denies it",
            Self::NoAgent => "no agent was asked for",
            Self::AgentSeesAll(_) => "the agent may see all tools",
            Self::IncludedBy(_) | Self::ExcludedBy(_) => "the last pattern that matches is",
            Self::NoPattern(_) => "no pattern of the agent matches",
            Self::Available => "its server can be called",
            Self::Down(..) => "its server is down",
        }
    }
}

impl fmt::Display for Finding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.words();
        match self {
            Self::Writes(rule)
            | Self::DeclaresNothing(rule)
            | Self::DeclaresReading(rule)
            | Self::NotBelieved(rule) => write!(f, "{words}, and {rule}"),
            Self::NotInBundle(name) => {
                write!(f, "`allowTools` of bundle `{name}` does not name it")
            }
            Self::DeniedByBundle(name) => write!(f, "`denyTools` of bundle `{name}` names it"),
            Self::AgentSeesAll(name) => write!(f, "agent `{name}` may see all tools"),
            Self::IncludedBy(pattern) | Self::ExcludedBy(pattern) => {
                write!(f, "{words} `{pattern}`")
            }
            Self::NoPattern(name) => write!(f, "no pattern of agent `{name}` matches"),
            Self::Down(server, reason) => write!(f, "server `{server}` is down: {reason}"),
            _ => f.write_str(words),
        }
    }
}
