//! Limits informational responses (1xx), which carry no information here and could continue for
//! ever.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use futures_util::task::AtomicWaker;
use hyper::Request;
use hyper::ext::on_informational;

/// Informational responses per request: one per second of a long call.
pub(in crate::transport) const MAX_PRELIMINARY: usize = 1000;

/// Informational responses to one request so far.
#[derive(Default)]
struct InformationalCount {
    came: AtomicUsize,
    /// The task that waits for the final response.
    task: AtomicWaker,
}

/// Counts the informational responses to a request.
pub(in crate::transport) struct InformationalLimit(Arc<InformationalCount>);

impl InformationalLimit {
    /// Counts the informational responses to a request.
    pub(in crate::transport) fn to<B>(request: &mut Request<B>) -> Self {
        let count = Arc::new(InformationalCount::default());
        let counted = Arc::clone(&count);
        on_informational(request, move |_| {
            if count.came.fetch_add(1, Ordering::Relaxed) == MAX_PRELIMINARY {
                count.task.wake();
            }
        });
        Self(counted)
    }

    /// Waits for the final response; `None` if too many informational ones come first.
    pub(in crate::transport) async fn apply<T>(
        &self,
        response: impl Future<Output = T>,
    ) -> Option<T> {
        let mut response = pin!(response);
        poll_fn(|context| {
            if let Poll::Ready(response) = response.as_mut().poll(context) {
                return Poll::Ready(Some(response));
            }
            self.0.task.register(context.waker());
            match self.0.came.load(Ordering::Relaxed) > MAX_PRELIMINARY {
                true => Poll::Ready(None),
                false => Poll::Pending,
            }
        })
        .await
    }
}
