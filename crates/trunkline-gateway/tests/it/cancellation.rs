//! Messages to servers when a client cancels a request or ends a subscription.

use std::fs;

use serde_json::json;

use crate::support::client::{Era, TestClient, borrowed, text};
use crate::support::gateway::{Folder, TestGateway};
use crate::support::http_connection::{Channel, Sent};
use crate::support::recording_server::{announcing, heard};
use crate::support::stdio_client::{self, StdioTestClient};

/// No other call to the server is needed.
#[tokio::test]
async fn subscriptions_of_a_session_end_with_it() {
    let folder = Folder::new();
    folder.write("resources", "here:one\n");
    let gateway = TestGateway::to(&json!({ "announcing": announcing(&folder) })).await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let subscribed = client.ask("resources/subscribe", json!({ "uri": "here:one" })).await;
    assert!(subscribed["result"].is_object(), "{subscribed}");
    assert_eq!(text(&client.call("watched", json!({})).await), "here:one");
    assert_eq!(client.request("DELETE", &[]).await.0.status, 204);
    assert_eq!(heard(&folder, "resources/unsubscribe").await["params"]["uri"], "here:one");
    gateway.end().await;
}

/// The last request counts, even while the first one is pending.
#[tokio::test]
async fn unsubscribe_during_a_pending_subscribe_wins() {
    let folder = Folder::new();
    folder.write("resources", "here:one\n");
    folder.write("held", "");
    let gateway = TestGateway::to(&json!({ "announcing": announcing(&folder) })).await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let written = client.write("resources/subscribe", json!({ "uri": "here:one" }));
    let headers = borrowed(&written.headers);
    let subscribing = async {
        let mut channel = Channel::to(gateway.address).await.unwrap();
        channel.messages(&Sent::post(&headers, &written.body)).await.unwrap().1
    };
    let unsubscribing = async {
        heard(&folder, "resources/subscribe").await;
        let answer = client.ask("resources/unsubscribe", json!({ "uri": "here:one" })).await;
        assert!(answer["result"].is_object(), "{answer}");
        fs::remove_file(folder.path().join("held")).unwrap();
    };
    let (answers, ()) = tokio::join!(subscribing, unsubscribing);
    assert!(answers[0]["result"].is_object(), "{answers:?}");
    assert_eq!(heard(&folder, "resources/unsubscribe").await["params"]["uri"], "here:one");
    assert_eq!(text(&client.call("watched", json!({})).await), "");
    gateway.end().await;
}

/// The text of a cancellation with these parameters.
fn cancellation(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#)
}

#[tokio::test]
async fn cancellation_reason_of_a_session_reaches_the_server() {
    for (words, expected) in [
        (r#""reason":"bored","x":1.0"#, r#""reason":"bored","x":1.0"#),
        // Another ID in it must not cancel the request of another client.
        (r#""requestId":1,"reason":"bored""#, r#""reason":"the response is not needed"#),
    ] {
        let folder = Folder::new();
        let gateway = TestGateway::to(&json!({ "announcing": announcing(&folder) })).await;
        let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
        let written = client.write("tools/call", json!({ "name": "wait", "arguments": {} }));
        assert!(client.begin(&written).await.unwrap().is_stream());
        // A call that is cancelled before its server has started does not reach it.
        heard(&folder, "tools/call").await;
        let body = cancellation(&format!(r#"{{{words},"requestId":{}}}"#, written.id));
        let mut channel = Channel::to(gateway.address).await.unwrap();
        let headers = client.headers();
        let headers = borrowed(&headers);
        assert_eq!(channel.send(&Sent::post(&headers, &body)).await.unwrap().status, 202);
        assert_heard_cancelled(&folder, expected).await;
        gateway.end().await;
    }
}

#[tokio::test]
async fn cancellation_reason_over_stdio_reaches_the_server() {
    for is_modern in [false, true] {
        let folder = Folder::new();
        let mut client = StdioTestClient::to(&json!({ "announcing": announcing(&folder) })).await;
        client.open().await;
        client.write(&stdio_client::call(is_modern, "waiting", "wait", &json!({}))).await;
        heard(&folder, "tools/call").await;
        client.write(&cancellation(r#"{"reason":"bored","requestId":"waiting","x":1}"#)).await;
        assert_heard_cancelled(&folder, r#""reason":"bored","requestId":"#).await;
        client.end().await;
    }
}

/// Asserts that the call was cancelled with these parameters, under its upstream request ID.
async fn assert_heard_cancelled(folder: &Folder, words: &str) {
    let cancelled = heard(folder, "notifications/cancelled").await;
    let call = heard(folder, "tools/call").await;
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
    let lines = fs::read_to_string(folder.path().join("heard")).unwrap();
    let line = lines.lines().find(|line| line.contains("notifications/cancelled")).unwrap();
    assert!(line.contains(words), "{line}");
}
