//! `trunkline serve --stdio`: one client, which starts the program.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use trunkline_testkit::peers;

use crate::serve_http::demo;
use crate::support::gateway::{INITIALIZE, LISTEN};
use crate::support::processes::{LONGEST_END, marked, marker, send, wait_until, wait_until_gone};
use crate::support::program::Folder;

/// How long shutdown may take after the end of the input: five seconds for pending requests, and as
/// many for servers that do not end.
const LONGEST_AFTER_END: Duration = Duration::from_secs(15);

fn folder(marker: &str) -> Folder {
    let config = json!({
        "access": "read-only",
        "mcpServers": { "words": demo("words", marker) },
        "agents": { "reader": { "tools": ["words_shout"] } },
        "bundles": { "counting": { "serverId": "words", "mode": "direct", "allowTools": ["count_words"] } },
    });
    Folder::new().file("trunkline.json", config.to_string())
}

/// The program, with one message per line.
struct Speaking {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Speaking {
    fn start(folder: &Folder, arguments: &[&str]) -> Self {
        let mut command = folder.command(&[&["serve", "--stdio"], arguments].concat());
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { input: process.stdin.take(), process, output }
    }

    fn say(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
    }

    /// The next message except list changes, which may come at any time while servers start.
    fn hear(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if !message["method"].as_str().is_some_and(|it| it.ends_with("/list_changed")) {
                return message;
            }
        }
    }

    fn ask(&mut self, line: &str) -> Value {
        self.say(line.as_bytes());
        self.hear()
    }

    fn tools(&mut self) -> Vec<String> {
        self.ask(INITIALIZE);
        let listed = self.ask(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Closes the input, and asserts that everything ends soon and with success.
    fn ends_with_its_input(mut self, marker: &str) {
        let closed = Instant::now();
        drop(self.input.take());
        assert_eq!(self.process.wait().unwrap().code(), Some(0));
        assert!(closed.elapsed() < LONGEST_AFTER_END, "{:?}", closed.elapsed());
        wait_until_gone(marker);
    }
}

impl Drop for Speaking {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Node.js gives its children sockets. Other processes that share them find them unchanged.
#[test]
fn a_client_may_speak_over_sockets() {
    let marker = marker();
    let folder = folder(&marker);
    let [(input, said), (output, heard)] = [(); 2].map(|()| UnixStream::pair().unwrap());
    let shared = said.try_clone().unwrap();
    let mut command = folder.command(&["serve", "--stdio"]);
    command.stdin(OwnedFd::from(said)).stdout(OwnedFd::from(heard)).stderr(Stdio::null());
    let mut process = command.spawn().unwrap();
    drop(command);
    let (mut input, mut output) = (input, BufReader::new(output));
    for request in [INITIALIZE, r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#] {
        writeln!(input, "{request}").unwrap();
        let mut line = String::new();
        assert!(output.read_line(&mut line).unwrap() > 0, "it has ended");
        assert!(line.contains("\"result\""), "{line}");
    }
    // This test holds its other end too, so only a shutdown closes it.
    input.shutdown(Shutdown::Write).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(0));
    wait_until_gone(&marker);
    let flags = rustix::fs::fcntl_getfl(&shared).unwrap();
    assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK), "it waits for room: {flags:?}");
}

/// A client that closes its socket with unread responses has disconnected, as with a pipe.
#[test]
fn a_client_that_leaves_answers_unread_has_gone() {
    let marker = marker();
    let folder = folder(&marker);
    let (mut client, given) = UnixStream::pair().unwrap();
    let mut command = folder.command(&["serve", "--stdio"]);
    command.stdin(OwnedFd::from(given.try_clone().unwrap())).stdout(OwnedFd::from(given));
    let process = command.stderr(Stdio::piped()).spawn().unwrap();
    drop(command);
    writeln!(client, "{INITIALIZE}").unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 1, "it has answered");
    drop(client);
    let ended = process.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    wait_until_gone(&marker);
}

#[test]
fn the_end_of_input_is_the_end_of_everything() {
    let marker = marker();
    let folder = folder(&marker);
    let mut speaking = Speaking::start(&folder, &[]);
    assert_eq!(speaking.tools(), ["words_count_words", "words_shout"]);
    assert!(!marked(&marker).is_empty());
    speaking.ends_with_its_input(&marker);
}

#[test]
fn a_call_that_never_ends_does_not_keep_it() {
    let marker = marker();
    let args = json!(["-I", peers::scripted_server(), "hang", marker]);
    let server = json!({ "command": peers::python(), "args": args });
    let config = json!({ "mcpServers": { "hanging": server } }).to_string();
    let folder = Folder::new().file("trunkline.json", config);
    let mut speaking = Speaking::start(&folder, &[]);
    assert_eq!(speaking.tools(), ["hanging_wait"]);
    speaking.say(br#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"hanging_wait","arguments":{}}}"#);
    let called = folder.project().join("called");
    wait_until("the tool is called", LONGEST_END, || called.exists());
    speaking.ends_with_its_input(&marker);
}

#[test]
fn a_signal_ends_it_well() {
    for signal in ["INT", "TERM", "HUP"] {
        let marker = marker();
        let folder = folder(&marker);
        let mut speaking = Speaking::start(&folder, &[]);
        speaking.tools();
        send(signal, speaking.process.id());
        assert_eq!(speaking.process.wait().unwrap().code(), Some(0), "{signal}");
        wait_until_gone(&marker);
    }
}

#[test]
fn subscription_is_completed_when_a_signal_ends_the_gateway() {
    let marker = marker();
    let folder = folder(&marker);
    let mut speaking = Speaking::start(&folder, &[]);
    let acknowledged = speaking.ask(LISTEN);
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    send("TERM", speaking.process.id());
    let over = speaking.hear();
    assert_eq!((&over["id"], &over["result"]["resultType"]), (&json!(7), &json!("complete")));
    assert_eq!(speaking.process.wait().unwrap().code(), Some(0));
    wait_until_gone(&marker);
}

#[test]
fn a_client_that_stops_reading_is_gone() {
    let marker = marker();
    let folder = folder(&marker);
    let mut command = folder.command(&["serve", "--stdio"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    drop(process.stdout.take());
    let mut input = process.stdin.take().unwrap();
    writeln!(input, "{INITIALIZE}").unwrap();
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    wait_until_gone(&marker);
    drop(input);
}

#[test]
fn agents_and_bundles_limit_it_and_those_there_are_not_are_corrected() {
    let folder = folder(&marker());
    assert_eq!(Speaking::start(&folder, &["--agent", "reader"]).tools(), ["words_shout"]);
    let counting = Speaking::start(&folder, &["--bundle", "counting"]).tools();
    assert_eq!(counting, ["words_count_words"]);
    for (arguments, said) in [
        (["--agent", "raeder"], "there is no agent `raeder`; did you mean `reader`?"),
        (["--bundle", "countin"], "there is no bundle `countin`; did you mean `counting`?"),
    ] {
        let run = folder.run(&[&["serve", "--stdio"], &arguments[..]].concat());
        assert_eq!((run.code, run.output.as_str()), (4, ""), "{run}");
        assert!(run.messages.contains(said), "{run}");
    }
    let run = folder.run(&["serve", "--agent", "reader"]);
    assert_eq!(run.code, 2, "{run}");
}

#[test]
fn nonsense_is_answered_and_does_not_end_it() {
    let folder = folder(&marker());
    let mut speaking = Speaking::start(&folder, &[]);
    assert_eq!(speaking.ask("what?")["error"]["code"], -32700);
    speaking.say(b"");
    speaking.say(b"\xff\xfe\x00");
    assert_eq!(speaking.hear()["error"]["code"], -32700);
    assert_eq!(speaking.ask("[]")["error"]["code"], -32600);
    assert_eq!(speaking.ask(r#"{"id":7}"#)["id"], 7);
    let early = speaking.ask(r#"{"jsonrpc":"2.0","id":8,"method":"tools/list"}"#);
    assert_eq!((&early["id"], &early["error"]["code"]), (&json!(8), &json!(-32600)));
    let huge = vec![b'x'; 17 * 1024 * 1024];
    speaking.say(&huge);
    let refused = speaking.hear();
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("exceeds the limit of"),
        "{refused}"
    );
    assert_eq!(speaking.tools(), ["words_count_words", "words_shout"]);
}

/// BUN-3: `--mode` replaces the mode of the configuration, not those of bundles.
#[test]
fn mode_of_the_command_line_replaces_that_of_the_configuration() {
    let folder = folder(&marker());
    let tools = |arguments: &[&str]| Speaking::start(&folder, arguments).tools();
    assert_eq!(tools(&["--mode", "auto"]), ["words_count_words", "words_shout"]);
    let meta = ["trunkline_search", "trunkline_describe", "trunkline_call", "trunkline_servers"];
    assert_eq!(tools(&["--mode", "meta"]), meta);
    assert_eq!(tools(&["--mode", "meta", "--agent", "reader"]), meta);
    assert_eq!(tools(&["--mode", "meta", "--bundle", "counting"]), ["words_count_words"]);
    let wrong = folder.run(&["serve", "--stdio", "--mode", "metta"]);
    assert_eq!(wrong.code, 2, "{wrong}");
    assert!(wrong.messages.contains("metta"), "{wrong}");
}
