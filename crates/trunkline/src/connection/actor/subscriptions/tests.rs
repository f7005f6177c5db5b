//! Tests of the subscription table: holders, and the resulting requests to the server.

use tokio::sync::mpsc;

use super::*;
use crate::connection::subscription::ResourceSubscription;

struct Table {
    watched: Subscriptions,
    holds: mpsc::UnboundedReceiver<Box<HoldChange>>,
}

impl Table {
    fn new() -> Self {
        let (sender, holds) = mpsc::unbounded_channel();
        Self { watched: Subscriptions::new(sender), holds }
    }

    fn want(&mut self, uri: &str) -> oneshot::Receiver<SubscribeResult> {
        self.want_for(&Requester::default(), uri)
    }

    fn want_for(&mut self, requester: &Requester, uri: &str) -> oneshot::Receiver<SubscribeResult> {
        let (reply, given) = oneshot::channel();
        self.watched.subscribe(SubscriptionSubject::resource(uri), requester, reply);
        given
    }

    fn settle(&mut self) {
        while let Ok(hold) = self.holds.try_recv() {
            self.watched.settle(*hold);
        }
    }

    fn errand(&mut self) -> Option<(String, SubscribeOp)> {
        self.settle();
        self.watched.next_op().map(|(subject, errand)| (subject.name().to_owned(), errand))
    }
}

fn held(mut given: oneshot::Receiver<SubscribeResult>) -> ResourceSubscription {
    ResourceSubscription(given.try_recv().unwrap().unwrap())
}

fn subscribe(uri: &str) -> Option<(String, SubscribeOp)> {
    Some((uri.to_owned(), SubscribeOp::Subscribe))
}

fn unsubscribe(uri: &str) -> Option<(String, SubscribeOp)> {
    Some((uri.to_owned(), SubscribeOp::Unsubscribe))
}

#[test]
fn the_first_asks_and_the_last_takes_it_back() {
    let mut table = Table::new();
    let (first, second) = (table.want("a"), table.want("a"));
    assert_eq!((table.errand(), table.errand()), (subscribe("a"), None));
    table.watched.on_subscribed(&SubscriptionSubject::resource("a"));
    let (first, second, third) = (held(first), held(second), held(table.want("a")));
    drop((first, second));
    assert_eq!(table.errand(), None);
    assert_eq!(third.uri(), "a");
    drop(third);
    assert_eq!(table.errand(), unsubscribe("a"));
    table.watched.on_unsubscribed(&SubscriptionSubject::resource("a"));
    assert!(table.watched.is_empty() && !table.watched.is_open());
}

#[test]
fn subscriber_during_unsubscribe_resubscribes() {
    let mut table = Table::new();
    let first = table.want("a");
    table.errand();
    table.watched.on_subscribed(&SubscriptionSubject::resource("a"));
    drop(held(first));
    assert_eq!(table.errand(), unsubscribe("a"));
    let second = table.want("a");
    assert_eq!(table.errand(), None, "the server has not answered");
    table.watched.on_unsubscribed(&SubscriptionSubject::resource("a"));
    assert_eq!(table.errand(), subscribe("a"));
    table.watched.on_subscribed(&SubscriptionSubject::resource("a"));
    held(second);
}

#[test]
fn cancelled_subscriber_holds_nothing() {
    let mut table = Table::new();
    drop(table.want("a"));
    assert_eq!(table.errand(), None, "there is no subscription");
    assert!(table.watched.is_empty());
    let given = table.want("a");
    assert_eq!(table.errand(), subscribe("a"));
    drop(given);
    table.watched.on_subscribed(&SubscriptionSubject::resource("a"));
    assert_eq!(table.errand(), unsubscribe("a"));
    // Subscribed, and dropped before the caller received it.
    let given = table.want("b");
    table.errand();
    table.watched.on_subscribed(&SubscriptionSubject::resource("b"));
    drop(given);
    assert_eq!(table.errand(), unsubscribe("b"));
}

#[test]
fn held_subscriptions_are_renewed_in_every_session() {
    let mut table = Table::new();
    let (a, b) = (table.want("a"), table.want("b"));
    assert_eq!((table.errand(), table.errand()), (subscribe("a"), subscribe("b")));
    table.watched.on_subscribed(&SubscriptionSubject::resource("a"));
    let a = held(a);
    table.watched.begin();
    assert_eq!((table.errand(), table.errand()), (subscribe("a"), subscribe("b")));
    drop(b);
    table.watched.begin();
    assert_eq!((table.errand(), table.errand()), (subscribe("a"), None));
    let no = RpcError::new(code::INVALID_PARAMS, "no");
    table.watched.on_refused(&SubscriptionSubject::resource("a"), &no.into());
    assert!(!table.watched.is_empty(), "it is held");
    drop(a);
    assert_eq!(table.errand(), None);
    assert!(table.watched.is_empty());
}

#[test]
fn held_subscriptions_are_sent_once_the_server_is_ready() {
    let mut table = Table::new();
    let holds = table.watched.holds.clone();
    let held = [1, 2].map(|_| {
        SubscriptionGuard::begin(SubscriptionSubject::resource("a"), Requester::default(), &holds)
    });
    table.settle();
    table.watched.fail(&too_many().into());
    table.watched.begin();
    assert_eq!((table.errand(), table.errand()), (subscribe("a"), None));
    table.watched.on_subscribed(&SubscriptionSubject::resource("a"));
    drop(held);
    assert_eq!((table.errand(), table.errand()), (unsubscribe("a"), None));
}

#[test]
fn refusal_reaches_waiting_subscribers() {
    let mut table = Table::new();
    let mut given = table.want("a");
    table.errand();
    table.watched.on_refused(
        &SubscriptionSubject::resource("a"),
        &RpcError::new(code::INVALID_PARAMS, "no").into(),
    );
    assert_eq!(given.try_recv().unwrap().unwrap_err().refusal().unwrap().message(), "no");
    let mut given = table.want("b");
    table.watched.fail(&too_many().into());
    assert_eq!(given.try_recv().unwrap().unwrap_err().failure().unwrap().kind(), ErrorKind::Busy);
    assert!(table.watched.is_empty());
}

#[test]
fn snapshot_lists_current_subscriptions() {
    let mut table = Table::new();
    let (a, b, c) = (table.want("a"), table.want("b"), table.want("c"));
    drop(c);
    let all = |table: &mut Table| {
        let all = table.watched.all();
        all.iter().map(SubscriptionSubject::name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(all(&mut table), "a b");
    assert!(!table.watched.is_open());
    table.watched.on_subscribed(&SubscriptionSubject::resource("a"));
    table.watched.on_subscribed(&SubscriptionSubject::resource("b"));
    let (a, _b) = (held(a), held(b));
    drop(a);
    table.settle();
    assert!(table.watched.is_open());
    assert_eq!(all(&mut table), "b");
    table.watched.request_again();
    assert!(!table.watched.is_open(), "nothing was asked for since");
    table.watched.on_listen_ended();
    assert!(table.watched.is_open());
    assert_eq!(all(&mut table), "b");
    table.watched.on_timeout(&RpcError::new(code::INVALID_PARAMS, "no").into());
    assert_eq!(all(&mut table), "", "it is held, and not asked for again");
    let _again = table.want("b");
    assert_eq!(all(&mut table), "b");
}

#[test]
fn only_so_many_are_watched() {
    let mut table = Table::new();
    let given: Vec<_> = (0..MAX_WATCHED / 2).map(|at| table.want(&at.to_string())).collect();
    let mut too_long = table.want(&"x".repeat(MAX_URI_BYTES + 1));
    assert!(too_long.try_recv().unwrap().unwrap_err().refusal().is_some());
    let mut one_more = table.want("more");
    let busy = one_more.try_recv().unwrap().unwrap_err();
    let kind = busy.failure().unwrap().kind();
    assert!(kind == ErrorKind::Busy && kind.is_retryable(), "{busy}");
    let other = bearer("bob");
    let mut of_other = table.want_for(&other, "others");
    assert!(of_other.try_recv().is_err(), "another principal gets in");
    drop(of_other);
    assert!(table.want("7").try_recv().is_err(), "what is watched already costs nothing");
    drop(given);
    while table.errand().is_some() {}
    table.want("more");
    assert_eq!(table.errand(), None);
}

/// Regression: 3,000 URIs of 7.5 KiB made a request of 22.5 MB, and its acknowledgement was
/// dropped.
#[test]
fn only_so_many_bytes_are_watched() {
    let mut table = Table::new();
    let uri = |at: usize| format!("{at:0>8000}");
    let mut given: Vec<_> = (0..3000).map(|at| table.want(&uri(at))).collect();
    let refused = given.iter_mut().filter_map(|it| it.try_recv().ok());
    assert!(
        refused.map(|it| it.unwrap_err()).all(|it| it.failure().unwrap().kind() == ErrorKind::Busy)
    );
    let bytes = |table: &mut Table| -> usize {
        table.watched.all().iter().map(|subject| subject.name().len()).sum()
    };
    assert!((MAX_WATCHED_BYTES / 2 - 8200..MAX_WATCHED_BYTES / 2).contains(&bytes(&mut table)));
    let other = bearer("bob");
    assert!(table.want_for(&other, &uri(9999)).try_recv().is_err(), "another principal gets in");
    // Holds of a previous connection are added again, and do not make the request too long.
    for at in 3000..6000 {
        let subject = SubscriptionSubject::resource(&uri(at));
        table.watched.settle(HoldChange::Begun(subject, other.clone()));
    }
    assert!((MAX_WATCHED_BYTES - 8200..=MAX_WATCHED_BYTES).contains(&bytes(&mut table)));
    drop(given);
    // Escapes count as bytes of the request.
    let mut table = Table::new();
    let given: Vec<_> =
        (0..3000).map(|at| table.want(&format!("{at}{}", "\u{1}".repeat(2000)))).collect();
    assert!(bytes(&mut table) * 6 < MAX_WATCHED_BYTES);
    drop(given);
}

fn bearer(name: &str) -> Requester {
    let principal = Principal::Token(name.into());
    Requester { client: name.into(), principal, ..Requester::default() }
}

#[test]
fn requester_of_a_subscription_includes_all_subscribers() {
    let mut table = Table::new();
    let (ann, bob) = (bearer("ann"), bearer("bob"));
    let subject = SubscriptionSubject::resource("a");
    assert_eq!(table.watched.requester_of_all(), None);
    let _first = table.want_for(&ann, "a");
    assert_eq!(table.watched.requester(&subject), Some(ann.clone()));
    assert_eq!(table.watched.requester_of_all(), Some(ann.clone()));
    let _other = table.want_for(&bob, "b");
    assert_eq!(table.watched.requester(&subject), Some(ann.clone()));
    assert_eq!(table.watched.requester_of_all(), Some(ann.joined(&bob)));
    let _second = table.want_for(&bob, "a");
    let both = table.watched.requester(&subject).unwrap();
    assert!(both.client != ann.client && both.client != bob.client);
}
