//! Server requests of one call that the handler is working on.
//!
//! They are polled by the future of their call, and are dropped with it. Server requests that belong to
//! no call have no such future, so that the session spawns them (`UnboundRequests`).

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;

use crate::connection::handler::{CallHandler, ServerRequest, answer_within};
use crate::message::{Id, Request, Response, RpcError};
use crate::name::ServerName;

/// A response, and the session that it belongs to.
type SessionResponse = (u64, Response);

/// Pending responses to server requests. Dropping them cancels all handling.
pub(in crate::connection) struct InputResponses<'a> {
    handler: &'a dyn CallHandler,
    /// The server that sends them.
    server: &'a ServerName,
    /// Timeout of each.
    bound: Duration,
    /// Most servers send no requests.
    thinking: Option<FuturesUnordered<Abortable<BoxFuture<'a, SessionResponse>>>>,
    open: Vec<(Id, AbortHandle)>,
}

impl<'a> InputResponses<'a> {
    pub(in crate::connection) fn new(
        handler: &'a dyn CallHandler,
        server: &'a ServerName,
        bound: Duration,
    ) -> Self {
        Self { handler, server, bound, thinking: None, open: Vec::new() }
    }

    /// Starts the handler for a server request of a session.
    pub(in crate::connection) fn begin(&mut self, session: u64, request: Request) {
        let (handler, bound, Request { id, method, params }) = (self.handler, self.bound, request);
        let request = ServerRequest { server: self.server.clone(), method, params };
        let (end, ended) = AbortHandle::new_pair();
        self.open.push((id.clone(), end));
        let answer: BoxFuture<'a, SessionResponse> = Box::pin(async move {
            let answer = answer_within(bound, handler, request).await;
            (session, Response { id, outcome: answer.map_err(RpcError::from) })
        });
        self.thinking.get_or_insert_default().push(Abortable::new(answer, ended));
    }

    /// Cancels the handling of a server request that the server cancelled.
    pub(in crate::connection) fn end(&mut self, id: &Id) {
        for (_, end) in self.open.extract_if(.., |(open, _)| open == id) {
            end.abort();
        }
    }

    /// Whether no server request is being handled.
    pub(in crate::connection) fn are_finished(&self) -> bool {
        self.thinking.is_none()
    }

    /// Waits until the handling of a server request has ended; `None` if it was cancelled. Waits
    /// for ever if there is none. Cancel safe.
    pub(in crate::connection) async fn next(&mut self) -> Option<SessionResponse> {
        let Some(thinking) = &mut self.thinking else { return std::future::pending().await };
        let ended = thinking.next().await;
        self.thinking.take_if(|thinking| thinking.is_empty());
        let (session, response) = ended?.ok()?;
        self.open.retain(|(id, _)| *id != response.id);
        Some((session, response))
    }
}
