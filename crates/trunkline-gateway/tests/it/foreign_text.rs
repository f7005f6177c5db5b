//! Names and URIs from clients with any characters, over both transports.

use serde_json::{Value, json};
use trunkline_gateway::demo::DemoServer;

use crate::support::client::{Era, TestClient};
use crate::support::demo_server::{legacy, listen};
use crate::support::gateway::TestGateway;
use crate::support::stdio_client::StdioTestClient;

/// Two servers with prefixes of different lengths.
async fn servers() -> Value {
    let words = listen(DemoServer::Words).await;
    let numbers = listen(DemoServer::Numbers).await;
    let at = |address| json!({ "type": "http", "url": format!("http://{address}/mcp") });
    json!({ "docs": at(words), "numbers": at(numbers) })
}

/// Names with a character of two to four bytes at every offset near a prefix.
fn names() -> Vec<String> {
    let mut names = Vec::new();
    for character in ['ö', '\u{2028}', '😀'] {
        for before in 0..10 {
            names.push(format!("{}{character}_echo", "d".repeat(before)));
        }
    }
    names
}

fn requests(name: &str) -> [(&'static str, Value); 4] {
    let completion = json!({ "ref": { "type": "ref/prompt", "name": name }, "argument": { "name": name, "value": name } });
    [
        ("tools/call", json!({ "name": name, "arguments": {} })),
        ("prompts/get", json!({ "name": name })),
        ("resources/read", json!({ "uri": name })),
        ("completion/complete", completion),
    ]
}

/// Whether a response is an error for an unknown item.
fn is_refusal(answer: &Value) -> bool {
    [-32_602, -32_002].contains(&answer["error"]["code"].as_i64().unwrap_or(0))
}

#[tokio::test]
async fn requests_with_names_of_any_characters_are_answered_over_http() {
    let gateway = TestGateway::to(&servers().await).await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    for name in names() {
        for (method, params) in requests(&name) {
            let answer = client.ask(method, params).await;
            assert!(is_refusal(&answer), "{method} {name}: {answer}");
        }
    }
    gateway.end().await;
}

#[tokio::test]
async fn requests_with_names_of_any_characters_are_answered_over_a_stream() {
    let mut client = StdioTestClient::to(&servers().await).await;
    client.open().await;
    for name in names() {
        for (method, params) in requests(&name) {
            client.write(&legacy(method, &params)).await;
            let answer = client.read().await;
            assert!(is_refusal(&answer), "{method} {name}: {answer}");
        }
    }
    client.end().await;
}

/// No item has so long a name: it is refused before any work is done on it, and not quoted.
#[tokio::test]
async fn names_and_addresses_of_megabytes_are_refused_unread() {
    let gateway = TestGateway::to(&servers().await).await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let long = format!("x://{}", "%25".repeat(512 * 1024));
    let subscription = ("resources/subscribe", json!({ "uri": long }));
    for (method, params) in requests(&long).into_iter().chain([subscription]) {
        let answer = client.ask(method, params).await;
        assert_eq!(answer["error"]["code"], -32_602, "{method}");
        let text = answer.to_string();
        assert!(text.len() < 1024 && text.contains("is longer than 16384 bytes"), "{method}");
    }
    gateway.end().await;
}
