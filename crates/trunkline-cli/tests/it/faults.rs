//! Servers that misbehave: the user sees what is wrong, and the servers beside them work.

use serde_json::{Value, json};
use trunkline_testkit::peers;

use crate::listening;
use crate::run::{Folder, Run};

/// A server that misbehaves beside two healthy ones.
fn beside_healthy(faulty: &Value) -> Folder {
    let program = env!("CARGO_BIN_EXE_trunkline");
    let healthy = |name| json!({ "command": program, "args": ["demo-server", name] });
    let servers =
        json!({ "faulty": faulty, "words": healthy("words"), "numbers": healthy("numbers") });
    Folder::new().file("trunkline.json", json!({ "mcpServers": servers }).to_string())
}

fn shell(script: &str) -> Value {
    json!({ "command": "/bin/sh", "args": ["-c", script] })
}

/// A shell script that may run the program as `$PROGRAM`.
fn shell_then_words(script: &str) -> Value {
    let mut server = shell(&format!("{script}; exec \"$PROGRAM\" demo-server words"));
    server["env"] = json!({ "PROGRAM": env!("CARGO_BIN_EXE_trunkline") });
    server
}

fn scripted(mode: &str) -> Value {
    json!({ "command": peers::python(), "args": ["-I", peers::scripted_server(), mode] })
}

/// The server, with little patience for it.
fn impatiently(mut server: Value) -> Value {
    server["timeouts"] = json!({ "connect": "1s", "handshake": "2s" });
    server
}

/// The servers beside the faulty one are ready in the same run, and can be called.
fn assert_healthy_unharmed(folder: &Folder, status: &Value) {
    for name in ["words", "numbers"] {
        let server = entry(status, name);
        assert_eq!(server["state"], "ready", "{server}");
        assert!(server["tools"].as_u64().unwrap() > 0, "{server}");
    }
    let words = folder.run(&["call", "words", "shout", "--arg", "text=hello"]);
    assert_eq!((words.code, words.output.trim()), (0, "HELLO"), "{words}");
    let numbers = folder.run(&["call", "numbers", "add", "--json", r#"{"a":2,"b":40}"#]);
    assert_eq!((numbers.code, numbers.output.trim()), (0, "42"), "{numbers}");
}

fn entry<'s>(status: &'s Value, name: &str) -> &'s Value {
    let servers = status["servers"].as_array().unwrap();
    servers.iter().find(|server| server["name"] == name).unwrap()
}

/// Asserts that only the faulty server fails, with this error and this hint, for machines and for
/// people alike.
fn assert_fails(faulty: &Value, error: &str, hint: &str) {
    let folder = beside_healthy(faulty);
    let run = folder.run(&["status", "--format", "json"]);
    assert_eq!(run.code, 1, "{run}");
    let status = run.json();
    let server = entry(&status, "faulty");
    assert_eq!(server["state"], "failed", "{server}");
    assert_eq!((&server["tools"], &server["pid"]), (&json!(0), &Value::Null), "{server}");
    let part = |key: &str| server[key].as_str().unwrap_or_default().to_owned();
    assert!(part("error").starts_with("server `faulty`: "), "{server}");
    assert!(part("error").contains(error), "`{error}` is not in {server}");
    assert!(part("hint").contains(hint), "`{hint}` is not in {server}");
    assert_healthy_unharmed(&folder, &status);
    let call = folder.run(&["call", "faulty", "wait"]);
    assert_eq!((call.code, call.output.as_str()), (1, ""), "{call}");
    assert!(call.messages.contains(error) && call.messages.contains(hint), "{call}");
}

/// Asserts that the server is used in spite of what it does.
fn assert_ready(faulty: &Value) -> Folder {
    let folder = beside_healthy(faulty);
    let run = folder.run(&["status", "--format", "json"]);
    assert_eq!(run.code, 0, "{run}");
    let status = run.json();
    let server = entry(&status, "faulty");
    assert_eq!(server["state"], "ready", "{server}");
    assert!(server["error"].is_null(), "{server}");
    assert_healthy_unharmed(&folder, &status);
    folder
}

#[test]
fn a_program_that_is_missing() {
    let server = json!({ "command": "no-such-program-anywhere" });
    assert_fails(&server, "no-such-program-anywhere: not found", "is it installed");
}

#[test]
fn a_program_that_repeats_what_it_is_sent() {
    let server = impatiently(json!({ "command": "/bin/cat" }));
    assert_fails(&server, "it repeats what it is sent", "is this an MCP server?");
}

#[test]
fn a_program_that_never_answers() {
    let server = impatiently(shell("exec sleep 1000"));
    assert_fails(&server, "it did not answer in time", "is this an MCP server?");
}

#[test]
fn a_program_that_ends_at_once_and_says_why() {
    let server = shell("echo 'the key is missing' >&2; exit 3");
    assert_fails(&server, "the process ended (exit status: 3)", "it said: the key is missing");
}

#[test]
fn a_program_that_closes_its_output_and_lives_on() {
    let server = impatiently(shell("exec >&-; exec sleep 1000"));
    assert_fails(&server, "it closed its output and is still running", "");
}

#[test]
fn a_program_that_answers_text() {
    let server = impatiently(shell("while read -r line; do echo hello; done"));
    assert_fails(&server, "it did not answer in time", "is this an MCP server?");
}

#[test]
fn a_program_that_answers_json_that_is_not_json_rpc() {
    let error = "the answer is not a JSON-RPC message";
    assert_fails(&scripted("not-rpc"), error, "is this an MCP server?");
}

#[test]
fn a_variable_that_is_not_set() {
    let server = json!({ "command": "/bin/cat", "args": ["${TRUNKLINE_TEST_UNSET}"] });
    assert_fails(&server, "the variable `TRUNKLINE_TEST_UNSET` is not set", "");
}

#[test]
fn an_address_where_nobody_listens() {
    let port = listening::free_port();
    let server = json!({ "type": "http", "url": format!("http://127.0.0.1:{port}/mcp") });
    let hint = format!("is the server running at 127.0.0.1:{port}?");
    assert_fails(&server, "refuses connections", &hint);
}

#[test]
fn an_address_that_does_not_exist() {
    let url = listening::always(
        "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    );
    let hint = "is the path of the address right?";
    assert_fails(&json!({ "type": "http", "url": url }), "answered 404 Not Found", hint);
    assert_fails(&json!({ "url": url }), "answered 404 Not Found", hint);
    assert_fails(&json!({ "type": "sse", "url": url }), "answered 404 Not Found", hint);
}

#[test]
fn an_address_that_wants_credentials() {
    let url = listening::always(
        "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    );
    let hint = "the server wants credentials (it asks for `Bearer`)";
    assert_fails(&json!({ "type": "http", "url": url }), "answered 401 Unauthorized", hint);
    assert_fails(&json!({ "url": url }), "answered 401 Unauthorized", hint);
}

#[test]
fn an_address_of_a_web_page() {
    let url = listening::always(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/html\r\n\r\n<p>Welcome</p>",
    );
    let hint = "is the path of the address right?";
    assert_fails(&json!({ "type": "http", "url": url }), "something that is not MCP", hint);
    assert_fails(&json!({ "url": url }), "something that is not MCP", hint);
}

#[test]
fn noise_before_the_first_message_does_no_harm() {
    let folder = assert_ready(&shell_then_words("echo noise; echo '{\"more\": \"noise\"}'"));
    let run = folder.run(&["call", "faulty", "shout", "--arg", "text=hello"]);
    assert_eq!((run.code, run.output.trim()), (0, "HELLO"), "{run}");
}

#[test]
fn a_flood_on_standard_error_does_no_harm() {
    assert_ready(&shell_then_words("yes flood | head -c 5000000 >&2"));
}

#[test]
fn answers_to_nothing_do_no_harm() {
    for mode in ["wrong-id", "twice"] {
        let folder = assert_ready(&scripted(mode));
        let run = folder.run(&["call", "faulty", "wait"]);
        assert_eq!((run.code, run.output.trim()), (0, "waited"), "{mode}: {run}");
    }
}

/// Calls a tool that does not answer, next to healthy servers.
fn unanswered_call(server: &Value) -> Run {
    let folder = assert_ready(server);
    let run = folder.run(&["call", "faulty", "wait"]);
    assert_eq!((run.code, run.output.as_str()), (1, ""), "{run}");
    assert!(run.messages.starts_with("error: server `faulty`: "), "{run}");
    run
}

#[test]
fn a_server_that_hangs_in_a_call() {
    let mut server = scripted("hang");
    // Patience for the start is not patience for the call: the test runner ends what takes minutes.
    server["timeouts"] = json!({ "call": "1s", "connect": "10m" });
    let run = unanswered_call(&server);
    assert!(run.messages.contains("it did not answer the call within 1s"), "{run}");
}

#[test]
fn a_server_that_dies_in_a_call() {
    let run = unanswered_call(&scripted("die"));
    assert!(run.messages.contains("the process ended (exit status: 7)"), "{run}");
    assert!(run.messages.contains("it said: out of cheese"), "{run}");
}
