//! One caller of a host: its view, and calls on its behalf.

use std::sync::Arc;

use super::Host;
use super::shown::CallerShownTools;
use crate::call::{CallError, CallOptions, Completion, Outcome};
use crate::message::Raw;
use crate::policy::{CallerSpec, Disclosure, UnknownCaller};
use crate::view::View;

/// A caller of a [`Host`], with the limits of its agent, bundles and access.
///
/// It follows the host: after a reload, or when the tools of a server change, it sees the current
/// state.
///
/// It also remembers which tools [meta tools](crate::meta::MetaTool) have shown: use one caller, or
/// clones of it, for one conversation with a model.
///
/// ```
/// # use trunkline::{Host, config};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let host = Host::builder()
///     .config_text("mcp.json", r#"{ "agents": { "reader": { "tools": ["docs_*"] } } }"#)
///     .start()
///     .await?;
/// let reader = host.for_agent("reader")?;
/// assert!(reader.tools().await.is_empty());
/// assert_eq!(reader.tool("docs_search").unwrap_err().to_string(), "there is no tool `docs_search`");
/// assert!(host.for_agent("writer").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct HostCaller {
    pub(super) host: Host,
    /// An earlier view, from which the caller is refreshed.
    pub(super) view: Arc<View>,
    pub(super) shown: Arc<CallerShownTools>,
}

impl Host {
    /// The owner of the configuration: sees all items that the configuration allows, with the rule
    /// that hides each of the others. All handles of the owner are one caller.
    ///
    /// # Panics
    ///
    /// Never: the owner is always known.
    pub fn owner(&self) -> HostCaller {
        let spec = CallerSpec { disclosure: Disclosure::Reasons, ..CallerSpec::default() };
        let owner = self.for_caller(spec).expect("invariant: a caller without names is known");
        HostCaller { shown: Arc::clone(&self.shared.owner_shown), ..owner }
    }

    /// An agent of the configuration.
    ///
    /// # Errors
    ///
    /// When the configuration has no agent of this name.
    pub fn for_agent(&self, name: &str) -> Result<HostCaller, UnknownCaller> {
        self.for_caller(CallerSpec { agent: Some(name), ..CallerSpec::default() })
    }

    /// A caller with any limits.
    ///
    /// # Errors
    ///
    /// When the configuration has no such agent or bundle.
    pub fn for_caller(&self, spec: CallerSpec<'_>) -> Result<HostCaller, UnknownCaller> {
        let view = Arc::new(self.view(spec)?);
        Ok(HostCaller { host: self.clone(), view, shown: Arc::default() })
    }
}

/// Arguments of a tool or a prompt: a JSON object.
#[derive(Clone, Debug)]
pub struct Arguments(pub(super) Raw);

impl From<serde_json::Value> for Arguments {
    fn from(value: serde_json::Value) -> Self {
        Self(Raw::from_value(&value))
    }
}

impl From<Raw> for Arguments {
    fn from(raw: Raw) -> Self {
        Self(raw)
    }
}

impl HostCaller {
    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// A snapshot of the items that the caller sees now.
    ///
    /// # Errors
    ///
    /// When a reload has removed the agent or a bundle of the caller.
    pub fn view(&self) -> Result<View, CallError> {
        self.host.with_current_rules(&self.view)
    }

    /// The same caller with another view.
    pub(super) fn with_view(&self, view: &Arc<View>) -> Self {
        Self { view: Arc::clone(view), ..self.clone() }
    }

    /// Reads a resource by its exposed URI.
    ///
    /// # Errors
    ///
    /// When the caller may not read it, or the server returns no result.
    pub async fn read_resource(
        &self,
        uri: &str,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        self.host.read(&self.view()?, uri, options).await
    }

    /// Gets a prompt with arguments: an object of strings.
    ///
    /// # Errors
    ///
    /// When the caller may not use it, or the server returns no result.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: impl Into<Arguments>,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let Arguments(arguments) = arguments.into();
        self.host.prompt(&self.view()?, name, arguments, options).await
    }

    /// Completes an argument of a prompt or a resource template.
    ///
    /// # Errors
    ///
    /// When the caller may not use the prompt or template, or the server returns no result.
    pub async fn complete(
        &self,
        completion: &Completion<'_>,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        self.host.complete(&self.view()?, completion, options).await
    }
}
