//! A client manager around a loop, as Codex ToolLoop has: servers are reached when they are needed, a
//! model names tools until it is done, and `close_all` ends everything at the end of a run.
//!
//! `cargo run --example toolloop`

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use serde_json::{Value, json};
use trunkline::call::CallOptions;
use trunkline::config::{self, NoReferences};
use trunkline::connection::{ChildOptions, HttpOptions, Options, State};
use trunkline::host::{Host, HostOptions, Patience};
use trunkline::item::Kind;
use trunkline::message::Raw;
use trunkline::policy::Who;
use trunkline::view::View;
use trunkline_gateway::demo::DemoServer;

/// The clients of one run.
struct ClientManager {
    host: Host,
}

impl ClientManager {
    /// Takes a configuration. Nothing is reached before somebody needs it.
    fn new(text: &str) -> Self {
        let loaded = config::parse("codex-toolloop.mcp.json", text);
        let child = ChildOptions::from_environment(std::env::vars_os());
        let connections = Options::new(Arc::new(NoReferences), child, HttpOptions::default());
        let host = Host::start(loaded.config, BTreeMap::new(), HostOptions::new(connections));
        Self { host }
    }

    /// The tools of some bundles. Lists that are known and fresh are not asked for again.
    async fn tools(&self, bundles: &[&str]) -> Result<View, Box<dyn Error>> {
        if let Some(failure) = self.host.gather(&[Kind::Tool], Patience::Grace).await.pop() {
            return Err(failure.into());
        }
        Ok(self.host.view(Who { bundles, ..Who::default() })?)
    }

    /// Executes a call of a model. Whatever goes wrong is something for the model to read.
    async fn execute(&self, tools: &View, call: &ToolCall) -> String {
        // Arguments are checked here, so that a mistake costs no round trip.
        let options = CallOptions { checks_arguments: true, ..CallOptions::default() };
        let arguments = Raw::from_value(&call.arguments);
        match self.host.call(tools, &call.name, arguments, options).await {
            Ok(outcome) => outcome.text(),
            Err(error) => format!("error: {error}"),
        }
    }

    /// Ends every client.
    async fn close_all(&self) {
        self.host.shutdown().await;
    }
}

/// What a model wants to have called.
struct ToolCall {
    name: String,
    arguments: Value,
}

/// A model that has learnt its part by heart.
struct ScriptedModel {
    calls: std::vec::IntoIter<(&'static str, Value)>,
}

impl ScriptedModel {
    fn next(&mut self, tools: &[Raw], _so_far: &[String]) -> Option<ToolCall> {
        assert!(!tools.is_empty(), "a model needs something to choose from");
        self.calls.next().map(|(name, arguments)| ToolCall { name: name.to_owned(), arguments })
    }
}

/// Runs the example, and checks that it does what it says.
pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let server = tokio::spawn(DemoServer::Numbers.listen(listener));

    let transport = json!({ "type": "http", "url": url });
    let text = json!({
        "servers": { "numbers": { "trust": "untrusted", "transport": transport } },
        "bundles": { "sums": { "serverId": "numbers", "mode": "direct", "allowTools": ["add"] } },
    });
    let manager = ClientManager::new(&text.to_string());
    let connection = manager.host.servers().get("numbers").ok_or("it is configured")?;
    assert_eq!(connection.status().state, State::Idle);

    let tools = manager.tools(&["sums"]).await?;
    let listed = tools.list(Kind::Tool, manager.host.describes());
    let script = vec![
        ("numbers_add", json!({ "a": 40, "b": 2 })),
        ("numbers_add", json!({ "a": "forty" })),
        ("numbers_roll", json!({})),
    ];
    let mut model = ScriptedModel { calls: script.into_iter() };
    let mut transcript = Vec::new();
    while let Some(call) = model.next(&listed, &transcript) {
        transcript.push(manager.execute(&tools, &call).await);
    }

    assert_eq!((listed.len(), transcript.len()), (1, 3));
    // What an untrusted server says is marked as that.
    assert!(transcript[0].contains("untrusted") && transcript[0].contains("42"));
    assert!(transcript[1].starts_with("error: "), "{}", transcript[1]);
    assert!(transcript[2].starts_with("error: there is no tool `numbers_roll`"));

    manager.close_all().await;
    assert_eq!(connection.status().state, State::Stopped);
    server.abort();
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}
