//! Codex ToolLoop: a client manager around a loop. Configuration comes from overrides, two
//! variables or a discovered file; servers are connected when a bundle needs them, their lists are
//! cached for a while, and `close_all` shuts everything down at the end of a run. One bundle is in
//! meta mode: a model finds its tools by search.
//!
//! `cargo run --example toolloop`

mod support;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use trunkline::HostCaller;
use trunkline::auth::{AuthFuture, AuthProvider, CredentialRequest};
use trunkline::call::CallOptions;
use trunkline::config::{
    self, ColorStyle, DiscoveredFiles, EmptyResolver, LoadOptions, LoadedConfig, Overrides,
    SearchFile, SearchPath, SearchScope, Secret,
};
use trunkline::connection::{ChildOptions, ConnectionOptions, HttpOptions, State};
use trunkline::host::{Host, HostOptions, WaitFor};
use trunkline::item::ItemKind;
use trunkline::message::Raw;
use trunkline::meta::MetaTool;
use trunkline::policy::CallerSpec;
use trunkline::view::View;

use support::{Folder, Machine, Outcome, guarded_server, serve_if_asked, stdio_entry, until};

/// `loadMcpConfig({ overrides })` in a working directory.
fn load_mcp_config(machine: &Machine, folder: &Path, overrides: Option<Value>) -> LoadedConfig {
    let places = SearchPath {
        inline_variables: vec!["CODEX_TOOLLOOP_MCP_CONFIG_JSON".into()],
        path_variables: vec!["CODEX_TOOLLOOP_MCP_CONFIG_PATH".into()],
        candidates: vec![
            SearchFile::file("codex-toolloop.mcp.json"),
            SearchFile::file(".codex-toolloop/mcp.json"),
        ],
        walk: SearchScope::Up,
        fallbacks: Vec::new(),
    };
    let options = LoadOptions {
        places,
        overrides: overrides.map(Overrides::Value),
        working_directory: folder.to_owned(),
        discovered: DiscoveredFiles::Run,
        ..LoadOptions::default()
    };
    config::load(machine, &options)
}

/// `authProvidersById`: where credentials come from that are in no file.
type AuthProviders = BTreeMap<&'static str, Arc<dyn AuthProvider>>;

/// A vault whose value is replaced from time to time: the server refuses the old one.
struct Vault {
    values: [&'static str; 2],
}

impl AuthProvider for Vault {
    fn authorization<'a>(&'a self, request: CredentialRequest<'a>) -> AuthFuture<'a, Secret> {
        let [old, new] = self.values;
        let value = if request.rejected.is_some() { new } else { old };
        Box::pin(async move { Ok(Secret::new(value)) })
    }
}

/// The clients of one run.
struct McpClientManager {
    host: Host,
}

impl McpClientManager {
    /// Takes a configuration. Nothing is reached before a bundle needs it.
    fn new(loaded: LoadedConfig, auth_providers: AuthProviders) -> Self {
        let child = ChildOptions::from_environment(std::env::vars_os());
        let mut connections =
            ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default());
        for (id, provider) in auth_providers {
            connections = connections.with_auth_provider(id, provider);
        }
        let host = Host::start(loaded.config, BTreeMap::new(), HostOptions::new(connections));
        Self { host }
    }

    /// The tools of a bundle. Connects only its server, and reuses a fresh list.
    async fn tools(&self, bundle: &str) -> Result<View, Box<dyn Error>> {
        let config = self.host.config();
        let mut bundles = config.bundles();
        let (_, found) =
            bundles.find(|(name, _)| name.as_str() == bundle).ok_or("no such bundle")?;
        let servers = [found.server.clone()];
        let failures = self.host.refresh_servers(&servers, &[ItemKind::Tool], WaitFor::AllReady);
        if let Some(failure) = failures.await.pop() {
            return Err(failure.into());
        }
        Ok(self.host.view(CallerSpec { bundles: &[bundle], ..CallerSpec::default() })?)
    }

    /// Executes a call of a model. Errors become text for the model.
    async fn execute(&self, tools: &View, (name, arguments): &(&str, Value)) -> String {
        // Arguments are validated locally, so that a mistake costs no round trip.
        let options = CallOptions { checks_arguments: true, ..CallOptions::default() };
        match self.host.call(tools, name, Raw::from_value(arguments), options).await {
            Ok(outcome) => outcome.text(),
            Err(error) => format!("error: {error}"),
        }
    }

    /// The caller of a conversation with a bundle. It remembers which tools the model was shown.
    fn conversation(&self, bundle: &str) -> Result<HostCaller, Box<dyn Error>> {
        Ok(self.host.for_caller(CallerSpec { bundles: &[bundle], ..CallerSpec::default() })?)
    }

    fn state(&self, server: &str) -> Option<State> {
        self.host.servers().get(server).map(|connection| connection.status().state)
    }

    /// How often a server that says so was asked for its list.
    fn times_listed(&self, server: &str) -> usize {
        let connection = self.host.servers().get(server);
        let lines = connection.map(|it| it.status().stderr).unwrap_or_default();
        lines.iter().filter(|line| line.contains("listed")).count()
    }

    /// Ends the client of one server.
    async fn close(&self, server: &str) {
        if let Some(connection) = self.host.servers().get(server) {
            connection.close().await;
        }
    }

    /// Closes every client.
    async fn close_all(&self) {
        self.host.shutdown().await;
    }
}

fn names(view: &View) -> Vec<&str> {
    view.entries(ItemKind::Tool).map(trunkline::catalog::Entry::exposed).collect()
}

/// The configuration in the file and the variable.
fn written() -> Result<Value, Box<dyn Error>> {
    Ok(json!({
        "toolsTtlMs": 600_000,
        "servers": {
            "numbers": { "trust": "untrusted", "transport": stdio_transport("numbers")? },
            "words": { "trust": "trusted", "transport": stdio_transport("words")? },
        },
        "bundles": {
            "sums": { "serverId": "numbers", "mode": "direct", "allowTools": ["add"] },
            "texts": { "serverId": "words", "mode": "direct", "denyTools": ["remember"] },
            "library": { "serverId": "words", "mode": "meta" },
        },
    }))
}

fn stdio_transport(name: &str) -> Result<Value, Box<dyn Error>> {
    let mut transport = stdio_entry(name)?;
    transport["type"] = json!("stdio");
    Ok(transport)
}

/// Overrides take precedence over the inline variable, and that over the file in an ancestor
/// directory.
fn check_precedence(folder: &Folder) -> Outcome {
    folder.write("codex-toolloop.mcp.json", &written()?.to_string())?;
    folder.write("packages/app/package.json", "{}")?;
    let below = folder.path().join("packages/app");
    let found = load_mcp_config(&Machine::default(), &below, None);
    assert!(found.config.server("words").is_some() && !found.has_errors(false));

    let timeout = |seconds: u64| json!({ "timeouts": { "call": format!("{seconds}s") } });
    let call_timeout = |loaded: &LoadedConfig| {
        loaded.config.server("words").map(|it| it.behaviour.timeouts.call.as_secs())
    };
    let mut machine = Machine::default();
    let other = folder.write("elsewhere/custom.json", &written()?.to_string())?;
    machine.variables.insert("CODEX_TOOLLOOP_MCP_CONFIG_PATH", other.into());
    machine.variables.insert("CODEX_TOOLLOOP_MCP_CONFIG_JSON", timeout(7).to_string().into());
    let inline = load_mcp_config(&machine, &below, None);
    assert_eq!(call_timeout(&inline), Some(7), "{:?}", inline.diagnostics);
    let overridden = load_mcp_config(&machine, &below, Some(timeout(5)));
    assert_eq!(call_timeout(&overridden), Some(5));

    // An untrusted server without an allow-list, and with an empty one: both are said, with their place.
    for mistaken in
        [json!({ "serverId": "numbers" }), json!({ "serverId": "numbers", "allowTools": [] })]
    {
        let mistaken = json!({ "bundles": { "open": mistaken } });
        let mistaken = load_mcp_config(&Machine::default(), &below, Some(mistaken));
        let report: String =
            mistaken.diagnostics.iter().map(|it| it.render(ColorStyle::Plain)).collect();
        assert!(mistaken.has_errors(false) && report.contains("`open`"), "{report}");
    }
    Ok(())
}

/// A list is asked for again once it is older than `toolsTtlMs`, and not before.
async fn check_ttl() -> Outcome {
    let server = |ttl: u64| -> Result<Value, Box<dyn Error>> {
        let transport = stdio_transport("workshop")?;
        Ok(json!({ "trust": "trusted", "toolsTtlMs": ttl, "transport": transport }))
    };
    let config = json!({
        "servers": { "kept": server(600_000)?, "asked": server(1)? },
        "bundles": { "kept": { "serverId": "kept" }, "asked": { "serverId": "asked" } },
    });
    let loaded = config::parse("toolloop.json", config.to_string());
    let manager = McpClientManager::new(loaded, AuthProviders::default());
    for bundle in ["kept", "asked"] {
        manager.tools(bundle).await?;
        // Longer than the shorter of the two.
        tokio::time::sleep(Duration::from_millis(20)).await;
        manager.tools(bundle).await?;
    }
    until(|| manager.times_listed("asked") == 2).await?;
    assert_eq!(manager.times_listed("kept"), 1);
    manager.close_all().await;
    Ok(())
}

/// A server with `authProviderId` gets what the provider of the host gives, and nothing else. The
/// provider is asked again when the server refuses a value.
async fn check_authorization() -> Outcome {
    let (url, seen) = guarded_server("Bearer from the vault").await?;
    let transport = json!({ "type": "http", "url": url, "authProviderId": "vault" });
    let config = json!({
        "servers": { "remote": { "trust": "trusted", "transport": transport } },
        "bundles": { "remote": { "serverId": "remote" } },
    });
    let loaded = || config::parse("toolloop.json", config.to_string());
    let vault = Vault { values: ["Bearer of last week", "Bearer from the vault"] };
    let providers = AuthProviders::from([("vault", Arc::new(vault) as Arc<dyn AuthProvider>)]);
    let manager = McpClientManager::new(loaded(), providers);
    assert!(names(&manager.tools("remote").await?).contains(&"remote_shout"));
    manager.close_all().await;
    seen.abort();

    let manager = McpClientManager::new(loaded(), AuthProviders::default());
    let refused = manager.tools("remote").await.err().ok_or("it has no credentials")?;
    assert!(refused.to_string().contains("`authProviderId` `vault`"), "{refused}");
    manager.close_all().await;
    Ok(())
}

/// A call of a model, by the name and the arguments that it wrote. The user is asked about the tool
/// that runs, also where the model calls it through `trunkline_call`.
async fn execute_approved(
    model: &HostCaller,
    (name, arguments): (&str, Value),
    approvals: &mut Vec<String>,
) -> Result<String, Box<dyn Error>> {
    let (tool, arguments) = model.tool(name)?.target(arguments).await?;
    if tool.annotations().read_only != Some(true) {
        approvals.push(tool.name().to_owned());
    }
    Ok(tool.call(arguments).validate_arguments().await?.text())
}

/// A bundle in meta mode: the model receives four tools, whatever the bundle has, and searches,
/// describes and calls the others.
async fn check_meta(manager: &McpClientManager) -> Outcome {
    let model = manager.conversation("library")?;
    let received = model.tools().await;
    assert!(received.iter().all(|tool| tool.meta_tool().is_some()), "{received:?}");
    assert_eq!(received.len(), MetaTool::ALL.len());

    let mut approvals = Vec::new();
    let script = [
        ("trunkline_search", json!({ "queries": ["count the words of a text"], "limit": 1 })),
        ("trunkline_describe", json!({ "names": ["words_count_words"] })),
        (
            "trunkline_call",
            json!({ "name": "words_count_words", "arguments": { "text": "one two three" } }),
        ),
        ("trunkline_call", json!({ "name": "words_remember", "arguments": { "text": "mcp" } })),
    ];
    let mut transcript = Vec::new();
    for call in script {
        transcript.push(execute_approved(&model, call, &mut approvals).await?);
    }
    assert!(transcript[0].starts_with("words_count_words(text: string): "), "{transcript:?}");
    let definition: Value = serde_json::from_str(&transcript[1])?;
    assert_eq!(definition["inputSchema"]["required"], json!(["text"]));
    assert!(transcript[2].contains('3'), "{transcript:?}");
    assert_eq!(approvals, ["words_remember"]);

    // Outside of the loop all tools of the bundle are there, whatever its mode is.
    assert!(names(&manager.tools("library").await?).contains(&"words_shout"));
    Ok(())
}

async fn run() -> Outcome {
    let folder = Folder::new("toolloop-example")?;
    check_precedence(&folder)?;
    check_ttl().await?;
    check_authorization().await?;

    let loaded = load_mcp_config(&Machine::default(), folder.path(), None);
    let manager = McpClientManager::new(loaded, AuthProviders::default());
    let tools = manager.tools("sums").await?;
    assert_eq!(names(&tools), ["numbers_add"]);
    assert_eq!(
        (manager.state("numbers"), manager.state("words")),
        (Some(State::Ready), Some(State::Idle))
    );

    // A model calls tools until it is done.
    let script = [
        ("numbers_add", json!({ "a": 40, "b": 2 })),
        ("numbers_add", json!({ "a": "forty" })),
        ("numbers_roll", json!({})),
    ];
    let mut transcript = Vec::new();
    for call in &script {
        transcript.push(manager.execute(&tools, call).await);
    }
    // Results of an untrusted server are marked.
    assert!(transcript[0].contains("untrusted") && transcript[0].contains("42"), "{transcript:?}");
    assert!(transcript[1].starts_with("error: "), "{transcript:?}");
    assert!(transcript[2].contains("there is no tool `numbers_roll`"), "{transcript:?}");

    let texts = manager.tools("texts").await?;
    assert!(names(&texts).contains(&"words_shout") && !names(&texts).contains(&"words_remember"));

    check_meta(&manager).await?;

    // A closed server is connected again on its next use.
    manager.close("numbers").await;
    assert_eq!(manager.state("numbers"), Some(State::Idle));
    let again = manager.execute(&tools, &script[0]).await;
    assert!(again.contains("42"), "{again}");

    manager.close_all().await;
    assert_eq!((manager.state("numbers"), manager.state("words")), (None, None));
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    if serve_if_asked().await? {
        return Ok(());
    }
    run().await
}
