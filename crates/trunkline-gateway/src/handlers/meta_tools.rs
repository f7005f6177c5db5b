//! Calls of meta tools: search, description and servers are answered here; a call of another tool
//! becomes that call, with the rules, progress, cancellation and input requests of a direct one.

use std::borrow::Cow;
use std::sync::Arc;

use trunkline::catalog::Entry;
use trunkline::host::RelayMethod;
use trunkline::item::ItemKind;
use trunkline::message::{Raw, RpcError};
use trunkline::meta::{CallArguments, MetaTool, ShownTool};
use trunkline::principal::{ClientId, Principal};
use trunkline::view::View;

use super::gateway::Gateway;
use super::parking::own_state;
use super::request_log;
use crate::client::caller::Caller;
use crate::client::shown_tools::ShownDefinition;
use crate::request::errors::{handler_panicked, invalid};
use crate::request::incoming::IncomingRequest;
use crate::request::response::RpcResult;
use crate::request::translate;

impl Gateway {
    /// Handles a call that names a meta tool. If the caller has none, the tool is unknown; if the
    /// name is written twice, the call is refused as any other.
    pub(crate) async fn call_meta_tool(
        self: &Arc<Self>,
        caller: Caller,
        tool: MetaTool,
        incoming: Box<IncomingRequest>,
    ) -> RpcResult {
        let view = self.view(&caller)?;
        let is_meta = view.meta_tool(tool.name()).is_some()
            || tool == MetaTool::Call && self.is_continued(&caller, &incoming);
        if !is_meta || incoming.params.get_unique("name").is_err() {
            return self.relay(caller, RelayMethod::Call, incoming).await;
        }
        let arguments = incoming.params.get_unique("arguments");
        let arguments = arguments.map_err(|_| invalid("`arguments` is written twice"))?;
        let arguments = arguments.unwrap_or_else(Raw::empty_object);
        if tool == MetaTool::Call {
            let call = CallArguments::read(&arguments);
            let call = call.map_err(|error| invalid(&error.to_string()))?;
            request_log::record_target(&call.name.as_str().unwrap_or_default());
            let incoming = incoming.with_call(&call.name, call.arguments.as_ref());
            return self.relay(caller, RelayMethod::Call, incoming).await;
        }
        let result = self.answer_meta_tool(&caller, tool, &arguments).await?;
        Ok(translate::result(caller.era(), RelayMethod::Call, &result))
    }

    /// Whether a request continues a call that was made in meta mode, before a reload to direct
    /// mode: its state is one of this gateway, which is checked when the call is resumed, or a meta
    /// tool has shown the tool. The rules are those of a direct call of the same tool.
    fn is_continued(&self, caller: &Caller, incoming: &IncomingRequest) -> bool {
        let is_own = |state| own_state(state).is_some() || self.has_shown_target(caller, incoming);
        incoming.state.as_ref().is_some_and(is_own)
    }

    fn has_shown_target(&self, caller: &Caller, incoming: &IncomingRequest) -> bool {
        let arguments = incoming.params.get_unique("arguments").ok().flatten();
        let call = arguments.and_then(|arguments| CallArguments::read(&arguments).ok());
        let (client, owner) = shown_owner(caller);
        call.and_then(|call| call.name.as_str().map(Cow::into_owned)).is_some_and(|name| {
            let shown = self.shown_tools.of((&client, &owner), &name);
            !matches!(shown, ShownDefinition::Unknown)
        })
    }

    async fn answer_meta_tool(
        self: &Arc<Self>,
        caller: &Caller,
        tool: MetaTool,
        arguments: &Raw,
    ) -> Result<Raw, RpcError> {
        self.refresh_lists(&[ItemKind::Tool]).await;
        let revision = self.tool_revision();
        let (host, view, arguments) = (self.host.clone(), self.view(caller)?, arguments.clone());
        let slot = self.turn(caller).await?;
        // A task of its own, so that a cancelled request holds its slot until its work is over.
        let answer = tokio::spawn(async move {
            let answer = host.answer_meta_tool(&view, tool, &arguments).await;
            drop(slot);
            answer
        });
        let mut answer = answer.await.map_err(|_| handler_panicked())?;
        let (client, owner) = shown_owner(caller);
        let shown = std::mem::take(&mut answer.shown);
        self.shown_tools.record((&client, &owner), revision, shown);
        Ok(answer.to_result())
    }

    /// Whether a tool is still as a meta tool has shown it to the client. `None` if the last list
    /// decides: no meta tool has shown it, or only a line of a tool that may be in the list. What was
    /// forgotten concerns only clients that call through a meta tool: others have listed the tools,
    /// or were shown nothing.
    pub(crate) fn is_as_meta_tool_showed(
        &self,
        caller: &Caller,
        is_meta: bool,
        (view, entry): (&View, &Entry),
    ) -> Option<bool> {
        if self.shown_tools.is_unused() {
            return None;
        }
        let (client, owner) = shown_owner(caller);
        match self.shown_tools.of((&client, &owner), entry.exposed()) {
            ShownDefinition::Known(shown) if !shown.is_unchanged(view, entry) => Some(false),
            ShownDefinition::Known(ShownTool::Line(_)) if view.may_be_direct(entry) => None,
            ShownDefinition::Known(_) => Some(true),
            ShownDefinition::Forgotten(_) if !is_meta => None,
            ShownDefinition::Forgotten(shown) => {
                let newest = || self.host.catalog();
                Some(self.tool_revisions.is_unchanged(newest, entry.exposed(), shown))
            }
            ShownDefinition::Unknown => None,
        }
    }

    /// Forgets what meta tools have shown of the tools that a list shows.
    pub(crate) fn forget_listed(&self, caller: &Caller, view: &View) {
        if self.shown_tools.is_unused() {
            return;
        }
        let surface = view.surface();
        let is_listed = |name: &str| {
            view.route(ItemKind::Tool, name).is_ok_and(|entry| surface.is_direct(entry))
        };
        self.shown_tools.forget(&shown_owner(caller).0, is_listed);
    }
}

/// The client whose shown tools are remembered, and its principal.
fn shown_owner(caller: &Caller) -> (ClientId, Principal) {
    let client = match &caller.session {
        Some(session) => session.id.clone(),
        None => caller.list_id(),
    };
    let owner = caller.identity.principal.of_client(&client);
    (client, owner)
}
