//! Our own library, against the server: each transport, each generation.

use std::env;
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use trunkline::config::{self, Resolver, Secret};
use trunkline::connection::{ChildOptions, HttpOptions, Options};
use trunkline::message::Raw;
use trunkline::registry::Registry;

use crate::listening::{Listening, PROGRAM};

/// What the library saw of a server.
#[derive(Debug, PartialEq)]
struct Seen {
    protocol: String,
    tools: usize,
    greeting: Value,
}

/// Nothing refers to anything here.
struct Nothing;

impl Resolver for Nothing {
    fn variable(&self, _: &str) -> Option<Secret> {
        None
    }

    fn file(&self, _: &Path) -> io::Result<Secret> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Connects to a server as configured, lists its tools and calls one.
async fn look_at(server: &Value) -> Seen {
    let text = json!({ "mcpServers": { "fixture": server } }).to_string();
    let loaded = config::parse("test", text);
    let child = ChildOptions::from_environment(env::vars_os());
    let options = Options::new(Arc::new(Nothing), child, HttpOptions::default());
    let registry = Registry::new(&loaded.config, &options);
    let failed = registry.connect_all().await;
    assert!(failed.is_empty(), "{failed:?}");
    let connection = registry.get("fixture").unwrap();
    let params = json!({ "name": "greet", "arguments": { "name": "Ada" } });
    let answer = connection.request("tools/call", Some(Raw::from_value(&params))).await;
    let result = answer.unwrap().unwrap().to_value();
    let status = connection.status();
    assert!(status.set_aside.is_empty(), "{:?}", status.set_aside);
    let protocol = status.protocol.unwrap().into();
    let tools = connection.tools().len();
    registry.close_all().await;
    Seen { protocol, tools, greeting: result["content"][0]["text"].clone() }
}

async fn look_at_both_transports(generation: &str, protocol: &str) {
    let expected =
        Seen { protocol: protocol.to_owned(), tools: 37, greeting: json!("Hello, Ada!") };
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
