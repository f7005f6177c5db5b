//! Decides which items a caller may list and call, from the rules of the configuration.
//!
//! ```
//! use std::sync::Arc;
//! use trunkline::catalog::{Catalog, Item, ItemKind, ServerItems, CatalogBuilder};
//! use trunkline::policy::{Caller, Decision, Rules, decide, explain};
//! use trunkline::{config, message::Raw};
//!
//! let text = r#"{ "access": "read-only", "servers": { "fs": { "command": "x" } } }"#;
//! let config = config::parse("mcp.json", text).config;
//! let definition = Raw::from_text(r#"{"name":"write","annotations":{"readOnlyHint":false}}"#);
//! let listing = ServerItems::new([Item::new(ItemKind::Tool, "write", definition.unwrap())]);
//! let mut sources = CatalogBuilder::new(&config);
//! sources.add(&config.server("fs").unwrap().name, Arc::new(listing));
//! let catalog = Catalog::build(&sources);
//!
//! let rules = Rules::new(&config, config.agents().named.clone());
//! let tool = catalog.get(ItemKind::Tool, "fs_write").unwrap();
//! let caller = Caller::default();
//! let Decision::Hide(reason) = decide(&rules, &caller, tool) else { panic!() };
//! assert_eq!(reason.to_string(), "it declares that it writes, and access is `read-only`");
//! assert!(explain(&rules, &caller, tool).iter().any(|step| step.decides));
//! ```

mod toggles;
mod project_toggles;
mod lists;
mod rules;
mod caller;
mod reason;
mod pipeline;
mod uris;
mod reachable;

pub(crate) use caller::CallerRules;
pub use caller::{Caller, CallerCache, CallerSpec, Disclosure, Limit, UnknownCaller};
pub(crate) use pipeline::unavailable;
pub use project_toggles::ProjectToggles;
pub use reachable::Visibility;
pub(crate) use reachable::{uri_visibility, visibility};
pub use reason::{Reason, Rule};
pub(crate) use rules::ListEntry;
pub use rules::Rules;
pub use toggles::{Toggle, Toggles};
pub(crate) use uris::{explain_uri, hides_unlisted, hides_uri};

use crate::catalog::Entry;
use crate::name::ServerName;
use pipeline::{PolicyQuery, STEPS};
use rules::ServerRules;

/// The decision of all rules together.
#[derive(Clone, Copy, Debug)]
pub enum Decision<'r> {
    /// The item may be listed and called.
    Allow,
    /// The item does not exist for this caller.
    Hide(Reason<'r>),
    /// The caller may list the item, but cannot call it now.
    Deny(Reason<'r>),
}

/// The verdict of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No objection.
    Pass,
    /// The item does not exist for this caller.
    Hide,
    /// The caller may list the item, but cannot call it now.
    Deny,
}

/// The result of one rule (TOOL-11).
#[derive(Clone, Copy, Debug)]
pub struct RuleResult<'r> {
    /// The verdict of the rule.
    pub verdict: Verdict,
    /// The reason for the verdict.
    pub reason: Reason<'r>,
    /// Whether it is the first verdict that is not a pass, which decides.
    pub decides: bool,
}

/// Whether a caller may list and call an item: the first rule that does not pass decides.
pub fn decide<'r>(rules: &'r Rules, caller: &'r Caller, entry: &'r Entry) -> Decision<'r> {
    decided(&PolicyQuery::new(rules.server(&entry.server().name), caller, entry))
}

/// Decides about many entries. Adjacent entries mostly belong to one server, whose rules are looked
/// up once.
pub fn decide_all<'r>(
    rules: &'r Rules,
    caller: &'r Caller,
    entries: &'r [Entry],
) -> impl Iterator<Item = (&'r Entry, Decision<'r>)> {
    let mut known = None;
    entries.iter().map(move |entry| {
        let server = match known {
            Some((server, found)) if std::ptr::eq(server, entry.server()) => found,
            _ => rules.server(&entry.server().name),
        };
        known = Some((entry.server(), server));
        (entry, decided(&PolicyQuery::new(server, caller, entry)))
    })
}

/// Whether no rule limits a caller's use of a server: none hides an item of it, and none could hide
/// an item that it may list later.
pub(crate) fn is_unlimited(rules: &Rules, caller: &Caller, server: &ServerName) -> bool {
    caller.is_unlimited() && rules.server(server).is_some_and(ServerRules::hide_nothing)
}

fn decided<'r>(question: &PolicyQuery<'r>) -> Decision<'r> {
    let mut answers = STEPS.iter().flat_map(|judge| judge.answers(question));
    match answers.find(|(verdict, _)| *verdict != Verdict::Pass) {
        Some((Verdict::Hide, reason)) => Decision::Hide(reason),
        Some((Verdict::Deny, reason)) => Decision::Deny(reason),
        Some((Verdict::Pass, _)) | None => Decision::Allow,
    }
}

/// The results of all rules, in the order in which [`decide`] evaluates them. A rule that applies
/// per limit has one result for each limit of the caller.
pub fn explain<'r>(rules: &'r Rules, caller: &'r Caller, entry: &'r Entry) -> Vec<RuleResult<'r>> {
    let question = PolicyQuery::new(rules.server(&entry.server().name), caller, entry);
    let mut is_open = true;
    let step = |(verdict, reason)| {
        let decides = verdict != Verdict::Pass && is_open;
        is_open = is_open && !decides;
        RuleResult { verdict, reason, decides }
    };
    STEPS.iter().flat_map(|judge| judge.answers(&question)).map(step).collect()
}

#[cfg(test)]
mod tests;
