//! Questions that the client of a call cannot be asked, told apart from what the server refuses.

use std::sync::OnceLock;

use trunkline::connection::{Answering, CallHandler, Question};
use trunkline::message::{Notification, Raw, RpcError};
use trunkline::protocol::code;

use crate::caller::Attending;

/// Attends to a call for its caller, and notes if it is over because the caller could not be asked
/// something.
pub(crate) struct Noting<'a> {
    attending: &'a Attending,
    unable: OnceLock<RpcError>,
}

impl<'a> Noting<'a> {
    pub(crate) fn new(attending: &'a Attending) -> Self {
        Self { attending, unable: OnceLock::new() }
    }

    /// Why the caller could not be asked, if that ended the call: there is no such method at the
    /// client, which says nothing of the method that the client called.
    pub(crate) fn unable(&self) -> Option<&RpcError> {
        self.unable.get()
    }
}

impl CallHandler for Noting<'_> {
    fn on_notification(&self, notification: &Notification) {
        self.attending.on_notification(notification);
    }

    fn wants_progress(&self) -> bool {
        self.attending.wants_progress()
    }

    fn asked(&self, question: Question) -> Answering<'_> {
        self.attending.asked(question)
    }

    fn ended_by(&self, refusal: &RpcError) {
        if refusal.code() == code::METHOD_NOT_FOUND {
            let _ = self.unable.set(refusal.clone());
        }
    }

    fn last_words(&self) -> Option<Raw> {
        self.attending.last_words()
    }

    fn passed_over(&self) {
        self.attending.passed_over();
    }
}
