//! Prompts, resources and resource templates that are cached on disk: commands show them without starting a server, an
//! old list gives no wrong answer, and gateways do not use them (CON-9, CON-15).

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use trunkline_testkit::peers;

use crate::support::canned_server::canned_server;
use crate::support::program::{Folder, Run};

/// A server that counts its starts in `NAME.starts`, and has the results in `NAME.json`, which can change.
fn counted(name: &str) -> Value {
    let python = peers::python();
    let script = format!(
        "echo started >> {name}.starts; exec '{}' -I server.py \"$(cat {name}.json)\"",
        python.display()
    );
    json!({ "command": "/bin/sh", "args": ["-c", script] })
}

/// The results of a server with a prompt and a resource.
fn results(server: &str, prompt: &str, resource: &str) -> String {
    let said = json!({ "type": "text", "text": format!("{server} said it") });
    json!({
        "tools/list": { "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] },
        "prompts/list": { "prompts": [{ "name": prompt }, { "name": "" }] },
        "prompts/get": { "messages": [{ "role": "user", "content": said }] },
        "resources/list": { "resources": [{ "name": "r", "uri": resource }] },
        "resources/templates/list": { "resourceTemplates": [
            { "name": "t", "uriTemplate": format!("{server}://{{page}}") },
        ] },
        "resources/read": { "contents": [{ "uri": resource, "text": format!("{server} has it") }] },
    })
    .to_string()
}

/// Two such servers, and a demo server without prompts and resources.
fn folder() -> Folder {
    let program = env!("CARGO_BIN_EXE_trunkline");
    let words = format!("echo started >> words.starts; exec {program} demo-server words");
    let config = json!({ "mcpServers": {
        "a": counted("a"),
        "b": counted("b"),
        "words": { "command": "/bin/sh", "args": ["-c", words] },
    } });
    let server = canned_server(&json!({}));
    Folder::new()
        .file("trunkline.json", config.to_string())
        .file("server.py", server["args"][2].as_str().unwrap())
        .file("a.json", results("a", "ask", "x://one"))
        .file("b.json", results("b", "beg", "x://two"))
}

fn run(folder: &Folder, arguments: &[&str]) -> Run {
    let path = std::env::var_os("PATH").unwrap();
    folder.finish(folder.command(arguments).env("PATH", path).env("SECRET_TOKEN", TOKEN))
}

const TOKEN: &str = "hunter22-correct-horse";

/// How often each of the three servers was started.
fn starts(folder: &Folder) -> [usize; 3] {
    ["a", "b", "words"].map(|name| {
        let text = fs::read_to_string(folder.project().join(format!("{name}.starts")));
        text.map_or(0, |text| text.lines().count())
    })
}

fn change(folder: &Folder, name: &str, results: &str) {
    fs::write(folder.project().join(format!("{name}.json")), results).unwrap();
}

fn cache_files(folder: &Folder) -> Vec<PathBuf> {
    let cache = folder.project().join("../home/.cache/trunkline/servers");
    fs::read_dir(cache).into_iter().flatten().map(|file| file.unwrap().path()).collect()
}

/// Issue: "Lists known from disk are shown at once (with their age; `--refresh`), no server is started to list".
#[test]
fn prompts_and_resources_that_are_known_from_disk_need_no_server() {
    let folder = folder();
    for (command, shown) in [("prompts", "a_ask"), ("resources", "a://{page}")] {
        let first = run(&folder, &[command]);
        assert!(first.code == 0 && first.output.contains(shown), "{first}");
        assert!(!first.messages.contains("--refresh"), "{first}");
        // The tools are listed with every start, and their list must not remove the others.
        assert_eq!(run(&folder, &["tools", "--refresh"]).code, 0);
        let before = starts(&folder);
        let second = run(&folder, &[command]);
        assert_eq!((second.code, &second.output), (0, &first.output), "{second}");
        let notice = format!("3 servers were not started: the {command} are those of the last run");
        assert!(second.messages.contains(&notice), "{second}");
        let json = run(&folder, &[command, "--format", "json"]).json();
        assert_eq!(json["remembered"], json!(["a", "b", "words"]), "{json}");
        assert_eq!(json["rememberedAt"].as_object().unwrap().len(), 3, "{json}");
        assert_eq!(starts(&folder), before, "also the server without such items is not started");
        let third = run(&folder, &[command, "--refresh"]);
        assert!(third.code == 0 && !third.messages.contains("--refresh"), "{third}");
        assert_eq!(starts(&folder), before.map(|count| count + 1));
    }
    // The rejected prompt is named from the cache, too.
    let run = run(&folder, &["prompts", "a"]);
    assert!(run.messages.contains("server `a`: 1 prompt is not used"), "{run}");
    for file in cache_files(&folder) {
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
}

/// `explain` finds a cached prompt, and names the list that it used.
#[test]
fn a_cached_prompt_is_explained_without_a_server() {
    let folder = folder();
    assert_eq!(run(&folder, &["prompts"]).code, 0);
    let before = starts(&folder);
    let explained = run(&folder, &["explain", "a_ask"]);
    assert_eq!((explained.code, starts(&folder)), (0, before), "{explained}");
    assert!(explained.messages.contains("its prompts are those of the last run"), "{explained}");
}

/// A known list says which server to start.
#[test]
fn a_cached_list_leads_to_the_server_of_an_item() {
    let folder = folder();
    assert_eq!(run(&folder, &["prompts"]).code, 0);
    assert_eq!(run(&folder, &["resources"]).code, 0);
    let [a, b, words] = starts(&folder);
    let asked = run(&folder, &["prompt", "ask"]);
    assert!(asked.code == 0 && asked.output.contains("a said it"), "{asked}");
    assert_eq!(starts(&folder), [a + 1, b, words]);
    let read = run(&folder, &["read", "x://two"]);
    assert!(read.code == 0 && read.output.contains("b has it"), "{read}");
    assert_eq!(starts(&folder), [a + 1, b + 1, words]);
}

/// Items that have moved, are new or are gone since their list was cached.
#[test]
fn an_old_list_gives_no_wrong_answer() {
    let folder = folder();
    assert_eq!(run(&folder, &["prompts"]).code, 0);
    assert_eq!(run(&folder, &["resources"]).code, 0);
    // Both servers have what the other one had.
    change(&folder, "a", &results("a", "beg", "x://two"));
    change(&folder, "b", &results("b", "ask", "x://one"));
    for (command, expected) in [
        (&["prompt", "ask"][..], "b said it"),
        (&["prompt", "a", "beg"], "a said it"),
        (&["prompt", "b_ask"], "b said it"),
        (&["read", "x://one"], "b has it"),
        (&["read", "x://two"], "a has it"),
        (&["read", "x://two", "--server", "a"], "a has it"),
    ] {
        let folder = folder_with_cache_of(&folder);
        let run = run(&folder, command);
        assert!(run.code == 0 && run.output.contains(expected), "{command:?}: {run}");
    }
    change(&folder, "a", &results("a", "new", "x://new"));
    for (command, code) in [
        (&["prompt", "new"][..], 0),
        (&["read", "x://new"], 0),
        (&["prompt", "a_ask"], 4),
        (&["prompt", "beg"], 4),
    ] {
        let folder = folder_with_cache_of(&folder);
        let run = run(&folder, command);
        assert_eq!(run.code, code, "{command:?}: {run}");
    }
    let listed = run(&folder, &["prompts", "--refresh"]);
    assert!(listed.output.contains("a_new") && !listed.output.contains("beg"), "{listed}");
}

/// A copy of a directory and its cache, so that a command does not see the lists that another one has refreshed.
fn folder_with_cache_of(other: &Folder) -> Folder {
    let mut folder = Folder::new();
    for name in ["trunkline.json", "server.py", "a.json", "b.json"] {
        folder = folder.file(name, fs::read(other.project().join(name)).unwrap());
    }
    for file in cache_files(other) {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let name = format!("../home/.cache/trunkline/servers/{name}");
        folder = folder.file(&name, fs::read(file).unwrap());
    }
    folder
}

/// A server whose list fails, or that does not start, has no old items.
#[test]
fn a_refresh_that_fails_shows_no_old_items() {
    let folder = folder();
    assert_eq!(run(&folder, &["prompts"]).code, 0);
    let mut broken: Value = serde_json::from_str(&results("a", "ask", "x://one")).unwrap();
    broken["prompts/list"] = json!({ "prompts": 7 });
    change(&folder, "a", &broken.to_string());
    let failed = run(&folder, &["prompts", "--refresh"]);
    assert!(failed.code == 1 && !failed.output.contains("a_ask"), "{failed}");
    assert!(failed.output.contains("b_beg"), "{failed}");
    change(&folder, "a", "no JSON");
    let down = run(&folder, &["prompts", "--refresh"]);
    assert!(down.code == 1 && !down.output.contains("a_ask"), "{down}");
    let down = run(&folder, &["prompt", "a_ask"]);
    assert_eq!(down.code, 5, "{down}");
}

/// SEC-2: a list that repeats a secret is not cached. The others are.
#[test]
fn a_prompt_that_repeats_a_secret_is_not_written() {
    let mut server = counted("a");
    server["env"] = json!({ "TOKEN": "${SECRET_TOKEN}" });
    let config = json!({ "mcpServers": { "a": server } });
    let folder = folder().file("trunkline.json", config.to_string());
    change(&folder, "a", &results("a", TOKEN, "x://one"));
    for command in ["prompts", "resources", "tools"] {
        assert_eq!(run(&folder, &[command]).code, 0);
    }
    let before = starts(&folder);
    assert_eq!(run(&folder, &["resources"]).code, 0);
    assert_eq!(run(&folder, &["tools"]).code, 0);
    assert_eq!(starts(&folder), before);
    assert_eq!(run(&folder, &["prompts"]).code, 0);
    assert_ne!(starts(&folder), before);
    let files = cache_files(&folder);
    assert_eq!(files.len(), 1);
    let text = fs::read_to_string(&files[0]).unwrap();
    assert!(!text.contains(TOKEN) && text.contains("x://one"), "{text}");
}

/// A gateway asks its servers: an old list would be served as the current one.
#[test]
fn a_gateway_does_not_use_cached_prompts() {
    let folder = folder();
    assert_eq!(run(&folder, &["prompts"]).code, 0);
    change(&folder, "a", &results("a", "new", "x://new"));
    let mut command = folder.command(&["serve", "--stdio"]);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    let mut gateway =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = gateway.stdin.take().unwrap();
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "prompts/list" }),
    ] {
        writeln!(input, "{message}").unwrap();
    }
    let lines = BufReader::new(gateway.stdout.take().unwrap()).lines();
    let mut messages = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let answer = messages.find(|message| message["id"] == 2).unwrap();
    drop(input);
    assert!(gateway.wait().unwrap().success());
    let prompts = answer["result"]["prompts"].as_array().unwrap();
    let names: Vec<_> = prompts.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a_new", "b_beg"], "{answer}");
    // The commands still have the list of their last run.
    let before = starts(&folder);
    let listed = run(&folder, &["prompts"]);
    assert!(listed.output.contains("a_ask") && starts(&folder) == before, "{listed}");
}
