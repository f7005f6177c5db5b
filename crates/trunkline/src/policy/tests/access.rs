//! Access rules: the default, agents, one run, the ceiling of an embedding host (TOOL-5, CFG-13).

use std::time::Duration;

use super::*;
use crate::config::{AgentFile, Backoff, Environment, LoadOptions, Overrides, Restart};

const PASTED: &str = r#"{ "mcpServers": { "s": { "command": "x" } } }"#;

fn config_of(text: &str) -> Config {
    let loaded = config::parse("mcp.json", text);
    assert!(!loaded.has_errors(false), "{:?}", loaded.diagnostics);
    loaded.config
}

fn world(config: &Config) -> World {
    World::of(config, &[("s", TOOLS)], |_| Availability::Available)
}

fn why_writing_is_hidden(config: &Config, who: CallerSpec<'_>) -> String {
    world(config).why(who, ItemKind::Tool, "s_writes")
}

#[test]
fn a_pasted_configuration_shows_every_tool_and_restarts_servers() {
    let config = config_of(PASTED);
    assert_eq!(world(&config).seen(CallerSpec::default()).len(), TOOLS.len());
    let restart = config.server("s").unwrap().behaviour.restart;
    assert_eq!(restart, Restart::OnFailure(Backoff::default()));
}

#[test]
fn an_agent_lowers_access_and_never_raises_it() {
    let text = r#"{ "servers": { "s": { "command": "x" }, "r": { "command": "x", "access": "read-only" } },
        "agents": { "reader": { "access": "read-only" },
                    "writer": { "tools": ["*"], "access": "read-write" } } }"#;
    let config = config_of(text);
    let reader = CallerSpec { agent: Some("reader"), ..CallerSpec::default() };
    assert_eq!(
        why_writing_is_hidden(&config, reader),
        "access: it declares that it writes, and access of agent `reader` is `read-only` (mcp.json:2:21)"
    );
    let world = World::of(&config, &[("s", TOOLS), ("r", TOOLS)], |_| Availability::Available);
    let writer = world.seen(CallerSpec { agent: Some("writer"), ..CallerSpec::default() });
    assert!(writer.contains(&"s_writes") && !writer.contains(&"r_writes"), "{writer:?}");
}

#[test]
fn an_agent_whose_access_cannot_be_read_is_disabled() {
    for entry in
        [r#"{ "access": "readonly" }"#, r#"{ "access": 7 }"#, r#"{ "acess": "read-only" }"#]
    {
        let text = format!(
            r#"{{ "servers": {{ "s": {{ "command": "x" }} }}, "agents": {{ "a": {entry} }} }}"#
        );
        let config = config::parse("mcp.json", text).config;
        assert!(config.agents().named["a"].is_disabled, "{entry}");
    }
    for line in ["access: readonly", "access: [7]", "access:", "acess: read-only"] {
        let text = format!("---\nname: a\n{line}\n---\n");
        let loaded = config::parse_agents("AGENTS.md", text, AgentFile::Several);
        assert!(loaded.agents["a"].is_disabled, "{line}");
        assert!(!loaded.diagnostics.is_empty(), "{line}");
    }
    let text = "---\nname: a\naccess: read-only-strict\n---\n";
    let loaded = config::parse_agents("AGENTS.md", text, AgentFile::Several);
    assert_eq!(loaded.agents["a"].access, Some(Access::ReadOnlyStrict));
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
}

#[test]
fn configuration_cannot_exceed_the_limits_of_the_host() {
    let text = r#"{ "access": "read-write", "restart": "on-failure", "servers": {
        "s": { "command": "x", "access": "read-write", "restart": { "limit": 99, "delay": "1ms" } },
        "strict": { "command": "x", "access": "read-only-strict", "restart": "never" },
        "plain": { "command": "x" } } }"#;
    let config = config_of(text).within(Access::ReadOnly, Some(Restart::Never));
    assert_eq!(
        why_writing_is_hidden(&config, CallerSpec::default()),
        "access: it declares that it writes, and the host allows at most `read-only`"
    );
    for server in config.servers() {
        assert_ne!(server.behaviour.access, Access::ReadWrite, "{}", server.name);
        assert_eq!(server.behaviour.restart, Restart::Never, "{}", server.name);
    }
    assert_eq!(config.server("strict").unwrap().behaviour.access, Access::ReadOnlyStrict);
    let unlimited = config_of(text).within(Access::ReadWrite, None);
    let Restart::OnFailure(own) = unlimited.server("s").unwrap().behaviour.restart else {
        panic!()
    };
    assert_eq!((own.limit, own.delay), (99, Duration::from_millis(1)));

    let most =
        Backoff { limit: 3, delay: Duration::from_secs(1), max_delay: Duration::from_secs(9) };
    let config = config_of(text).within(Access::ReadWrite, Some(Restart::OnFailure(most)));
    let restart = |name: &str| config.server(name).unwrap().behaviour.restart;
    assert_eq!(restart("strict"), Restart::Never);
    assert_eq!(restart("plain"), Restart::OnFailure(most), "the default of the host");
    let longest = Backoff::default().max_delay;
    assert_eq!(restart("s"), Restart::OnFailure(Backoff { max_delay: longest, ..most }));
}

/// An environment with overrides only.
struct Nowhere;

impl Environment for Nowhere {
    fn variable(&self, _: &str) -> Option<std::ffi::OsString> {
        None
    }

    fn read(&self, _: &std::path::Path) -> std::io::Result<Vec<u8>> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}

#[test]
fn one_run_has_an_access_rule_of_its_own() {
    let text = r#"{ "access": "read-only", "servers": {
        "s": { "command": "x" }, "own": { "command": "x", "access": "read-only-strict" } } }"#;
    let load = |access: Access| {
        let overrides = Some(Overrides::Text(text.to_owned()));
        let options = LoadOptions { overrides, access: Some(access), ..LoadOptions::default() };
        config::load(&Nowhere, &options).config
    };
    let config = load(Access::ReadWrite);
    assert!(config.servers().all(|it| it.behaviour.access == Access::ReadWrite));
    let config = load(Access::ReadOnlyStrict);
    assert_eq!(
        why_writing_is_hidden(&config, CallerSpec::default()),
        "access: it declares that it writes, and access is `read-only-strict` for this run"
    );
}
