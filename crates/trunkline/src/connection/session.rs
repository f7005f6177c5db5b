//! A server that is being spoken to: requests out, answers back to whoever waits for them.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::generation::Generation;
use crate::error::{Error, ErrorKind};
use crate::message::{
    Id, Malformed, Message, Notification, Raw, Request, Response, RpcError, code,
};
use crate::wire::{Incoming, Outgoing, Purpose, Wire};

/// What became of a request: the server's result or error, or why there is neither.
pub(super) type Answer = Result<Result<Raw, RpcError>, Error>;

/// Something the server said that nobody asked for, or that ends the conversation.
#[derive(Debug)]
pub(super) enum Event {
    /// It told something.
    Told(Notification),
    /// It said something that is no message.
    Noise,
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
    pub(super) method: Box<str>,
    pub(super) params: Option<Raw>,
    pub(super) deadline: Instant,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// Somebody who waits for an answer.
struct Waiting {
    reply: oneshot::Sender<Answer>,
    deadline: Instant,
}

/// A conversation with a server.
pub(super) struct Session {
    wire: Wire,
    pub(super) generation: Generation,
    pending: HashMap<u64, Waiting>,
    /// The pending requests by when they are over.
    deadlines: BTreeSet<(Instant, u64)>,
    /// Lines that were no messages.
    pub(super) noise: u64,
}

impl Session {
    pub(super) fn new(wire: Wire) -> Self {
        Self {
            wire,
            generation: Generation::Modern,
            pending: HashMap::new(),
            deadlines: BTreeSet::new(),
            noise: 0,
        }
    }

    pub(super) fn wire(&self) -> &Wire {
        &self.wire
    }

    /// Goes over to a generation, on the wire as well.
    pub(super) fn speak(&mut self, generation: Generation) {
        self.wire.set_protocol_version(generation.revision());
        self.generation = generation;
    }

    /// Listens to what the server says by itself.
    pub(super) fn listen(&mut self) {
        self.wire.listen();
    }

    /// How many requests wait for an answer.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Sends a request. Its answer goes to whoever holds the other end of its reply.
    pub(super) fn ask(&mut self, asked: Asked) {
        let Asked { id, method, params, deadline, reply } = asked;
        let params = self.generation.params(params);
        let request = Request { id: Id::number(id), method: method.clone(), params };
        let name = subject(&request);
        let line = Message::Request(request).write();
        self.pending.insert(id, Waiting { reply, deadline });
        self.deadlines.insert((deadline, id));
        let parameters = Vec::new();
        let purpose = Purpose::Request { id, method, name, parameters };
        self.wire.send(Outgoing { line, purpose });
    }

    /// Tells the server something.
    pub(super) fn tell(&mut self, method: &str, params: Option<Raw>) {
        let notification = Notification { method: method.into(), params };
        let line = Message::Notification(notification).write();
        let purpose = Purpose::Notification { method: method.into() };
        self.wire.send(Outgoing { line, purpose });
    }

    /// Forgets a request that nobody waits for any more, and tells the server (CON-13).
    pub(super) fn abandon(&mut self, id: u64) {
        if self.forget(id).is_some() {
            self.cancel(id, "nobody waits for the answer any more");
        }
    }

    /// Tells the server that an answer is not wanted any more, in the way of its generation.
    fn cancel(&mut self, id: u64, reason: &str) {
        self.wire.cancel(id);
        if self.generation == Generation::Modern && self.wire.cancels_by_closing() {
            return;
        }
        let params = serde_json::json!({ "requestId": id, "reason": reason });
        self.tell("notifications/cancelled", Some(Raw::from_value(&params)));
    }

    fn forget(&mut self, id: u64) -> Option<Waiting> {
        let waiting = self.pending.remove(&id)?;
        self.deadlines.remove(&(waiting.deadline, id));
        Some(waiting)
    }

    /// Moves messages both ways until the server says something that is not an answer, or ends.
    /// Every pending request is answered by then, or still pending. May be dropped at any time.
    pub(super) async fn next(&mut self) -> Event {
        loop {
            let deadline = self.deadlines.first().map(|(deadline, _)| *deadline);
            let incoming = tokio::select! {
                incoming = self.wire.next() => incoming,
                () = at(deadline) => {
                    self.expire();
                    continue;
                }
            };
            match incoming {
                Incoming::Message(line) => {
                    let noise = self.noise;
                    if let Some(notification) = self.received(&line) {
                        return Event::Told(notification);
                    }
                    if self.noise > noise {
                        return Event::Noise;
                    }
                }
                Incoming::Lost { error, .. } if error.kind() == ErrorKind::SessionExpired => {
                    // It has forgotten us, and with that everybody who waits.
                    self.fail_all(&error);
                    return Event::Ended(error);
                }
                Incoming::Lost { id, error } => self.answer(id, Err(error)),
                Incoming::Ended(error) => {
                    let error = explained(error, &self.wire.last_lines());
                    self.fail_all(&error);
                    return Event::Ended(error);
                }
            }
        }
    }

    /// Takes a line: answers go to whoever waits, requests are answered, noise is counted.
    fn received(&mut self, line: &bytes::Bytes) -> Option<Notification> {
        match Message::read(line) {
            Ok(Message::Response(Response { id, outcome })) => {
                // An answer to nothing we asked is noise; so is a second one.
                match id.as_number().filter(|id| self.pending.contains_key(id)) {
                    Some(id) => self.answer(id, Ok(outcome)),
                    None => self.noise += 1,
                }
                None
            }
            Ok(Message::Notification(notification)) => Some(notification),
            Ok(Message::Request(request)) => {
                self.respond(request);
                None
            }
            Err(Malformed::NotRpc(Some(id))) if id.as_number().is_some() => {
                let error = Error::new(ErrorKind::NotMcp, "the answer is not a JSON-RPC message");
                self.answer(id.as_number().unwrap_or_default(), Err(error));
                None
            }
            Err(_) => {
                self.noise += 1;
                None
            }
        }
    }

    /// Answers a request of the server: we are alive, and offer nothing else yet.
    fn respond(&mut self, request: Request) {
        // A program such as `cat` sends back what it is sent.
        let ours = request.id.as_number().filter(|id| self.pending.contains_key(id));
        if let Some(id) = ours.filter(|_| &*request.method != "ping") {
            let message = "it repeats what it is sent, which no MCP server does";
            return self.answer(id, Err(Error::new(ErrorKind::NotMcp, message)));
        }
        let outcome = match &*request.method {
            "ping" => Ok(Raw::from_value(&serde_json::json!({}))),
            _ => Err(RpcError::new(code::METHOD_NOT_FOUND, "this client does not offer that")),
        };
        let line = Message::Response(Response { id: request.id, outcome }).write();
        self.wire.send(Outgoing { line, purpose: Purpose::Response });
    }

    fn answer(&mut self, id: u64, answer: Answer) {
        if let Some(waiting) = self.forget(id) {
            let _ = waiting.reply.send(answer);
        }
    }

    fn expire(&mut self) {
        let now = Instant::now();
        while let Some((deadline, id)) = self.deadlines.first().copied()
            && deadline <= now
        {
            let error = Error::new(ErrorKind::TimedOut, "it did not answer in time");
            self.answer(id, Err(error));
            self.cancel(id, "the time for an answer is over");
        }
    }

    fn fail_all(&mut self, error: &Error) {
        self.deadlines.clear();
        for (_, waiting) in self.pending.drain() {
            let _ = waiting.reply.send(Err(error.clone()));
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
        self.ask(Asked { id, method: method.into(), params, deadline, reply });
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => {
                    return answer.unwrap_or_else(|_| Err(gone()));
                }
                event = self.next() => {
                    if let Event::Ended(error) = event {
                        return answer.await.unwrap_or(Err(error));
                    }
                }
            }
        }
    }

    /// Ends the conversation and the server.
    pub(super) async fn close(mut self, patience: Duration) {
        self.fail_all(&Error::new(ErrorKind::Unreachable, "the server is being stopped"));
        self.wire.close(patience).await;
    }
}

/// The name or address that a request is about, which some wires say beside it.
fn subject(request: &Request) -> Option<Box<str>> {
    let key = match &*request.method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return None,
    };
    let value = request.params.as_ref()?.get(key)?;
    value.as_str().map(Into::into)
}

/// An error with the last lines of the server's standard error as its hint, if it has no other.
pub(super) fn explained(error: Error, lines: &[String]) -> Error {
    if error.hint().is_some() {
        return error;
    }
    let last: Vec<_> = lines.iter().rev().take(3).rev().map(String::as_str).collect();
    let hint = match (error.kind(), last.as_slice()) {
        (_, [_, ..]) => format!("it said: {}", last.join(" | ")),
        (ErrorKind::TimedOut | ErrorKind::NotMcp, []) => "is this an MCP server?".to_owned(),
        _ => return error,
    };
    error.with_hint(hint)
}

pub(super) fn gone() -> Error {
    Error::new(ErrorKind::Unreachable, "the connection is closed")
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
