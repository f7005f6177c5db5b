//! Calls whose server waits for an answer of a modern client, which has to call again to give it.
//!
//! The server of such a call is of the legacy generation: it asks in the middle of a call and waits.
//! The call stays as it is, on a desk, until the client comes back with the answers and the sealed
//! number of the desk; or until its time is over, which cancels it.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use trunkline::connection::Question;
use trunkline::message::{Raw, RpcError, code};
use trunkline::name::ServerName;
use trunkline::queue::{Receiver, Sender, queue};

use crate::protocol::empty;
use crate::reply::Answer;
use crate::talk::Talk;

/// How long a call waits for its client if it is in the way: while it waits, its server can ask nobody else, since nobody
/// could say whom that is for. Somebody who looks at the question answers it in this time.
const LONGEST_IN_THE_WAY: Duration = Duration::from_secs(120);

/// Calls that may wait at the same time.
const MAX_PARKED: usize = 1000;

/// Questions one call may have open.
const MAX_QUESTIONS: usize = 16;

/// What comes of a call in the end.
pub(crate) type Calling = Pin<Box<dyn Future<Output = Answer> + Send>>;

type Reply = oneshot::Sender<Result<Raw, RpcError>>;

/// Where questions of a server wait for the client of its call.
pub(crate) struct Desk {
    questions: Sender<(Question, Reply)>,
    /// The way to the client, which is another one whenever it calls again.
    talk: Mutex<Talk>,
    /// The server that asks, once it is known.
    server: OnceLock<ServerName>,
    /// How many questions wait for an answer.
    waiting: AtomicUsize,
    /// Whether a question for somebody else was refused since this one was asked.
    is_in_the_way: AtomicBool,
}

/// A question that waits for an answer. Dropping it says that it does so no more.
struct Open<'d>(&'d AtomicUsize);

impl<'d> Open<'d> {
    fn counted(waiting: &'d AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Desk {
    pub(crate) fn new(talk: Talk) -> (Arc<Self>, Receiver<(Question, Reply)>) {
        let (questions, asked) = queue(MAX_QUESTIONS);
        let desk = Self {
            questions,
            talk: Mutex::new(talk),
            server: OnceLock::new(),
            waiting: AtomicUsize::new(0),
            is_in_the_way: AtomicBool::new(false),
        };
        (Arc::new(desk), asked)
    }

    pub(crate) fn talk(&self) -> Talk {
        self.lock().clone()
    }

    /// Whether its client has something to answer.
    pub(crate) fn has_questions(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Says which server it is that asks.
    pub(crate) fn is_of(&self, server: &ServerName) {
        let _ = self.server.set(server.clone());
    }

    /// Lets its call wait for its client no longer than it may in the way of others.
    pub(crate) fn hurry(&self) {
        self.is_in_the_way.store(true, Ordering::Relaxed);
    }

    /// Goes on with another way to the client.
    pub(crate) fn switch(&self, talk: Talk) {
        *self.lock() = talk;
    }

    /// Puts a question on the desk, and waits until the client has come back with an answer.
    pub(crate) async fn ask(&self, question: Question) -> Result<Raw, RpcError> {
        // Before anybody can see the question, and until nobody waits for its answer.
        let _open = Open::counted(&self.waiting);
        let (reply, answer) = oneshot::channel();
        let is_put = self.questions.send((question, reply)).is_ok();
        if !is_put {
            return Err(RpcError::new(code::INTERNAL_ERROR, "too many questions are open"));
        }
        let gone = || RpcError::new(code::INTERNAL_ERROR, "the client did not come back");
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    fn lock(&self) -> MutexGuard<'_, Talk> {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call, with everything that is needed to go on with it.
pub(crate) struct Conversation {
    pub(crate) call: Calling,
    pub(crate) desk: Arc<Desk>,
    asked: Receiver<(Question, Reply)>,
    open: BTreeMap<String, (Question, Reply)>,
    count: u64,
    /// Whether the call goes on whether or not somebody looks at it.
    is_by_itself: bool,
}

/// What a conversation came to.
pub(crate) enum Turn {
    /// The server has answered.
    Over(Answer),
    /// It needs something of the client first.
    Asks(Conversation),
}

impl Conversation {
    pub(crate) fn new(call: Calling, desk: Arc<Desk>, asked: Receiver<(Question, Reply)>) -> Self {
        Self { call, desk, asked, open: BTreeMap::new(), count: 0, is_by_itself: false }
    }

    /// Goes on until the server has answered or asked.
    pub(crate) async fn go_on(mut self) -> Turn {
        loop {
            tokio::select! {
                biased;
                outcome = &mut self.call => return Turn::Over(outcome),
                question = self.asked.recv() => self.note(question),
            }
            while let Some(question) = self.asked.try_recv() {
                self.note(question);
            }
            // Nothing is left to ask if the server has taken everything back.
            if !self.open.is_empty() {
                return Turn::Asks(self);
            }
        }
    }

    /// Lets the call go on while it waits for its client: its times run, and what it holds is free as
    /// soon as it is over. It ends with the conversation all the same.
    pub(crate) fn go_on_by_itself(&mut self) {
        if std::mem::replace(&mut self.is_by_itself, true) {
            return;
        }
        let mut going_on = JoinSet::new();
        let call = std::mem::replace(&mut self.call, Box::pin(std::future::pending()));
        going_on.spawn(call);
        self.call = Box::pin(async move {
            let lost = || Err(RpcError::new(code::INTERNAL_ERROR, "the call was lost"));
            going_on.join_next().await.and_then(Result::ok).unwrap_or_else(lost)
        });
    }

    fn note(&mut self, (question, reply): (Question, Reply)) {
        // The server may have taken it back by now.
        if reply.is_closed() {
            return;
        }
        self.count += 1;
        self.open.insert(format!("question-{}", self.count), (question, reply));
    }

    /// Takes answers, and says whether that were all. What was not asked is passed over, as is what the
    /// server does not want to know any more.
    pub(crate) fn take(&mut self, answers: &Raw) -> bool {
        self.open.retain(|_, (_, reply)| !reply.is_closed());
        for (key, answer) in answers.members() {
            if let Some((_, reply)) = self.open.remove(&key) {
                let _ = reply.send(Ok(answer));
            }
        }
        self.open.is_empty()
    }

    /// The questions, as a result that asks the client for them.
    pub(crate) fn as_result(&self, state: &str) -> Raw {
        let mut requests = empty();
        for (key, (question, _)) in &self.open {
            let mut request = empty().with("method", &Raw::from_string(&question.method));
            if let Some(params) = &question.params {
                request = request.with("params", &params.without("elicitationId"));
            }
            requests = requests.with(key, &request);
        }
        let result = json!({ "resultType": "input_required", "requestState": state });
        Raw::from_value(&result).with("inputRequests", &requests)
    }
}

/// All calls that wait for their clients.
pub(crate) struct Parked {
    /// How long one does.
    longest: Duration,
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    next: u64,
    waiting: HashMap<u64, Waiting>,
}

/// A call that waits for its client.
struct Waiting {
    conversation: Conversation,
    since: Instant,
}

impl Waiting {
    /// How long it may wait, if calls in nobody's way may wait for so long.
    fn longest(&self, longest: Duration) -> Duration {
        let is_in_the_way = self.conversation.desk.is_in_the_way.load(Ordering::Relaxed);
        if is_in_the_way { longest.min(LONGEST_IN_THE_WAY) } else { longest }
    }

    fn is_late(&self, longest: Duration, now: Instant) -> bool {
        now.saturating_duration_since(self.since) > self.longest(longest)
    }
}

/// Why there is no call of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoCall {
    /// It is here no more: somebody has come for it, or it was given up.
    Gone,
    /// It has waited for longer than this, and was given up just now.
    Late(Duration),
}

impl Parked {
    /// Calls of which each waits for no longer than this.
    pub(crate) fn new(longest: Duration) -> Self {
        Self { longest, calls: Mutex::default() }
    }

    /// How long a call waits for its client, if it is in nobody's way.
    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }

    /// A number for a call that is to be kept. Whoever comes back has to know it.
    pub(crate) fn number(&self) -> u64 {
        let mut calls = self.lock();
        calls.next += 1;
        calls.next
    }

    /// Keeps a call under its number.
    pub(crate) fn put(&self, number: u64, conversation: Conversation) -> Result<(), RpcError> {
        let mut calls = self.lock();
        if calls.waiting.len() >= MAX_PARKED {
            let message = "too many calls wait for answers of their clients; try again later";
            return Err(RpcError::new(code::INTERNAL_ERROR, message));
        }
        conversation.desk.is_in_the_way.store(false, Ordering::Relaxed);
        calls.waiting.insert(number, Waiting { conversation, since: Instant::now() });
        Ok(())
    }

    /// The call of a number. A number is good for one time.
    pub(crate) fn take(&self, number: u64) -> Result<Conversation, NoCall> {
        let waiting = self.lock().waiting.remove(&number).ok_or(NoCall::Gone)?;
        // It may be late before anybody has looked for those that are.
        match waiting.is_late(self.longest, Instant::now()) {
            true => Err(NoCall::Late(waiting.longest(self.longest))),
            false => Ok(waiting.conversation),
        }
    }

    /// Hurries the calls for whose sake a server that all share could not ask somebody else.
    pub(crate) fn hurry(&self, server: &ServerName) {
        let calls = self.lock();
        let desks = calls.waiting.values().map(|waiting| &waiting.conversation.desk);
        desks.filter(|desk| desk.server.get() == Some(server)).for_each(|desk| desk.hurry());
    }

    /// Gives up calls whose clients did not come back. Their servers are told.
    pub(crate) fn sweep(&self, now: Instant) {
        let mut calls = self.lock();
        let given_up: Vec<_> =
            calls.waiting.extract_if(|_, it| it.is_late(self.longest, now)).collect();
        // Dropping them runs code of others, which must not find the table locked.
        drop(calls);
        drop(given_up);
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::talk::Outlet;

    const LONGEST_WAIT: Duration = Duration::from_secs(600);

    /// Tells when it is dropped.
    struct Told(oneshot::Sender<()>);

    fn waiting() -> (Conversation, oneshot::Receiver<()>) {
        let (outlet, _) = queue(1);
        let (desk, asked) = Desk::new(Talk::new(Outlet::Request(outlet)));
        let (dropped, is_dropped) = oneshot::channel();
        let told = Told(dropped);
        let call: Calling = Box::pin(async move {
            std::future::pending::<()>().await;
            drop(told.0);
            Ok(empty().into())
        });
        (Conversation::new(call, desk, asked), is_dropped)
    }

    #[test]
    fn a_call_waits_for_its_client_for_its_time_and_is_given_up_then() {
        let parked = Parked::new(LONGEST_WAIT);
        let (early, mut is_early_dropped) = waiting();
        let number = parked.number();
        parked.put(number, early).unwrap();
        parked.sweep(Instant::now() + LONGEST_WAIT.mul_f32(0.9));
        assert_eq!(is_early_dropped.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        parked.sweep(Instant::now() + LONGEST_WAIT.mul_f32(1.1));
        assert_eq!(is_early_dropped.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert!(matches!(parked.take(number), Err(NoCall::Gone)));
    }

    #[tokio::test]
    async fn a_question_is_open_until_nobody_waits_for_its_answer() {
        let (outlet, _) = queue(1);
        let (desk, mut asked) = Desk::new(Talk::new(Outlet::Request(outlet)));
        let question = || Question { method: "roots/list".into(), params: None };
        {
            let mut asking = std::pin::pin!(desk.ask(question()));
            assert!(!desk.has_questions(), "nothing has been asked yet");
            tokio::select! {
                biased;
                _ = &mut asking => panic!("nobody answers"),
                _ = asked.recv() => assert!(desk.has_questions()),
            }
        }
        assert!(!desk.has_questions(), "whoever asked is gone");
        let answering = async {
            let (_, reply) = asked.recv().await;
            assert!(desk.has_questions());
            reply.send(Ok(empty())).unwrap();
        };
        assert!(tokio::join!(desk.ask(question()), answering).0.is_ok());
        assert!(!desk.has_questions());
    }

    #[test]
    fn a_call_that_is_in_the_way_of_others_is_given_up_earlier() {
        let parked = Parked::new(LONGEST_WAIT);
        let [one, other] = ["one", "other"].map(|name| ServerName::new(name).unwrap());
        let [mut first, mut second] = [&one, &other].map(|server| {
            let (conversation, is_dropped) = waiting();
            conversation.desk.is_of(server);
            parked.put(parked.number(), conversation).unwrap();
            is_dropped
        });
        parked.hurry(&one);
        let soon = Instant::now() + LONGEST_IN_THE_WAY.mul_f32(0.9);
        parked.sweep(soon);
        assert_eq!(first.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        parked.sweep(soon + LONGEST_IN_THE_WAY.mul_f32(0.2));
        assert_eq!(first.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(second.try_recv(), Err(oneshot::error::TryRecvError::Empty));
    }

    #[test]
    fn a_number_is_good_for_one_time_and_only_so_many_calls_wait() {
        let parked = Parked::new(LONGEST_WAIT);
        let numbers: Vec<_> = (0..MAX_PARKED).map(|_| parked.number()).collect();
        for number in &numbers {
            parked.put(*number, waiting().0).unwrap();
        }
        let refused = parked.put(parked.number(), waiting().0).unwrap_err();
        assert_eq!(refused.code(), code::INTERNAL_ERROR);
        assert!(parked.take(numbers[0]).is_ok() && parked.take(numbers[0]).is_err());
        parked.put(parked.number(), waiting().0).unwrap();
    }
}
