//! Where questions of a server wait for the client of its call, which has to call again to answer them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::oneshot;
use trunkline::connection::Question;
use trunkline::message::{Raw, RpcError};
use trunkline::name::ServerName;
use trunkline::protocol::code;
use trunkline::queue::{Receiver, Sender, queue};

use super::channel::Talk;

/// Questions one call may have open.
const MAX_QUESTIONS: usize = 16;

/// Where the answer to a question goes.
pub(crate) type Reply = oneshot::Sender<Result<Raw, RpcError>>;

/// Where questions of a server wait for the client of its call.
pub(crate) struct Desk {
    questions: Sender<(Question, Reply)>,
    /// The way to the client, which is another one whenever it calls again.
    talk: Mutex<Talk>,
    /// The server that asks, once it is known.
    pub(crate) server: OnceLock<ServerName>,
    /// How many questions wait for an answer.
    waiting: AtomicUsize,
    /// Whether a question for somebody else was refused since this one was asked.
    pub(crate) is_in_the_way: AtomicBool,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::channel::Outlet;

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
            reply.send(Ok(Raw::empty_object())).unwrap();
        };
        assert!(tokio::join!(desk.ask(question()), answering).0.is_ok());
        assert!(!desk.has_questions());
    }
}
