//! The demo servers on a real listener: statuses, headers and access.

use std::net::SocketAddr;

use serde_json::{Value, json};
use trunkline_gateway::demo::DemoServer::{Numbers, Words};

use crate::support::demo_server::{MODERN, Response, exchange, legacy, listen, modern, post};

const VERSION: (&str, &str) = ("MCP-Protocol-Version", MODERN);

/// The headers of a modern call of `shout`.
const SHOUT: [(&str, &str); 3] = [VERSION, ("Mcp-Method", "tools/call"), ("mcp-name", "shout")];

fn shout() -> String {
    modern(MODERN, "tools/call", json!({ "name": "shout", "arguments": { "text": "hi" } }))
}

#[tokio::test]
async fn a_legacy_client_is_served_without_a_session() {
    let address = listen(Words).await;
    let opened = post(address, &[], &legacy("initialize", &json!({}))).await;
    assert_eq!(opened.status, 200);
    assert!(opened.head.contains("content-type: application/json"));
    assert!(!opened.head.contains("mcp-session-id"));
    let version = [("MCP-Protocol-Version", "2025-11-25")];
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let noted = post(address, &version, initialized).await;
    assert_eq!((noted.status, noted.body.as_str()), (202, ""));
    let listed = post(address, &version, &legacy("tools/list", &json!({}))).await;
    assert_eq!(listed.json()["result"]["tools"][1]["name"], "shout");
}

#[tokio::test]
async fn a_modern_client_is_served_request_by_request() {
    let address = listen(Words).await;
    let called = post(address, &SHOUT, &shout()).await;
    assert_eq!(called.status, 200);
    assert_eq!(called.json()["result"]["content"][0]["text"], "HI");
    assert_eq!(called.json()["result"]["resultType"], "complete");
}

#[tokio::test]
async fn errors_have_the_http_status_of_the_client_era() {
    let address = listen(Words).await;
    let unknown = legacy("nothing/known", &json!({}));
    let answer = post(address, &[], &unknown).await;
    assert_eq!((answer.status, answer.error_code()), (200, -32_601));

    let headers = [VERSION, ("Mcp-Method", "nothing/known")];
    let answer = post(address, &headers, &modern(MODERN, "nothing/known", json!({}))).await;
    assert_eq!((answer.status, answer.error_code()), (404, -32_601));

    let headers = [VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", "add")];
    let stranger = modern(MODERN, "tools/call", json!({ "name": "add" }));
    let answer = post(address, &headers, &stranger).await;
    assert_eq!((answer.status, answer.error_code()), (400, -32_602));

    for garbage in ["{", "[]", "{}"] {
        assert_eq!(post(address, &[], garbage).await.status, 400);
    }
}

#[tokio::test]
async fn a_modern_request_without_metadata_is_refused() {
    let address = listen(Words).await;
    let headers = [VERSION, ("Mcp-Method", "tools/list")];
    let answer = post(address, &headers, &legacy("tools/list", &json!({}))).await;
    assert_eq!((answer.status, answer.error_code()), (400, -32_602));
    let answer = post(address, &[], &legacy("server/discover", &json!({}))).await;
    assert_eq!((answer.status, answer.error_code()), (400, -32_602));
}

#[tokio::test]
async fn versions_that_are_not_spoken_are_refused() {
    let address = listen(Words).await;
    let future = [("MCP-Protocol-Version", "2099-01-01"), ("Mcp-Method", "tools/list")];
    for body in [modern("2099-01-01", "tools/list", json!({})), legacy("tools/list", &json!({}))] {
        let answer = post(address, &future, &body).await;
        assert_eq!((answer.status, answer.error_code()), (400, -32_022));
    }
    let opened = post(address, &future, &legacy("initialize", &json!({}))).await;
    assert_eq!(opened.status, 200);
}

#[tokio::test]
async fn headers_that_are_missing_or_contradict_the_body_are_refused() {
    let address = listen(Words).await;
    for missing in 0..SHOUT.len() {
        let mut headers = SHOUT.to_vec();
        headers.remove(missing);
        let answer = post(address, &headers, &shout()).await;
        assert_eq!((answer.status, answer.error_code()), (400, -32_020), "{headers:?}");
        assert_eq!(answer.json()["id"], 1);
    }
    for (place, value) in [(0, "2025-11-25"), (1, "tools/list"), (2, "Shout"), (2, "=?base64??=")] {
        let mut headers = SHOUT;
        headers[place].1 = value;
        let answer = post(address, &headers, &shout()).await;
        assert_eq!((answer.status, answer.error_code()), (400, -32_020), "{headers:?}");
    }
}

#[tokio::test]
async fn a_name_may_come_in_base64() {
    let address = listen(Words).await;
    let headers = [SHOUT[0], SHOUT[1], ("Mcp-Name", "=?base64?c2hvdXQ=?=")];
    assert_eq!(post(address, &headers, &shout()).await.status, 200);
}

#[tokio::test]
async fn only_post_is_allowed() {
    let address = listen(Numbers).await;
    let host = address.to_string();
    for method in ["GET", "DELETE", "PUT"] {
        let answer = exchange(address, method, &[("Host", &host)], "").await;
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.head.contains("allow: post"), "{}", answer.head);
    }
}

async fn ping(address: SocketAddr, headers: &[(&str, &str)]) -> Response {
    exchange(address, "POST", headers, &legacy("ping", &json!({}))).await
}

#[tokio::test]
async fn only_this_machine_may_ask() {
    let address = listen(Numbers).await;
    assert_eq!(ping(address, &[("Host", "localhost")]).await.status, 200);
    assert_eq!(ping(address, &[("Host", "example.com")]).await.status, 403);
    let local = ("Host", "127.0.0.1");
    assert_eq!(ping(address, &[local, ("Origin", "http://localhost:3000")]).await.status, 200);
    for origin in ["http://example.com", "null"] {
        assert_eq!(ping(address, &[local, ("Origin", origin)]).await.status, 403);
    }
    let stream = exchange(address, "GET", &[local, ("Origin", "http://example.com")], "").await;
    assert_eq!(stream.status, 403);
}

#[tokio::test]
async fn a_body_may_be_as_long_as_the_limit_and_no_longer() {
    let address = listen(Numbers).await;
    let ping = legacy("ping", &json!({}));
    let longest = format!("{ping}{}", " ".repeat(1024 * 1024 - ping.len()));
    assert_eq!(post(address, &[], &longest).await.json()["result"], json!({}));
    let refused = post(address, &[], &format!("{longest} ")).await;
    assert_eq!((refused.status, refused.error_code()), (413, -32_600));
    assert_eq!(refused.json()["id"], Value::Null);
}
