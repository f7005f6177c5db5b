//! `trunkline skill`: a skill file for the tools of a server.

use serde_json::json;

use crate::support::canned_server::with_canned_server;
use crate::support::program::Folder;
use crate::tools_command::folder;

#[test]
fn a_skill_names_the_tools_and_how_to_call_them() {
    let folder = folder();
    let run = folder.run(&["skill", "words"]);
    assert_eq!(run.code, 0, "{run}");
    insta::assert_snapshot!("skill words", run.output);
    let json = folder.run(&["skill", "words", "--format", "json"]).json();
    assert_eq!((&json["name"], &json["text"]), (&"words".into(), &run.output.into()));
    let run = folder.run(&["skill", "words", "--agent", "Shouter"]);
    assert!(!run.output.contains("words_count_words"), "{run}");
    assert!(run.output.contains("trunkline call --agent Shouter TOOL"), "{run}");
}

/// A file that is written anew keeps its tools while the server is down.
#[test]
fn a_server_that_fails_gives_no_skill() {
    let config = r#"{ "mcpServers": { "gone": { "command": "no-such" } } }"#;
    let folder = Folder::new().file("trunkline.json", config);
    let run = folder.run(&["skill", "gone"]);
    assert_eq!((run.code, run.output.as_str()), (5, ""), "{run}");
    assert!(run.messages.contains("server `gone`"), "{run}");
    let run = folder.run(&["skill", "gone", "--format", "json"]);
    assert_eq!((run.code, &run.json()["error"]["kind"]), (5, &"unavailable".into()), "{run}");
    assert_eq!(folder.run(&["skill", "other"]).code, 4);
}

/// Seen: `-- COMMAND` was in the usage, and refused because of the missing name.
#[test]
fn a_server_on_the_command_line_has_a_skill() {
    let folder = Folder::new();
    let program = env!("CARGO_BIN_EXE_trunkline");
    let run = folder.run(&["skill", "--", program, "demo-server", "words"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.output.starts_with("---\nname: trunkline\n"), "{run}");
    let call = format!(
        "trunkline call TOOL key=value list[]=item object:='{{\"a\": 1}}' -- {program} demo-server words"
    );
    assert!(run.output.contains(&call), "{run}");
    assert!(
        run.output.contains(&format!("`trunkline tool TOOL -- {program} demo-server words`")),
        "{run}"
    );
    assert!(run.output.contains("- shout(text: string)"), "{run}");
    let run = folder.run(&["skill"]);
    assert!(run.code == 2 && run.messages.contains("SERVER"), "{run}");
    let run = folder.run(&["skill", "words", "--", program, "demo-server", "words"]);
    assert!(run.code == 2 && run.output.is_empty(), "{run}");
    assert!(run.messages.contains("leave out `words`"), "{run}");
}

/// Seen: words were written without quotes, or masked, in a command that an agent runs.
#[test]
fn the_commands_of_a_skill_can_be_run_as_they_are() {
    let folder = Folder::new();
    let program = env!("CARGO_BIN_EXE_trunkline");
    let script = format!("exec {program} demo-server words # $(id)");
    let run = folder.run(&["skill", "--", "/bin/sh", "-c", &script]);
    assert!(run.output.contains(&format!("-- /bin/sh -c '{script}'")), "{run}");
    let env =
        ["/usr/bin/env", "API_TOKEN=hunter22hunter22hunter22", program, "demo-server", "words"];
    let run = folder.run(&[&["skill", "--"], &env[..]].concat());
    assert!(run.code == 2 && run.output.is_empty(), "{run}");
    assert!(run.messages.contains("trunkline add NAME"), "{run}");
}

/// An agent decides by the description whether to read the skill.
#[test]
fn the_description_of_a_skill_says_what_the_tools_do() {
    let many = (0..40).map(|at| {
        json!({ "name": format!("tool{at}"), "inputSchema": {},
        "description": format!("Handles the case number {at} of all cases. And more.") })
    });
    let parameters = (0..12).map(|at| (format!("p{at}"), json!({ "type": "string" })));
    let wide = json!({ "name": "wide", "inputSchema": { "properties": parameters.collect::<serde_json::Map<_, _>>() } });
    let tools = many.chain([wide]).collect::<serde_json::Value>();
    let folder = with_canned_server(&json!({ "tools/list": { "tools": tools } }));
    let run = folder.run(&["skill", "s"]);
    assert_eq!(run.code, 0, "{run}");
    let line = run.output.lines().find_map(|line| line.strip_prefix("description: ")).unwrap();
    let description: String = serde_json::from_str(line).unwrap();
    assert!(description.starts_with("Use the MCP server s from the shell. Its tools: Handles the case number 0 of all cases; "), "{run}");
    assert!(description.chars().count() <= 1024 && description.ends_with(" more"), "{run}");
    assert!(
        run.output.contains(", … 4 more) (`trunkline tool s_wide` prints all parameters)\n"),
        "{run}"
    );
}
