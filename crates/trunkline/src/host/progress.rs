//! Progress of a call for the host that made it.

use crate::connection::{CallHandler, HandlerFuture, ServerRequest};
use crate::message::{Notification, Raw, RpcError};

pub(super) type ProgressFn<'c> = Box<dyn Fn(&Progress) + Send + Sync + 'c>;

/// Progress of a call, as its server reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The amount of work done so far.
    pub progress: f64,
    /// The total amount, if the server knows it.
    pub total: Option<f64>,
    /// A message for the user.
    pub message: Option<String>,
}

impl Progress {
    /// Parses the parameters of `notifications/progress`.
    pub fn from_params(params: &Raw) -> Option<Self> {
        let number = |key| params.get(key)?.as_value()?.as_f64();
        let message = params.get("message");
        Some(Self {
            progress: number("progress")?,
            total: number("total"),
            message: message.as_ref().and_then(Raw::as_str).map(Into::into),
        })
    }
}

/// Reports progress, and forwards everything else to the handler of the call.
pub(super) struct ProgressHandler<'c> {
    pub(super) inner: &'c dyn CallHandler,
    pub(super) on_progress: Option<ProgressFn<'c>>,
}

impl CallHandler for ProgressHandler<'_> {
    fn on_notification(&self, notification: &Notification) {
        let progress = (&*notification.method == "notifications/progress")
            .then(|| notification.params.as_ref().and_then(Progress::from_params));
        if let (Some(report), Some(Some(progress))) = (&self.on_progress, progress) {
            report(&progress);
        }
        self.inner.on_notification(notification);
    }

    fn on_server_request(&self, request: ServerRequest) -> HandlerFuture<'_> {
        self.inner.on_server_request(request)
    }

    fn on_request_declined(&self, error: &RpcError) {
        self.inner.on_request_declined(error);
    }

    fn cancel_params(&self) -> Option<Raw> {
        self.inner.cancel_params()
    }

    fn on_blocked(&self) {
        self.inner.on_blocked();
    }
}
