//! Commands while the background service runs: they use processes that it keeps, and are the same in everything
//! else.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::{Value, json};

use crate::support::processes::{LONGEST_START, marked, marker, send, wait_until};
use crate::support::program::Run;
use crate::support::service::{Machine, config, odd_names, words};

fn machine_with_service(config: &Value) -> Machine {
    let machine = Machine::new(config);
    let up = machine.folder.finish(&mut machine.folder.bare_command(&["up"]));
    assert!(up.messages.is_empty() && up.output.contains("runs in the background"), "{up}");
    machine
}

fn machine_with_odd_names(marker: &str) -> Machine {
    machine_with_service(&json!({ "mcpServers": { "odd": odd_names(marker) } }))
}

fn run(machine: &Machine, words: &[&str]) -> Run {
    machine.folder.finish(&mut machine.folder.bare_command(words))
}

/// The output of a command that succeeds.
fn output(machine: &Machine, words: &[&str]) -> String {
    let run = run(machine, words);
    assert_eq!(run.code, 0, "{run}");
    run.output
}

/// The processes that the service keeps: their IDs, and whether they are in use.
fn kept(machine: &Machine) -> Vec<(u64, bool)> {
    let status = machine.ps();
    let processes = status["commands"].as_array().unwrap().iter();
    processes.map(|it| (it["pid"].as_u64().unwrap_or(0), it["inUse"] == true)).collect()
}

#[test]
fn commands_use_one_process_after_another() {
    let marker = marker();
    let machine = machine_with_service(&config(&marker));
    let remember = |text: &str| output(&machine, &["call", "words", "remember", text]);
    // The second sees the state that the first left.
    assert_eq!((remember("a").trim(), remember("b").trim()), ("1", "2"));
    assert_eq!(marked(&marker).len(), 1, "{:?}", marked(&marker));
    let alone = output(&machine, &["call", "words", "remember", "c", "--no-service"]);
    assert_eq!(alone.trim(), "1", "a process of its own");
    assert_eq!(remember("d").trim(), "3");
    // A list of the kept process is a list of the server, and is remembered.
    let listed = output(&machine, &["tools", "--refresh", "--format", "json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let direct = output(&machine, &["tools", "--refresh", "--format", "json", "--no-service"]);
    let direct: Value = serde_json::from_str(&direct).unwrap();
    assert_eq!(listed, direct);
    assert_eq!(marked(&marker).len(), 1);
    let shown = output(&machine, &["ps"]);
    assert!(shown.contains("kept for commands") && shown.contains("idle for"), "{shown}");
    assert_eq!(
        output(&machine, &["restart", "words"]).trim(),
        "The process of `words` ends; the next command starts another."
    );
    assert_eq!(remember("e").trim(), "1", "another process");
    output(&machine, &["down"]);
    assert_eq!(marked(&marker), Vec::<String>::new());
}

#[test]
fn a_legacy_server_is_initialized_once() {
    let marker = marker();
    let machine = machine_with_odd_names(&marker);
    let call = |directory: Option<&str>| {
        let mut command = machine.folder.bare_command(&["call", "odd_files_read_it"]);
        let run = machine.folder.finish(command.current_dir(
            directory.map_or_else(|| machine.folder.project().to_owned(), Into::into),
        ));
        assert_eq!(run.code, 0, "{run}");
        run.output
    };
    for number in 1..=3 {
        assert_eq!(call(None), format!("files/read it in [folder]/project {number}\n"));
    }
    assert_eq!(marked(&marker).len(), 1, "{:?}", marked(&marker));
    // In another directory, the program runs there.
    assert_eq!(call(Some("/usr")), "files/read it in /usr 1\n");
    assert_eq!(call(None), "files/read it in [folder]/project 4\n");
}

#[test]
fn rules_results_and_errors_are_those_of_a_command_that_starts_the_server() {
    let marker = marker();
    let machine = machine_with_odd_names(&marker);
    // Known by then, so that both are called in the same way.
    output(&machine, &["tools", "--refresh"]);
    for words in [
        &["call", "odd", "files.drop"][..],
        &["call", "odd_die"],
        &["call", "odd_die", "--format", "json"],
        &["call", "odd_nothing"],
        &["call", "odd_wait", "--timeout", "2s"],
        &["call", "odd_files_read_it", "--format", "json"],
        &["tools", "--format", "json", "--refresh"],
        &["explain", "odd_die"],
        &["read", "file:///x"],
        &["prompt", "odd_x"],
    ] {
        let kept = run(&machine, words);
        let direct = run(&machine, &[words, &["--no-service"]].concat());
        assert_eq!(kept.code, direct.code, "{words:?}: {kept}\n{direct}");
        assert_eq!(kept.output, direct.output, "{words:?}");
        assert_eq!(kept.messages, direct.messages, "{words:?}");
    }
    let died = run(&machine, &["call", "odd_die"]);
    assert_eq!(died.code, 8, "{died}");
    assert!(died.messages.contains("exit status: 7"), "{died}");
    assert!(died.messages.contains("out of memory"), "{died}");
    let logs = output(&machine, &["logs", "odd"]);
    assert!(logs.contains("out of memory"), "{logs}");
}

#[test]
fn no_secret_shows_on_the_way_through_the_service() {
    let marker = marker();
    let mut server = odd_names(&marker);
    server["env"] = json!({ "TOKEN": "${ODD_TOKEN}" });
    let machine = machine_with_service(&json!({ "mcpServers": { "odd": server } }));
    let leak = |options: &[&str]| {
        let mut command = machine.folder.bare_command(&[&["call", "odd_leak"], options].concat());
        let run = machine.folder.finish(command.env("ODD_TOKEN", "correct horse battery staple"));
        assert_eq!(run.code, 8, "{run}");
        assert!(!run.messages.contains("horse"), "{run}");
        run.messages
    };
    assert_eq!(leak(&[]), leak(&["--no-service"]));
    let logs = output(&machine, &["logs", "odd"]);
    assert!(logs.contains("***") && !logs.contains("horse"), "{logs}");
}

#[test]
fn a_process_that_ends_between_two_commands_is_started_again() {
    let marker = marker();
    let machine = machine_with_odd_names(&marker);
    for number in 0..6 {
        let run = run(&machine, &["call", "odd_leave"]);
        assert_eq!(run.code, 0, "{number}: {run}");
    }
}

#[test]
fn files_of_a_server_have_the_permissions_of_the_command() {
    let marker = marker();
    let machine = machine_with_odd_names(&marker);
    let own = output(&machine, &["call", "odd_umask"]);
    let command = machine.folder.bare_command(&[]);
    let script = format!("umask 027; exec '{}' call odd_umask", command.get_program().display());
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &script]).current_dir(machine.folder.project()).env_clear();
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let masked = machine.folder.finish(&mut shell);
    assert_eq!(masked.output, "0027\n", "{masked}");
    assert_ne!(own, masked.output);
    assert_eq!(output(&machine, &["call", "odd_umask"]), own);
}

#[test]
fn a_process_has_the_time_of_its_entry_to_end() {
    let marker = marker();
    let machine = machine_with_odd_names(&marker);
    let saved = machine.folder.project().join("saved");
    let mut server = odd_names(&marker);
    let script = server["args"][1].as_str().unwrap();
    let script = format!("trap '' TERM; {script}; sleep 3; echo done > '{}'", saved.display());
    server["args"][1] = json!(script);
    machine.configure(&json!({ "mcpServers": { "odd": server } }).to_string());
    output(&machine, &["call", "odd_files_read_it"]);
    output(&machine, &["restart", "odd"]);
    wait_until("it has saved its state", LONGEST_START, || saved.exists());
}

#[test]
fn a_server_that_cannot_start_has_the_same_error() {
    let machine = machine_with_service(&json!({ "mcpServers": {
        "broken": { "command": "/bin/sh", "args": ["-c", "echo no database >&2; exit 3"] },
        "missing": { "command": "/nowhere/server" },
    } }));
    for tool in ["broken_x", "missing_x"] {
        let kept = run(&machine, &["call", tool]);
        let direct = run(&machine, &["call", tool, "--no-service"]);
        assert_eq!((kept.code, kept.messages), (direct.code, direct.messages));
    }
    assert!(run(&machine, &["call", "broken_x"]).messages.contains("no database"));
    assert_eq!(kept(&machine), []);
}

#[test]
fn a_changed_entry_or_value_is_another_process() {
    let marker = marker();
    let mut server = odd_names(&marker);
    server["env"] = json!({ "TOKEN": "${ODD_TOKEN}" });
    let machine = machine_with_service(&json!({ "mcpServers": { "odd": server.clone() } }));
    let call = |token: &str| {
        let mut command = machine.folder.bare_command(&["call", "odd_files_read_it"]);
        let run = machine.folder.finish(command.env("ODD_TOKEN", token));
        assert_eq!(run.code, 0, "{run}");
        run.output.trim_end().chars().last().unwrap()
    };
    assert_eq!((call("one"), call("two"), call("one")), ('1', '1', '2'));
    server["env"]["OTHER"] = json!("x");
    machine.configure(&json!({ "mcpServers": { "odd": server } }).to_string());
    assert_eq!(call("one"), '1', "at once");
}

#[test]
fn a_process_in_use_is_not_shared() {
    let marker = marker();
    let machine = machine_with_odd_names(&marker);
    output(&machine, &["call", "odd_files_read_it"]);
    let mut call = machine.waiting_call();
    let other = output(&machine, &["call", "odd_files_read_it"]);
    assert_eq!(other, "files/read it in [folder]/project 1\n", "a process of its own");
    // A command that is killed during a call leaves a process that still works on it.
    call.kill().unwrap();
    call.wait().unwrap();
    wait_until("the process has ended", LONGEST_START, || marked(&marker).is_empty());
    assert_eq!(kept(&machine), []);
    let next = output(&machine, &["call", "odd_files_read_it"]);
    assert_eq!(next, "files/read it in [folder]/project 1\n");
}

#[test]
fn commands_that_start_at_once_both_succeed() {
    let marker = marker();
    let machine = machine_with_odd_names(&marker);
    for _ in 0..3 {
        let start = || {
            let mut call = machine.folder.bare_command(&["call", "odd_files_read_it"]);
            call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        for call in [start(), start()] {
            let ended = machine.folder.ended(call.wait_with_output().unwrap());
            assert!(ended.code == 0 && ended.messages.is_empty(), "{ended}");
            assert!(ended.output.starts_with("files/read it in [folder]/project "), "{ended}");
        }
        wait_until("no process is in use", LONGEST_START, || {
            kept(&machine).iter().all(|(_, is_used)| !is_used)
        });
        assert_eq!((kept(&machine).len(), marked(&marker).len()), (1, 1));
        output(&machine, &["restart", "odd"]);
        wait_until("the process has ended", LONGEST_START, || marked(&marker).is_empty());
    }
}

#[test]
fn a_line_of_a_server_that_is_too_long_is_an_error() {
    let marker = marker();
    let machine = machine_with_odd_names(&marker);
    let flooded = run(&machine, &["call", "odd_flood", "--timeout", "30s"]);
    assert!(flooded.code == 8 && flooded.output.is_empty(), "{flooded}");
    assert!(flooded.messages.contains("64 MiB"), "{flooded}");
    output(&machine, &["call", "odd_files_read_it"]);
}

#[test]
fn a_message_of_a_command_that_is_too_long_is_an_error() {
    let marker = marker();
    let machine = machine_with_odd_names(&marker);
    let text = machine.folder.project().join("text");
    fs::write(&text, "x".repeat(64 * 1024 * 1024)).unwrap();
    let call = ["call", "odd_files_read_it", "text=@text", "--no-check"];
    let refused = run(&machine, &call);
    assert_eq!(refused.code, 8, "{refused}");
    assert!(refused.messages.contains("the message is too long for the service"), "{refused}");
    assert!(refused.messages.contains("`--no-service`"), "{refused}");
    output(&machine, &["call", "odd_files_read_it"]);
}

#[test]
fn an_interrupted_call_ends_its_process() {
    let marker = marker();
    let machine = machine_with_odd_names(&marker);
    output(&machine, &["call", "odd_files_read_it"]);
    let call = machine.waiting_call();
    send("INT", call.id());
    let ended = machine.folder.ended(call.wait_with_output().unwrap());
    assert_eq!(ended.messages, "error: interrupted; the servers have been stopped\n");
    wait_until("the process has ended", LONGEST_START, || marked(&marker).is_empty());
}

#[test]
fn a_service_that_is_killed_ends_the_call_and_no_other() {
    let marker = marker();
    let machine = machine_with_service(
        &json!({ "mcpServers": { "odd": odd_names(&marker), "words": words(&marker) } }),
    );
    let call = machine.waiting_call();
    send("KILL", machine.service_pid());
    let ended = machine.folder.ended(call.wait_with_output().unwrap());
    assert!(ended.code == 8 && ended.output.is_empty(), "{ended}");
    assert!(ended.messages.contains("the background service"), "{ended}");
    // Without a service, commands start servers again.
    assert_eq!(output(&machine, &["call", "words", "shout", "a"]), "A\n");
}

#[test]
fn a_service_that_is_stopped_says_so() {
    let marker = marker();
    let machine = machine_with_odd_names(&marker);
    let call = machine.waiting_call();
    output(&machine, &["down"]);
    let ended = machine.folder.ended(call.wait_with_output().unwrap());
    assert_eq!(ended.code, 8, "{ended}");
    assert!(ended.messages.contains("was stopped by `trunkline down`"), "{ended}");
    assert_eq!(marked(&marker), Vec::<String>::new());
}

/// Seen: it was killed, and the command said only that it was ended.
#[test]
fn a_service_that_is_paused_says_that_it_was_stopped() {
    let marker = marker();
    let machine = machine_with_odd_names(&marker);
    let call = machine.waiting_call();
    send("STOP", machine.service_pid());
    output(&machine, &["down"]);
    let ended = machine.folder.ended(call.wait_with_output().unwrap());
    assert_eq!(ended.code, 8, "{ended}");
    // When it goes on, its request and the signal of `down` are both there, and either is first.
    let causes = ["was stopped by a signal or `trunkline down`", "was stopped by `trunkline down`"];
    assert!(causes.iter().any(|cause| ended.messages.contains(cause)), "{ended}");
    assert_eq!(marked(&marker), Vec::<String>::new());
}

/// Seen: the call waited for the service until its own timeout.
#[test]
fn a_service_that_is_paused_during_a_call_ends_it() {
    let marker = marker();
    let machine = machine_with_odd_names(&marker);
    let call = machine.waiting_call();
    let service = machine.service_pid();
    send("STOP", service);
    let ended = machine.folder.ended(call.wait_with_output().unwrap());
    send("CONT", service);
    assert_eq!(ended.code, 8, "{ended}");
    assert!(ended.messages.contains("does not respond"), "{ended}");
    assert!(ended.messages.contains("`trunkline restart` starts another"), "{ended}");
}

/// Seen: the process went on, and `ps` did not list it any more.
#[test]
fn a_process_in_use_can_be_restarted() {
    let marker = marker();
    let machine = machine_with_odd_names(&marker);
    let call = machine.waiting_call();
    output(&machine, &["restart", "odd"]);
    let ended = machine.folder.ended(call.wait_with_output().unwrap());
    assert_eq!(ended.code, 8, "{ended}");
    assert!(ended.messages.contains("was ended by `trunkline restart`"), "{ended}");
    wait_until("the process has ended", LONGEST_START, || marked(&marker).is_empty());
    output(&machine, &["call", "odd_files_read_it"]);
}

/// Seen: the first message for the next command followed the fragment, and was lost.
#[test]
fn a_process_that_has_begun_a_line_is_not_used_again() {
    let marker = marker();
    let machine = machine_with_odd_names(&marker);
    let remember = || output(&machine, &["call", "odd_files_read_it"]);
    assert!(remember().ends_with(" 1\n"));
    output(&machine, &["call", "odd_begin"]);
    wait_until("the fragment is there", LONGEST_START, || {
        run(&machine, &["logs", "odd"]).output.contains("begun")
    });
    assert!(remember().ends_with(" 1\n"), "another process");
}

/// Seen: `ps` printed the value of a variable.
#[test]
fn a_directory_from_a_reference_is_not_shown() {
    let mut server = odd_names(&marker());
    server["cwd"] = json!("${ODD_DIRECTORY}");
    let machine = machine_with_service(&json!({ "mcpServers": { "odd": server } }));
    let directory = machine.folder.project().join("hunter22");
    fs::create_dir(&directory).unwrap();
    let mut call = machine.folder.bare_command(&["call", "odd_files_read_it"]);
    let called = machine.folder.finish(call.env("ODD_DIRECTORY", &directory));
    assert!(called.output.contains("hunter22"), "{called}");
    assert_eq!(kept(&machine).len(), 1);
    for words in [&["ps"][..], &["ps", "--format", "json"]] {
        let shown = output(&machine, words);
        assert!(shown.contains("${ODD_DIRECTORY}") && !shown.contains("hunter22"), "{shown}");
    }
}

#[test]
fn a_service_that_hangs_is_not_waited_for() {
    let marker = marker();
    let machine = machine_with_service(&config(&marker));
    let service = machine.service_pid();
    send("STOP", service);
    let shouted = run(&machine, &["call", "words", "shout", "a"]);
    send("CONT", service);
    assert_eq!((shouted.code, &*shouted.output), (0, "A\n"), "{shouted}");
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
    assert_eq!(output(&machine, &["call", "words", "shout", "a"]), "A\n");
    let hello = older.join().unwrap();
    assert_eq!(hello["trunkline"], 4, "{hello}");
    assert_eq!(hello["wants"]["process"]["server"], "words");
}
