//! `--format json`: a version in every document, and a schema for every command. `Folder::finish` checks the output of all
//! tests against the schemas.

use serde_json::Value;

use crate::support::program::Folder;
use crate::support::secrets;
use crate::support::service::Machine;
use crate::tools_command::folder;

/// Commands without JSON output, as docs/json.md says.
const WITHOUT_JSON: &[&str] = &["completions", "connect", "help", "schema"];

/// Commands that print a result of MCP, which has no version of ours.
const RESULTS: &[&str] = &["call", "complete", "prompt", "read", "tool"];

/// The output of a command as JSON, which `Folder::finish` has checked.
fn json(folder: &Folder, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--format", "json"]].concat();
    let run = folder.finish(&mut secrets::bare_command(folder, &arguments));
    let json = run.json();
    let is_result = RESULTS.contains(&arguments[0]) && json.get("error").is_none();
    let expected = if is_result { Value::Null } else { 1.into() };
    assert_eq!(json["schemaVersion"], expected, "{arguments:?}: {run}");
    json
}

#[test]
fn every_command_has_a_schema_of_its_json_output() {
    let folder = Folder::new();
    let help = folder.run(&["--help"]).output;
    let commands = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let documented = include_str!("../../../../docs/json.md");
    for command in commands.lines().filter_map(|line| line.split_whitespace().next()) {
        let run = folder.run(&["schema", "--output", command]);
        let is_without = WITHOUT_JSON.contains(&command);
        assert_eq!(run.code == 0, !is_without, "{command}: {run}");
        assert!(!is_without || command == "help" || documented.contains(&format!("`{command}`")));
        if !is_without {
            assert!(jsonschema::meta::is_valid(&run.json()), "{command}");
        }
    }
}

#[test]
fn lists_and_results_fit_their_schemas() {
    let folder = folder();
    folder.trust();
    for arguments in [
        &["check"][..],
        &["config"],
        &["config", "-v"],
        &["status"],
        &["tools", "--all"],
        &["tools"],
        &["prompts"],
        &["resources"],
        &["search", "count words"],
        &["tokens"],
        &["types"],
        &["types", "--lang", "py"],
        &["skill", "words"],
        &["tool", "words_shout"],
        &["call", "words_shout", "x"],
        &["explain", "words_shout"],
        &["explain", "words_shout", "--agent", "Counter"],
        &["disable", "words_shout"],
        &["disable"],
        &["enable", "words", "--conversation", "c"],
        &["enable"],
        &["login", "--status"],
        &["token", "add", "ann"],
        &["token", "list"],
        &["token", "remove", "ann"],
        &["secret", "list"],
        &["secret", "store"],
        &["trust", "--list"],
        &["trust", "--yes"],
        &["trust", "--revoke"],
        &["demo"],
        &["man", "pages"],
        &["page", "--token"],
        &["call", "nothing"],
    ] {
        json(&folder, arguments);
    }
}

#[test]
fn changes_of_files_fit_their_schemas() {
    let folder = Folder::new()
        .file("../home/.cursor/mcp.json", r#"{ "mcpServers": { "a": { "command": "x" } } }"#);
    for arguments in [
        &["init"][..],
        &["add", "time", "--project", "--dry-run", "--", "uvx", "mcp-server-time"],
        &["import", "--dry-run"],
        &["import", "--all"],
        &["install", "cursor", "--dry-run"],
        &["uninstall", "cursor"],
    ] {
        // Options come before `--`.
        let (options, program) = match arguments.iter().position(|it| *it == "--") {
            Some(at) => arguments.split_at(at),
            None => (arguments, &[][..]),
        };
        let arguments = [options, &["--format", "json"], program].concat();
        let run = folder.finish(&mut folder.bare_command(&arguments));
        assert_eq!(run.json()["schemaVersion"], 1, "{arguments:?}: {run}");
    }
}

#[test]
fn the_service_fits_its_schemas() {
    let program = env!("CARGO_BIN_EXE_trunkline");
    let server = serde_json::json!({ "command": program, "args": ["demo-server", "words"] });
    let machine = Machine::new(&serde_json::json!({ "mcpServers": { "words": server } }));
    for arguments in
        [&["ps"][..], &["logs"], &["up"], &["ps"], &["restart"], &["logs"], &["page"], &["down"]]
    {
        json(&machine.folder, arguments);
    }
}
