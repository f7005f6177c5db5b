//! What a modern client wants to hear of, until it does not any more (`subscriptions/listen`).

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

/// Addresses that are looked for at all: others wait for their turn meanwhile.
const MAX_WISHES: usize = 10_000;

/// How long servers may take to agree to tell of something. What they do not agree to in that time is
/// not acknowledged.
const PATIENCE: Duration = Duration::from_secs(5);

/// Tasks that one subscription may be about.
const MAX_TASKS: usize = 256;

/// A task that a client hears of.
struct FollowedTask {
    /// The number that the client knows it by.
    number: String,
    task: SealedTask,
    updates: TaskUpdates,
}

impl Gateway {
    /// Tells a modern client of changes, until it does not want to hear of them any more. The answer
    /// says that it does not hear of them any more although it wants to.
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
        // What changes while servers are asked is told after the acknowledgement.
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
            // The client may hear of other things still.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = following => {}
            // Else nobody ends it but the client, which goes away or cancels.
            () = self.closed_result(caller) => {}
        }
        Ok(tag.mark(
            &translate::result(Era::Modern, RelayMethod::Call, &Raw::empty_object()).into_raw(),
        ))
    }

    /// Waits until a client cannot be told of changes any more: the gateway ends, the client was let
    /// in by something that is gone, or what it may see is.
    async fn closed_result(&self, caller: &Caller) {
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

    /// What of a wish to hear of changes can be had.
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
        if let Some(wished) = wanted.get("resourceSubscriptions") {
            honoured["resourceSubscriptions"] =
                self.watched(caller, texts(&wished), subscriptions).await.into();
        }
        if wanted.get("taskIds").is_some() {
            honoured["taskIds"] = followed.iter().map(|it| it.number.as_str()).collect();
        }
        Raw::from_value(&json!({ "notifications": honoured }))
    }

    /// The resources that a client wants to hear of and can. Servers are asked for theirs once, not
    /// for each.
    async fn watched(
        &self,
        caller: &Caller,
        wished: Vec<String>,
        subscriptions: &ResourceSubscriptions,
    ) -> Vec<String> {
        self.refresh_lists(&[ItemKind::Resource, ItemKind::ResourceTemplate]).await;
        let Ok(view) = self.view(caller) else { return Vec::new() };
        // Each is told of once, however often it was named.
        let wished: BTreeSet<String> = wished.into_iter().take(MAX_WISHES).collect();
        let found = routes(&view, wished).await.into_iter();
        let watched = found.map(|(address, route)| async {
            // One server that does not answer is not in the way of others.
            let added = self.subscribe_uri(caller, route, subscriptions, address.clone());
            timeout(PATIENCE, added).await.ok()?.ok().map(|()| address)
        });
        join_all(watched).await.into_iter().flatten().collect()
    }

    /// The tasks that a client wants to hear of and can, each asked for at the server it runs on.
    async fn followed(&self, caller: &Caller, wanted: &Raw) -> Vec<FollowedTask> {
        let numbers = wanted.get("taskIds").map(|wished| texts(&wished)).unwrap_or_default();
        // Each is told of once, however often it was named.
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

    /// Tells what becomes of a task, under the number that its client knows, until it is over. Nothing is
    /// told while the rules hide the tool whose call it was.
    async fn follow(
        &self,
        caller: &Caller,
        mut followed: FollowedTask,
        tell: &impl Fn(Notification),
    ) {
        let is_shown =
            |task: &SealedTask| self.view(caller).is_ok_and(|view| task.origin().is_in(&view));
        while let Some(said) = followed.updates.next().await {
            let said = said.result.with("taskId", &Raw::from_string(&followed.number));
            let status = said.get("status");
            let status = status.as_ref().and_then(Raw::as_str).map(Cow::into_owned);
            if is_shown(&followed.task) {
                tell(Notification { method: "notifications/tasks".into(), params: Some(said) });
            }
            if matches!(status.as_deref(), Some("completed" | "failed" | "cancelled")) {
                // Nothing comes after that, and the server may not know it for long.
                return;
            }
        }
    }
}

/// Marks what is said on a subscription with the request that asked for it.
#[derive(Clone)]
struct SubscriptionTag {
    id: Raw,
}

impl SubscriptionTag {
    fn on(&self, notification: Notification) -> Notification {
        let params = notification.params.unwrap_or_else(Raw::empty_object);
        Notification { method: notification.method, params: Some(self.mark(&params)) }
    }

    fn mark(&self, said: &Raw) -> Raw {
        let beside = said
            .get("_meta")
            .unwrap_or_else(Raw::empty_object)
            .with(meta::SUBSCRIPTION_ID, &self.id);
        said.with("_meta", &beside)
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

/// The resources that there are at these URIs, as many as one client may subscribe to. Other tasks run
/// between the lookups.
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

/// The texts in a list.
fn texts(list: &Raw) -> Vec<String> {
    list.items().iter().filter_map(|it| it.as_str().map(Cow::into_owned)).collect()
}
