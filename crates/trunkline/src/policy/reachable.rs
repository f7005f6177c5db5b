//! Predicts whether an item with a known name can be visible, before its server lists it.

use super::caller::{Caller, CallerLimit, CallerRules};
use super::rules::{Lists, Rules};
use super::uris::hides_uri;
use super::{Verdict, explain};
use crate::catalog::Entry;
use crate::config::{AgentPattern, Trust, deciding_pattern};
use crate::name::{NamePattern, NameRequest, Namespaces, ServerName, UriSpellings};

/// The possible visibility of a name before its server lists it. Later variants are stricter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visibility {
    /// An item of this name would be visible, if the server has it.
    Possible,
    /// No allow list or pattern selects it, so it cannot be visible.
    NotSelected,
    /// A pattern or a deny list excludes it, whatever the server lists.
    Excluded,
}

/// Whether a caller can see an item of a server under an exposed name.
pub(crate) fn visibility(
    CallerRules { rules, caller }: CallerRules<'_>,
    spaces: &Namespaces,
    server: &ServerName,
    exposed: &str,
) -> Visibility {
    let gives = |entry: &NamePattern| match entry.plain_name() {
        Some(own) => name_match(spaces, NameRequest { server, own }, exposed),
        None if entry.as_str() == "*" => NameMatch::Exactly,
        // The pattern matches upstream names, which an exposed name does not always determine.
        None => NameMatch::Perhaps,
    };
    every_limit(caller, |limit| match by_lists((rules, limit), server, gives) {
        Visibility::Possible => by_patterns(limit, spaces, exposed),
        none => none,
    })
}

/// Whether a caller can see the resource of an entry, which need not exist: as a resource with that
/// URI, or by a template that the URI matches.
pub(crate) fn uri_visibility(applied: CallerRules<'_>, entry: &Entry) -> Visibility {
    let mut hiding = explain(applied.rules, applied.caller, entry);
    hiding.retain(|step| step.verdict == Verdict::Hide);
    if hiding.is_empty() {
        return Visibility::Possible;
    }
    if hiding.iter().any(|step| step.reason.excludes()) {
        return Visibility::Excluded;
    }
    let spellings = UriSpellings::of(entry.name());
    let may_fit_template = hiding.iter().all(|step| step.reason.is_unnamed())
        && may_name_template(applied, entry, &spellings)
        && hides_uri(applied, entry, entry.name(), &spellings).is_none();
    if may_fit_template { Visibility::Possible } else { Visibility::NotSelected }
}

/// Whether every list and every agent that does not name a URI may name a template that it matches.
fn may_name_template(
    CallerRules { rules, caller }: CallerRules<'_>,
    entry: &Entry,
    spellings: &UriSpellings,
) -> bool {
    let server = &entry.server().name;
    let bundles = caller.limits().iter().flat_map(|limit| limit.bundles_of(server));
    let own = rules.server(server).into_iter().map(|it| &it.lists);
    let mut allow = own.chain(bundles.map(|it| &it.lists)).filter_map(|it| it.allow.as_ref());
    let may_include = |it: &AgentPattern| {
        let pattern = &it.pattern;
        !pattern.excludes() && (pattern.matches(entry.scope()) || pattern.as_str().contains('{'))
    };
    allow.all(|it| it.matches(entry.name()) || it.may_name_template(spellings))
        && caller
            .limits()
            .iter()
            .all(|limit| limit.patterns().is_none_or(|patterns| patterns.iter().any(may_include)))
}

/// The strictest visibility over all limits of a caller.
fn every_limit(caller: &Caller, chance: impl Fn(&CallerLimit) -> Visibility) -> Visibility {
    caller.limits().iter().map(chance).max().unwrap_or(Visibility::Excluded)
}

/// The visibility by the lists of a server and of its bundles in one limit. `gives` tests whether
/// the item may be the one that an entry names.
fn by_lists(
    (rules, limit): (&Rules, &CallerLimit),
    server: &ServerName,
    gives: impl Fn(&NamePattern) -> NameMatch,
) -> Visibility {
    let own = rules.server(server);
    let bundles = limit.bundles_of(server);
    let lists: Vec<_> = own.iter().map(|it| &it.lists).chain(bundles.map(|it| &it.lists)).collect();
    let denies = |lists: &&Lists| lists.deny.entries().any(|it| gives(it) == NameMatch::Exactly);
    if lists.iter().any(denies) {
        return Visibility::Excluded;
    }
    let allows = |lists: &Lists| {
        lists.allow.as_ref().map(|allow| allow.entries().any(|it| gives(it) != NameMatch::Never))
    };
    let allowed: Vec<_> = lists.iter().filter_map(|lists| allows(lists)).collect();
    let is_untrusted = own.is_some_and(|it| it.trust == Trust::Untrusted);
    if allowed.contains(&false) || (is_untrusted && allowed.is_empty()) {
        return Visibility::NotSelected;
    }
    Visibility::Possible
}

fn by_patterns(limit: &CallerLimit, spaces: &Namespaces, exposed: &str) -> Visibility {
    let Some(patterns) = limit.patterns() else { return Visibility::Possible };
    match deciding_pattern(patterns, |_, it| it.pattern.matches(exposed)) {
        // A pattern may match the name that this one was shortened from.
        _ if spaces.may_be_shortened(exposed) => Visibility::Possible,
        Some(it) if it.pattern.excludes() => Visibility::Excluded,
        Some(_) => Visibility::Possible,
        None => Visibility::NotSelected,
    }
}

/// Whether an item gets an exposed name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NameMatch {
    Exactly,
    /// It depends on the other items.
    Perhaps,
    Never,
}

fn name_match(spaces: &Namespaces, claim: NameRequest<'_>, exposed: &str) -> NameMatch {
    let found = spaces.expose(&[claim]);
    let Some(alone) = found.first() else { return NameMatch::Never };
    let name = alone.name.as_str();
    match exposed.strip_prefix(name) {
        Some("") => NameMatch::Exactly,
        // Followed by a digest.
        Some(rest) if rest.starts_with('_') => NameMatch::Perhaps,
        _ if alone.adjusted.is_some() || spaces.may_be_shortened(exposed) => NameMatch::Perhaps,
        _ => NameMatch::Never,
    }
}
