//! Unauthenticated requests, foreign origins, and methods without a rule.

use serde_json::{Value, json};
use tokio::time::timeout;
use trunkline::config::Access;
use trunkline_gateway::{GatewayOptions, Limits, Scope, Token, Tokens, digest_of};

use crate::support::client::{Era, TestClient, text};
use crate::support::echoing_server::echoing;
use crate::support::gateway::TestGateway;
use crate::support::http_connection::{Channel, Sent};
use crate::support::wait::LONGEST;

const ANN: (&str, &str) = ("Authorization", "Bearer token-of-ann");
const BOB: (&str, &str) = ("Authorization", "Bearer token-of-bob");

/// Ann has full access, Bob has read-only access.
fn tokens() -> Tokens {
    let mut tokens = Tokens::default();
    let read = Scope { access: Some(Access::ReadOnly), ..Scope::default() };
    for (name, scope) in [("ann", Scope::default()), ("bob", read)] {
        let token = Token { name: name.to_owned(), scope };
        tokens.insert(digest_of(&format!("token-of-{name}")), token);
    }
    tokens
}

fn servers(access: &str) -> Value {
    let mut server = echoing("modern");
    server["access"] = access.into();
    json!({ "echoing": server })
}

/// The result of a custom method, or the error code.
async fn repeated(gateway: &TestGateway, who: (&str, &str)) -> Value {
    let mut client = TestClient::with(Era::Modern, gateway.address, &[who]).await.unwrap();
    let answer = client.ask("x/repeat", json!({ "a": 1 })).await;
    match &answer["result"]["said"] {
        Value::Null => answer["error"]["code"].clone(),
        said => said.clone(),
    }
}

/// No rule applies to custom methods, so any limit excludes them.
#[tokio::test]
async fn custom_methods_require_an_unrestricted_scope() {
    let options = || GatewayOptions { tokens: tokens(), ..GatewayOptions::default() };
    let gateway = TestGateway::with(&servers("read-write"), options()).await;
    let said = repeated(&gateway, ANN).await;
    assert_eq!(said["a"], 1);
    assert_eq!(said["_meta"]["progressToken"], Value::Null, "no progress is requested: {said}");
    assert_eq!(repeated(&gateway, BOB).await, -32_601);
    gateway.end().await;
    let gateway = TestGateway::with(&servers("read-only"), options()).await;
    assert_eq!(repeated(&gateway, ANN).await, -32_601);
    gateway.end().await;
    let mut two = servers("read-write");
    two["other"] = json!({ "command": "/nowhere" });
    let gateway = TestGateway::with(&two, options()).await;
    assert_eq!(repeated(&gateway, ANN).await, -32_601, "also if the other one is down");
    gateway.end().await;
}

/// A duplicate name could be read differently by us and by the server.
#[tokio::test]
async fn a_name_that_is_there_twice_calls_nothing() {
    let gateway = TestGateway::to(&json!({ "echoing": echoing("modern") })).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    for double in ["name", "Name", "NAME"] {
        let params = json!({ "name": "echo", "arguments": { "token": "x" } });
        let mut written = client.write("tools/call", params);
        let body = format!(r#""{double}":"hung","name":"echo""#);
        written.body = written.body.replace(r#""name":"echo""#, &body);
        let (_, messages) = client.exchange(&written).await.unwrap();
        assert_eq!(messages[0]["error"]["code"], -32_602, "{messages:?}");
        let message = messages[0]["error"]["message"].as_str().unwrap();
        assert!(message.contains("`name` is there more than once"), "{message}");
    }
    gateway.end().await;
}

#[tokio::test]
async fn unauthenticated_body_is_not_read() {
    let options = GatewayOptions { tokens: tokens(), ..GatewayOptions::default() };
    let gateway = TestGateway::with(&servers("read-only"), options).await;
    let mut channel = Channel::to(gateway.address).await.unwrap();
    // The body is never sent.
    let sent = Sent::post(&[("Content-Length", "15000000")], "{");
    let head = timeout(LONGEST, channel.send(&sent)).await.expect("an answer in time").unwrap();
    assert_eq!(head.status, 401);
    let mut channel = Channel::to(gateway.address).await.unwrap();
    let long = "x".repeat(300_000);
    let head = channel.send(&Sent::post(&[("X-Long", &long)], "{}")).await.unwrap();
    assert_eq!(head.status, 431, "headers have a bound");
    gateway.end().await;
}

/// Browsers send a preflight request without a token, and expose only the allowed headers.
#[tokio::test]
async fn a_page_that_is_allowed_can_ask() {
    let origins = vec!["https://app.example".to_owned()];
    let options = GatewayOptions { tokens: tokens(), origins, ..GatewayOptions::default() };
    let gateway = TestGateway::with(&servers("read-only"), options).await;
    let mut channel = Channel::to(gateway.address).await.unwrap();
    let page = ("Origin", "https://app.example");
    let wanted = ("Access-Control-Request-Headers", "authorization,mcp-method");
    let asks = Sent { method: "OPTIONS", path: "/mcp", headers: &[page, wanted], body: "" };
    let (head, _) = channel.messages(&asks).await.unwrap();
    assert_eq!(head.status, 204);
    assert_eq!(head.get("access-control-allow-origin"), Some(page.1));
    assert_eq!(head.get("access-control-allow-headers"), Some(wanted.1));
    let mut client = TestClient::with(Era::Legacy, gateway.address, &[ANN, page]).await.unwrap();
    let written = client.write("ping", json!({}));
    let (head, _) = client.exchange(&written).await.unwrap();
    assert_eq!((head.status, head.get("access-control-allow-origin")), (200, Some(page.1)));
    assert!(head.get("access-control-expose-headers").unwrap().contains("mcp-session-id"));
    // Other origins get no such headers.
    let other = Sent { headers: &[("Origin", "https://other.example"), wanted], ..asks };
    let mut channel = Channel::to(gateway.address).await.unwrap();
    let (head, _) = channel.messages(&other).await.unwrap();
    assert_eq!((head.status, head.get("access-control-allow-origin")), (403, None));
    gateway.end().await;
}

#[tokio::test]
async fn sessions_of_other_principals_are_not_evicted() {
    let limits = Limits { sessions: 4, ..Limits::default() };
    let options = GatewayOptions { tokens: tokens(), limits, ..GatewayOptions::default() };
    let gateway = TestGateway::with(&servers("read-only"), options).await;
    let mut ann = TestClient::with(Era::Legacy, gateway.address, &[ANN]).await.unwrap();
    let mut bobs = Vec::new();
    for _ in 0..9 {
        bobs.push(TestClient::with(Era::Legacy, gateway.address, &[BOB]).await.unwrap());
    }
    assert_eq!(text(&ann.call("echo", json!({ "token": "mine" })).await), "mine");
    let mut another = TestClient::with(Era::Legacy, gateway.address, &[ANN]).await.unwrap();
    assert_eq!(text(&another.call("echo", json!({ "token": "mine too" })).await), "mine too");
    let written = bobs[0].write("ping", json!({}));
    assert_eq!(bobs[0].begin(&written).await.unwrap().status, 404, "his oldest is over");
    gateway.end().await;
}

/// A tool may require arguments in headers, also for the call that starts its server.
#[tokio::test]
async fn the_first_call_is_held_against_its_headers_as_well() {
    let gateway = TestGateway::to(&json!({ "echoing": echoing("modern") })).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let call = json!({ "name": "regional", "arguments": { "region": "eu" } });
    for _ in 0..2 {
        let written = client.write("tools/call", call.clone());
        let (head, messages) = client.exchange(&written).await.unwrap();
        let code = &messages[0]["error"]["code"];
        assert_eq!((head.status, code), (400, &json!(-32_020)), "{messages:?}");
    }
    let mut written = client.write("tools/call", call);
    written.headers.push(("Mcp-Param-Region".to_owned(), "eu".to_owned()));
    let (_, messages) = client.exchange(&written).await.unwrap();
    assert_eq!(text(&messages[0]), "eu");
    gateway.end().await;
}
