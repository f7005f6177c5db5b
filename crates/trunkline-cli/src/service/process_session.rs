//! The MCP session of a process that one command after another uses: the handshake is answered again from its first
//! time, and only a process without open requests is given to the next command.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use serde_json::json;
use trunkline::message::{Id, Message, Notification, Raw, Request, Response, RpcError};
use trunkline::protocol::code;

/// Requests that are answered once for all commands.
const HANDSHAKE: [&str; 2] = ["server/discover", "initialize"];

/// Messages after which a process is not used again: it may still do something for the command that sent them.
const LEAVES_STATE: [&str; 3] = ["notifications/cancelled", "resources/subscribe", "tasks/cancel"];

/// The session of a process.
pub(crate) struct ProcessSession {
    handshake: Vec<RecordedExchange>,
    /// Whether the server was told that the legacy handshake is complete.
    is_initialized: bool,
    /// The requests of this command that have no response yet.
    pending: HashMap<Id, Request>,
    /// The requests of the server that this command has not answered.
    server_requests: HashSet<Id>,
    highest_id: u64,
    is_spoiled: bool,
}

/// A request of the handshake with its response.
struct RecordedExchange {
    request: Request,
    outcome: Result<Raw, RpcError>,
}

/// Where a line of the command goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineRoute {
    /// To the process.
    Forward(Bytes),
    /// Nowhere: this is the response.
    Respond(Bytes),
    /// Nowhere.
    Drop,
    /// The process cannot be used in this way; the command has to start its own.
    Refuse,
}

impl ProcessSession {
    pub(crate) fn new() -> Self {
        Self {
            handshake: Vec::new(),
            is_initialized: false,
            pending: HashMap::new(),
            server_requests: HashSet::new(),
            highest_id: 0,
            is_spoiled: false,
        }
    }

    /// The first request ID that no command has used.
    pub(crate) fn first_request_id(&self) -> u64 {
        self.highest_id + 1
    }

    /// A line of the command.
    pub(crate) fn on_command_line(&mut self, line: Bytes) -> LineRoute {
        match Message::read(&line) {
            Ok(Message::Request(request)) => self.on_request(request, line),
            Ok(Message::Notification(notification)) => {
                let method = &*notification.method;
                self.is_spoiled |= LEAVES_STATE.contains(&method);
                if method == "notifications/initialized" {
                    if self.is_initialized {
                        return LineRoute::Drop;
                    }
                    self.is_initialized = true;
                }
                LineRoute::Forward(line)
            }
            Ok(Message::Response(response)) => {
                self.server_requests.remove(&response.id.normalized());
                LineRoute::Forward(line)
            }
            Err(_) => {
                self.is_spoiled = true;
                LineRoute::Forward(line)
            }
        }
    }

    fn on_request(&mut self, request: Request, line: Bytes) -> LineRoute {
        self.highest_id = self.highest_id.max(request.id.as_number().unwrap_or_default());
        self.is_spoiled |= LEAVES_STATE.contains(&&*request.method);
        if HANDSHAKE.contains(&&*request.method) {
            let is_same = |it: &&RecordedExchange| {
                it.request.method == request.method && it.request.params == request.params
            };
            if let Some(recorded) = self.handshake.iter().find(is_same) {
                let outcome = recorded.outcome.clone();
                let response = Response { id: request.id, outcome };
                return LineRoute::Respond(Message::Response(response).write());
            }
            if &*request.method == "initialize" && self.is_initialized {
                self.is_spoiled = true;
                return LineRoute::Refuse;
            }
        }
        self.pending.insert(request.id.normalized(), request);
        LineRoute::Forward(line)
    }

    /// A line of the process. Returns whether it is for the command.
    pub(crate) fn on_process_line(&mut self, line: &Bytes) -> bool {
        match Message::read(line) {
            Ok(Message::Response(response)) => {
                let Some(request) = self.pending.remove(&response.id.normalized()) else {
                    // A response to an earlier command.
                    return false;
                };
                if HANDSHAKE.contains(&&*request.method) {
                    let outcome = response.outcome;
                    self.handshake.push(RecordedExchange { request, outcome });
                }
            }
            Ok(Message::Request(request)) => {
                self.server_requests.insert(request.id.normalized());
            }
            // The command reports what is no message.
            Ok(Message::Notification(_)) | Err(_) => {}
        }
        true
    }

    /// The response to a line of the process while no command uses it, if it needs one.
    pub(crate) fn on_idle_line(line: &Bytes) -> Option<Bytes> {
        let Ok(Message::Request(request)) = Message::read(line) else { return None };
        let outcome = match &*request.method {
            "ping" => Ok(Raw::empty_object()),
            method => {
                let message = format!("no client is connected that could answer `{method}`");
                Err(RpcError::new(code::METHOD_NOT_FOUND, &message))
            }
        };
        Some(Message::Response(Response { id: request.id, outcome }).write())
    }

    /// Ends the use by a command. Returns the messages to the process, or `None` if it cannot be used by another.
    pub(crate) fn finish(&mut self) -> Option<Vec<Bytes>> {
        let (streams, others): (Vec<_>, Vec<_>) =
            self.pending.drain().partition(|(_, it)| &*it.method == "subscriptions/listen");
        let has_handshake = self.is_initialized || self.is_modern();
        let is_open = !others.is_empty() || !self.server_requests.is_empty();
        if self.is_spoiled || is_open || !has_handshake {
            return None;
        }
        Some(streams.into_iter().map(|(_, request)| cancellation(&request)).collect())
    }

    /// Whether the server has answered `server/discover`, after which it has no session.
    fn is_modern(&self) -> bool {
        let is_answered =
            |it: &RecordedExchange| &*it.request.method == "server/discover" && it.outcome.is_ok();
        self.handshake.iter().any(is_answered)
    }
}

/// The cancellation of a stream that the command had open.
fn cancellation(request: &Request) -> Bytes {
    let params = Raw::from_value(&json!({ "reason": "the command has ended" }));
    let params = Some(params.with("requestId", request.id.raw()));
    let method = "notifications/cancelled".into();
    Message::Notification(Notification { method, params }).write()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(value: &serde_json::Value) -> Bytes {
        value.to_string().into()
    }

    fn request(id: u64, method: &str) -> Bytes {
        line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} }))
    }

    fn notification(method: &str) -> Bytes {
        line(&json!({ "jsonrpc": "2.0", "method": method }))
    }

    fn result(id: u64) -> Bytes {
        line(&json!({ "jsonrpc": "2.0", "id": id, "result": { "of": 1 } }))
    }

    /// A session after the legacy handshake of the first command.
    fn initialized() -> ProcessSession {
        let mut session = ProcessSession::new();
        exchange(&mut session, 1, "initialize");
        session.on_command_line(notification("notifications/initialized"));
        session
    }

    fn exchange(session: &mut ProcessSession, id: u64, method: &str) {
        let sent = session.on_command_line(request(id, method));
        assert_eq!(sent, LineRoute::Forward(request(id, method)));
        assert!(session.on_process_line(&result(id)));
    }

    #[test]
    fn the_handshake_of_the_next_command_is_answered_from_the_first() {
        let mut session = initialized();
        exchange(&mut session, 2, "tools/list");
        assert_eq!(session.finish(), Some(Vec::new()));
        assert_eq!(session.first_request_id(), 3);
        let LineRoute::Respond(answer) = session.on_command_line(request(3, "initialize")) else {
            panic!()
        };
        let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 3, "result": { "of": 1 } }));
        let again = session.on_command_line(notification("notifications/initialized"));
        assert_eq!(again, LineRoute::Drop);
        exchange(&mut session, 4, "tools/call");
        assert!(session.finish().is_some());
    }

    #[test]
    fn another_handshake_needs_another_process() {
        let mut session = initialized();
        let other =
            json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": { "a": 1 } });
        assert_eq!(session.on_command_line(line(&other)), LineRoute::Refuse);
        assert_eq!(session.finish(), None);
    }

    #[test]
    fn a_process_with_open_requests_is_not_used_again() {
        let mut session = initialized();
        session.on_command_line(request(2, "tools/call"));
        assert_eq!(session.finish(), None, "a call");
        let mut session = initialized();
        session.on_command_line(request(2, "tools/call"));
        let ask = line(&json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create" }));
        assert!(session.on_process_line(&ask) && session.on_process_line(&result(2)));
        assert_eq!(session.finish(), None, "an elicitation");
        for method in LEAVES_STATE {
            let mut session = initialized();
            session.on_command_line(notification(method));
            assert_eq!(session.finish(), None, "{method}");
        }
        let mut session = ProcessSession::new();
        exchange(&mut session, 1, "initialize");
        assert_eq!(session.finish(), None, "half of the handshake");
    }

    #[test]
    fn an_open_stream_is_cancelled_and_its_response_dropped() {
        let mut session = ProcessSession::new();
        exchange(&mut session, 1, "server/discover");
        session.on_command_line(request(2, "subscriptions/listen"));
        let [cancelled] = &session.finish().unwrap()[..] else { panic!() };
        let cancelled: serde_json::Value = serde_json::from_slice(cancelled).unwrap();
        assert_eq!(cancelled["params"]["requestId"], 2);
        assert!(!session.on_process_line(&result(2)));
    }

    #[test]
    fn requests_between_two_commands_are_answered() {
        let answer = |method: &str| {
            let ask = json!({ "jsonrpc": "2.0", "id": 7, "method": method });
            let answer = ProcessSession::on_idle_line(&line(&ask)).unwrap();
            serde_json::from_slice::<serde_json::Value>(&answer).unwrap()
        };
        assert_eq!(answer("ping"), json!({ "jsonrpc": "2.0", "id": 7, "result": {} }));
        assert_eq!(answer("roots/list")["error"]["code"], -32601);
        assert_eq!(ProcessSession::on_idle_line(&result(1)), None);
    }
}
