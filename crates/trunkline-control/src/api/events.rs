//! `/events`: one stream of all changes, as server-sent events with IDs.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::Stream;
use futures_util::stream::{self, StreamExt as _};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::{servers, trust};
use crate::control::Control;
use crate::events::{ChangeSource, EventHub, follow};
use crate::source::OpenProject;
use crate::types::{Call, Change, Server, TrustRequest};

/// Time between two comments on a quiet stream, so that a broken connection is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(super) async fn stream(
    State(control): State<Control>,
    headers: HeaderMap,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let since = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    // An ID that is none is one of another process.
    let since = since.map(|id| id.parse().unwrap_or(u64::MAX));
    let (missed, receiver) = control.events().listen(since);
    follow(Arc::new(control.clone()));
    let missed = stream::iter(missed).map(Ok);
    let changes =
        missed.chain(stream::unfold(receiver, next)).map(|change| change.map(|it| event(&it)));
    // Keeps the control, and with it the projects, only as long as the stream is read.
    let changes = WithControl { _control: control, changes: changes.boxed() };
    Sse::new(changes).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

async fn next(
    mut receiver: Receiver<Arc<Change>>,
) -> Option<(Result<Arc<Change>, Infallible>, Receiver<Arc<Change>>)> {
    match receiver.recv().await {
        Ok(change) => Some((Ok(change), receiver)),
        // Ends the stream: the client comes back with its last ID, and receives the missed events.
        Err(RecvError::Lagged(_) | RecvError::Closed) => None,
    }
}

fn event(change: &Change) -> Event {
    let event = Event::default().id(change.id.to_string()).event(&change.kind);
    let data = serde_json::to_string(change).unwrap_or_default();
    event.data(data)
}

struct WithControl<S> {
    _control: Control,
    changes: S,
}

impl<S: Stream + Unpin> Stream for WithControl<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.changes.poll_next_unpin(context)
    }
}

impl ChangeSource for Control {
    fn projects(&self) -> Vec<OpenProject> {
        self.source().projects()
    }

    fn servers(&self, projects: &[OpenProject]) -> Vec<Server> {
        servers::all(projects)
    }

    fn calls_since(&self, id: u64) -> Vec<Call> {
        let mut calls = self.activity().recent_calls(None, usize::MAX, |call| call.id > id);
        // Events are kept; payloads are in the list of calls.
        calls.iter_mut().for_each(|call| (call.arguments, call.result) = (None, None));
        calls
    }

    fn last_call(&self) -> u64 {
        self.activity().last_call()
    }

    async fn trust(&self) -> Vec<TrustRequest> {
        trust::requests(self).await
    }

    fn hub(&self) -> &EventHub {
        self.events()
    }
}
