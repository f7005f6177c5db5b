//! Whether something of an exact name can be seen, before anybody knows whether it exists.

use super::caller::{Caller, CallerLimit};
use super::rules::{Lists, Rules};
use crate::config::{Trust, deciding_pattern};
use crate::name::{Claim, NamePattern, Namespaces, ServerName, Spellings};

/// What can be said of a name before its server is asked. The later ones say more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Chance {
    /// Something of that name may be seen, if the server has it.
    Possible,
    /// Nothing names it that would have to, so that it cannot be seen.
    NotNamed,
    /// A pattern or a list takes it away, whatever the server has.
    TakenAway,
}

/// Whether a caller can see something of a server under an exposed name.
pub(crate) fn chance(
    (rules, caller): (&Rules, &Caller),
    spaces: &Namespaces,
    server: &ServerName,
    exposed: &str,
) -> Chance {
    let gives = |entry: &NamePattern| match entry.plain_name() {
        Some(own) => gives(spaces, Claim { server, own }, exposed),
        None if entry.as_str() == "*" => Given::Exactly,
        // It is about own names, which exposed names do not always tell.
        None => Given::Perhaps,
    };
    every_limit(caller, |limit| match by_lists((rules, limit), server, gives) {
        Chance::Possible => by_patterns(limit, spaces, exposed),
        none => none,
    })
}

/// Whether a caller can see something of a server under an address, in the server's own words.
pub(crate) fn chance_of_address(
    (rules, caller): (&Rules, &Caller),
    server: &ServerName,
    address: &str,
) -> Chance {
    let spellings = Spellings::of(address);
    let gives = |entry: &NamePattern| match spellings.mean(entry.as_str()) {
        true => Given::Exactly,
        // It may fit a template.
        false if entry.as_str().contains('{') || entry.plain_name().is_none() => Given::Perhaps,
        false => Given::Never,
    };
    every_limit(caller, |limit| by_lists((rules, limit), server, gives))
}

/// The chance that every limit of a caller leaves.
fn every_limit(caller: &Caller, chance: impl Fn(&CallerLimit) -> Chance) -> Chance {
    caller.limits().iter().map(chance).max().unwrap_or(Chance::TakenAway)
}

/// What the lists of a server, and of the bundles of it in one limit, say of something that may be what
/// they name.
fn by_lists(
    (rules, limit): (&Rules, &CallerLimit),
    server: &ServerName,
    gives: impl Fn(&NamePattern) -> Given,
) -> Chance {
    let own = rules.server(server);
    let bundles = limit.bundles_of(server);
    let lists: Vec<_> = own.iter().map(|it| &it.lists).chain(bundles.map(|it| &it.lists)).collect();
    let denies = |lists: &&Lists| lists.deny.entries().any(|it| gives(it) == Given::Exactly);
    if lists.iter().any(denies) {
        return Chance::TakenAway;
    }
    let allows = |lists: &Lists| {
        lists.allow.as_ref().map(|allow| allow.entries().any(|it| gives(it) != Given::Never))
    };
    let allowed: Vec<_> = lists.iter().filter_map(|lists| allows(lists)).collect();
    let is_untrusted = own.is_some_and(|it| it.trust == Trust::Untrusted);
    if allowed.contains(&false) || (is_untrusted && allowed.is_empty()) {
        return Chance::NotNamed;
    }
    Chance::Possible
}

fn by_patterns(limit: &CallerLimit, spaces: &Namespaces, exposed: &str) -> Chance {
    let Some(patterns) = limit.patterns() else { return Chance::Possible };
    match deciding_pattern(patterns, |_, it| it.pattern.matches(exposed)) {
        // Patterns may mean what was shortened to it.
        _ if spaces.may_be_shortened(exposed) => Chance::Possible,
        Some(it) if it.pattern.excludes() => Chance::TakenAway,
        Some(_) => Chance::Possible,
        None => Chance::NotNamed,
    }
}

/// Whether something gets a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Given {
    Exactly,
    /// It depends on what else there is.
    Perhaps,
    Never,
}

fn gives(spaces: &Namespaces, claim: Claim<'_>, exposed: &str) -> Given {
    let found = spaces.expose(&[claim]);
    let Some(alone) = found.first() else { return Given::Never };
    let name = alone.name.as_str();
    match exposed.strip_prefix(name) {
        Some("") => Given::Exactly,
        // With a digest after it.
        Some(rest) if rest.starts_with('_') => Given::Perhaps,
        _ if alone.adjusted.is_some() || spaces.may_be_shortened(exposed) => Given::Perhaps,
        _ => Given::Never,
    }
}
