//! A tool as a value: resolved once, shown to a model, and called.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::caller::{Arguments, HostCaller};
use super::progress::{Progress, ProgressFn, ProgressHandler};
use super::shown::CallPath;
use super::{Host, WaitFor};
use crate::call::{ArtifactDir, CallError, CallOptions, Outcome};
use crate::catalog::Entry;
use crate::connection::CallHandler;
use crate::item::{ItemKind, ToolAnnotations};
use crate::message::Raw;
use crate::meta::{CallArguments, ItemTool, MetaTool};
use crate::name::ServerName;
use crate::view::View;

/// A tool that a model receives: one of a server, a meta tool that finds and calls the others, or one
/// for resources or prompts.
///
/// It stands for the definition that was shown: if the definition has changed by the time of the
/// call, or a rule hides the tool, the call is rejected.
#[derive(Clone)]
pub struct Tool {
    /// With the view in which the tool was resolved.
    caller: HostCaller,
    source: ToolSource,
}

/// The implementation of a tool.
#[derive(Clone)]
enum ToolSource {
    /// A server.
    Server(Entry),
    /// The host itself, which knows all tools.
    Meta(MetaTool),
    /// The host itself, in front of resources or prompts.
    Item(ItemTool),
}

impl ToolSource {
    /// The tool of the host itself that a call of this name means.
    fn of_host(view: &View, name: &str) -> Option<Self> {
        let item = || ItemTool::from_name(name).filter(|tool| view.surface().has_item_tool(*tool));
        view.meta_tool(name).map(Self::Meta).or_else(|| item().map(Self::Item))
    }
}

impl Tool {
    fn of_server(caller: &HostCaller, view: &Arc<View>, entry: &Entry) -> Self {
        Self { caller: caller.with_view(view), source: ToolSource::Server(entry.clone()) }
    }

    fn of_host(caller: &HostCaller, view: &Arc<View>, source: ToolSource) -> Self {
        Self { caller: caller.with_view(view), source }
    }

    /// The exposed name, unique among all servers.
    pub fn name(&self) -> &str {
        match &self.source {
            ToolSource::Server(entry) => entry.exposed(),
            ToolSource::Meta(tool) => tool.name(),
            ToolSource::Item(tool) => tool.name(),
        }
    }

    /// The server of the tool; `None` for one of the host itself.
    pub fn server(&self) -> Option<&ServerName> {
        self.entry().map(|entry| &entry.server().name)
    }

    /// The description for a model, with the server's name where that is configured; empty if there
    /// is none.
    pub fn description(&self) -> String {
        let description = self.definition().get("description");
        description.as_ref().and_then(Raw::as_str).unwrap_or_default().into_owned()
    }

    /// The definition for a model: as the server wrote it, with the exposed name.
    pub fn definition(&self) -> Raw {
        let HostCaller { host, view, .. } = &self.caller;
        match &self.source {
            ToolSource::Server(entry) => view.definition(entry, host.description_style()),
            ToolSource::Meta(tool) => tool.definition().clone(),
            ToolSource::Item(tool) => tool.definition().clone(),
        }
    }

    /// The JSON Schema of its arguments.
    pub fn input_schema(&self) -> Raw {
        let definition = match &self.source {
            ToolSource::Server(entry) => entry.definition(),
            ToolSource::Meta(tool) => tool.definition(),
            ToolSource::Item(tool) => tool.definition(),
        };
        definition.get("inputSchema").unwrap_or_else(Raw::empty_object)
    }

    /// Its annotations, such as `readOnlyHint`. Those of [`MetaTool::Call`] say that it may do
    /// anything: the annotations of its [`target`](Self::target) are the ones to decide on.
    pub fn annotations(&self) -> ToolAnnotations {
        match &self.source {
            ToolSource::Server(entry) => entry.annotations(),
            ToolSource::Meta(tool) => ToolAnnotations::of(tool.definition()),
            ToolSource::Item(tool) => ToolAnnotations::of(tool.definition()),
        }
    }

    /// The catalog entry that it was resolved to; `None` for a tool of the host itself.
    pub fn entry(&self) -> Option<&Entry> {
        match &self.source {
            ToolSource::Server(entry) => Some(entry),
            ToolSource::Meta(_) | ToolSource::Item(_) => None,
        }
    }

    /// The meta tool, if it is one.
    pub fn meta_tool(&self) -> Option<MetaTool> {
        match &self.source {
            ToolSource::Meta(tool) => Some(*tool),
            ToolSource::Server(_) | ToolSource::Item(_) => None,
        }
    }

    /// The tool for resources or prompts, if it is one.
    pub fn item_tool(&self) -> Option<ItemTool> {
        match &self.source {
            ToolSource::Item(tool) => Some(*tool),
            ToolSource::Server(_) | ToolSource::Meta(_) => None,
        }
    }

    /// The tool that a call with these arguments runs, and the arguments that it gets: for
    /// [`MetaTool::Call`] the tool that they name, otherwise the tool itself. A host that asks for
    /// approval decides on the target and calls it:
    ///
    /// ```
    /// # use serde_json::Value;
    /// # use trunkline::{CallError, HostCaller, Outcome, Tool};
    /// # fn ask_the_user(_: &Tool) -> Result<(), CallError> { Ok(()) }
    /// async fn run(caller: &HostCaller, name: &str, arguments: Value) -> Result<Outcome, CallError> {
    ///     let (tool, arguments) = caller.tool(name)?.target(arguments).await?;
    ///     if tool.annotations().read_only != Some(true) {
    ///         ask_the_user(&tool)?;
    ///     }
    ///     tool.call(arguments).await
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// When the arguments of a call name no tool that the caller sees, or one that has changed since
    /// a meta tool has shown it.
    pub async fn target(&self, arguments: impl Into<Arguments>) -> Result<(Self, Raw), CallError> {
        let Arguments(arguments) = arguments.into();
        self.target_within(arguments, None).await
    }

    async fn target_within(
        &self,
        arguments: Raw,
        time_left: Option<Duration>,
    ) -> Result<(Self, Raw), CallError> {
        if self.meta_tool() != Some(MetaTool::Call) {
            return Ok((self.clone(), arguments));
        }
        let call =
            CallArguments::read(&arguments).map_err(|error| CallError::bad_arguments(&error))?;
        let name = call.name.as_str().unwrap_or_default();
        let tool = self.caller.resolve_server_tool(&name, CallPath::Meta, time_left).await?;
        Ok((tool, call.arguments.unwrap_or_else(Raw::empty_object)))
    }

    /// A call, which is made when it is awaited.
    pub fn call(&self, arguments: impl Into<Arguments>) -> ToolCall<'static> {
        let Arguments(arguments) = arguments.into();
        ToolCall::new(CallTarget::Tool(Box::new(self.clone())), arguments)
    }

    async fn run(&self, arguments: Raw, options: CallOptions<'_>) -> Result<Outcome, CallError> {
        if self.entry().is_none() {
            self.caller.require_own_tool(self.name())?;
        }
        let (tool, arguments) = self.target_within(arguments, options.time_left()).await?;
        let HostCaller { host, view, .. } = &tool.caller;
        match &tool.source {
            ToolSource::Server(entry) => host.call_entry(view, entry, arguments, options).await,
            ToolSource::Meta(meta) => {
                self.caller.answer_meta_tool(*meta, &arguments, options.time_left()).await
            }
            ToolSource::Item(item) => self.caller.call_item_tool(*item, &arguments, options).await,
        }
    }
}

impl Host {
    /// The tools that a model receives, as the [owner](Host::owner) sees them.
    pub async fn tools(&self) -> Vec<Tool> {
        self.owner().tools().await
    }

    /// Calls a tool as the [owner](Host::owner), when the returned call is awaited.
    pub fn call_tool(&self, name: &str, arguments: impl Into<Arguments>) -> ToolCall<'static> {
        self.owner().call_tool(name, arguments)
    }
}

impl HostCaller {
    /// The tools that a model receives, as `mode` says: first the meta tools, if any tool is in
    /// meta mode; then those for resources and prompts, where `resourcesAsTools` or `promptsAsTools`
    /// is on; then the tools in direct mode, sorted by name. Servers whose lists are unknown are
    /// started, and waited for within `timeouts.grace`.
    ///
    /// [`view`](Self::view) has all tools that the caller sees, whatever their mode is.
    pub async fn tools(&self) -> Vec<Tool> {
        self.host.refresh(&[ItemKind::Tool], WaitFor::Grace).await;
        let Ok(view) = self.view() else { return Vec::new() };
        let view = Arc::new(view);
        self.shown.record_list(&view);
        let surface = view.surface();
        let meta = MetaTool::ALL.into_iter().filter(|_| surface.has_meta_tools());
        let own = meta.map(ToolSource::Meta).chain(surface.item_tools().map(ToolSource::Item));
        let own = own.map(|source| Tool::of_host(self, &view, source));
        let direct = surface.direct().map(|entry| Tool::of_server(self, &view, entry));
        own.chain(direct).collect()
    }

    /// A known tool, resolved once: one of the host itself, or one of a server, whatever its mode
    /// is.
    ///
    /// # Errors
    ///
    /// When the caller sees no tool of this name, or the tool has changed since a meta tool has
    /// shown it. [`tools`](Self::tools) also finds tools of servers that have not been started yet.
    pub fn tool(&self, name: &str) -> Result<Tool, CallError> {
        let view = Arc::new(self.view()?);
        match ToolSource::of_host(&view, name) {
            Some(source) => Ok(Tool::of_host(self, &view, source)),
            None => self.server_tool(&view, name, CallPath::Direct),
        }
    }

    /// Calls a tool by name, when the returned call is awaited. A server that does not run is
    /// started, and one that is being restarted is waited for.
    pub fn call_tool(&self, name: &str, arguments: impl Into<Arguments>) -> ToolCall<'static> {
        ToolCall::by_name(self.clone(), name, arguments.into())
    }

    /// Fails if a reload has taken a tool of the host itself away.
    fn require_own_tool(&self, name: &str) -> Result<(), CallError> {
        let view = Arc::new(self.view()?);
        if ToolSource::of_host(&view, name).is_some() {
            return Ok(());
        }
        Err(match view.route(ItemKind::Tool, name) {
            Ok(entry) => CallError::changed_since_described(entry),
            Err(none) => self.host.judged(none.into()),
        })
    }

    fn server_tool(&self, view: &Arc<View>, name: &str, path: CallPath) -> Result<Tool, CallError> {
        let entry = view.route(ItemKind::Tool, name);
        let entry = entry.map_err(|none| self.host.judged(none.into()))?;
        self.shown.require_unchanged(view, entry, path)?;
        Ok(Tool::of_server(self, view, entry))
    }

    /// Resolves a tool by name, after refreshing the lists of servers whose tools may have this
    /// name.
    async fn resolve_tool(
        &self,
        name: &str,
        time_left: Option<Duration>,
    ) -> Result<Tool, CallError> {
        let view = Arc::new(self.view()?);
        match ToolSource::of_host(&view, name) {
            Some(source) => Ok(Tool::of_host(self, &view, source)),
            None => self.resolve_server_tool(name, CallPath::Direct, time_left).await,
        }
    }

    async fn resolve_server_tool(
        &self,
        name: &str,
        path: CallPath,
        time_left: Option<Duration>,
    ) -> Result<Tool, CallError> {
        let view = self.view()?;
        let owners = match view.route(ItemKind::Tool, name) {
            Ok(_) => Vec::new(),
            Err(_) => view.possible_owners(name),
        };
        let view = match &*owners {
            [] => view,
            owners => self.host.view_after_refresh(&view, owners, time_left).await?,
        };
        self.server_tool(&Arc::new(view), name, path)
    }

    /// Answers a meta tool other than [`MetaTool::Call`], from the lists that are known within
    /// `timeouts.grace`.
    async fn answer_meta_tool(
        &self,
        tool: MetaTool,
        arguments: &Raw,
        time_left: Option<Duration>,
    ) -> Result<Outcome, CallError> {
        let refresh = self.host.refresh(&[ItemKind::Tool], WaitFor::Grace);
        // Later lists are found by the next search.
        let _ = timeout(time_left.unwrap_or(Duration::MAX), refresh).await;
        let mut answer = self.host.answer_meta_tool(&self.view()?, tool, arguments).await;
        self.shown.record(std::mem::take(&mut answer.shown));
        Ok(Outcome::of_host(answer.to_result()))
    }
}

impl fmt::Debug for Tool {
    /// Prints the name only: a definition may be long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tool").field(&self.name()).finish()
    }
}

/// A call of a tool, made when it is awaited. Dropping it cancels the call.
#[must_use = "a call is made when it is awaited"]
pub struct ToolCall<'c> {
    target: CallTarget,
    arguments: Raw,
    options: CallOptions<'c>,
    on_progress: Option<ProgressFn<'c>>,
}

enum CallTarget {
    Tool(Box<Tool>),
    Name { caller: HostCaller, name: Box<str> },
}

impl ToolCall<'static> {
    fn new(target: CallTarget, arguments: Raw) -> Self {
        Self { target, arguments, options: CallOptions::default(), on_progress: None }
    }

    fn by_name(caller: HostCaller, name: &str, Arguments(arguments): Arguments) -> Self {
        Self::new(CallTarget::Name { caller, name: name.into() }, arguments)
    }
}

impl<'c> ToolCall<'c> {
    /// Limits the time of the call, including the start of the server where it does not run.
    pub fn timeout(self, timeout: Duration) -> Self {
        let options = CallOptions { timeout: Some(timeout), ..self.options };
        Self { options, ..self }
    }

    /// Validates the arguments against the tool's schema before they are sent.
    pub fn validate_arguments(self) -> Self {
        let options = CallOptions { checks_arguments: true, ..self.options };
        Self { options, ..self }
    }

    /// Sets all options at once, also those that have no method of their own, such as the time from
    /// which the timeout counts. Replaces options that were set before.
    ///
    /// ```
    /// # use tokio::net::TcpListener;
    /// # use trunkline_gateway::demo::DemoServer;
    /// use std::time::{Duration, Instant};
    ///
    /// use serde_json::json;
    /// use trunkline::Host;
    /// use trunkline::call::CallOptions;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// # let url = format!("http://{}/mcp", listener.local_addr()?);
    /// # tokio::spawn(DemoServer::Words.listen(listener));
    /// # let config = json!({ "mcpServers": { "words": { "url": url } } }).to_string();
    /// let started = Instant::now();
    /// let host = Host::builder().config_text("mcp.json", config).start().await?;
    /// let options = CallOptions {
    ///     timeout: Some(Duration::from_secs(60)),
    ///     since: Some(started),
    ///     ..CallOptions::default()
    /// };
    /// let call = host.call_tool("words_shout", json!({ "text": "mcp" })).options(options);
    /// assert_eq!(call.await?.text(), "MCP");
    /// host.shutdown().await;
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn options<'d>(self, options: CallOptions<'d>) -> ToolCall<'d>
    where
        'c: 'd,
    {
        let Self { target, arguments, on_progress, .. } = self;
        ToolCall { target, arguments, options, on_progress }
    }

    /// Saves images, audio and other binary content as files.
    pub fn artifacts<'d>(self, directory: &'d ArtifactDir) -> ToolCall<'d>
    where
        'c: 'd,
    {
        let Self { target, arguments, options, on_progress } = self;
        let options = CallOptions { artifacts: Some(directory), ..options };
        ToolCall { target, arguments, options, on_progress }
    }

    /// Handles notifications and requests that the server sends before its response.
    pub fn handler<'d>(self, handler: &'d dyn CallHandler) -> ToolCall<'d>
    where
        'c: 'd,
    {
        let Self { target, arguments, options, on_progress } = self;
        ToolCall { target, arguments, options: CallOptions { handler, ..options }, on_progress }
    }

    /// Sets a callback for progress notifications.
    pub fn on_progress<'d>(self, report: impl Fn(&Progress) + Send + Sync + 'd) -> ToolCall<'d>
    where
        'c: 'd,
    {
        let Self { target, arguments, options, .. } = self;
        ToolCall { target, arguments, options, on_progress: Some(Box::new(report)) }
    }

    async fn run(self) -> Result<Outcome, CallError> {
        let Self { target, arguments, options, on_progress } = self;
        let handler = ProgressHandler { inner: options.handler, on_progress };
        let options = match handler.on_progress {
            Some(_) => CallOptions { handler: &handler, ..options },
            None => options,
        };
        let options = options.begun();
        let tool = match target {
            CallTarget::Tool(tool) => *tool,
            CallTarget::Name { caller, name } => {
                caller.resolve_tool(&name, options.time_left()).await?
            }
        };
        tool.run(arguments, options).await
    }
}

impl<'c> IntoFuture for ToolCall<'c> {
    type Output = Result<Outcome, CallError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'c>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
