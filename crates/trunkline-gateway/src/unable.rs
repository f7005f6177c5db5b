//! Questions that the client of a call cannot be asked, told apart from what the server refuses.

use std::sync::{Mutex, PoisonError};

use trunkline::call::{CallError, CallErrorKind};
use trunkline::connection::{Answering, Attendant, Question};
use trunkline::message::{Notification, Raw, RpcError, code};

use crate::caller::Attending;

/// Attends to a call for its caller, and notes why the caller could not be asked something.
pub(crate) struct Noting<'a> {
    attending: &'a Attending,
    unable: Mutex<Option<RpcError>>,
}

impl<'a> Noting<'a> {
    pub(crate) fn new(attending: &'a Attending) -> Self {
        Self { attending, unable: Mutex::default() }
    }

    /// Why the caller could not be asked, if that is what an error comes from: there is no such
    /// method at the client, which says nothing of the method that the client called.
    pub(crate) fn unable(&self, error: &CallError) -> Option<RpcError> {
        let is_refused = error.kind() == CallErrorKind::Refused(code::METHOD_NOT_FOUND);
        let unable = self.unable.lock().unwrap_or_else(PoisonError::into_inner);
        unable.clone().filter(|_| is_refused)
    }
}

impl Attendant for Noting<'_> {
    fn told(&self, notification: &Notification) {
        self.attending.told(notification);
    }

    fn wants_progress(&self) -> bool {
        self.attending.wants_progress()
    }

    fn asked(&self, question: Question) -> Answering<'_> {
        Box::pin(async move {
            let answer = self.attending.asked(question).await;
            if let Err(error) = &answer
                && error.code() == code::METHOD_NOT_FOUND
            {
                let mut unable = self.unable.lock().unwrap_or_else(PoisonError::into_inner);
                *unable = Some(error.clone());
            }
            answer
        })
    }

    fn last_words(&self) -> Option<Raw> {
        self.attending.last_words()
    }

    fn passed_over(&self) {
        self.attending.passed_over();
    }
}
