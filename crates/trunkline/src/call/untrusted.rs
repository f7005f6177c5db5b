//! Whoever attends to a call of an untrusted server, who hears nothing that deceives (TOOL-10).

use crate::clean::cleaned_json;
use crate::connection::{Answering, CallHandler, Question};
use crate::message::{Notification, Raw, RpcError};

/// An attendant that gets what a server tells and asks without what deceives.
pub(super) struct Cleaning<'c>(pub(super) &'c dyn CallHandler);

impl CallHandler for Cleaning<'_> {
    fn on_notification(&self, notification: &Notification) {
        let params = notification.params.as_ref().map(cleaned_json);
        self.0.on_notification(&Notification { params, ..notification.clone() });
    }

    fn wants_progress(&self) -> bool {
        self.0.wants_progress()
    }

    fn last_words(&self) -> Option<Raw> {
        self.0.last_words()
    }

    fn asked(&self, question: Question) -> Answering<'_> {
        let params = question.params.as_ref().map(cleaned_json);
        self.0.asked(Question { params, ..question })
    }

    fn ended_by(&self, refusal: &RpcError) {
        self.0.ended_by(refusal);
    }

    fn passed_over(&self) {
        self.0.passed_over();
    }
}
