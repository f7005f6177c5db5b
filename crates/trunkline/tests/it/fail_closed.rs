//! BUN-2, TOOL-6: a rule with a mistake never shows more than the correct rule.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use trunkline::catalog::{Catalog, CatalogBuilder, Item, ItemKind, ServerItems};
use trunkline::config::{
    self, Agent, AgentFile, Code, Environment, LoadOptions, LoadedConfig, Overrides,
};
use trunkline::message::Raw;
use trunkline::name::AgentName;
use trunkline::policy::{Caller, CallerSpec, Decision, Rules, Toggle, Toggles, decide};

/// Tools that a caller sees, as `server/tool`; nothing for a caller that is refused.
pub(crate) type Visible = BTreeSet<String>;

fn listing() -> Arc<ServerItems> {
    let item = |(name, definition): (&str, &str)| {
        Item::new(ItemKind::Tool, name, Raw::from_text(definition).unwrap())
    };
    let tools = [
        ("read", r#"{"name":"read","annotations":{"readOnlyHint":true}}"#),
        ("write", r#"{"name":"write","annotations":{"readOnlyHint":false}}"#),
        ("list", r#"{"name":"list"}"#),
    ];
    Arc::new(ServerItems::new(tools.map(item)))
}

pub(crate) fn visible(loaded: &LoadedConfig, who: CallerSpec<'_>) -> Visible {
    visible_with(loaded, loaded.config.agents().named.clone(), who)
}

/// The same, with other agents.
pub(crate) fn visible_with(
    loaded: &LoadedConfig,
    agents: BTreeMap<AgentName, Agent>,
    who: CallerSpec<'_>,
) -> Visible {
    let rules = Rules::new(&loaded.config, agents);
    let Ok(caller) = rules.caller(who) else { return Visible::new() };
    seen_by(loaded, &rules, &caller)
}

fn seen_by(loaded: &LoadedConfig, rules: &Rules, caller: &Caller) -> Visible {
    let mut sources = CatalogBuilder::new(&loaded.config);
    for server in loaded.config.servers() {
        sources.add(&server.name, listing());
    }
    let catalog = Catalog::build(&sources);
    let allowed = catalog
        .entries(ItemKind::Tool)
        .iter()
        .filter(|entry| matches!(decide(rules, caller, entry), Decision::Allow));
    allowed.map(|entry| format!("{}/{}", entry.server().name, entry.name())).collect()
}

/// The tools of `fs` that are visible with a list of the server, and with the same list of a
/// bundle.
fn seen_with_list(key: &str, entries: &str) -> [Visible; 2] {
    let list = format!(r#""{key}": {entries}"#);
    let of_server =
        config::parse("x", format!(r#"{{ "servers": {{ "fs": {{ "command": "x", {list} }} }} }}"#));
    let of_bundle = config::parse(
        "x",
        format!(
            r#"{{ "servers": {{ "fs": {{ "command": "x" }} }},
                  "bundles": {{ "b": {{ "serverId": "fs", {list} }} }} }}"#
        ),
    );
    [
        visible(&of_server, CallerSpec::default()),
        visible(&of_bundle, CallerSpec { bundles: &["b"], ..CallerSpec::default() }),
    ]
}

/// BUN-2: `*` matches any characters in both lists, and a deny-list also accepts exposed names.
#[test]
fn lists_match_own_names_and_patterns_of_them() {
    let all: &[&str] = &["fs/list", "fs/read", "fs/write"];
    for (key, entries, expected) in [
        ("denyTools", r#"["*"]"#, &[][..]),
        ("denyTools", r#"["w*"]"#, &["fs/list", "fs/read"]),
        ("denyTools", r#"["*i*"]"#, &["fs/read"]),
        ("denyTools", r#"["fs_write"]"#, &["fs/list", "fs/read"]),
        ("denyTools", r#"["nothing"]"#, all),
        ("denyTools", "[]", all),
        ("allowTools", r#"["*"]"#, all),
        ("allowTools", r#"["r*", "*st"]"#, &["fs/list", "fs/read"]),
        ("allowTools", r#"["fs_read"]"#, &[]),
    ] {
        for seen in seen_with_list(key, entries) {
            assert_eq!(seen.iter().collect::<Vec<_>>(), expected, "{key}: {entries}");
        }
    }
    for mistake in ["**", "!write", " write", "write ", "", "writ?", "a!b", "\u{a0}write"] {
        for key in ["allowTools", "denyTools"] {
            for seen in seen_with_list(key, &json!(["read", mistake]).to_string()) {
                assert_eq!(seen, Visible::new(), "{key}: {mistake:?}");
            }
        }
    }
}

/// An exposed name that is also an upstream name means only the latter.
#[test]
fn an_exposed_name_is_denied_where_it_is_unambiguous() {
    let text = r#"{ "servers": { "fs": { "command": "x", "denyTools": ["fs_read"] } } }"#;
    let loaded = config::parse("x", text);
    let rules = Rules::new(&loaded.config, BTreeMap::new());
    let seen = |names: &[&str]| {
        let item = |name: &&str| {
            let definition = Raw::from_value(&json!({ "name": name }));
            Item::new(ItemKind::Tool, name, definition)
        };
        let mut sources = CatalogBuilder::new(&loaded.config);
        let listing = ServerItems::new(names.iter().map(item));
        sources.add(&loaded.config.server("fs").unwrap().name, Arc::new(listing));
        let catalog = Catalog::build(&sources);
        let entries = catalog.entries(ItemKind::Tool).iter();
        let caller = Caller::default();
        let shown = entries.filter(|it| matches!(decide(&rules, &caller, it), Decision::Allow));
        shown.map(|it| it.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(seen(&["read", "list"]), ["list"]);
    assert_eq!(seen(&["read", "fs_read"]), ["read"]);
}

/// An allow-list of an untrusted server has to be more specific than "everything".
#[test]
fn a_pattern_names_tools_of_an_untrusted_server_and_a_star_does_not() {
    for (entries, expected) in [(r#"["*"]"#, 0), (r#"["r*"]"#, 1), (r#"["*", "read"]"#, 0)] {
        let text = format!(
            r#"{{ "servers": {{ "fs": {{ "command": "x", "trust": "untrusted", "allowTools": {entries} }} }} }}"#
        );
        let seen = visible(&config::parse("x", &text), CallerSpec::default());
        assert_eq!(seen.len(), expected, "{entries}");
    }
}

#[test]
fn a_bundle_with_a_mistake_shows_nothing_and_is_named() {
    for tools in ["[]", "\"x\"", "[7]", "null"] {
        let text = format!(
            r#"{{ "servers": {{ "fs": {{ "command": "x" }} }},
                  "bundles": {{ "b": {{ "serverId": "fs", "allowTools": {tools} }} }} }}"#
        );
        let loaded = config::parse("x", &text);
        assert_eq!(loaded.config.bundles().len(), 0, "{tools}");
        assert_eq!(loaded.config.disabled_bundles()[0].as_str(), "b", "{tools}");
        let rules = Rules::new(&loaded.config, loaded.config.agents().named.clone());
        let refused =
            rules.caller(CallerSpec { bundles: &["b"], ..CallerSpec::default() }).unwrap_err();
        assert_eq!(refused.to_string(), "bundle `b` is disabled because its entry has errors");
        assert_eq!(loaded.config.to_json()["disabledBundles"], json!(["b"]));
    }
}

#[test]
fn an_agent_with_a_mistake_shows_nothing_and_is_named() {
    for tools in ["[7]", "7", "null", "[\"fs_?\"]"] {
        let text = format!(
            r#"{{ "servers": {{ "fs": {{ "command": "x" }} }}, "agents": {{ "a": {{ "tools": {tools} }} }} }}"#
        );
        let loaded = config::parse("x", &text);
        assert!(loaded.config.agents().named["a"].is_disabled, "{tools}");
        let rules = Rules::new(&loaded.config, loaded.config.agents().named.clone());
        let refused =
            rules.caller(CallerSpec { agent: Some("a"), ..CallerSpec::default() }).unwrap_err();
        assert_eq!(refused.to_string(), "agent `a` is disabled because its entry has errors");
        assert_eq!(loaded.config.to_json()["agents"]["a"]["disabled"], Value::Bool(true));
    }
}

#[test]
fn names_that_are_written_twice_are_disabled() {
    let text = r#"{ "servers": { "fs": { "command": "x" } },
        "bundles": { "b": { "serverId": "fs", "allowTools": ["read"] }, "b": { "serverId": "fs" } },
        "agents": { "a": { "tools": ["fs_read"] }, "a": {} } }"#;
    let loaded = config::parse("x", text);
    assert_eq!(loaded.config.disabled_bundles().len(), 1);
    assert!(loaded.config.agents().named["a"].is_disabled);
}

#[test]
fn an_agent_file_with_a_mistake_disables_its_agent() {
    for text in ["---\nname: a\ntool: [x]\n---\n", "---\nname: a\ntools: [[b]]\n---\n"] {
        let loaded = config::parse_agents("AGENTS.md", text, AgentFile::Several);
        assert!(loaded.agents["a"].is_disabled, "{text}");
    }
    let unclosed = "---\ntools: [x\n---\n";
    let loaded = config::parse_agents("a.md", unclosed, AgentFile::One("a"));
    assert!(loaded.agents["a"].is_disabled);
}

/// An unreadable entry of a map may be the one that denies a tool.
#[test]
fn a_map_of_tools_with_one_unreadable_value_disables_its_agent() {
    for value in ["no", "off", "0", "{a: b}", "", "[]", "'false'", "true\n  fs_write: false"] {
        let text = format!("---\nname: a\ntools:\n  '*': true\n  fs_write: {value}\n---\n");
        let loaded = config::parse_agents("AGENTS.md", &text, AgentFile::Several);
        assert!(loaded.agents["a"].is_disabled, "{text}");
        assert!(loaded.diagnostics.iter().any(|found| found.is_error(false)), "{text}");
    }
    let text = "---\nname: a\ntools:\n  '*': true\n  fs_write: false\n---\n";
    let agent = &config::parse_agents("AGENTS.md", text, AgentFile::Several).agents["a"];
    assert!(agent.includes("fs_read") && !agent.includes("fs_write"));
}

/// All visible tools, with this member at the top level, in the server, in the bundle or in the
/// agent.
fn seen_with(place: &str, member: &str) -> Visible {
    let at = |here: &str| match here == place {
        true => format!(", {member}"),
        false => String::new(),
    };
    let agent = if place == "agent" { member } else { "" };
    let text = format!(
        r#"{{ "servers": {{ "fs": {{ "command": "x"{} }} }},
              "bundles": {{ "b": {{ "serverId": "fs"{} }} }}, "agents": {{ "a": {{ {agent} }} }}{} }}"#,
        at("server"),
        at("bundle"),
        at("top"),
    );
    let who = match place {
        "bundle" => CallerSpec { bundles: &["b"], ..CallerSpec::default() },
        "agent" => CallerSpec { agent: Some("a"), ..CallerSpec::default() },
        _ => CallerSpec::default(),
    };
    let loaded = config::parse("x", &text);
    let seen = visible(&loaded, who);
    let is_said = loaded.diagnostics.iter().any(|found| found.is_error(false));
    assert!(is_said || seen.len() < 3, "nothing is said of {text}");
    seen
}

/// A limit under another name, or in an unsupported place, is applied or rejected, never ignored.
#[test]
fn a_limit_under_another_word_is_never_passed_over() {
    let lists = ["tools", "include", "allow", "allowedTools", "allowed-tools", "whitelist"];
    let denials =
        ["deny", "disabledTools", "denied_tools", "exclude", "disallowedTools", "blocklist"];
    let others = [
        r#""access": "read-only""#,
        r#""readOnly": true"#,
        r#""enabled": false"#,
        r#""disabled": true"#,
        r#""disable": true"#,
        r#""permission": { "*": "deny" }"#,
        r#""trusted": false"#,
    ];
    let read: Visible = ["fs/read".to_owned()].into();
    for place in ["top", "server", "bundle", "agent"] {
        for key in lists {
            let entry = if place == "agent" { "fs_read" } else { "read" };
            let seen = seen_with(place, &format!(r#""{key}": ["{entry}"]"#));
            assert!(seen.is_subset(&read), "{key} at {place} shows {seen:?}");
        }
        for key in denials {
            let seen = seen_with(place, &format!(r#""{key}": ["write"]"#));
            assert!(!seen.contains("fs/write"), "{key} at {place} shows {seen:?}");
        }
        for member in others {
            // At the top level this is opencode's own rule; a warning reports that it is not
            // applied.
            if place == "top" && member.contains("permission") {
                continue;
            }
            let seen = seen_with(place, member);
            assert!(!seen.contains("fs/write"), "{member} at {place} shows {seen:?}");
        }
    }
    assert_eq!(seen_with("server", r#""trust": false"#), Visible::new());
    assert_eq!(seen_with("top", r#""permission": "deny""#), Visible::new());
}

/// Keys that are not limits, or that disable nothing, have no effect.
#[test]
fn keys_that_limit_nothing_are_hints() {
    for text in [
        r#"{ "mcpServers": { "fs": { "command": "x", "alwaysAllow": ["read"], "isActive": true, "trust": false } } }"#,
        r#"{ "mcp": { "fs": { "type": "local", "command": ["x"] } }, "share": "manual",
             "enabled_providers": [], "tools": { "bash": false }, "permission": "ask" }"#,
        r#"{ "servers": { "fs": { "command": "x" } }, "active": true }"#,
    ] {
        let seen = visible(&config::parse("x", text), CallerSpec::default());
        assert_eq!(seen.len(), 3, "{text}");
    }
}

/// An unreadable setting for all servers disables the servers that would use it.
#[test]
fn a_setting_that_cannot_be_read_disables_the_servers_that_use_it() {
    for (mistake, own) in [
        (r#""redact": "yes""#, r#""redact": false"#),
        (r#""redact": 1"#, r#""redact": true"#),
        (r#""redact": null"#, r#""redact": true"#),
        (r#""redct": true"#, r#""redact": true"#),
        (r#""Redact": true"#, r#""redact": true"#),
        (r#""redact": true, "redact": false"#, r#""redact": true"#),
        (r#""share": "per-clint""#, r#""share": "all""#),
        (r#""share": "manual""#, r#""share": "all""#),
        (r#""shares": "per-client""#, r#""share": "all""#),
        (r#""restart": "nver""#, r#""restart": "never""#),
        (r#""restart": { "policy": "nver" }"#, r#""restart": "never""#),
        (r#""concurrency": 0"#, r#""concurrency": 1"#),
        (r#""maxResultBytes": "much""#, r#""maxResultBytes": 10"#),
        (r#""inheritEnv": "AWS_*""#, r#""inheritEnv": []"#),
        (r#""idleTimeout": "soon""#, r#""idleTimeout": "1m""#),
        (r#""toolsTtlMs": -1"#, r#""toolsTtlMs": 1"#),
        (r#""connect": "layz""#, r#""connect": "lazy""#),
        (r#""protocol": "old""#, r#""protocol": "auto""#),
    ] {
        let text = format!(
            r#"{{ "servers": {{ "uses": {{ "command": "x" }}, "own": {{ "command": "x", {own} }} }}, {mistake} }}"#
        );
        let loaded = config::parse("x", &text);
        let servers: Vec<_> = loaded.config.servers().map(|it| it.name.as_str()).collect();
        assert_eq!(servers, ["own"], "{mistake}");
        assert_eq!(loaded.config.broken()[0].as_str(), "uses", "{mistake}");
        assert!(loaded.diagnostics.iter().any(|found| found.code == Code::Disabled), "{mistake}");
    }
}

/// A setting of a higher layer replaces a mistake in a lower one.
#[test]
fn a_setting_of_a_higher_layer_replaces_one_that_cannot_be_read() {
    let file = File(r#"{ "servers": { "fs": { "command": "x" } }, "redact": "yes" }"#);
    let over = |text: &str| {
        let overrides = Some(Overrides::Text(text.to_owned()));
        let path = Some("mcp.json".into());
        config::load(&file, &LoadOptions { path, overrides, ..LoadOptions::default() }).config
    };
    assert_eq!(over("{}").servers().len(), 0);
    assert_eq!(over(r#"{ "redact": true }"#).servers().len(), 1);
    assert_eq!(over(r#"{ "redact": 7 }"#).servers().len(), 0);
}

/// Limits of Claude Code and opencode in an agent file are applied, and unreadable ones rejected.
#[test]
fn limits_of_other_hosts_in_an_agent_file_are_applied() {
    for (keys, shown, hidden) in [
        ("disallowedTools: [fs_write]", "fs_read", "fs_write"),
        ("disallowedTools: fs_write, Bash(rm:*)", "Bash", "fs_write"),
        ("tools: fs_*\ndisallowedTools: fs_write", "fs_read", "fs_write"),
        ("allowed-tools: fs_read", "fs_read", "fs_write"),
        ("allowedTools: [fs_read]", "fs_read", "fs_write"),
        ("permission:\n  edit: deny\n  bash:\n    git push: deny", "bash", "edit"),
        ("permission:\n  fs_w*: deny\n  fs_read: ask", "fs_read", "fs_write"),
    ] {
        let text = format!("---\nname: a\n{keys}\n---\n");
        let agent = &config::parse_agents("AGENTS.md", &text, AgentFile::Several).agents["a"];
        assert!(agent.includes(shown) && !agent.includes(hidden), "{keys}: {agent:?}");
    }
    for keys in [
        "disallowedTools: [[fs_write]]",
        "disallowedTools: [mcp__fs__write]",
        "permission: 7",
        "permission:\n  fs_write: no",
        "tools: [fs_read]\nallowed-tools: [fs_write]",
        "denyTools: [fs_write]",
        "include: [fs_read]",
        "disable: true",
        "enabled: false",
        "read-only: true",
    ] {
        let text = format!("---\nname: a\n{keys}\n---\n");
        let agent = &config::parse_agents("AGENTS.md", &text, AgentFile::Several).agents["a"];
        assert!(agent.is_disabled, "{keys}");
    }
}

/// A misspelt key that only agent files have, or another name of a limit, disables the agent.
#[test]
fn a_misspelt_limit_in_an_agent_file_disables_its_agent() {
    for keys in [
        "disalowedTools: [fs_write]",
        "disallowedTolls: [fs_write]",
        "dissallowedTools: fs_write",
        "alowed-tools: [fs_read]",
        "alowedTools: [fs_read]",
        "permision:\n  fs_write: deny",
        "only: [fs_read]",
        "bundle: b",
        "bundles: [b]",
        "servers: [fs]",
        "tool_allowlist: [fs_read]",
        "tools-deny: [fs_write]",
    ] {
        let text = format!("---\nname: a\n{keys}\n---\n");
        let loaded = config::parse_agents("AGENTS.md", &text, AgentFile::Several);
        assert!(loaded.agents["a"].is_disabled, "{keys}");
        assert!(loaded.diagnostics.iter().any(|found| found.is_error(false)), "{keys}");
    }
    // Claude Code connects these servers in addition to the others.
    let text = "---\nname: a\nmcpServers: [fs]\n---\n";
    let loaded = config::parse_agents("AGENTS.md", text, AgentFile::Several);
    assert!(!loaded.agents["a"].is_disabled);
    assert_eq!(loaded.diagnostics[0].code, Code::NotApplied);
    for keys in ["permissionMode: plan", "model: opus", "color: red", "disabled_providers: [x]"] {
        let text = format!("---\nname: a\n{keys}\n---\n");
        let loaded = config::parse_agents("AGENTS.md", &text, AgentFile::Several);
        assert!(loaded.diagnostics.is_empty(), "{keys}: {:?}", loaded.diagnostics);
    }
}

/// Limits in nested objects, with a `$`, misspelt in an unsupported place, and in a settings
/// object.
#[test]
fn a_limit_in_another_place_or_with_a_slip_is_never_passed_over() {
    for member in [
        r#""settings": { "access": "read-only" }"#,
        r#""defaults": { "denyTools": ["write"] }"#,
        r#""policy": "read-only""#,
        r#""mode": "readOnly""#,
        r#""denyToolss": ["write"]"#,
        r#""disabledTool": ["write"]"#,
        r#""$denyTools": ["write"]"#,
        r#""restart": { "polcy": "never" }"#,
    ] {
        let seen = seen_with("top", member);
        assert_eq!(seen, Visible::new(), "{member}");
    }
    let read: Visible = ["fs/read".to_owned()].into();
    assert_eq!(seen_with("top", r#""$access": "read-write""#), read, "taken for the strictest");
    for (place, member) in [
        ("server", r#""$denyTools": ["write"]"#),
        ("server", r#""restart": { "polcy": "never" }"#),
        ("bundle", r#""only": ["read"]"#),
        ("bundle", r#""$allowTools": ["read"]"#),
        ("agent", r#""disalowedTools": ["fs_write"]"#),
        ("agent", r#""servers": ["fs"]"#),
        ("agent", r#""bundles": ["b"]"#),
    ] {
        assert_eq!(seen_with(place, member), Visible::new(), "{place}: {member}");
    }
    let text = "---\nname: a\nmode: read-only\n---\n";
    assert!(config::parse_agents("AGENTS.md", text, AgentFile::Several).agents["a"].is_disabled);
    for member in [r#""$comment": "x""#, r#""_tools": ["read"]"#, r#""settings": { "a": 1 }"#] {
        let text = format!(r#"{{ "servers": {{ "fs": {{ "command": "x" }} }}, {member} }}"#);
        let seen = visible(&config::parse("x", &text), CallerSpec::default());
        assert_eq!(seen.len(), 3, "{member}");
    }
}

#[test]
fn lists_of_another_host_that_cannot_be_read_switch_everything_off() {
    for rule in [
        r#""allowed": [7]"#,
        r#""allowed": "fs""#,
        r#""excluded": 7"#,
        r#""alowed": ["x"], "excluded": []"#,
        r#""excluded": ["f*"]"#,
        r#""excluded": [" fs"]"#,
        r#""allowed": ["fs", "!web"]"#,
    ] {
        let text =
            format!(r#"{{ "mcpServers": {{ "fs": {{ "command": "x" }} }}, "mcp": {{ {rule} }} }}"#);
        let loaded = config::parse("settings.json", &text);
        assert_eq!(visible(&loaded, CallerSpec::default()), Visible::new(), "{rule}");
    }
}

pub(crate) struct File(pub(crate) &'static str);

impl Environment for File {
    fn variable(&self, _: &str) -> Option<OsString> {
        None
    }

    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Ok(self.0.as_bytes().to_vec())
    }
}

#[test]
fn a_layer_that_cannot_be_read_disables_what_is_below_it() {
    let file = File(r#"{ "servers": { "fs": { "command": "x" } }, "agents": { "a": {} } }"#);
    let over = |text: &str| {
        let overrides = Some(Overrides::Text(text.to_owned()));
        let path = Some("mcp.json".into());
        config::load(&file, &LoadOptions { path, overrides, ..LoadOptions::default() })
    };
    let loaded = over("{}");
    assert!(!visible(&loaded, CallerSpec::default()).is_empty());
    for text in ["7", "{ \"servers\": 7 }", "{ \"servers\": { \"fs\": { \"enabled\": fal"] {
        let loaded = over(text);
        assert_eq!(visible(&loaded, CallerSpec::default()), Visible::new(), "{text}");
    }
    let loaded = over("{ \"servers\": 7 }");
    let codes: Vec<_> = loaded.diagnostics.iter().map(|found| found.code).collect();
    assert_eq!(codes, [Code::WrongType, Code::Disabled]);
    let loaded = over("{ \"agents\": 7 }");
    assert!(loaded.config.agents().named["a"].is_disabled);
    assert!(!visible(&loaded, CallerSpec::default()).is_empty());
}

#[test]
fn patterns_are_not_applied_to_names_they_were_not_written_for() {
    let text = r#"{ "servers": { "fs": { "command": "x" } }, "naming": { "separator": "é" },
                    "agents": { "a": { "tools": ["*", "!fs__read"] }, "all": {} } }"#;
    let loaded = config::parse("x", text);
    assert!(loaded.config.agents().named["a"].is_disabled);
    assert!(!loaded.config.agents().named["all"].is_disabled);
}

#[test]
fn a_conversation_with_a_mistake_switches_everything_off() {
    let fs = trunkline::name::ServerName::new("fs").unwrap();
    for text in [r#"{"servers": {"fs": "off"}}"#, r#"{"sevrers": {"fs": false}}"#, "{", "7"] {
        let switches = Toggles::from(&config::parse_toggles("talk.json", text));
        assert_eq!(switches.get(&fs), Toggle::Off, "{text}");
    }
}

/// BUN-3, TOOL-14: a wrong value is an error, switches nothing on, and disables its agent or bundle.
#[test]
fn wrong_settings_of_the_tool_surface_switch_nothing_on() {
    for wrong in [r#""resourcesAsTools":"yes""#, r#""promptsAsTools":1"#, r#""mode":"metta""#] {
        let text = format!(
            r#"{{"servers":{{"s":{{"command":"x"}}}},{wrong},
                "agents":{{"a":{{{wrong}}}}},"bundles":{{"b":{{"serverId":"s",{wrong}}}}}}}"#
        );
        let loaded = config::parse("test", text);
        assert!(loaded.has_errors(false), "{wrong}: {:?}", loaded.diagnostics);
        assert_eq!(loaded.config.tool_surface(), config::ToolSurface::default(), "{wrong}");
        assert!(loaded.config.agents().named["a"].is_disabled, "{wrong}");
        assert_eq!(loaded.config.disabled_bundles().len(), 1, "{wrong}");
    }
    let text = r#"{"servers":{"s":{"command":"x"}},"resourcesAsTools":true,"promptsAsTools":true,
        "agents":{"a":{"mode":"meta","resourcesAsTools":false}},
        "bundles":{"b":{"serverId":"s","promptsAsTools":false}}}"#;
    let loaded = config::parse("test", text);
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    let shown = loaded.config.to_json();
    assert_eq!(
        (&shown["resourcesAsTools"], &shown["promptsAsTools"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(shown["agents"]["a"], json!({ "mode": "meta", "resourcesAsTools": false }));
    let bundle = json!({ "serverId": "s", "mode": "direct", "promptsAsTools": false });
    assert_eq!(shown["bundles"]["b"], bundle);
}
