//! BooCode: one registry for native tools and those of MCP servers. A variable names the
//! configuration file, agents select tools by patterns, and writing tools are never offered,
//! regardless of the file.
//!
//! `cargo run --example boocode`

mod support;

use std::collections::BTreeMap;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use trunkline::call::CallOptions;
use trunkline::config::{
    self, Access, Agent, AgentFile, EmptyResolver, LoadOptions, Restart, SearchPath,
};
use trunkline::connection::{ChildOptions, ConnectionOptions, HttpOptions, State};
use trunkline::host::{Host, HostOptions, WaitFor};
use trunkline::item::ItemKind;
use trunkline::message::Raw;
use trunkline::policy::CallerSpec;
use trunkline_gateway::demo::DemoServer;

use support::{Folder, Machine, Outcome, is_running, serve_if_asked, signal, stdio_entry, until};

const AGENTS: &str = "\
---
name: Architect
tools: [view_file, numbers_*, !numbers_roll]
---
You design.
---
name: Scribe
tools: [words_*]
---
You write.
";

/// The output of a tool: a text for the model, and whether it reports a failure.
struct ToolOutput {
    error: bool,
    output: String,
}

type Execution = Pin<Box<dyn Future<Output = ToolOutput> + Send>>;

/// A tool of the host, native or of a server.
struct ToolDef {
    description: String,
    /// The arguments, as the model is told.
    json_schema: Value,
    execute: Box<dyn Fn(Value) -> Execution + Send + Sync>,
}

/// One entry of `getMcpServers()`.
#[derive(Debug)]
struct McpServerStatus {
    name: String,
    state: Option<State>,
    tools: usize,
    error: Option<String>,
}

struct BooCode {
    host: Host,
    /// Sorted by name.
    all_tools: BTreeMap<String, ToolDef>,
}

fn native_tools() -> BTreeMap<String, ToolDef> {
    let execute = |_| -> Execution {
        Box::pin(async { ToolOutput { error: false, output: "fn main() {}".to_owned() } })
    };
    let view_file = ToolDef {
        description: "Shows a file.".to_owned(),
        json_schema: json!({ "type": "object", "properties": { "path": { "type": "string" } } }),
        execute: Box::new(execute),
    };
    BTreeMap::from([("view_file".to_owned(), view_file)])
}

impl BooCode {
    /// Reads the file named by `MCP_CONFIG_PATH`, else `/data/mcp.json`. Without a file there is no
    /// MCP; a server that does not start is a warning.
    async fn start(
        machine: &Machine,
        agents: BTreeMap<trunkline::name::AgentName, Agent>,
    ) -> Result<(Self, Vec<String>), Box<dyn Error>> {
        let places = SearchPath {
            path_variables: vec!["MCP_CONFIG_PATH".into()],
            fallbacks: vec!["/data/mcp.json".into()],
            ..SearchPath::default()
        };
        let loaded = config::load(machine, &LoadOptions { places, ..LoadOptions::default() });
        let child = ChildOptions::from_environment(std::env::vars_os());
        let connections =
            ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default());
        let mut all_tools = native_tools();
        let options = HostOptions {
            // The configuration cannot allow writing tools or restarts.
            max_access: Access::ReadOnly,
            restart: Some(Restart::Never),
            // A tool of a server never gets a reserved name.
            reserved: all_tools.keys().map(|name| name.as_str().into()).collect(),
            ..HostOptions::new(connections)
        };
        let host = Host::start(loaded.config, agents, options);
        let warnings = host.refresh(&[ItemKind::Tool], WaitFor::AllReady).await;
        append_mcp_tools(&mut all_tools, &host)?;
        let warnings = warnings.iter().map(ToString::to_string).collect();
        Ok((Self { host, all_tools }, warnings))
    }

    /// The tools of an agent, native ones and those of servers by the same patterns.
    fn tools_of(&self, agent: &Agent) -> Vec<&str> {
        let names = self.all_tools.keys().map(String::as_str);
        names.filter(|name| agent.includes(name)).collect()
    }

    async fn execute(&self, name: &str, arguments: Value) -> ToolOutput {
        (self.all_tools[name].execute)(arguments).await
    }

    fn get_mcp_servers(&self) -> Vec<McpServerStatus> {
        let config = self.host.config();
        let status = |server: &config::Server| {
            let status = self.host.servers().get(server.name.as_str()).map(|it| it.status());
            McpServerStatus {
                name: server.name.to_string(),
                state: status.as_ref().map(|status| status.state),
                tools: status.as_ref().map_or(0, |status| status.tools),
                error: status.and_then(|status| status.last_error).map(|error| error.to_string()),
            }
        };
        config.servers().map(status).collect()
    }
}

/// Adds the tools of all servers. Called once, after they were listed.
fn append_mcp_tools(tools: &mut BTreeMap<String, ToolDef>, host: &Host) -> Outcome {
    let view = Arc::new(host.view(CallerSpec::default())?);
    let listed = view.list(ItemKind::Tool, host.description_style());
    for (entry, definition) in view.entries(ItemKind::Tool).zip(listed) {
        let name = entry.exposed().to_owned();
        let (host, view, called) = (host.clone(), Arc::clone(&view), name.clone());
        let execute = move |arguments: Value| -> Execution {
            let (host, view, name) = (host.clone(), Arc::clone(&view), called.clone());
            Box::pin(async move {
                let arguments = Raw::from_value(&arguments);
                let called = host.call(&view, &name, arguments, CallOptions::default()).await;
                match called {
                    Ok(outcome) => ToolOutput { error: outcome.is_error, output: outcome.text() },
                    // The error of an unavailable server is a result that the model can read.
                    Err(error) => ToolOutput { error: true, output: error.text_for_model() },
                }
            })
        };
        let definition = definition.to_value();
        let description = definition["description"].as_str().unwrap_or_default().to_owned();
        // A schema of MCP is a JSON Schema already. The server checks arguments itself.
        let json_schema = definition["inputSchema"].clone();
        tools.insert(name, ToolDef { description, json_schema, execute: Box::new(execute) });
    }
    Ok(())
}

/// The configuration file, with a server that cannot start and a disabled one.
fn written(url: &str) -> Result<Value, Box<dyn Error>> {
    let stdio = |name: &str| {
        stdio_entry(name).map(|mut entry| {
            entry["type"] = json!("stdio");
            entry
        })
    };
    Ok(json!({ "mcpServers": {
        "codecontext": { "type": "stdio", "command": "codecontext", "enabled": false },
        "dummy": { "type": "stdio", "command": "/bin/cat", "timeouts": { "connect": "2s" } },
        "notes": stdio("words")?,
        "numbers": stdio("numbers")?,
        "words": { "type": "streamableHttp", "url": url, "access": "read-write" },
    } }))
}

/// A dead child process is not restarted, its tools report that, and the others still work.
async fn check_dead_child(boocode: &BooCode) -> Outcome {
    let numbers = boocode.host.servers().get("numbers").ok_or("it is configured")?;
    signal("-9", numbers.status().process_id.ok_or("it runs")?)?;
    until(|| numbers.status().state == State::Failed).await?;
    let dead = boocode.execute("numbers_add", json!({ "a": 40, "b": 2 })).await;
    assert!(dead.error && dead.output.starts_with("MCP server unreachable: "), "{}", dead.output);
    let shout = boocode.execute("words_shout", json!({ "text": "still here" })).await;
    assert_eq!(shout.output, "STILL HERE");

    let servers = boocode.get_mcp_servers();
    let states: Vec<_> = servers.iter().map(|it| (it.name.as_str(), it.state)).collect();
    let expected = [
        ("codecontext", None),
        ("dummy", Some(State::Failed)),
        ("notes", Some(State::Ready)),
        ("numbers", Some(State::Failed)),
        ("words", Some(State::Ready)),
    ];
    assert_eq!(states, expected);
    assert!(servers[4].tools > 0 && servers[3].error.is_some(), "{servers:?}");
    Ok(())
}

async fn run() -> Outcome {
    let folder = Folder::new("boocode-example")?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let remote = tokio::spawn(DemoServer::Words.listen(listener));
    let path = folder.write("mcp.json", &written(&url)?.to_string())?;
    let agents = config::parse_agents("AGENTS.md", AGENTS, AgentFile::Several);
    assert!(agents.diagnostics.is_empty(), "{:?}", agents.diagnostics);

    let machine = Machine { variables: BTreeMap::from([("MCP_CONFIG_PATH", path.into())]) };
    let (boocode, warnings) = BooCode::start(&machine, agents.agents.clone()).await?;
    assert!(warnings.len() == 1 && warnings[0].contains("dummy"), "{warnings:?}");
    let tools = &boocode.all_tools;
    let shout = &tools["words_shout"];
    assert!(shout.description.starts_with("[words] ") && !shout.description.ends_with('"'));
    assert_eq!(shout.json_schema["properties"]["text"]["type"], "string");
    assert!(tools.values().all(|tool| tool.json_schema["type"] == "object"));
    assert!(!tools.contains_key("words_remember"), "it writes, and no file can allow that");

    let agent = |name: &str| agents.agents.iter().find(|(it, _)| it.as_str() == name);
    let architect = boocode.tools_of(agent("Architect").ok_or("it is written")?.1);
    assert!(architect.contains(&"view_file") && architect.contains(&"numbers_add"));
    assert!(!architect.contains(&"numbers_roll") && !architect.contains(&"words_shout"));

    assert_eq!(boocode.execute("view_file", json!({})).await.output, "fn main() {}");
    let sum = boocode.execute("numbers_add", json!({ "a": 40, "b": 2 })).await;
    assert!(!sum.error && sum.output.contains("42"), "{}", sum.output);
    check_dead_child(&boocode).await?;

    let notes = boocode.host.servers().get("notes").ok_or("it is configured")?;
    let process = notes.status().process_id.ok_or("it runs")?;
    assert!(is_running(process)?);
    boocode.host.shutdown().await;
    assert!(!is_running(process)?, "no orphan");
    remote.abort();
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    if serve_if_asked().await? {
        return Ok(());
    }
    run().await
}
