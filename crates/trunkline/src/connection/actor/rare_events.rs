//! Events from outside that are rare while a server is used: cancellations, holders of subscriptions,
//! log levels, settings.

use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::{mpsc, watch};

use crate::config::ServerSettings;
use crate::connection::handler::CancelledRequest;
use crate::connection::state::log_level::RequestedLogLevel;
use crate::connection::subscription::{HoldChange, HoldSender};
use crate::wake_filter::WakeFilter;

/// An event from outside.
pub(in crate::connection) enum RareEvent {
    /// The caller of a request has stopped waiting.
    Cancelled(Box<CancelledRequest>),
    /// A holder of a subscription came or went.
    Hold(Box<HoldChange>),
    /// A client has requested a log level.
    LogLevel,
    /// The limits and settings have changed.
    Settings,
}

/// Channel on which callers report that they have stopped waiting.
pub(in crate::connection) type CancelSender = mpsc::UnboundedSender<Box<CancelledRequest>>;

/// Waits for rare events. Calls do not poll their sources. The channels hold pointers, because each allocates 32 messages
/// at once.
pub(in crate::connection) struct RareEvents {
    cancelled: mpsc::UnboundedReceiver<Box<CancelledRequest>>,
    holds: mpsc::UnboundedReceiver<Box<HoldChange>>,
    log_level: ChangeNotice<Option<RequestedLogLevel>>,
    settings: ChangeNotice<Arc<ServerSettings>>,
    filter: WakeFilter,
}

impl RareEvents {
    /// Changes of these values from now on, and events of two channels, whose senders are returned.
    pub(in crate::connection) fn channels(
        log_level: &watch::Sender<Option<RequestedLogLevel>>,
        settings: &watch::Sender<Arc<ServerSettings>>,
    ) -> (CancelSender, HoldSender, Self) {
        let (cancel, cancelled) = mpsc::unbounded_channel();
        let (hold, holds) = mpsc::unbounded_channel();
        let events = Self {
            cancelled,
            holds,
            log_level: ChangeNotice::new(log_level.subscribe()),
            settings: ChangeNotice::new(settings.subscribe()),
            filter: WakeFilter::default(),
        };
        (cancel, hold, events)
    }

    /// The next event. Cancel safe.
    pub(super) async fn next(&mut self) -> RareEvent {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &Context<'_>) -> Poll<RareEvent> {
        let Self { cancelled, holds, log_level, settings, filter } = self;
        filter.poll(context, |context| {
            if let Poll::Ready(Some(request)) = cancelled.poll_recv(context) {
                return Poll::Ready(RareEvent::Cancelled(request));
            }
            if let Poll::Ready(Some(hold)) = holds.poll_recv(context) {
                return Poll::Ready(RareEvent::Hold(hold));
            }
            if log_level.poll(context).is_ready() {
                return Poll::Ready(RareEvent::LogLevel);
            }
            settings.poll(context).map(|()| RareEvent::Settings)
        })
    }
}

/// Reports each change of a value. Its future is kept, because one that is dropped is not woken.
struct ChangeNotice<T> {
    next: Pin<Box<dyn Future<Output = watch::Receiver<T>> + Send>>,
}

impl<T: Send + Sync + 'static> ChangeNotice<T> {
    fn new(value: watch::Receiver<T>) -> Self {
        Self { next: Box::pin(changed(value)) }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let value = ready!(self.next.as_mut().poll(context));
        *self = Self::new(value);
        Poll::Ready(())
    }
}

/// Waits for a change, for ever if there will be none.
async fn changed<T>(mut value: watch::Receiver<T>) -> watch::Receiver<T> {
    match value.changed().await {
        Ok(()) => value,
        Err(_) => pending().await,
    }
}
