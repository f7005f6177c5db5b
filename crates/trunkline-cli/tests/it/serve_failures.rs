//! `trunkline serve` with servers that fail: each failure is reported once.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::gateway::{INITIALIZE, Serving, post, tools_at};
use crate::support::processes::{LONGEST_START, send, wait_until};
use crate::support::program::Folder;

fn shell(script: &str) -> Value {
    json!({ "command": "/bin/sh", "args": ["-c", script] })
}

/// A server that writes its process ID to a file.
fn found_by_file(file: &str) -> Value {
    let mut server = shell(&format!("echo $$ > {file}; exec \"$PROGRAM\" demo-server words"));
    server["env"] = json!({ "PROGRAM": env!("CARGO_BIN_EXE_trunkline") });
    server
}

fn process_in(folder: &Folder, file: &str) -> u32 {
    let path = folder.project().join(file);
    wait_until(file, LONGEST_START, || fs::read_to_string(&path).is_ok_and(|it| !it.is_empty()));
    fs::read_to_string(&path).unwrap().trim().parse().unwrap()
}

/// Servers without restarts, unless an entry sets another policy.
fn folder(servers: &Value) -> Folder {
    let config = json!({ "restart": "never", "mcpServers": servers }).to_string();
    Folder::new().file("trunkline.json", config)
}

/// The response to a modern client that calls a tool.
fn shouted(url: &str) -> String {
    let said = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "words_shout", "arguments": { "text": "hi" }, "_meta": said });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "words_shout"),
    ];
    post(url, &headers, &call.to_string()).1
}

fn faulty() -> Value {
    let mut noisy = shell("while read -r line; do echo hello; done");
    noisy["timeouts"] = json!({ "connect": "3s", "handshake": "3s", "grace": "20s" });
    let mut ends = shell("echo \"no key in $KEY\" >&2; exit 3");
    ends["env"] = json!({ "KEY": "sesame-open" });
    let away = json!({ "url": "http://127.0.0.1:1/mcp" });
    json!({ "missing": { "command": "no-such-program" }, "ends": ends, "noisy": noisy, "away": away })
}

/// CON-4: reports the error, the last stderr lines without secrets, and a hint.
#[test]
fn failed_start_is_reported_once_with_its_reason() {
    let folder = folder(&faulty());
    let serving = Serving::start(&folder, &[]);
    for _ in 0..2 {
        assert_eq!(tools_at(&folder, serving.url(), None), Vec::<String>::new());
    }
    for said in [
        "warning: server `missing`: the program `no-such-program` was not found\n  install it",
        "warning: server `ends`: the process ended (exit status: 3)\n  it said: no key in ***\n  \
         it stays down",
        "warning: server `noisy`: it did not answer in time: `timeouts.handshake` is 3s\n  ",
        "not MCP; is this an MCP server?",
        "warning: server `away`: http://127.0.0.1:1 refuses connections\n  is the server running",
    ] {
        serving.wait_for(said);
    }
    assert_eq!(serving.messages().matches("warning: ").count(), 4, "{}", serving.messages());
    let quiet = Serving::start(&folder, &["--quiet"]);
    tools_at(&folder, quiet.url(), None);
    assert_eq!(quiet.messages(), "");
}

/// For an explicit file, a client would see a healthy server without any items.
#[test]
fn a_file_that_was_named_and_holds_nothing_usable_is_not_served() {
    let folder = Folder::new()
        .file("cut.json", "{ \"mcpServers\": {")
        .file("wrong.json", json!({ "mcpServers": { "a": { "comand": "x" } } }).to_string());
    for (file, why) in [
        ("missing.json", "does not exist"),
        ("cut.json", "is never closed"),
        ("wrong.json", "did you mean `command`?"),
    ] {
        for way in ["--stdio", "--listen=127.0.0.1:0"] {
            let run = folder.run(&["serve", way, "--config", file]);
            assert_eq!((run.code, run.output.as_str()), (1, ""), "{run}");
            let end = format!("error: nothing can be served: no server of {file} can be used\n");
            assert!(run.messages.contains(why) && run.messages.ends_with(&end), "{run}");
        }
    }
}

/// An unusable server is in the lists for programs, even if it cannot be started at all.
#[test]
fn server_with_an_invalid_entry_is_named_in_lists_and_status() {
    let mut working = shell("exec \"$PROGRAM\" demo-server words");
    working["env"] = json!({ "PROGRAM": env!("CARGO_BIN_EXE_trunkline") });
    let folder = folder(&json!({ "words": working, "wrong": { "comand": "x" } }));
    let serving = Serving::start(&folder, &[]);
    let said = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let list =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": said } });
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
    let answer = post(serving.url(), &headers, &list.to_string()).1;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let answer: Value = serde_json::from_str(body).unwrap();
    let unavailable = &answer["result"]["_meta"]["io.trunkline/unavailable"];
    let wrong = json!([{ "server": "wrong", "state": "failed", "retry": false,
        "reason": "its entry in the configuration has errors" }]);
    assert_eq!(*unavailable, wrong, "{answer}");
    let run = folder.run(&["status"]);
    assert_eq!(run.code, 1, "{run}");
    let row = run.output.lines().find(|line| line.starts_with("wrong "));
    assert!(row.is_some_and(|row| row.ends_with("its entry has errors")), "{run}");
}

/// CON-5: reports the end and the recovery.
#[test]
fn server_exit_and_recovery_are_reported() {
    let mut again = found_by_file("again");
    again["restart"] = json!("on-failure");
    let folder = folder(&json!({ "stays": found_by_file("stays"), "again": again }));
    let serving = Serving::start(&folder, &[]);
    assert!(!tools_at(&folder, serving.url(), None).is_empty());
    for server in ["stays", "again"] {
        send("KILL", process_in(&folder, server));
        serving.wait_for(&format!("warning: server `{server}`: the process ended (signal: 9"));
    }
    serving.wait_for("  it stays down until its entry is changed");
    serving.wait_for("  it is started again in 0.");
    serving.wait_for("server `again` is ready again\n");
    let messages = serving.messages();
    assert_eq!(messages.matches("warning: ").count(), 2, "{messages}");
    assert!(!messages.contains("`stays` is ready"), "{messages}");
}

/// CON-5: only its client would notice; no list reports it.
#[test]
fn exit_of_a_dedicated_server_is_reported_in_one_line() {
    let mut own = shell("echo $$ >> own; exec \"$PROGRAM\" demo-server words");
    own["env"] = json!({ "PROGRAM": env!("CARGO_BIN_EXE_trunkline"), "KEY": "sesame-open" });
    own["share"] = json!("per-client");
    own["access"] = json!("read-write");
    let folder = folder(&json!({ "words": own }));
    let serving = Serving::start(&folder, &[]);
    let shout = || shouted(serving.url());
    assert!(shout().contains("HI"), "{}", shout());
    let processes = || -> Vec<u32> {
        let lines = fs::read_to_string(folder.project().join("own")).unwrap();
        lines.lines().map(|line| line.parse().unwrap()).collect()
    };
    // The first is the shared one.
    let own = processes()[1];
    send("KILL", own);
    let said = "warning: server `words` of one client: the process ended (signal: 9 (SIGKILL)); \
                another one takes its place when that client calls again\n";
    serving.wait_for(said);
    assert!(shout().contains("HI"));
    assert_eq!(processes().len(), 3);
    assert_eq!(serving.messages().matches("warning: ").count(), 1, "{}", serving.messages());
}

/// CON-4: that no connection is accepted is reported once, however long it lasts, and so is
/// recovery.
#[test]
fn accept_failure_and_recovery_are_reported_once() {
    let folder = folder(&json!({}));
    let serving = Serving::start_with_files(&folder, 20);
    let place = serving.url().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let connect = || TcpStream::connect(place).unwrap();
    let crowd: Vec<_> = (0..40).map(|_| connect()).collect();
    serving.wait_for("warning: no connection can be accepted: Too many open files");
    let has_tried_again = || serving.messages().matches("accept failed").count() >= 3;
    wait_until("it is tried again", LONGEST_START, has_tried_again);
    assert_eq!(serving.messages().matches("accepted").count(), 1, "{}", serving.messages());
    drop(crowd);
    serving.wait_for("connections are accepted again\n");
    assert_eq!(post(serving.url(), &[], INITIALIZE).0, 200);
    let _crowd: Vec<_> = (0..40).map(|_| connect()).collect();
    let is_said_again = || serving.messages().matches("no connection").count() == 2;
    wait_until("a second time", LONGEST_START, is_said_again);
    // A pending delay between attempts does not delay shutdown.
    let begin = Instant::now();
    let (code, all) = serving.ended_by("TERM");
    assert_eq!((code, all.matches("accepted").count()), (Some(0), 3), "{all}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[test]
fn failed_start_is_reported_on_stderr_over_stdio() {
    let folder = folder(&json!({ "missing": { "command": "no-such-program" } }));
    let mut command = folder.command(&["serve", "--stdio"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut input = process.stdin.take().unwrap();
    let listing = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    writeln!(input, "{INITIALIZE}\n{listing}").unwrap();
    // The client stays until it is reported: a program whose client leaves ends at once.
    let mut message = String::new();
    BufReader::new(process.stderr.take().unwrap()).read_line(&mut message).unwrap();
    assert!(
        message.starts_with("warning: server `missing`: the program `no-such-program`"),
        "{message}"
    );
    drop(input);
    let output = process.wait_with_output().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    assert!(answers.lines().all(|line| line.starts_with('{')), "{answers}");
}

/// TOOL-6: an unknown plain name is reported once its server is ready, and only once.
#[test]
fn unknown_tool_of_an_agent_is_reported_once_its_server_is_up() {
    let mut words = shell("exec \"$PROGRAM\" demo-server words");
    words["env"] = json!({ "PROGRAM": env!("CARGO_BIN_EXE_trunkline") });
    let agents = json!({ "reader": { "tools": ["words_whisper", "words_*", "veiw_file"] } });
    let config = json!({ "mcpServers": { "words": words }, "agents": agents });
    let folder = Folder::new().file("trunkline.json", config.to_string());
    let serving = Serving::start(&folder, &[]);
    assert!(!serving.messages().contains("words_whisper"), "{}", serving.messages());
    for _ in 0..2 {
        assert!(!tools_at(&folder, serving.url(), None).is_empty());
    }
    serving.wait_for("agent `reader`: server `words` has no tool `words_whisper`");
    serving.wait_for("agent `reader`: no server has a tool `veiw_file`");
    assert_eq!(serving.messages().matches("has no tool").count(), 1, "{}", serving.messages());
}
