//! Subscriptions to resources and tasks of a server.

use tokio::sync::oneshot;

use crate::connection::actor::Command;
use crate::connection::handler::untrusted;
use crate::connection::subscription::{SubscriptionGuard, SubscriptionSubject};
use crate::connection::{Connection, RequestError, ResourceSubscription, TaskSubscription};
use crate::principal::Requester;

impl Connection {
    /// Subscribes to updates of a resource, starting the server if needed. While the subscription
    /// is held, it is renewed after every restart, and the server is not stopped for being idle.
    ///
    /// A server that rejects or does not support subscriptions is [`RequestError::Refused`].
    pub async fn subscribe(&self, uri: &str) -> Result<ResourceSubscription, RequestError> {
        self.subscribe_for(&Requester::default(), uri).await
    }

    /// Subscribes on behalf of a client. Uses the share of the client's principal of the
    /// subscription limit, and server messages about it reach no other client.
    pub async fn subscribe_for(
        &self,
        requester: &Requester,
        uri: &str,
    ) -> Result<ResourceSubscription, RequestError> {
        self.hold(SubscriptionSubject::resource(uri), requester).await.map(ResourceSubscription)
    }

    /// Re-registers an existing subscription. Does not fail if the server is down: it is subscribed
    /// once the server is ready, and a remote server is retried until it is.
    pub fn resubscribe(&self, requester: &Requester, uri: &str) -> ResourceSubscription {
        let subject = SubscriptionSubject::resource(uri);
        ResourceSubscription(SubscriptionGuard::begin(subject, requester.clone(), &self.holds))
    }

    /// Subscribes to updates of a task, by the ID that the server gave it. Otherwise like
    /// [`subscribe`](Self::subscribe); legacy servers do not support it.
    pub async fn subscribe_to_task(
        &self,
        requester: &Requester,
        id: &str,
    ) -> Result<TaskSubscription, RequestError> {
        self.hold(SubscriptionSubject::task(id), requester).await.map(TaskSubscription)
    }

    async fn hold(
        &self,
        subject: SubscriptionSubject,
        requester: &Requester,
    ) -> Result<SubscriptionGuard, RequestError> {
        let (reply, given) = oneshot::channel();
        self.send_command(Command::Subscribe(Box::new((subject, requester.clone())), reply))
            .await?;
        let server = &self.server;
        let sanitized = |error| untrusted::sanitized_error(server.trust, error);
        self.within_timeout(given).await.map_err(|error: RequestError| {
            error.map_refusal(sanitized).map_failure(|error| error.of(&server.name))
        })
    }
}
