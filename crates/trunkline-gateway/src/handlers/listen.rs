//! Serves `subscriptions/listen` for modern clients.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use serde_json::json;
use tokio::task::yield_now;
use tokio::time::timeout;
use trunkline::call::TaskUpdates;
use trunkline::host::RelayMethod;
use trunkline::item::ItemKind;
use trunkline::message::{Notification, Raw, RpcError};
use trunkline::protocol::{Era, meta};
use trunkline::view::{ResourceRoute, View};

use super::gateway::Gateway;
use super::tasks::SealedTask;
use crate::changes::{ListKinds, MAX_ADDRESSES, ResourceSubscriptions};
use crate::client::caller::Caller;
use crate::request::errors::{invalid, missing_capability};
use crate::request::incoming::IncomingRequest;
use crate::request::translate;

/// Limit of URIs that are resolved per request, so that other requests are not delayed.
const MAX_REQUESTED_URIS: usize = 10_000;

/// Timeout for servers to confirm a subscription. Unconfirmed ones are not acknowledged.
const PATIENCE: Duration = Duration::from_secs(5);

/// Limit of tasks per subscription.
const MAX_TASKS: usize = 256;

/// A task that a client is subscribed to.
struct FollowedTask {
    /// The sealed task ID.
    number: String,
    task: SealedTask,
    updates: TaskUpdates,
}

impl Gateway {
    /// Serves `subscriptions/listen`. Returns an empty result only when the gateway ends the
    /// subscription; a client ends it by cancelling.
    pub(crate) async fn listen(
        &self,
        caller: &Caller,
        incoming: &IncomingRequest,
    ) -> Result<Raw, RpcError> {
        let wanted = incoming.params.get("notifications").filter(Raw::is_object);
        let wanted = wanted.ok_or_else(|| invalid("`notifications` must be an object"))?;
        let lists = lists_of(&wanted);
        if wanted.get("taskIds").is_some()
            && !caller.client.declares(&["extensions", meta::TASKS_EXTENSION])
        {
            return Err(missing_capability(
                &json!({ "extensions": { meta::TASKS_EXTENSION: {} } }),
                "this needs tasks",
            ));
        }
        self.refresh_lists(&kinds_of(lists)).await;
        // Changes during the upstream requests are notified after the acknowledgement.
        let begun = self.changes.begin(&self.host, &caller.identity.scope);
        let subscriptions = Arc::new(ResourceSubscriptions::of(caller.requester()));
        let followed = self.followed(caller, &wanted).await;
        let honoured =
            self.subscribe_all(caller, &wanted, lists, (&subscriptions, &followed)).await;
        let tag = SubscriptionTag { id: incoming.id.raw().clone() };
        let acknowledged = Notification {
            method: "notifications/subscriptions/acknowledged".into(),
            params: Some(honoured),
        };
        caller.channel.notify(tag.on(acknowledged));
        let channel = caller.channel.clone();
        let tell = {
            let tag = tag.clone();
            move |notification| channel.notify(tag.on(notification))
        };
        let _listening = begun.tell(lists, subscriptions, tell.clone());
        let following = followed.into_iter().map(|it| self.follow(caller, it, &tell));
        let mut following: FuturesUnordered<_> = following.collect();
        let following = async {
            while following.next().await.is_some() {}
            // The subscription may have other subjects.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = following => {}
            // Otherwise only the client ends it, by disconnecting or cancelling.
            () = self.wait_until_closed(caller) => {}
        }
        Ok(tag.mark(
            &translate::result(Era::Modern, RelayMethod::Call, &Raw::empty_object()).into_raw(),
        ))
    }

    /// Waits until a subscription has to end: the gateway shuts down, the lease of the client
    /// expires, or its scope no longer exists.
    async fn wait_until_closed(&self, caller: &Caller) {
        let without_scope = async {
            loop {
                let config = self.host.config();
                if self.view(caller).is_err() {
                    return;
                }
                self.host.config_changed(&config).await;
            }
        };
        tokio::select! {
            () = self.host.shutdown_started() => {}
            () = caller.admission.expired() => {}
            () = without_scope => {}
        }
    }

    /// Subscribes to the requested resources, and returns the parameters of the acknowledgement.
    async fn subscribe_all(
        &self,
        caller: &Caller,
        wanted: &Raw,
        lists: ListKinds,
        (subscriptions, followed): (&ResourceSubscriptions, &[FollowedTask]),
    ) -> Raw {
        let mut honoured = json!({});
        for (key, is_on) in [
            ("toolsListChanged", lists.tools),
            ("promptsListChanged", lists.prompts),
            ("resourcesListChanged", lists.resources),
        ] {
            if is_on {
                honoured[key] = true.into();
            }
        }
        if let Some(uris) = wanted.get("resourceSubscriptions") {
            honoured["resourceSubscriptions"] =
                self.watched(caller, texts(&uris), subscriptions).await.into();
        }
        if wanted.get("taskIds").is_some() {
            honoured["taskIds"] = followed.iter().map(|it| it.number.as_str()).collect();
        }
        Raw::from_value(&json!({ "notifications": honoured }))
    }

    /// Subscribes to resources, and returns the confirmed URIs. The resource lists are refreshed
    /// once for all of them.
    async fn watched(
        &self,
        caller: &Caller,
        uris: Vec<String>,
        subscriptions: &ResourceSubscriptions,
    ) -> Vec<String> {
        self.refresh_lists(&[ItemKind::Resource, ItemKind::ResourceTemplate]).await;
        let Ok(view) = self.view(caller) else { return Vec::new() };
        // Duplicates are subscribed to once.
        let uris: BTreeSet<String> = uris.into_iter().take(MAX_REQUESTED_URIS).collect();
        let found = routes(&view, uris).await.into_iter();
        let watched = found.map(|(address, route)| async {
            // A server that does not respond does not delay others.
            let added = self.subscribe_uri(caller, route, subscriptions, address.clone());
            timeout(PATIENCE, added).await.ok()?.ok().map(|()| address)
        });
        join_all(watched).await.into_iter().flatten().collect()
    }

    /// Subscribes to the requested tasks on their servers, and returns the confirmed ones.
    async fn followed(&self, caller: &Caller, wanted: &Raw) -> Vec<FollowedTask> {
        let numbers = wanted.get("taskIds").map(|ids| texts(&ids)).unwrap_or_default();
        // Duplicates are subscribed to once.
        let numbers: BTreeSet<String> = numbers.into_iter().collect();
        let incoming = numbers.into_iter().take(MAX_TASKS);
        let followed = incoming.map(|number| async move {
            let task = self.tasks(caller).open(&number)?;
            let view = self.view(caller).ok()?;
            let client = self.client(caller, &task.server);
            let subject = (task.origin(), &*task.own);
            let requester = caller.requester();
            let updates = self.host.task_updates(&view, subject, client.as_ref(), &requester);
            let updates = timeout(PATIENCE, updates).await.ok()?.ok()?;
            Some(FollowedTask { number, task, updates })
        });
        join_all(followed).await.into_iter().flatten().collect()
    }

    /// Forwards updates of a task, with its sealed ID, until it is finished. Updates are dropped
    /// while the rules hide the tool that created it.
    async fn follow(
        &self,
        caller: &Caller,
        mut followed: FollowedTask,
        tell: &impl Fn(Notification),
    ) {
        let is_shown =
            |task: &SealedTask| self.view(caller).is_ok_and(|view| task.origin().is_in(&view));
        while let Some(update) = followed.updates.next().await {
            let update = update.result.with("taskId", &Raw::from_string(&followed.number));
            let status = update.get("status");
            let status = status.as_ref().and_then(Raw::as_str).map(Cow::into_owned);
            if is_shown(&followed.task) {
                tell(Notification { method: "notifications/tasks".into(), params: Some(update) });
            }
            if matches!(status.as_deref(), Some("completed" | "failed" | "cancelled")) {
                // No updates follow a final status, and the server may delete the task soon.
                return;
            }
        }
    }
}

/// Adds the subscription ID, which is the ID of the request, to messages.
#[derive(Clone)]
struct SubscriptionTag {
    id: Raw,
}

impl SubscriptionTag {
    fn on(&self, notification: Notification) -> Notification {
        let params = notification.params.unwrap_or_else(Raw::empty_object);
        Notification { method: notification.method, params: Some(self.mark(&params)) }
    }

    fn mark(&self, message: &Raw) -> Raw {
        let beside = message
            .get("_meta")
            .unwrap_or_else(Raw::empty_object)
            .with(meta::SUBSCRIPTION_ID, &self.id);
        message.with("_meta", &beside)
    }
}

fn lists_of(wanted: &Raw) -> ListKinds {
    let is_on = |key: &str| wanted.get(key).and_then(|it| it.as_bool()) == Some(true);
    ListKinds {
        tools: is_on("toolsListChanged"),
        prompts: is_on("promptsListChanged"),
        resources: is_on("resourcesListChanged"),
    }
}

fn kinds_of(lists: ListKinds) -> Vec<ItemKind> {
    let wanted = |kind: &ItemKind| match kind {
        ItemKind::Tool => lists.tools,
        ItemKind::Prompt => lists.prompts,
        ItemKind::Resource | ItemKind::ResourceTemplate => lists.resources,
    };
    ItemKind::ALL.into_iter().filter(wanted).collect()
}

/// Resolves URIs to resources, at most as many as one client may subscribe to. Yields between
/// lookups.
async fn routes(view: &View, addresses: BTreeSet<String>) -> Vec<(String, ResourceRoute<'_>)> {
    let mut lookup = view.resource_lookup();
    let mut found = Vec::new();
    for address in addresses {
        if let Some(route) = lookup.find(&address) {
            found.push((address, route));
        }
        if found.len() == MAX_ADDRESSES {
            break;
        }
        yield_now().await;
    }
    found
}

/// The strings in an array.
fn texts(list: &Raw) -> Vec<String> {
    list.items().iter().filter_map(|it| it.as_str().map(Cow::into_owned)).collect()
}
