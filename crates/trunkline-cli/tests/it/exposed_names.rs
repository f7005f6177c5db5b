//! Names and URIs that several servers have.

use serde_json::json;
use trunkline_testkit::peers;

use crate::support::program::{Folder, Run};
use crate::third_party_servers::npm;

/// Two servers with the same tools under the same prefix.
fn alike() -> Folder {
    let program = env!("CARGO_BIN_EXE_trunkline");
    let server = json!({ "command": program, "args": ["demo-server", "words"], "prefix": "p" });
    let content = json!({ "mcpServers": { "one": server, "two": server } });
    Folder::new().file("trunkline.json", content.to_string())
}

/// TOOL-2: renamed items are reported with the reason, in every command.
#[test]
fn names_that_had_to_be_changed_are_reported() {
    let folder = alike();
    let check = folder.run(&["check"]);
    assert!(check.to_string().contains("warning[shared-prefix]"), "{check}");
    let all = folder.run(&["tools", "--all"]);
    assert!(all.messages.contains("names had to be changed:"), "{all}");
    let reason = "it cannot be `p_shout`, because something else has the same name";
    assert!(all.messages.contains(reason), "{all}");
    let json = folder.run(&["tools", "--all", "--format", "json"]).json();
    let renamed = json["renamed"].as_array().unwrap();
    let shout: Vec<_> = renamed.iter().filter(|it| it["plain"] == "p_shout").collect();
    assert_eq!(shout.len(), 2, "{json}");
    let name = shout[0]["name"].as_str().unwrap();
    let explained = folder.run(&["explain", name]);
    assert!(explained.output.contains(&format!("Its name was changed: {reason}.")), "{explained}");
    for command in ["explain", "call"] {
        let run = folder.run(&[command, "p_shout"]);
        assert_eq!(run.code, 4, "{run}");
        assert!(run.messages.contains("did you mean `p_shout_"), "{run}");
    }
}

/// Runs the program with interpreters on PATH.
fn run(folder: &Folder, arguments: &[&str]) -> Run {
    let mut command = folder.command(arguments);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    folder.finish(&mut command)
}

/// Regression: `explain` described a server's tool under the name of a meta tool, and `call` ran the
/// meta tool. Both commands are about tools of servers.
#[test]
fn name_of_a_meta_tool_is_never_that_of_a_server() {
    let tools = json!({ "tools": [{ "name": "search", "inputSchema": { "type": "object" } }] });
    for mode in ["direct", "meta"] {
        let folder = Folder::new().file("tools.list.json", tools.to_string());
        let place = folder.project();
        let server = json!({
            "command": peers::python(), "args": ["-I", peers::canned_server(), place, "legacy"],
        });
        let content = json!({ "mode": mode, "mcpServers": { "trunkline": server } });
        let folder = folder.file("trunkline.json", content.to_string());
        let json = folder.run(&["tools", "--all", "--format", "json"]).json();
        let name = json["renamed"][0]["name"].as_str().unwrap_or_else(|| panic!("{json}"));
        let explained = folder.run(&["explain", name]);
        let reason = "it cannot be `trunkline_search`, because the host has something of that name";
        assert!(explained.output.contains(reason), "{explained}");
        let reserved = folder.run(&["explain", "trunkline_search"]);
        assert_eq!(reserved.code, 4, "{reserved}");
        assert!(reserved.messages.contains(&format!("did you mean `{name}`?")), "{reserved}");
        assert!(reserved.messages.contains("a tool of Trunkline itself"), "{reserved}");
        let called = folder.run(&["call", "trunkline_search", "--json", r#"{ "queries": ["x"] }"#]);
        assert_eq!(called.code, 4, "{called}");
        let heard = std::fs::read_to_string(place.join("heard")).unwrap();
        assert!(!heard.contains("tools/call"), "{heard}");
    }
}

/// TOOL-12: an ambiguous URI is refused with the qualified alternatives; arguments of prompts are
/// completed.
#[test]
fn uris_of_several_servers_are_distinguished() {
    let server = npm("server-everything", &["stdio"]);
    let content = json!({ "mcpServers": { "e": server, "f": server } });
    let folder = Folder::new().file("trunkline.json", content.to_string());
    let bare = "demo://resource/dynamic/text/7";
    let refused = run(&folder, &["read", bare]);
    assert_eq!(refused.code, 4, "{refused}");
    let forms = format!("did you mean `trunkline://e/{bare}` or `trunkline://f/{bare}`?");
    assert!(refused.messages.contains(&forms) && !refused.messages.contains("hidden"), "{refused}");
    let read = run(&folder, &["read", &format!("trunkline://f/{bare}")]);
    assert!(read.code == 0 && read.output.starts_with("Resource 7"), "{read}");
    // A link is qualified with its own server, although nothing of the other one is known.
    let links = ["call", "e_get-resource-links", "--arg", "count=2", "--format", "json"];
    let links = run(&folder, &links);
    let address = links.json()["content"][1]["uri"].as_str().unwrap().to_owned();
    assert!(address.starts_with("trunkline://e/demo://resource/dynamic/"), "{links}");
    assert_eq!(run(&folder, &["read", &address]).code, 0, "{address}");
    let complete = run(&folder, &["complete", "e_completable-prompt", "department=S"]);
    assert_eq!((complete.code, complete.output.as_str()), (0, "Sales\nSupport\n"), "{complete}");
}
