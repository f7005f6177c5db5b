//! What of a server somebody wants to hear of, and what they hold meanwhile.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::principal::Requester;

/// Something of a server of which somebody wants to hear.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SubscriptionSubject {
    /// A resource, by its address.
    Resource(Arc<str>),
    /// A task, by the id the server gave it.
    Task(Arc<str>),
}

impl SubscriptionSubject {
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
pub(super) enum HoldChange {
    /// It is held for a client, whether or not the server has been asked.
    Begun(SubscriptionSubject, Requester),
    /// One who held it does not any more.
    Over(SubscriptionSubject),
}

/// Where those who hold something say so.
pub(super) type HoldSender = mpsc::UnboundedSender<HoldChange>;

/// While it is held, the server is asked to say what becomes of something.
#[derive(Debug)]
pub(super) struct SubscriptionGuard {
    pub(super) subject: SubscriptionSubject,
    pub(super) holds: HoldSender,
}

impl SubscriptionGuard {
    /// Holds something from now on, and says so.
    pub(super) fn begin(
        subject: SubscriptionSubject,
        requester: Requester,
        holds: &HoldSender,
    ) -> Self {
        // A connection that is over asks for nothing.
        let _ = holds.send(HoldChange::Begun(subject.clone(), requester));
        Self { subject, holds: holds.clone() }
    }
}

impl Drop for SubscriptionGuard {
    fn drop(&mut self) {
        // A connection that is over has nothing to take back.
        let _ = self.holds.send(HoldChange::Over(self.subject.clone()));
    }
}

/// While it is held, the server is asked to say when a resource changes, also after it has been
/// started again. What it says comes with
/// [`Connection::notifications`](super::Connection::notifications).
#[derive(Debug)]
pub struct ResourceSubscription(pub(super) SubscriptionGuard);

impl ResourceSubscription {
    /// The address of the resource.
    pub fn uri(&self) -> &str {
        self.0.subject.name()
    }
}

/// While it is held, the server is asked to say what becomes of a task (`notifications/tasks`). What
/// it says comes with [`Connection::notifications`](super::Connection::notifications).
#[derive(Debug)]
pub struct TaskSubscription(pub(super) SubscriptionGuard);

impl TaskSubscription {
    /// The id of the task.
    pub fn id(&self) -> &str {
        self.0.subject.name()
    }
}
