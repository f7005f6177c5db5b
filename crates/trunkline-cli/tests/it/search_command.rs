//! `trunkline search` and `trunkline tokens`.

use serde_json::json;

use crate::support::program::{Folder, Run};

/// The two demo servers would need a network address; one over stdio is enough.
fn folder() -> Folder {
    let program = env!("CARGO_BIN_EXE_trunkline");
    let words = json!({ "command": program, "args": ["demo-server", "words"] });
    let config = json!({ "mode": "meta", "mcpServers": { "words": words } });
    Folder::new().file("trunkline.json", config.to_string())
}

#[test]
fn search_prints_signatures_and_reasons() {
    let folder = folder();
    let found = folder.run(&["search", "count words"]);
    assert!(found.output.starts_with("words_count_words(text: string): Count"), "{found}");
    let explained = folder.run(&["search", "count words", "--explain", "--limit", "1"]);
    assert!(explained.output.contains("count in its name"), "{explained}");
    let json = folder.run(&["search", "count words", "--format", "json"]).json();
    assert_eq!(json["tools"][0]["name"], "words_count_words");
    assert_eq!(json["failures"], json!([]));
}

/// The error is the one that a model gets.
#[test]
fn queries_that_cannot_be_searched_are_refused() {
    let (folder, many) = (folder(), ["x"; 9]);
    for (queries, part) in [
        (&[""][..], "`queries` is empty: say what the tool should do"),
        (&[" ", ""], "`queries` is empty"),
        (&many, "`queries` may have 8 texts"),
    ] {
        let run = folder.run(&[&["search"], queries].concat());
        assert_eq!(run.code, 2, "{run}");
        assert!(run.messages.contains(part) && !run.messages.contains("no tool fits"), "{run}");
    }
}

#[test]
fn tokens_compares_the_modes() {
    let folder = folder();
    // The next runs use the same cached lists.
    folder.run(&["tools"]);
    let json = folder.run(&["tokens", "--format", "json"]).json();
    let raw = folder.run(&["tokens", "--format", "raw"]);
    assert_eq!((raw.output.lines().count(), raw.json()), (1, json.clone()));
    assert_eq!(json["configured"], json["meta"]);
    assert!(json["direct"].as_u64() > Some(100), "{json}");
    assert_eq!(json["servers"]["words"].as_object().unwrap().len(), 3);
    assert!(folder.run(&["tokens", "--tools"]).output.contains("  words_shout"));
}

/// Servers whose tools are unknown are not passed over as if there were no tools.
#[test]
fn missing_servers_are_failures() {
    let untrusted = folder();
    let empty = Folder::new();
    let broken = Folder::new()
        .file("trunkline.json", r#"{ "mcpServers": { "gone": { "command": "no-such" } } }"#);
    for command in [&["search", "x"][..], &["tokens"]] {
        let run = |folder: &Folder| -> Run { folder.finish(&mut folder.bare_command(command)) };
        let held = run(&untrusted);
        assert_eq!(held.code, 1, "{held}");
        assert!(held.messages.contains("is not trusted yet"), "{held}");
        let none = run(&empty);
        assert!(none.messages.contains("No configuration found"), "{none}");
        let failed = broken.run(command);
        assert_eq!(failed.code, 1, "{failed}");
        assert!(failed.messages.contains("the program `no-such` was not found"), "{failed}");
        for run in [held, none, failed] {
            assert!(!run.messages.contains("no tool fits"), "{run}");
        }
    }
}

/// TOOL-14: tools for resources and prompts count in each mode, where they are on.
#[test]
fn tokens_counts_the_tools_for_resources_and_prompts() {
    let without = folder().run(&["tokens", "--format", "json"]).json();
    assert_eq!(without["resourcesAndPrompts"], json!({}));
    let program = env!("CARGO_BIN_EXE_trunkline");
    let words = json!({ "command": program, "args": ["demo-server", "words"] });
    let config = json!({ "mcpServers": { "words": words }, "agents": {
        "reader": { "resourcesAsTools": true, "promptsAsTools": true, "mode": "meta" },
    } });
    let folder = Folder::new().file("trunkline.json", config.to_string());
    let plain = folder.run(&["tokens", "--format", "json"]).json();
    assert_eq!((&plain["configured"], &plain["direct"]), (&without["direct"], &without["direct"]));
    let with = folder.run(&["tokens", "--agent", "reader", "--format", "json"]).json();
    let items = with["resourcesAndPrompts"].as_object().unwrap();
    assert_eq!(items.len(), 4);
    let items: u64 = items.values().map(|tokens| tokens.as_u64().unwrap()).sum();
    for mode in ["direct", "meta"] {
        let before = without[mode].as_u64().unwrap();
        assert_eq!(with[mode].as_u64().unwrap(), before + items, "{mode}");
    }
    assert_eq!(with["configured"], with["meta"]);
    let text = folder.run(&["tokens", "--agent", "reader", "--tools"]).output;
    assert!(text.contains("(resources and prompts)"), "{text}");
    assert!(text.contains("  trunkline_read_resource"), "{text}");
}
