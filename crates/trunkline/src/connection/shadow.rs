//! The public shadow of a task: what it says about its server while it works.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::handshake::Described;
use super::lists::{Tool, ToolList};
use super::session::Session;
use super::status::{State, Status};
use crate::error::Error;

/// The tools of a server, and until when they need not be asked for again.
#[derive(Clone)]
pub(super) struct Listed {
    pub(super) tools: Arc<[Tool]>,
    /// Nothing if they have to be asked for in any case.
    pub(super) fresh_until: Option<tokio::time::Instant>,
}

impl Listed {
    fn none() -> Self {
        Self { tools: Arc::new([]), fresh_until: None }
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.fresh_until.is_some_and(|until| tokio::time::Instant::now() < until)
    }
}

/// What everybody may know about a server. Only its task changes it, but for the count of failures.
pub(super) struct Shadow {
    status: watch::Sender<Status>,
    listed: watch::Sender<Listed>,
}

impl Shadow {
    /// A server that has not been started, with the tools it had at an earlier time.
    pub(super) fn new(remembered: Vec<Tool>) -> Self {
        let status = Status { tools: remembered.len(), ..Status::default() };
        let listed = Listed { tools: remembered.into(), fresh_until: None };
        Self { status: watch::Sender::new(status), listed: watch::Sender::new(listed) }
    }

    pub(super) fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    pub(super) fn state(&self) -> State {
        self.status.borrow().state
    }

    pub(super) fn watch(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    pub(super) fn listed(&self) -> Listed {
        self.listed.borrow().clone()
    }

    pub(super) fn watch_tools(&self) -> watch::Receiver<Listed> {
        self.listed.subscribe()
    }

    pub(super) fn starting(&self) {
        self.status.send_modify(|status| {
            status.state = State::Starting;
            status.next_attempt = None;
        });
    }

    pub(super) fn ready(&self, session: &Session, described: &Described) {
        self.status.send_modify(|status| {
            status.state = State::Ready;
            status.transport = Some(session.wire().transport());
            status.protocol = Some(session.generation.revision().into());
            status.server_info.clone_from(&described.server_info);
            status.capabilities.clone_from(&described.capabilities);
            status.instructions.clone_from(&described.instructions);
            status.last_error = None;
            status.process_id = session.wire().process_id();
            status.ready_since = Some(Instant::now());
        });
    }

    /// The list of tools is this, and holds for so long.
    pub(super) fn tools(&self, list: ToolList, ttl: Duration) {
        self.status.send_modify(|status| {
            status.tools = list.tools.len();
            status.set_aside = list.set_aside;
        });
        let fresh_until = tokio::time::Instant::now().checked_add(ttl);
        self.listed.send_replace(Listed { tools: list.tools.into(), fresh_until });
    }

    /// The list of tools may have changed.
    pub(super) fn tools_are_stale(&self) {
        self.listed.send_modify(|listed| listed.fresh_until = None);
    }

    /// What the server has said beside its messages.
    pub(super) fn noticed(&self, session: &Session) {
        self.status.send_modify(|status| {
            status.noise = session.noise;
            status.stderr = session.wire().last_lines();
        });
    }

    pub(super) fn called(&self) {
        self.status.send_modify(|status| status.calls += 1);
    }

    pub(super) fn call_failed(&self) {
        self.status.send_modify(|status| status.failures += 1);
    }

    /// Something went wrong that does not end the server.
    pub(super) fn trouble(&self, error: Error) {
        self.status.send_modify(|status| status.last_error = Some(error));
    }

    pub(super) fn not_remembered(&self, reason: Option<Box<str>>) {
        self.status.send_if_modified(|status| {
            let changed = status.not_remembered != reason;
            status.not_remembered = reason;
            changed
        });
    }

    /// It failed, and is perhaps started again by itself.
    pub(super) fn failed(&self, error: &Error, pause: Option<Duration>, restarts: u32) {
        self.listed.send_replace(Listed::none());
        self.status.send_modify(|status| {
            gone(status, State::Failed);
            status.tools = 0;
            status.last_error = Some(error.clone());
            status.next_attempt = pause.map(|pause| Instant::now() + pause);
            status.restarts = restarts;
        });
    }

    /// It is not needed at the moment. Its tools stay.
    pub(super) fn idle(&self) {
        self.status.send_modify(|status| gone(status, State::Idle));
    }

    /// It has been ended for good.
    pub(super) fn stopped(&self) {
        self.listed.send_replace(Listed::none());
        self.status.send_modify(|status| {
            gone(status, State::Stopped);
            status.next_attempt = None;
        });
    }
}

fn gone(status: &mut Status, state: State) {
    status.state = state;
    status.process_id = None;
    status.ready_since = None;
}
