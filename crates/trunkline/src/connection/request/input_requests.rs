//! What a server asks in the course of one request, while somebody thinks about it.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;

use crate::connection::handler::{CallHandler, ServerRequest, answer_within};
use crate::message::{Id, Request, Response};

/// An answer, and the conversation with the server in which it is one.
type SessionResponse = (u64, Response);

/// The answers to what a server asks. Dropping them ends all thinking about them.
pub(in crate::connection) struct InputResponses<'a> {
    handler: &'a dyn CallHandler,
    /// How long each may take.
    bound: Duration,
    /// Most servers ask nothing.
    thinking: Option<FuturesUnordered<Abortable<BoxFuture<'a, SessionResponse>>>>,
    open: Vec<(Id, AbortHandle)>,
}

impl<'a> InputResponses<'a> {
    pub(in crate::connection) fn new(handler: &'a dyn CallHandler, bound: Duration) -> Self {
        Self { handler, bound, thinking: None, open: Vec::new() }
    }

    /// Lets the attendant think about a question that the server asks in a conversation.
    pub(in crate::connection) fn begin(&mut self, session: u64, request: Request) {
        let (handler, bound, Request { id, method, params }) = (self.handler, self.bound, request);
        let (end, ended) = AbortHandle::new_pair();
        self.open.push((id.clone(), end));
        let answer: BoxFuture<'a, SessionResponse> = Box::pin(async move {
            let answer = answer_within(bound, handler, ServerRequest { method, params }).await;
            let outcome = answer.unwrap_or_else(|late| Err(late.into()));
            (session, Response { id, outcome })
        });
        self.thinking.get_or_insert_default().push(Abortable::new(answer, ended));
    }

    /// Ends the thinking about a question that the server does not wait for any more.
    pub(in crate::connection) fn end(&mut self, id: &Id) {
        for (_, end) in self.open.extract_if(.., |(open, _)| open == id) {
            end.abort();
        }
    }

    /// Whether nobody thinks about anything.
    pub(in crate::connection) fn are_finished(&self) -> bool {
        self.thinking.is_none()
    }

    /// Waits until the thinking about a question has ended, with an answer if it has not been ended. For
    /// ever, if there is none. May be dropped at any time.
    pub(in crate::connection) async fn next(&mut self) -> Option<SessionResponse> {
        let Some(thinking) = &mut self.thinking else { return std::future::pending().await };
        let ended = thinking.next().await;
        self.thinking.take_if(|thinking| thinking.is_empty());
        let (session, response) = ended?.ok()?;
        self.open.retain(|(id, _)| *id != response.id);
        Some((session, response))
    }
}
