//! Dispatches every request to the handler of its method, for both transports and both eras.

use std::sync::Arc;

use trunkline::host::RelayMethod;
use trunkline::item::ItemKind;
use trunkline::message::Raw;
use trunkline::protocol::{Era, is_mcp_method};

use super::discover::discover_result;
use super::gateway::Gateway;
use super::item_tools::OwnTool;
use super::observe::ObservedRequest;
use super::request_log;
use super::subscribe::unsubscribe;
use crate::client::caller::Caller;
use crate::request::errors::{invalid, unknown_method};
use crate::request::incoming::IncomingRequest;
use crate::request::panics;
use crate::request::response::{ResultBody, RpcFuture, RpcResult};

/// Handles a request; a panic becomes an error response. Sessions are opened by the transport.
///
/// Boxed here, because the transports move the future several times.
pub(crate) fn handle(
    gateway: Arc<Gateway>,
    caller: Caller,
    incoming: Box<IncomingRequest>,
) -> RpcFuture {
    let span = request_log::request_span(&caller, &incoming);
    let observer = gateway.observer.clone();
    let observed = observer.map(|observer| ObservedRequest::new(observer, &caller, &incoming));
    let handling = panics::answer_or_error(dispatch(gateway, caller, incoming));
    match observed {
        Some(observed) => Box::pin(request_log::traced(span, observed.run(handling))),
        None => Box::pin(request_log::traced(span, handling)),
    }
}

async fn dispatch(
    gateway: Arc<Gateway>,
    caller: Caller,
    incoming: Box<IncomingRequest>,
) -> RpcResult {
    #[cfg(test)]
    assert_ne!(&*incoming.method, "test/panic");
    if !incoming.params.is_object() {
        return Err(invalid("`params` must be an object"));
    }
    incoming.check_progress_token()?;
    // Boxed, because the futures of the handlers are large and this one is moved several times.
    match RelayMethod::from_method(&incoming.method) {
        Some(RelayMethod::Call) => match OwnTool::named(&incoming) {
            Some(OwnTool::Meta(tool)) => {
                Box::pin(gateway.call_meta_tool(caller, tool, incoming)).await
            }
            Some(OwnTool::Item(tool)) => {
                Box::pin(gateway.call_item_tool(caller, tool, incoming)).await
            }
            None => gateway.relay(caller, RelayMethod::Call, incoming).await,
        },
        Some(relay_method) => gateway.relay(caller, relay_method, incoming).await,
        None => Box::pin(dispatch_local(gateway, caller, incoming)).await,
    }
}

/// Handles all requests that do not target one item of one server.
async fn dispatch_local(
    gateway: Arc<Gateway>,
    caller: Caller,
    incoming: Box<IncomingRequest>,
) -> RpcResult {
    let (method, params) = (&*incoming.method, &incoming.params);
    if let Some(kind) = ItemKind::ALL.into_iter().find(|kind| kind.list_method() == method) {
        return gateway.list(&caller, kind, params).await.map(ResultBody::from);
    }
    let result = match (caller.era(), method) {
        (Era::Legacy, "ping") => Ok(Raw::empty_object()),
        (Era::Legacy, "logging/setLevel") => gateway.set_level(&caller, params),
        (Era::Legacy, "resources/subscribe") => gateway.subscribe(&caller, params).await,
        (Era::Legacy, "resources/unsubscribe") => unsubscribe(&caller, params),
        (Era::Modern, "server/discover") => {
            gateway.instructions(&caller).await.map(discover_result)
        }
        (Era::Modern, "subscriptions/listen") => gateway.listen(&caller, &incoming).await,
        (Era::Modern, "tasks/get" | "tasks/update" | "tasks/cancel") => {
            return gateway.relay_task(caller, &incoming).await;
        }
        _ if is_mcp_method(method) => Err(unknown_method(method)),
        _ => return gateway.relay_custom(caller, &incoming).await,
    };
    result.map(ResultBody::from)
}
