//! Notifications that a client sends.

use serde_json::json;

use super::client::{Era, TestClient, borrowed};
use super::http_connection::{Channel, Sent};

/// A notification in the form of the client's era, with its headers.
pub(crate) fn told(client: &TestClient, method: &str) -> (Vec<(String, String)>, String) {
    let mut headers = client.headers();
    let mut params = json!({ "n": 1 });
    if client.era == Era::Modern {
        headers.push(("Mcp-Method".to_owned(), method.to_owned()));
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": crate::support::demo_server::MODERN,
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        });
    }
    let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    (headers, message.to_string())
}

/// Tells the gateway something.
pub(crate) async fn tell(client: &TestClient, method: &str) {
    let (headers, body) = told(client, method);
    let mut channel = Channel::to(client.address).await.unwrap();
    let headers = borrowed(&headers);
    assert_eq!(channel.send(&Sent::post(&headers, &body)).await.unwrap().status, 202);
}
