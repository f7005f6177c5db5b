//! Who has called a server of late: for what it says after the answer, or without saying about what.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use trunkline::message::{Message, Notification};
use trunkline::name::ServerName;

use crate::level;
use crate::session::Session;

/// How long a call is remembered.
const WINDOW: Duration = Duration::from_secs(5);

/// The last callers of servers.
#[derive(Default)]
pub(crate) struct Recent {
    calls: Mutex<HashMap<ServerName, Last>>,
}

struct Last {
    session: Weak<Session>,
    at: Instant,
    /// When another session called, if one did.
    other: Option<Instant>,
}

impl Recent {
    /// Notes that a session calls a server.
    pub(crate) fn note(&self, server: &ServerName, session: &Arc<Session>) {
        let now = Instant::now();
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        match calls.get_mut(server) {
            Some(last) => {
                if !std::ptr::eq(last.session.as_ptr(), Arc::as_ptr(session)) {
                    last.other = Some(last.at);
                    last.session = Arc::downgrade(session);
                }
                last.at = now;
            }
            None => {
                let last = Last { session: Arc::downgrade(session), at: now, other: None };
                calls.insert(server.clone(), last);
            }
        }
    }

    /// Passes on a line of a server's log that belongs to no request, if it can only be about the
    /// calls of one session. Nobody learns what others do.
    pub(crate) fn pass_on(&self, server: &ServerName, notification: &Notification) {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = |at: Instant| at.elapsed() < WINDOW;
        let last = calls.get(server).filter(|last| is_fresh(last.at));
        let last = last.filter(|last| !last.other.is_some_and(is_fresh));
        let session = last.and_then(|last| last.session.upgrade());
        drop(calls);
        let Some(session) = session else { return };
        if level::is_wanted(notification, Some(session.level())) {
            (session.standing)(Message::Notification(notification.clone()).write());
        }
    }
}
