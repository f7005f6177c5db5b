//! Misbehaving clients: in their messages, in reading, and in disconnecting. Other clients do not
//! notice.

use serde_json::{Value, json};
use tokio::time::timeout;
use trunkline_gateway::{GatewayOptions, Limits};

use crate::support::client::{Era, TestClient, borrowed, text};
use crate::support::demo_server::{MODERN, legacy, modern};
use crate::support::echoing_server::{echoing, until_said};
use crate::support::gateway::TestGateway;
use crate::support::http_connection::{Channel, Sent};
use crate::support::wait::LONGEST;

async fn gateway(generation: &str) -> TestGateway {
    TestGateway::to(&json!({ "echoing": echoing(generation) })).await
}

async fn status_of(gateway: &TestGateway, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
    let mut channel = Channel::to(gateway.address).await.unwrap();
    let sent = Sent::post(headers, body);
    let answered = timeout(LONGEST, channel.messages(&sent)).await;
    let (head, messages) = answered.expect("an answer in time").unwrap();
    let code = messages.first().map_or(Value::Null, |it| it["error"]["code"].clone());
    (head.status, code)
}

#[tokio::test]
async fn invalid_body_is_rejected_without_side_effects() {
    let options = GatewayOptions {
        limits: Limits { message_bytes: 1024 * 1024, ..Limits::default() },
        ..GatewayOptions::default()
    };
    let gateway = TestGateway::with(&json!({ "echoing": echoing("legacy") }), options).await;
    let list = legacy("tools/list", &json!({}));
    let huge = legacy("ping", &json!({ "text": "x".repeat(2 * 1024 * 1024) }));
    assert_eq!(status_of(&gateway, &[], &huge).await, (413, json!(-32_600)));
    assert_eq!(status_of(&gateway, &[], "{").await, (400, json!(-32_700)));
    for batch in ["[]".to_owned(), format!("[{list}]"), format!("[{list},{list}]")] {
        assert_eq!(status_of(&gateway, &[], &batch).await, (400, json!(-32_600)), "{batch}");
    }
    for kind in ["text/plain", "application/jsonp", ""] {
        let headers = [("Content-Type", kind)];
        assert_eq!(status_of(&gateway, &headers, &list).await, (415, Value::Null), "{kind}");
    }
    let kind = [("Content-Type", "Application/JSON; charset=utf-8")];
    assert_eq!(status_of(&gateway, &kind, &legacy("initialize", &json!({}))).await.0, 200);
    gateway.end().await;
}

/// A stack overflow would end the whole process.
#[tokio::test]
async fn values_as_deep_as_a_message_allows_do_no_harm() {
    let gateway = gateway("legacy").await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let headers = client.headers();
    let headers = borrowed(&headers);
    for depth in [100, 10_000, 1_000_000] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(status_of(&gateway, &[], &deep).await.0, 400, "{depth}");
        // The server itself need not be able to parse it: it has no recipient.
        for (method, subject) in [("tools/call", r#""name":"none""#), ("ping", r#""x":1"#)] {
            let params = format!(r#"{{{subject},"arguments":{{"x":{deep}}},"_meta":{deep}}}"#);
            let request =
                format!(r#"{{"jsonrpc":"2.0","id":"deep","method":"{method}","params":{params}}}"#);
            let (status, _) = status_of(&gateway, &headers, &request).await;
            assert!([200, 400].contains(&status), "{depth} {method} {status}");
        }
        assert_eq!(text(&client.call("echo", json!({ "token": "flat" })).await), "flat", "{depth}");
    }
    gateway.end().await;
}

#[tokio::test]
async fn other_names_and_other_pages_are_refused_each_by_itself() {
    let gateway = gateway("legacy").await;
    let body = modern(MODERN, "server/discover", json!({}));
    let said = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "server/discover")];
    let local = gateway.address.to_string();
    for (host, origin, status) in [
        (&*local, None, 200),
        (&*local, Some("http://localhost:3000"), 200),
        ("evil.example", None, 403),
        (&*local, Some("http://evil.example"), 403),
        (&*local, Some("null"), 403),
        ("evil.example", Some("http://localhost:3000"), 403),
    ] {
        let mut headers = said.to_vec();
        headers.push(("Host", host));
        headers.extend(origin.map(|origin| ("Origin", origin)));
        let got = status_of(&gateway, &headers, &body).await.0;
        assert_eq!(got, status, "{host} {origin:?}");
    }
    gateway.end().await;
}

/// Sends a message verbatim, in a session.
async fn sent(client: &TestClient, body: &str) -> (u16, Value) {
    let headers = client.headers();
    let headers = borrowed(&headers);
    let mut channel = Channel::to(client.address).await.unwrap();
    let (head, mut messages) = channel.messages(&Sent::post(&headers, body)).await.unwrap();
    (head.status, messages.pop().unwrap_or_default())
}

/// The same string is the same ID, with any escapes.
#[tokio::test]
async fn a_request_is_cancelled_by_its_id_in_another_spelling() {
    let gateway = gateway("legacy").await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let call = r#"{"jsonrpc":"2.0","id":"Ab","method":"tools/call",
        "params":{"name":"hang","arguments":{"token":"spelt"}}}"#;
    let headers = client.headers();
    let mut channel = Channel::to(gateway.address).await.unwrap();
    assert!(channel.send(&Sent::post(&borrowed(&headers), call)).await.unwrap().is_stream());
    // A call that is cancelled before its server has started does not reach it.
    until_said(&mut client, "hung", "spelt").await;
    let again = r#"{"jsonrpc":"2.0","id":"A\u0062","method":"ping"}"#;
    let (status, refused) = sent(&client, again).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!(-32_600)), "{refused}");
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled",
        "params":{"requestId":"\u0041b"}}"#;
    assert_eq!(sent(&client, cancel).await.0, 202);
    until_said(&mut client, "cancelled", "spelt").await;
    gateway.end().await;
}

/// Invalid parameters are not an unknown resource.
#[tokio::test]
async fn duplicate_uri_is_an_invalid_parameter() {
    let gateway = gateway("legacy").await;
    let client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    for (params, code) in
        [(r#"{"uri":"x://a","uri":"x://b"}"#, -32_602), (r#"{"uri":"x://a"}"#, -32_002)]
    {
        let read =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{params}}}"#);
        let (_, answer) = sent(&client, &read).await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    gateway.end().await;
}

#[tokio::test]
async fn an_id_is_used_once_at_a_time_in_a_session() {
    let gateway = gateway("legacy").await;
    let mut first = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let call = json!({ "name": "hang", "arguments": { "token": "first" } });
    let written = first.write("tools/call", call);
    assert!(first.begin(&written).await.unwrap().is_stream());
    let mut channel = Channel::to(gateway.address).await.unwrap();
    let headers = borrowed(&written.headers);
    let again = channel.messages(&Sent::post(&headers, &written.body)).await.unwrap();
    assert_eq!((again.0.status, &again.1[0]["error"]["code"]), (400, &json!(-32_600)));
    assert_eq!(again.1[0]["id"], written.id);
    // The same ID is independent in another session, and without one.
    for era in [Era::Legacy, Era::Modern] {
        let mut other = TestClient::new(era, gateway.address).await.unwrap();
        assert_eq!(text(&other.call("echo", json!({ "token": "mine" })).await), "mine");
    }
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": written.id } });
    first.channel = Channel::to(gateway.address).await.unwrap();
    first.tell(&cancel).await.unwrap();
    until_said(&mut first, "cancelled", "first").await;
    // Once the request is finished, the ID is free.
    let asked = timeout(LONGEST, channel.messages(&Sent::post(&headers, "{}"))).await.unwrap();
    assert_eq!(asked.unwrap().0.status, 400);
    let body = written.body.replace("hang", "echo");
    let asked = timeout(LONGEST, channel.messages(&Sent::post(&headers, &body))).await.unwrap();
    assert_eq!(text(&asked.unwrap().1[0]), "first");
    gateway.end().await;
}

/// Disconnecting is how a modern client cancels.
#[tokio::test]
async fn a_modern_client_that_leaves_has_cancelled() {
    for generation in ["legacy", "modern"] {
        let gateway = gateway(generation).await;
        let mut other = TestClient::new(Era::Modern, gateway.address).await.unwrap();
        let mut leaving = TestClient::new(Era::Modern, gateway.address).await.unwrap();
        let call = json!({ "name": "hang", "arguments": { "token": "left" } });
        let written = leaving.write("tools/call", call);
        let asking = tokio::spawn(async move { leaving.exchange(&written).await.is_ok() });
        until_said(&mut other, "hung", "left").await;
        asking.abort();
        until_said(&mut other, "cancelled", "left").await;
        gateway.end().await;
    }
}

/// Disconnecting is not a cancellation in the legacy era, which has a message for that.
#[tokio::test]
async fn a_legacy_client_that_leaves_has_not_cancelled() {
    for generation in ["legacy", "modern"] {
        let gateway = gateway(generation).await;
        let mut other = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
        for token in ["before-stream", "in-stream"] {
            let mut leaving = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
            let call = json!({ "name": "hang", "arguments": { "token": token } });
            let written = leaving.write("tools/call", call);
            let session = leaving.session.clone();
            if token == "in-stream" {
                assert!(leaving.begin(&written).await.unwrap().is_stream());
            } else {
                let headers = borrowed(&written.headers);
                leaving.channel.write(&Sent::post(&headers, &written.body)).await.unwrap();
            }
            until_said(&mut other, "hung", token).await;
            leaving.channel.leave().await;
            // The server would receive the cancellation before this call.
            let cancelled = other.call("cancelled", json!({})).await;
            assert!(!text(&cancelled).contains(token), "{generation} {token}");
            let mut back = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
            back.session = session;
            let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": { "requestId": 2 } });
            back.tell(&cancel).await.unwrap();
            until_said(&mut other, "cancelled", token).await;
        }
        gateway.end().await;
    }
}

/// A client that does not read blocks neither its server nor other clients.
#[tokio::test]
async fn client_that_does_not_read_blocks_no_other_client() {
    for (generation, era) in [
        ("legacy", Era::Legacy),
        ("legacy", Era::Modern),
        ("modern", Era::Legacy),
        ("modern", Era::Modern),
    ] {
        let gateway = gateway(generation).await;
        let mut slow = TestClient::new(era, gateway.address).await.unwrap();
        // More than all buffers between a server and its client hold.
        let arguments = json!({ "count": 2000, "size": 10_000 });
        let call = json!({ "name": "chatter", "arguments": arguments,
            "_meta": { "progressToken": "slow" } });
        let written = slow.write("tools/call", call);
        assert!(slow.begin(&written).await.unwrap().is_stream(), "{generation} {era:?}");
        for era in [Era::Legacy, Era::Modern] {
            let mut other = TestClient::new(era, gateway.address).await.unwrap();
            for _ in 0..3 {
                let asked = timeout(LONGEST, other.call("echo", json!({ "token": "on" }))).await;
                assert_eq!(text(&asked.expect("an answer in time")), "on");
            }
        }
        // A client that reads late still gets the response.
        let answer = async {
            loop {
                let event = slow.channel.event().await.unwrap().expect("an answer at the end");
                if let Some(message) = event.message.filter(|it| it["id"] == written.id) {
                    break message;
                }
            }
        };
        assert_eq!(text(&timeout(LONGEST, answer).await.expect("an answer in time")), "done");
        gateway.end().await;
    }
}

/// The responses of a closed session could not be retrieved.
#[tokio::test]
async fn calls_of_a_session_end_with_it() {
    let gateway = gateway("legacy").await;
    let mut other = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let mut leaving = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let call = json!({ "name": "hang", "arguments": { "token": "over" } });
    let written = leaving.write("tools/call", call);
    assert!(leaving.begin(&written).await.unwrap().is_stream());
    // A call that is cancelled before its server has started does not reach it.
    until_said(&mut other, "hung", "over").await;
    assert_eq!(leaving.request("DELETE", &[]).await.0.status, 204);
    until_said(&mut other, "cancelled", "over").await;
    let end = async { while leaving.channel.event().await.unwrap().is_some() {} };
    timeout(LONGEST, end).await.expect("its stream ends");
    gateway.end().await;
}
