//! `trunkline skill`: a skill file for the tools of a server.

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
    assert_eq!((run.code, run.output.as_str()), (1, ""), "{run}");
    assert_eq!(folder.run(&["skill", "other"]).code, 4);
}
