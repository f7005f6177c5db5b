//! A server at an address that forgets its session, and one that says something beside its answers.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use trunkline::connection::Connection;
use trunkline::item::Kind;
use trunkline_testkit::peers;

use crate::lively::{Attentive, call, config, converse, options, text_of, tool_names, within};

/// A server that listens, and is killed at the end.
struct Listening {
    process: Child,
    connection: Connection,
}

impl Listening {
    fn new() -> Self {
        let mut command = Command::new(peers::python());
        command.arg("-I").arg(peers::forgetful_server()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let url = format!("http://127.0.0.1:{}/mcp", port.trim());
        let config = config(&json!({ "s": { "type": "http", "url": url } }));
        let connection = Connection::new(config.server("s").unwrap().clone(), options());
        Self { process, connection }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
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
