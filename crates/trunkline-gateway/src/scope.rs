//! Whose requests they are, and how much of the servers they may see.

use trunkline::config::Access;
use trunkline::host::Host;
use trunkline::policy::{NoSuchCaller, Switches, Who};
use trunkline::principal::Principal;
use trunkline::view::View;

/// How much of the servers an address serves. Lists may not differ between connections to one
/// address, so everything that limits them is part of the address, or of who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The agent whose tools these are.
    pub agent: Option<String>,
    /// The bundles they are limited to.
    pub bundles: Vec<String>,
    /// The most that may be done, if that is less than the configuration allows.
    pub access: Option<Access>,
}

impl Scope {
    /// What an agent sees.
    pub fn of_agent(name: impl Into<String>) -> Self {
        Self { agent: Some(name.into()), ..Self::default() }
    }

    /// What is in a bundle.
    pub fn of_bundle(name: impl Into<String>) -> Self {
        Self { bundles: vec![name.into()], ..Self::default() }
    }

    /// What is in both, if there can be such a thing: nobody is two agents.
    pub(crate) fn and(&self, other: &Self) -> Option<Self> {
        let agent = match (&self.agent, &other.agent) {
            (Some(one), Some(two)) if one != two => return None,
            (one, two) => one.clone().or_else(|| two.clone()),
        };
        let mut bundles = self.bundles.clone();
        bundles.extend(other.bundles.iter().filter(|it| !self.bundles.contains(it)).cloned());
        let access = match (self.access, other.access) {
            (Some(one), Some(two)) => Some(one.strictest(two)),
            (one, two) => one.or(two),
        };
        Some(Self { agent, bundles, access })
    }

    /// Whether a host knows the agent and the bundles it names.
    ///
    /// # Errors
    ///
    /// When it does not know one of them.
    pub fn check(&self, host: &Host) -> Result<(), NoSuchCaller> {
        match (&self.agent, &*self.bundles) {
            (None, []) => Ok(()),
            _ => self.view(host).map(|_| ()),
        }
    }

    /// What it shows of what is known now.
    pub(crate) fn view(&self, host: &Host) -> Result<View, NoSuchCaller> {
        let bundles: Vec<&str> = self.bundles.iter().map(String::as_str).collect();
        let switches = Switches::default();
        host.view(Who {
            agent: self.agent.as_deref(),
            bundles: &bundles,
            switches,
            access: self.access,
        })
    }
}

/// Whose request it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    /// What they may see.
    pub(crate) scope: Scope,
    /// The principal, as far as it is known: the token, or nobody in particular.
    pub(crate) principal: Principal,
}

impl Identity {
    /// Whose something is that is sealed: theirs, and only within this scope.
    pub(crate) fn as_owner(&self) -> String {
        let Self { principal, scope } = self;
        format!("{:?}\n{scope:?}", principal.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_together_are_never_more_than_either() {
        let (agent, bundle) = (Scope::of_agent("a"), Scope::of_bundle("b"));
        let both = agent.and(&bundle).unwrap();
        assert_eq!((both.agent.as_deref(), &*both.bundles), (Some("a"), &["b".to_owned()][..]));
        assert_eq!(agent.and(&Scope::of_agent("b")), None);
        let read = Scope { access: Some(Access::ReadOnly), ..Scope::default() };
        let write = Scope { access: Some(Access::ReadWrite), ..Scope::default() };
        assert_eq!(read.and(&write).unwrap().access, Some(Access::ReadOnly));
    }
}
