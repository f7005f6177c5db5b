//! CFG-7: every problem at once, each with place, text and advice; one bad entry spoils only itself.

use std::collections::BTreeSet;

use trunkline::config::{self, Code, Loaded, Severity, Style};
use trunkline::name::ServerName;

/// One text for every mistake that can be made inside a text.
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
        Code::UntrustedWithoutAllowList,
        r#"{ "servers": { "s": { "command": "x", "trust": "untrusted" } }, "bundles": { "b": { "serverId": "s" } } }"#,
    ),
];

/// Mistakes that are not in a text; the tests of layers and robustness make them.
const ELSEWHERE: &[Code] = &[
    Code::TooDeep,
    Code::TooLarge,
    Code::NotUtf8,
    Code::FileMissing,
    Code::FileIsDirectory,
    Code::FileUnreadable,
    Code::ShadowedFile,
    Code::ShadowedServer,
];

fn report(loaded: &Loaded) -> String {
    let rendered = loaded.diagnostics.iter().map(|found| found.render(Style::Plain));
    rendered.collect::<Vec<_>>().join("\n")
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
    let tested: BTreeSet<_> = MISTAKES.iter().map(|(code, _)| *code).collect();
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
    let broken: Vec<_> = loaded.broken.iter().map(ServerName::as_str).collect();
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
    assert_eq!(loaded.broken.len(), 1);
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
    assert!(!hint.fails(false) && hint.fails(true));
    let note = config::parse("x", r#"{ "servers": { "s": { "command": "x", "title": "T" } } }"#);
    assert_eq!(note.diagnostics[0].severity, Severity::Note);
    assert!(!note.fails(false) && !note.fails(true));
}

#[test]
fn the_settings_file_of_a_whole_host_is_not_complained_about() {
    let loaded = config::parse(
        "settings.json",
        r#"{ "theme": "dark", "vim_mode": true, "context_servers": { "s": { "command": "x" } } }"#,
    );
    assert!(loaded.diagnostics.is_empty(), "{}", report(&loaded));
}

#[test]
fn null_counts_as_left_out_where_something_may_be_left_out() {
    let text = r#"{ "mcpServers": { "s": { "command": "x", "env": null, "cwd": null } } }"#;
    let loaded = config::parse("x", text);
    assert!(!loaded.fails(false));
    assert_eq!(loaded.diagnostics.len(), 2);
    assert!(loaded.config.server("s").is_some());
}

#[test]
fn an_untrusted_server_without_any_list_is_pointed_out() {
    let loaded =
        config::parse("x", r#"{ "servers": { "s": { "command": "x", "trust": "untrusted" } } }"#);
    assert!(!loaded.fails(false) && loaded.fails(true));
    assert_eq!(loaded.diagnostics[0].code, Code::UntrustedWithoutAllowList);
}
