//! How long commands wait for servers: not at all for cached lists, not longer than the configured
//! timeouts, and not after a second Ctrl-C.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::program::{Folder, Run};
use crate::support::wait::wait_until;

/// Longer than anything here takes, and shorter than the timeouts that must not be waited for.
const LIMIT: Duration = Duration::from_secs(40);

/// A demo server that counts its starts.
fn counted() -> Value {
    let program = env!("CARGO_BIN_EXE_trunkline");
    let script = format!("echo started >> starts.txt; exec {program} demo-server words");
    json!({ "command": "/bin/sh", "args": ["-c", script] })
}

fn shell(script: &str, timeouts: &Value) -> Folder {
    let server = json!({ "command": "/bin/sh", "args": ["-c", script], "timeouts": timeouts });
    Folder::new().file("mcp.json", json!({ "mcpServers": { "s": server } }).to_string())
}

fn tools(folder: &Folder, more: &[&str]) -> Run {
    let arguments = [&["tools", "--config", "mcp.json"], more].concat();
    let path = std::env::var_os("PATH").unwrap();
    folder.finish(folder.command(&arguments).env("PATH", path))
}

fn starts(folder: &Folder) -> usize {
    fs::read_to_string(folder.project().join("starts.txt")).map_or(0, |text| text.lines().count())
}

/// CON-15: a list that is cached on disk is used at once.
#[test]
fn tools_that_are_known_from_disk_need_no_server() {
    let config = json!({ "mcpServers": { "words": counted() } }).to_string();
    let folder = Folder::new().file("mcp.json", config);
    let first = tools(&folder, &[]);
    assert!(
        first.output.contains("words_shout") && !first.messages.contains("--refresh"),
        "{first}"
    );
    let before = starts(&folder);
    let second = tools(&folder, &[]);
    assert_eq!((second.output.as_str(), starts(&folder)), (first.output.as_str(), before));
    assert!(second.messages.contains("`--refresh` asks again"), "{second}");
    let json = tools(&folder, &["--format", "json"]).json();
    assert_eq!((&json["remembered"], &json["failures"]), (&json!(["words"]), &json!([])));
    let third = tools(&folder, &["--refresh"]);
    assert!(starts(&folder) > before && !third.messages.contains("--refresh"), "{third}");
}

/// A server that starts slowly, and counts its starts.
fn slow(seconds: u32) -> Value {
    let program = env!("CARGO_BIN_EXE_trunkline");
    let script =
        format!("echo started >> starts.txt; sleep {seconds}; exec {program} demo-server words");
    json!({ "command": "/bin/sh", "args": ["-c", script] })
}

/// CALL-1, CON-8: `--timeout` includes the start of the server.
#[test]
fn a_timeout_holds_for_the_start_too() {
    let config = json!({ "mcpServers": { "s": slow(300) } }).to_string();
    let folder = Folder::new().file("mcp.json", config);
    let path = std::env::var_os("PATH").unwrap();
    for command in [
        &["call", "s_shout"][..],
        &["read", "x://y"],
        &["prompt", "s_p"],
        &["complete", "s_p", "a"],
        &["explain", "s_p"],
    ] {
        let begun = Instant::now();
        let arguments = [command, &["--config", "mcp.json", "--timeout", "1s"]].concat();
        let run = folder.finish(folder.command(&arguments).env("PATH", &path));
        assert!(begun.elapsed() < LIMIT, "{run}");
        assert_eq!(run.code, 8, "{run}");
        let said = "server `s` was not ready within 1s (`--timeout`)";
        assert!(run.messages.contains(said), "{run}");
    }
}

/// For a name with the prefix of a known server, other servers are not started to find suggestions.
#[test]
fn a_name_that_a_server_does_not_have_starts_no_other_server() {
    let words = json!({
        "command": env!("CARGO_BIN_EXE_trunkline"), "args": ["demo-server", "words"],
    });
    let config = json!({ "mcpServers": { "words": words, "other": counted() } }).to_string();
    let folder = Folder::new().file("mcp.json", config);
    let run = folder.run(&["call", "words_zzzzzz", "--config", "mcp.json"]);
    assert_eq!((run.code, starts(&folder)), (4, 0), "{run}");
}

/// CON-15: explaining a cached item needs no server.
#[test]
fn cached_items_are_explained_without_starting_a_server() {
    let config = json!({ "mcpServers": { "words": counted() } }).to_string();
    let folder = Folder::new().file("mcp.json", config);
    tools(&folder, &[]);
    let before = starts(&folder);
    let run = folder.run(&["explain", "words_shout", "--config", "mcp.json"]);
    assert_eq!((run.code, starts(&folder)), (0, before), "{run}");
    assert!(run.messages.contains("server `words` was not started"), "{run}");
}

/// Only servers without cached lists are started.
#[test]
fn servers_without_a_cached_list_are_still_started() {
    let one = json!({ "mcpServers": { "words": counted() } }).to_string();
    let folder = Folder::new().file("mcp.json", one);
    tools(&folder, &[]);
    let numbers = json!({
        "command": env!("CARGO_BIN_EXE_trunkline"), "args": ["demo-server", "numbers"],
    });
    let both = json!({ "mcpServers": { "words": counted(), "numbers": numbers } }).to_string();
    fs::write(folder.project().join("mcp.json"), both).unwrap();
    let before = starts(&folder);
    let run = tools(&folder, &[]);
    assert!(run.output.contains("words_shout") && run.output.contains("numbers_add"), "{run}");
    assert_eq!(starts(&folder), before, "{run}");
}

/// `timeouts.connect` is not added.
#[test]
fn a_handshake_takes_as_long_as_its_bound() {
    let timeouts = json!({ "connect": "2m", "handshake": "1s" });
    let folder = shell("echo waiting for the moon >&2; exec sleep 300", &timeouts);
    let begun = Instant::now();
    let run = tools(&folder, &[]);
    assert!(begun.elapsed() < LIMIT, "{run}");
    let said = "it did not answer in time: `timeouts.handshake` is 1s";
    assert!(run.messages.contains(said), "{run}");
    assert!(run.messages.contains("waiting for the moon"), "{run}");
}

/// An initialized server is an MCP server, however long its list takes; the message names the
/// timeout.
#[test]
fn late_list_is_reported() {
    let script = r#"
        while read -r line; do
            id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
            case "$line" in
                *server/discover*)
                    echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"no\"}}";;
                *'"initialize"'*)
                    echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"x\",\"version\":\"1\"}}}";;
            esac
        done"#;
    let run = tools(&shell(script, &json!({ "list": "1s" })), &[]);
    assert!(run.messages.contains("in time: `timeouts.list` is 1s"), "{run}");
    assert!(!run.messages.contains("is this an MCP server?"), "{run}");
}

/// A process that does not respond is started again in the other era. The stderr of the first one
/// is not lost when the second one times out.
#[test]
fn stderr_of_the_first_process_is_kept() {
    let script = "if [ -e once ]; then exec sleep 300; fi; touch once; \
                  echo cannot reach the database >&2; exec sleep 300";
    let run = tools(&shell(script, &json!({ "handshake": "2s" })), &[]);
    assert!(run.messages.contains("it said: cannot reach the database"), "{run}");
}

fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

/// A server that ignores SIGTERM does not delay a second interrupt, and is not left running.
#[test]
fn a_second_interrupt_ends_at_once() {
    let script = "trap 'echo told >> told.txt' TERM; echo $$ > pid.txt; \
                  while true; do sleep 0.1; done";
    let folder = shell(script, &json!({ "shutdown": "5m", "handshake": "5m" }));
    let path = std::env::var_os("PATH").unwrap();
    let mut command = folder.command(&["tools", "--config", "mcp.json"]);
    let command = command.env("PATH", path).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let file = |name: &str| fs::read_to_string(folder.project().join(name)).unwrap_or_default();
    wait_until("it starts", LIMIT, || file("pid.txt").ends_with('\n'));
    interrupt(&child);
    wait_until("it is told to end", LIMIT, || !file("told.txt").is_empty());
    assert!(child.try_wait().unwrap().is_none());
    interrupt(&child);
    wait_until("it ends", LIMIT, || child.try_wait().unwrap().is_some());
    let server = format!("/proc/{}", file("pid.txt").trim());
    wait_until("its server ends", LIMIT, || !fs::exists(&server).unwrap());
    let messages = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert!(messages.contains("interrupted twice; the servers have been killed"), "{messages}");
}

/// A server that is busy with a call and ends on SIGTERM is not waited for.
#[test]
fn interrupt_during_a_call_stops_the_server() {
    let script = r#"
        trap 'echo told > told.txt; exit 0' TERM
        while read -r line; do
            id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
            case "$line" in
            *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
            *tools/list*) result='{"tools":[{"name":"long","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}' ;;
            *tools/call*) echo called > called.txt; while true; do sleep 0.1; done ;;
            *) continue ;;
            esac
            echo '{"jsonrpc":"2.0","id":'"$id"',"result":'"$result"'}'
        done"#;
    let server = json!({
        "command": "/bin/sh", "args": ["-c", script], "protocol": "legacy",
        "timeouts": { "shutdown": "5m" },
    });
    let config = json!({ "mcpServers": { "s": server } }).to_string();
    let folder = Folder::new().file("mcp.json", config);
    let mut command = folder.command(&["call", "s_long", "--config", "mcp.json"]);
    let command = command.env("PATH", std::env::var_os("PATH").unwrap());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let is_there = |name: &str| folder.project().join(name).exists();
    wait_until("it is called", LIMIT, || is_there("called.txt"));
    interrupt(&child);
    wait_until("it ends", LIMIT, || child.try_wait().unwrap().is_some());
    assert!(is_there("told.txt"));
}

/// Seen: a limit that ended between two steps named no server, or said that the connection was closed.
#[test]
fn a_limit_that_ends_at_any_step_says_so() {
    let program = env!("CARGO_BIN_EXE_trunkline");
    // The long secret makes the step after the list take longer.
    let secret = "0123456789abcdef ".repeat(300);
    let server = json!({
        "command": program, "args": ["demo-server", "words"], "env": { "TOKEN": secret },
    });
    let config = json!({ "mcpServers": { "words": server } }).to_string();
    let folder = Folder::new().file("mcp.json", config);
    for milliseconds in (1..80).step_by(3) {
        let limit = format!("{milliseconds}ms");
        let arguments = ["call", "words_shout", "a", "--config", "mcp.json", "--timeout", &limit];
        let called = folder.run(&arguments);
        if called.code != 0 {
            assert_eq!(called.code, 8, "{called}");
            assert!(called.messages.contains("server `words`"), "{called}");
            assert!(called.messages.contains(&format!("within {limit}")), "{called}");
        }
    }
}
