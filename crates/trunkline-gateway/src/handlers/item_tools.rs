//! Calls of the tools for resources and prompts (TOOL-14). A read or a prompt becomes that request,
//! with the rules, progress, cancellation and input requests of a direct one.

use std::sync::Arc;

use trunkline::host::{MetaAnswer, RelayMethod};
use trunkline::message::{Raw, RpcError};
use trunkline::meta::{ItemListArguments, ItemRequest, ItemTool, MetaTool};
use trunkline::name::uri_without_credentials;

use super::gateway::Gateway;
use super::parking::own_state;
use super::request_log;
use crate::client::caller::Caller;
use crate::request::errors::{handler_panicked, invalid};
use crate::request::incoming::IncomingRequest;
use crate::request::response::RpcResult;
use crate::request::translate;

/// A tool of the gateway itself.
pub(crate) enum OwnTool {
    /// Of meta mode.
    Meta(MetaTool),
    /// For resources and prompts.
    Item(ItemTool),
}

impl OwnTool {
    /// The tool that a call names, if any.
    pub(crate) fn named(incoming: &IncomingRequest) -> Option<Self> {
        let name = incoming.subject()?;
        let item = || ItemTool::from_name(&name).map(Self::Item);
        MetaTool::from_name(&name).map(Self::Meta).or_else(item)
    }
}

impl Gateway {
    /// Handles a call that names a tool for resources or prompts. If the caller does not have it,
    /// the tool is unknown; if the name is written twice, the call is refused as any other.
    pub(crate) async fn call_item_tool(
        self: &Arc<Self>,
        caller: Caller,
        tool: ItemTool,
        incoming: Box<IncomingRequest>,
    ) -> RpcResult {
        let is_ambiguous = incoming.params.get_unique("name").is_err();
        // After a reload without the tool, a parked call still goes on; its state is checked then.
        let is_parked = incoming.state.as_ref().is_some_and(|state| own_state(state).is_some());
        let is_known = is_parked || self.view(&caller)?.surface().has_item_tool(tool);
        if is_ambiguous || !is_known {
            return self.relay(caller, RelayMethod::Call, incoming).await;
        }
        let arguments = incoming.params.get_unique("arguments");
        let arguments = arguments.map_err(|_| invalid("`arguments` is written twice"))?;
        let arguments = arguments.unwrap_or_else(Raw::empty_object);
        let answer = match ItemRequest::read(tool, &arguments) {
            Ok(ItemRequest::Read { uri }) => {
                request_log::record_target(&uri_without_credentials(
                    &uri.as_str().unwrap_or_default(),
                ));
                let incoming = incoming.with_item(&[("uri", &uri)]);
                return self.relay(caller, RelayMethod::Read, incoming).await;
            }
            Ok(ItemRequest::Prompt { name, arguments }) => {
                request_log::record_target(&name.as_str().unwrap_or_default());
                let arguments = arguments.as_ref().map(|arguments| ("arguments", arguments));
                let members: Vec<_> = [("name", &name)].into_iter().chain(arguments).collect();
                let incoming = incoming.with_item(&members);
                return self.relay(caller, RelayMethod::Prompt, incoming).await;
            }
            Ok(ItemRequest::List(wanted)) => self.list_items(&caller, tool, wanted).await?,
            Err(error) => MetaAnswer::from(error),
        };
        Ok(translate::result(caller.era(), RelayMethod::Call, &answer.to_result()))
    }

    async fn list_items(
        &self,
        caller: &Caller,
        tool: ItemTool,
        wanted: ItemListArguments,
    ) -> Result<MetaAnswer, RpcError> {
        self.refresh_lists(tool.kinds()).await;
        let (host, view) = (self.host.clone(), self.view(caller)?);
        let slot = self.turn(caller).await?;
        // A task of its own, so that a cancelled request holds its slot until its work is over.
        let answer = tokio::spawn(async move {
            let answer = host.list_items(&view, tool, wanted).await;
            drop(slot);
            answer
        });
        answer.await.map_err(|_| handler_panicked())
    }
}
