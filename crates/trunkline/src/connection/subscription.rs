//! Subscriptions to resources and tasks of a server, and the guards that hold them.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::principal::Requester;

/// The resource or task of a subscription.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SubscriptionSubject {
    /// A resource, by its URI.
    Resource(Arc<str>),
    /// A task, by the ID that the server gave it.
    Task(Arc<str>),
}

impl SubscriptionSubject {
    pub(super) fn resource(uri: &str) -> Self {
        Self::Resource(uri.into())
    }

    pub(super) fn task(id: &str) -> Self {
        Self::Task(id.into())
    }

    /// Its upstream URI or ID.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Resource(name) | Self::Task(name) => name,
        }
    }
}

/// A change in the holders of a subscription.
#[derive(Debug)]
pub(super) enum HoldChange {
    /// A client holds it, whether or not the server has been subscribed to.
    Begun(SubscriptionSubject, Requester),
    /// A holder dropped it.
    Over(SubscriptionSubject),
}

/// Channel on which holders report changes.
pub(super) type HoldSender = mpsc::UnboundedSender<Box<HoldChange>>;

/// Holds a subscription until it is dropped.
#[derive(Debug)]
pub(super) struct SubscriptionGuard {
    pub(super) subject: SubscriptionSubject,
    pub(super) holds: HoldSender,
}

impl SubscriptionGuard {
    /// Holds a subscription from now on, and reports it to the actor.
    pub(super) fn begin(
        subject: SubscriptionSubject,
        requester: Requester,
        holds: &HoldSender,
    ) -> Self {
        // A closed connection does not subscribe.
        let _ = holds.send(Box::new(HoldChange::Begun(subject.clone(), requester)));
        Self { subject, holds: holds.clone() }
    }
}

impl Drop for SubscriptionGuard {
    fn drop(&mut self) {
        // A closed connection does not unsubscribe.
        let _ = self.holds.send(Box::new(HoldChange::Over(self.subject.clone())));
    }
}

/// Holds a subscription to updates of a resource until it is dropped, also across restarts of the
/// server. The notifications arrive at
/// [`Connection::notifications`](super::Connection::notifications).
#[derive(Debug)]
pub struct ResourceSubscription(pub(super) SubscriptionGuard);

impl ResourceSubscription {
    /// The URI of the resource.
    pub fn uri(&self) -> &str {
        self.0.subject.name()
    }
}

/// Holds a subscription to updates of a task (`notifications/tasks`) until it is dropped. The
/// notifications arrive at [`Connection::notifications`](super::Connection::notifications).
#[derive(Debug)]
pub struct TaskSubscription(pub(super) SubscriptionGuard);

impl TaskSubscription {
    /// The ID of the task.
    pub fn id(&self) -> &str {
        self.0.subject.name()
    }
}
