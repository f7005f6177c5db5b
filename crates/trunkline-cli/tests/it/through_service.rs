//! Commands with `--service`: they use the servers of the background service instead of starting their own, with
//! the rules, names and directories of a start of their own.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::thread;

use serde_json::{Value, json};

use crate::support::processes::{LONGEST_START, marked, marker, send, wait_until};
use crate::support::service::{Machine, config, words};

/// A server with a tool whose name clients may not have. It answers with the name that it was called by, and
/// its directory; `wait` is never answered.
fn odd_names(marker: &str) -> Value {
    let script = r#"while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
        name=$(printf '%s' "$line" | sed -n 's/.*"params":.*"name":"\([^"]*\)".*/\1/p')
        case "$line" in
            *'"server/discover"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"no\"}}" ;;
            *'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"h\",\"version\":\"1\"}}}" ;;
            *'"tools/list"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"files/read it\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"files.drop\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"wait\",\"inputSchema\":{\"type\":\"object\"}}]}}" ;;
            *'"wait"'*) ;;
            *'"tools/call"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$name in $(pwd)\"}]}}" ;;
        esac
    done"#;
    json!({ "command": "/bin/sh", "args": ["-c", script, marker], "denyTools": ["files.drop"] })
}

fn machine_with_service(config: &Value) -> Machine {
    let machine = Machine::new(config);
    let up = machine.folder.finish(&mut machine.folder.bare_command(&["up"]));
    assert!(up.messages.is_empty() && up.output.contains("runs in the background"), "{up}");
    machine
}

/// The output of a command that succeeds.
fn output(machine: &Machine, words: &[&str]) -> String {
    let run = machine.folder.finish(&mut machine.folder.bare_command(words));
    assert_eq!(run.code, 0, "{run}");
    run.output
}

#[test]
fn commands_use_one_process_of_the_service() {
    let marker = marker();
    let machine = machine_with_service(&config(&marker));
    let remember = |text: &str| output(&machine, &["call", "words", "remember", text, "--service"]);
    // The second sees the state that the first left.
    assert_eq!((remember("a").trim(), remember("b").trim()), ("1", "2"));
    assert_eq!(marked(&marker).len(), 1, "{:?}", marked(&marker));
    let alone = output(&machine, &["call", "words", "remember", "c"]);
    assert_eq!(alone.trim(), "1", "a process of its own");
    // A list of the service is a list of the server.
    let listed = output(&machine, &["tools", "--refresh", "--format", "json", "--service"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let direct = output(&machine, &["tools", "--refresh", "--format", "json"]);
    let direct: Value = serde_json::from_str(&direct).unwrap();
    assert_eq!(listed, direct);
    assert_eq!(marked(&marker).len(), 1);
    output(&machine, &["down"]);
    assert_eq!(marked(&marker), Vec::<String>::new());
}

#[test]
fn names_rules_and_directories_are_those_of_the_command() {
    let marker = marker();
    let machine = machine_with_service(&json!({ "mcpServers": { "odd": odd_names(&marker) } }));
    let expected = "files/read it in [folder]/project\n";
    for options in [&["--service"][..], &[]] {
        let command = [&["call", "odd_files_read_it"], options].concat();
        assert_eq!(output(&machine, &command), expected);
        let command = [&["call", "odd", "files.drop"], options].concat();
        let refused = machine.folder.finish(&mut machine.folder.bare_command(&command));
        assert!(refused.code != 0 && refused.output.is_empty(), "{refused}");
        assert!(refused.messages.contains("denyTools"), "{refused}");
    }
    assert_eq!(marked(&marker).len(), 1, "{:?}", marked(&marker));
    // In another directory, the program runs there.
    let mut elsewhere = machine.folder.bare_command(&["call", "odd_files_read_it", "--service"]);
    let elsewhere = machine.folder.finish(elsewhere.current_dir("/usr"));
    assert_eq!(elsewhere.output, "files/read it in /usr\n", "{elsewhere}");
}

#[test]
fn a_server_that_cannot_start_has_the_same_error() {
    let machine = machine_with_service(&json!({ "mcpServers": {
        "broken": { "command": "/bin/sh", "args": ["-c", "echo no database >&2; exit 3"] },
    } }));
    let run = |options: &[&str]| {
        let command = [&["call", "broken_x"], options].concat();
        let run = machine.folder.finish(&mut machine.folder.bare_command(&command));
        (run.code, run.messages)
    };
    let (code, messages) = run(&["--service"]);
    assert!(messages.contains("no database"), "{messages}");
    assert_eq!((code, messages), run(&[]));
}

#[test]
fn a_service_that_is_killed_ends_the_call_and_no_other() {
    let marker = marker();
    let machine = machine_with_service(
        &json!({ "mcpServers": { "odd": odd_names(&marker), "words": words(&marker) } }),
    );
    output(&machine, &["call", "odd_files_read_it", "--service"]);
    let mut call = machine.folder.bare_command(&["call", "odd_wait", "--service"]);
    let call = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the call runs", LONGEST_START, || machine.ps()["clients"] == 1);
    send("KILL", machine.service_pid());
    let ended = machine.folder.ended(call.wait_with_output().unwrap());
    assert!(ended.code != 0 && ended.output.is_empty(), "{ended}");
    assert!(ended.messages.contains("the connection to it ended"), "{ended}");
    // Without a service, commands start servers again.
    assert_eq!(output(&machine, &["call", "words", "shout", "a", "--service"]), "A\n");
}

#[test]
fn a_service_that_refuses_is_not_needed() {
    let marker = marker();
    let machine = Machine::new(&config(&marker));
    fs::create_dir_all(machine.runtime_folder()).unwrap();
    fs::set_permissions(machine.runtime_folder(), fs::Permissions::from_mode(0o700)).unwrap();
    let listener = UnixListener::bind(machine.socket()).unwrap();
    let older = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut hello = String::new();
        BufReader::new(&stream).read_line(&mut hello).unwrap();
        let service = json!({ "protocol": 2, "build": "0.0.9", "pid": 1 });
        let refusal = json!({ "service": service, "error": "it is older than this program" });
        writeln!(stream, "{refusal}").unwrap();
        serde_json::from_str::<Value>(&hello).unwrap()
    });
    assert_eq!(output(&machine, &["call", "words", "shout", "a", "--service"]), "A\n");
    let hello = older.join().unwrap();
    // An older service does not know sessions of one server, and would serve all.
    assert_eq!(hello["trunkline"], 3, "{hello}");
    assert_eq!(hello["wants"]["mcp"]["server"], "words");
}
