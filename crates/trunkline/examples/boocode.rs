//! A host with a tool registry of its own, as BooCode has: every tool is a description and a closure,
//! the tools of MCP servers are appended to them, and afterwards nobody can tell the difference.
//!
//! `cargo run --example boocode`

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Value, json};
use trunkline::call::CallOptions;
use trunkline::config::{self, Access, NoReferences, Restart};
use trunkline::connection::{ChildOptions, HttpOptions, Options};
use trunkline::host::{Host, HostOptions, Patience};
use trunkline::item::Kind;
use trunkline::message::Raw;
use trunkline::policy::Who;
use trunkline_gateway::demo::DemoServer;

/// What a tool gives back: a text for the model, and whether it is about a failure.
struct ToolOutput {
    error: bool,
    output: String,
}

type Executing = Pin<Box<dyn Future<Output = ToolOutput> + Send>>;

/// A tool of the host, wherever it comes from.
struct ToolDefinition {
    describe: Box<dyn Fn() -> Value + Send + Sync>,
    execute: Box<dyn Fn(Value) -> Executing + Send + Sync>,
}

/// All tools, sorted by their names.
type Registry = BTreeMap<String, ToolDefinition>;

/// What the host can do itself.
fn native_tools() -> Registry {
    let describe = || json!({ "name": "words_shout", "description": "Ours, and it stays ours." });
    let execute = |_| -> Executing {
        Box::pin(async { ToolOutput { error: false, output: "native".to_owned() } })
    };
    let tool = ToolDefinition { describe: Box::new(describe), execute: Box::new(execute) };
    Registry::from([("words_shout".to_owned(), tool)])
}

/// Appends every tool that a caller may see. Called once, after the servers were asked.
fn append_mcp_tools(registry: &mut Registry, host: &Arc<Host>) -> Result<(), Box<dyn Error>> {
    let view = Arc::new(host.view(Who::default())?);
    let listed = view.list(Kind::Tool, host.describes());
    for (entry, definition) in view.entries(Kind::Tool).zip(listed) {
        let name = entry.exposed().to_owned();
        let (host, view, called) = (Arc::clone(host), Arc::clone(&view), name.clone());
        let execute = move |arguments: Value| -> Executing {
            let (host, view, name) = (Arc::clone(&host), Arc::clone(&view), called.clone());
            Box::pin(async move {
                let arguments = Raw::from_value(&arguments);
                match host.call(&view, &name, arguments, CallOptions::default()).await {
                    Ok(outcome) => ToolOutput { error: outcome.is_error, output: outcome.text() },
                    // The model reads it and tries something else.
                    Err(error) => ToolOutput { error: true, output: error.text_for_model() },
                }
            })
        };
        let describe = Box::new(move || definition.to_value());
        registry.insert(name, ToolDefinition { describe, execute: Box::new(execute) });
    }
    Ok(())
}

/// Runs the example, and checks that it does what it says.
pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let server = tokio::spawn(DemoServer::Words.listen(listener));

    let mut registry = native_tools();
    let text = json!({ "mcpServers": {
        "words": { "type": "streamableHttp", "url": url },
        "broken": { "type": "stdio", "command": "no-such-program" },
    } });
    let loaded = config::parse("/data/mcp.json", text.to_string());
    let child = ChildOptions::from_environment(std::env::vars_os());
    let connections = Options::new(Arc::new(NoReferences), child, HttpOptions::default());
    // Names that are taken are never given to a tool of a server.
    let reserved: BTreeSet<Box<str>> = registry.keys().map(|name| name.as_str().into()).collect();
    // No configuration has a write flag, and what ends stays down.
    let options = HostOptions {
        reserved,
        max_access: Access::ReadOnly,
        restart: Some(Restart::Never),
        ..HostOptions::new(connections)
    };
    let host = Arc::new(Host::start(loaded.config, BTreeMap::new(), options));

    // One server that fails is a warning, not the end.
    let warnings = host.gather(&[Kind::Tool], Patience::UntilAllAreReady).await;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    append_mcp_tools(&mut registry, &host)?;

    let names: Vec<_> = registry.keys().map(String::as_str).collect();
    // `remember` declares that it writes, and this host is read-only.
    assert!(names.contains(&"words_count_words") && !names.contains(&"words_remember"));
    assert_eq!(names.iter().filter(|name| name.starts_with("words_shout")).count(), 2);
    let describe = &registry["words_count_words"].describe;
    assert!(describe()["description"].as_str().is_some_and(|it| it.starts_with("[words] ")));

    let native = (registry["words_shout"].execute)(json!({})).await;
    assert_eq!(native.output, "native");
    let counted = (registry["words_count_words"].execute)(json!({ "text": "one two" })).await;
    assert!(!counted.error && counted.output.contains("\"words\":2"), "{}", counted.output);
    let mistaken = (registry["words_count_words"].execute)(json!({})).await;
    assert!(mistaken.error);

    host.shutdown().await;
    server.abort();
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}
