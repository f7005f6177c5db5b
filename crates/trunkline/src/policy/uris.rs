//! Rules that hide a single URI, although the template that it matches is visible (TOOL-12).

use super::caller::{CallerLimit, CallerRules};
use super::reason::{Finding, Reason, Rule};
use super::rules::Lists;
use super::{RuleResult, Verdict, explain};
use crate::catalog::Entry;
use crate::config::AgentPattern;
use crate::name::{NamePattern, UriSpellings};

/// The reason why a URI is hidden although the template that it matches is not: a list of the
/// server or of one of its bundles denies the URI, or a pattern of the agent excludes it.
pub(crate) fn hides_uri<'r>(
    applied: CallerRules<'r>,
    template: &Entry,
    own: &str,
    spellings: &UriSpellings,
) -> Option<Reason<'r>> {
    let server = &template.server().name;
    let denies = |lists: &Lists| lists.deny.covers(spellings);
    if let Some(lists) = applied.rules.server(server).map(|it| &it.lists).filter(|it| denies(it)) {
        let (finding, location) = (Finding::InDenyList, lists.places.deny.as_ref());
        return Some(Reason::new(Rule::ServerLists, finding, location));
    }
    let scopes = scopes(template, own, spellings);
    let by_limit = |limit: &'r CallerLimit| {
        if let Some(bundle) = limit.bundles_of(server).find(|bundle| denies(&bundle.lists)) {
            let location = bundle.lists.places.deny.as_ref().unwrap_or(&bundle.location);
            let (finding, location) = (Finding::DeniedByBundle(&bundle.name), Some(location));
            return Some(Reason {
                limit: limit.name,
                ..Reason::new(Rule::Bundles, finding, location)
            });
        }
        let AgentPattern { pattern, location } = excluding(limit, &scopes)?;
        let (finding, location) = (Finding::ExcludedBy(pattern), Some(location));
        Some(Reason { limit: limit.name, ..Reason::new(Rule::Agent, finding, location) })
    };
    applied.caller.limits().iter().find_map(by_limit)
}

/// Whether a rule hides an unlisted resource, under any spelling of its URI. Patterns of the agent,
/// the server or a bundle must also include its normalised form: `x://public/../private` is not
/// below `x://public/`.
pub(crate) fn hides_unlisted(
    applied: CallerRules<'_>,
    entry: &Entry,
    spellings: &UriSpellings,
) -> bool {
    let server = &entry.server().name;
    let written = spellings.written_whole();
    let is_allowed = |lists: &Lists| {
        lists.allow.as_ref().is_none_or(|allow| allow.allows_unlisted(entry.name(), &written))
    };
    let bundles = applied.caller.limits().iter().flat_map(|limit| limit.bundles_of(server));
    let mut lists = applied.rules.server(server).into_iter().map(|it| &it.lists);
    if !lists.all(is_allowed) || !bundles.map(|it| &it.lists).all(is_allowed) {
        return true;
    }
    let whole = scopes_of(entry, spellings.written_whole());
    hides_uri(applied, entry, entry.name(), spellings).is_some()
        || !applied.caller.limits().iter().all(|limit| includes(limit, &whole))
}

/// The results of all rules for a URI that matches a template.
pub(crate) fn explain_uri<'r>(
    applied: CallerRules<'r>,
    template: &'r Entry,
    own: &str,
    spellings: &UriSpellings,
) -> Vec<RuleResult<'r>> {
    let mut steps = explain(applied.rules, applied.caller, template);
    let Some(reason) = hides_uri(applied, template, own, spellings) else {
        return steps;
    };
    let is_same = |it: &Reason<'_>| it.rule == reason.rule && it.limit == reason.limit;
    let same = steps.iter_mut().find(|step| is_same(&step.reason));
    if let Some(step) = same.filter(|step| step.verdict == Verdict::Pass) {
        *step = RuleResult { verdict: Verdict::Hide, reason, decides: false };
    }
    let first = steps.iter().position(|step| step.verdict != Verdict::Pass);
    for (place, step) in steps.iter_mut().enumerate() {
        step.decides = Some(place) == first;
    }
    steps
}

/// The names that patterns of an agent match for a URI: those of a resource with that URI, in every
/// spelling.
fn scopes(entry: &Entry, own: &str, spellings: &UriSpellings) -> Vec<String> {
    let mut scopes = scopes_of(entry, spellings.written());
    scopes.insert(0, format!("{}{own}", prefix(entry)));
    scopes
}

fn scopes_of(entry: &Entry, written: Vec<String>) -> Vec<String> {
    let prefix = prefix(entry);
    written.into_iter().map(|uri| format!("{prefix}{uri}").to_lowercase()).collect()
}

/// The prefix of a server's URIs in names that patterns match.
fn prefix(entry: &Entry) -> &str {
    entry.scope().strip_suffix(entry.name()).unwrap_or_default()
}

/// The pattern that excludes one of these names: the last that matches it.
fn excluding<'r>(limit: &'r CallerLimit, scopes: &[String]) -> Option<&'r AgentPattern> {
    let deciding = scopes.iter().filter_map(|scope| last_match(limit, scope));
    deciding.into_iter().find(|it| it.pattern.excludes())
}

/// Whether the patterns of a limit, if it has any, include one of these names.
fn includes(limit: &CallerLimit, scopes: &[String]) -> bool {
    if limit.patterns().is_none() {
        return true;
    }
    let mut deciding = scopes.iter().filter_map(|scope| last_match(limit, scope));
    deciding.any(|it| !it.pattern.excludes())
}

/// The last pattern that matches a name. Spellings are lowercase, so they are also compared with
/// lowercase patterns.
fn last_match<'r>(limit: &'r CallerLimit, scope: &str) -> Option<&'r AgentPattern> {
    let mut patterns = limit.spelled_patterns()?.rev();
    let matches = |(written, small): &(&AgentPattern, &NamePattern)| {
        written.pattern.matches(scope) || small.matches(scope)
    };
    patterns.find(matches).map(|(written, _)| written)
}
