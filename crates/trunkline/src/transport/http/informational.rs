//! Limits informational responses (1xx), which carry no information here and could continue for
//! ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::Request;
use hyper::ext::on_informational;
use tokio::sync::Notify;

/// Informational responses per request: one per second of a long call.
pub(in crate::transport) const MAX_PRELIMINARY: usize = 1000;

/// Informational responses to one request so far.
#[derive(Default)]
struct InformationalCount {
    came: AtomicUsize,
    too_many: Notify,
}

/// Reports when a request has received too many informational responses.
pub(in crate::transport) struct InformationalLimit(Arc<InformationalCount>);

impl InformationalLimit {
    /// Counts the informational responses to a request.
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

    /// Waits until the limit is exceeded.
    pub(in crate::transport) async fn too_many(&self) {
        self.0.too_many.notified().await;
    }
}
