//! Server requests that end before the client responds: the client gets a cancellation, and the
//! server gets no late response.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::client::{Era, TestClient, text};
use crate::support::echoing_server::{echoing, until_said};
use crate::support::gateway::{TestGateway, configuration};
use crate::support::http_connection::Channel;
use crate::support::server_requests::{accepted, begun, message};
use crate::support::server_requests::{go_on_with, state_of};
use crate::support::stdio_client::{self, StdioTestClient};

/// A shared or dedicated server, with this timeout for its server requests.
fn asking(share: &str, question: &str) -> Value {
    let mut server = echoing("legacy");
    server["share"] = share.into();
    server["timeouts"]["question"] = question.into();
    json!({ "echoing": server })
}

/// Reads a server request and its cancellation. Returns the request.
async fn taken_back(stream: &mut Channel) -> Value {
    let question = message(stream).await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let end = message(stream).await;
    assert_eq!(
        (&end["method"], &end["params"]["requestId"]),
        (&json!("notifications/cancelled"), &question["id"])
    );
    assert!(end["params"]["reason"].is_string(), "{end}");
    question
}

#[tokio::test]
async fn session_receives_cancellation_of_a_server_request() {
    for share in ["all", "per-client"] {
        let gateway = TestGateway::to(&asking(share, "10m")).await;
        let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
        let mut stream = begun(&mut client, "take_back", json!({ "wait": 300 })).await;
        let question = taken_back(&mut stream).await;
        client.tell(&accepted(&question)).await.unwrap();
        assert_eq!(text(&message(&mut stream).await), "taken back");
        assert_eq!(text(&client.call("answers", json!({})).await), "[]", "{share}");
        // The next server request works as usual.
        let mut stream = begun(&mut client, "ask", json!({})).await;
        client.tell(&accepted(&message(&mut stream).await)).await.unwrap();
        assert_eq!(text(&message(&mut stream).await), "Ada");
        gateway.end().await;
    }
}

/// The cancellation goes to the GET stream, like the request, and not to that of any call.
#[tokio::test]
async fn cancellation_follows_the_stream_of_the_server_request() {
    let gateway = TestGateway::to(&asking("per-client", "10m")).await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let _hanging = begun(&mut client, "hang", json!({ "token": "own" })).await;
    until_said(&mut client, "hung", "own").await;
    let mut standing = client.request("GET", &[]).await.1;
    let mut stream = begun(&mut client, "take_back", json!({ "wait": 300 })).await;
    let question = taken_back(&mut standing).await;
    client.tell(&accepted(&question)).await.unwrap();
    assert_eq!(text(&message(&mut stream).await), "taken back");
    assert_eq!(text(&client.call("answers", json!({})).await), "[]");
    gateway.end().await;
}

#[tokio::test]
async fn session_receives_cancellation_on_timeout() {
    for share in ["all", "per-client"] {
        let gateway = TestGateway::to(&asking(share, "500ms")).await;
        let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
        let mut stream = begun(&mut client, "ask", json!({})).await;
        taken_back(&mut stream).await;
        let answer = message(&mut stream).await;
        assert!(text(&answer).contains("no response within 500ms"), "{answer}");
        gateway.end().await;
    }
}

#[tokio::test]
async fn a_question_is_over_with_its_call() {
    let gateway = TestGateway::to(&asking("all", "10m")).await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let mut stream = begun(&mut client, "give_up", json!({ "wait": 300 })).await;
    taken_back(&mut stream).await;
    assert_eq!(text(&message(&mut stream).await), "given up");
    // A server request with a response is not cancelled.
    let mut stream = begun(&mut client, "ask", json!({})).await;
    client.tell(&accepted(&message(&mut stream).await)).await.unwrap();
    assert_eq!(text(&message(&mut stream).await), "Ada");
    gateway.end().await;
}

#[tokio::test]
async fn stdio_client_receives_cancellation_of_a_server_request() {
    let mut client = StdioTestClient::to(&asking("all", "10m")).await;
    client.open_offering(&json!({ "elicitation": {} })).await;
    client.write(&stdio_client::call(false, "asks", "take_back", &json!({ "wait": 300 }))).await;
    let question = client.read().await;
    let end = client.read().await;
    assert_eq!(
        (&end["method"], &end["params"]["requestId"]),
        (&json!("notifications/cancelled"), &question["id"])
    );
    assert_eq!(text(&client.read().await), "taken back");
    client.end().await;
}

/// A late retry with input responses gets the result of the call.
#[tokio::test]
async fn a_question_is_taken_back_from_a_client_that_has_to_call_again() {
    for share in ["all", "per-client"] {
        let gateway = TestGateway::to(&asking(share, "10m")).await;
        let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
        let arguments = json!({ "wait": 300, "then": 700 });
        let state = state_of(&client.call("take_back", arguments.clone()).await);
        // The client gets another dedicated process while the first one waits for it.
        until_said(&mut client, "hung", "taken back").await;
        let going_on = go_on_with(&mut client, ("take_back", arguments), &state);
        let answer = timeout(Duration::from_secs(30), going_on).await.expect("an answer");
        assert_eq!(text(&answer), "taken back");
        assert_eq!(text(&client.call("answers", json!({})).await), "[]", "{share}");
        gateway.end().await;
    }
}

/// Regression: the response reached the server, and its result was returned.
#[tokio::test]
async fn parked_call_of_a_denied_tool_is_not_resumed() {
    let servers = |denied: &[&str]| {
        let mut server = echoing("legacy");
        server["denyTools"] = json!(denied);
        configuration(&json!({ "echoing": server }))
    };
    let gateway = TestGateway::of(servers(&[])).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let state = state_of(&client.call("ask", json!({})).await);
    gateway.host.reload(servers(&["ask"]), BTreeMap::new()).await;
    for _ in 0..2 {
        let refused = go_on_with(&mut client, ("ask", json!({})), &state).await;
        assert_eq!(refused["error"]["code"], -32_602, "{refused}");
    }
    until_said(&mut client, "cancelled", "asked").await;
    gateway.end().await;
}
