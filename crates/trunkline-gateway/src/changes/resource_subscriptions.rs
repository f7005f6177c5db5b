//! The resources that somebody wants to hear of, and who tells of each.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use trunkline::config::Share;
use trunkline::connection::{Connection, ResourceSubscription};
use trunkline::message::{Notification, Raw, RpcError};
use trunkline::name::ServerName;
use trunkline::principal::Requester;
use trunkline::protocol::code;

use super::{lock, updated};
use crate::request::errors::invalid;

/// Resources one client may want to hear of.
pub(crate) const MAX_ADDRESSES: usize = 1000;

/// Bytes of their URIs, as the client and as the server writes them.
const MAX_ADDRESS_BYTES: usize = 2 * 1024 * 1024;

/// Wants what somebody wants to hear of a server from the connection of now, if they have it from
/// another one, of one of these tellers.
pub(crate) fn resubscribe(
    subscriptions: &Arc<ResourceSubscriptions>,
    (connection, teller): (&Arc<Connection>, NotificationSource),
    before: &[NotificationSource],
) {
    for uri in subscriptions.of_others(connection, before) {
        let (subscriptions, connection) = (Arc::clone(subscriptions), Arc::clone(connection));
        tokio::spawn(async move { subscriptions.renew((&connection, teller), uri).await });
    }
}

/// Who tells of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotificationSource {
    /// The server that all share.
    Shared,
    /// The one that the client has for itself.
    Own,
}

impl NotificationSource {
    pub(crate) const ALL: [Self; 2] = [Self::Shared, Self::Own];

    /// Those whose place the server takes that all share. A process of a client's own takes its place
    /// at the next call.
    pub(super) fn before_shared(share: Share) -> &'static [Self] {
        match share {
            Share::PerClient => &[Self::Shared],
            Share::All => &Self::ALL,
        }
    }
}

/// A server, and a resource in its words.
type SubscriptionKey = (ServerName, String);

/// The resources somebody wants to hear of.
pub(crate) struct ResourceSubscriptions {
    /// The client that wants to hear of them.
    requester: Requester,
    wanted: Mutex<HashMap<SubscriptionKey, ResourceEntry>>,
    wishes: AtomicU64,
}

struct ResourceEntry {
    /// Which wish it is: one that was taken back is not that of whoever wishes the same later.
    number: u64,
    /// The address the client knows it by.
    address: String,
    teller: NotificationSource,
    /// Who takes their place, once they agree: they may tell of something before we know that they do.
    next: Option<NotificationSource>,
    connection: Weak<Connection>,
    /// Keeps the server telling, once it has agreed.
    subscription: Option<ResourceSubscription>,
    /// How many wait for a server to agree.
    asking: usize,
}

impl ResourceEntry {
    fn is_of(&self, connection: &Arc<Connection>) -> bool {
        std::ptr::eq(self.connection.as_ptr(), Arc::as_ptr(connection))
    }
}

impl ResourceSubscriptions {
    /// The resources that a client wants to hear of: none yet.
    pub(crate) fn of(requester: Requester) -> Self {
        Self { requester, wanted: Mutex::default(), wishes: AtomicU64::default() }
    }

    /// Wants to hear of a resource of a server.
    pub(crate) async fn add(
        &self,
        from: (&Arc<Connection>, NotificationSource),
        uri: String,
        address: String,
    ) -> Result<(), RpcError> {
        let Some(asking) = self.request(from, uri, Some(address))? else { return Ok(()) };
        match asking.subscribed().await {
            Ok(subscription) => asking.agreed(subscription?),
            Err(error) => return Err(RpcError::new(code::INTERNAL_ERROR, &error.to_string())),
        }
        Ok(())
    }

    /// Wants to hear of a resource from another connection, if it is still wanted.
    async fn renew(&self, from: (&Arc<Connection>, NotificationSource), uri: String) {
        let Ok(Some(asking)) = self.request(from, uri, None) else { return };
        match asking.subscribed().await {
            Ok(Ok(subscription)) => asking.agreed(subscription),
            // A server that does not agree now has said so to whoever asked for it.
            Ok(Err(_)) => {}
            // Another connection takes its place.
            Err(_) if from.0.is_closed() => {}
            // Whoever wants to hear of it does not know that it cannot be asked now.
            Err(_) => asking.agreed(from.0.resubscribe(&self.requester, &asking.key.1)),
        }
    }

    /// Notes that a server is asked for something; nothing if it has agreed already, or if there is no
    /// address by which somebody wants it.
    fn request<'a>(
        &'a self,
        (connection, teller): (&'a Arc<Connection>, NotificationSource),
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
                known.next = Some(teller);
                known.asking += 1;
                known.number
            }
            (None, None) => return Ok(None),
            (None, Some(_)) if is_full => {
                return Err(invalid("too many resources are subscribed to already"));
            }
            (None, Some(address)) => {
                let number = self.wishes.fetch_add(1, Ordering::Relaxed);
                let (next, subscription, asking) = (None, None, 1);
                let connection = Arc::downgrade(connection);
                let new = ResourceEntry {
                    number,
                    address,
                    teller,
                    next,
                    connection,
                    subscription,
                    asking,
                };
                wanted.insert(key.clone(), new);
                number
            }
        };
        Ok(Some(PendingSubscribe { subscriptions: self, key, number, connection, teller }))
    }

    /// What is wanted of a server from another connection than this.
    fn of_others(&self, connection: &Arc<Connection>, told: &[NotificationSource]) -> Vec<String> {
        let wanted = lock(&self.wanted);
        let is_other = |server: &ServerName, wanted: &ResourceEntry| {
            *server == connection.server().name
                && told.contains(&wanted.teller)
                && !wanted.is_of(connection)
        };
        let others = wanted.iter().filter(|((server, _), wanted)| is_other(server, wanted));
        others.map(|((_, uri), _)| uri.clone()).collect()
    }

    /// Whether anything is wanted of a server.
    pub(crate) fn has_server(&self, server: &ServerName) -> bool {
        lock(&self.wanted).keys().any(|(known, _)| known == server)
    }

    /// Wants to hear no more of an address.
    pub(crate) fn remove(&self, address: &str) {
        lock(&self.wanted).retain(|_, wanted| wanted.address != address);
    }

    /// What a client's own server says of a resource, in the words of the client, if the client may hear it.
    pub(crate) fn updated(
        &self,
        (server, may_hear): (&ServerName, &dyn Fn(&str) -> bool),
        said: &Notification,
    ) -> Option<Notification> {
        let params = said.params.as_ref()?;
        let uri = params.get("uri")?;
        let uri = uri.as_str()?;
        let address = self.downstream_uri((server, NotificationSource::Own), &uri)?;
        // The rules may be others than when it was subscribed to.
        if !may_hear(&uri) {
            return None;
        }
        // What a server of the modern generation says here is about a request of ours.
        Some(updated(&params.without("_meta").with("uri", &Raw::from_string(&address))))
    }

    pub(super) fn downstream_uri(
        &self,
        (server, teller): (&ServerName, NotificationSource),
        uri: &str,
    ) -> Option<String> {
        let wanted = lock(&self.wanted);
        let wanted = wanted.get(&(server.clone(), uri.to_owned()));
        let tells =
            |wanted: &&ResourceEntry| wanted.teller == teller || wanted.next == Some(teller);
        wanted.filter(tells).map(|wanted| wanted.address.clone())
    }

    /// Every resource that is wanted: its server, its address there, and the one that the client knows.
    pub(super) fn all(&self) -> Vec<(ServerName, String, String)> {
        let wanted = lock(&self.wanted);
        let known = wanted.iter().map(|((server, uri), wanted)| (server, uri, &wanted.address));
        known.map(|(server, uri, known)| (server.clone(), uri.clone(), known.clone())).collect()
    }
}

/// Somebody who waits until a server agrees to tell of something. If nobody does any more and none has
/// agreed, the wish is forgotten.
struct PendingSubscribe<'a> {
    subscriptions: &'a ResourceSubscriptions,
    key: SubscriptionKey,
    number: u64,
    connection: &'a Arc<Connection>,
    teller: NotificationSource,
}

impl PendingSubscribe<'_> {
    async fn subscribed(
        &self,
    ) -> Result<Result<ResourceSubscription, RpcError>, trunkline::error::Error> {
        self.connection.subscribe_for(&self.subscriptions.requester, &self.key.1).await
    }

    /// The server tells of it from now on; or need not, if it has been taken back meanwhile.
    fn agreed(&self, subscription: ResourceSubscription) {
        let mut wanted = lock(&self.subscriptions.wanted);
        let wish = wanted.get_mut(&self.key).filter(|wish| wish.number == self.number);
        let Some(wish) = wish else { return };
        (wish.teller, wish.next) = (self.teller, None);
        wish.connection = Arc::downgrade(self.connection);
        wish.subscription = Some(subscription);
    }
}

impl Drop for PendingSubscribe<'_> {
    fn drop(&mut self) {
        let mut wanted = lock(&self.subscriptions.wanted);
        let wish = wanted.get_mut(&self.key).filter(|wish| wish.number == self.number);
        let Some(wish) = wish else { return };
        wish.asking -= 1;
        if wish.asking == 0 {
            wish.next = None;
            if wish.subscription.is_none() {
                wanted.remove(&self.key);
            }
        }
    }
}
