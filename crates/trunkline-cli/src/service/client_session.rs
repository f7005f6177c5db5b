//! The session of a client of `connect`, as far as a restarted service has to know it. No request is sent
//! twice: one that was sent and has no response gets an error.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::json;
use trunkline::message::{Id, Message, Notification, Raw, Request, Response, RpcError};
use trunkline::protocol::{code, meta};

/// Prefix of the IDs of requests that are repeated for a new service. Clients do not see them.
const REPLAY_ID: &str = "trunkline-replay-";

/// Limit on the subscriptions that are repeated, which a client could otherwise add to forever.
const MAX_SUBSCRIPTIONS: usize = 10_000;

const LOST: &str = "the background service ended while this request was running; it may have been carried \
                    out, and was not sent again";

const LIST_CHANGES: [&str; 3] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
];

/// The session of one client, and its requests in flight.
#[derive(Default)]
pub(crate) struct ClientSession {
    initialize: Option<Request>,
    /// Whether `initialize` succeeded.
    is_open: bool,
    has_sent_initialized: bool,
    log_level: Option<Request>,
    /// Subscriptions to resources, by URI.
    subscriptions: BTreeMap<String, Request>,
    /// Streams of `subscriptions/listen`, by request ID, and whether they were acknowledged.
    streams: BTreeMap<String, (Request, bool)>,
    /// Requests that were sent and have no response, by ID.
    in_flight: BTreeMap<String, Request>,
    /// Requests of the service that the client has not answered: by the ID that the client knows.
    server_requests: BTreeMap<String, Id>,
    /// How many connections to the service were lost.
    generation: u64,
    replays: u64,
    /// Why a request that was repeated failed.
    replay_problem: Option<String>,
}

impl ClientSession {
    /// Records a message of the client that is about to be sent. Returns it as the service gets it; `None`
    /// for a response to a request of a service that has ended.
    pub(crate) fn send(&mut self, line: &Bytes) -> Option<Bytes> {
        match Message::read(line) {
            Ok(Message::Request(request)) => {
                self.record(request);
                Some(line.clone())
            }
            Ok(Message::Notification(notification)) => {
                self.on_client_notification(&notification);
                Some(line.clone())
            }
            Ok(Message::Response(response)) => {
                match self.server_requests.remove(&key(&response.id)) {
                    Some(id) if id == response.id => Some(line.clone()),
                    Some(id) => Some(Message::Response(Response { id, ..response }).write()),
                    None if self.generation == 0 => Some(line.clone()),
                    None => None,
                }
            }
            // The service responds with the error.
            Err(_) => Some(line.clone()),
        }
    }

    fn on_client_notification(&mut self, notification: &Notification) {
        match &*notification.method {
            "notifications/initialized" => self.has_sent_initialized = true,
            // The client expects no response any more.
            "notifications/cancelled" => {
                let params = notification.params.as_ref();
                let id = params.and_then(|it| it.get("requestId")).as_ref().and_then(Id::from_raw);
                if let Some(id) = id {
                    self.streams.remove(&key(&id));
                    self.in_flight.remove(&key(&id));
                }
            }
            _ => {}
        }
    }

    fn record(&mut self, request: Request) {
        let uri = || request.params.as_ref()?.get("uri")?.as_str().map(String::from);
        match &*request.method {
            "initialize" => self.initialize = Some(request.clone()),
            "logging/setLevel" => self.log_level = Some(request.clone()),
            "resources/subscribe" if self.subscriptions.len() < MAX_SUBSCRIPTIONS => {
                self.subscriptions.extend(uri().map(|uri| (uri, request.clone())));
            }
            "resources/unsubscribe" => {
                uri().and_then(|uri| self.subscriptions.remove(&uri));
            }
            "subscriptions/listen" => {
                self.streams.insert(key(&request.id), (request.clone(), false));
                return;
            }
            _ => {}
        }
        // Payloads are not needed for the error.
        let request = Request { params: None, ..request };
        self.in_flight.insert(key(&request.id), request);
    }

    /// Records a message of the service. Returns the messages that the client gets for it.
    pub(crate) fn receive(&mut self, line: &Bytes) -> Vec<Bytes> {
        match Message::read(line) {
            Ok(Message::Response(response)) => match self.on_response(&response) {
                true => vec![line.clone()],
                false => Vec::new(),
            },
            Ok(Message::Request(request)) => vec![self.on_server_request(line, request)],
            Ok(Message::Notification(notification)) => self.on_notification(line, notification),
            // The first part of a message that a service which ends has not finished.
            Err(_) => Vec::new(),
        }
    }

    /// Whether a response is for the client.
    fn on_response(&mut self, response: &Response) -> bool {
        if response.id.raw().as_str().is_some_and(|id| id.starts_with(REPLAY_ID)) {
            self.replay_problem = response.outcome.as_ref().err().map(RpcError::message);
            return false;
        }
        let id = key(&response.id);
        self.streams.remove(&id);
        if let Some(request) = self.in_flight.remove(&id) {
            let succeeded = response.outcome.is_ok();
            match &*request.method {
                "initialize" if succeeded => self.is_open = true,
                "initialize" => self.initialize = None,
                "resources/subscribe" if !succeeded => {
                    self.subscriptions.retain(|_, subscribe| key(&subscribe.id) != id);
                }
                _ => {}
            }
        }
        true
    }

    fn on_server_request(&mut self, line: &Bytes, request: Request) -> Bytes {
        // A new service counts from the beginning, and the client may still have a request of the old one.
        let shown = self.shown_id(&request.id);
        self.server_requests.insert(key(&shown), request.id.clone());
        match shown == request.id {
            true => line.clone(),
            false => Message::Request(Request { id: shown, ..request }).write(),
        }
    }

    fn shown_id(&self, id: &Id) -> Id {
        let renamed = || format!("{}-{}", self.generation, id.raw().text());
        match self.generation {
            0 => id.clone(),
            _ => Id::from_raw(&Raw::from_string(&renamed())).unwrap_or_else(|| id.clone()),
        }
    }

    fn on_notification(&mut self, line: &Bytes, notification: Notification) -> Vec<Bytes> {
        match &*notification.method {
            "notifications/cancelled" if self.generation > 0 => {
                self.renamed_cancellation(notification).into_iter().collect()
            }
            "notifications/subscriptions/acknowledged" => {
                let params = notification.params.as_ref();
                let id = params.and_then(|it| it.get("_meta")?.get(meta::SUBSCRIPTION_ID));
                let id = id.as_ref().and_then(Id::from_raw);
                let stream = id.and_then(|id| self.streams.get_mut(&key(&id)));
                match stream {
                    // The second acknowledgement of a stream is that of a new service.
                    Some((request, true)) => stream_changes(request),
                    Some((_, was_acknowledged)) => {
                        *was_acknowledged = true;
                        vec![line.clone()]
                    }
                    None => vec![line.clone()],
                }
            }
            _ => vec![line.clone()],
        }
    }

    /// The cancellation of a request of the service, under the ID that the client knows.
    fn renamed_cancellation(&mut self, notification: Notification) -> Option<Bytes> {
        let params = notification.params.as_ref()?;
        let shown = self.shown_id(&Id::from_raw(&params.get("requestId")?)?);
        self.server_requests.remove(&key(&shown));
        let params = Some(params.with("requestId", shown.raw()));
        Some(Message::Notification(Notification { params, ..notification }).write())
    }

    /// Ends what the lost connection had open. Returns the messages for the client: an error for each
    /// request in flight, and the cancellation of each request that the client has not answered.
    pub(crate) fn on_lost(&mut self) -> Vec<Bytes> {
        self.generation += 1;
        let is_kept = |request: &Request| &*request.method == "initialize";
        let (kept, lost): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.in_flight).into_iter().partition(|(_, it)| is_kept(it));
        self.in_flight = kept;
        let errors = lost.into_values().map(|request| error_response(&request.id, LOST, true));
        let open = std::mem::take(&mut self.server_requests);
        let cancelled = open.into_keys().filter_map(|id| {
            let id = Raw::from_text(&id).ok()?;
            let reason = Raw::from_string("the background service ended");
            let params = Raw::empty_object().with("requestId", &id).with("reason", &reason);
            let method = "notifications/cancelled".into();
            Some(Message::Notification(Notification { method, params: Some(params) }).write())
        });
        errors.chain(cancelled).collect()
    }

    /// The messages that open the session in a new service.
    pub(crate) fn replay(&mut self) -> Vec<Bytes> {
        let mut messages = Vec::new();
        if let Some(initialize) = self.initialize.clone() {
            let is_answered = self.is_open;
            messages.push(if is_answered {
                self.repeated(&initialize)
            } else {
                written(&initialize)
            });
        }
        if self.has_sent_initialized {
            let method = "notifications/initialized".into();
            messages.push(Message::Notification(Notification { method, params: None }).write());
        }
        let open: Vec<_> =
            self.log_level.iter().chain(self.subscriptions.values()).cloned().collect();
        messages.extend(open.iter().map(|request| self.repeated(request)));
        messages.extend(self.streams.values().map(|(request, _)| written(request)));
        messages
    }

    /// Tells a client with a session that lists may have changed while there was no service.
    pub(crate) fn list_changes(&self) -> Vec<Bytes> {
        if !self.is_open || !self.has_sent_initialized {
            return Vec::new();
        }
        let notification = |method: &str| Notification { method: method.into(), params: None };
        LIST_CHANGES.iter().map(|it| Message::Notification(notification(it)).write()).collect()
    }

    /// Ends what still waits for a service that cannot be reached. Returns the errors for the client.
    pub(crate) fn give_up(&mut self, message: &str) -> Vec<Bytes> {
        let streams = std::mem::take(&mut self.streams).into_values().map(|(request, _)| request);
        let waiting = std::mem::take(&mut self.in_flight).into_values().chain(streams);
        waiting.map(|request| error_response(&request.id, message, true)).collect()
    }

    /// Whether the client waits for the response to a request that is sent again.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Whether the client has a session or a stream, which should not stay without a service.
    pub(crate) fn is_live(&self) -> bool {
        self.is_open || !self.streams.is_empty() || !self.in_flight.is_empty()
    }

    /// Why a request that was repeated for a new service failed, once.
    pub(crate) fn take_replay_problem(&mut self) -> Option<String> {
        self.replay_problem.take()
    }

    /// Whether a connection was lost before.
    pub(crate) fn was_lost(&self) -> bool {
        self.generation > 0
    }

    /// A request under an ID of its own.
    fn repeated(&mut self, request: &Request) -> Bytes {
        self.replays += 1;
        let id = Raw::from_string(&format!("{REPLAY_ID}{}", self.replays));
        let id = Id::from_raw(&id).unwrap_or_else(|| request.id.clone());
        written(&Request { id, ..request.clone() })
    }
}

/// The error response to a message that was not sent; `None` if it expects none.
pub(crate) fn unsent_response(line: &Bytes, message: &str, is_retryable: bool) -> Option<Bytes> {
    match Message::read(line) {
        Ok(Message::Request(request)) => Some(error_response(&request.id, message, is_retryable)),
        _ => None,
    }
}

/// The error response to a message that is too long to be read.
pub(crate) fn too_long_response(limit: usize) -> Bytes {
    let message = format!("the message is longer than {limit} bytes");
    let error = json!({ "code": code::INVALID_REQUEST, "message": message });
    json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string().into()
}

/// The lists of a stream, which may have changed while there was no service.
fn stream_changes(request: &Request) -> Vec<Bytes> {
    let wanted = request.params.as_ref().and_then(|params| params.get("notifications"));
    let is_wanted = |key: &str| wanted.as_ref().and_then(|it| it.get(key)?.as_bool()) == Some(true);
    let keys = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"];
    let changed = keys.iter().zip(LIST_CHANGES).filter(|(key, _)| is_wanted(key));
    let params = Raw::empty_object()
        .with("_meta", &Raw::empty_object().with(meta::SUBSCRIPTION_ID, request.id.raw()));
    let notification =
        |method: &str| Notification { method: method.into(), params: Some(params.clone()) };
    changed.map(|(_, method)| Message::Notification(notification(method)).write()).collect()
}

fn error_response(id: &Id, message: &str, is_retryable: bool) -> Bytes {
    let data = Raw::from_value(&json!({ "retry": is_retryable }));
    let error = RpcError::new(code::INTERNAL_ERROR, message).with_data(&data);
    Message::Response(Response { id: id.clone(), outcome: Err(error) }).write()
}

fn written(request: &Request) -> Bytes {
    Message::Request(request.clone()).write()
}

/// An ID as a key: equal IDs may be written differently.
fn key(id: &Id) -> String {
    id.normalized().raw().text().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message in the order of members that it is written in.
    fn line(value: &serde_json::Value) -> Bytes {
        Message::read(&Bytes::from(value.to_string())).unwrap().write()
    }

    fn request(id: u64, method: &str) -> Bytes {
        line(&json!({ "jsonrpc": "2.0", "id": id, "method": method }))
    }

    fn result(id: impl Into<serde_json::Value>) -> Bytes {
        line(&json!({ "jsonrpc": "2.0", "id": id.into(), "result": {} }))
    }

    fn methods(lines: &[Bytes]) -> Vec<String> {
        let method = |line: &Bytes| match Message::read(line).unwrap() {
            Message::Request(request) => request.method.into(),
            Message::Notification(notification) => notification.method.into(),
            Message::Response(response) => format!("response to {}", response.id.raw().text()),
        };
        lines.iter().map(method).collect()
    }

    fn open_session() -> ClientSession {
        let mut session = ClientSession::default();
        session.send(&request(1, "initialize")).unwrap();
        session.receive(&result(1));
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        session.send(&line(&initialized)).unwrap();
        session
    }

    #[test]
    fn a_sent_call_gets_an_error_and_is_not_repeated() {
        let mut session = open_session();
        session.send(&request(2, "tools/call")).unwrap();
        let lost = session.on_lost();
        assert_eq!(methods(&lost), ["response to 2"]);
        let text = String::from_utf8(lost[0].to_vec()).unwrap();
        assert!(text.contains("was not sent again") && text.contains(r#""retry":true"#), "{text}");
        assert_eq!(methods(&session.replay()), ["initialize", "notifications/initialized"]);
        assert!(session.on_lost().is_empty(), "once");
    }

    #[test]
    fn the_session_is_opened_again_without_the_client() {
        let mut session = open_session();
        session.on_lost();
        let replay = session.replay();
        let Message::Request(initialize) = Message::read(&replay[0]).unwrap() else { panic!() };
        let answer =
            Message::Response(Response { id: initialize.id, outcome: Ok(Raw::empty_object()) });
        assert!(session.receive(&answer.write()).is_empty());
        assert_eq!(session.list_changes().len(), 3);
    }

    #[test]
    fn an_unanswered_initialize_is_sent_again_under_its_id() {
        let mut session = ClientSession::default();
        session.send(&request(1, "initialize")).unwrap();
        assert!(session.on_lost().is_empty());
        assert_eq!(session.replay(), [request(1, "initialize")]);
        assert_eq!(session.receive(&result(1)), [result(1)]);
        assert!(session.is_open && session.list_changes().is_empty());
    }

    #[test]
    fn subscriptions_and_the_log_level_are_set_again() {
        let mut session = open_session();
        let subscribe = |id: u64, method: &str, uri: &str| {
            line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": { "uri": uri } }))
        };
        session.send(&subscribe(2, "resources/subscribe", "a:1")).unwrap();
        session.send(&subscribe(3, "resources/subscribe", "a:2")).unwrap();
        session.send(&subscribe(4, "resources/subscribe", "a:3")).unwrap();
        let error = json!({ "jsonrpc": "2.0", "id": 4, "error": { "code": -1, "message": "no" } });
        session.receive(&line(&error));
        session.send(&subscribe(5, "resources/unsubscribe", "a:2")).unwrap();
        session.send(&request(6, "logging/setLevel")).unwrap();
        session.on_lost();
        let replay = session.replay();
        assert_eq!(methods(&replay[2..]), ["logging/setLevel", "resources/subscribe"]);
        assert!(String::from_utf8_lossy(&replay[3]).contains("a:1"));
    }

    #[test]
    fn a_stream_is_opened_again_and_acknowledged_once() {
        let mut session = ClientSession::default();
        let listen = line(&json!({ "jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen",
            "params": { "notifications": { "toolsListChanged": true } } }));
        session.send(&listen).unwrap();
        let acknowledged = line(&json!({ "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": { "_meta": { meta::SUBSCRIPTION_ID: 7 } } }));
        assert_eq!(session.receive(&acknowledged).len(), 1);
        assert!(session.on_lost().is_empty());
        assert_eq!(session.replay(), [listen]);
        assert_eq!(methods(&session.receive(&acknowledged)), ["notifications/tools/list_changed"]);
        assert!(session.is_live());
    }

    #[test]
    fn requests_of_an_old_service_are_cancelled_and_their_responses_dropped() {
        let mut session = open_session();
        let ask = request(1, "elicitation/create");
        assert_eq!(session.receive(&ask).first(), Some(&ask));
        let lost = session.on_lost();
        assert_eq!(methods(&lost), ["notifications/cancelled"]);
        assert_eq!(session.send(&result(1)), None);
        // The same ID of the new service is another request.
        let shown = session.receive(&ask).remove(0);
        let Message::Request(Request { id, .. }) = Message::read(&shown).unwrap() else { panic!() };
        assert_eq!(id.raw().text(), r#""1-1""#);
        assert_eq!(session.send(&result("1-1")), Some(result(1)));
        assert_eq!(session.send(&result("1-1")), None);
    }

    #[test]
    fn what_the_client_cancelled_is_forgotten() {
        let mut session = open_session();
        session.send(&request(2, "tools/call")).unwrap();
        session.send(&request(3, "subscriptions/listen")).unwrap();
        for id in [2, 3] {
            session
                .send(&line(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": { "requestId": id } })))
                .unwrap();
        }
        assert!(session.on_lost().is_empty());
        assert_eq!(methods(&session.replay()), ["initialize", "notifications/initialized"]);
    }

    #[test]
    fn nothing_waits_for_a_service_that_cannot_be_reached() {
        let mut session = ClientSession::default();
        session.send(&request(1, "initialize")).unwrap();
        session.send(&request(2, "subscriptions/listen")).unwrap();
        session.on_lost();
        assert!(session.is_waiting());
        assert_eq!(methods(&session.give_up("it is gone")), ["response to 1", "response to 2"]);
        assert!(!session.is_waiting() && !session.is_live());
    }

    #[test]
    fn what_is_no_message_of_the_client_is_passed_on() {
        let mut session = ClientSession::default();
        let text = Bytes::from_static(b"no json");
        assert_eq!(session.send(&text), Some(text.clone()));
        assert!(session.receive(&text).is_empty(), "a service that ends may cut a message");
    }
}
