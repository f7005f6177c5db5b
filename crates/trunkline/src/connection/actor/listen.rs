//! Subscribes to changes of modern servers with `subscriptions/listen`, a request that stays open.
//!
//! The filter of an open request cannot be changed. A change opens a new request, and closes the
//! old one shortly after the server has acknowledged the new one; notifications of both are
//! deduplicated.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::backoff::jittered;
use super::subscriptions::Subscriptions;
use crate::connection::handler::CancelledRequest;
use crate::connection::request_error::RequestError;
use crate::connection::session::{RequestOutcome, Session, SessionRequest, closed_error};
use crate::connection::state::status::ServerDescription;
use crate::connection::subscription::SubscriptionSubject;
use crate::item::ItemKind;
use crate::message::{Notification, Raw, RpcError};
use crate::protocol::meta::SUBSCRIPTION_ID;
use crate::protocol::{Era, code};
use crate::timer::wait_until;

/// The first notification that a server sends on a subscription.
pub(super) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The filter members for resource URIs and task IDs.
const RESOURCES: &str = "resourceSubscriptions";
const TASKS: &str = "taskIds";

/// First pause before a subscription that ended is opened again; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longest pause. Changes missed during it are noticed when the TTL of the list expires.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Lifetime after which a subscription counts as working, which resets the pause.
const WORKING: Duration = Duration::from_secs(10);

/// Timeout of the request: longer than any server runs.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Time to collect subscription changes into one request.
const GATHERING: Duration = Duration::from_millis(10);

/// Timeout of the acknowledgement, which is the first message on a subscription.
const ACKNOWLEDGING: Duration = Duration::from_secs(10);

/// Time for which the old request stays open after the new one was acknowledged: some servers
/// acknowledge before they start to send notifications.
const OVERLAP: Duration = Duration::from_millis(250);

/// Limit of notifications remembered during the overlap. Later ones may be delivered twice.
const MAX_OVERLAP_NOTIFICATIONS: usize = 1024;

/// The wanted subscription to one server, and the requests that implement it.
pub(super) struct ListenSubscription {
    /// The list-change members of the filter.
    lists: Map<String, Value>,
    /// Whether the server supports `subscriptions/listen`.
    is_known: bool,
    /// The acknowledged request.
    current: Option<ListenRequest>,
    /// The request that replaces it once it is acknowledged.
    next: Option<ListenRequest>,
    /// The ID of the replaced request, and the time at which it is cancelled.
    old: Option<(u64, Instant)>,
    said: OverlapNotifications,
    /// Time of the next request, if one is needed.
    due: Option<Instant>,
    pause: Duration,
}

/// Notifications received on only one of two overlapping requests: whether on the old one, and a
/// digest, because notifications may be long and many.
#[derive(Default)]
struct OverlapNotifications {
    heard: Vec<(bool, u64)>,
    hasher: RandomState,
}

impl OverlapNotifications {
    /// Whether a notification was already received on the other request. Remembers it otherwise.
    fn is_repeated(&mut self, is_old: bool, (method, params): (&str, &Raw)) -> bool {
        let digest = self.hasher.hash_one((method, params.bytes()));
        let twin = self.heard.iter().position(|other| *other == (!is_old, digest));
        match twin {
            Some(at) => drop(self.heard.swap_remove(at)),
            None if self.heard.len() < MAX_OVERLAP_NOTIFICATIONS => {
                self.heard.push((is_old, digest));
            }
            None => {}
        }
        twin.is_some()
    }
}

/// An open `subscriptions/listen` request; a response ends it.
struct ListenRequest {
    id: u64,
    since: Instant,
    answer: oneshot::Receiver<RequestOutcome>,
    /// The requested subjects; once acknowledged, only the confirmed ones.
    subjects: Vec<SubscriptionSubject>,
}

/// The next action on a subscription.
pub(super) enum ListenEvent {
    Make,
    /// The new request was not acknowledged in time.
    Late,
    /// The overlap is over: the old request can be cancelled.
    Retire,
    /// A request ended with this outcome.
    Over(ListenSlot, RequestOutcome),
}

/// The request that an event is about.
#[derive(Clone, Copy)]
pub(super) enum ListenSlot {
    Current,
    Next,
}

impl ListenSubscription {
    /// Creates a subscription to all list changes that the server declares in its capabilities.
    pub(super) fn new(session: &Session, described: &ServerDescription) -> Self {
        let lists = filter_params(described);
        let is_known = session.version.era() == Era::Modern;
        let due = (is_known && !lists.is_empty()).then(Instant::now);
        Self {
            lists,
            is_known,
            current: None,
            next: None,
            old: None,
            said: OverlapNotifications::default(),
            due,
            pause: FIRST_PAUSE,
        }
    }

    /// Schedules a new request if subscriptions to resources or tasks have changed.
    pub(super) fn sync(&mut self, watched: &mut Subscriptions) {
        if !self.is_known {
            let message = "the server does not know `subscriptions/listen`";
            watched.fail(&RpcError::new(code::METHOD_NOT_FOUND, message).into());
        } else if watched.is_open() {
            let soon = Instant::now() + GATHERING;
            self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
        }
    }

    /// Waits for the next event; forever if there is none.
    pub(super) async fn next(&mut self) -> ListenEvent {
        let due = self.due.filter(|_| self.next.is_none());
        let late = self.next.as_ref().map(|next| next.since + ACKNOWLEDGING);
        tokio::select! {
            biased;
            answer = over(&mut self.current) => ListenEvent::Over(ListenSlot::Current, answer),
            answer = over(&mut self.next) => ListenEvent::Over(ListenSlot::Next, answer),
            () = wait_until(due) => ListenEvent::Make,
            () = wait_until(late) => ListenEvent::Late,
            () = wait_until(self.old.map(|(_, until)| until)) => ListenEvent::Retire,
        }
    }

    /// Opens a request with this ID, unless the current one has the same filter.
    pub(super) fn open_request(
        &mut self,
        session: &mut Session,
        watched: &mut Subscriptions,
        id: u64,
    ) {
        self.due = None;
        let subjects = watched.all();
        if self.lists.is_empty() && subjects.is_empty() {
            return self.close(session);
        }
        if self.current.as_ref().is_some_and(|current| current.subjects == subjects) {
            return;
        }
        let params = self.params(&subjects, session);
        let (reply, answer) = oneshot::channel();
        session.send_request(SessionRequest {
            id,
            method: "subscriptions/listen".into(),
            params: Some(params),
            within: None,
            deadline: Instant::now() + FOR_EVER,
            patience: FOR_EVER,
            reply,
            updates: None,
            wants_progress: false,
            is_standing: true,
            requester: watched.requester_of_all(),
            client_meta: None,
        });
        self.next = Some(ListenRequest { id, since: Instant::now(), answer, subjects });
    }

    /// The parameters of the request.
    fn params(&self, subjects: &[SubscriptionSubject], session: &Session) -> Raw {
        let mut wishes = self.lists.clone();
        let (mut uris, mut tasks) = (Vec::new(), Vec::new());
        for subject in subjects {
            match subject {
                SubscriptionSubject::Resource(uri) => uris.push(Value::from(&**uri)),
                SubscriptionSubject::Task(id) => tasks.push(Value::from(&**id)),
            }
        }
        let is_about_tasks = !tasks.is_empty();
        for (key, names) in [(RESOURCES, uris), (TASKS, tasks)] {
            if !names.is_empty() {
                wishes.insert(key.to_owned(), names.into());
            }
        }
        let params = Raw::from_value(&json!({ "notifications": Value::Object(wishes) }));
        // Servers send task notifications only to clients that declare the tasks extension.
        match is_about_tasks {
            true => params.with("_meta", &session.client_meta().with_tasks()),
            false => params,
        }
    }

    /// Handles the acknowledgement of the new request, which may confirm only some of its subjects.
    /// Returns whether it is the first subscription: earlier list changes were not notified.
    pub(super) fn acknowledged(
        &mut self,
        session: &mut Session,
        watched: &mut Subscriptions,
        params: Option<&Raw>,
    ) -> bool {
        let acknowledgement = Acknowledgement::read(params);
        let is_it = |next: &mut ListenRequest| acknowledgement.id.is_none_or(|id| id == next.id);
        let Some(mut next) = self.next.take_if(is_it) else { return false };
        let is_first = self.current.is_none();
        for subject in &next.subjects {
            if acknowledgement.subjects.contains(subject) {
                watched.on_subscribed(subject);
            } else {
                watched.on_refused(subject, &not_honoured().into());
            }
        }
        next.subjects.retain(|subject| acknowledgement.subjects.contains(subject));
        session.settle(next.id);
        self.replace(session, watched, next);
        is_first
    }

    /// The kinds of list whose changes the server announces to this subscription.
    pub(super) fn announced_kinds(&self) -> impl Iterator<Item = ItemKind> {
        ItemKind::ALL.iter().copied().filter(|kind| self.lists.contains_key(change_key(*kind)))
    }

    /// Handles a missing acknowledgement. The request stays open, since the server may still send
    /// notifications.
    pub(super) fn late(&mut self, session: &mut Session, watched: &mut Subscriptions) {
        let Some(mut next) = self.next.take() else { return };
        // A later subscription to one of them opens a new request.
        next.subjects.clear();
        session.settle(next.id);
        let message = "the server did not acknowledge the subscription";
        watched.on_timeout(&RpcError::new(code::INTERNAL_ERROR, message).into());
        self.replace(session, watched, next);
    }

    fn replace(&mut self, session: &mut Session, watched: &mut Subscriptions, next: ListenRequest) {
        self.close(session);
        self.current = Some(next);
        self.sync(watched);
    }

    /// Schedules the end of the current request, after the overlap.
    fn close(&mut self, session: &mut Session) {
        if let Some(current) = self.current.take() {
            self.retire(session);
            self.old = Some((current.id, Instant::now() + OVERLAP));
        }
    }

    /// Whether a notification was already received on the other of two overlapping requests.
    pub(super) fn repeats(&mut self, notification: &Notification) -> bool {
        let (Some((old, _)), Some(params)) = (self.old, &notification.params) else { return false };
        let id = params.get("_meta").and_then(|it| it.get(SUBSCRIPTION_ID)?.as_u64());
        let notification = (&*notification.method, &params.without("_meta"));
        self.said.is_repeated(id == Some(old), notification)
    }

    /// Cancels the replaced request.
    pub(super) fn retire(&mut self, session: &mut Session) {
        self.said = OverlapNotifications::default();
        if let Some((id, _)) = self.old.take() {
            session.cancel_request(CancelledRequest { id, last_words: None });
        }
    }

    /// Handles the end of a request. It is opened again after a pause, unless the server does not
    /// support it.
    pub(super) fn over(
        &mut self,
        which: ListenSlot,
        answer: &RequestOutcome,
        watched: &mut Subscriptions,
    ) {
        let over = match which {
            ListenSlot::Current => self.current.take(),
            ListenSlot::Next => self.next.take(),
        };
        let Some(over) = over else { return };
        match (which, answer) {
            (ListenSlot::Next, Err(error @ RequestError::Refused(refusal))) => {
                watched.on_timeout(error);
                let is_bare = over.subjects.is_empty();
                self.is_known = match refusal.code() {
                    code::METHOD_NOT_FOUND => false,
                    code::INVALID_PARAMS => !is_bare,
                    _ => true,
                };
            }
            (ListenSlot::Next, _) => watched.request_again(),
            // The next request has the same subjects.
            (ListenSlot::Current, _) if self.next.is_some() => return,
            (ListenSlot::Current, _) => watched.on_listen_ended(),
        }
        if !self.is_known {
            self.sync(watched);
        } else if self.current.is_none() || watched.is_open() {
            self.pause_after(&over);
        }
    }

    fn pause_after(&mut self, over: &ListenRequest) {
        if over.since.elapsed() >= WORKING {
            self.pause = FIRST_PAUSE;
        }
        self.due = Some(Instant::now() + jittered(self.pause));
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

/// Waits for the outcome of a request; forever if there is none.
async fn over(standing: &mut Option<ListenRequest>) -> RequestOutcome {
    match standing {
        Some(standing) => {
            (&mut standing.answer).await.unwrap_or_else(|_| Err(closed_error().into()))
        }
        None => std::future::pending().await,
    }
}

/// The acknowledgement of a subscription.
struct Acknowledgement {
    /// The request ID, if the server sent one.
    id: Option<u64>,
    subjects: BTreeSet<SubscriptionSubject>,
}

impl Acknowledgement {
    fn read(params: Option<&Raw>) -> Self {
        let [meta, notifications] =
            params.map(|params| params.get_all(["_meta", "notifications"])).unwrap_or_default();
        let id = meta.and_then(|meta| meta.get(SUBSCRIPTION_ID));
        let named = |key, subject: fn(&str) -> SubscriptionSubject| {
            let names = notifications.as_ref().and_then(|told| told.get(key));
            let names = names.map(|names| names.items()).unwrap_or_default();
            names.into_iter().filter_map(move |name| name.as_str().map(|name| subject(&name)))
        };
        let subjects = named(RESOURCES, SubscriptionSubject::resource)
            .chain(named(TASKS, SubscriptionSubject::task));
        Self { id: id.and_then(|id| id.as_u64()), subjects: subjects.collect() }
    }
}

fn not_honoured() -> RpcError {
    let message = "the server does not say what becomes of this";
    RpcError::new(code::INVALID_PARAMS, message)
}

/// The filter for the list changes that a server declares in its capabilities.
fn filter_params(described: &ServerDescription) -> Map<String, Value> {
    let capabilities = described.capabilities.as_ref();
    let announces = |what: &str| {
        let capability = capabilities.and_then(|capabilities| capabilities.get(what));
        let flag = capability.and_then(|capability| capability.get("listChanged"));
        flag.and_then(|flag| flag.as_bool()) == Some(true)
    };
    [ItemKind::Tool, ItemKind::Prompt, ItemKind::Resource]
        .into_iter()
        .filter(|kind| announces(kind.capability()))
        .map(|kind| (change_key(kind).to_owned(), Value::Bool(true)))
        .collect()
}

/// The filter member for list changes of a kind.
fn change_key(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Tool => "toolsListChanged",
        ItemKind::Prompt => "promptsListChanged",
        ItemKind::Resource | ItemKind::ResourceTemplate => "resourcesListChanged",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_declared_list_changes_are_subscribed() {
        let text = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":false},"x":1}"#;
        let capabilities = Raw::from_text(text).ok();
        let described = ServerDescription { capabilities, ..ServerDescription::default() };
        let wishes = Value::Object(filter_params(&described));
        assert_eq!(wishes, json!({ "toolsListChanged": true }));
    }

    #[test]
    fn a_flood_between_two_requests_is_not_remembered_without_bound() {
        let mut said = OverlapNotifications::default();
        let params = |number: usize| Raw::from_value(&json!({ "uri": format!("x://{number}") }));
        for number in 0..3 * MAX_OVERLAP_NOTIFICATIONS {
            assert!(!said.is_repeated(true, ("updated", &params(number))));
        }
        assert_eq!(said.heard.len(), MAX_OVERLAP_NOTIFICATIONS);
        assert!(!said.is_repeated(false, ("other", &params(0))), "another method");
        assert!(said.is_repeated(false, ("updated", &params(0))));
        assert!(!said.is_repeated(false, ("updated", &params(0))), "each once");
    }

    #[test]
    fn acknowledgement_names_notifications_and_subscription_id() {
        let params = json!({
            "_meta": { "io.modelcontextprotocol/subscriptionId": 7 },
            "notifications": { "resourceSubscriptions": ["a:b", 1], "taskIds": ["c:d"] },
        });
        let read = Acknowledgement::read(Some(&Raw::from_value(&params)));
        assert_eq!((read.id, read.subjects.len()), (Some(7), 2));
        assert!(read.subjects.contains(&SubscriptionSubject::resource("a:b")));
        assert!(read.subjects.contains(&SubscriptionSubject::task("c:d")));
        let nothing = Acknowledgement::read(None);
        assert!(nothing.id.is_none() && nothing.subjects.is_empty());
    }
}
