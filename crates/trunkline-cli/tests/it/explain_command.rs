//! `trunkline explain`: the rules for an item, and the one that decides.

use serde_json::json;

use crate::support::program::Folder;
use crate::tools_command::{folder, folder_with_failing};

fn explained(arguments: &[&str]) -> String {
    let run = folder().run(&[&["explain"], arguments].concat());
    assert_eq!((run.code, run.messages.as_str()), (0, ""), "{run}");
    run.output
}

#[test]
fn visible_tool_is_explained() {
    insta::assert_snapshot!(explained(&["words_shout", "--agent", "Shouter", "--bundle", "loud"]));
}

#[test]
fn hidden_tool_is_explained_with_the_line_of_the_rule() {
    insta::assert_snapshot!(explained(&["words_count_words", "--agent", "Shouter"]));
}

#[test]
fn hidden_writing_tool_is_explained_with_the_setting_that_allows_it() {
    let text = explained(&["words_remember", "--bundle", "loud", "--off", "words"]);
    insta::assert_snapshot!(text);
}

#[test]
fn machines_get_every_step() {
    let run = folder().run(&["explain", "words_remember", "--format", "json"]);
    let json = run.json();
    assert_eq!((&json["decision"], &json["own"]), (&json!("hide"), &json!("remember")), "{run}");
    let steps = json["steps"].as_array().unwrap();
    let deciding: Vec<_> = steps.iter().filter(|step| step["decides"] == true).collect();
    assert_eq!(deciding.len(), 1, "{run}");
    assert_eq!((&deciding[0]["rule"], &deciding[0]["verdict"]), (&json!("access"), &json!("hide")));
    assert_eq!(steps[0]["location"]["line"], 3, "{run}");
}

#[test]
fn unknown_name_suggests_hidden_tools_too() {
    let folder = folder();
    for (name, message) in [
        ("words_remembr", "did you mean `words_remember`?"),
        ("remember", "did you mean `words_remember`?"),
        ("asleep_snore", "its server `asleep` is switched off"),
        ("nothing://at/all", "there is no resource `nothing://at/all`"),
    ] {
        let run = folder.run(&["explain", name]);
        assert_eq!((run.code, run.output.as_str()), (4, ""), "{run}");
        assert!(run.messages.contains(message), "`{message}` is not in {run}");
    }
}

#[test]
fn several_names_are_suggested() {
    let run = folder().run(&["explain", "numbers_ad"]);
    assert_eq!(run.code, 4, "{run}");
    let text = folder().run(&["explain", "numbers_ad", "--format", "json"]).json();
    assert_eq!(text["error"]["suggestions"][0], "numbers_add", "{text}");
}

#[test]
fn upstream_names_are_explained_for_one_server() {
    let folder = folder_with_failing();
    // The list is cached on disk after the first run.
    let remembered = "server `words` was not started: its tools are those of the last run; \
                      `--refresh` asks again\n";
    for (name, said) in [("remember", ""), ("words_remember", remembered)] {
        let run = folder.run(&["explain", name, "--server", "words"]);
        assert_eq!((run.code, run.messages.as_str()), (0, said), "{run}");
        assert!(run.output.starts_with("The tool words_remember is hidden."), "{run}");
    }
    let run = folder.run(&["explain", "words_remember", "--server", "numbers"]);
    assert_eq!(run.code, 4, "{run}");
    let run = folder.run(&["explain", "x", "--server", "wrds"]);
    assert!(run.messages.contains("did you mean `words`?"), "{run}");
    assert!(!folder.project().join("started").exists());
}

#[test]
fn server_that_cannot_be_queried_is_reported() {
    let folder = folder_with_failing();
    for arguments in [&["other_thing"][..], &["x://y"], &["thing", "--server", "other"]] {
        let run = folder.run(&[&["explain"], arguments].concat());
        assert_eq!((run.code, run.output.as_str()), (5, ""), "{run}");
        let message =
            format!("server `other` could not be asked whether it has `{}`: the", arguments[0]);
        assert!(run.messages.contains(&message), "`{message}` is not in {run}");
    }
    // A name without a known prefix may be the own name of an item of the failed server.
    assert_eq!(folder.run(&["explain", "elsewhere_thing"]).code, 5);
    let run = folder.run(&["read", "x://y"]);
    assert_eq!(run.code, 5, "{run}");
}

#[test]
fn a_switch_of_the_conversation_is_shown_with_its_place() {
    let folder = folder().file("talk.json", "{\"servers\": {\n  \"words\": false }}");
    let run = folder.run(&["explain", "words_shout", "--toggles", "talk.json"]);
    assert_eq!((run.code, run.messages.as_str()), (0, ""), "{run}");
    let line = run.output.lines().find(|line| line.starts_with("> hide")).unwrap();
    assert!(line.contains("its server is switched off in this project or conversation"), "{run}");
    assert!(line.ends_with("talk.json:2:3"), "{run}");
}

#[test]
fn tool_of_a_failed_server_is_unavailable() {
    let program = env!("CARGO_BIN_EXE_trunkline");
    let script = "if [ -e gone ]; then exit 3; fi; exec \"$0\" demo-server words";
    let server = json!({ "command": "/bin/sh", "args": ["-c", script, program] });
    let content = json!({ "mcpServers": { "words": server } }).to_string();
    let folder = Folder::new().file("trunkline.json", content);
    // Its tools are cached.
    assert_eq!(folder.run(&["tools"]).code, 0);
    let folder = folder.file("gone", "");
    let run = folder.run(&["explain", "words_shout", "--refresh"]);
    assert!(run.output.contains("The tool words_shout is not available."), "{run}");
    let run = folder.run(&["call", "words_shout", "--arg", "text=hello"]);
    assert_eq!((run.code, run.output.as_str()), (5, ""), "{run}");
    assert!(run.messages.contains("the process ended (exit status: 3)"), "{run}");
}
