//! Third-party servers over every transport, listed and called through the program.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use trunkline_testkit::peers;

use crate::support::listening_server;
use crate::support::program::{Folder, Run};

/// Runs the program with interpreters on PATH.
fn run(folder: &Folder, arguments: &[&str]) -> Run {
    let mut command = folder.command(arguments);
    command.args(["--format", "json"]).env("PATH", std::env::var_os("PATH").unwrap());
    folder.finish(&mut command)
}

fn good(folder: &Folder, arguments: &[&str]) -> Value {
    let run = run(folder, arguments);
    assert_eq!((run.code, run.messages.as_str()), (0, ""), "{run}");
    run.json()
}

pub(crate) fn npm(package: &str, arguments: &[&str]) -> Value {
    let package = peers::node_modules().join("@modelcontextprotocol").join(package);
    let script = package.join("dist/index.js").to_str().unwrap().to_owned();
    let args: Vec<_> = [script.as_str()].iter().chain(arguments).copied().collect();
    json!({ "command": "node", "args": args })
}

pub(crate) fn python(module: &str, arguments: &[&str]) -> Value {
    let args: Vec<_> = ["-m", module].iter().chain(arguments).copied().collect();
    json!({ "command": peers::python(), "args": args })
}

fn folder_with(servers: &Value) -> Folder {
    Folder::new().file("trunkline.json", json!({ "mcpServers": servers }).to_string())
}

/// All reference servers that run as processes, with working directories of their own.
fn all() -> Folder {
    let folder = Folder::new().file("files/hello.txt", "hello");
    let (files, repository) = (folder.project().join("files"), folder.project().join("repository"));
    fs::create_dir(&repository).unwrap();
    let initialised = Command::new("git").args(["init", "--quiet"]).arg(&repository).status();
    assert!(initialised.unwrap().success());
    let mut memory = npm("server-memory", &[]);
    memory["env"] = json!({ "MEMORY_FILE_PATH": folder.project().join("memory.json") });
    let servers = json!({
        "everything": npm("server-everything", &["stdio"]),
        "filesystem": npm("server-filesystem", &[files.to_str().unwrap()]),
        "memory": memory,
        "thinking": npm("server-sequential-thinking", &[]),
        "time": python("mcp_server_time", &[]),
        "fetch": python("mcp_server_fetch", &[]),
        "git": python("mcp_server_git", &["--repository", repository.to_str().unwrap()]),
    });
    // Seven interpreters start at once here, which takes a while on a small machine.
    let content = json!({ "mcpServers": servers, "timeouts": { "handshake": "90s" } });
    folder.file("trunkline.json", content.to_string())
}

#[test]
fn all_reference_servers_are_ready_in_the_newest_revision_they_speak() {
    let status = good(&all(), &["status"]);
    let seen: Vec<_> = status["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| {
            assert!(server["tools"].as_u64().unwrap() > 0, "{server}");
            assert!(server["pid"].is_u64() && server["error"].is_null(), "{server}");
            [&server["name"], &server["state"], &server["protocol"]].map(|it| it.as_str().unwrap())
        })
        .collect();
    let expected = [
        ["everything", "ready", "2025-11-25"],
        ["fetch", "ready", "2026-07-28"],
        ["filesystem", "ready", "2025-11-25"],
        ["git", "ready", "2026-07-28"],
        ["memory", "ready", "2025-11-25"],
        ["thinking", "ready", "2025-11-25"],
        ["time", "ready", "2026-07-28"],
    ];
    assert_eq!(seen, expected);
}

#[test]
fn the_tools_of_all_reference_servers_are_listed() {
    let listed = good(&all(), &["tools"]);
    for (server, tool) in [
        ("everything", "echo"),
        ("fetch", "fetch"),
        ("filesystem", "list_directory"),
        ("git", "git_status"),
        ("memory", "read_graph"),
        ("thinking", "sequentialthinking"),
        ("time", "get_current_time"),
    ] {
        let name = format!("{server}_{tool}");
        let tools = listed["tools"].as_array().unwrap();
        let found = tools.iter().find(|entry| entry["name"] == name);
        let definition = found.unwrap_or_else(|| panic!("there is no {name}: {listed}"));
        assert_eq!(definition["inputSchema"]["type"], "object", "{definition}");
    }
}

/// The text of a tool result.
fn called(folder: &Folder, server: &str, tool: &str, arguments: &Value) -> String {
    let name = format!("{server}_{tool}");
    let result = good(folder, &["call", &name, "--json", &arguments.to_string()]);
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn everything_echoes() {
    let text = called(&all(), "everything", "echo", &json!({ "message": "hello" }));
    assert_eq!(text, "Echo: hello");
}

#[test]
fn filesystem_lists_the_folder_it_was_given() {
    let folder = all();
    let path = folder.project().join("files");
    let text = called(&folder, "filesystem", "list_directory", &json!({ "path": path }));
    assert_eq!(text, "[FILE] hello.txt");
}

#[test]
fn memory_reads_its_empty_graph() {
    let text = called(&all(), "memory", "read_graph", &json!({}));
    let graph: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(graph["entities"], json!([]));
}

#[test]
fn sequential_thinking_takes_a_thought() {
    let thought = json!({
        "thought": "So far, so good.",
        "thoughtNumber": 1,
        "totalThoughts": 1,
        "nextThoughtNeeded": false,
    });
    let text = called(&all(), "thinking", "sequentialthinking", &thought);
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["thoughtNumber"], 1);
}

#[test]
fn time_server_returns_the_time() {
    let text = called(&all(), "time", "get_current_time", &json!({ "timezone": "UTC" }));
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["timezone"], "UTC");
}

#[test]
fn git_server_returns_the_status_of_its_repository() {
    let folder = all();
    let path = folder.project().join("repository");
    let text = called(&folder, "git", "git_status", &json!({ "repo_path": path }));
    assert!(text.contains("No commits yet"), "{text}");
}

#[test]
fn fetch_fetches_a_page() {
    let page = listening_server::always(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/plain\r\n\r\nhello from afar",
    );
    // The page is on this machine, which the server takes for an attack by default.
    let options = ["--ignore-robots-txt", "--allow-private-ips"];
    let folder = folder_with(&json!({ "fetch": python("mcp_server_fetch", &options) }));
    let text = called(&folder, "fetch", "fetch", &json!({ "url": page }));
    assert!(text.contains("hello from afar"), "{text}");
}

/// Checks the status of the only server `remote`, and calls its `echo`.
fn echoes(server: &Value, protocol: &str) {
    let folder = folder_with(&json!({ "remote": server }));
    let status = &good(&folder, &["status"])["servers"][0];
    assert_eq!(status["state"], "ready", "{status}");
    assert_eq!(status["protocol"], protocol, "{status}");
    assert!(status["pid"].is_null(), "{status}");
    assert_eq!(called(&folder, "remote", "echo", &json!({ "message": "far" })), "Echo: far");
}

#[test]
fn everything_is_reached_over_streamable_http() {
    let server = listening_server::everything("streamableHttp", "/mcp");
    echoes(&json!({ "type": "http", "url": server.url }), "2025-11-25");
}

#[test]
fn streamable_http_is_detected() {
    let server = listening_server::everything("streamableHttp", "/mcp");
    echoes(&json!({ "url": server.url }), "2025-11-25");
}

#[test]
fn everything_is_reached_over_sse() {
    let server = listening_server::everything("sse", "/sse");
    echoes(&json!({ "type": "sse", "url": server.url }), "2025-11-25");
}

#[test]
fn sse_is_detected() {
    let server = listening_server::everything("sse", "/sse");
    echoes(&json!({ "url": server.url }), "2025-11-25");
}

#[test]
fn the_demo_servers_are_reached_over_modern_http() {
    let place = Folder::new();
    let [words, numbers] = ["words", "numbers"].map(|name| listening_server::demo(&place, name));
    let folder = folder_with(&json!({
        "words": { "type": "http", "url": words.url },
        "numbers": { "url": numbers.url },
    }));
    let status = good(&folder, &["status"]);
    for server in status["servers"].as_array().unwrap() {
        assert_eq!(server["state"], "ready", "{server}");
        assert_eq!(server["protocol"], "2026-07-28", "{server}");
    }
    assert_eq!(called(&folder, "words", "shout", &json!({ "text": "far" })), "FAR");
    assert_eq!(called(&folder, "numbers", "add", &json!({ "a": 2, "b": 40 })), "42");
}

/// Checks the status of the only server `adding`, which is written with FastMCP, and calls it.
fn adds_and_counts(server: &Value) {
    let folder = folder_with(&json!({ "adding": server }));
    let status = &good(&folder, &["status"])["servers"][0];
    assert_eq!(status["state"], "ready", "{status}");
    assert_eq!(status["serverInfo"]["name"], "adding", "{status}");
    let listed = good(&folder, &["tools"]);
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["adding_add", "adding_count"]);
    assert_eq!(called(&folder, "adding", "add", &json!({ "a": 2, "b": 40 })), "42");
    assert_eq!(called(&folder, "adding", "count", &json!({ "to": 3 })), "counted to 3");
}

#[test]
fn a_server_of_fastmcp_is_reached_over_http() {
    let server = listening_server::fastmcp();
    adds_and_counts(&json!({ "type": "http", "url": server.url }));
}

#[test]
fn the_address_of_a_server_of_fastmcp_is_enough() {
    let server = listening_server::fastmcp();
    adds_and_counts(&json!({ "url": server.url }));
}

#[test]
fn a_server_of_fastmcp_is_run_over_stdio() {
    let args = [json!("-I"), json!(peers::fastmcp_server())];
    // It takes seconds to start, so it is started only twice.
    let timeouts = json!({ "handshake": "90s" });
    let server = json!({ "command": peers::python(), "args": args, "timeouts": timeouts });
    let folder = folder_with(&json!({ "adding": server }));
    let listed = good(&folder, &["tools"]);
    assert_eq!(listed["tools"][0]["name"], "adding_add", "{listed}");
    assert_eq!(called(&folder, "adding", "add", &json!({ "a": 2, "b": 40 })), "42");
}
