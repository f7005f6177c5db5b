//! Relays requests of clients to upstream servers: only names and URIs are rewritten.

use std::borrow::Cow;
use std::sync::Arc;

use super::Host;
use crate::call::{CallError, CallOptions, ClientContext, Outcome, ReadUri, Route, TaskUpdates};
use crate::catalog::{Entry, ItemKind};
use crate::connection::META_KEYS;
use crate::message::{DuplicateMember, Raw};
use crate::name::{MAX_URI_BYTES, ServerName};
use crate::principal::Requester;
use crate::view::{ResourceRoute, RoutedEntry, View};

/// Limit on the bytes of a name or URI in a request, as it is written: a URI with escapes and with
/// the name of its server before it. No item has a longer one, so it is rejected unread.
const MAX_WORD_BYTES: usize = 2 * MAX_URI_BYTES;

/// A request about one item of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayMethod {
    /// `tools/call`.
    Call,
    /// `prompts/get`.
    Prompt,
    /// `resources/read`.
    Read,
    /// `completion/complete`.
    Completion,
}

impl RelayMethod {
    /// Parses a method.
    pub fn from_method(method: &str) -> Option<Self> {
        match method {
            "tools/call" => Some(Self::Call),
            "prompts/get" => Some(Self::Prompt),
            "resources/read" => Some(Self::Read),
            "completion/complete" => Some(Self::Completion),
            _ => None,
        }
    }

    /// The method of the request.
    pub fn method(self) -> &'static str {
        match self {
            Self::Call => "tools/call",
            Self::Prompt => "prompts/get",
            Self::Read => "resources/read",
            Self::Completion => "completion/complete",
        }
    }

    /// Resolves the item of a request, if the caller may use it, and rewrites the parameters to its
    /// upstream name.
    fn resolve<'v>(self, view: &'v View, params: &Raw) -> Result<UpstreamRequest<'v>, CallError> {
        match self {
            Self::Call => named(view, ItemKind::Tool, params),
            Self::Prompt => named(view, ItemKind::Prompt, params),
            Self::Read => addressed(view, params),
            Self::Completion => {
                let reference = params.get_unique("ref");
                let reference = reference.map_err(|DuplicateMember| CallError::ambiguous("ref"))?;
                let reference = reference.ok_or_else(|| CallError::missing("ref"))?;
                let found = match &*NameParam::of(&reference, "type")?.text() {
                    "ref/resource" => template(view, &reference)?,
                    _ => named(view, ItemKind::Prompt, &reference)?,
                };
                Ok(UpstreamRequest { params: params.with("ref", &found.params), ..found })
            }
        }
    }
}

/// A request, resolved in a view.
pub struct ResolvedRequest<'v> {
    /// The view that has admitted the item.
    view: &'v View,
    relayed: RelayMethod,
    /// Its parameters with exposed names.
    params: Raw,
    resolved: UpstreamRequest<'v>,
}

impl<'v> ResolvedRequest<'v> {
    /// The resolved item, with its server and definition.
    pub fn entry(&self) -> &Entry {
        &self.resolved.entry
    }
}

/// A resolved item, with upstream parameters.
struct UpstreamRequest<'v> {
    entry: RoutedEntry<'v>,
    params: Raw,
    read: Option<ReadUri>,
}

/// The tool whose call created a task. A caller that may call the tool may access the task.
#[derive(Clone, Copy, Debug)]
pub struct TaskOrigin<'t> {
    /// The server of the task.
    pub server: &'t ServerName,
    /// The upstream name of the tool.
    pub tool: &'t str,
}

impl TaskOrigin<'_> {
    /// Whether a view shows the tool.
    pub fn is_in(self, view: &View) -> bool {
        self.entry(view).is_some()
    }

    fn entry(self, view: &View) -> Option<&Entry> {
        let is_it =
            |entry: &&Entry| entry.server().name == *self.server && entry.name() == self.tool;
        view.entries(ItemKind::Tool).find(is_it)
    }
}

impl Host {
    /// Resolves the item of a request, if the caller may use it, ready to be relayed.
    pub fn find<'v>(
        &self,
        view: &'v View,
        relayed: RelayMethod,
        params: &Raw,
    ) -> Result<ResolvedRequest<'v>, CallError> {
        require_unique(params)?;
        let resolved = relayed.resolve(view, params).map_err(|error| self.judged(error))?;
        Ok(ResolvedRequest { view, relayed, params: params.clone(), resolved })
    }

    /// Relays a request to the server of its item. Only the name in it is rewritten; all else is
    /// passed on byte for byte.
    pub async fn relay(
        &self,
        found: ResolvedRequest<'_>,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let outcome = self.relay_resolved(found, options.begun()).await;
        outcome.map_err(|error| self.judged(error))
    }

    async fn relay_resolved(
        &self,
        found: ResolvedRequest<'_>,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let ResolvedRequest {
            view,
            relayed,
            params,
            resolved: UpstreamRequest { entry, params: sent, read },
        } = found;
        if relayed == RelayMethod::Read && !self.is_current(view) {
            // Rules may apply to the URI as well as to the matching template.
            relayed.resolve(&self.with_current_rules(view)?, &params)?;
        }
        let route = Route { read, ..self.bind(view, &entry, &options).await? };
        match relayed {
            // Boxed, to keep the future of calls small.
            RelayMethod::Completion => Box::pin(route.complete(sent, options)).await,
            _ => route.send(relayed.method(), sent, options).await,
        }
    }

    /// Relays a request that names no item. The caller has to see an item of the server. A non-MCP
    /// method may have any effect: relay it only for a view that [has no limit](View::is_unlimited)
    /// on the server.
    pub async fn relay_to(
        &self,
        view: &View,
        server: &ServerName,
        (method, params): (&str, Raw),
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let entry = something_of(view, server).ok_or_else(CallError::hidden);
        self.relay_unlisted(view, entry, (method, params), options).await
    }

    /// Relays a request about a task. The caller has to see the tool that created it.
    pub async fn relay_task(
        &self,
        view: &View,
        origin: TaskOrigin<'_>,
        (method, params): (&str, Raw),
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let entry = origin.entry(view).ok_or_else(CallError::hidden);
        self.relay_unlisted(view, entry, (method, params), options).await
    }

    async fn relay_unlisted(
        &self,
        view: &View,
        entry: Result<&Entry, CallError>,
        (method, params): (&str, Raw),
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        let options = options.begun();
        let asked = async {
            require_unique(&params)?;
            let route = self.bind(view, entry?, &options).await?;
            route.send_unlisted(method, params, options).await
        };
        asked.await.map_err(|error| self.judged(error))
    }

    /// Subscribes to updates of a task, by its upstream ID. The caller has to see the tool that
    /// created it.
    pub async fn task_updates(
        &self,
        view: &View,
        (origin, task): (TaskOrigin<'_>, &str),
        client: Option<&ClientContext>,
        requester: &Requester,
    ) -> Result<TaskUpdates, CallError> {
        let entry = origin.entry(view).ok_or_else(CallError::hidden)?;
        let options = CallOptions { client, ..CallOptions::default() };
        let route = self.bind(view, entry, &options).await?;
        route.updates((task, requester), Arc::clone(view.catalog())).await
    }
}

/// Fails if a server could read other values from the parameters than the ones checked here:
/// another `_meta`, with a progress token that is not Trunkline's, or other arguments.
fn require_unique(params: &Raw) -> Result<(), CallError> {
    let keys = ["arguments", "requestState", "inputResponses", "_meta"];
    let found = params.count_alike(keys);
    if let Some((key, _)) = keys.iter().zip(&found).find(|(_, (count, _))| *count > 1) {
        return Err(CallError::ambiguous(key));
    }
    let [.., (count, said)] = found;
    let Some(said) = said else {
        return if count == 0 { Ok(()) } else { Err(CallError::ambiguous("_meta")) };
    };
    for (key, (count, value)) in META_KEYS.iter().zip(said.count_alike(META_KEYS)) {
        if count != usize::from(value.is_some()) {
            return Err(CallError::ambiguous(key));
        }
    }
    Ok(())
}

/// Any item of a server that a view shows.
fn something_of<'v>(view: &'v View, server: &ServerName) -> Option<&'v Entry> {
    let mut seen = ItemKind::ALL.iter().flat_map(|kind| view.entries(*kind));
    seen.find(|entry| entry.server().name == *server)
}

fn named<'v>(
    view: &'v View,
    kind: ItemKind,
    params: &Raw,
) -> Result<UpstreamRequest<'v>, CallError> {
    let name = NameParam::of(params, "name")?;
    let entry = view.route(kind, &name.text())?;
    let params = name.upstream_params(params, entry.name());
    Ok(UpstreamRequest { entry: RoutedEntry::Listed(entry), params, read: None })
}

fn addressed<'v>(view: &'v View, params: &Raw) -> Result<UpstreamRequest<'v>, CallError> {
    let address = NameParam::of(params, "uri")?;
    let ResourceRoute { entry, uri: own } = view.route_resource(&address.text())?;
    let params = address.upstream_params(params, &own);
    let address = address.text().into_owned();
    let read = (own != address).then_some(ReadUri { address, own });
    Ok(UpstreamRequest { entry, params, read })
}

fn template<'v>(view: &'v View, reference: &Raw) -> Result<UpstreamRequest<'v>, CallError> {
    let address = NameParam::of(reference, "uri")?;
    let entry = view.route_template(&address.text())?;
    let params = address.upstream_params(reference, entry.name());
    Ok(UpstreamRequest { entry: RoutedEntry::Listed(entry), params, read: None })
}

/// The name or URI in the parameters of a request.
struct NameParam {
    part: Raw,
}

impl NameParam {
    fn of(params: &Raw, key: &'static str) -> Result<Self, CallError> {
        // An ambiguous name could be checked as one item and reach another.
        let part = params.get_unique(key).map_err(|DuplicateMember| CallError::ambiguous(key))?;
        if part.as_ref().is_some_and(|part| part.bytes().len() > MAX_WORD_BYTES) {
            return Err(CallError::too_long(key, MAX_WORD_BYTES));
        }
        let part = part.filter(|part| part.as_str().is_some());
        part.map(|part| Self { part }).ok_or_else(|| CallError::missing(key))
    }

    fn text(&self) -> Cow<'_, str> {
        self.part.as_str().unwrap_or_default()
    }

    /// The parameters with the upstream name, unchanged where it is the same.
    fn upstream_params(&self, params: &Raw, own: &str) -> Raw {
        match self.text() == own {
            true => params.clone(),
            false => params.replace_slice(&self.part, &Raw::from_string(own)),
        }
    }
}
