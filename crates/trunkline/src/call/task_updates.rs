//! Updates of a task, for a subscriber.

use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::{CallError, Outcome, Route, outcome};
use crate::catalog::{Catalog, LookupWork};
use crate::config::Server;
use crate::connection::{RequestError, ServerNotification, TaskSubscription};
use crate::content::ResultKind;
use crate::message::{Notification, Raw};
use crate::principal::Requester;

/// Updates of a task (`notifications/tasks`), while this is held.
pub struct TaskUpdates {
    notifications: broadcast::Receiver<Arc<ServerNotification>>,
    subscription: TaskSubscription,
    server: Arc<Server>,
    catalog: Arc<Catalog>,
}

impl TaskUpdates {
    /// The next update, as callers see it: equivalent to the result of `tasks/get`. `None` if there
    /// will be no more. A slow subscriber misses updates, and can send `tasks/get`.
    pub async fn next(&mut self) -> Option<Outcome> {
        loop {
            match self.notifications.recv().await {
                Ok(said) => {
                    if let Some(said) = self.task_id(&said.notification) {
                        let (server, work) = (&self.server.name, LookupWork::default());
                        let exposed =
                            |uri: &str| self.catalog.exposed_uri_within(server, uri, &work);
                        let tells_apart = self.catalog.qualifies_uris();
                        let exposed: Option<super::ExposeUri<'_>> =
                            if tells_apart { Some(&exposed) } else { None };
                        return Some(outcome((ResultKind::Other, &said), &self.server, exposed));
                    }
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }

    fn task_id(&self, notification: &Notification) -> Option<Raw> {
        if &*notification.method != "notifications/tasks" {
            return None;
        }
        let said = notification.params.as_ref()?;
        let is_it = said.get("taskId")?.as_str().as_deref() == Some(self.subscription.id());
        // The upstream subscription ID in `_meta` is internal.
        is_it.then(|| said.without("_meta"))
    }
}

impl Route<'_> {
    /// Subscribes to updates of a task.
    pub(crate) async fn updates(
        &self,
        (task, requester): (&str, &Requester),
        catalog: Arc<Catalog>,
    ) -> Result<TaskUpdates, CallError> {
        // Before the subscription, so that no update is missed.
        let notifications = self.connection.notifications();
        let subscription = self.connection.subscribe_to_task(requester, task).await;
        let subscription = subscription.map_err(|error| match error {
            RequestError::Refused(error) => self.refused(&error),
            RequestError::Failed(error) => error.into(),
        })?;
        let server = Arc::clone(&self.server);
        Ok(TaskUpdates { notifications, subscription, server, catalog })
    }
}
