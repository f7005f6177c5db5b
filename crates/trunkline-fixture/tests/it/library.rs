//! The `trunkline` library with the fixture server, over each transport and in each era.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use trunkline::config::{self, EmptyResolver};
use trunkline::connection::{
    CallHandler, ChildOptions, ConnectionOptions, HandlerFuture, HttpOptions, OutgoingRequest,
    ServerRequest,
};
use trunkline::message::Raw;
use trunkline::registry::Registry;

use crate::support::http_fixture::{Listening, PROGRAM};

/// The observations of the library.
#[derive(Debug, PartialEq)]
struct Seen {
    protocol: String,
    tools: usize,
    greeting: Value,
}

/// Connects to a configured server, lists its tools and calls one.
async fn look_at(server: &Value) -> Seen {
    let text = json!({ "mcpServers": { "fixture": server } }).to_string();
    let loaded = config::parse("test", text);
    let child = ChildOptions::from_environment(env::vars_os());
    let options = ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default());
    let servers = Registry::new(options).open(&loaded.config);
    let failed = servers.connect_all().await;
    assert!(failed.is_empty(), "{failed:?}");
    let connection = servers.get("fixture").unwrap();
    let params = json!({ "name": "greet", "arguments": { "name": "Ada" } });
    let answer = connection.request("tools/call", Some(Raw::from_value(&params))).await;
    let result = answer.unwrap().to_value();
    let status = connection.status();
    assert!(status.set_aside.is_empty(), "{:?}", status.set_aside);
    let protocol = status.protocol.unwrap().into();
    let tools = connection.tools().len();
    servers.close().await;
    Seen { protocol, tools, greeting: result["content"][0]["text"].clone() }
}

async fn look_at_both_transports(generation: &str, protocol: &str) {
    let expected =
        Seen { protocol: protocol.to_owned(), tools: 39, greeting: json!("Hello, Ada!") };
    let process = json!({ "command": PROGRAM, "args": ["stdio", "--generation", generation] });
    assert_eq!(look_at(&process).await, expected, "stdio");
    let listening = Listening::new(generation);
    assert_eq!(look_at(&json!({ "url": listening.url })).await, expected, "http");
}

#[tokio::test]
async fn a_legacy_server_is_reached_in_the_older_generation() {
    look_at_both_transports("legacy", "2025-11-25").await;
}

#[tokio::test]
async fn a_modern_server_is_reached_in_the_newer_generation() {
    look_at_both_transports("modern", "2026-07-28").await;
}

#[tokio::test]
async fn a_server_of_both_generations_is_reached_in_the_newer_one() {
    look_at_both_transports("both", "2026-07-28").await;
}

/// Calls a tool that sends server requests, over HTTP in an era, and returns the text of its
/// result.
async fn converse(generation: &str, tool: &str, arguments: Value) -> String {
    let listening = Listening::new(generation);
    let text = json!({ "mcpServers": { "fixture": { "url": listening.url } } }).to_string();
    let loaded = config::parse("test", text);
    let capabilities = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
    let options = ConnectionOptions::new(
        Arc::new(EmptyResolver),
        ChildOptions::default(),
        HttpOptions::default(),
    )
    .with_capabilities(Raw::from_value(&capabilities));
    let servers = Registry::new(options).open(&loaded.config);
    let connection = servers.get("fixture").unwrap();
    let params = json!({ "name": tool, "arguments": arguments });
    let ask = OutgoingRequest::new("tools/call", Some(Raw::from_value(&params)));
    let result = connection.request_with(ask, &Agreeable).await.unwrap();
    servers.close().await;
    result.to_value()["content"][0]["text"].as_str().unwrap().to_owned()
}

/// A handler that accepts everything.
struct Agreeable;

impl CallHandler for Agreeable {
    fn on_server_request(&self, question: ServerRequest) -> HandlerFuture<'_> {
        let answer = match &*question.method {
            "elicitation/create" => json!({ "action": "accept", "content": { "name": "Ada" } }),
            "roots/list" => json!({ "roots": [{ "uri": "file:///here" }] }),
            _ => json!({ "role": "assistant", "model": "none",
                "content": { "type": "text", "text": "Paris" } }),
        };
        Box::pin(async move { Ok(Raw::from_value(&answer)) })
    }
}

#[tokio::test]
async fn arguments_that_a_server_wants_in_headers_are_there() {
    for region in ["eu", "Süden ", ""] {
        let arguments = json!({ "region": region, "priority": 7, "query": "x" });
        let text = converse("modern", "test_custom_header", arguments).await;
        assert!(text.contains(region), "{text}");
    }
}

#[tokio::test]
async fn a_stream_that_the_server_closes_is_resumed() {
    let text = converse("legacy", "test_reconnection", json!({})).await;
    assert!(!text.is_empty());
}

#[tokio::test]
async fn questions_are_answered_in_both_generations() {
    for generation in ["legacy", "modern"] {
        for tool in [
            "test_input_required_result_elicitation",
            "test_input_required_result_sampling",
            "test_input_required_result_list_roots",
            "test_input_required_result_multiple_inputs",
            "test_input_required_result_multi_round",
        ] {
            let text = converse(generation, tool, json!({})).await;
            assert!(!text.is_empty(), "{generation} {tool}");
        }
    }
}

/// Subscribes to a resource, and temporarily to another one, and receives an update.
async fn watch(server: &Value) {
    let text = json!({ "mcpServers": { "fixture": server } }).to_string();
    let loaded = config::parse("test", text);
    let child = ChildOptions::from_environment(env::vars_os());
    let options = ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default());
    let servers = Registry::new(options).open(&loaded.config);
    let connection = servers.get("fixture").unwrap();
    let mut notifications = connection.notifications();
    let watching = connection.subscribe("test://watched-resource").await.unwrap();
    let other = connection.subscribe("test://static-text").await.unwrap();
    drop(other);
    for _ in 0..3 {
        let trigger = json!({ "name": "test_trigger_resource_update", "arguments": {} });
        let answer = connection.request("tools/call", Some(Raw::from_value(&trigger))).await;
        answer.unwrap();
        let updated = async {
            while &*notifications.recv().await.unwrap().notification.method
                != "notifications/resources/updated"
            {}
        };
        tokio::time::timeout(Duration::from_secs(60), updated).await.unwrap();
    }
    drop(watching);
    assert_eq!(connection.status().noise, 0);
    servers.close().await;
}

#[tokio::test]
async fn a_resource_is_watched_over_each_transport_in_each_generation() {
    for generation in ["legacy", "modern"] {
        watch(&json!({ "command": PROGRAM, "args": ["stdio", "--generation", generation] })).await;
        let listening = Listening::new(generation);
        watch(&json!({ "url": listening.url })).await;
    }
}
