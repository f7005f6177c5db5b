//! Third-party MCP clients with the demo servers, over HTTP.

use serde_json::{Value, json};
use tokio::process::Command;
use trunkline_gateway::demo::DemoServer::{self, Numbers, Words};
use trunkline_testkit::peers;

use crate::support::demo_server::{MODERN, listen};

/// The report of a client after it has listed the tools of a server and called one.
async fn report(server: DemoServer, mut client: Command, call: [&str; 2], more: &[&str]) -> Value {
    let address = listen(server).await;
    client.arg(format!("http://{address}/mcp")).args(call).args(more);
    serde_json::from_str(&peers::run(client).await).unwrap()
}

const COUNT_WORDS: [&str; 2] = ["count_words", r#"{"text":"three small words"}"#];
const CONVERT: [&str; 2] = ["convert", r#"{"celsius":37}"#];

#[tokio::test]
async fn the_typescript_sdk_opens_with_initialize_and_calls_a_tool() {
    let client = peers::node_client("list_and_call.mjs");
    let report = report(Words, client, COUNT_WORDS, &[]).await;
    assert_eq!(report["protocolVersion"], "2025-11-25");
    assert_eq!(report["server"], "trunkline-demo-words");
    assert_eq!(report["tools"], json!(["count_words", "shout", "remember"]));
    // The client has validated this against the output schema.
    assert_eq!(report["result"]["structuredContent"], json!({ "words": 3, "characters": 17 }));
}

#[tokio::test]
async fn the_python_sdk_discovers_the_server_and_calls_a_tool() {
    let client = peers::python_client("list_and_call.py");
    let report = report(Numbers, client, CONVERT, &[]).await;
    assert_eq!(report["protocolVersion"], MODERN);
    assert_eq!(report["server"], "trunkline-demo-numbers");
    assert_eq!(report["tools"], json!(["add", "roll", "convert"]));
    assert_eq!(report["result"]["structuredContent"]["fahrenheit"], 98.6);
}

#[tokio::test]
async fn the_python_sdk_can_open_with_initialize_too() {
    let client = peers::python_client("list_and_call.py");
    let report = report(Words, client, COUNT_WORDS, &["legacy"]).await;
    assert_eq!(report["protocolVersion"], "2025-11-25");
    assert_eq!(report["result"]["structuredContent"]["words"], 3);
}

#[tokio::test]
async fn arguments_that_do_not_fit_reach_the_caller_as_a_result() {
    let client = peers::python_client("list_and_call.py");
    let report = report(Words, client, ["shout", "{}"], &[]).await;
    assert_eq!(report["result"]["isError"], true);
}
