//! Tests of each rule, and of the order of evaluation.

use std::sync::Arc;

use super::*;
use crate::catalog::{Availability, Catalog, CatalogBuilder, Item, ItemKind, ServerItems};
use crate::config::{self, Access, Config};
use crate::message::Raw;
use crate::name::ServerName;

/// A configuration and the catalog of some tools: `server/tool` or `server/tool{annotations}`.
struct World {
    rules: Rules,
    catalog: Catalog,
}

fn item(kind: ItemKind, text: &str) -> Item {
    let (name, annotations) = match text.split_once("{\"") {
        Some((name, annotations)) => (name, format!("{{\"{annotations}")),
        None => (text, "{}".to_owned()),
    };
    let key = kind.name_key();
    let definition = format!(r#"{{"{key}":"{name}","annotations":{annotations}}}"#);
    Item::new(kind, name, Raw::from_text(&definition).unwrap())
}

impl World {
    fn new(text: &str, items: &[(&str, &[(ItemKind, &str)])]) -> Self {
        let loaded = config::parse("mcp.json", text);
        assert!(!loaded.has_errors(false), "{:?}", loaded.diagnostics);
        Self::of(&loaded.config, items, |_| Availability::Available)
    }

    fn of(
        config: &Config,
        items: &[(&str, &[(ItemKind, &str)])],
        availability: impl Fn(&str) -> Availability,
    ) -> Self {
        let mut sources = CatalogBuilder::new(config);
        for (server, items) in items {
            let name = ServerName::new(server).unwrap();
            let items = items.iter().map(|(kind, text)| item(*kind, text));
            sources.add(&name, Arc::new(ServerItems::new(items)));
            sources.set_availability(&name, availability(server));
        }
        let rules = Rules::new(config, config.agents().named.clone());
        Self { rules, catalog: Catalog::build(&sources) }
    }

    /// The tools that a caller sees.
    fn seen(&self, who: CallerSpec<'_>) -> Vec<&str> {
        let caller = self.rules.caller(who).unwrap();
        let allowed =
            |entry: &&Entry| matches!(decide(&self.rules, &caller, entry), Decision::Allow);
        self.catalog.entries(ItemKind::Tool).iter().filter(allowed).map(Entry::exposed).collect()
    }

    /// The reason why a caller does not see a tool, and the location of the rule.
    fn why(&self, who: CallerSpec<'_>, kind: ItemKind, exposed: &str) -> String {
        let caller = self.rules.caller(who).unwrap();
        let entry = self.catalog.get(kind, exposed).unwrap();
        match decide(&self.rules, &caller, entry) {
            Decision::Allow => "allowed".to_owned(),
            Decision::Hide(reason) | Decision::Deny(reason) => {
                let place = reason.location().map(|it| format!(" ({it})")).unwrap_or_default();
                format!("{}: {reason}{place}", reason.rule().as_str())
            }
        }
    }
}

const TOOLS: &[(ItemKind, &str)] = &[
    (ItemKind::Tool, "plain"),
    (ItemKind::Tool, r#"reads{"readOnlyHint":true}"#),
    (ItemKind::Tool, r#"writes{"readOnlyHint":false}"#),
    (ItemKind::Tool, r#"destroys{"destructiveHint":true}"#),
];

mod access;
mod limits;

#[test]
fn writing_tools_are_hidden_by_default() {
    let seen = |access: &str| {
        let text = format!(
            r#"{{ "access": "{access}", "servers": {{ "s": {{ "command": "x" }},
                 "w": {{ "command": "x", "access": "read-write" }} }} }}"#
        );
        World::new(&text, &[("s", TOOLS), ("w", &TOOLS[2..3])])
            .seen(CallerSpec::default())
            .join(" ")
    };
    assert_eq!(seen("read-only"), "s_plain s_reads w_writes");
    assert_eq!(seen("read-only-strict"), "s_reads w_writes");
    assert_eq!(seen("read-write"), "s_destroys s_plain s_reads s_writes w_writes");
}

#[test]
fn a_hidden_tool_has_a_reason_a_place_and_a_way_out() {
    let text = "{ \"access\": \"read-only\",\n\"servers\": { \"s\": { \"command\": \"x\" } } }";
    let world = World::new(text, &[("s", TOOLS)]);
    assert_eq!(
        world.why(CallerSpec::default(), ItemKind::Tool, "s_writes"),
        "access: it declares that it writes, and access is `read-only` (mcp.json:1:3)"
    );
    let caller = Caller::default();
    let entry = world.catalog.get(ItemKind::Tool, "s_writes").unwrap();
    let steps = explain(&world.rules, &caller, entry);
    let deciding: Vec<_> = steps.iter().filter(|step| step.decides).collect();
    assert_eq!(deciding.len(), 1);
    assert_eq!(deciding[0].reason.hint(), Some("set `\"access\": \"read-write\"` on the server"));
    assert_eq!(steps.len(), STEPS.len());
}

#[test]
fn the_lists_of_a_server_are_obeyed_and_deny_wins() {
    let text = r#"{ "servers": { "s": { "command": "x",
        "allowTools": ["plain", "reads"], "denyTools": ["reads"] } } }"#;
    let world = World::new(text, &[("s", TOOLS)]);
    assert_eq!(world.seen(CallerSpec::default()), ["s_plain"]);
    let why = world.why(CallerSpec::default(), ItemKind::Tool, "s_reads");
    assert_eq!(why, "tool lists: its server's `denyTools` names it (mcp.json:2:43)");
}

/// TOOL-12: lists and bundles apply to prompts and resources as they do to tools.
#[test]
fn lists_hold_for_everything_a_server_has() {
    let text = r#"{ "servers": { "s": { "command": "x", "denyTools": ["secret", "x://secret"] },
        "k": { "command": "x", "allowTools": ["a", "x://r"] } },
        "bundles": { "b": { "serverId": "s", "allowTools": ["p", "x://n"] } } }"#;
    let items: &[(ItemKind, &str)] = &[
        (ItemKind::Prompt, "p"),
        (ItemKind::Prompt, "secret"),
        (ItemKind::Resource, "x://secret"),
        (ItemKind::Resource, "x://open"),
        (ItemKind::ResourceTemplate, "x://n"),
    ];
    let listed: &[(ItemKind, &str)] =
        &[(ItemKind::Prompt, "a"), (ItemKind::Prompt, "b"), (ItemKind::Resource, "x://r")];
    let world = World::new(text, &[("s", items), ("k", listed)]);
    let why = |kind, exposed| world.why(CallerSpec::default(), kind, exposed);
    assert!(why(ItemKind::Prompt, "s_secret").starts_with("tool lists: "));
    assert!(why(ItemKind::Resource, "x://secret").starts_with("tool lists: "));
    assert!(why(ItemKind::Prompt, "k_b").starts_with("tool lists: "));
    assert_eq!(
        [why(ItemKind::Prompt, "k_a"), why(ItemKind::Resource, "x://r")],
        ["allowed", "allowed"]
    );
    let bundled = |kind, exposed| {
        world.why(CallerSpec { bundles: &["b"], ..CallerSpec::default() }, kind, exposed)
    };
    assert!(bundled(ItemKind::Resource, "x://open").starts_with("bundles: "));
    assert_eq!(bundled(ItemKind::Prompt, "s_p"), "allowed");
    assert_eq!(bundled(ItemKind::ResourceTemplate, "x://n"), "allowed");
}

#[test]
fn nothing_of_an_untrusted_server_is_seen_that_no_list_names() {
    let items: &[(ItemKind, &str)] = &[
        (ItemKind::Tool, "a"),
        (ItemKind::Tool, "b"),
        (ItemKind::Resource, "x://r"),
        (ItemKind::Prompt, "p"),
    ];
    let without = r#"{ "servers": { "s": { "command": "x", "trust": "untrusted" } } }"#;
    let world = World::new(without, &[("s", items)]);
    assert!(world.seen(CallerSpec::default()).is_empty());
    let with =
        r#"{ "servers": { "s": { "command": "x", "trust": "untrusted", "allowTools": ["a"] } } }"#;
    let world = World::new(with, &[("s", items)]);
    assert_eq!(world.seen(CallerSpec::default()), ["s_a"]);
    assert!(world.why(CallerSpec::default(), ItemKind::Resource, "x://r").starts_with("trust: "));
    assert!(world.why(CallerSpec::default(), ItemKind::Prompt, "s_p").starts_with("trust: "));
}

#[test]
fn a_bundle_may_be_the_list_of_an_untrusted_server() {
    let text = r#"{ "servers": { "s": { "command": "x", "trust": "untrusted" } },
        "bundles": { "b": { "serverId": "s", "allowTools": ["a"] } } }"#;
    let world = World::new(text, &[("s", &[(ItemKind::Tool, "a"), (ItemKind::Tool, "b")])]);
    assert!(world.seen(CallerSpec::default()).is_empty());
    assert_eq!(world.seen(CallerSpec { bundles: &["b"], ..CallerSpec::default() }), ["s_a"]);
}

#[test]
fn an_untrusted_server_is_not_believed_under_the_strict_guard() {
    let text = r#"{ "access": "read-only-strict", "servers": { "s": {
        "command": "x", "trust": "untrusted", "allowTools": ["reads"] } } }"#;
    let world = World::new(text, &[("s", TOOLS)]);
    assert!(world.why(CallerSpec::default(), ItemKind::Tool, "s_reads").contains("not believed"));
}

/// BUN-2, with the example of SPEC 010.
#[test]
fn bundles_intersect_and_deny_wins() {
    let text = r#"{ "access": "read-write", "servers": { "repo": { "command": "x" }, "o": { "command": "x" } },
        "bundles": {
          "edit": { "serverId": "repo", "allowTools": ["read", "write", "delete"], "denyTools": ["delete"] },
          "read": { "serverId": "repo", "allowTools": ["read", "search"] },
          "find": { "serverId": "repo", "allowTools": ["search"] },
          "all":  { "serverId": "o" } } }"#;
    let repo: &[_] = &["read", "write", "delete", "search"].map(|name| (ItemKind::Tool, name));
    let world = World::new(text, &[("repo", repo), ("o", &[(ItemKind::Tool, "t")])]);
    let seen = |bundles| world.seen(CallerSpec { bundles, ..CallerSpec::default() }).join(" ");
    assert_eq!(seen(&["edit"]), "repo_read repo_write");
    assert_eq!(seen(&["edit", "read"]), "repo_read");
    assert_eq!(seen(&["edit", "find"]), "");
    assert_eq!(seen(&["find", "all"]), "o_t repo_search");
}

/// The examples of BooCode's design.
#[test]
fn the_last_matching_pattern_of_an_agent_wins() {
    let text = r#"{ "servers": { "context7": { "command": "x" }, "web": { "command": "x" } },
        "agents": { "all": { "tools": ["*"] }, "none": { "tools": [] }, "free": {},
                    "noweb": { "tools": ["*", "!web_*"] },
                    "docs": { "tools": ["view_file", "grep", "context7_*"] },
                    "back": { "tools": ["*", "!web_*", "web_fetch"] } } }"#;
    let tools: &[_] = &[(ItemKind::Tool, "query-docs")];
    let web: &[_] = &[(ItemKind::Tool, "search"), (ItemKind::Tool, "fetch")];
    let world = World::new(text, &[("context7", tools), ("web", web)]);
    let seen =
        |agent| world.seen(CallerSpec { agent: Some(agent), ..CallerSpec::default() }).join(" ");
    assert_eq!(seen("all"), "context7_query-docs web_fetch web_search");
    assert_eq!(seen("free"), seen("all"));
    assert_eq!(seen("none"), "");
    assert_eq!(seen("noweb"), "context7_query-docs");
    assert_eq!(seen("docs"), "context7_query-docs");
    assert_eq!(seen("back"), "context7_query-docs web_fetch");
    let why = world.why(
        CallerSpec { agent: Some("noweb"), ..CallerSpec::default() },
        ItemKind::Tool,
        "web_search",
    );
    assert_eq!(why, "agent: the last pattern that matches is `!web_*` (mcp.json:3:47)");
}

#[test]
fn patterns_mean_a_name_also_without_its_digest_but_never_anothers() {
    let text = r#"{ "servers": { "a": { "command": "x" }, "a_b": { "command": "x" } },
        "agents": { "other": { "tools": ["a_b_*"] }, "not": { "tools": ["*", "!a_b_c"] },
                    "long": { "tools": ["a_LONG"] } } }"#;
    let long = "t".repeat(80);
    let text = text.replace("LONG", &long);
    let world = World::new(&text, &[("a", &[(ItemKind::Tool, "b_c"), (ItemKind::Tool, &long)])]);
    let seen = |agent| world.seen(CallerSpec { agent: Some(agent), ..CallerSpec::default() });
    assert!(seen("other").is_empty());
    assert_eq!(seen("not").len(), 1);
    assert_eq!(seen("long").len(), 1);
}

#[test]
fn a_server_can_be_switched_off_and_be_down() {
    let text = r#"{ "servers": { "on": { "command": "x" }, "off": { "command": "x", "enabled": false },
        "down": { "command": "x" } }, "agents": { "a": { "tools": ["on_*"] } } }"#;
    let config = config::parse("mcp.json", text).config;
    let tool: &[_] = &[(ItemKind::Tool, "t")];
    let availability = |server: &str| match server {
        "down" => Availability::Down("it ended".into()),
        _ => Availability::Available,
    };
    let world = World::of(&config, &[("on", tool), ("off", tool), ("down", tool)], availability);
    assert_eq!(world.seen(CallerSpec::default()), ["on_t"]);
    let why = |agent, exposed| {
        world.why(CallerSpec { agent, ..CallerSpec::default() }, ItemKind::Tool, exposed)
    };
    assert_eq!(why(None, "off_t"), "server: its server is switched off (mcp.json:1:67)");
    assert_eq!(why(None, "down_t"), "available: server `down` is down: it ended");
    // A caller that may not see an item does not learn that its server is down.
    assert!(why(Some("a"), "down_t").starts_with("agent: "));
    let mut switches = Toggles::default();
    let on = ServerName::new("on").unwrap();
    switches.set(&on, Toggle::Off);
    let off = CallerSpec { switches: switches.clone(), ..CallerSpec::default() };
    assert!(world.why(off, ItemKind::Tool, "on_t").starts_with("conversation: "));
    switches.set(&on, Toggle::On);
    assert_eq!(world.seen(CallerSpec { switches, ..CallerSpec::default() }), ["on_t"]);
}

#[test]
fn servers_without_admitted_items_are_known_before_start() {
    let text = r#"{ "servers": { "a": { "command": "x" }, "a_b": { "command": "x" },
        "bare": { "command": "x", "prefix": "" } },
        "bundles": { "b": { "serverId": "a", "allowTools": ["t"] } },
        "agents": { "plain": { "tools": ["a_b_t"] }, "stars": { "tools": ["*_t", "!a_*"] },
                    "start": { "tools": ["a_b*"] }, "not": { "tools": ["!a_*"] },
                    "other": { "tools": ["z_*"] }, "all": {} } }"#;
    let world = World::new(text, &[]);
    let servers = ["a", "a_b", "bare"].map(|name| ServerName::new(name).unwrap());
    let held = |who: CallerSpec<'_>| {
        let caller = world.rules.caller(who).unwrap();
        let prefix = |server| world.catalog.namespaces().prefix(server).unwrap();
        let held = servers.iter().filter(|server| caller.may_have(server, prefix(server)));
        held.map(ServerName::as_str).collect::<Vec<_>>()
    };
    let agent = |name| held(CallerSpec { agent: Some(name), ..CallerSpec::default() });
    assert_eq!(agent("plain"), ["a", "a_b", "bare"]);
    assert_eq!(agent("stars"), ["a", "a_b", "bare"]);
    assert_eq!(agent("start"), ["a", "a_b", "bare"]);
    assert_eq!(agent("not"), [""; 0]);
    assert_eq!(agent("other"), ["bare"]);
    assert_eq!(agent("all"), ["a", "a_b", "bare"]);
    assert_eq!(held(CallerSpec { bundles: &["b"], ..CallerSpec::default() }), ["a"]);
    let mut switches = Toggles::default();
    switches.set(&servers[0], Toggle::Off);
    assert_eq!(held(CallerSpec { switches, ..CallerSpec::default() }), ["a_b", "bare"]);
}

#[test]
fn unknown_names_are_reported_with_known_ones() {
    let text = r#"{ "agents": { "reviewer": {} } }"#;
    let world = World::new(text, &[]);
    let unknown = |who| world.rules.caller(who).unwrap_err().to_string();
    assert_eq!(
        unknown(CallerSpec { agent: Some("reviwer"), ..CallerSpec::default() }),
        "there is no agent `reviwer`; did you mean `reviewer`?"
    );
    assert_eq!(
        unknown(CallerSpec { bundles: &["b"], ..CallerSpec::default() }),
        "there is no bundle `b`"
    );
}

#[test]
fn explaining_and_deciding_agree() {
    let text = r#"{ "servers": { "s": { "command": "x", "denyTools": ["plain"] },
        "u": { "command": "x", "trust": "untrusted", "allowTools": ["reads", "writes"] } },
        "bundles": { "b": { "serverId": "s", "denyTools": ["reads"] } },
        "agents": { "a": { "tools": ["s_*", "!*_reads"] } } }"#;
    let world = World::new(text, &[("s", TOOLS), ("u", TOOLS)]);
    for agent in [None, Some("a")] {
        for bundles in [&[][..], &["b"]] {
            let who = CallerSpec { agent, bundles, ..CallerSpec::default() };
            let caller = world.rules.caller(who).unwrap();
            for entry in world.catalog.entries(ItemKind::Tool) {
                let steps = explain(&world.rules, &caller, entry);
                let deciding = steps.iter().find(|step| step.decides).map(|it| it.reason.rule());
                let decided = match decide(&world.rules, &caller, entry) {
                    Decision::Allow => None,
                    Decision::Hide(reason) | Decision::Deny(reason) => Some(reason.rule()),
                };
                assert_eq!(deciding, decided);
            }
        }
    }
}
