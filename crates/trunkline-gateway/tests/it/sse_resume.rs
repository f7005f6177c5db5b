//! Broken streams are resumed where they broke, by their own client only.

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::client::{Era, TestClient, text};
use crate::support::echoing_server::{Gate, echoing};
use crate::support::gateway::TestGateway;
use crate::support::http_connection::{Channel, Event};
use crate::support::server_requests::begun;
use crate::support::wait::LONGEST;

async fn gateway() -> TestGateway {
    TestGateway::to(&json!({ "echoing": echoing("legacy") })).await
}

async fn next(channel: &mut Channel) -> Option<Event> {
    timeout(LONGEST, channel.event()).await.expect("an event in time").unwrap()
}

/// The next message of a stream, with its event ID.
async fn message(channel: &mut Channel) -> (String, Value) {
    loop {
        let event = next(channel).await.expect("a message");
        if let Some(message) = event.message {
            return (event.id.expect("an id"), message);
        }
    }
}

/// Starts a call whose response waits for a gate, and disconnects after the priming event.
async fn begin_and_leave(client: &mut TestClient, token: &str, gate: &Gate) -> (u64, String) {
    let arguments = json!({ "token": token, "wait": gate.path() });
    let written = client.write("tools/call", json!({ "name": "echo", "arguments": arguments }));
    assert!(client.begin(&written).await.unwrap().is_stream());
    let primer = next(&mut client.channel).await.unwrap();
    assert_eq!(primer.message, None);
    let other = Channel::to(client.address).await.unwrap();
    std::mem::replace(&mut client.channel, other).leave().await;
    (written.id, primer.id.expect("an id"))
}

#[tokio::test]
async fn the_stream_of_a_call_is_taken_up_where_it_broke() {
    let gateway = gateway().await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let gate = Gate::new();
    let (id, last) = begin_and_leave(&mut client, "later", &gate).await;
    let (head, mut channel) = client.request("GET", &[("Last-Event-ID", &last)]).await;
    assert!(head.is_stream(), "{head:?}");
    gate.open();
    let (last, answer) = message(&mut channel).await;
    assert_eq!((&answer["id"], text(&answer)), (&json!(id), "later"));
    assert!(next(&mut channel).await.is_none(), "nothing comes after the answer");
    // A client that has everything receives nothing twice.
    let (_, mut channel) = client.request("GET", &[("Last-Event-ID", &last)]).await;
    while let Some(event) = next(&mut channel).await {
        assert_eq!(event.message, None);
    }
    gateway.end().await;
}

#[tokio::test]
async fn response_during_the_break_is_replayed() {
    let gateway = gateway().await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let gate = Gate::new();
    let (_, last) = begin_and_leave(&mut client, "meanwhile", &gate).await;
    gate.open();
    // When this response arrives, that of the earlier call exists as well.
    let call = json!({ "token": "after", "wait": gate.path() });
    assert_eq!(text(&client.call("echo", call).await), "after");
    let (_, mut channel) = client.request("GET", &[("Last-Event-ID", &last)]).await;
    assert_eq!(text(&message(&mut channel).await.1), "meanwhile");
    gateway.end().await;
}

#[tokio::test]
async fn broken_stream_is_resumed_only_by_its_principal() {
    let gateway = gateway().await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let gate = Gate::new();
    let (_, last) = begin_and_leave(&mut client, "secret", &gate).await;
    let other = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    assert_eq!(other.request("GET", &[("Last-Event-ID", &last)]).await.0.status, 404);
    for invented in ["", "x", "1", "1-", "-1", "1-x", "99999999999999999999-1"] {
        let (head, _) = other.request("GET", &[("Last-Event-ID", invented)]).await;
        assert_eq!(head.status, 400, "{invented:?}");
    }
    assert_eq!(other.request("GET", &[("Last-Event-ID", "77-0")]).await.0.status, 404);
    gate.open();
    let (_, mut channel) = client.request("GET", &[("Last-Event-ID", &last)]).await;
    assert_eq!(text(&message(&mut channel).await.1), "secret");
    gateway.end().await;
}

/// Makes the server announce that its tools have changed.
async fn announce(client: &mut TestClient) {
    assert_eq!(text(&client.call("announce", json!({})).await), "announced");
}

#[tokio::test]
async fn the_standing_stream_is_taken_up_where_it_broke() {
    const CHANGED: &str = "notifications/tools/list_changed";
    let gateway = gateway().await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    assert_eq!(text(&client.call("echo", json!({ "token": "there" })).await), "there");
    let (_, mut channel) = client.request("GET", &[]).await;
    announce(&mut client).await;
    let (last, changed) = message(&mut channel).await;
    assert_eq!(changed["method"], CHANGED);
    drop(channel);
    announce(&mut client).await;
    let (_, mut channel) = client.request("GET", &[("Last-Event-ID", &last)]).await;
    let (missed, changed) = message(&mut channel).await;
    assert_eq!(changed["method"], CHANGED);
    assert_ne!(missed, last);
    // Resuming a stream takes it over from its current reader.
    let (_, mut later) = client.request("GET", &[("Last-Event-ID", &missed)]).await;
    while next(&mut channel).await.is_some() {}
    announce(&mut client).await;
    assert_eq!(message(&mut later).await.1["method"], CHANGED);
    gateway.end().await;
}

/// A response to a server request, with a name.
fn answer(question: &Value, name: &str) -> Value {
    let result = json!({ "action": "accept", "content": { "name": name } });
    json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })
}

#[tokio::test]
async fn server_request_is_answered_on_the_resumed_stream_by_its_session() {
    let gateway = gateway().await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let mut other = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let written = client.write("tools/call", json!({ "name": "ask", "arguments": {} }));
    assert!(client.begin(&written).await.unwrap().is_stream());
    let last = next(&mut client.channel).await.unwrap().id.expect("an id");
    client.channel = Channel::to(client.address).await.unwrap();
    let (_, mut channel) = client.request("GET", &[("Last-Event-ID", &last)]).await;
    let (_, question) = message(&mut channel).await;
    assert_eq!(question["method"], "elicitation/create");
    // The IDs of server requests are per session.
    other.tell(&answer(&question, "Mallory")).await.unwrap();
    client.tell(&answer(&question, "Ada")).await.unwrap();
    // Only the first response counts.
    client.tell(&answer(&question, "Bob")).await.unwrap();
    assert_eq!(text(&message(&mut channel).await.1), "Ada");
    gateway.end().await;
}

/// Delivered events are not repeated on a stream without `Last-Event-ID`.
#[tokio::test]
async fn resumed_stream_continues_after_the_last_event() {
    let gateway = gateway().await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let (_, mut first) = client.request("GET", &[]).await;
    announce(&mut client).await;
    let (delivered, told) = message(&mut first).await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    first.leave().await;
    let (_, mut second) = client.request("GET", &[]).await;
    // A repeated event would come before a new one.
    announce(&mut client).await;
    let (next, told) = message(&mut second).await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_ne!(next, delivered);
    gateway.end().await;
}

/// Responses are kept for disconnected clients up to a limit.
#[tokio::test]
async fn retained_events_are_bounded() {
    let gateway = gateway().await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let gate = Gate::new();
    let (_, early) = begin_and_leave(&mut client, "early", &gate).await;
    gate.open();
    let token = "x".repeat(3 * 1024 * 1024);
    for _ in 0..2 {
        // Only the events of a stream are kept.
        let gate = Gate::new();
        let call = json!({ "token": token, "wait": gate.path() });
        let mut stream = begun(&mut client, "echo", call).await;
        gate.open();
        assert_eq!(text(&message(&mut stream).await.1).len(), token.len());
    }
    let (head, _) = client.request("GET", &[("Last-Event-ID", &early)]).await;
    assert_eq!(head.status, 404, "that stream is over and forgotten");
    gateway.end().await;
}
