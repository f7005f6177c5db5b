//! What of a server somebody wants to hear of, and what they hold meanwhile.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::principal::Requester;

/// Something of a server of which somebody wants to hear.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    /// A resource, by its address.
    Resource(Arc<str>),
    /// A task, by the id the server gave it.
    Task(Arc<str>),
}

impl Subject {
    pub(super) fn resource(uri: &str) -> Self {
        Self::Resource(uri.into())
    }

    pub(super) fn task(id: &str) -> Self {
        Self::Task(id.into())
    }

    /// What the server calls it.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Resource(name) | Self::Task(name) => name,
        }
    }
}

/// What becomes of something that somebody holds.
#[derive(Debug)]
pub(super) enum Hold {
    /// It is held for a client, whether or not the server has been asked.
    Begun(Subject, Requester),
    /// One who held it does not any more.
    Over(Subject),
}

/// Where those who hold something say so.
pub(super) type Holds = mpsc::UnboundedSender<Hold>;

/// While it is held, the server is asked to say what becomes of something.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) subject: Subject,
    pub(super) holds: Holds,
}

impl Held {
    /// Holds something from now on, and says so.
    pub(super) fn begin(subject: Subject, requester: Requester, holds: &Holds) -> Self {
        // A connection that is over asks for nothing.
        let _ = holds.send(Hold::Begun(subject.clone(), requester));
        Self { subject, holds: holds.clone() }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A connection that is over has nothing to take back.
        let _ = self.holds.send(Hold::Over(self.subject.clone()));
    }
}

/// While it is held, the server is asked to say when a resource changes, also after it has been
/// started again. What it says comes with
/// [`Connection::notifications`](super::Connection::notifications).
#[derive(Debug)]
pub struct ResourceSubscription(pub(super) Held);

impl ResourceSubscription {
    /// The address of the resource.
    pub fn uri(&self) -> &str {
        self.0.subject.name()
    }
}

/// While it is held, the server is asked to say what becomes of a task (`notifications/tasks`). What
/// it says comes with [`Connection::notifications`](super::Connection::notifications).
#[derive(Debug)]
pub struct TaskSubscription(pub(super) Held);

impl TaskSubscription {
    /// The id of the task.
    pub fn id(&self) -> &str {
        self.0.subject.name()
    }
}
