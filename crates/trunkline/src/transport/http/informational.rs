//! Answers that come before the answer (1xx): they say nothing to us, and need not end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::Request;
use hyper::ext::on_informational;
use tokio::sync::Notify;

/// How many may come to one request: as many as there are seconds in a long call.
pub(in crate::transport) const MAX_PRELIMINARY: usize = 1000;

/// Those that have come to one request.
#[derive(Default)]
struct InformationalCount {
    came: AtomicUsize,
    too_many: Notify,
}

/// Says when too many of them have come to a request.
pub(in crate::transport) struct InformationalLimit(Arc<InformationalCount>);

impl InformationalLimit {
    /// Counts those that come to a request.
    pub(in crate::transport) fn to<B>(request: &mut Request<B>) -> Self {
        let count = Arc::new(InformationalCount::default());
        let counted = Arc::clone(&count);
        on_informational(request, move |_| {
            if count.came.fetch_add(1, Ordering::Relaxed) == MAX_PRELIMINARY {
                count.too_many.notify_one();
            }
        });
        Self(counted)
    }

    /// Waits until too many have come.
    pub(in crate::transport) async fn too_many(&self) {
        self.0.too_many.notified().await;
    }
}
