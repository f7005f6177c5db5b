//! What hides an address by itself, whatever template it fits (TOOL-12).

use super::caller::{Caller, CallerLimit};
use super::reason::{Finding, Reason, Rule};
use super::rules::{Lists, Rules};
use super::{Step, Verdict, explain};
use crate::catalog::Entry;
use crate::config::AgentPattern;
use crate::name::{NamePattern, Spellings};

/// Why an address that fits a template is hidden although the template is not: a list of the server,
/// or of a bundle of it, denies the address, or a pattern of the agent takes it away.
pub(crate) fn hides_address<'r>(
    (rules, caller): (&'r Rules, &'r Caller),
    template: &Entry,
    own: &str,
    spellings: &Spellings,
) -> Option<Reason<'r>> {
    let server = &template.server().name;
    let denies = |lists: &Lists| lists.deny.iter().any(|denied| spellings.mean(denied));
    if let Some(lists) = rules.server(server).map(|it| &it.lists).filter(|it| denies(it)) {
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
    caller.limits().iter().find_map(by_limit)
}

/// What every rule has to say about an address that fits a template.
pub(crate) fn explain_address<'r>(
    (rules, caller): (&'r Rules, &'r Caller),
    template: &'r Entry,
    own: &str,
    spellings: &Spellings,
) -> Vec<Step<'r>> {
    let mut steps = explain(rules, caller, template);
    let Some(reason) = hides_address((rules, caller), template, own, spellings) else {
        return steps;
    };
    let is_same = |it: &Reason<'_>| it.rule == reason.rule && it.limit == reason.limit;
    let same = steps.iter_mut().find(|step| is_same(&step.reason));
    if let Some(step) = same.filter(|step| step.verdict == Verdict::Pass) {
        *step = Step { verdict: Verdict::Hide, reason, decides: false };
    }
    let first = steps.iter().position(|step| step.verdict != Verdict::Pass);
    for (place, step) in steps.iter_mut().enumerate() {
        step.decides = Some(place) == first;
    }
    steps
}

/// What patterns of an agent see of an address: what they would see of a resource that had it, in
/// every spelling.
fn scopes(template: &Entry, own: &str, spellings: &Spellings) -> Vec<String> {
    let prefix = template.scope().strip_suffix(template.name()).unwrap_or_default();
    let written = spellings.written().into_iter();
    let written = written.map(|uri| format!("{prefix}{uri}").to_lowercase());
    [format!("{prefix}{own}")].into_iter().chain(written).collect()
}

/// The pattern that takes away something of one of these names: the last that matches it. Spellings
/// are in small letters, and so are patterns compared with them.
fn excluding<'r>(limit: &'r CallerLimit, scopes: &[String]) -> Option<&'r AgentPattern> {
    let patterns = limit.patterns()?;
    let matches = |it: &AgentPattern, scope: &String| {
        let small = NamePattern::new(&it.pattern.as_str().to_lowercase());
        it.pattern.matches(scope) || small.is_ok_and(|small| small.matches(scope))
    };
    let last = |scope: &String| patterns.iter().rev().find(|it| matches(it, scope));
    scopes.iter().filter_map(last).find(|it| it.pattern.excludes())
}
