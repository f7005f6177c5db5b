//! Configuration changes while a gateway runs (CFG-10).

use std::fs;

use serde_json::{Value, json};

use crate::serve_http::demo;
use crate::support::gateway::{Serving, tools_at};
use crate::support::processes::{LONGEST_START, Process, children, marker, wait_until};
use crate::support::program::Folder;

fn write(folder: &Folder, config: &Value) {
    fs::write(folder.project().join("trunkline.json"), config.to_string()).unwrap();
    folder.trust();
}

fn has(folder: &Folder, serving: &Serving, tool: &str) -> bool {
    tools_at(folder, serving.url(), None).iter().any(|it| it == tool)
}

#[test]
fn reload_applies_changes_and_keeps_unchanged_servers_running() {
    let folder = Folder::new();
    let words = demo("words", &marker());
    write(&folder, &json!({ "mcpServers": { "words": words } }));
    let serving = Serving::start(&folder, &[]);
    assert!(has(&folder, &serving, "words_shout"));
    let before = children(serving.process_id());

    let numbers = demo("numbers", &marker());
    write(&folder, &json!({ "mcpServers": { "words": words, "numbers": numbers } }));
    wait_until("it is there", LONGEST_START, || has(&folder, &serving, "numbers_add"));
    serving.wait_for("changed: added numbers; 1 server goes on");

    write(&folder, &json!({ "mcpServers": { "words": words, "numbers": {} } }));
    serving.wait_for("error[no-command-or-url]");
    serving.wait_for("the configuration has errors; what was loaded before stays in use");
    assert!(has(&folder, &serving, "numbers_add") && has(&folder, &serving, "words_shout"));

    write(&folder, &json!({ "mcpServers": { "words": words }, "access": "read-write" }));
    serving.wait_for("changed: removed numbers; 1 server goes on");
    assert!(!has(&folder, &serving, "numbers_add") && has(&folder, &serving, "words_remember"));
    assert!(before.iter().all(Process::runs), "the other server was not touched");
}

#[test]
fn files_of_agents_and_files_that_come_later_are_taken_up() {
    let folder = Folder::new();
    let serving = Serving::start(&folder, &[]);
    serving.wait_for("No configuration found");
    let agents = folder.project().join("AGENTS.md");
    fs::write(&agents, "---\nname: reader\ntools: [words_shout]\n---\nRead.\n").unwrap();
    let servers = json!({ "words": demo("words", &marker()) });
    write(&folder, &json!({ "mcpServers": servers, "agents": "AGENTS.md" }));
    serving.wait_for("added words");
    let url = format!("{}/agents/reader", serving.url());
    assert_eq!(tools_at(&folder, &url, None), ["words_shout"]);
    fs::write(&agents, "---\nname: reader\ntools: [words_count_words]\n---\nRead.\n").unwrap();
    serving.wait_for("AGENTS.md changed: the servers are the same");
    assert_eq!(tools_at(&folder, &url, None), ["words_count_words"]);
}
