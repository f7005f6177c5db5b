//! Third-party MCP clients with the demo servers, over HTTP.

use serde_json::{Value, json};
use tokio::process::Command;
use trunkline::config;
use trunkline_gateway::demo::DemoServer::{self, Numbers, Words};
use trunkline_testkit::peers;

use crate::support::demo_server::{MODERN, listen};
use crate::support::gateway::TestGateway;

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

/// BUN-3: the SDKs find, describe and call a tool in meta mode, in both eras.
#[tokio::test]
async fn official_sdks_search_describe_and_call_in_meta_mode() {
    let url = format!("http://{}/mcp", listen(Words).await);
    let server = json!({ "words": { "type": "http", "url": url } });
    let written = json!({ "mode": "meta", "mcpServers": server }).to_string();
    let gateway = TestGateway::of(config::parse("test", written).config).await;
    let calls = [
        ("trunkline_search", r#"{"queries":["count words"]}"#),
        ("trunkline_describe", r#"{"names":["words_count_words"]}"#),
        ("trunkline_call", r#"{"name":"words_count_words","arguments":{"text":"a b"}}"#),
    ];
    let python = || peers::python_client("list_and_call.py");
    for (client, era) in [("typescript", None), ("python", None), ("python", Some("legacy"))] {
        let mut results = Vec::new();
        for (tool, arguments) in calls {
            let mut command = match client {
                "typescript" => peers::node_client("list_and_call.mjs"),
                _ => python(),
            };
            command.arg(gateway.url()).args([tool, arguments]).args(era);
            let report: Value = serde_json::from_str(&peers::run(command).await).unwrap();
            assert_eq!(report["tools"].as_array().unwrap().len(), 4, "{report}");
            results.push(report["result"].clone());
        }
        let text = |index: usize| results[index]["content"][0]["text"].as_str().unwrap();
        assert!(text(0).starts_with("words_count_words(text: string): "), "{results:?}");
        assert!(text(1).contains(r#""name":"words_count_words""#), "{results:?}");
        assert_eq!(results[2]["structuredContent"]["words"], 2, "{client}: {results:?}");
    }
    gateway.end().await;
}
