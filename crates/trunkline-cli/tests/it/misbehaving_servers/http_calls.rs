//! Remote servers that misbehave in a call.

use serde_json::{Value, json};

use super::{assert_call_fails, assert_ready};
use crate::support::listening_server;

/// A server that misbehaves in calls.
fn remote(url: &str) -> Value {
    json!({ "type": "http", "url": url, "timeouts": { "call": "1s" } })
}

fn assert_remote_call_fails(mode: &str, message: &str) {
    let server = listening_server::scripted("tools/call", mode);
    assert_call_fails(&remote(&server.url), message);
}

#[test]
fn a_call_that_comes_too_soon() {
    assert_remote_call_fails("429", "answered 429 Too Many Requests: try again in 7 s");
}

#[test]
fn a_call_that_breaks_the_server() {
    assert_remote_call_fails("500", "answered 500 Internal Server Error: out of cheese");
}

#[test]
fn a_call_that_is_redirected_to_itself() {
    assert_remote_call_fails("redirect-in-circles", "redirects again and again");
}

#[test]
fn a_call_that_is_redirected_to_another_server() {
    let message = "redirects to another server, http://other.invalid";
    assert_remote_call_fails("redirect-away", message);
}

#[test]
fn a_call_whose_connection_is_reset() {
    assert_remote_call_fails("reset", "broke the connection");
}

#[test]
fn a_call_that_is_answered_by_half() {
    assert_remote_call_fails("half", "broke the connection");
}

#[test]
fn a_call_that_is_answered_a_byte_per_second() {
    for mode in ["slow-head", "slow-body"] {
        assert_remote_call_fails(mode, "it did not answer the call within 1s");
    }
}

#[test]
fn a_call_that_is_answered_with_100_megabytes() {
    assert_remote_call_fails("huge", "sent a message of more than 16 MiB");
}

#[test]
fn a_call_in_a_session_that_is_gone_is_repeated_in_a_new_one() {
    // One server for each command, because it forgets only the first session.
    let server = listening_server::scripted("tools/call", "forget-session");
    let folder = assert_ready(&remote(&server.url));
    let server = listening_server::scripted("tools/call", "forget-session");
    let folder = folder.file("trunkline.json", configuration(&server.url));
    let run = folder.run(&["call", "faulty_wait"]);
    assert_eq!((run.code, run.output.trim(), run.messages.as_str()), (0, "waited", ""), "{run}");
}

fn configuration(url: &str) -> String {
    json!({ "mcpServers": { "faulty": remote(url) } }).to_string()
}
