//! Dispatch: tools per working directory. Each directory has its own configuration, equal servers
//! of two directories share one process, tools are redefined when their server's list changes, and
//! a conversation toggles servers.
//!
//! `cargo run --example dispatch`

mod support;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use trunkline::call::CallOptions;
use trunkline::catalog::Catalog;
use trunkline::config::{
    self, ColorStyle, DiscoveredFiles, EmptyResolver, LoadOptions, Overrides, SearchFile,
    SearchPath, SearchScope,
};
use trunkline::connection::{ChildOptions, ConnectionOptions, HttpOptions};
use trunkline::host::{Host, HostOptions, WaitFor};
use trunkline::item::ItemKind;
use trunkline::message::Raw;
use trunkline::policy::{CallerSpec, Toggle, Toggles, UnknownCaller};
use trunkline::registry::Registry;

use support::{Folder, Machine, Outcome, serve_if_asked, stdio_entry, until};

/// A tool definition of Dispatch.
struct ToolContract {
    description: String,
    parameters: Value,
}

/// The result of a tool: a text for the model, and whether it is about a failure.
struct ToolResult {
    content: String,
    is_error: bool,
}

/// The tools of one working folder.
struct Extension {
    host: Host,
    catalog: watch::Receiver<Arc<Catalog>>,
    contracts: BTreeMap<String, ToolContract>,
    warnings: Vec<String>,
}

impl Extension {
    /// Reads `.dispatch/mcp.json`, else `opencode.json`, and starts its servers.
    async fn activate(registry: &Registry, options: &ConnectionOptions, folder: &Path) -> Self {
        let loaded = config::load(
            &Machine::default(),
            &LoadOptions {
                places: SearchPath {
                    candidates: vec![
                        SearchFile::file(".dispatch/mcp.json"),
                        SearchFile::with_key("opencode.json", "mcp"),
                    ],
                    walk: SearchScope::Stay,
                    ..SearchPath::default()
                },
                // `freecad__create_object`: one underscore is common in tool names.
                overrides: Some(Overrides::Value(json!({ "separator": "__" }))),
                working_directory: folder.to_owned(),
                // The user has chosen the working directory.
                discovered: DiscoveredFiles::Run,
                ..LoadOptions::default()
            },
        );
        let warnings = loaded.diagnostics.iter().map(|it| it.render(ColorStyle::Plain)).collect();
        let options =
            HostOptions { registry: Some(registry.clone()), ..HostOptions::new(options.clone()) };
        let host = Host::start(loaded.config, BTreeMap::new(), options);
        host.refresh(&[ItemKind::Tool], WaitFor::AllReady).await;
        let catalog = host.watch_catalog();
        let mut extension = Self { host, catalog, contracts: BTreeMap::new(), warnings };
        extension.define_tools();
        extension
    }

    /// Defines all tools.
    fn define_tools(&mut self) {
        let Ok(all) = self.host.view(CallerSpec::default()) else { return };
        self.contracts.clear();
        for definition in all.list(ItemKind::Tool, self.host.description_style()) {
            let definition = definition.to_value();
            let text = |key: &str| definition[key].as_str().unwrap_or_default().to_owned();
            let parameters = definition["inputSchema"].clone();
            let contract = ToolContract { description: text("description"), parameters };
            self.contracts.insert(text("name"), contract);
        }
    }

    /// Waits for a change of the catalog, and redefines the tools.
    async fn tools_changed(&mut self) -> Outcome {
        self.catalog.changed().await?;
        self.define_tools();
        Ok(())
    }

    /// The tools available to one turn of a conversation.
    fn filter_tools(&self, switches: &Toggles) -> Result<Vec<&str>, UnknownCaller> {
        let view =
            self.host.view(CallerSpec { switches: switches.clone(), ..CallerSpec::default() })?;
        let is_visible = |name: &&str| view.route(ItemKind::Tool, name).is_ok();
        Ok(self.contracts.keys().map(String::as_str).filter(is_visible).collect())
    }

    /// Executes a tool until it returns or is aborted; an abort cancels the request.
    async fn execute(
        &self,
        name: &str,
        arguments: &Value,
        abort: oneshot::Receiver<()>,
    ) -> Result<Option<ToolResult>, UnknownCaller> {
        let view = self.host.view(CallerSpec::default())?;
        let arguments = Raw::from_value(arguments);
        tokio::select! {
            called = self.host.call(&view, name, arguments, CallOptions::default()) => {
                Ok(Some(match called {
                    Ok(outcome) => {
                        ToolResult { content: outcome.text(), is_error: outcome.is_error }
                    }
                    // A server that is down is a result that the model can read.
                    Err(error) => ToolResult { content: error.text_for_model(), is_error: true },
                }))
            }
            _ = abort => Ok(None),
        }
    }
}

/// Executes a tool without an abort signal.
async fn execute(
    extension: &Extension,
    name: &str,
    arguments: Value,
) -> Result<ToolResult, Box<dyn Error>> {
    let (_never, abort) = oneshot::channel();
    Ok(extension.execute(name, &arguments, abort).await?.ok_or("nothing aborts it")?)
}

/// A tool that fails, and one that is not there: both are results.
async fn check_failures(model: &Extension) -> Outcome {
    let bad = execute(model, "words__shout", json!({ "text": 7 })).await?;
    assert!(bad.is_error && !bad.content.is_empty(), "{}", bad.content);
    let missing = execute(model, "words__whisper", json!({})).await?;
    assert!(missing.is_error && missing.content.contains("words__whisper"), "{}", missing.content);
    Ok(())
}

/// Checks that a changed list redefines the tools of a server.
async fn check_changed_list(model: &mut Extension) -> Outcome {
    execute(model, "freecad__make_tool", json!({})).await?;
    while !model.contracts.contains_key("freecad__tool_1") {
        model.tools_changed().await?;
    }
    assert_eq!(execute(model, "freecad__tool_1", json!({})).await?.content, "made");
    Ok(())
}

/// Checks that an abort signal ends a call that would not end, and cancels it on the server.
async fn check_abort(model: &Extension) -> Outcome {
    let freecad = model.host.servers().get("freecad").ok_or("it is configured")?;
    let (abort, signal) = oneshot::channel();
    let before = freecad.status().calls;
    let aborted = async {
        until(|| freecad.status().calls > before).await?;
        let _ = abort.send(());
        Ok::<(), Box<dyn Error>>(())
    };
    let arguments = json!({});
    let (answer, sent) = tokio::join!(model.execute("freecad__wait", &arguments, signal), aborted);
    sent?;
    assert!(answer?.is_none());
    until(|| freecad.status().stderr.iter().any(|line| line.contains("cancelled"))).await?;
    Ok(())
}

/// Checks that a conversation can disable a server, and that the toggle is stored.
fn check_switches(model: &Extension, folder: &Folder) -> Outcome {
    let config = model.host.config();
    let mut switches = Toggles::default();
    switches.set(&config.server("freecad").ok_or("it is configured")?.name, Toggle::Off);
    let kept = folder.write("conversation.json", &switches.to_json().to_string())?;
    let again = Toggles::from(&config::parse_toggles("conversation.json", fs::read(kept)?));
    let names = model.filter_tools(&again)?;
    assert!(names.contains(&"words__shout") && names.iter().all(|it| it.starts_with("words__")));
    assert!(model.filter_tools(&Toggles::default())?.contains(&"freecad__wait"));
    Ok(())
}

async fn run() -> Outcome {
    let folder = Folder::new("dispatch-example")?;
    let (words, workshop) = (stdio_entry("words")?, stdio_entry("workshop")?);
    let both = json!({ "servers": { "words": words, "freecad": workshop } });
    folder.write("model/.dispatch/mcp.json", &both.to_string())?;
    let shadowed = json!({ "mcp": { "numbers": stdio_entry("numbers")? } });
    folder.write("model/opencode.json", &shadowed.to_string())?;
    folder.write("web/opencode.json", &json!({ "mcp": { "words": words } }).to_string())?;

    let child = ChildOptions::from_environment(std::env::vars_os());
    let options = ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default());
    let registry = Registry::new(options.clone());
    let mut model = Extension::activate(&registry, &options, &folder.path().join("model")).await;
    let web = Extension::activate(&registry, &options, &folder.path().join("web")).await;

    // `.dispatch/mcp.json` is used, and a warning names the ignored file.
    assert!(model.warnings.iter().any(|it| it.contains("opencode.json")), "{:?}", model.warnings);
    assert!(!model.contracts.contains_key("numbers__add"));
    let shout = &model.contracts["words__shout"];
    assert!(shout.description.starts_with("[words] ") && shout.parameters.is_object());

    // One process for both directories, and no tool of one directory in the other.
    let process = |extension: &Extension| {
        extension.host.servers().get("words").and_then(|server| server.status().process_id)
    };
    assert!(process(&web).is_some() && process(&web) == process(&model));
    assert!(web.contracts.keys().all(|name| name.starts_with("words__")));
    let shout = execute(&web, "words__shout", json!({ "text": "hello" })).await?;
    assert_eq!((shout.content.as_str(), shout.is_error), ("HELLO", false));
    check_failures(&model).await?;

    check_changed_list(&mut model).await?;
    check_abort(&model).await?;
    check_switches(&model, &folder)?;

    model.host.shutdown().await;
    let ended = execute(&model, "words__shout", json!({ "text": "hello" })).await?;
    assert!(ended.is_error && !ended.content.is_empty());
    let shout = execute(&web, "words__shout", json!({ "text": "still here" })).await?;
    assert_eq!(shout.content, "STILL HERE");
    web.host.shutdown().await;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    if serve_if_asked().await? {
        return Ok(());
    }
    run().await
}
