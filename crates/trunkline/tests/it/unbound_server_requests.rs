//! Server requests beside or outside calls, and client capabilities per request.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use trunkline::connection::{
    CallHandler, Connection, HandlerFuture, InputRequired, OutgoingRequest, ServerRequest,
};
use trunkline::message::{Notification, Raw};
use trunkline_testkit::peers;

use crate::resource_subscriptions::{announcing, heard};
use crate::support::file_driven_server::{
    Attentive, Folder, call, converse, options, params, poll_until, text_of, within,
};

/// A handler that records that it was blocked.
#[derive(Default)]
struct PassedOver(AtomicBool);

impl CallHandler for PassedOver {
    fn on_blocked(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn possible_recipients_learn_of_a_refused_server_request() {
    let folder = Folder::new();
    let connection = announcing(&folder, options(), "legacy", &json!({}));
    let (one, other) = (PassedOver::default(), PassedOver::default());
    let waiting = converse(&connection, "wait", &one);
    tokio::select! {
        biased;
        _ = waiting => panic!("nothing answers that"),
        result = converse(&connection, "ask", &other) => {
            assert!(text_of(&result.unwrap()).contains("several requests are in flight"));
        }
    }
    assert!(one.0.load(Ordering::Relaxed) && other.0.load(Ordering::Relaxed));
    within(connection.close()).await;
}

/// A handler that counts notifications.
#[derive(Default)]
struct Counting(AtomicUsize);

impl CallHandler for Counting {
    fn on_notification(&self, _notification: &Notification) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// CON-8: a caller that does not poll for a while loses notifications instead of buffering them
/// all.
#[tokio::test]
async fn undelivered_notifications_are_bounded_in_bytes() {
    let entry =
        json!({ "command": peers::python(), "args": ["-I", peers::echoing_server(), "legacy"] });
    let text = json!({ "mcpServers": { "s": entry } }).to_string();
    let config = trunkline::config::parse("test", text).config;
    let connection = Connection::new(config.server("s").unwrap().clone(), options());
    within(connection.connect()).await.unwrap();
    let (counting, count) = (Counting::default(), 30);
    let chatter = params("chatter", &json!({ "count": count, "size": 1_000_000 }));
    let mut talking =
        Box::pin(connection.request_with(OutgoingRequest::new("tools/call", chatter), &counting));
    assert!(futures_util::FutureExt::now_or_never(&mut talking).is_none());
    // Its response comes after all notifications.
    let echo = params("echo", &json!({ "token": "after" }));
    within(connection.request("tools/call", echo)).await.unwrap();
    assert_eq!(text_of(&within(talking).await.unwrap()), "done");
    let told = counting.0.load(Ordering::Relaxed);
    assert!((1..count / 2).contains(&told), "{told}");
    within(connection.close()).await;
}

/// A handler that responds to everything, and records the methods.
#[derive(Default)]
struct Known(Mutex<Vec<String>>);

impl CallHandler for Known {
    fn on_server_request(&self, question: ServerRequest) -> HandlerFuture<'_> {
        self.0.lock().unwrap().push(question.method.into());
        Box::pin(async { Ok(Raw::from_value(&json!({ "roots": [], "action": "decline" }))) })
    }
}

/// A handler that never responds, and records when its future is dropped.
#[derive(Default)]
struct Thinking(AtomicBool);

struct Forgotten<'t>(&'t AtomicBool);

impl Drop for Forgotten<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl CallHandler for Thinking {
    fn on_server_request(&self, _question: ServerRequest) -> HandlerFuture<'_> {
        let forgotten = Forgotten(&self.0);
        Box::pin(async move {
            std::future::pending::<()>().await;
            drop(forgotten);
            Ok(Raw::empty_object())
        })
    }
}

/// The timeout of the call is paused only while the server waits for a response.
#[tokio::test]
async fn timeout_resumes_when_the_server_request_is_cancelled() {
    let arguments = json!(["-I", peers::echoing_server(), "legacy"]);
    let timeouts = json!({ "call": "1s", "question": "10m" });
    let entry = json!({ "command": peers::python(), "args": arguments, "timeouts": timeouts });
    let text = json!({ "mcpServers": { "s": entry } }).to_string();
    let config = trunkline::config::parse("test", text).config;
    let connection = Connection::new(config.server("s").unwrap().clone(), options());
    let take_back = |then| params("take_back", &json!({ "wait": 100, "then": then }));
    for (then, is_answered) in [(200, true), (60_000, false)] {
        let thinking = Thinking::default();
        let ask = OutgoingRequest::new("tools/call", take_back(then));
        let answer = within(connection.request_with(ask, &thinking)).await;
        match answer {
            Ok(result) => assert!(is_answered && text_of(&result) == "taken back"),
            Err(late) => {
                assert!(!is_answered && late.failure().is_some(), "{late}");
                assert!(late.to_string().contains("within 1s"), "{late}");
            }
        }
        assert!(thinking.0.load(Ordering::Relaxed));
    }
    let answers = connection.request("tools/call", params("answers", &json!({})));
    assert_eq!(text_of(&within(answers).await.unwrap()), "[]");
    within(connection.close()).await;
}

/// The response that the server received to its request outside calls.
async fn answer_to_roots(folder: &Folder) -> Value {
    let answer = || {
        let text = std::fs::read_to_string(folder.path().join("heard")).unwrap_or_default();
        let mut messages = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        messages.find(|message: &Value| message["id"] == "r")
    };
    poll_until(async || answer().is_some()).await;
    answer().unwrap()
}

#[tokio::test]
async fn a_question_outside_of_calls_is_refused_with_advice() {
    let folder = Folder::new();
    folder.write("rooted", "");
    let connection = announcing(&folder, options(), "legacy", &json!({}));
    within(connection.connect()).await.unwrap();
    let answer = answer_to_roots(&folder).await;
    assert_eq!(answer["error"]["code"], -32601);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("`share: \"per-client\"`"), "{message}");
    within(connection.close()).await;
}

#[tokio::test]
async fn server_request_outside_calls_reaches_the_connection_handler() {
    let folder = Folder::new();
    folder.write("rooted", "");
    let known = Arc::new(Known::default());
    let options = options().with_handler(Arc::clone(&known) as Arc<dyn CallHandler>);
    let connection = announcing(&folder, options, "legacy", &json!({}));
    within(connection.connect()).await.unwrap();
    assert_eq!(answer_to_roots(&folder).await["result"]["roots"], json!([]));
    // A request that could belong to any of several calls also goes to the connection's handler.
    let caller = Attentive::default();
    let other = converse(&connection, "wait", &caller);
    tokio::select! {
        biased;
        _ = other => panic!("nothing answers that"),
        result = converse(&connection, "ask", &caller) => {
            assert!(text_of(&result.unwrap()).contains("decline"));
        }
    }
    // A request that belongs to a call goes to its caller.
    let answer = Some(json!({ "action": "accept" }));
    let caller = Attentive { answer, ..Attentive::default() };
    let result = converse(&connection, "ask", &caller).await.unwrap();
    assert!(text_of(&result).contains("accept"));
    assert_eq!(*known.0.lock().unwrap(), ["roots/list", "elicitation/create"]);
    within(connection.close()).await;
}

#[tokio::test]
async fn input_required_result_is_passed_to_a_supporting_caller() {
    let folder = Folder::new();
    let connection = announcing(&folder, options(), "modern", &json!({}));
    let ask = OutgoingRequest {
        rounds: InputRequired::Return,
        ..OutgoingRequest::new("tools/call", params("ask", &json!({})))
    };
    let result = within(connection.request_with(ask, &Attentive::default())).await.unwrap();
    assert_eq!(result.to_value()["resultType"], "input_required");
    assert_eq!(heard(&folder, "tools/call").len(), 1);
    within(connection.close()).await;
}

#[tokio::test]
async fn legacy_server_does_not_see_capabilities_of_modern_requests() {
    let sent = json!({
        "name": "params",
        "arguments": {},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/logLevel": "debug",
            "traceparent": "00-1-2-00",
        },
    });
    for generation in ["legacy", "modern"] {
        let folder = Folder::new();
        let connection = announcing(&folder, options(), generation, &json!({}));
        let answer = connection.request("tools/call", Some(Raw::from_value(&sent)));
        let seen: Value = serde_json::from_str(&text_of(&within(answer).await.unwrap())).unwrap();
        assert_eq!(seen["_meta"]["traceparent"], "00-1-2-00");
        let is_seen = seen["_meta"].get("io.modelcontextprotocol/logLevel").is_some();
        assert_eq!(is_seen, generation == "modern");
        within(connection.close()).await;
    }
}

/// Two clients of one server may declare different capabilities, in two processes; cached knowledge
/// about the server applies to both.
#[tokio::test]
async fn connection_declares_the_capabilities_of_its_options() {
    let folder = Folder::new();
    let first = options();
    let second = first.clone().with_capabilities(Raw::from_value(&json!({ "roots": {} })));
    let first = announcing(&folder, first, "legacy", &json!({}));
    within(first.connect()).await.unwrap();
    let second = announcing(&folder, second, "legacy", &json!({}));
    within(second.connect()).await.unwrap();
    call(&first, "watched").await;
    let processes = (first.status().process_id, second.status().process_id);
    assert!(processes.0.is_some() && processes.1.is_some() && processes.0 != processes.1);
    let declared: Vec<_> = heard(&folder, "initialize");
    let declared: Vec<_> = declared.iter().map(|params| &params["capabilities"]).collect();
    assert_eq!(declared, [&json!({ "elicitation": {} }), &json!({ "roots": {} })]);
    assert_eq!(heard(&folder, "server/discover").len(), 1, "the generation is known");
    within(first.close()).await;
    within(second.close()).await;
}
