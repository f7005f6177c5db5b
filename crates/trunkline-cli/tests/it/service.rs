//! The background service and `connect`: one process per server for all hosts, and no call twice.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::gateway::INITIALIZE;
use crate::support::processes::{LONGEST_START, marked, marker, send, wait_until};
use crate::support::program::Folder;
use crate::support::service::{Client, Machine, config, words};

/// A server that notes each call in a file, and never answers it.
fn hanging(calls: &Path) -> Value {
    let script = r#"while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
        case "$line" in
            *'"server/discover"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"no\"}}" ;;
            *'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"h\",\"version\":\"1\"}}}" ;;
            *'"tools/list"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"wait\",\"inputSchema\":{\"type\":\"object\"}}]}}" ;;
            *'"tools/call"'*) echo called >> "$CALLS" ;;
        esac
    done"#;
    json!({ "command": "/bin/sh", "args": ["-c", script], "env": { "CALLS": calls } })
}

fn calls_in(path: &Path) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

#[test]
fn clients_in_other_directories_share_one_process() {
    let marker = marker();
    let machine = Machine::new(&config(&marker));
    let mut first = machine.session();
    let mut elsewhere = machine.folder.bare_command(&["connect"]);
    elsewhere.current_dir("/");
    let mut second = Client::start(elsewhere);
    second.open();
    assert_eq!((first.shout("a"), second.shout("b")), ("A".to_owned(), "B".to_owned()));
    assert_eq!(marked(&marker).len(), 1, "{:?}", marked(&marker));
    let ps = machine.ps();
    assert_eq!((&ps["clients"], &ps["connections"]), (&json!(2), &json!(1)), "{ps}");
    assert_eq!((first.close(), second.close()), (0, 0));

    let ended = machine.folder.run(&["down"]);
    assert!(ended.output.contains("have ended"), "{ended}");
    assert_eq!(marked(&marker), Vec::<String>::new());
    assert!(!machine.socket().exists());
}

#[test]
fn clients_with_other_values_have_processes_of_their_own() {
    let marker = marker();
    let mut server = words(&marker);
    server["env"]["ACCOUNT"] = json!("${ACCOUNT}");
    let machine = Machine::new(&json!({ "mcpServers": { "words": server } }));
    let client = |account: &str| {
        let mut command = machine.folder.bare_command(&["connect"]);
        command.env("ACCOUNT", account);
        let mut client = Client::start(command);
        client.open();
        client.shout(account);
        client
    };
    let _clients = [client("ann"), client("bob"), client("ann")];
    assert_eq!(marked(&marker).len(), 2, "{:?}", marked(&marker));
}

#[test]
fn every_value_of_a_client_counts() {
    let marker = marker();
    let folder = Folder::new();
    let program = |name: &str| {
        let bin = folder.project().join(name);
        fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_trunkline"), bin.join("server")).unwrap();
        bin
    };
    let mut server = words(&marker);
    server["command"] = json!("${PROGRAM}");
    server["env"]["OF_TERMINAL"] = json!("${TERM}");
    let machine = Machine::new(&json!({ "mcpServers": { "words": server } }));
    let client = |path: &Path, terminal: &str| {
        let mut command = machine.folder.bare_command(&["connect"]);
        command.env("PATH", path).env("TERM", terminal).env("PROGRAM", "server");
        let mut client = Client::start(command);
        client.open();
        client.shout("a");
        client
    };
    let (one, other) = (program("one"), program("other"));
    let mut clients = vec![client(&one, "alpha"), client(&other, "alpha")];
    assert_eq!(marked(&marker).len(), 2, "another program: {:?}", marked(&marker));
    clients.push(client(&one, "beta"));
    assert_eq!(marked(&marker).len(), 3, "another value: {:?}", marked(&marker));
    clients.push(client(&one, "beta"));
    assert_eq!(marked(&marker).len(), 3, "{:?}", marked(&marker));
}

#[test]
fn clients_with_other_stores_have_other_secrets() {
    let marker = marker();
    let mut server = words(&marker);
    server["env"]["SECRET"] = json!("${secret:tok}");
    let config = json!({ "mcpServers": { "words": server } }).to_string();
    let machine = Machine::new(&json!({}));
    let state = |name: &str| machine.home().join(name);
    let command = |words: &[&str], name: &str| {
        let mut command = machine.folder.bare_command(words);
        command.env("XDG_RUNTIME_DIR", machine.home()).env("XDG_STATE_HOME", state(name));
        command.env("TRUNKLINE_SECRETS_PASSPHRASE", name).env("TRUNKLINE_CONFIG_JSON", &config);
        command
    };
    fs::set_permissions(machine.home(), fs::Permissions::from_mode(0o700)).unwrap();
    let _clients = ["ann", "bob"].map(|name| {
        let mut set = command(&["secret", "set", "tok", "--store", "file"], name);
        let mut set = set.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        writeln!(set.stdin.take().unwrap(), "{name}").unwrap();
        assert!(set.wait().unwrap().success());
        let mut client = Client::start(command(&["connect"], name));
        client.open();
        client.shout(name);
        client
    });
    assert_eq!(marked(&marker).len(), 2, "{:?}", marked(&marker));
    assert!(command(&["down"], "ann").output().unwrap().status.success());
}

#[test]
fn clients_of_other_projects_have_processes_of_their_own_if_configured() {
    let marker = marker();
    let mut server = words(&marker);
    server["share"] = json!("per-project");
    let machine = Machine::new(&json!({ "mcpServers": { "words": server } }));
    let client = |project: &str| {
        let mut client =
            Client::start(machine.folder.bare_command(&["connect", "--project", project]));
        client.open();
        client.shout(project);
        client
    };
    let _clients = [client("/"), client("/tmp"), client("/")];
    assert_eq!(marked(&marker).len(), 2, "{:?}", marked(&marker));
}

#[test]
fn a_server_that_is_known_to_keep_state_is_not_shared() {
    let marker = marker();
    let script = format!("exec {} demo-server words", env!("CARGO_BIN_EXE_trunkline"));
    let server = json!({ "command": "/bin/sh", "args": ["-c", script, "@playwright/mcp@latest"],
        "env": { "MARKER": marker } });
    let machine = Machine::new(&json!({ "mcpServers": { "words": server } }));
    let mut clients = [machine.session(), machine.session()];
    assert_eq!(clients.each_mut().map(|client| client.shout("a")), ["A", "A"]);
    assert_eq!(machine.ps()["projects"][0]["servers"][0]["share"], "per-client");
    let dedicated = |least| marked(&marker).len() >= least;
    assert!(dedicated(2), "{:?}", marked(&marker));
    let [first, second] = clients;
    assert_eq!((first.close(), second.close()), (0, 0));
    wait_until("the dedicated processes have ended", LONGEST_START, || !dedicated(2));
}

#[test]
fn a_file_that_is_not_trusted_starts_nothing_until_it_is() {
    let marker = marker();
    let machine = Machine::new(&json!({}));
    let file = machine.folder.project().join(".mcp.json");
    fs::write(&file, config(&marker).to_string()).unwrap();
    let mut client = machine.session();
    assert_eq!(client.tools(), Vec::<String>::new());
    let ps = machine.folder.finish(&mut machine.folder.bare_command(&["ps"]));
    let command = "trunkline trust [folder]/project/.mcp.json";
    assert!(ps.output.contains("not-trusted") && ps.output.contains(command), "{ps}");
    assert_eq!(marked(&marker), Vec::<String>::new());

    let trusted = machine.folder.finish(&mut machine.folder.bare_command(&["trust", "--yes"]));
    assert_eq!(trusted.code, 0, "{trusted}");
    client.notification("notifications/tools/list_changed");
    assert_eq!(client.shout("a"), "A");
    let revoked = machine.folder.finish(&mut machine.folder.bare_command(&["trust", "--revoke"]));
    assert_eq!(revoked.code, 0, "{revoked}");
    wait_until("its processes have ended", LONGEST_START, || marked(&marker).is_empty());
}

#[test]
fn many_clients_at_once_start_one_service() {
    let marker = marker();
    let machine = Machine::new(&config(&marker));
    let mut clients: Vec<_> = (0..50).map(|_| machine.client()).collect();
    for client in &mut clients {
        client.open();
    }
    assert_eq!(clients[49].shout("x"), "X");
    let ps = machine.ps();
    assert_eq!(ps["clients"], 50, "{ps}");
    assert_eq!(marked(&marker).len(), 1);
}

#[test]
fn a_killed_service_is_replaced_and_no_call_is_sent_twice() {
    let marker = marker();
    let folder = Folder::new();
    let calls = folder.project().join("calls");
    let mut config = config(&marker);
    config["mcpServers"]["slow"] = hanging(&calls);
    let machine = Machine::new(&config);
    let mut client = machine.session();
    assert_eq!(client.shout("a"), "A");
    let waiting = client.begin("tools/call", &json!({ "name": "slow_wait", "arguments": {} }));
    wait_until("the call is running", LONGEST_START, || calls_in(&calls) == 1);

    let killed = machine.service_pid();
    send("KILL", killed);
    let lost = client.response(waiting);
    assert_eq!(lost["error"]["data"]["retry"], true, "{lost}");
    let message = lost["error"]["message"].as_str().unwrap();
    assert!(message.contains("was not sent again"), "{message}");
    client.notification("notifications/tools/list_changed");
    assert_eq!(client.shout("again"), "AGAIN");
    assert_ne!(machine.service_pid(), killed);
    assert_eq!(calls_in(&calls), 1);
    wait_until("the old processes have ended", LONGEST_START, || marked(&marker).len() == 1);
}

#[test]
fn a_restart_is_not_visible_to_a_client() {
    let machine = Machine::new(&config(&marker()));
    let mut client = machine.session();
    assert_eq!(client.shout("a"), "A");
    let before = machine.service_pid();
    let restarted = machine.folder.run(&["restart"]);
    assert!(restarted.output.contains("runs again"), "{restarted}");
    assert_ne!(machine.service_pid(), before);
    client.notification("notifications/tools/list_changed");
    assert_eq!(client.shout("b"), "B");
}

#[test]
fn a_stopped_service_starts_with_the_next_message() {
    let machine = Machine::new(&config(&marker()));
    let mut client = machine.session();
    assert_eq!(client.shout("a"), "A");
    assert_eq!(machine.folder.run(&["down"]).code, 0);
    assert_eq!(machine.ps()["service"], Value::Null);
    let again = machine.folder.run(&["down"]);
    assert_eq!((again.code, &*again.output), (0, "No service is running.\n"));
    assert_eq!(client.shout("b"), "B");
}

#[test]
fn a_client_that_does_not_read_does_not_hold_the_service() {
    let machine = Machine::new(&config(&marker()));
    let mut command = machine.folder.bare_command(&["connect"]);
    let mut deaf = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = deaf.stdin.take().unwrap();
    writeln!(input, "{INITIALIZE}").unwrap();
    let text = "x".repeat(1024 * 1024);
    for id in 2..20 {
        let params = json!({ "name": "words_shout", "arguments": { "text": text } });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        // Nothing is read any more once the buffers are full.
        thread::scope(|scope| {
            let written = scope.spawn(|| writeln!(input, "{call}"));
            let _ = written.join();
        });
        if id == 8 {
            break;
        }
    }
    let down = machine.folder.run(&["down"]);
    assert!(down.output.contains("have ended"), "{down}");
    deaf.kill().unwrap();
    deaf.wait().unwrap();
}

#[test]
fn a_client_that_comes_while_the_service_ends_does_not_hold_it() {
    let machine = Machine::new(&config(&marker()));
    assert_eq!(machine.folder.run(&["up"]).code, 0);
    let silent = UnixStream::connect(machine.socket()).unwrap();
    let down = machine.folder.run(&["down"]);
    assert!(down.output.contains("have ended"), "{down}");
    drop(silent);
    let mut client = machine.session();
    assert_eq!(client.shout("a"), "A");
}

#[test]
fn a_service_whose_socket_was_removed_is_replaced() {
    for is_whole_folder in [false, true] {
        let marker = marker();
        let machine = Machine::new(&config(&marker));
        let mut client = machine.session();
        client.shout("a");
        let before = machine.service_pid();
        match is_whole_folder {
            true => fs::remove_dir_all(machine.runtime_folder()).unwrap(),
            false => fs::remove_file(machine.socket()).unwrap(),
        }
        wait_until("another service runs", LONGEST_START, || {
            machine.running_service().is_some_and(|pid| pid != before)
        });
        assert_eq!(client.shout("b"), "B");
        wait_until("one process is left", LONGEST_START, || marked(&marker).len() == 1);
        assert!(machine.socket().exists());
    }
}

#[test]
fn a_service_that_hangs_can_be_ended() {
    let marker = marker();
    let machine = Machine::new(&config(&marker));
    let mut client = machine.session();
    client.shout("a");
    let hanging = machine.service_pid();
    send("STOP", hanging);
    // Without its socket, so that no time is spent on asking it. One that ran would notice, and end by itself.
    fs::remove_file(machine.socket()).unwrap();
    let ps = machine.folder.finish(&mut machine.folder.bare_command(&["ps"]));
    assert!(ps.code == 1 && ps.messages.contains("trunkline down"), "{ps}");
    let down = machine.folder.run(&["down"]);
    assert!(down.output.contains(&format!("process {hanging}")), "{down}");
    // Its client starts another one.
    assert_eq!(client.shout("b"), "B");
    wait_until("its servers have ended", LONGEST_START, || marked(&marker).len() == 1);
}

#[test]
fn a_message_that_is_too_long_is_answered() {
    let machine = Machine::new(&config(&marker()));
    let mut client = machine.session();
    client.write(&format!("\"{}\"", "x".repeat(17 * 1024 * 1024)));
    let answer = loop {
        let line = client.line();
        if line["error"].is_object() {
            break line;
        }
    };
    assert!(answer["error"]["message"].as_str().unwrap().contains("longer than"), "{answer}");
    assert_eq!(client.shout("a"), "A");
}

#[test]
fn a_call_that_is_running_when_its_client_leaves_is_answered() {
    let folder = Folder::new();
    let calls = folder.project().join("calls");
    let machine = Machine::new(&json!({ "mcpServers": { "slow": hanging(&calls) } }));
    let mut client = machine.session();
    let waiting = client.begin("tools/call", &json!({ "name": "slow_wait", "arguments": {} }));
    wait_until("the call is running", LONGEST_START, || calls_in(&calls) == 1);
    client.input = None;
    let lost = client.response(waiting);
    assert!(lost["error"].is_object() || lost["result"]["isError"] == true, "{lost}");
}

#[test]
fn a_replaced_program_still_starts_the_service() {
    let machine = Machine::new(&config(&marker()));
    let program = machine.folder.project().join("trunkline");
    let copy = || {
        let new = program.with_extension("new");
        fs::copy(env!("CARGO_BIN_EXE_trunkline"), &new).unwrap();
        fs::rename(new, &program).unwrap();
    };
    copy();
    let template = machine.folder.bare_command(&["connect"]);
    let mut command = Command::new(&program);
    command.arg("connect").current_dir(machine.folder.project()).env_clear();
    command.envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut client = Client::start(command);
    client.open();
    copy();
    let killed = machine.service_pid();
    send("KILL", killed);
    wait_until("another service runs", LONGEST_START, || {
        machine.running_service().is_some_and(|pid| pid != killed)
    });
    assert_eq!(client.shout("a"), "A");
}

#[test]
fn one_server_can_be_restarted() {
    let marker = marker();
    let machine = Machine::new(&config(&marker));
    let mut client = machine.session();
    client.shout("a");
    let process = |machine: &Machine| machine.ps()["projects"][0]["servers"][0]["pid"].clone();
    let before = process(&machine);
    assert_eq!(machine.folder.run(&["restart", "words"]).code, 0);
    wait_until("another process runs", LONGEST_START, || {
        let now = process(&machine);
        now.is_u64() && now != before
    });
    assert_eq!(client.shout("b"), "B");
    let unknown = machine.folder.run(&["restart", "wrods"]);
    assert!(unknown.code != 0 && unknown.messages.contains("`wrods`"), "{unknown}");
}

#[test]
fn files_of_a_killed_service_do_not_matter() {
    let machine = Machine::new(&config(&marker()));
    let folder = machine.runtime_folder();
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    drop(UnixListener::bind(machine.socket()).unwrap());
    fs::write(folder.join("service.lock"), r#"{"protocol":1,"build":"0","pid":1}"#).unwrap();
    assert_eq!(machine.ps()["service"], Value::Null);
    let mut client = machine.session();
    assert_eq!(client.shout("a"), "A");
}

#[test]
fn a_folder_that_others_can_enter_is_refused() {
    let machine = Machine::new(&config(&marker()));
    let folder = machine.runtime_folder();
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let run = machine.folder.run(&["up"]);
    assert!(run.code == 1 && run.messages.contains("chmod 700"), "{run}");
    let mut client = machine.client();
    client.write(INITIALIZE);
    let refused = client.line();
    assert!(refused["error"]["message"].as_str().unwrap().contains("chmod 700"), "{refused}");
}

/// Needs the rights to give a folder away, which users of containers have.
#[test]
fn a_folder_of_another_user_is_refused() {
    const OTHER_USER: u32 = 65534;
    let machine = Machine::new(&config(&marker()));
    let folder = machine.runtime_folder();
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    if std::os::unix::fs::chown(&folder, Some(OTHER_USER), None).is_err() {
        eprintln!("skipped: only root can give a folder to another user");
        return;
    }
    let run = machine.folder.run(&["up"]);
    assert!(run.code == 1 && run.messages.contains("belongs to another user"), "{run}");
    assert!(run.messages.contains("set XDG_RUNTIME_DIR"), "{run}");
    let mut client = machine.client();
    client.write(INITIALIZE);
    let refused = client.line();
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("belongs to another user"), "{refused}");
    assert!(!machine.socket().exists());
}

/// A log that cannot be written does not end the service, nor delay its calls.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_for_the_log_is_survived() {
    let machine = Machine::new(&config(&marker()));
    let arguments = ["up", "--foreground", "--log", "/dev/full"];
    let mut service = machine.folder.bare_command(&arguments).spawn().unwrap();
    wait_until("the service listens", LONGEST_START, || machine.running_service().is_some());
    let mut client = machine.session();
    for text in ["a", "b", "c"] {
        assert_eq!(client.shout(text), text.to_uppercase());
    }
    assert_eq!(machine.service_pid(), service.id());
    assert_eq!(machine.folder.run(&["down"]).code, 0);
    assert!(service.wait().unwrap().success());
}

#[test]
fn a_client_of_another_version_gets_a_clear_error() {
    let machine = Machine::new(&config(&marker()));
    assert_eq!(machine.folder.run(&["up"]).code, 0);
    let mut stream = UnixStream::connect(machine.socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(b"{\"trunkline\":99,\"build\":\"9.0.0\",\"wants\":\"flight\"}\n").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    assert!(answer.contains("trunkline restart"), "{answer}");
}

/// The program as another build: its version is another number of the same length.
fn other_build(path: &Path) {
    let (own, other) = (env!("CARGO_PKG_VERSION").as_bytes(), b"0.0.9");
    assert_eq!(own.len(), other.len(), "choose another number");
    let mut bytes = fs::read(env!("CARGO_BIN_EXE_trunkline")).unwrap();
    let is_own = |window: &[u8]| window == own;
    let found: Vec<_> = bytes
        .windows(own.len())
        .enumerate()
        .filter(|(_, it)| is_own(it))
        .map(|(at, _)| at)
        .collect();
    for at in found {
        bytes[at..at + other.len()].copy_from_slice(other);
    }
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A service and a client of two builds get along, and `ps` shows the build of the service.
#[test]
fn two_builds_of_the_program_get_along() {
    let machine = Machine::new(&config(&marker()));
    let program = machine.folder.project().join("trunkline");
    other_build(&program);
    let template = machine.folder.bare_command(&[]);
    let other = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.args(words).current_dir(machine.folder.project()).env_clear();
        command.envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    };
    assert!(other(&["up"]).stdout(Stdio::null()).status().unwrap().success());
    let mut client = machine.session();
    assert_eq!(client.shout("a"), "A");
    let shown = machine.folder.run(&["ps"]).output;
    assert!(shown.contains("version 0.0.9, protocol 4"), "{shown}");
    assert_eq!(machine.folder.run(&["restart"]).code, 0);
    let shown = machine.folder.run(&["ps"]).output;
    assert!(!shown.contains("0.0.9"), "the restart has replaced it: {shown}");
    let mut older = Client::start(other(&["connect"]));
    older.open();
    assert_eq!((older.shout("b"), client.shout("c")), ("B".to_owned(), "C".to_owned()));
}

/// A client of an older program is served as before.
#[test]
fn an_older_client_gets_along_with_a_newer_service() {
    let machine = Machine::new(&config(&marker()));
    assert_eq!(machine.folder.run(&["up"]).code, 0);
    let stream = UnixStream::connect(machine.socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let variables = json!({ "HOME": machine.home(), "PATH": "/usr/bin:/bin" });
    let client = json!({ "directory": machine.folder.project(), "variables": variables });
    let hello = json!({ "trunkline": 1, "build": "0.0.9", "wants": { "mcp": client } });
    writeln!(&stream, "{hello}").unwrap();
    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let welcome = lines.next().unwrap();
    assert!(welcome.contains("service") && !welcome.contains("error"), "{welcome}");
    writeln!(&stream, "{INITIALIZE}").unwrap();
    let answer = lines.next().unwrap();
    assert!(answer.contains("serverInfo"), "{answer}");
}

/// Calls go on while the configuration changes around their server.
#[test]
fn no_call_is_lost_while_configurations_are_reloaded() {
    let marker = marker();
    let machine = Machine::new(&config(&marker));
    let mut clients: Vec<_> = (0..3).map(|_| machine.session()).collect();
    let loaded = |count: usize| {
        let servers = machine.ps()["projects"][0]["servers"].as_array().map_or(0, Vec::len);
        servers == count
    };
    for round in 0..4 {
        let mut changed = config(&marker);
        for number in 0..=round % 2 {
            changed["mcpServers"][format!("more-{number}")] = words(&marker);
        }
        machine.configure(&changed.to_string());
        let mut is_loaded = false;
        // Until the change is in use, and a few more.
        let mut left = 20;
        while left > 0 {
            for (number, client) in clients.iter_mut().enumerate() {
                assert_eq!(client.shout(&format!("a{number}")), format!("A{number}"));
            }
            is_loaded = is_loaded || loaded(2 + round % 2);
            left -= usize::from(is_loaded);
        }
    }
}

#[test]
fn a_changed_configuration_is_applied_and_a_broken_one_is_reported() {
    let marker = marker();
    let machine = Machine::new(&config(&marker));
    let mut client = machine.session();
    assert!(client.tools().iter().all(|name| name.starts_with("words_")));
    let mut both = config(&marker);
    both["mcpServers"]["more"] = words(&marker);
    machine.configure(&both.to_string());
    client.notification("notifications/tools/list_changed");
    wait_until("the new server is listed", LONGEST_START, || {
        client.tools().iter().any(|name| name.starts_with("more_"))
    });

    machine.configure("{ \"mcpServers\": { \"words\": 1 } }");
    wait_until("the mistake is reported", LONGEST_START, || {
        machine.ps()["projects"][0]["problem"].is_string()
    });
    let ps = machine.folder.run(&["ps"]);
    assert!(ps.output.contains("what was loaded before stays in use"), "{ps}");
    assert_eq!(client.shout("a"), "A");
    machine.configure(&config(&marker).to_string());
    wait_until("the mistake is gone", LONGEST_START, || {
        machine.ps()["projects"][0]["problem"].is_null()
    });
}

#[test]
fn a_configuration_that_leads_to_itself_is_refused() {
    let program = env!("CARGO_BIN_EXE_trunkline");
    let machine = Machine::new(
        &json!({ "mcpServers": { "self": { "command": program, "args": ["connect"] } } }),
    );
    let mut client = machine.client();
    client.write(INITIALIZE);
    let answer = client.line();
    assert!(answer["result"].is_object(), "{answer}");
    client.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.next += 1;
    assert_eq!(client.tools(), Vec::<String>::new());
    let ps = machine.ps();
    assert_eq!(ps["projects"][0]["servers"][0]["state"], "failed", "{ps}");
}

#[test]
fn a_server_that_hides_that_it_is_its_own_client_is_refused() {
    let machine = Machine::new(&json!({}));
    let (program, home) = (env!("CARGO_BIN_EXE_trunkline"), machine.home());
    let args = ["-i", &format!("HOME={}", home.display()), program, "connect"];
    let entry = json!({ "command": "/usr/bin/env", "args": args });
    machine.configure(&json!({ "mcpServers": { "self": entry } }).to_string());
    let mut client = machine.session();
    assert_eq!(client.tools(), Vec::<String>::new());
    assert_eq!(machine.ps()["clients"], 1);
}

#[test]
fn an_unusable_configuration_is_an_error_of_the_client() {
    let machine = Machine::new(&json!({}));
    let mut client =
        Client::start(machine.folder.bare_command(&["--config", "no-such.json", "connect"]));
    client.write(INITIALIZE);
    let answer = client.line();
    assert!(answer["error"]["message"].as_str().unwrap().contains("no-such.json"), "{answer}");
}

#[test]
fn a_supervisor_may_bind_the_socket() {
    let machine = Machine::new(&config(&marker()));
    let folder = machine.runtime_folder();
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let listener = UnixListener::bind(machine.socket()).unwrap();
    let mut command = machine.folder.bare_command(&["up", "--foreground", "--supervised"]);
    let mut service = command.stdin(std::os::fd::OwnedFd::from(listener)).spawn().unwrap();
    let mut client = machine.session();
    assert_eq!(client.shout("a"), "A");
    assert_eq!(machine.service_pid(), service.id());
    assert_eq!(machine.folder.run(&["down"]).code, 0);
    assert!(service.wait().unwrap().success());
    assert!(machine.socket().exists(), "it belongs to the supervisor");
}

#[test]
fn a_host_learns_why_there_are_no_servers() {
    let machine = Machine::new(&json!({}));
    let connect = |machine: &Machine| {
        let mut command = machine.folder.bare_command(&["connect"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        writeln!(process.stdin.take().unwrap(), "{INITIALIZE}").unwrap();
        machine.folder.ended(process.wait_with_output().unwrap())
    };
    let run = connect(&machine);
    let empty =
        "warning: there are no servers in [folder]/project: the configuration has no servers";
    assert!(run.messages.starts_with(empty), "{run}");
    let file = machine.folder.project().join("trunkline.json");
    fs::write(file, config("x").to_string()).unwrap();
    assert_eq!(machine.folder.finish(&mut machine.folder.bare_command(&["down"])).code, 0);
    let run = connect(&machine);
    assert!(run.messages.contains("trunkline trust [folder]/project/trunkline.json"), "{run}");
    // A client that comes later is told what holds then.
    let trusted = machine.folder.finish(&mut machine.folder.bare_command(&["trust", "--yes"]));
    assert_eq!(trusted.code, 0, "{trusted}");
    wait_until("the servers are in use", LONGEST_START, || connect(&machine).messages.is_empty());
}

#[test]
fn messages_of_a_client_that_closes_at_once_are_answered() {
    let machine = Machine::new(&config(&marker()));
    let mut client = machine.client();
    client.write(INITIALIZE);
    client.input = None;
    assert!(client.line()["result"].is_object());
    assert!(client.process.wait().unwrap().success());
}

#[test]
fn a_failed_server_is_listed_with_its_last_words_and_what_to_do() {
    let machine = Machine::new(&json!({ "mcpServers": {
        "missing": { "command": "no-such-program" },
        "broken": { "comand": "x" },
        "loud": { "command": "/bin/sh", "args": ["-c", "echo no licence >&2; exit 3"] },
    } }));
    let mut client = machine.session();
    assert_eq!(client.tools(), Vec::<String>::new());
    let ps = machine.folder.run(&["ps"]).output;
    for text in ["install it on the PATH", "it said: no licence", "its entry has errors"] {
        assert!(ps.contains(text), "{text} in\n{ps}");
    }
}

#[test]
fn logs_name_what_the_service_did() {
    let machine = Machine::new(&config(&marker()));
    let none = machine.folder.run(&["logs"]);
    assert!(none.code == 0 && none.messages.contains("has not run yet"), "{none}");
    let mut client = machine.session();
    client.shout("a");
    wait_until("the start is logged", LONGEST_START, || {
        machine.folder.run(&["logs"]).output.contains("service started")
    });
    let unknown = machine.folder.run(&["logs", "nothing"]);
    assert!(unknown.code != 0 && unknown.messages.contains("`nothing`"), "{unknown}");
    assert_eq!(machine.folder.run(&["logs", "words"]).code, 0);
}

#[test]
fn unit_files_are_printed() {
    let machine = Machine::new(&config(&marker()));
    let systemd = machine.folder.run(&["up", "--print-unit", "systemd"]);
    assert!(
        systemd.output.contains("ListenStream=[folder]/home/.local/state/trunkline/run"),
        "{systemd}"
    );
    let launchd = machine.folder.run(&["up", "--print-unit", "launchd"]);
    assert!(launchd.output.contains("<string>--supervised</string>"), "{launchd}");
    assert_eq!(machine.ps()["service"], Value::Null, "nothing was started");
}
