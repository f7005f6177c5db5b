//! Commands while `trunkline serve` runs with the same configuration: they use processes that it keeps for them.

use std::fs;

use serde_json::{Value, json};

use crate::support::gateway::Serving;
use crate::support::listening_server::free_port;
use crate::support::processes::{LONGEST_START, marked, marker, send, wait_until};
use crate::support::program::Run;
use crate::support::service::{Machine, config, odd_names, words};

fn serve(machine: &Machine, arguments: &[&str]) -> Serving {
    let arguments = [&["serve", "--listen", "127.0.0.1:0"], arguments].concat();
    Serving::run(machine.folder.bare_command(&arguments))
}

fn run(machine: &Machine, words: &[&str]) -> Run {
    machine.folder.finish(&mut machine.folder.bare_command(words))
}

/// The output of a command that succeeds.
fn output(machine: &Machine, words: &[&str]) -> String {
    let run = run(machine, words);
    assert!(run.code == 0 && run.messages.is_empty(), "{run}");
    run.output.trim().to_owned()
}

/// The number of texts that the process of the server remembers.
fn remember(machine: &Machine, more: &[&str]) -> String {
    output(machine, &[&["call", "words", "remember", "a"], more].concat())
}

/// The only gateway in the output of `ps`.
fn gateway(machine: &Machine) -> Value {
    let gateways = machine.ps()["gateways"].take();
    let [gateway] = &gateways.as_array().unwrap()[..] else { panic!("{gateways}") };
    gateway.clone()
}

/// The files of gateways in the folder of the sockets.
fn sockets(machine: &Machine) -> usize {
    let files = fs::read_dir(machine.runtime_folder()).unwrap().flatten();
    files.filter(|file| file.file_name().to_string_lossy().starts_with("gateway-")).count()
}

#[test]
fn commands_use_one_process_of_the_gateway_after_another() {
    let marker = marker();
    let machine = Machine::new(&config(&marker));
    let serving = serve(&machine, &[]);
    assert_eq!((&*remember(&machine, &[]), &*remember(&machine, &[])), ("1", "2"));
    assert_eq!(remember(&machine, &["--no-service"]), "1", "a process of its own");
    let state = gateway(&machine);
    assert_eq!(state["url"], serving.url());
    assert_eq!(state["pid"], serving.process_id());
    assert_eq!(state["commands"][0]["name"], "words");
    let shown = output(&machine, &["ps"]);
    assert!(shown.contains(&format!("serves {}", serving.url())), "{shown}");
    assert!(shown.contains("kept for commands"), "{shown}");
    assert_eq!(run(&machine, &["logs", "words"]).code, 0);
    let unknown = run(&machine, &["restart", "wrods"]);
    assert!(unknown.messages.contains("did you mean `words`?"), "{unknown}");
    assert_eq!(output(&machine, &["restart", "words"]), "The server `words` starts again.");
    assert_eq!(remember(&machine, &[]), "1", "another process");
    assert_eq!(serving.ended_by("TERM").0, Some(0));
    assert_eq!((marked(&marker), sockets(&machine)), (Vec::new(), 0));
    assert_eq!(remember(&machine, &[]), "1");
}

/// The gateway refuses its own servers, which would lead it to itself, and no process that it keeps for a command.
#[test]
fn a_process_for_commands_may_use_the_gateway() {
    let address = format!("127.0.0.1:{}", free_port());
    let url = format!("http://{address}/mcp/bundles/own");
    let inner = json!({ "mcpServers": { "outer": { "type": "http", "url": url } } });
    let machine = Machine::new(&json!({}));
    let file = machine.home().join("inner.json");
    fs::write(&file, inner.to_string()).unwrap();
    let nested = json!({
        "command": env!("CARGO_BIN_EXE_trunkline"),
        "args": ["serve", "--stdio", "--config", file],
    });
    let servers = json!({ "inner": nested, "words": words("beside") });
    let bundles = json!({ "own": { "serverId": "words" } });
    machine.configure(&json!({ "mcpServers": servers, "bundles": bundles }).to_string());
    let words = ["serve", "--listen", &address];
    let _serving = Serving::run(machine.folder.bare_command(&words));
    for _ in 0..2 {
        let count = ["call", "inner", "outer_words_count_words", "text=one two"];
        assert!(output(&machine, &count).contains('2'));
    }
    assert_eq!(gateway(&machine)["commands"][0]["name"], "inner");
}

/// The gateway starts no program that its own configuration does not name.
#[test]
fn a_gateway_of_another_configuration_is_not_used() {
    let marker = marker();
    let machine = Machine::new(&config(&marker));
    let mut other = config(&marker);
    other["mcpServers"]["words"]["env"]["OTHER"] = json!("1");
    let file = machine.folder.project().join("other.json");
    fs::write(&file, other.to_string()).unwrap();
    let _serving = serve(&machine, &["--config", "other.json"]);
    assert_eq!((&*remember(&machine, &[]), &*remember(&machine, &[])), ("1", "1"));
    assert_eq!(gateway(&machine)["commands"], json!([]));
    // With the file of the gateway, they are the same.
    let of_gateway = || remember(&machine, &["--config", "other.json"]);
    assert_eq!((&*of_gateway(), &*of_gateway()), ("1", "2"));
}

#[test]
fn the_service_comes_first() {
    let marker = marker();
    let machine = Machine::new(&config(&marker));
    let _serving = serve(&machine, &[]);
    assert_eq!(run(&machine, &["up"]).code, 0);
    remember(&machine, &[]);
    assert_eq!(gateway(&machine)["commands"], json!([]));
    assert_eq!(machine.ps()["commands"][0]["name"], "words");
}

#[test]
fn a_gateway_that_ends_ends_the_calls_of_its_processes() {
    let marker = marker();
    let machine = Machine::new(&json!({ "mcpServers": { "odd": odd_names(&marker) } }));
    for (signal, why) in [("TERM", "was stopped"), ("KILL", "ended unexpectedly")] {
        let serving = serve(&machine, &[]);
        let call = machine.waiting_call();
        serving.ended_by(signal);
        let ended = machine.folder.ended(call.wait_with_output().unwrap());
        assert!(ended.code == 8 && ended.output.is_empty(), "{ended}");
        assert!(ended.messages.contains("the gateway") && ended.messages.contains(why), "{ended}");
        wait_until("its processes have ended", LONGEST_START, || marked(&marker).is_empty());
        // The next one starts its own, and removes what a killed gateway has left.
        output(&machine, &["call", "odd_files_read_it"]);
        assert_eq!(sockets(&machine), 0);
    }
}

#[test]
fn a_gateway_that_hangs_is_not_waited_for() {
    let marker = marker();
    let machine = Machine::new(&config(&marker));
    let serving = serve(&machine, &[]);
    send("STOP", serving.process_id());
    assert_eq!(remember(&machine, &[]), "1");
    let state = gateway(&machine);
    assert!(state["error"].as_str().unwrap().contains("has not responded"), "{state}");
    let shown = output(&machine, &["ps"]);
    assert!(shown.contains(&format!("`kill -9 {}` ends it", serving.process_id())), "{shown}");
    send("CONT", serving.process_id());
}

/// Seen: a call with a limit of less than a second failed, and blamed the server.
#[test]
fn a_gateway_that_hangs_leaves_time_for_a_call() {
    let marker = marker();
    let machine = Machine::new(&config(&marker));
    let serving = serve(&machine, &[]);
    send("STOP", serving.process_id());
    assert_eq!(remember(&machine, &["--timeout", "20s"]), "1");
    let restarted = run(&machine, &["restart", "words"]);
    send("CONT", serving.process_id());
    assert!(restarted.messages.contains("the gateway (process"), "{restarted}");
    assert!(restarted.messages.contains("has not responded"), "{restarted}");
}

/// Seen: they had one process, and the state of one was that of the other.
#[test]
fn servers_of_different_names_have_processes_of_their_own() {
    let marker = marker();
    let servers = json!({ "a": words(&marker), "b": words(&marker) });
    let machine = Machine::new(&json!({ "mcpServers": servers }));
    let serving = serve(&machine, &[]);
    let remember = |server: &str| output(&machine, &["call", server, "remember", "x"]);
    for number in ["1", "2"] {
        assert_eq!((&*remember("a"), &*remember("b")), (number, number));
    }
    let names: Vec<_> = gateway(&machine)["commands"].as_array().unwrap().clone();
    assert_eq!(names.len(), 2, "{names:?}");
    serving.ended_by("TERM");
    assert_eq!(run(&machine, &["up"]).code, 0);
    assert_eq!((&*remember("a"), &*remember("b")), ("1", "1"), "with the service");
}

/// Seen: the process of a program that was not trusted any more went on, and was used again.
#[test]
fn a_process_ends_when_its_configuration_or_script_changes() {
    let marker = marker();
    let machine = Machine::new(&json!({ "mcpServers": {} }));
    let project = machine.folder.project();
    let program = env!("CARGO_BIN_EXE_trunkline");
    fs::write(project.join("server.sh"), format!("exec {program} demo-server words\n")).unwrap();
    let entry = json!({ "command": "/bin/sh", "args": ["server.sh"], "env": { "MARKER": marker } });
    let file = json!({ "mcpServers": { "words": entry } }).to_string();
    fs::write(project.join(".mcp.json"), file).unwrap();
    assert_eq!(run(&machine, &["trust", "--yes"]).code, 0);
    let _serving = serve(&machine, &[]);
    let kept = || gateway(&machine)["commands"].as_array().unwrap().len();
    let is_gone = || wait_until("the process has ended", LONGEST_START, || kept() == 0);
    assert_eq!((&*remember(&machine, &[]), kept()), ("1", 1));
    // Another script is another program, at once.
    fs::write(project.join("server.sh"), format!("exec {program} demo-server  words\n")).unwrap();
    assert_eq!(remember(&machine, &[]), "1");
    assert_eq!(remember(&machine, &[]), "2");
    assert_eq!(run(&machine, &["trust", "--revoke"]).code, 0);
    is_gone();
    wait_until("its processes have ended", LONGEST_START, || marked(&marker).is_empty());
}

/// Seen: `restart` and `logs` did not know the servers of the gateway's clients.
#[test]
fn the_servers_of_clients_can_be_restarted() {
    let marker = marker();
    let server = odd_names(&marker);
    let machine = Machine::new(&json!({ "mcpServers": { "odd": server } }));
    let serving = serve(&machine, &[]);
    let pid = || gateway(&machine)["servers"][0]["pid"].as_u64();
    assert_eq!(pid(), None, "no client has used it");
    output(&machine, &["restart", "odd"]);
    wait_until("the server is ready", LONGEST_START, || pid().is_some());
    let before = pid();
    let shown = output(&machine, &["ps"]);
    assert!(shown.contains("odd") && shown.contains("ready"), "{shown}");
    assert_eq!(output(&machine, &["restart", "odd"]), "The server `odd` starts again.");
    wait_until("another process", LONGEST_START, || pid().is_some() && pid() != before);
    assert_eq!(run(&machine, &["logs", "odd"]).code, 0);
    assert_eq!(serving.ended_by("TERM").0, Some(0));
}
