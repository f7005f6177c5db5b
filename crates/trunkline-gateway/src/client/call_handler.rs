//! Handler of one call: forwards notifications and server requests to the caller.

use std::sync::{Arc, OnceLock};

use trunkline::call::CallError;
use trunkline::connection::{CallHandler, HandlerFuture, ServerRequest};
use trunkline::message::{Notification, Raw, RpcError};
use trunkline::name::ServerName;
use trunkline::protocol::{ELICITATION_COMPLETE, code};

use super::caller::Caller;
use super::channel::ClientChannel;
use super::input_queue::InputQueue;
use super::log_filter;
use super::parked::ParkedCalls;
use super::url_elicitations::completed_id;
use crate::request::errors::unsupported_server_request;
use crate::request::incoming::ClientProfile;
use crate::request::translate::required_elicitations;

/// Forwards the notifications and server requests of one call to its caller.
pub(crate) struct RelayHandler {
    pub(crate) caller: Caller,
    /// Whether the caller requested progress notifications.
    pub(crate) follows: bool,
    /// Queue of server requests for a modern client, until it retries the call.
    pub(crate) inputs: Option<Arc<InputQueue>>,
    /// The server of the call, once it is resolved.
    pub(crate) server: Option<ServerName>,
    /// Parked calls, which may block its server requests.
    pub(crate) parked: Arc<ParkedCalls>,
    /// Error for a server request that the client does not support, if it ended the call.
    declined: OnceLock<RpcError>,
}

impl RelayHandler {
    pub(crate) fn new(
        caller: Caller,
        follows: bool,
        inputs: Option<Arc<InputQueue>>,
        parked: Arc<ParkedCalls>,
    ) -> Self {
        Self { caller, follows, inputs, server: None, parked, declined: OnceLock::new() }
    }

    /// Error for a server request that the client does not support, if it ended the call. Its
    /// "method not found" is about the server request, not about the method that the client called.
    pub(crate) fn declined(&self) -> Option<&RpcError> {
        self.declined.get()
    }

    /// Sets the server of the call.
    pub(crate) fn with_server(mut self: Box<Self>, server: Option<&ServerName>) -> Box<Self> {
        if let (Some(inputs), Some(server)) = (&self.inputs, server) {
            inputs.set_server(server);
        }
        self.server = server.cloned();
        self
    }

    /// The channel to the client, which changes with each retry.
    fn channel(&self) -> ClientChannel {
        self.inputs.as_ref().map_or_else(|| self.caller.channel.clone(), |inputs| inputs.channel())
    }

    /// Records a URL elicitation, to deliver its completion later.
    fn note_url_elicitation(&self, elicitation: &Raw, channel: Option<&ClientChannel>) {
        if let (Some(session), Some(server)) = (&self.caller.session, &self.server) {
            session.elicitations.add(server, elicitation, channel);
        }
    }

    /// Delivers the completion of a URL elicitation of this session. The handlers of all calls
    /// of the server receive it, before their responses; the session delivers it once.
    fn on_elicitation_complete(&self, notification: &Notification) {
        let (Some(session), Some(server)) = (&self.caller.session, &self.server) else { return };
        if completed_id(notification).is_some_and(|id| session.elicitations.contains(server, &id)) {
            session.tell(server, notification);
        }
    }

    /// Records the URL elicitations that an error requires.
    pub(crate) fn on_error(&self, error: &CallError) {
        let elicitations = error.refusal().map(required_elicitations).unwrap_or_default();
        elicitations.iter().for_each(|elicitation| self.note_url_elicitation(elicitation, None));
    }
}

impl CallHandler for RelayHandler {
    fn wants_progress(&self) -> bool {
        self.follows
    }

    fn on_notification(&self, notification: &Notification) {
        let is_wanted = match &*notification.method {
            "notifications/progress" => self.follows,
            "notifications/message" => log_filter::is_wanted(notification, self.caller.level),
            // Notifications about no call are delivered elsewhere.
            "notifications/cancelled"
            | "notifications/resources/updated"
            | "notifications/tasks" => false,
            ELICITATION_COMPLETE => return self.on_elicitation_complete(notification),
            method => !method.ends_with("/list_changed"),
        };
        if is_wanted {
            self.channel().notify(notification.clone());
        }
    }

    fn on_server_request(&self, request: ServerRequest) -> HandlerFuture<'_> {
        Box::pin(async move {
            require_capability(&self.caller.client, &request)?;
            match &self.inputs {
                Some(inputs) => inputs.ask(request).await,
                None => {
                    if let Some(elicitation) =
                        request.params.as_ref().filter(|_| is_url_elicitation(&request))
                    {
                        self.note_url_elicitation(elicitation, Some(&self.caller.channel));
                    }
                    self.caller.channel.ask(to_legacy_request(request)).await
                }
            }
        })
    }

    fn on_request_declined(&self, refusal: &RpcError) {
        if refusal.code() == code::METHOD_NOT_FOUND {
            let _ = self.declined.set(refusal.clone());
        }
    }

    fn cancel_params(&self) -> Option<Raw> {
        self.channel().cancel_params()
    }

    fn on_blocked(&self) {
        if let Some(server) = &self.server {
            self.parked.shorten_waits(server);
        }
    }
}

/// Fails if the client does not support the server request.
pub(crate) fn require_capability(
    client: &ClientProfile,
    request: &ServerRequest,
) -> Result<(), RpcError> {
    let is_offered = match &*request.method {
        "elicitation/create" if is_url_elicitation(request) => {
            client.declares(&["elicitation", "url"])
        }
        // Without modes, elicitation means forms, which existed before URL elicitation.
        "elicitation/create" => {
            client.declares(&["elicitation"])
                && (client.declares(&["elicitation", "form"])
                    || !client.declares(&["elicitation", "url"]))
        }
        "sampling/createMessage" => client.declares(&["sampling"]),
        "roots/list" => client.declares(&["roots"]),
        _ => false,
    };
    if is_offered {
        return Ok(());
    }
    Err(unsupported_server_request(&request.method))
}

/// Adds the `elicitationId` that legacy clients expect.
pub(crate) fn to_legacy_request(request: ServerRequest) -> ServerRequest {
    let needs_id = is_url_elicitation(&request)
        && request.params.as_ref().is_some_and(|it| it.get("elicitationId").is_none());
    if !needs_id {
        return request;
    }
    let id = Raw::from_string(&crate::client::state_codec::random_id());
    let params = request.params.map(|params| params.with("elicitationId", &id));
    ServerRequest { params, ..request }
}

/// Whether the request is a URL elicitation.
fn is_url_elicitation(request: &ServerRequest) -> bool {
    let mode = request.params.as_ref().and_then(|params| params.get("mode"));
    mode.as_ref().and_then(Raw::as_str).as_deref() == Some("url")
}
