//! The time for a response to a server request does not count against the call.

use std::future::pending;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use trunkline::connection::{
    CallHandler, Connection, HandlerFuture, NoopHandler, OutgoingRequest, RequestError,
    ServerRequest,
};
use trunkline::error::ErrorKind;
use trunkline::message::Raw;

use crate::resource_subscriptions::announcing;
use crate::support::file_driven_server::{Folder, options, params, pass_time, text_of, within};

/// The call timeout of these tests.
const CALL: Duration = Duration::from_secs(1);

/// Longer than the call timeout.
const THOUGHT: Duration = Duration::from_secs(2);

/// A handler that responds after this time, which it lets pass; never if it is `None`.
struct Thoughtful(Option<Duration>);

impl CallHandler for Thoughtful {
    fn on_server_request(&self, _: ServerRequest) -> HandlerFuture<'_> {
        Box::pin(async {
            match self.0 {
                Some(thought) => pass_time(thought).await,
                None => pending().await,
            }
            Ok(Raw::from_value(&json!({ "action": "accept" })))
        })
    }
}

fn bounds(question: &str) -> Value {
    json!({ "timeouts": { "call": "1s", "question": question, "shutdown": "1s" } })
}

async fn ask(
    connection: &Connection,
    tool: &str,
    handler: &dyn CallHandler,
) -> Result<Raw, RequestError> {
    within(connection.connect()).await.unwrap();
    let ask = OutgoingRequest::new("tools/call", params(tool, &json!({})));
    within(connection.request_with(ask, handler)).await
}

#[tokio::test]
async fn the_time_of_an_answer_does_not_count_against_the_call() {
    for generation in ["legacy", "modern"] {
        let folder = Folder::new();
        let connection = folder.connection(generation, &bounds("10m"));
        let result = ask(&connection, "ask", &Thoughtful(Some(THOUGHT))).await.unwrap();
        assert!(text_of(&result).contains("accept"), "{generation}: {result}");
        within(connection.close()).await;
    }
}

#[tokio::test]
async fn server_has_the_remaining_time_after_a_response() {
    for generation in ["legacy", "modern"] {
        let folder = Folder::new();
        let connection = folder.connection(generation, &bounds("10m"));
        let begin = Instant::now();
        let late = ask(&connection, "stall", &Thoughtful(Some(THOUGHT))).await.unwrap_err();
        assert_eq!(late.failure().unwrap().kind(), ErrorKind::TimedOut, "{generation}: {late}");
        assert!(begin.elapsed() >= THOUGHT, "{generation}");
        within(connection.close()).await;
    }
}

#[tokio::test]
async fn unanswered_server_request_times_out() {
    let folder = Folder::new();
    let connection = folder.connection("legacy", &bounds("300ms"));
    // The server gets an error, and continues.
    let result = ask(&connection, "ask", &Thoughtful(None)).await.unwrap();
    assert!(text_of(&result).contains("within 300ms"), "{result}");
    within(connection.close()).await;
    // A modern server is left without input responses to continue with.
    let connection = folder.connection("modern", &bounds("300ms"));
    let error = ask(&connection, "ask", &Thoughtful(None)).await.unwrap_err();
    let error = error.failure().unwrap();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!(error.to_string().contains("within 300ms"), "{error}");
    assert_eq!(error.hint(), Some("`timeouts.question` is the bound"));
    within(connection.close()).await;
}

/// It may belong to any call of the server's client, so the timeouts of all of them are paused.
#[tokio::test]
async fn a_question_beside_calls_stops_the_time_of_all_of_them() {
    let folder = Folder::new();
    let thoughtful = std::sync::Arc::new(Thoughtful(Some(THOUGHT)));
    let connection =
        announcing(&folder, options().with_handler(thoughtful), "legacy", &bounds("10m"));
    within(connection.connect()).await.unwrap();
    let begin = Instant::now();
    let call = |tool| {
        connection.request_with(
            OutgoingRequest::new("tools/call", params(tool, &json!({}))),
            &NoopHandler,
        )
    };
    let (asked, waited) = within(async { tokio::join!(call("ask"), call("wait")) }).await;
    assert!(text_of(&asked.unwrap()).contains("accept"));
    assert_eq!(waited.unwrap_err().failure().unwrap().kind(), ErrorKind::TimedOut);
    assert!(begin.elapsed() >= THOUGHT + CALL / 2);
    within(connection.close()).await;
}
