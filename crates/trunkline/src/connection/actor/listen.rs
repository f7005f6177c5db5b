//! Hearing of changes in the modern generation: a request that stays open (`subscriptions/listen`).
//!
//! What it is to hear of cannot be changed while it is open. So another one is made, and the old one
//! is closed a moment after the server has acknowledged the new one: in between both are heard.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::backoff::jittered;
use super::subscriptions::Subscriptions;
use crate::connection::handler::CancelledRequest;
use crate::connection::session::{
    RequestOutcome, Session, SessionRequest, closed_error, wait_until,
};
use crate::connection::state::status::ServerDescription;
use crate::connection::subscription::SubscriptionSubject;
use crate::item::ItemKind;
use crate::message::{Notification, Raw, RpcError};
use crate::protocol::meta::SUBSCRIPTION_ID;
use crate::protocol::{Era, code};

/// What the server says first when it is subscribed to.
pub(super) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The resources that a subscription is about, and the tasks.
const RESOURCES: &str = "resourceSubscriptions";
const TASKS: &str = "taskIds";

/// The pause before a subscription that broke is made again; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause. Changes that are missed in it are found when the list is stale.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long a subscription has to last to count as one that works.
const WORKING: Duration = Duration::from_secs(10);

/// How long it may last: longer than any server.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// How long wishes are gathered, so that many become one request.
const GATHERING: Duration = Duration::from_millis(10);

/// How long a server may take to acknowledge. It is the first thing it says.
const ACKNOWLEDGING: Duration = Duration::from_secs(10);

/// How long an old request is kept after a new one was acknowledged: some servers acknowledge before
/// they listen themselves.
const OVERLAP: Duration = Duration::from_millis(250);

/// Notifications that are remembered meanwhile. One that comes after them may be heard twice.
const MAX_OVERLAP_NOTIFICATIONS: usize = 1024;

/// A wish to hear of changes, and what has come of it.
pub(super) struct ListenSubscription {
    /// The lists to hear of.
    lists: Map<String, Value>,
    /// Whether the server can be asked.
    is_known: bool,
    /// What is heard now.
    current: Option<ListenRequest>,
    /// What takes its place once it is acknowledged.
    next: Option<ListenRequest>,
    /// What was heard before, and until when it is kept.
    old: Option<(u64, Instant)>,
    said: OverlapNotifications,
    /// When it is made anew.
    due: Option<Instant>,
    pause: Duration,
}

/// Notifications that came on one of two requests meanwhile, and not yet on the other: whether on the old one,
/// and a digest. They may be long and many.
#[derive(Default)]
struct OverlapNotifications {
    heard: Vec<(bool, u64)>,
    hasher: RandomState,
}

impl OverlapNotifications {
    /// Whether a notification has come on the other request before. If it has not, it is remembered.
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

/// A request that stays open, and is over when it is answered.
struct ListenRequest {
    id: u64,
    since: Instant,
    answer: oneshot::Receiver<RequestOutcome>,
    /// What it is to hear of; what it does, once that is known.
    subjects: Vec<SubscriptionSubject>,
}

/// What has to be done about a subscription.
pub(super) enum ListenEvent {
    Make,
    /// The new one has not been acknowledged.
    Late,
    /// The old one is not needed any more.
    Retire,
    /// One is over, with this answer.
    Over(ListenSlot, RequestOutcome),
}

/// One of the two requests there may be.
#[derive(Clone, Copy)]
pub(super) enum ListenSlot {
    Current,
    Next,
}

impl ListenSubscription {
    /// A subscription to every kind of change the server says it announces.
    pub(super) fn wanted_filter(session: &Session, described: &ServerDescription) -> Self {
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

    /// Takes note that there may be other resources and tasks to hear of.
    pub(super) fn sync(&mut self, watched: &mut Subscriptions) {
        if !self.is_known {
            let message = "the server does not know `subscriptions/listen`";
            watched.fail(&Ok(RpcError::new(code::METHOD_NOT_FOUND, message)));
        } else if watched.is_open() {
            let soon = Instant::now() + GATHERING;
            self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
        }
    }

    /// What has to be done next; waits for ever if nothing has.
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

    /// Makes the subscription with a request of this id, unless it is what it should be.
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
        });
        self.next = Some(ListenRequest { id, since: Instant::now(), answer, subjects });
    }

    /// What is asked for.
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
        // Servers speak of tasks only to those who say that they know them.
        match is_about_tasks {
            true => params.with("_meta", &session.client_meta().with_tasks()),
            false => params,
        }
    }

    /// Takes an acknowledgement of a subscription, or of a part of it. Returns whether there was no
    /// subscription before: list changes up to now were not announced.
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
                watched.on_refused(subject, &Ok(not_honoured()));
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

    /// The server has not acknowledged it in time. It may do what it was asked all the same.
    pub(super) fn late(&mut self, session: &mut Session, watched: &mut Subscriptions) {
        let Some(mut next) = self.next.take() else { return };
        // Whoever wants one of them again has it asked for again.
        next.subjects.clear();
        session.settle(next.id);
        let message = "the server did not acknowledge the subscription";
        watched.on_timeout(&Ok(RpcError::new(code::INTERNAL_ERROR, message)));
        self.replace(session, watched, next);
    }

    fn replace(&mut self, session: &mut Session, watched: &mut Subscriptions, next: ListenRequest) {
        self.close(session);
        self.current = Some(next);
        self.sync(watched);
    }

    /// Ends what is heard now, in a moment.
    fn close(&mut self, session: &mut Session) {
        if let Some(current) = self.current.take() {
            self.retire(session);
            self.old = Some((current.id, Instant::now() + OVERLAP));
        }
    }

    /// Whether something was heard already: on one of two requests that are open for a moment.
    pub(super) fn repeats(&mut self, notification: &Notification) -> bool {
        let (Some((old, _)), Some(params)) = (self.old, &notification.params) else { return false };
        let id = params.get("_meta").and_then(|it| it.get(SUBSCRIPTION_ID)?.as_u64());
        let notification = (&*notification.method, &params.without("_meta"));
        self.said.is_repeated(id == Some(old), notification)
    }

    /// Ends what was heard before.
    pub(super) fn retire(&mut self, session: &mut Session) {
        self.said = OverlapNotifications::default();
        if let Some((id, _)) = self.old.take() {
            session.cancel_request(CancelledRequest { id, last_words: None });
        }
    }

    /// One is over: made again after a pause, unless the server does not know how.
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
            (ListenSlot::Next, Ok(Err(error))) => {
                watched.on_timeout(&Ok(error.clone()));
                let is_bare = over.subjects.is_empty();
                self.is_known = match error.code() {
                    code::METHOD_NOT_FOUND => false,
                    code::INVALID_PARAMS => !is_bare,
                    _ => true,
                };
            }
            (ListenSlot::Next, _) => watched.request_again(),
            // The one that comes asks for the same.
            (ListenSlot::Current, _) if self.next.is_some() => return,
            (ListenSlot::Current, _) => watched.on_session_lost(),
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

/// The answer with which a subscription is over; never, if there is none.
async fn over(standing: &mut Option<ListenRequest>) -> RequestOutcome {
    match standing {
        Some(standing) => (&mut standing.answer).await.unwrap_or_else(|_| Err(closed_error())),
        None => std::future::pending().await,
    }
}

/// What a server says it will tell.
struct Acknowledgement {
    /// Of which request, if it says so.
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

/// The kinds of change that a server says it announces, as the protocol asks for them.
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

/// The key that asks for list changes of a kind.
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
    fn only_what_a_server_announces_is_asked_for() {
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
    fn an_acknowledgement_says_what_is_told_and_where() {
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
