//! The rules of the policy, in the order of evaluation.

use super::Verdict;
use super::caller::{Caller, CallerLimit};
use super::reason::{AccessRule, AccessSource, Finding, Reason, Rule};
use super::rules::ServerRules;
use super::toggles::Toggle;
use crate::catalog::{Availability, CatalogServer, Entry, ItemKind};
use crate::config::{Access, AccessOverride, AgentPattern, Location, Trust, deciding_pattern};

/// The input of the rules: a caller and an entry.
pub(super) struct PolicyQuery<'r> {
    server: Option<&'r ServerRules>,
    caller: &'r Caller,
    entry: &'r Entry,
}

/// A rule that is evaluated once, or once per limit of the caller.
pub(super) enum PolicyRule {
    Once(for<'r> fn(&PolicyQuery<'r>) -> RuleAnswer<'r>),
    PerLimit(for<'r> fn(&PolicyQuery<'r>, &'r CallerLimit) -> RuleAnswer<'r>),
}

pub(super) type RuleAnswer<'r> = (Verdict, Reason<'r>);

impl PolicyRule {
    /// The verdicts of the rule: one, or one per limit.
    pub(super) fn answers<'r>(
        &self,
        question: &PolicyQuery<'r>,
    ) -> impl Iterator<Item = RuleAnswer<'r>> {
        let limits = question.caller.limits().iter();
        let count = match self {
            Self::Once(_) => 1,
            Self::PerLimit(_) => limits.len(),
        };
        limits.take(count).map(move |limit| match self {
            Self::Once(rule) => rule(question),
            Self::PerLimit(rule) => {
                let (verdict, reason) = rule(question, limit);
                (verdict, Reason { limit: limit.name, ..reason })
            }
        })
    }
}

/// All rules. Availability comes last: a caller that may not see a tool must not learn that its
/// server is down.
#[expect(clippy::redundant_closure_for_method_calls, reason = "a method is for one lifetime only")]
pub(super) const STEPS: &[PolicyRule] = &[
    PolicyRule::Once(|question| question.server()),
    PolicyRule::Once(|question| question.conversation()),
    PolicyRule::PerLimit(|question, limit| question.trust(limit)),
    PolicyRule::Once(|question| question.server_lists()),
    PolicyRule::PerLimit(|question, limit| question.access(limit)),
    PolicyRule::PerLimit(|question, limit| question.bundles(limit)),
    PolicyRule::PerLimit(|question, limit| question.agent(limit)),
    PolicyRule::Once(|question| question.available()),
];

impl<'r> PolicyQuery<'r> {
    pub(super) fn new(
        server: Option<&'r ServerRules>,
        caller: &'r Caller,
        entry: &'r Entry,
    ) -> Self {
        Self { server, caller, entry }
    }

    fn server(&self) -> RuleAnswer<'r> {
        let pass = |finding, location| pass(Rule::Server, finding, location);
        let hide = |finding, location| hide(Rule::Server, finding, location);
        match self.server {
            None => hide(Finding::NotConfigured, None),
            Some(server) => {
                let place = server.places.enabled.as_ref().unwrap_or(&server.location);
                match server.enabled {
                    true => pass(Finding::Enabled, Some(place)),
                    false if server.is_held => hide(Finding::Held, Some(&server.location)),
                    false => hide(Finding::Disabled, Some(place)),
                }
            }
        }
    }

    fn conversation(&self) -> RuleAnswer<'r> {
        let (switches, server) = (&self.caller.switches, &self.entry.server().name);
        let place = switches.location(server);
        if switches.get(server) == Toggle::Off {
            return hide(Rule::Conversation, Finding::SwitchedOff, place);
        }
        let (kind, exposed) = (self.entry.kind(), self.entry.exposed());
        match switches.get_item(kind, exposed) {
            Toggle::On => pass(Rule::Conversation, Finding::SwitchedOn, place),
            Toggle::Off => {
                let place = switches.item_location(kind, exposed);
                hide(Rule::Conversation, Finding::ItemSwitchedOff, place)
            }
        }
    }

    /// Each limit must itself name the items that it admits of an untrusted server: a bundle of
    /// another limit does not count.
    fn trust(&self, limit: &'r CallerLimit) -> RuleAnswer<'r> {
        let Some(server) = self.server else { return not_configured(Rule::Trust) };
        let place = server.places.trust.as_ref();
        if server.trust == Trust::Trusted {
            return pass(Rule::Trust, Finding::Trusted, place);
        }
        let own = self.entry.name();
        let mut has_list = server.lists.allow.is_some();
        let mut is_named = server.lists.names(own);
        for bundle in limit.bundles_of(&self.entry.server().name) {
            has_list |= bundle.lists.allow.is_some();
            is_named |= bundle.lists.names(own);
        }
        match (has_list, is_named) {
            (_, true) => pass(Rule::Trust, Finding::UntrustedAndNamed, place),
            (true, false) => hide(Rule::Trust, Finding::UntrustedAndNotNamed, place),
            (false, false) => hide(Rule::Trust, Finding::UntrustedWithoutList, place),
        }
    }

    fn server_lists(&self) -> RuleAnswer<'r> {
        let Some(server) = self.server else { return not_configured(Rule::ServerLists) };
        let (lists, rule) = (&server.lists, Rule::ServerLists);
        if lists.is_empty() {
            return pass(rule, Finding::NoList, None);
        }
        let own = self.entry.name();
        if lists.deny(self.entry) {
            return hide(rule, Finding::InDenyList, lists.places.deny.as_ref());
        }
        let place = lists.places.allow.as_ref();
        match &lists.allow {
            None => pass(rule, Finding::NoList, None),
            Some(allow) if allow.matches(own) => pass(rule, Finding::InAllowList, place),
            Some(_) => hide(rule, Finding::NotInAllowList, place),
        }
    }

    fn access(&self, limit: &'r CallerLimit) -> RuleAnswer<'r> {
        let Some(server) = self.server else { return not_configured(Rule::Access) };
        let access = self.access_rule(server, limit);
        let place = match access.source {
            AccessSource::Configuration => server.places.access.as_ref(),
            AccessSource::Agent(_) => limit.agent.as_ref().map(|rules| &rules.agent.location),
            AccessSource::Run | AccessSource::Host | AccessSource::Limit => None,
        };
        let pass = |finding| pass(Rule::Access, finding, place);
        let hide = |finding| hide(Rule::Access, finding, place);
        let hints = self.entry.annotations();
        if !self.is_tool() {
            return pass(Finding::GuardsToolsOnly);
        }
        match access.access {
            Access::ReadWrite => pass(Finding::AnyAccess),
            _ if hints.declares_writing() => hide(Finding::Writes(access)),
            Access::ReadOnly if hints.read_only == Some(true) => {
                pass(Finding::DeclaresReading(access))
            }
            Access::ReadOnly => pass(Finding::DeclaresNothing(access)),
            Access::ReadOnlyStrict if hints.read_only != Some(true) => {
                hide(Finding::DeclaresNothing(access))
            }
            Access::ReadOnlyStrict if server.trust == Trust::Untrusted => {
                hide(Finding::NotBelieved(access))
            }
            Access::ReadOnlyStrict => pass(Finding::DeclaresReading(access)),
        }
    }

    /// The strictest access rule that applies to a limit of the caller.
    fn access_rule(&self, server: &'r ServerRules, limit: &'r CallerLimit) -> AccessRule<'r> {
        let source = match server.places.access_override {
            None => AccessSource::Configuration,
            Some(AccessOverride::Run) => AccessSource::Run,
            Some(AccessOverride::Host) => AccessSource::Host,
        };
        let mut strictest = AccessRule { access: server.access, source };
        let agent = limit.agent.as_ref();
        let of_agent = agent.and_then(|rules| {
            Some(AccessRule {
                access: rules.agent.access?,
                source: AccessSource::Agent(&rules.name),
            })
        });
        let of_limit =
            limit.access.map(|access| AccessRule { access, source: AccessSource::Limit });
        for rule in [of_limit, of_agent].into_iter().flatten() {
            if strictest.access.strictest(rule.access) != strictest.access {
                strictest = rule;
            }
        }
        strictest
    }

    fn bundles(&self, limit: &'r CallerLimit) -> RuleAnswer<'r> {
        let rule = Rule::Bundles;
        if limit.bundles.is_empty() {
            return pass(rule, Finding::NoBundle, None);
        }
        let mut found = None;
        for bundle in limit.bundles_of(&self.entry.server().name) {
            found = Some(&bundle.location);
            let lists = &bundle.lists;
            // Every bundle must allow it: several lists allow their intersection.
            if lists.allow.is_some() && !lists.names(self.entry.name()) {
                let place = lists.places.allow.as_ref().unwrap_or(&bundle.location);
                return hide(rule, Finding::NotInBundle(&bundle.name), Some(place));
            }
            if lists.deny(self.entry) {
                let place = lists.places.deny.as_ref().unwrap_or(&bundle.location);
                return hide(rule, Finding::DeniedByBundle(&bundle.name), Some(place));
            }
        }
        match found {
            Some(place) => pass(rule, Finding::InBundles, Some(place)),
            None => hide(rule, Finding::NoBundleOfServer, None),
        }
    }

    fn agent(&self, limit: &'r CallerLimit) -> RuleAnswer<'r> {
        let rule = Rule::Agent;
        let Some(rules) = &limit.agent else {
            return pass(rule, Finding::NoAgent, None);
        };
        let (name, agent) = (&rules.name, &rules.agent);
        let Some(patterns) = &agent.tools else {
            return pass(rule, Finding::AgentSeesAll(name), Some(&agent.location));
        };
        let (pairs, is_plain) = (self.entry.pairs(), self.entry.adjustment().is_none());
        let may_match = |place: usize| rules.pairs.get(place).is_none_or(|it| pairs.may_hold(*it));
        let matching = deciding_pattern(patterns, |place, pattern| {
            (!is_plain || may_match(place)) && self.is_matched_by(pattern)
        });
        match matching {
            None => hide(rule, Finding::NoPattern(name), Some(&agent.location)),
            Some(AgentPattern { pattern, location }) if pattern.excludes() => {
                hide(rule, Finding::ExcludedBy(pattern), Some(location))
            }
            Some(AgentPattern { pattern, location }) => {
                pass(rule, Finding::IncludedBy(pattern), Some(location))
            }
        }
    }

    fn available(&self) -> RuleAnswer<'r> {
        match unavailable(self.entry.server()) {
            None => pass(Rule::Available, Finding::Available, None),
            Some(reason) => (Verdict::Deny, reason),
        }
    }

    fn is_tool(&self) -> bool {
        self.entry.kind() == ItemKind::Tool
    }

    /// Whether a pattern matches this entry. The name without its digest counts as well: always to
    /// exclude, and to include only if it is unambiguous.
    fn is_matched_by(&self, AgentPattern { pattern, .. }: &AgentPattern) -> bool {
        if pattern.matches(self.entry.scope()) {
            return true;
        }
        self.entry.adjustment().is_some_and(|adjusted| {
            (pattern.excludes() || !adjusted.reason.is_ambiguous())
                && pattern.matches(&adjusted.plain)
        })
    }
}

/// The reason why a server is unavailable, if it is down.
pub(crate) fn unavailable(server: &CatalogServer) -> Option<Reason<'_>> {
    match &server.availability {
        Availability::Available => None,
        Availability::Down(why) => {
            Some(Reason::new(Rule::Available, Finding::Down(&server.name, why), None))
        }
    }
}

fn pass<'r>(rule: Rule, finding: Finding<'r>, location: Option<&'r Location>) -> RuleAnswer<'r> {
    (Verdict::Pass, Reason::new(rule, finding, location))
}

fn hide<'r>(rule: Rule, finding: Finding<'r>, location: Option<&'r Location>) -> RuleAnswer<'r> {
    (Verdict::Hide, Reason::new(rule, finding, location))
}

fn not_configured<'r>(rule: Rule) -> RuleAnswer<'r> {
    hide(rule, Finding::NotConfigured, None)
}
