//! A host that registers tools and filters them per turn, as Dispatch does: `define_tool` for each tool
//! there is, a filter by agent and by the switches of a conversation for each list that is made.
//!
//! `cargo run --example dispatch`

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use serde_json::{Value, json};
use trunkline::call::CallOptions;
use trunkline::catalog::Entry;
use trunkline::config::{self, AgentFile, NoReferences};
use trunkline::connection::{ChildOptions, HttpOptions, Options};
use trunkline::host::{Host, HostOptions, Patience};
use trunkline::item::Kind;
use trunkline::message::Raw;
use trunkline::policy::{NoSuchCaller, Switch, Switches, Who};
use trunkline::view::View;
use trunkline_gateway::demo::DemoServer;

const AGENTS: &str = "\
---
name: Reader
tools: [*, !numbers_roll]
---
You read, and you do not gamble.
---
name: Accountant
tools: [numbers_*]
---
You add.
";

/// What Dispatch knows about a tool.
struct ToolContract {
    description: String,
    parameters: Value,
}

/// The extension that brings tools of MCP servers into Dispatch.
struct Extension {
    host: Host,
    contracts: BTreeMap<String, ToolContract>,
}

impl Extension {
    /// Defines every tool that exists, whoever may see it.
    fn define_tools(&mut self) -> Result<(), NoSuchCaller> {
        let all = self.host.view(Who::default())?;
        self.contracts.clear();
        for definition in all.list(Kind::Tool, self.host.describes()) {
            let definition = definition.to_value();
            let text = |key: &str| definition[key].as_str().unwrap_or_default().to_owned();
            let parameters = definition["inputSchema"].clone();
            let contract = ToolContract { description: text("description"), parameters };
            self.contracts.insert(text("name"), contract);
        }
        Ok(())
    }

    /// What one turn of a conversation may use.
    fn tools_filter(&self, agent: &str, switches: &Switches) -> Result<View, NoSuchCaller> {
        self.host.view(Who { agent: Some(agent), switches: switches.clone(), ..Who::default() })
    }
}

fn names(view: &View) -> Vec<&str> {
    view.entries(Kind::Tool).map(Entry::exposed).collect()
}

/// Runs the example, and checks that it does what it says.
pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let mut servers = BTreeMap::new();
    let mut tasks = tokio::task::JoinSet::new();
    for server in DemoServer::ALL {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/mcp", listener.local_addr()?);
        servers.insert(server.name(), json!({ "type": "http", "url": url }));
        tasks.spawn(server.listen(listener));
    }
    let text = json!({ "mcpServers": servers });
    let loaded = config::parse(".dispatch/mcp.json", text.to_string());
    let agents = config::parse_agents("AGENTS.md", AGENTS, AgentFile::Several);
    assert!(agents.diagnostics.is_empty(), "{:?}", agents.diagnostics);
    let child = ChildOptions::from_environment(std::env::vars_os());
    let connections = Options::new(Arc::new(NoReferences), child, HttpOptions::default());
    let host = Host::start(loaded.config, agents.agents, HostOptions::new(connections));
    let mut extension = Extension { host, contracts: BTreeMap::new() };

    let failures = extension.host.gather(&[Kind::Tool], Patience::UntilAllAreReady).await;
    assert!(failures.is_empty(), "{failures:?}");
    extension.define_tools()?;
    let add = &extension.contracts["numbers_add"];
    assert!(add.description.starts_with("[numbers] ") && add.parameters.is_object());

    let mut switches = Switches::default();
    let reader = extension.tools_filter("Reader", &switches)?;
    assert!(names(&reader).contains(&"words_shout") && !names(&reader).contains(&"numbers_roll"));
    let accountant = extension.tools_filter("Accountant", &switches)?;
    assert!(names(&accountant).iter().all(|name| name.starts_with("numbers_")));

    let arguments = Raw::from_value(&json!({ "text": "hello" }));
    let called =
        extension.host.call(&reader, "words_shout", arguments.clone(), CallOptions::default());
    assert_eq!(called.await?.text(), "HELLO");

    // Somebody switches a server off in this conversation; others do not notice.
    let config = extension.host.config();
    switches.set(&config.server("words").ok_or("it is configured")?.name, Switch::Off);
    let later = extension.tools_filter("Reader", &switches)?;
    assert!(names(&later).iter().all(|name| name.starts_with("numbers_")));
    let refused = extension.host.call(&later, "words_shout", arguments, CallOptions::default());
    assert!(refused.await.is_err_and(|error| error.to_string().contains("there is no tool")));

    extension.host.shutdown().await;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}
