//! The cancellation of one request by its client.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use trunkline::message::Raw;

/// Limit of the parameters of a cancellation in bytes. A reason is a sentence; a longer one is not
/// forwarded, only the cancellation itself.
const MAX_PARAMS_BYTES: usize = 4 * 1024;

/// Whether a client has cancelled a request. Clones are about the same request.
#[derive(Clone, Default)]
pub(crate) struct Cancellation(Arc<CancellationState>);

#[derive(Default)]
struct CancellationState {
    is_requested: AtomicBool,
    /// The task that handles the request.
    handler: AtomicWaker,
    /// The parameters of `notifications/cancelled`, if it has any.
    params: OnceLock<Raw>,
}

impl Cancellation {
    /// Cancels the request, with the parameters of the client's `notifications/cancelled`.
    pub(crate) fn request(&self, params: Option<&Raw>) {
        if let Some(params) = params.filter(|it| it.bytes().len() <= MAX_PARAMS_BYTES) {
            let _ = self.0.params.set(params.detached());
        }
        self.0.is_requested.store(true, Ordering::Release);
        self.0.handler.wake();
    }

    /// Ready once the request is cancelled. Only the last task that polled this is woken.
    pub(crate) fn poll_requested(&self, context: &Context<'_>) -> Poll<()> {
        let is_requested = || self.0.is_requested.load(Ordering::Acquire);
        if is_requested() {
            return Poll::Ready(());
        }
        self.0.handler.register(context.waker());
        // It may have been requested before the task was registered.
        if is_requested() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// The parameters of the client's `notifications/cancelled`.
    pub(crate) fn params(&self) -> Option<Raw> {
        self.0.params.get().cloned()
    }

    /// Whether both are about the same request.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
