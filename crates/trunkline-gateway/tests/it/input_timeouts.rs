//! Clients that take longer to respond to a server request than the call's timeout.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::client::{Era, TestClient, text};
use crate::support::echoing_server::echoing;
use crate::support::gateway::TestGateway;
use crate::support::http_connection::Channel;
use crate::support::wait::{LONGEST, pass_time};

/// Longer than the call timeout in these tests.
const THOUGHT: Duration = Duration::from_secs(2);

async fn gateway() -> TestGateway {
    let mut server = echoing("legacy");
    server["timeouts"]["call"] = "1s".into();
    TestGateway::to(&json!({ "echoing": server })).await
}

fn accepted() -> Value {
    json!({ "action": "accept", "content": { "name": "Ann" } })
}

#[tokio::test]
async fn parked_call_waits_for_the_retry_of_its_client() {
    let gateway = gateway().await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let asked = client.call("ask", json!({})).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    pass_time(THOUGHT).await;
    assert_eq!(text(&come_back(&mut client, &asked).await), "Ann");
    gateway.end().await;
}

/// Retries a call with the response to its input request.
async fn come_back(client: &mut TestClient, asked: &Value) -> Value {
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let again = json!({ "name": "ask", "arguments": {}, "inputResponses": { key: accepted() },
        "requestState": asked["result"]["requestState"] });
    client.ask("tools/call", again).await
}

/// CON-8, CALL-7: a server request times out whether or not its client retries, and its call then
/// frees the resources it blocks.
#[tokio::test]
async fn a_client_that_does_not_come_back_in_time_is_not_waited_for() {
    let mut server = echoing("legacy");
    server["timeouts"]["question"] = "1s".into();
    server["concurrency"] = 1.into();
    let gateway = TestGateway::to(&json!({ "echoing": server })).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let asked = client.call("ask", json!({})).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let mut other = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let echoed = timeout(LONGEST, other.call("echo", json!({ "token": "other" }))).await;
    assert_eq!(text(&echoed.expect("the slot is free in time")), "other");
    let late = come_back(&mut client, &asked).await;
    assert_eq!(late["result"]["resultType"], "complete", "what came of it without: {late}");
    assert_ne!(text(&late), "Ann");
    gateway.end().await;
}

/// Server requests pass through several gateways in a row, although each of them parks the call.
#[tokio::test]
async fn input_request_and_retry_pass_through_two_gateways() {
    let inner = TestGateway::to(&json!({ "echoing": echoing("legacy") })).await;
    let entry = json!({ "type": "http", "url": inner.url(), "prefix": "", "access": "read-write" });
    let outer = TestGateway::to(&json!({ "inner": entry })).await;
    let mut client = TestClient::new(Era::Modern, outer.address).await.unwrap();
    let asked = client.call("ask", json!({})).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(text(&come_back(&mut client, &asked).await), "Ann");
    // Until then, a question may still be about the call before, which was of any client.
    pass_time(Duration::from_millis(3200)).await;
    // What is sealed is good for the call it was made for.
    let asked = client.call("ask", json!({})).await;
    let stolen = json!({ "name": "echo", "arguments": { "token": "x" },
        "requestState": asked["result"]["requestState"] });
    let refused = client.ask("tools/call", stolen).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    outer.end().await;
    inner.end().await;
}

#[tokio::test]
async fn time_for_an_elicitation_response_is_not_counted() {
    let gateway = gateway().await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let written = client.write("tools/call", json!({ "name": "ask", "arguments": {} }));
    assert!(client.begin(&written).await.unwrap().is_stream());
    let other = Channel::to(gateway.address).await.unwrap();
    let mut stream = std::mem::replace(&mut client.channel, other);
    let question = message(&mut stream).await;
    assert_eq!(question["method"], "elicitation/create");
    pass_time(THOUGHT).await;
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": accepted() });
    client.tell(&answer).await.unwrap();
    assert_eq!(text(&message(&mut stream).await), "Ann");
    gateway.end().await;
}

/// The next message of a stream.
async fn message(stream: &mut Channel) -> Value {
    loop {
        let event = timeout(LONGEST, stream.event()).await.expect("an event in time").unwrap();
        if let Some(message) = event.expect("an event").message {
            return message;
        }
    }
}
