//! Lists of items: `tools`, `prompts`, `resources`, `search`, `types`, `tokens` and `explain`.

use serde_json::Value;

use super::definitions::{flag, item, reason};
use super::keywords::{
    Member, count, document, list, map, nullable, number, object, reference, text, versioned, word,
};

/// Members of all lists.
fn of_lists() -> Vec<Member> {
    vec![
        ("hiddenCount", count(), "The number of hidden items."),
        ("hidden?", list(reference("hidden")), "With `--all`: the hidden items."),
        ("renamed?", list(reference("renamed")), "With `--all`: names that had to be changed."),
        ("setAside", list(reference("setAside")), "Items that servers sent and that are not used."),
    ]
    .into_iter()
    .chain(of_loaded_lists())
    .collect()
}

/// Members of all documents that are made from lists of servers.
fn of_loaded_lists() -> Vec<Member> {
    vec![
        ("failures", list(reference("failure")), "Servers whose items are missing."),
        ("remembered", list(text()), "Servers whose lists are those of an earlier run."),
        ("rememberedAt", map(text()), "When each of them sent its list, in UTC, as RFC 3339."),
    ]
}

pub(super) fn tools() -> Vec<Value> {
    let mut members = of_lists();
    members.push(("tools", list(item("Tool")), "The tools as a model gets them."));
    vec![document(&members)]
}

pub(super) fn prompts() -> Vec<Value> {
    let mut members = of_lists();
    members.push(("prompts", list(item("Prompt")), ""));
    vec![document(&members)]
}

pub(super) fn resources() -> Vec<Value> {
    let mut members = of_lists();
    members.push(("resources", list(item("Resource")), ""));
    members.push(("resourceTemplates", list(item("ResourceTemplate")), ""));
    vec![document(&members)]
}

pub(super) fn search() -> Vec<Value> {
    let hit = object(&[
        ("name", text(), ""),
        ("server", text(), ""),
        ("score", number(), "Higher is better; only to compare results of one search."),
        ("similar", list(text()), "Tools that are almost the same."),
        ("signature", text(), ""),
    ]);
    let mut members = of_loaded_lists();
    members.push(("tools", list(hit), "The best first."));
    vec![document(&members)]
}

pub(super) fn types() -> Vec<Value> {
    let mut members = of_loaded_lists();
    members.push(("language", word(&["ts", "py"]), ""));
    members.push(("source", text(), "The source text of the types."));
    vec![document(&members)]
}

pub(super) fn skill() -> Vec<Value> {
    let mut members = of_loaded_lists();
    members.push(("name", text(), "The name of the skill."));
    members.push(("text", text(), "The content of the skill file."));
    vec![document(&members)]
}

pub(super) fn tokens() -> Vec<Value> {
    let mut members = of_loaded_lists();
    members.extend([
        ("vocabulary", text(), ""),
        ("servers", map(map(count())), "The tokens of each tool, by server and tool."),
        ("resourcesAndPrompts", map(count()), "Tools for resources and prompts."),
        ("direct", count(), "All of them, in direct mode."),
        ("meta", count(), "The tools of meta mode."),
        ("configured", count(), "As the configuration says."),
    ]);
    vec![document(&members)]
}

pub(super) fn explain() -> Vec<Value> {
    let mut step = reason();
    step.push(("verdict", word(&["pass", "hide", "deny"]), ""));
    step.push(flag("decides", "Whether this is the rule that decides."));
    let renamed = object(&[("plain", text(), ""), ("reason", text(), "")]);
    let one = object(&[
        ("kind", text(), ""),
        ("name", text(), ""),
        ("server", text(), ""),
        ("own", text(), "The name that the server has for it."),
        ("renamed", nullable(renamed), "Why it does not have its plain name."),
        ("decision", word(&["allow", "pass", "hide", "deny"]), ""),
        ("steps", list(object(&step)), "Every rule, in order."),
    ]);
    let several = document(&[("several", list(one.clone()), "All items of that name.")]);
    vec![versioned(one), several]
}
