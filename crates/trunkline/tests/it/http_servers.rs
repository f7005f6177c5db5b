//! Remote servers that lose their sessions, send notifications beside responses, or disappear.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use trunkline::call::{CallOptions, ClientContext};
use trunkline::connection::{Connection, State};
use trunkline::error::{Error, ErrorKind};
use trunkline::host::{Host, HostOptions, WaitFor};
use trunkline::item::ItemKind;
use trunkline::message::Raw;
use trunkline::policy::CallerSpec;
use trunkline::principal::Principal;
use trunkline_testkit::peers;

use crate::support::file_driven_server::{
    Attentive, call, config, converse, options, params, poll_until, text_of, tool_names,
    until_state, within,
};

/// A running server, killed on drop.
struct Listening {
    process: Child,
    port: String,
    connection: Connection,
}

/// Starts the server on a port, or any if it is 0. Returns the port.
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

/// The error of a call that must fail.
async fn failed_call(connection: &Connection, tool: &str) -> Error {
    let error =
        within(connection.request("tools/call", params(tool, &json!({})))).await.unwrap_err();
    error.failure().unwrap().clone()
}

/// CON-5, CON-11: an unreachable server is not ready, and recovers by itself.
#[tokio::test]
async fn a_server_that_refuses_connections_is_down_until_it_is_back() {
    let mut listening = Listening::new();
    within(listening.connection.connect()).await.unwrap();
    listening.kill();
    // The open connection may break before new ones are refused.
    while failed_call(&listening.connection, "lose").await.kind() == ErrorKind::Broken {}
    let status = listening.connection.status();
    assert_eq!(status.state, State::Failed, "a subscriber sees it");
    assert_eq!(status.last_error.unwrap().kind(), ErrorKind::Unreachable);
    assert!(status.next_attempt.is_some() && listening.connection.tools().is_empty());
    assert!(listening.connection.will_recover());
    listening.start_again();
    until_state(&listening.connection, State::Ready).await;
    assert_eq!(listening.connection.tools().len(), 3);
    listening.kill();
    while failed_call(&listening.connection, "slow").await.kind() == ErrorKind::Broken {}
    listening.start_again();
    assert_eq!(call(&listening.connection, "slow").await, "call 1", "a call need not wait");
    within(listening.connection.close()).await;
}

/// An HTTP server that misbehaves in calls, and its entry.
struct Scripted {
    process: Child,
    entry: Value,
}

impl Scripted {
    fn new(mode: &str) -> Self {
        let mut command = Command::new(peers::python());
        command.arg("-I").arg(peers::scripted_http_server()).args(["tools/call", mode]);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let url = format!("http://127.0.0.1:{}/mcp", port.trim());
        let entry = json!({ "type": "http", "url": url, "timeouts": { "call": "10s" } });
        Self { process, entry }
    }

    fn connection(&self) -> Connection {
        let config = config(&json!({ "s": self.entry }));
        Connection::new(config.server("s").unwrap().clone(), options())
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// CALL-5: a response of more than 16 MiB is truncated while it is read, for each kind of body. It
/// failed before.
#[tokio::test]
async fn an_answer_that_is_longer_than_a_message_may_be_is_cut() {
    for mode in ["long", "long-stream"] {
        let scripted = Scripted::new(mode);
        let config = config(&json!({ "s": scripted.entry }));
        let host = Host::start(config, BTreeMap::new(), HostOptions::new(options()));
        within(host.refresh(&[ItemKind::Tool], WaitFor::AllReady)).await;
        let view = host.view(CallerSpec::default()).unwrap();
        let options = CallOptions::default();
        let called =
            within(host.call(&view, "s_wait", Raw::empty_object(), options)).await.unwrap();
        assert!(called.missing > 14_000_000 && !called.is_error, "{mode}: {}", called.missing);
        assert!(called.result.bytes().len() <= 5 * 1024 * 1024, "{mode}");
        assert!(called.text().starts_with("xxxx") && called.text().contains(" of 20000"), "{mode}");
        within(host.shutdown()).await;
    }
}

/// CALL-8: over HTTP, there is no way to respond to a server request of a modern server. Its call
/// fails at once with the reason; before, it waited for its deadline.
#[tokio::test]
async fn a_request_that_cannot_be_answered_fails_its_call_at_once() {
    let mut scripted = Scripted::new("request");
    scripted.entry["timeouts"]["call"] = "50s".into();
    let connection = scripted.connection();
    within(connection.connect()).await.unwrap();
    let error = failed_call(&connection, "wait").await;
    assert_eq!(error.kind(), ErrorKind::ProtocolViolation, "{error}");
    assert!(error.message().contains("it sent the request `sampling/createMessage`"), "{error}");
    assert!(error.hint().unwrap().contains("\"protocol\": \"legacy\""), "{error}");
    within(connection.close()).await;
}

/// CALL-2: a success status without a response is an explicit error, and the server stays ready.
#[tokio::test]
async fn a_reply_with_nothing_in_it_is_an_error_with_its_cause() {
    for (mode, status) in
        [("empty", "200 OK"), ("empty-stream", "200 OK"), ("accepted", "202 Accepted")]
    {
        let scripted = Scripted::new(mode);
        let connection = scripted.connection();
        within(connection.connect()).await.unwrap();
        for _ in 0..3 {
            let error = failed_call(&connection, "wait").await;
            assert_eq!(error.kind(), ErrorKind::Broken, "{mode}: {error}");
            let expected = format!("answered {status} with nothing in it");
            assert!(error.message().ends_with(&expected), "{mode}: {error}");
            assert!(error.hint().unwrap().contains("session"), "{mode}");
        }
        let refused = within(connection.request("ping", None)).await.unwrap_err();
        assert!(refused.refusal().is_some(), "{mode}: {refused}");
        within(connection.close()).await;
    }
}

/// A session that no longer responds is replaced by a new one.
#[tokio::test]
async fn a_dead_session_behind_empty_replies_is_begun_anew() {
    let scripted = Scripted::new("dead-session");
    let connection = scripted.connection();
    within(connection.connect()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(failed_call(&connection, "wait").await.kind(), ErrorKind::Broken);
    }
    assert_eq!(call(&connection, "wait").await, "waited");
    within(connection.close()).await;
}

/// CON-2: of several sessions with one server, only the expired one is replaced.
#[tokio::test]
async fn a_session_that_expires_is_opened_again_alone() {
    let mut scripted = Scripted::new("forget-second");
    scripted.entry["share"] = "per-client".into();
    let config = config(&json!({ "s": scripted.entry }));
    let host = Host::start(config, BTreeMap::new(), HostOptions::new(options()));
    within(host.refresh(&[ItemKind::Tool], WaitFor::AllReady)).await;
    let view = host.view(CallerSpec::default()).unwrap();
    let client = |id: &str| ClientContext {
        id: id.into(),
        owner: Principal::Token(id.into()),
        capabilities: Raw::empty_object(),
        handler: None,
        log_level: None,
        idle: None,
    };
    // The result contains the session of the call. Lists belong to the first session.
    for (id, session) in [("a", "3"), ("b", "4"), ("a", "3"), ("b", "4")] {
        let client = client(id);
        let options = CallOptions { client: Some(&client), ..CallOptions::default() };
        let called = within(host.call(&view, "s_wait", Raw::empty_object(), options)).await;
        assert_eq!(called.unwrap().text(), session, "{id}");
    }
    within(host.shutdown()).await;
}

/// One failed request does not affect others.
#[tokio::test]
async fn a_request_that_fails_does_not_take_the_server_away() {
    for mode in ["500", "429", "reset", "half", "slow-head"] {
        let mut scripted = Scripted::new(mode);
        scripted.entry["timeouts"]["call"] = "300ms".into();
        let connection = scripted.connection();
        within(connection.connect()).await.unwrap();
        failed_call(&connection, "wait").await;
        let refused = within(connection.request("ping", None)).await.unwrap_err();
        assert!(refused.refusal().is_some(), "{mode}: {refused}");
        assert_eq!(connection.status().state, State::Ready, "{mode}");
        within(connection.close()).await;
    }
}

/// The call that finds the session expired is retried in a new one; earlier calls continue, and are
/// sent once.
#[tokio::test]
async fn a_session_that_is_forgotten_costs_no_call_and_repeats_none_that_runs() {
    let listening = Listening::new();
    let connection = &listening.connection;
    within(connection.connect()).await.unwrap();
    let later = async {
        poll_until(async || call(connection, "slow_calls").await == "1").await;
        call(connection, "lose").await
    };
    let (slow, lost) = tokio::join!(call(connection, "slow"), later);
    assert_eq!((slow.as_str(), lost.as_str()), ("call 1", "found"));
    assert_eq!(call(connection, "slow").await, "call 2");
    within(connection.close()).await;
}

/// A list change is also received on the stream of a call.
#[tokio::test]
async fn list_change_beside_a_response_is_received() {
    let listening = Listening::new();
    let connection = &listening.connection;
    within(connection.connect()).await.unwrap();
    let known = connection.tools();
    let caller = Attentive::default();
    let result = converse(connection, "announce", &caller).await.unwrap();
    assert_eq!(text_of(&result), "found");
    assert_eq!(caller.told.lock().unwrap().len(), 1);
    within(connection.list_changed(ItemKind::Tool, &known)).await;
    assert!(tool_names(connection).contains(&"new".to_owned()));
    within(connection.close()).await;
}

/// Subscriptions are renewed in a new session automatically.
#[tokio::test]
async fn subscriptions_are_renewed_in_a_new_session() {
    let listening = Listening::new();
    let connection = &listening.connection;
    let _watching = within(connection.subscribe("a:1")).await.unwrap();
    assert_eq!(call(connection, "lose").await, "found");
    poll_until(async || call(connection, "subscribed").await == "1 2").await;
    within(connection.close()).await;
}
