//! The identity of a caller, and the part of the catalog that it may see.

use std::fmt::Write as _;

use trunkline::config::Access;
use trunkline::host::Host;
use trunkline::name::{ConversationName, ServerName};
use trunkline::policy::{CallerCache, CallerSpec, Disclosure, Limit, UnknownCaller};
use trunkline::principal::Principal;
use trunkline::view::View;

/// The limits of an endpoint or of a token. Lists may not differ between connections to one
/// endpoint, so every limit belongs to the endpoint or to the token. Where both set a limit, each
/// has to allow an item.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The agent whose view applies.
    pub agent: Option<String>,
    /// The bundles that the view is limited to.
    pub bundles: Vec<String>,
    /// The highest access, if it is less than the configuration allows.
    pub access: Option<Access>,
    /// The conversation whose toggles apply (TOOL-9). Only that of an endpoint has an effect.
    pub conversation: Option<ConversationName>,
}

impl Scope {
    /// The scope of an agent.
    pub fn of_agent(name: impl Into<String>) -> Self {
        Self { agent: Some(name.into()), ..Self::default() }
    }

    /// The scope of a bundle.
    pub fn of_bundle(name: impl Into<String>) -> Self {
        Self { bundles: vec![name.into()], ..Self::default() }
    }

    /// Checks that a host has the agent and the bundles of this scope.
    ///
    /// # Errors
    ///
    /// Returns [`UnknownCaller`] if one of them does not exist.
    pub fn check(&self, host: &Host) -> Result<(), UnknownCaller> {
        match (&self.agent, &*self.bundles) {
            (None, []) => Ok(()),
            _ => self.view(host).map(|_| ()),
        }
    }

    /// The view of the current catalog within this scope.
    fn view(&self, host: &Host) -> Result<View, UnknownCaller> {
        host.view(CallerSpec {
            within: &[self.limit(None, &self.bundle_names())],
            ..CallerSpec::default()
        })
    }

    fn limit<'s>(&'s self, name: Option<&'static str>, bundles: &'s [&'s str]) -> Limit<'s> {
        Limit { name, agent: self.agent.as_deref(), bundles, access: self.access }
    }

    fn bundle_names(&self) -> Vec<&str> {
        self.bundles.iter().map(String::as_str).collect()
    }
}

/// The limits of one caller. The endpoint and the token are separate limits: an item is visible
/// only if each of them allows it by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct CallerScope {
    address: Scope,
    token: Scope,
    /// Not a limit: the owner may change its toggles.
    conversation: Option<ConversationName>,
}

impl CallerScope {
    /// The limits of a caller at an endpoint, with a token.
    pub(crate) fn new(mut address: Scope, mut token: Scope) -> Self {
        let conversation = address.conversation.take();
        token.conversation = None;
        // Equal limits count once, so that the caller has the same identity at both endpoints.
        let token = if token == address { Scope::default() } else { token };
        Self { address, token, conversation }
    }

    /// The conversation of the caller.
    pub(crate) fn conversation(&self) -> Option<&ConversationName> {
        self.conversation.as_ref()
    }

    /// Whether the endpoint or the token limits the caller.
    pub(crate) fn is_limited(&self) -> bool {
        self.address != Scope::default() || self.token != Scope::default()
    }

    /// Fails if a host does not have one of the agents and bundles.
    pub(crate) fn check(&self, host: &Host) -> Result<(), UnknownCaller> {
        self.address.check(host)?;
        self.token.check(host)
    }

    /// The caller's view of the current catalog.
    pub(crate) fn view(&self, host: &Host) -> Result<View, UnknownCaller> {
        self.view_with(host, Disclosure::Nothing)
    }

    fn view_with(&self, host: &Host, disclosure: Disclosure) -> Result<View, UnknownCaller> {
        self.with_spec(disclosure, |spec| host.view(spec))
    }

    /// Calls a function with the limits of the caller.
    fn with_spec<T>(&self, disclosure: Disclosure, work: impl FnOnce(CallerSpec<'_>) -> T) -> T {
        let [address, token] = [&self.address, &self.token].map(Scope::bundle_names);
        let within = [
            self.address.limit(Some("address"), &address),
            self.token.limit(Some("token"), &token),
        ];
        let conversation = self.conversation.as_ref().map(ConversationName::as_str);
        work(CallerSpec { within: &within, disclosure, conversation, ..CallerSpec::default() })
    }
}

impl CallerScope {
    /// Whether the caller may hear of changes of a resource, in the words of its server, by the rules of
    /// now: they may be others than when it was subscribed to.
    pub(crate) fn may_hear_of(&self, host: &Host, server: &ServerName, uri: &str) -> bool {
        self.view(host).is_ok_and(|view| view.may_hear_of(server, uri))
    }
}

impl From<Scope> for CallerScope {
    fn from(address: Scope) -> Self {
        Self::new(address, Scope::default())
    }
}

/// The principal of requests, and the limits that apply to it.
#[derive(Debug)]
pub(crate) struct CallerIdentity {
    pub(crate) scope: CallerScope,
    /// The token, or `Anonymous` without one.
    pub(crate) principal: Principal,
    /// The caller of its view.
    cache: CallerCache,
}

impl PartialEq for CallerIdentity {
    fn eq(&self, other: &Self) -> bool {
        self.scope == other.scope && self.principal == other.principal
    }
}

impl Eq for CallerIdentity {}

impl CallerIdentity {
    pub(crate) fn new(scope: impl Into<CallerScope>, principal: Principal) -> Self {
        Self { scope: scope.into(), principal, cache: CallerCache::default() }
    }

    /// The caller's view of the current catalog, with the reasons for hidden items if it may know
    /// them.
    pub(crate) fn view(&self, host: &Host) -> Result<View, UnknownCaller> {
        let disclosure = self.disclosure();
        host.view_of_cached(&self.cache, |rules| {
            self.scope.with_spec(disclosure, |spec| rules.caller(spec))
        })
    }

    /// Reasons are for the owner of the configuration: a caller without a token at an endpoint
    /// without limits. For all other callers a hidden item is unknown.
    fn disclosure(&self) -> Disclosure {
        if self.is_owner() { Disclosure::Reasons } else { Disclosure::Nothing }
    }

    /// Whether the caller owns the configuration: it has no token, and its endpoint no limits.
    pub(crate) fn is_owner(&self) -> bool {
        match (&self.principal, self.scope.is_limited()) {
            (Principal::Token(_), _) | (_, true) => false,
            (Principal::Anonymous | Principal::Client(_), false) => true,
        }
    }

    /// The owner of sealed state: this principal, only within this scope.
    pub(crate) fn as_owner(&self) -> String {
        let mut owner = String::with_capacity(64);
        push_part(&mut owner, self.principal.as_str());
        for scope in [&self.scope.address, &self.scope.token] {
            let Scope { agent, bundles, access, conversation: _ } = scope;
            push_part(&mut owner, if agent.is_some() { "agent" } else { "" });
            push_part(&mut owner, agent.as_deref().unwrap_or_default());
            push_part(&mut owner, access.map_or("", Access::as_str));
            bundles.iter().for_each(|bundle| push_part(&mut owner, bundle));
            owner.push('\n');
        }
        if let Some(conversation) = &self.scope.conversation {
            push_part(&mut owner, conversation.as_str());
        }
        owner
    }
}

/// Adds a part with its length, so that different parts never give the same text.
fn push_part(owner: &mut String, part: &str) {
    // Writing to a string does not fail.
    let _ = write!(owner, "{}:{part}", part.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_and_a_token_are_separate_limits() {
        let (one, other) = (Scope::of_bundle("one"), Scope::of_bundle("other"));
        let both = CallerScope::new(one.clone(), other.clone());
        assert_eq!((&both.address, &both.token), (&one, &other));
        assert_ne!(both, CallerScope::new(other, one.clone()));
        assert_eq!(CallerScope::new(one.clone(), one.clone()), CallerScope::from(one));
        assert!(both.is_limited() && !CallerScope::default().is_limited());
    }

    #[test]
    fn a_conversation_is_no_limit() {
        let chat = ConversationName::new("chat").ok();
        let scope = CallerScope::from(Scope { conversation: chat, ..Scope::default() });
        let identity = CallerIdentity::new(scope, Principal::Anonymous);
        assert!(identity.is_owner());
        let other = CallerIdentity::new(CallerScope::default(), Principal::Anonymous);
        assert_ne!(identity.as_owner(), other.as_owner());
    }

    #[test]
    fn owners_with_other_limits_are_other_owners() {
        let owner = |address: Scope, token: Scope| {
            let scope = CallerScope::new(address, token);
            CallerIdentity::new(scope, Principal::Token("ann".into())).as_owner()
        };
        let (one, other) = (Scope::of_agent("one"), Scope::of_agent("other"));
        let owners = [
            owner(Scope::default(), Scope::default()),
            owner(one.clone(), Scope::default()),
            owner(one.clone(), other.clone()),
            owner(other, one),
        ];
        let distinct: std::collections::BTreeSet<_> = owners.iter().collect();
        assert_eq!(distinct.len(), owners.len());
    }
}
