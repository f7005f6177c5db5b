//! Misbehaving servers: the user sees the problem, and the other servers work.

mod programs;
mod output;
mod lists;
mod calls;
mod unreachable_urls;
mod http_calls;
#[cfg(target_os = "linux")]
mod shutdown;

use serde_json::{Value, json};
use trunkline_testkit::peers;

use crate::support::embedding_host::Host;
use crate::support::program::Folder;

/// A misbehaving server and two healthy ones.
fn with_healthy(faulty: &Value) -> Value {
    let program = env!("CARGO_BIN_EXE_trunkline");
    let healthy = |name| json!({ "command": program, "args": ["demo-server", name] });
    json!({ "faulty": faulty, "words": healthy("words"), "numbers": healthy("numbers") })
}

/// A directory with the configuration of a misbehaving server and two healthy ones.
fn beside_healthy(faulty: &Value) -> Folder {
    let configuration = json!({ "mcpServers": with_healthy(faulty) });
    Folder::new().file("trunkline.json", configuration.to_string())
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

/// The server with short timeouts.
fn impatiently(mut server: Value) -> Value {
    server["timeouts"] = json!({ "connect": "1s", "handshake": "2s" });
    server
}

/// Asserts that the other servers are ready in the same run, and can be called.
fn assert_healthy_unharmed(folder: &Folder, status: &Value) {
    for name in ["words", "numbers"] {
        let server = entry(status, name);
        assert_eq!(server["state"], "ready", "{server}");
        assert!(server["tools"].as_u64().unwrap() > 0, "{server}");
    }
    let words = folder.run(&["call", "words_shout", "--arg", "text=hello"]);
    assert_eq!((words.code, words.output.trim()), (0, "HELLO"), "{words}");
    let numbers = folder.run(&["call", "numbers_add", "--json", r#"{"a":2,"b":40}"#]);
    assert_eq!((numbers.code, numbers.output.trim()), (0, "42"), "{numbers}");
}

fn entry<'s>(status: &'s Value, name: &str) -> &'s Value {
    let servers = status["servers"].as_array().unwrap();
    servers.iter().find(|server| server["name"] == name).unwrap()
}

/// Asserts that only the faulty server fails, with this error and this hint, in JSON and in text.
fn assert_fails(faulty: &Value, error: &str, hint: &str) {
    assert_fails_as("failed", faulty, error, hint);
}

/// The same for a server in another state than `failed`.
fn assert_fails_as(state: &str, faulty: &Value, error: &str, hint: &str) {
    let folder = beside_healthy(faulty);
    let run = folder.run(&["status", "--format", "json"]);
    assert_eq!(run.code, 1, "{run}");
    let status = run.json();
    let server = entry(&status, "faulty");
    assert_eq!(server["state"], state, "{server}");
    assert_eq!((&server["tools"], &server["pid"]), (&json!(0), &Value::Null), "{server}");
    let part = |key: &str| server[key].as_str().unwrap_or_default().to_owned();
    assert!(part("error").starts_with("server `faulty`: "), "{server}");
    assert!(part("error").contains(error), "`{error}` is not in {server}");
    assert!(part("hint").contains(hint), "`{hint}` is not in {server}");
    assert_healthy_unharmed(&folder, &status);
    let call = folder.run(&["call", "faulty_wait"]);
    assert_eq!((call.code, call.output.as_str()), (5, ""), "{call}");
    assert!(call.messages.contains(error) && call.messages.contains(hint), "{call}");
    assert_neighbours_answer_during_start(&folder, faulty);
}

/// Asserts that the server works despite its misbehaviour.
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

/// Asserts that a call to the faulty server fails with this message, and that the other servers can
/// be called meanwhile and afterwards.
fn assert_call_fails(faulty: &Value, message: &str) {
    let folder = assert_ready(faulty);
    let run = folder.run(&["call", "faulty_wait"]);
    assert_eq!((run.code, run.output.as_str()), (8, ""), "{run}");
    let said = run.messages.rsplit_once("error: server `faulty`: ");
    assert!(said.is_some_and(|(_, said)| said.contains(message)), "`{message}` is not in {run}");
    assert_neighbours_answer_meanwhile(&folder, faulty);
}

/// Asserts that healthy servers respond while the faulty one is starting, and after that, in one
/// host.
fn assert_neighbours_answer_during_start(folder: &Folder, faulty: &Value) {
    in_one_host(async {
        let host = Host::new(folder, &with_healthy(faulty));
        let (failures, ()) = tokio::join!(host.start(), assert_healthy_answer(&host));
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert_healthy_answer(&host).await;
        host.end().await;
    });
}

/// Asserts that healthy servers respond while a call to the faulty one is pending, and after that,
/// in one host.
fn assert_neighbours_answer_meanwhile(folder: &Folder, faulty: &Value) {
    in_one_host(async {
        let host = Host::new(folder, &with_healthy(faulty));
        assert!(host.start().await.is_empty());
        let nothing = json!({});
        let (failed, ()) =
            tokio::join!(host.call("faulty", "wait", &nothing), assert_healthy_answer(&host));
        failed.unwrap_err();
        assert_healthy_answer(&host).await;
        host.end().await;
    });
}

async fn assert_healthy_answer(host: &Host) {
    let shouted = host.call("words", "shout", &json!({ "text": "hello" })).await;
    assert_eq!(shouted.unwrap(), "HELLO");
    let added = host.call("numbers", "add", &json!({ "a": 2, "b": 40 })).await;
    assert_eq!(added.unwrap(), "42");
}

fn in_one_host(work: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().unwrap().block_on(work);
}
