//! Servers at addresses: that forget their sessions, say something beside their answers, or go away.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use trunkline::connection::{Connection, State};
use trunkline::error::{Error, ErrorKind};
use trunkline::item::Kind;
use trunkline_testkit::peers;

use crate::lively::{
    Attentive, call, config, converse, options, params, text_of, tool_names, until_state, within,
};

/// A server that listens, and is killed at the end.
struct Listening {
    process: Child,
    port: String,
    connection: Connection,
}

/// Starts the server on a port, any if it is 0. Returns which it is.
fn start(port: &str) -> (Child, String) {
    let mut command = Command::new(peers::python());
    command.arg("-I").arg(peers::forgetful_server()).arg(port).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut port = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
    (process, port.trim().to_owned())
}

impl Listening {
    fn new() -> Self {
        let (process, port) = start("0");
        let url = format!("http://127.0.0.1:{port}/mcp");
        let config = config(&json!({ "s": { "type": "http", "url": url } }));
        let connection = Connection::new(config.server("s").unwrap().clone(), options());
        Self { process, port, connection }
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    fn start_again(&mut self) {
        self.process = start(&self.port).0;
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A call that nobody answers, and why.
async fn failed_call(connection: &Connection, tool: &str) -> Error {
    within(connection.request("tools/call", params(tool, &json!({})))).await.unwrap_err()
}

/// CON-5, CON-11: a server that cannot be reached any more is not ready, and comes back by itself.
#[tokio::test]
async fn a_server_that_refuses_connections_is_down_until_it_is_back() {
    let mut listening = Listening::new();
    within(listening.connection.connect()).await.unwrap();
    listening.kill();
    // What is left of the connection may break before there is none to be had.
    while failed_call(&listening.connection, "lose").await.kind() == ErrorKind::Broken {}
    let status = listening.connection.status();
    assert_eq!(status.state, State::Failed, "whoever hears it sees it");
    assert_eq!(status.last_error.unwrap().kind(), ErrorKind::Unreachable);
    assert!(status.next_attempt.is_some() && listening.connection.tools().is_empty());
    assert!(listening.connection.may_return());
    listening.start_again();
    until_state(&listening.connection, State::Ready).await;
    assert_eq!(listening.connection.tools().len(), 3);
    listening.kill();
    while failed_call(&listening.connection, "slow").await.kind() == ErrorKind::Broken {}
    listening.start_again();
    assert_eq!(call(&listening.connection, "slow").await, "call 1", "a call need not wait");
    within(listening.connection.close()).await;
}

/// One request that goes wrong says nothing about the others.
#[tokio::test]
async fn a_request_that_fails_does_not_take_the_server_away() {
    for mode in ["500", "429", "reset", "half", "slow-head"] {
        let mut command = Command::new(peers::python());
        command.arg("-I").arg(peers::scripted_http_server()).args(["tools/call", mode]);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let url = format!("http://127.0.0.1:{}/mcp", port.trim());
        let entry = json!({ "type": "http", "url": url, "timeouts": { "call": "300ms" } });
        let config = config(&json!({ "s": entry }));
        let connection = Connection::new(config.server("s").unwrap().clone(), options());
        within(connection.connect()).await.unwrap();
        failed_call(&connection, "wait").await;
        within(connection.request("ping", None)).await.unwrap().unwrap_err();
        assert_eq!(connection.status().state, State::Ready, "{mode}");
        within(connection.close()).await;
        let _ = process.kill();
        let _ = process.wait();
    }
}

/// The call that finds the session gone is made again in a new one; those before it go on, and are
/// made once.
#[tokio::test]
async fn a_session_that_is_forgotten_costs_no_call_and_repeats_none_that_runs() {
    let listening = Listening::new();
    let connection = &listening.connection;
    within(connection.connect()).await.unwrap();
    let later = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        call(connection, "lose").await
    };
    let (slow, lost) = tokio::join!(call(connection, "slow"), later);
    assert_eq!((slow.as_str(), lost.as_str()), ("call 1", "found"));
    assert_eq!(call(connection, "slow").await, "call 2");
    within(connection.close()).await;
}

/// That a list has changed is heard also on the stream of a call.
#[tokio::test]
async fn a_change_that_is_announced_beside_an_answer_is_heard() {
    let listening = Listening::new();
    let connection = &listening.connection;
    within(connection.connect()).await.unwrap();
    let known = connection.tools();
    let caller = Attentive::default();
    let result = converse(connection, "announce", &caller).await.unwrap();
    assert_eq!(text_of(&result), "found");
    assert_eq!(caller.told.lock().unwrap().len(), 1);
    within(connection.list_changed(Kind::Tool, &known)).await;
    assert!(tool_names(connection).contains(&"new".to_owned()));
    within(connection.close()).await;
}

/// What is watched is asked for again in the new session, by itself.
#[tokio::test]
async fn what_is_watched_is_asked_for_again_when_the_session_is_forgotten() {
    let listening = Listening::new();
    let connection = &listening.connection;
    let _watching = within(connection.subscribe("a:1")).await.unwrap().unwrap();
    assert_eq!(call(connection, "lose").await, "found");
    let asking = async {
        while call(connection, "subscribed").await != "1 2" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(asking).await;
    within(connection.close()).await;
}
