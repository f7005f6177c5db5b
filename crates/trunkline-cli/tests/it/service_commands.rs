//! `up`, `down`, `restart`, `ps` and `logs`: unknown servers, servers of several projects, services that hang,
//! and `--quiet`.

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::processes::{marker, send};
use crate::support::service::{Client, Machine, config};

/// Seen: the exit code was 1, as for a service that fails.
#[test]
fn an_unknown_server_of_the_service_is_corrected() {
    let machine = Machine::new(&config(&marker()));
    let mut client = machine.session();
    client.shout("a");
    for command in ["restart", "logs"] {
        let run = machine.folder.run(&[command, "wrods"]);
        assert_eq!((run.code, run.output.as_str()), (4, ""), "{run}");
        let message = "error: no server `wrods` runs in the background; did you mean `words`?";
        assert!(run.messages.contains(message), "{run}");
        let run = machine.folder.run(&[command, "wrods", "--format", "json"]);
        let error = &run.json()["error"];
        assert_eq!(
            (&error["kind"], &error["suggestions"][0]),
            (&"unknown".into(), &"words".into())
        );
        let run = machine.folder.run(&[command, "zzzzzzzz"]);
        assert_eq!(run.code, 4, "{run}");
        assert!(run.messages.contains("`trunkline ps` lists those that do"), "{run}");
    }
}

#[test]
fn a_server_of_a_service_that_does_not_run_is_unavailable() {
    let machine = Machine::new(&config(&marker()));
    for command in ["restart", "logs"] {
        let run = machine.folder.run(&[command, "words"]);
        assert_eq!(run.code, 5, "{run}");
    }
}

#[test]
fn quiet_commands_of_the_service_print_only_errors() {
    let machine = Machine::new(&config(&marker()));
    let client = machine.session();
    for arguments in [&["up"][..], &["restart", "words"], &["restart"], &["down"], &["down"]] {
        let run = machine.folder.run(&[arguments, &["-q"]].concat());
        let shown = (run.code, run.output.as_str(), run.messages.as_str());
        assert_eq!(shown, (0, "", ""), "{arguments:?}: {run}");
    }
    drop(client);
    let run = machine.folder.run(&["up", "-q", "--format", "json"]);
    assert_eq!((run.code, &run.json()["started"]), (0, &true.into()), "{run}");
}

/// A client in a project directory whose server `talker` writes a line to standard error.
fn talking_client(machine: &Machine, name: &str) -> Client {
    let directory = machine.folder.project().join(name);
    fs::create_dir(&directory).unwrap();
    let script = format!(
        "echo {name} starts >&2; exec '{}' demo-server words",
        env!("CARGO_BIN_EXE_trunkline")
    );
    let config =
        json!({ "mcpServers": { "talker": { "command": "/bin/sh", "args": ["-c", script] } } });
    fs::write(directory.join("c.json"), config.to_string()).unwrap();
    let mut command = machine.folder.bare_command(&["connect", "--config", "c.json"]);
    command.current_dir(directory);
    let mut client = Client::start(command);
    client.open();
    client.call("talker_shout", &json!({ "text": "a" }));
    client
}

/// Seen: the lines of all projects were mixed, and `restart` did not say that it concerned several.
#[test]
fn servers_of_the_same_name_are_told_apart_by_their_projects() {
    let machine = Machine::new(&config(&marker()));
    let one = talking_client(&machine, "one");
    assert_eq!(machine.folder.run(&["logs", "talker"]).output, "one starts\n");
    let run = machine.folder.run(&["restart", "talker"]);
    assert_eq!(run.output, "The server `talker` starts again.\n");
    let two = talking_client(&machine, "two");
    let run = machine.folder.run(&["logs", "talker"]);
    let shown = "[folder]/project/one\n  one starts\n[folder]/project/two\n  two starts\n";
    assert_eq!(run.output, shown, "{run}");
    let json = machine.folder.run(&["logs", "talker", "--format", "json"]).json();
    assert_eq!(json["sources"][1]["lines"], json!(["two starts"]), "{json}");
    assert_eq!(json["lines"], json!(["one starts", "two starts"]), "{json}");
    let run = machine.folder.run(&["restart", "talker"]);
    let shown = "The server `talker` starts again in 2 projects:\n  [folder]/project/one\n  [folder]/project/two\n";
    assert_eq!(run.output, shown, "{run}");
    drop((one, two));
}

/// Seen: each of these waited 30 seconds.
#[test]
fn a_service_that_hangs_is_reported_after_seconds() {
    let machine = Machine::new(&config(&marker()));
    machine.folder.run(&["up"]);
    let hanging = machine.service_pid();
    send("STOP", hanging);
    let begin = Instant::now();
    for words in [&["ps"][..], &["logs", "words"]] {
        let run = machine.folder.run(words);
        assert_eq!(run.code, 1, "{run}");
        assert!(run.messages.contains("has not responded for 5 s"), "{run}");
        assert!(run.messages.contains("`trunkline down` ends it"), "{run}");
    }
    let down = machine.folder.run(&["down"]);
    assert!(down.output.contains(&format!("process {hanging}")), "{down}");
    assert!(begin.elapsed() < Duration::from_secs(28), "{:?}", begin.elapsed());
}

/// A service that ignores the first signal, for which a shell with its lock stands in.
#[test]
fn a_service_that_ignores_a_signal_is_killed() {
    let machine = Machine::new(&config(&marker()));
    machine.folder.run(&["up"]);
    machine.folder.run(&["down"]);
    let path = machine.runtime_folder().join("service.lock");
    let lock = File::options().read(true).write(true).open(&path).unwrap();
    lock.lock().unwrap();
    let script = "trap '' TERM; while :; do sleep 0.1; done";
    // The command has the lock as well, and is dropped with this statement.
    let mut shell =
        Command::new("/bin/sh").args(["-c", script]).stdin(Stdio::from(lock)).spawn().unwrap();
    let info = json!({ "protocol": 4, "build": "0", "pid": shell.id() });
    fs::write(&path, info.to_string()).unwrap();
    let down = machine.folder.run(&["down"]);
    assert!(down.output.contains(&format!("process {}", shell.id())), "{down}");
    assert!(!shell.wait().unwrap().success());
}
