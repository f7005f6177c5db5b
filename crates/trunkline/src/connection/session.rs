//! A server that is being spoken to: requests out, answers back to whoever waits for them.

mod deadline;
mod empty_replies;
mod masking;
mod past_calls;
mod pending;
mod server_requests;
mod partial_messages;
mod responses;
mod notifications;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use self::deadline::Deadline;
pub(super) use self::deadline::QUESTIONS;
use self::empty_replies::EmptyReplies;
pub(super) use self::masking::masked_raw;
use self::past_calls::CallEnd;
pub(super) use self::pending::MAX_PENDING_CALLS;
use self::pending::{Pending, Waiting};
use super::client_meta::{ClientMeta, request_params, with_progress_token};
use super::handler::{Abandoned, CallHandler, Update};
use super::param_headers::{Mirrored, headers, subject};
use super::state::error_context::explained;
use crate::error::{Error, ErrorKind};
use crate::message::{Message, Notification, Raw, RpcError};
use crate::principal::{ClientId, Requester};
use crate::protocol::{Era, ProtocolVersion};
use crate::queue::Sender;
use crate::transport::{Incoming, Outgoing, Purpose, RemainingProcess, SecretMask, Wire};
use partial_messages::{after_noise, is_cuttable, unreadable};
use server_requests::{Asides, Open};

/// What is taken from one server before others get their turn.
const TURNS: u32 = 64;

/// What became of a request: the server's result or error, or why there is neither.
pub(super) type Answer = Result<Result<Raw, RpcError>, Error>;

/// Something the server said that is not for one request, or that ends the conversation.
#[derive(Debug)]
pub(super) enum Event {
    /// It told something, which can only be about the calls of this client, if it is about calls.
    Told(Notification, Option<ClientId>),
    /// It said something that is no message.
    Noise,
    /// Nobody waits for it any more.
    Quiet,
    /// It has forgotten us. Requests that it had accepted before may still be answered.
    Forgotten,
    /// No connection to it can be made any more. Requests that it has may still be answered.
    OutOfReach(Error),
    /// Nothing more comes from it.
    Ended(Error),
}

/// The ids of requests to one server: never the same twice, also when it is started again.
#[derive(Debug, Default)]
pub(super) struct Ids(AtomicU64);

impl Ids {
    pub(super) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A request on its way to the server.
pub(super) struct Asked {
    pub(super) id: u64,
    pub(super) method: Arc<str>,
    pub(super) params: Option<Raw>,
    /// The conversation in which alone it is to be sent.
    pub(super) within: Option<u64>,
    /// When the answer is too late, whatever happens.
    pub(super) deadline: Instant,
    /// How long the answer may take once the server has been asked, without its own questions.
    pub(super) patience: Duration,
    pub(super) reply: oneshot::Sender<Answer>,
    /// Where to say what the server says in the meantime.
    pub(super) updates: Option<Sender<Update>>,
    /// Whether the server is to say how far it is.
    pub(super) wants_progress: bool,
    /// Whether it waits for as long as the server lives.
    pub(super) is_standing: bool,
    /// The client it is made for; `None` if the connection makes it for itself.
    pub(super) requester: Option<Requester>,
}

/// A conversation with a server.
pub(super) struct Session {
    wire: Wire,
    /// Which of the server's conversations this is.
    number: u64,
    /// What every modern request declares.
    client_meta: ClientMeta,
    pub(super) version: ProtocolVersion,
    pending: Pending,
    asides: Asides,
    /// What the server asks and waits for.
    open: Vec<Open>,
    /// How long a question of the server may wait for an answer.
    question: Duration,
    /// Arguments that are repeated in headers, by tool.
    mirrored: HashMap<Box<str>, Arc<[Mirrored]>>,
    /// When somebody was answered last.
    last_answer: Instant,
    /// What is still to be said to one request, or to all: it ends the conversation, and whoever hears
    /// it should find everything as it is then.
    unsaid: Option<(Option<u64>, Error)>,
    empty_replies: EmptyReplies,
    /// Lines that were no messages.
    pub(super) noise: u64,
    /// How often something has happened.
    turns: u32,
    /// What is masked in everything the server says, if anything is.
    pub(super) mask: Option<Arc<SecretMask>>,
}

impl Session {
    /// A conversation in which nothing has been said, with somebody who answers questions that
    /// belong to no request, if anybody does, and how long answers to questions may take.
    pub(super) fn new(
        wire: Wire,
        number: u64,
        client_meta: ClientMeta,
        (attendant, question): (Option<Arc<dyn CallHandler>>, Duration),
    ) -> Self {
        Self {
            wire,
            number,
            client_meta,
            version: ProtocolVersion::MODERN,
            pending: Pending::default(),
            asides: Asides::new(attendant, question),
            open: Vec::new(),
            question,
            mirrored: HashMap::new(),
            last_answer: Instant::now(),
            unsaid: None,
            empty_replies: EmptyReplies::default(),
            noise: 0,
            turns: 0,
            mask: None,
        }
    }

    pub(super) fn wire(&self) -> &Wire {
        &self.wire
    }

    /// What every modern request declares.
    pub(super) fn client_meta(&self) -> &ClientMeta {
        &self.client_meta
    }

    /// Sends in this protocol version from now on.
    pub(super) fn set_version(&mut self, version: ProtocolVersion) {
        self.wire.set_protocol_version(version);
        self.version = version;
    }

    /// Listens to what the server says by itself.
    pub(super) fn listen(&mut self) {
        self.wire.listen();
    }

    /// Whether arguments are repeated in headers.
    pub(super) fn mirrors(&self) -> bool {
        self.version.era() == Era::Modern && self.wire.cancels_by_closing()
    }

    /// Repeats these arguments in headers from now on.
    pub(super) fn set_mirrored(&mut self, mirrored: HashMap<Box<str>, Arc<[Mirrored]>>) {
        self.mirrored = mirrored;
    }

    /// Whether another call of its requester may wait for the server.
    pub(super) fn admits(&self, asked: &Asked) -> bool {
        asked.requester.as_ref().is_none_or(|requester| self.pending.admits(requester))
    }

    /// Whether so much waits to be read by the server that nothing more should be sent.
    pub(super) fn is_full(&self) -> bool {
        self.wire.is_full()
    }

    /// Stays until everybody who waits has been answered, and ends then.
    pub(super) async fn fade(mut self, patience: Duration) {
        while self.pending.len() > 0 {
            if let Event::Ended(_) = self.next().await {
                break;
            }
        }
        self.close(patience).await;
    }

    /// Since when nobody waits for anything, if that is so.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        (self.pending.len() == 0).then_some(self.last_answer)
    }

    /// Sends a request. Its answer goes to whoever holds the other end of its reply.
    pub(super) fn ask(&mut self, asked: Asked) {
        let Asked { id, method, params, reply, updates, is_standing, requester, .. } = asked;
        let deadline = asked.deadline.min(Instant::now() + asked.patience);
        let deadline = Deadline::new(deadline, self.question);
        let params = request_params(self.version.era(), params, &self.client_meta);
        let (params, token) = match asked.wants_progress {
            true => with_progress_token(params, id),
            false => (params, None),
        };
        let params = params.as_ref();
        let name = if self.mirrors() { subject(&method, params) } else { None };
        let parameters = self.parameters(&method, params, name.as_deref());
        let line = Message::write_request(id, &method, params);
        let (is_settled, is_cuttable) = (false, is_cuttable(&method));
        let waiting = Waiting {
            reply,
            deadline,
            updates,
            token,
            is_standing,
            is_settled,
            is_cuttable,
            requester,
        };
        self.pending.insert(id, waiting);
        self.wire
            .send(Outgoing { line, purpose: Purpose::Request { id, method, name, parameters } });
    }

    fn parameters(
        &self,
        method: &str,
        params: Option<&Raw>,
        name: Option<&str>,
    ) -> Vec<(Box<str>, Box<str>)> {
        match name.and_then(|name| self.mirrored.get(name)) {
            Some(mirrored) if method == "tools/call" => headers(mirrored, params),
            _ => Vec::new(),
        }
    }

    /// Tells the server something.
    pub(super) fn tell(&mut self, method: &str, params: Option<Raw>) {
        let notification = Notification { method: method.into(), params };
        let line = Message::Notification(notification).write();
        let purpose = Purpose::Notification { method: method.into() };
        self.wire.send(Outgoing { line, purpose });
    }

    /// Forgets a request that nobody waits for any more, and tells the server (CON-13).
    pub(super) fn abandon(&mut self, Abandoned { id, last_words }: Abandoned) {
        if self.pending.contains(id) {
            self.last_answer = Instant::now();
            // Another id in them must not end another's request.
            let is_clear = |words: &Raw| words.is_object() && words.get_alone("requestId").is_ok();
            let unsaid = || reason("nobody waits for the answer any more");
            let end = self.cancel(id, &last_words.filter(is_clear).unwrap_or_else(unsaid));
            self.pending.end(id, end);
        }
    }

    /// Tells the server that an answer is not wanted any more, in the way of its generation. Says how
    /// that ends the request.
    fn cancel(&mut self, id: u64, words: &Raw) -> CallEnd {
        if self.wire.cancel(id) {
            return CallEnd::Unsent;
        }
        if self.version.era() != Era::Modern || !self.wire.cancels_by_closing() {
            let params = words.with("requestId", &Raw::from_number(id));
            self.tell("notifications/cancelled", Some(params));
        }
        CallEnd::GivenUp
    }

    /// Moves messages both ways until the server says something that is not for one request, or
    /// ends. Whom that end leaves without an answer is told when it is asked for more, or closed. May
    /// be dropped at any time.
    pub(super) async fn next(&mut self) -> Event {
        let was_busy = self.pending.len() > 0;
        self.say_unsaid();
        loop {
            if was_busy && self.pending.len() == 0 {
                return Event::Quiet;
            }
            self.turns = self.turns.wrapping_add(1);
            if self.turns.is_multiple_of(TURNS) {
                // A server that never stops talking is not the only one.
                tokio::task::yield_now().await;
            }
            let incoming = tokio::select! {
                incoming = self.wire.next() => incoming,
                response = self.asides.next() => {
                    self.respond(self.number, response);
                    continue;
                }
                () = at(self.pending.next_deadline()) => {
                    self.expire();
                    continue;
                }
            };
            match masking::masked(self.mask.as_deref(), incoming) {
                Incoming::Message(line) => {
                    if let Some(event) = self.received(&line, None) {
                        return event;
                    }
                }
                Incoming::Answer(response) => {
                    if let Some(event) = self.answered(response) {
                        return event;
                    }
                }
                Incoming::Aside { id, line } => {
                    if let Some(event) = self.received(&line, Some(id)) {
                        return event;
                    }
                }
                Incoming::Lost { id, error } => match consequence(&error) {
                    Some(event) => {
                        self.unsaid = Some((Some(id), error));
                        return event;
                    }
                    None => self.answer(id, Err(error)),
                },
                Incoming::Empty { id, error } => {
                    if let Some(event) = self.on_empty_reply(id, error) {
                        return event;
                    }
                }
                Incoming::Ended(error) => {
                    let error = explained(error, &self.wire.last_lines(), 0);
                    self.unsaid = Some((None, error.clone()));
                    return Event::Ended(error);
                }
            }
        }
    }

    fn say_unsaid(&mut self) {
        match self.unsaid.take() {
            Some((Some(id), error)) => self.answer(id, Err(error)),
            Some((None, error)) => self.pending.fail_all(&error),
            None => {}
        }
    }

    /// Takes a line, perhaps about a request: answers go to whoever waits, noise is counted.
    fn received(&mut self, line: &Bytes, about: Option<u64>) -> Option<Event> {
        match Message::read(line) {
            Ok(Message::Response(response)) => self.answered(response),
            Ok(Message::Notification(notification)) => {
                self.told(notification, about).map(|(it, client)| Event::Told(it, client))
            }
            Ok(Message::Request(request)) => {
                self.asked(request, about);
                None
            }
            Err(malformed) => match (unreadable(line, malformed), after_noise(line)) {
                (Some((id, problem)), _) => {
                    self.answer(id, Err(Error::new(ErrorKind::NotMcp, problem)));
                    None
                }
                (None, Some(rest)) => {
                    self.noise += 1;
                    self.received(&rest, about)
                }
                (None, None) => self.noise(),
            },
        }
    }

    fn expire(&mut self) {
        let now = Instant::now();
        while let Some(id) = self.pending.expired(now) {
            let error = match self.pending.is_asked(id) {
                true => Error::new(ErrorKind::TimedOut, "its question was not answered in time")
                    .with_hint("`timeouts.question` is the bound"),
                false => Error::new(ErrorKind::TimedOut, "it did not answer in time"),
            };
            self.last_answer = now;
            let end = self.cancel(id, &reason("the time for an answer is over"));
            self.pending.answer(id, Err(error), end);
        }
    }

    /// Asks and waits for the answer, before anybody else speaks.
    pub(super) async fn exchange(
        &mut self,
        id: u64,
        method: &str,
        params: Option<Raw>,
        deadline: Instant,
    ) -> Answer {
        let (reply, mut answer) = oneshot::channel();
        self.ask(Asked {
            id,
            method: method.into(),
            params,
            within: None,
            deadline,
            patience: deadline.saturating_duration_since(Instant::now()),
            reply,
            updates: None,
            wants_progress: false,
            is_standing: false,
            requester: None,
        });
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => {
                    return answer.unwrap_or_else(|_| Err(gone()));
                }
                event = self.next() => {
                    if let Event::Ended(error) = event {
                        return answer.try_recv().unwrap_or(Err(error));
                    }
                }
            }
        }
    }

    /// Ends the conversation and the server. Returns the processes that could not be ended.
    pub(super) async fn close(mut self, patience: Duration) -> Vec<RemainingProcess> {
        self.say_unsaid();
        self.pending.fail_all(&stopping());
        self.wire.close(patience).await
    }
}

/// What a server hears of a request that is given up.
fn reason(text: &str) -> Raw {
    Raw::empty_object().with("reason", &Raw::from_string(text))
}

/// What it means for the whole conversation that one request was lost; most often nothing.
fn consequence(error: &Error) -> Option<Event> {
    match error.kind() {
        ErrorKind::SessionExpired => Some(Event::Forgotten),
        kind if kind.is_out_of_reach() => Some(Event::OutOfReach(error.clone())),
        _ => None,
    }
}

/// The server is being ended by us.
pub(super) fn stopping() -> Error {
    Error::new(ErrorKind::Stopping, "the server is being stopped")
}

pub(super) fn gone() -> Error {
    Error::new(ErrorKind::Stopping, "the connection is closed")
}

/// Waits until then; for ever, if there is no such time.
pub(super) async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
