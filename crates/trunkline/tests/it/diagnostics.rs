//! CFG-7: all problems at once, with location, text and help; a bad entry affects only itself.

use std::collections::BTreeSet;

use trunkline::config::{self, AgentFile, Code, ColorStyle, LoadedAgents, LoadedConfig, Severity};
use trunkline::name::ServerName;

/// One text for every mistake that a text can contain.
const MISTAKES: &[(Code, &str)] = &[
    (Code::Syntax, r#"{ "mcpServers": { "s": { "command": "x" "args": [] } } }"#),
    (Code::EmptyFile, "  // nothing\n"),
    (Code::NotAnObject, "[]"),
    (Code::NoServers, r#"{ "time": { "command": "uvx" } }"#),
    (Code::DuplicateKey, r#"{ "mcpServers": { "s": { "command": "x", "command": "y" } } }"#),
    (
        Code::DuplicateServer,
        r#"{ "mcpServers": { "s": { "command": "x" } }, "servers": { "s": { "command": "y" } } }"#,
    ),
    (Code::UnknownKey, r#"{ "mcpServers": { "s": { "command": "x", "argz": [] } } }"#),
    (Code::ForeignKey, r#"{ "mcpServers": { "s": { "command": "x", "autoApprove": [] } } }"#),
    (Code::NotApplied, r#"{ "mcp": {}, "permission": { "jira_*": "deny" } }"#),
    (Code::WrongType, r#"{ "mcpServers": { "s": { "command": "x", "args": "--mcp" } } }"#),
    (Code::UnknownValue, r#"{ "mcpServers": { "s": { "command": "x", "access": "readonly!" } } }"#),
    (Code::OutOfRange, r#"{ "mcpServers": { "s": { "command": "x", "concurrency": 0 } } }"#),
    (Code::MissingKey, r#"{ "bundles": { "b": { "mode": "direct" } } }"#),
    (
        Code::Contradiction,
        r#"{ "mcpServers": { "s": { "command": "x", "enabled": true, "disabled": true } } }"#,
    ),
    (Code::BadName, r#"{ "mcpServers": { "": { "command": "x" } } }"#),
    (
        Code::CommandAndUrl,
        r#"{ "mcpServers": { "s": { "command": "x", "url": "https://example.com" } } }"#,
    ),
    (Code::NoCommandOrUrl, r#"{ "mcpServers": { "s": { "args": ["x"] } } }"#),
    (Code::TypeMismatch, r#"{ "mcpServers": { "s": { "type": "http", "command": "x" } } }"#),
    (
        Code::UnsupportedTransport,
        r#"{ "mcpServers": { "s": { "type": "ws", "url": "https://example.com" } } }"#,
    ),
    (Code::BadUrl, r#"{ "mcpServers": { "s": { "url": "example.com/mcp" } } }"#),
    (
        Code::BadHeader,
        r#"{ "mcpServers": { "s": { "url": "https://example.com", "headers": { "a b": "c" } } } }"#,
    ),
    (Code::BadVariable, r#"{ "mcpServers": { "s": { "command": "x", "env": { "A=B": "c" } } } }"#),
    (
        Code::IncompleteOAuth,
        r#"{ "mcpServers": { "s": { "url": "https://example.com", "oauth": { "grant": "client-credentials" } } } }"#,
    ),
    (Code::CommandLine, r#"{ "mcpServers": { "s": { "command": "npx -y srv" } } }"#),
    (Code::AmbiguousTimeout, r#"{ "mcpServers": { "s": { "command": "x", "timeout": 60 } } }"#),
    (Code::NothingToSwitch, r#"{ "mcpServers": { "s": { "enabled": false } } }"#),
    (Code::BadReference, r#"{ "mcpServers": { "s": { "command": "x", "args": ["${A B}"] } } }"#),
    (
        Code::UnknownInput,
        r#"{ "inputs": [{ "id": "key" }], "servers": { "s": { "command": "x", "args": ["${input:kye}"] } } }"#,
    ),
    (
        Code::UnknownServer,
        r#"{ "servers": { "repo": { "command": "x" } }, "bundles": { "b": { "serverId": "rpeo" } } }"#,
    ),
    (
        Code::EmptyAllowList,
        r#"{ "servers": { "s": { "command": "x" } }, "bundles": { "b": { "serverId": "s", "allowTools": [] } } }"#,
    ),
    (
        Code::SharedPrefix,
        r#"{ "servers": { "a": { "command": "x", "prefix": "p" }, "p": { "command": "x" } } }"#,
    ),
    (
        Code::UntrustedWithoutAllowList,
        r#"{ "servers": { "s": { "command": "x", "trust": "untrusted" } }, "bundles": { "b": { "serverId": "s" } } }"#,
    ),
    (
        Code::Disabled,
        r#"{ "servers": { "s": { "command": "x" } }, "bundles": { "b": { "serverId": "s", "allowTools": [7] } } }"#,
    ),
    (Code::BadPattern, r#"{ "agents": { "a": { "tools": ["web_?", "src/**"] } } }"#),
    (Code::AllowsNothing, r#"{ "agents": { "a": { "tools": ["!web_*"] } } }"#),
];

/// Mistakes in agent files.
const AGENT_MISTAKES: &[(Code, &str)] = &[
    (Code::AgentSyntax, "---\nname: a\ntools: [b\n---\n"),
    (Code::AgentSyntax, "---\nname: a\n\nYou are an agent.\n"),
    (Code::AgentSyntax, "---\njust a text\n---\n"),
    (Code::AgentWithoutName, "---\ntools: [b]\n---\n"),
    (Code::DuplicateAgent, "---\nname: a\n---\nText\n---\nname: a\n---\n"),
    (Code::DuplicateKey, "---\nname: a\ntools: [a]\ntools: [b]\n---\n"),
    (Code::BadPattern, "---\nname: a\ntools: [web_?, **]\n---\n"),
    (Code::AllowsNothing, "---\nname: a\ntools: [!web_*]\n---\n"),
    (Code::AllowsNothing, "---\nname: a\ntools: []\n---\n"),
    (Code::WrongType, "---\nname: a\ntools:\n---\n"),
    (Code::WrongType, "---\nname: a\ntools: [[b]]\n---\n"),
    (Code::WrongType, "---\nname: [a]\n---\n"),
    (Code::UnknownKey, "---\nname: a\ntool: [b]\n---\n"),
    (Code::BadPattern, "---\nname: a\ndisallowedTools: mcp__s__w\n---\n"),
    (Code::UnknownKey, "---\nname: a\ndenyTools: [b]\n---\n"),
    (Code::BadName, "---\nname: ' '\n---\n"),
];

/// Mistakes that are not in a text, covered by the tests of layers and robustness.
const ELSEWHERE: &[Code] = &[
    Code::TooDeep,
    Code::TooLarge,
    Code::NotUtf8,
    Code::FileMissing,
    Code::FileIsDirectory,
    Code::FileUnreadable,
    Code::ShadowedFile,
    Code::UnsafeFile,
    Code::ShadowedServer,
    Code::UnresolvedReference,
    Code::MissingProgram,
    Code::MissingDirectory,
    Code::StartsItself,
    Code::UnknownAuthProvider,
    Code::NotServed,
];

fn report(loaded: &LoadedConfig) -> String {
    let rendered = loaded.diagnostics.iter().map(|found| found.render(ColorStyle::Plain));
    rendered.collect::<Vec<_>>().join("\n")
}

fn agents(text: &str) -> LoadedAgents {
    config::parse_agents("AGENTS.md", text, AgentFile::Several)
}

fn report_of(text: &str) -> String {
    report(&config::parse("mcp.json", text))
}

#[test]
fn every_mistake_has_a_diagnostic_of_its_own() {
    for (code, text) in MISTAKES {
        let loaded = config::parse("mcp.json", text);
        let codes: Vec<_> = loaded.diagnostics.iter().map(|found| found.code).collect();
        assert!(codes.contains(code), "{code} is missing in {codes:?} for {text}");
    }
    for (code, text) in AGENT_MISTAKES {
        let codes: Vec<_> = agents(text).diagnostics.iter().map(|found| found.code).collect();
        assert_eq!(codes.iter().find(|found| *found == code), Some(code), "{codes:?} for {text}");
    }
    let all = MISTAKES.iter().chain(AGENT_MISTAKES);
    let tested: BTreeSet<_> = all.map(|(code, _)| *code).collect();
    let all: BTreeSet<_> = tested.iter().chain(ELSEWHERE).copied().collect();
    let missing: Vec<_> = Code::ALL.iter().filter(|code| !all.contains(code)).collect();
    assert!(missing.is_empty(), "no test makes {missing:?}");
}

#[test]
fn the_report_of_every_mistake_reads_well() {
    let reports = MISTAKES.iter().map(|(_, text)| report_of(text));
    insta::assert_snapshot!(reports.collect::<Vec<_>>().join("\n"));
}

#[test]
fn the_report_of_every_mistake_in_an_agent_reads_well() {
    let reports = AGENT_MISTAKES.iter().map(|(_, text)| {
        let rendered = agents(text).diagnostics.into_iter().map(|it| it.render(ColorStyle::Plain));
        rendered.collect::<String>()
    });
    insta::assert_snapshot!(reports.collect::<Vec<_>>().join("\n"));
}

#[test]
fn every_code_is_documented() {
    let page = include_str!("../../../../docs/diagnostics.md");
    let documented: BTreeSet<_> =
        page.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`')).collect();
    let codes: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(documented, codes);
}

#[test]
fn all_problems_come_in_one_run_in_the_order_of_the_text() {
    let loaded = config::parse(
        "mcp.json",
        r#"{
  "mcpServers": {
    "first": { "command": "x", "args": "--mcp", "acess": "read-only" },
    "second": { "url": "ftp://example.com" },
    "good": { "command": "uvx", "args": ["mcp-server-time"] },
    "third": { "type": "htpp", "url": "https://example.com/mcp" }
  }
}"#,
    );
    insta::assert_snapshot!(report(&loaded));
    let broken: Vec<_> = loaded.config.broken().iter().map(ServerName::as_str).collect();
    assert_eq!(broken, ["first", "second", "third"]);
    assert!(loaded.config.server("good").is_some());
}

#[test]
fn a_syntax_error_in_one_server_leaves_the_others_usable() {
    let loaded = config::parse(
        "mcp.json",
        r#"{ "mcpServers": {
            "bad": { "command": "x" "args": ["y"] }
            "good": { "command": "uvx" },
        } }"#,
    );
    assert_eq!(loaded.config.broken().len(), 1);
    assert!(loaded.config.server("bad").is_none());
    assert!(loaded.config.server("good").is_some());
}

#[test]
fn a_bundle_of_a_broken_server_adds_no_second_complaint() {
    let loaded = config::parse(
        "mcp.json",
        r#"{ "servers": { "s": { "command": 1 } }, "bundles": { "b": { "serverId": "s" } } }"#,
    );
    assert_eq!(loaded.diagnostics.len(), 1, "{}", report(&loaded));
    assert_eq!(loaded.config.bundles().len(), 0);
}

#[test]
fn hints_and_warnings_fail_only_a_strict_check_and_notes_never() {
    let hint = config::parse("x", r#"{ "servers": { "s": { "command": "x", "custom": 1 } } }"#);
    assert!(!hint.has_errors(false) && hint.has_errors(true));
    let note = config::parse("x", r#"{ "servers": { "s": { "command": "x", "title": "T" } } }"#);
    assert_eq!(note.diagnostics[0].severity, Severity::Note);
    assert!(!note.has_errors(false) && !note.has_errors(true));
}

#[test]
fn the_settings_file_of_a_whole_host_is_not_complained_about() {
    let loaded = config::parse(
        "settings.json",
        r#"{ "theme": "dark", "vim_mode": true, "context_servers": { "s": { "command": "x" } } }"#,
    );
    assert!(!loaded.has_errors(true), "{}", report(&loaded));
}

#[test]
fn null_counts_as_left_out_where_something_may_be_left_out() {
    let text = r#"{ "mcpServers": { "s": { "command": "x", "env": null, "cwd": null } } }"#;
    let loaded = config::parse("x", text);
    assert!(!loaded.has_errors(false));
    assert_eq!(loaded.diagnostics.len(), 2);
    assert!(loaded.config.server("s").is_some());
}

#[test]
fn an_untrusted_server_without_any_list_is_pointed_out() {
    let loaded =
        config::parse("x", r#"{ "servers": { "s": { "command": "x", "trust": "untrusted" } } }"#);
    assert!(!loaded.has_errors(false) && loaded.has_errors(true));
    assert_eq!(loaded.diagnostics[0].code, Code::UntrustedWithoutAllowList);
}

fn codes(text: &str) -> Vec<Code> {
    config::parse("mcp.json", text).diagnostics.iter().map(|found| found.code).collect()
}

#[test]
fn a_comma_missing_between_servers_spoils_neither() {
    let loaded = config::parse("x", r#"{"mcpServers":{"a":{"command":"x"} "b":{"command":"y"}}}"#);
    assert_eq!(loaded.config.servers().len(), 2);
    assert!(loaded.has_errors(false));
}

#[test]
fn keys_on_the_wrong_side_of_a_nested_transport_are_not_lost() {
    let outside = r#"{"servers":{"a":{"transport":{"type":"stdio","command":"x"},"env":{"A":"b"},"cwd":"/t"}}}"#;
    assert_eq!(codes(outside), [Code::Contradiction; 2]);
    let inside = r#"{"servers":{"a":{"transport":{"type":"stdio","command":"x","enabled":false,"trust":"untrusted"}}}}"#;
    assert_eq!(codes(inside), [Code::Contradiction; 2]);
}

#[test]
fn unknown_keys_are_kept_wherever_they_stand() {
    let text = r#"{ "servers": { "s": { "transport": { "type": "stdio", "command": "x", "odd1": 1 } } },
        "bundles": { "b": { "serverId": "s", "odd2": 2 } }, "timeouts": { "odd3": 3 }, "odd4": 4 }"#;
    let loaded = config::parse("x", text);
    let server = loaded.config.server("s").unwrap();
    assert_eq!(&*server.unknown[0].key, "odd1");
    let mut kept: Vec<_> = loaded.config.unknown().iter().map(|kept| &*kept.key).collect();
    kept.sort_unstable();
    assert_eq!(kept, ["odd2", "odd3", "odd4"]);
}

#[test]
fn servers_in_the_wrong_place_are_pointed_at() {
    for text in [
        r#"{ "command": "npx", "args": ["x"] }"#,
        r#"{ "projects": { "/p": { "mcpServers": { "s": { "command": "x" } } } } }"#,
        r#"{ "customizations": { "vscode": { "mcp": { "servers": {} } } } }"#,
    ] {
        assert_eq!(codes(text), [Code::NoServers], "{text}");
    }
}

#[test]
fn a_switch_may_have_a_comment() {
    assert_eq!(
        codes(r#"{ "mcpServers": { "s": { "enabled": false, "_comment": "off for now" } } }"#),
        [Code::NothingToSwitch]
    );
}

#[test]
fn headers_of_the_transport_are_dropped_with_a_warning() {
    let text = r#"{ "servers": { "s": { "url": "https://x/", "headers": { "Content-Type": "a/b", "X": "y" } } } }"#;
    let loaded = config::parse("x", text);
    let config::Transport::Remote(remote) = &loaded.config.server("s").unwrap().transport else {
        panic!("not remote")
    };
    assert_eq!(remote.headers.len(), 1);
    assert!(!loaded.has_errors(false) && loaded.has_errors(true));
}

#[test]
fn addresses_are_taken_as_written_or_not_at_all() {
    for url in [" https://x/ ", "https:example.com", "ftp://${H}/x", "ws://x/"] {
        let text = format!(r#"{{ "servers": {{ "s": {{ "url": "{url}" }} }} }}"#);
        assert_eq!(codes(&text), [Code::BadUrl], "{url}");
    }
    let form = r#"{ "servers": { "s": { "url": "https://x/", "command": "" } } }"#;
    assert_eq!(codes(form), []);
}

#[test]
fn references_of_other_hosts_are_warned_about() {
    for value in ["Bearer $TOKEN", "{env:K}", "%KEY%"] {
        let text = format!(
            r#"{{ "servers": {{ "s": {{ "command": "x", "env": {{ "A": "{value}" }} }} }} }}"#
        );
        assert_eq!(codes(&text), [Code::BadReference], "{value}");
    }
}

#[test]
fn a_star_is_no_allow_list_for_an_untrusted_server() {
    let text = r#"{ "servers": { "s": { "command": "x", "trust": "untrusted", "allowTools": ["*"] } },
                    "bundles": { "b": { "serverId": "s", "allowTools": ["*"] } } }"#;
    let loaded = config::parse("x", text);
    assert!(loaded.has_errors(false));
    assert_eq!(loaded.config.bundles().len(), 0);
}

#[test]
fn a_slip_in_the_key_for_servers_is_an_error() {
    assert_eq!(codes(r#"{ "mcpServer": { "s": { "command": "x" } } }"#), [Code::NoServers]);
}

#[test]
fn curly_quotes_are_named() {
    let loaded = config::parse("x", "{ “mcpServers”: {} }");
    assert!(loaded.diagnostics[0].help.as_ref().unwrap().contains("curly"));
}
