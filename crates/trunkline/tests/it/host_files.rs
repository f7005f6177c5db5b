//! CFG-1, CFG-2: files of other hosts, read as they are. Each server is compared as an entry of Trunkline's own
//! format, which has its transport, variables, headers, timeouts, switch and lists.

use serde_json::{Value, json};
use trunkline::config::{self, Code, ColorStyle, Config, LoadedConfig, Severity};

use crate::host_fixtures::{self as fixtures, Fixture};

fn report(loaded: &LoadedConfig) -> String {
    loaded.diagnostics.iter().map(|found| found.render(ColorStyle::Plain)).collect()
}

fn read(fixture: Fixture) -> Config {
    let loaded = config::parse(fixture.file, fixture.text);
    assert!(!loaded.has_errors(false), "{}: {}", fixture.file, report(&loaded));
    loaded.config
}

fn entries(config: &Config) -> Value {
    config.servers().map(|server| (server.name.to_string(), server.to_entry())).collect()
}

/// The messages of a severity, without their places.
fn messages(loaded: &LoadedConfig, severity: Severity) -> Vec<&str> {
    let found = loaded.diagnostics.iter().filter(|found| found.severity == severity);
    found.map(|found| found.message.as_str()).collect()
}

/// The line and column of the first error.
fn first_error(loaded: &LoadedConfig) -> (usize, usize) {
    let error = loaded.diagnostics.iter().find(|found| found.severity == Severity::Error);
    let place = error.and_then(|found| found.location.as_ref()).map(config::Location::start);
    place.map(|place| (place.line, place.column)).unwrap()
}

#[test]
fn every_host_has_the_servers_that_it_sees() {
    for fixture in fixtures::ALL {
        let config = read(*fixture);
        let expected: Value = serde_json::from_str(fixture.entries).unwrap();
        assert_eq!(entries(&config), expected, "{}", fixture.file);
    }
}

#[test]
fn an_entry_is_read_as_the_server_that_it_was_written_from() {
    for fixture in fixtures::ALL {
        for server in read(*fixture).servers() {
            let text = json!({
                "inputs": server.to_inputs(),
                "mcpServers": { server.name.as_str(): server.to_entry() },
            });
            let loaded = config::parse("mcp.json", text.to_string());
            assert!(!loaded.has_errors(false), "{text}: {}", report(&loaded));
            let again = loaded.config.server(server.name.as_str()).unwrap();
            let name = format!("{} of {}", server.name, fixture.file);
            assert_eq!(again.to_entry(), server.to_entry(), "{name}");
            assert_eq!(again.enabled, server.enabled, "{name}");
            assert_eq!(again.trust, server.trust, "{name}");
            assert_eq!(again.auth_provider, server.auth_provider, "{name}");
            assert_eq!(again.prefix, server.prefix, "{name}");
            assert_eq!(again.tools, server.tools, "{name}");
            assert_eq!(again.behaviour, server.behaviour, "{name}");
            assert_eq!(again.transport_word(), server.transport_word(), "{name}");
            assert_eq!(again.to_inputs(), server.to_inputs(), "{name}");
        }
    }
}

#[test]
fn keys_of_codex_without_an_effect_are_noted() {
    let loaded = config::parse(fixtures::CODEX.file, fixtures::CODEX.text);
    assert_eq!(messages(&loaded, Severity::Hint), Vec::<&str>::new());
    assert_eq!(messages(&loaded, Severity::Error), Vec::<&str>::new());
    let notes = messages(&loaded, Severity::Note).join("\n");
    for key in
        ["required", "supports_parallel_tool_calls", "default_tools_approval_mode", "tools.*"]
    {
        assert!(notes.contains(&format!("`{key}")), "{key}: {notes}");
    }
    let warnings = messages(&loaded, Severity::Warning).join("\n");
    for key in ["environment_id", "oauth_resource", "omit_tools_from", "http_headers_helper"] {
        assert!(warnings.contains(&format!("`{key}`")), "{key}: {warnings}");
    }
    assert!(warnings.contains("remote environment"), "{warnings}");
}

#[test]
fn codex_has_no_references_in_its_values() {
    let text = "[mcp_servers.s]\ncommand = \"sh\"\nargs = [\"-c\", \"echo ${HOME} $${x[0]}\"]\n";
    let loaded = config::parse("config.toml", text);
    let entry = loaded.config.server("s").unwrap().to_entry();
    assert_eq!(entry["args"][1], "echo $${HOME} $$${x[0]}");
    let text = json!({ "mcpServers": { "s": entry } }).to_string();
    let again = config::parse("mcp.json", text).config.server("s").unwrap().to_entry();
    assert_eq!(again, loaded.config.server("s").unwrap().to_entry());
}

#[test]
fn values_of_codex_are_checked_where_they_are_written() {
    for (line, code, column) in [
        ("startup_timeout_sec = \"30\"", Code::OutOfRange, 23),
        ("tool_timeout_sec = -1", Code::OutOfRange, 20),
        ("enabled_tools = []", Code::EmptyAllowList, 17),
        ("args = 1", Code::WrongType, 8),
        ("env_vars = [{ source = \"local\" }]", Code::WrongType, 13),
        ("bearer_token_env_var = \"A B\"", Code::BadReference, 24),
    ] {
        let transport =
            if line.contains("bearer") { "url = \"https://x/\"" } else { "command = \"x\"" };
        let text = format!(
            "model = \"m\"\n[mcp_servers.bad]\n{transport}\n{line}\n[mcp_servers.good]\ncommand = \"x\"\n"
        );
        let loaded = config::parse("config.toml", &text);
        assert_eq!(first_error(&loaded), (4, column), "{line}: {}", report(&loaded));
        let error = loaded.diagnostics.iter().find(|found| found.severity == Severity::Error);
        assert_eq!(error.unwrap().code, code, "{line}");
        let key = line.split(' ').next().unwrap();
        let is_timeout = key.contains("timeout");
        assert!(!is_timeout || error.unwrap().message.contains(key), "{}", report(&loaded));
        assert_eq!(loaded.config.broken().len(), 1, "{line}");
        assert!(loaded.config.server("good").is_some(), "{line}");
    }
}

#[test]
fn a_broken_file_is_an_error_with_a_place_and_disables() {
    for (name, text, place) in [
        ("config.toml", "[mcp_servers.a]\ncommand = \"x\"\nargs = [\"sesame\"\n", None),
        ("config.toml", "[mcp_servers.a]\ncommand = \"x\"\ncommand = \"y\"\n", Some((3, 1))),
        ("c.yaml", "mcpServers:\n  a:\n    command: x\n   args: sesame\n", None),
        ("c.yaml", "extensions:\n  a: [sesame\n", None),
    ] {
        let loaded = config::parse(name, text);
        assert!(loaded.has_errors(false), "{text}");
        assert_eq!(loaded.config.servers().len(), 0, "{text}");
        let (line, column) = first_error(&loaded);
        assert!(line > 1 && column > 0, "{text}: {line}:{column}");
        assert!(place.is_none_or(|place| place == (line, column)), "{text}: {line}:{column}");
        assert!(!report(&loaded).contains("sesame"), "{}", report(&loaded));
    }
}

#[test]
fn a_file_of_another_host_without_servers_is_empty() {
    for (name, text) in [
        ("config.toml", "model = \"m\"\n[tools]\nweb_search = true\n"),
        ("config.yaml", "GOOSE_MODEL: m\n"),
        ("config.toml", ""),
    ] {
        let loaded = config::parse(name, text);
        assert!(!loaded.has_errors(false), "{name}: {}", report(&loaded));
        assert_eq!(messages(&loaded, Severity::Hint).len(), 1, "{name}");
        assert_eq!(loaded.config.servers().len(), 0);
    }
}

#[test]
fn misspelt_and_repeated_keys_for_servers_are_errors() {
    for (name, text, place) in [
        ("config.toml", "model = \"m\"\n[mcp_server.a]\ncommand = \"x\"\n", (2, 2)),
        ("config.yaml", "extension:\n  a: { type: stdio, cmd: x }\n", (1, 1)),
        ("config.yaml", "extensions:\n  a: { type: stdio, cmd: x }\nextensions: {}\n", (3, 1)),
    ] {
        let loaded = config::parse(name, text);
        assert_eq!(first_error(&loaded), place, "{}", report(&loaded));
        assert!(loaded.config.servers().all(|server| !server.enabled), "{text}");
    }
}

#[test]
fn a_configuration_of_trunkline_may_be_toml_or_yaml() {
    let toml = "access = \"read-only\"\n[mcpServers.a]\ncommand = \"x\"\nargs = [\"${A}\"]\n";
    let yaml = "access: read-only\nmcpServers:\n  a: { command: x, args: [\"${A}\"] }\n";
    for (name, text) in [("t.toml", toml), ("t.yaml", yaml)] {
        let loaded = config::parse(name, text);
        assert!(!loaded.has_errors(true), "{}", report(&loaded));
        let expected = json!({ "a": { "command": "x", "args": ["${A}"], "access": "read-only" } });
        assert_eq!(entries(&loaded.config), expected, "{name}");
    }
}

#[test]
fn a_misspelt_rule_beside_servers_in_yaml_is_an_error() {
    let loaded = config::parse("t.yaml", "acess: read-only\nmcpServers:\n  a: { command: x }\n");
    assert!(loaded.has_errors(false));
}

#[test]
fn parts_of_goose_are_noted() {
    let loaded = config::parse(fixtures::GOOSE.file, fixtures::GOOSE.text);
    let notes = messages(&loaded, Severity::Note);
    let left_out = notes.iter().filter(|note| note.contains("is a part of goose")).count();
    assert_eq!(left_out, 2, "{notes:?}");
    assert_eq!(messages(&loaded, Severity::Hint), Vec::<&str>::new());
}

#[test]
fn values_of_librechat_users_are_reported() {
    let loaded = config::parse(fixtures::LIBRECHAT.file, fixtures::LIBRECHAT.text);
    let warnings = messages(&loaded, Severity::Warning);
    assert!(warnings.iter().any(|it| it.contains("passed on as it stands")), "{warnings:?}");
    assert_eq!(messages(&loaded, Severity::Hint), Vec::<&str>::new());
}

#[test]
fn entries_of_continue_need_a_name() {
    let text = "name: c\nversion: 0.0.1\nmcpServers:\n  - command: x\n  - uses: anthropic/memory\n  - name: b\n    command: y\n";
    let loaded = config::parse("config.yaml", text);
    assert_eq!(first_error(&loaded), (4, 5), "{}", report(&loaded));
    assert_eq!(entries(&loaded.config), json!({ "b": { "command": "y" } }));
}

#[test]
fn projects_of_claude_code_are_sections() {
    let state = fixtures::CLAUDE_STATE;
    assert_eq!(config::section_names(state, "projects"), ["/home/ann/app", "/home/ann/empty"]);
    let project = config::parse_section(".claude.json", state, &["projects", "/home/ann/app"]);
    assert!(project.diagnostics.is_empty(), "{}", report(&project));
    let expected = json!({
        "db": { "command": "uvx", "args": ["mcp-alchemy"] },
        "old": { "command": "old", "enabled": false },
    });
    assert_eq!(entries(&project.config), expected);
    let user = config::parse_section(".claude.json", state, &[]);
    assert!(user.diagnostics.is_empty(), "{}", report(&user));
    assert_eq!(
        entries(&user.config),
        json!({ "time": { "type": "http", "url": "https://x.example/mcp" } })
    );
    let empty = config::parse_section(".claude.json", state, &["projects", "/home/ann/empty"]);
    assert!(empty.diagnostics.is_empty(), "{}", report(&empty));
    let missing = config::parse_section(".claude.json", state, &["projects", "/nowhere"]);
    assert!(missing.has_errors(false));
    assert_eq!(config::section_names("[1]", "projects"), Vec::<String>::new());
}

#[test]
fn an_unreadable_list_of_disabled_servers_disables_all() {
    let text = r#"{ "mcpServers": { "a": { "command": "x" } }, "disabledMcpServers": "a" }"#;
    let loaded = config::parse_section("x.json", text, &[]);
    assert!(loaded.has_errors(false));
    assert!(loaded.config.servers().all(|server| !server.enabled));
}

#[test]
fn secrets_in_files_of_other_formats_are_not_quoted() {
    for (name, text) in [
        (
            "c.toml",
            "[mcp_servers.a]\ncommand = \"x\"\nenv = { K = \"sesame\", K2 = [1] }\nunknown_key = \"sesame\"\n",
        ),
        (
            "c.yaml",
            "mcpServers:\n  a:\n    url: https://x/\n    headers: { A: sesame, B: [1] }\n    unknownKey: sesame\n",
        ),
    ] {
        let loaded = config::parse(name, text);
        assert!(!loaded.diagnostics.is_empty());
        assert!(!report(&loaded).contains("sesame"), "{}", report(&loaded));
    }
}

/// Seen: the command line was taken for one program, and the token was not sent.
#[test]
fn mcporter_splits_commands_and_has_keys_for_tokens() {
    let text = json!({
        "imports": ["cursor"],
        "mcpServers": {
            "line": { "command": "python3 '/x/my server.py' --root ${ROOT:-/a b}" },
            "whole": { "command": "python3 x", "args": ["y"] },
            "path": { "command": "/opt/my tools/x" },
            "token": { "baseUrl": "https://e.com/mcp", "bearerToken": "$env:A",
                "headers": { "authorization": "x", "X-Key": "${K}" } },
            "variable": { "base_url": "https://e.com/mcp", "bearerToken": "sesame", "bearerTokenEnv": "B" },
            "none": { "url": "https://e.com/mcp", "bearerToken": "", "allowed_tools": ["a"] },
        },
    });
    let loaded = config::parse("/home/ann/.mcporter/mcporter.json", text.to_string());
    assert!(!loaded.has_errors(false), "{}", report(&loaded));
    let entries = entries(&loaded.config);
    for (name, expected) in [
        (
            "line",
            json!({ "command": "python3", "args": ["/x/my server.py", "--root", "${ROOT:-/a b}"] }),
        ),
        ("whole", json!({ "command": "python3 x", "args": ["y"] })),
        ("path", json!({ "command": "/opt/my tools/x" })),
        (
            "token",
            json!({ "url": "https://e.com/mcp", "headers": { "X-Key": "${K}", "Authorization": "Bearer ${A}" } }),
        ),
        (
            "variable",
            json!({ "url": "https://e.com/mcp", "headers": { "Authorization": "Bearer ${B}" } }),
        ),
        ("none", json!({ "url": "https://e.com/mcp", "allowTools": ["a"] })),
    ] {
        assert_eq!(entries[name], expected, "{name}");
    }
    let notes = messages(&loaded, Severity::Note).join("\n");
    assert!(notes.contains("`imports` is kept and has no effect"), "{notes}");
    assert!(notes.contains("a path with spaces or a command line"), "{notes}");
    assert!(!report(&loaded).contains("sesame"), "{}", report(&loaded));
    // Other hosts run it as one program.
    let loaded = config::parse("mcp.json", text.to_string());
    assert!(report(&loaded).contains("looks like a whole command line"), "{}", report(&loaded));
}
