//! The resource subscriptions of one client, and the upstream connection that notifies of each.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use trunkline::config::Share;
use trunkline::connection::{Connection, RequestError, ResourceSubscription};
use trunkline::message::{Notification, Raw, RpcError};
use trunkline::name::ServerName;
use trunkline::principal::Requester;

use super::{lock, updated};
use crate::request::errors::{invalid, not_subscribed};

/// Limit of resource subscriptions per client.
pub(crate) const MAX_ADDRESSES: usize = 1000;

/// Limit on the bytes of their URIs, exposed and upstream.
const MAX_ADDRESS_BYTES: usize = 2 * 1024 * 1024;

/// Moves a client's subscriptions to the current connection of a server, if they are on another
/// connection of one of these sources.
pub(crate) fn resubscribe(
    subscriptions: &Arc<ResourceSubscriptions>,
    (connection, source): (&Arc<Connection>, NotificationSource),
    before: &[NotificationSource],
) {
    for uri in subscriptions.of_others(connection, before) {
        let (subscriptions, connection) = (Arc::clone(subscriptions), Arc::clone(connection));
        tokio::spawn(async move { subscriptions.renew((&connection, source), uri).await });
    }
}

/// The kind of server that sends the updates of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotificationSource {
    /// The shared server.
    Shared,
    /// The client's dedicated server.
    Dedicated,
}

impl NotificationSource {
    pub(crate) const ALL: [Self; 2] = [Self::Shared, Self::Dedicated];

    /// The sources that a shared server replaces. A dedicated process replaces it at the next call.
    pub(super) fn before_shared(share: Share) -> &'static [Self] {
        match share {
            Share::PerClient => &[Self::Shared],
            Share::All | Share::PerProject => &Self::ALL,
        }
    }
}

/// A server and an upstream URI.
type SubscriptionKey = (ServerName, String);

/// The resource subscriptions of a client.
pub(crate) struct ResourceSubscriptions {
    /// The client.
    requester: Requester,
    wanted: Mutex<HashMap<SubscriptionKey, ResourceEntry>>,
    next_number: AtomicU64,
}

struct ResourceEntry {
    /// Distinguishes a subscription from a later one to the same resource.
    number: u64,
    /// The exposed URI.
    address: String,
    source: NotificationSource,
    /// The source that replaces it once it confirms. Updates may arrive before the confirmation.
    next: Option<NotificationSource>,
    connection: Weak<Connection>,
    /// The upstream subscription, once it is confirmed.
    subscription: Option<ResourceSubscription>,
    /// Number of pending requests to the server.
    pending: usize,
}

impl ResourceEntry {
    fn is_of(&self, connection: &Arc<Connection>) -> bool {
        std::ptr::eq(self.connection.as_ptr(), Arc::as_ptr(connection))
    }
}

impl ResourceSubscriptions {
    /// Creates an empty set.
    pub(crate) fn of(requester: Requester) -> Self {
        Self { requester, wanted: Mutex::default(), next_number: AtomicU64::default() }
    }

    /// Subscribes to a resource of a server.
    pub(crate) async fn add(
        &self,
        from: (&Arc<Connection>, NotificationSource),
        uri: String,
        address: String,
    ) -> Result<(), RpcError> {
        let Some(pending) = self.request(from, uri, Some(address))? else { return Ok(()) };
        match pending.subscribed().await {
            Ok(subscription) => pending.agreed(subscription),
            Err(RequestError::Refused(error)) => return Err(error),
            Err(RequestError::Failed(error)) => return Err(not_subscribed(&error)),
        }
        Ok(())
    }

    /// Subscribes on another connection, unless the client has unsubscribed.
    async fn renew(&self, from: (&Arc<Connection>, NotificationSource), uri: String) {
        let Ok(Some(pending)) = self.request(from, uri, None) else { return };
        match pending.subscribed().await {
            Ok(subscription) => pending.agreed(subscription),
            // Only a pending request of the client reports a rejection.
            Err(RequestError::Refused(_)) => {}
            // Another connection replaces it.
            Err(RequestError::Failed(_)) if from.0.is_closed() => {}
            // The client got a confirmation before, so it is retried in the background.
            Err(RequestError::Failed(_)) => {
                pending.agreed(from.0.resubscribe(&self.requester, &pending.key.1));
            }
        }
    }

    /// Registers a pending request; `None` if the server has confirmed already, or if there is
    /// nothing to renew.
    fn request<'a>(
        &'a self,
        (connection, source): (&'a Arc<Connection>, NotificationSource),
        uri: String,
        address: Option<String>,
    ) -> Result<Option<PendingSubscribe<'a>>, RpcError> {
        let key = (connection.server().name.clone(), uri);
        let mut wanted = lock(&self.wanted);
        let bytes = |uri: &str, address: &str| uri.len() + address.len();
        let held: usize = wanted.iter().map(|((_, uri), it)| bytes(uri, &it.address)).sum();
        let more = address.as_ref().map_or(0, |address| bytes(&key.1, address));
        let is_full = wanted.len() >= MAX_ADDRESSES || held + more > MAX_ADDRESS_BYTES;
        let number = match (wanted.get_mut(&key), address) {
            (Some(known), _) if known.is_of(connection) && known.subscription.is_some() => {
                return Ok(None);
            }
            (Some(known), _) => {
                known.next = Some(source);
                known.pending += 1;
                known.number
            }
            (None, None) => return Ok(None),
            (None, Some(_)) if is_full => {
                return Err(invalid("too many resources are subscribed to already"));
            }
            (None, Some(address)) => {
                let number = self.next_number.fetch_add(1, Ordering::Relaxed);
                let (next, subscription, pending) = (None, None, 1);
                let connection = Arc::downgrade(connection);
                let new = ResourceEntry {
                    number,
                    address,
                    source,
                    next,
                    connection,
                    subscription,
                    pending,
                };
                wanted.insert(key.clone(), new);
                number
            }
        };
        Ok(Some(PendingSubscribe { subscriptions: self, key, number, connection, source }))
    }

    /// The URIs of subscriptions to the same server on other connections.
    fn of_others(
        &self,
        connection: &Arc<Connection>,
        sources: &[NotificationSource],
    ) -> Vec<String> {
        let wanted = lock(&self.wanted);
        let is_other = |server: &ServerName, wanted: &ResourceEntry| {
            *server == connection.server().name
                && sources.contains(&wanted.source)
                && !wanted.is_of(connection)
        };
        let others = wanted.iter().filter(|((server, _), wanted)| is_other(server, wanted));
        others.map(|((_, uri), _)| uri.clone()).collect()
    }

    /// Whether there is a subscription to a server.
    pub(crate) fn has_server(&self, server: &ServerName) -> bool {
        lock(&self.wanted).keys().any(|(known, _)| known == server)
    }

    /// Unsubscribes from a resource, by its exposed URI.
    pub(crate) fn remove(&self, address: &str) {
        lock(&self.wanted).retain(|_, wanted| wanted.address != address);
    }

    /// Translates an update of a dedicated server to the exposed URI, if the client may receive it.
    pub(crate) fn updated(
        &self,
        (server, may_hear): (&ServerName, &dyn Fn(&str) -> bool),
        notification: &Notification,
    ) -> Option<Notification> {
        let params = notification.params.as_ref()?;
        let uri = params.get("uri")?;
        let uri = uri.as_str()?;
        let address = self.downstream_uri((server, NotificationSource::Dedicated), &uri)?;
        // The rules may have changed since the subscription.
        if !may_hear(&uri) {
            return None;
        }
        // The `_meta` of a modern server names the subscription of this gateway, not of the client.
        Some(updated(&params.without("_meta").with("uri", &Raw::from_string(&address))))
    }

    pub(super) fn downstream_uri(
        &self,
        (server, source): (&ServerName, NotificationSource),
        uri: &str,
    ) -> Option<String> {
        let wanted = lock(&self.wanted);
        let wanted = wanted.get(&(server.clone(), uri.to_owned()));
        let tells =
            |wanted: &&ResourceEntry| wanted.source == source || wanted.next == Some(source);
        wanted.filter(tells).map(|wanted| wanted.address.clone())
    }

    /// All subscriptions: server, upstream URI and exposed URI.
    pub(super) fn all(&self) -> Vec<(ServerName, String, String)> {
        let wanted = lock(&self.wanted);
        let known = wanted.iter().map(|((server, uri), wanted)| (server, uri, &wanted.address));
        known.map(|(server, uri, known)| (server.clone(), uri.clone(), known.clone())).collect()
    }
}

/// A pending request to a server. When the last one is dropped without a confirmation, the
/// subscription is removed.
struct PendingSubscribe<'a> {
    subscriptions: &'a ResourceSubscriptions,
    key: SubscriptionKey,
    number: u64,
    connection: &'a Arc<Connection>,
    source: NotificationSource,
}

impl PendingSubscribe<'_> {
    async fn subscribed(&self) -> Result<ResourceSubscription, RequestError> {
        self.connection.subscribe_for(&self.subscriptions.requester, &self.key.1).await
    }

    /// Stores a confirmed subscription; drops it if the client has unsubscribed meanwhile.
    fn agreed(&self, subscription: ResourceSubscription) {
        let mut wanted = lock(&self.subscriptions.wanted);
        let entry = wanted.get_mut(&self.key).filter(|entry| entry.number == self.number);
        let Some(entry) = entry else { return };
        (entry.source, entry.next) = (self.source, None);
        entry.connection = Arc::downgrade(self.connection);
        entry.subscription = Some(subscription);
    }
}

impl Drop for PendingSubscribe<'_> {
    fn drop(&mut self) {
        let mut wanted = lock(&self.subscriptions.wanted);
        let entry = wanted.get_mut(&self.key).filter(|entry| entry.number == self.number);
        let Some(entry) = entry else { return };
        entry.pending -= 1;
        if entry.pending == 0 {
            entry.next = None;
            if entry.subscription.is_none() {
                wanted.remove(&self.key);
            }
        }
    }
}
