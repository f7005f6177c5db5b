//! Messages that a server sends after the end of a client's call never reach another client.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use trunkline_gateway::{GatewayOptions, Tokens};

use crate::support::client::{Era, TestClient, text};
use crate::support::client_notifications::tell;
use crate::support::echoing_server::{AnswerLog, echoing, until_said};
use crate::support::gateway::TestGateway;
use crate::support::server_requests::{accepted, begun, message};
use crate::support::tokens::{ANN, BOB, hosted, known_tokens};
use crate::support::wait::pass_time;

const CUSTOM: &str = "notifications/custom";

/// Longer than the server's delay of a late message in these tests.
const LATE: Duration = Duration::from_millis(900);

/// Longer than a finished request is considered as the cause of an unattributed message.
const AFTER_GRACE: Duration = Duration::from_millis(3200);

/// Starts a call that gets no response, and waits for its first message.
async fn first_message_of_hanging_call(mut asker: TestClient, token: &str) -> JoinHandle<Value> {
    let call = json!({ "name": "hang", "arguments": { "token": token } });
    let written = asker.write("tools/call", call);
    tokio::spawn(async move {
        let head = asker.begin(&written).await.unwrap();
        match head.is_stream() {
            // No event comes as long as the call hangs.
            true => loop {
                match asker.channel.event().await.unwrap() {
                    Some(event) if event.message.is_none() => {}
                    Some(event) => return event.message.unwrap_or_default(),
                    None => return json!("the stream has ended"),
                }
            },
            false => serde_json::from_str(&asker.channel.body().await.unwrap()).unwrap_or_default(),
        }
    })
}

/// A gateway, Ann, and a call of Bob in flight.
struct TwoClients {
    hosted: TestGateway,
    ann: TestClient,
    /// The first message of Bob's call.
    hanging: JoinHandle<Value>,
    answers: AnswerLog,
}

/// A gateway with tokens, Ann, and a call of Bob in flight.
async fn ann_while_bob_waits(era: Era) -> TwoClients {
    let answers = AnswerLog::new();
    let hosted = hosted(&json!({ "echoing": answers.server() })).await;
    let mut ann = TestClient::with(Era::Legacy, hosted.address, &[ANN]).await.unwrap();
    let bob = TestClient::with(era, hosted.address, &[BOB]).await.unwrap();
    let hanging = first_message_of_hanging_call(bob, "bobs").await;
    until_said(&mut ann, "hung", "bobs").await;
    TwoClients { hosted, ann, hanging, answers }
}

async fn assert_silent(hanging: JoinHandle<Value>, what: &str) {
    if hanging.is_finished() {
        panic!("{what} reached another client: {}", hanging.await.unwrap());
    }
    hanging.abort();
}

#[tokio::test]
async fn notification_after_the_response_reaches_no_other_client() {
    for era in [Era::Legacy, Era::Modern] {
        for method in [CUSTOM, "notifications/message"] {
            let TwoClients { hosted, mut ann, hanging, answers: _answers } =
                ann_while_bob_waits(era).await;
            let said = ann.call("say", json!({ "method": method, "wait": 200 })).await;
            assert_eq!(text(&said), "said");
            sleep(LATE).await;
            assert_silent(hanging, method).await;
            hosted.end().await;
        }
    }
}

#[tokio::test]
async fn server_request_after_the_response_is_refused() {
    for era in [Era::Legacy, Era::Modern] {
        let TwoClients { hosted, mut ann, hanging, answers } = ann_while_bob_waits(era).await;
        assert_eq!(text(&ann.call("ask_after", json!({ "wait": 200 })).await), "later");
        answers.until_answered(1).await;
        assert_silent(hanging, "a question").await;
        until_said(&mut ann, "answers", "another client ended a moment ago").await;
        until_said(&mut ann, "answers", "per-client").await;
        hosted.end().await;
    }
}

/// The server continues the cancelled work for longer than a finished call is remembered.
#[tokio::test]
async fn server_request_of_a_cancelled_call_reaches_no_other_client() {
    for era in [Era::Legacy, Era::Modern] {
        let TwoClients { hosted, mut ann, hanging, answers } = ann_while_bob_waits(era).await;
        let asking = begun(&mut ann, "ask", json!({ "wait": 5000 })).await;
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": ann.last_id() } });
        ann.tell(&cancelled).await.unwrap();
        drop(asking);
        answers.until_answered(1).await;
        assert_silent(hanging, "a question").await;
        hosted.end().await;
    }
}

/// The same for a call that timed out.
#[tokio::test]
async fn server_request_of_a_timed_out_call_reaches_no_other_client() {
    let answers = AnswerLog::new();
    let mut server = answers.server();
    server["timeouts"]["call"] = "4s".into();
    let hosted = hosted(&json!({ "echoing": server })).await;
    let mut ann = TestClient::with(Era::Legacy, hosted.address, &[ANN]).await.unwrap();
    let late = ann.call("ask", json!({ "wait": 6000 })).await;
    assert!(text(&late).contains("within 4s"), "{late}");
    pass_time(Duration::from_millis(3100)).await;
    let bob = TestClient::with(Era::Legacy, hosted.address, &[BOB]).await.unwrap();
    let hanging = first_message_of_hanging_call(bob, "bobs").await;
    answers.until_answered(1).await;
    assert_silent(hanging, "a question").await;
    hosted.end().await;
}

/// Two modern clients with the same capabilities, and a call of the second in flight.
async fn lookalikes(headers: &[(&str, &str)], paths: [&str; 2]) -> TwoClients {
    let answers = AnswerLog::new();
    let servers = json!({ "echoing": answers.server() });
    let agents = json!({ "one": { "tools": ["*"] }, "other": { "tools": ["*"] } });
    let written = json!({ "mcpServers": servers, "agents": agents });
    let config = trunkline::config::parse("test", written.to_string()).config;
    let tokens = if headers.is_empty() { Tokens::default() } else { known_tokens() };
    let options = GatewayOptions { tokens, ..GatewayOptions::default() };
    let hosted = TestGateway::start(config, options).await;
    let asker = |path| TestClient::at((hosted.address, path), Era::Modern, headers);
    let (mut ann, bob) = (asker(paths[0]).await.unwrap(), asker(paths[1]).await.unwrap());
    let hanging = first_message_of_hanging_call(bob, "bobs").await;
    until_said(&mut ann, "hung", "bobs").await;
    pass_time(AFTER_GRACE).await;
    TwoClients { hosted, ann, hanging, answers }
}

/// Clients without sessions cannot be distinguished, so that each of their calls counts as another
/// client's.
#[tokio::test]
async fn server_request_after_the_response_reaches_no_lookalike_client() {
    let one_address = ["/mcp", "/mcp"];
    for (headers, paths) in [
        (&[][..], one_address),
        (&[ANN], one_address),
        (&[], ["/mcp/agents/one", "/mcp/agents/other"]),
    ] {
        let TwoClients { hosted, mut ann, hanging, answers } = lookalikes(headers, paths).await;
        assert_eq!(text(&ann.call("ask_after", json!({ "wait": 200 })).await), "later");
        answers.until_answered(1).await;
        assert_silent(hanging, "a question").await;
        until_said(&mut ann, "answers", "another client").await;
        hosted.end().await;
    }
}

#[tokio::test]
async fn server_request_of_a_cancelled_call_reaches_no_lookalike_client() {
    for headers in [&[][..], &[ANN]] {
        let clients = lookalikes(headers, ["/mcp", "/mcp"]).await;
        let TwoClients { hosted, mut ann, hanging, answers } = clients;
        let call = json!({ "name": "ask", "arguments": { "wait": 6000, "token": "anns" } });
        let written = ann.write("tools/call", call);
        let mut leaving = TestClient::with(Era::Modern, hosted.address, headers).await.unwrap();
        let asking = tokio::spawn(async move { leaving.exchange(&written).await.is_ok() });
        until_said(&mut ann, "hung", "anns").await;
        asking.abort();
        until_said(&mut ann, "cancelled", "asked").await;
        answers.until_answered(1).await;
        assert_silent(hanging, "a question").await;
        hosted.end().await;
    }
}

/// Log messages are less strict: clients with one token, or without any, belong to one user.
#[tokio::test]
async fn log_message_reaches_the_next_call_of_a_sessionless_client() {
    let hosted = TestGateway::to(&json!({ "echoing": echoing("legacy") })).await;
    let mut asker = TestClient::new(Era::Modern, hosted.address).await.unwrap();
    for _ in 0..2 {
        let written =
            asker.write("tools/call", json!({ "name": "say", "arguments": { "method": CUSTOM } }));
        let (_, messages) = asker.exchange(&written).await.unwrap();
        assert_eq!(messages[0]["method"], CUSTOM, "{messages:?}");
    }
    hosted.end().await;
}

/// A call that creates a task is not completed by its response. Its server requests name the task.
#[tokio::test]
async fn server_request_of_a_task_reaches_no_other_client() {
    let TwoClients { hosted, mut ann, hanging, answers } = ann_while_bob_waits(Era::Legacy).await;
    let begun = ann.call("begin_task", json!({ "wait": 3500 })).await;
    assert_eq!(begun["result"]["task"]["taskId"], "task-1", "{begun}");
    answers.until_answered(1).await;
    assert_silent(hanging, "a question").await;
    until_said(&mut ann, "answers", "it is about a task").await;
    hosted.end().await;
}

/// A client receives requests about its own task in its only call, whatever other clients do.
#[tokio::test]
async fn server_request_of_a_task_reaches_its_client_beside_others() {
    let TwoClients { hosted, mut ann, hanging: of_bob, answers: _answers } =
        ann_while_bob_waits(Era::Legacy).await;
    ann.call("begin_task", json!({ "wait": 500 })).await;
    let mut hanging = begun(&mut ann, "hang", json!({ "token": "own" })).await;
    let question = message(&mut hanging).await;
    ann.tell(&accepted(&question)).await.unwrap();
    until_said(&mut ann, "answers", "Ada").await;
    assert_silent(of_bob, "a question").await;
    hosted.end().await;
}

/// A server may send log messages and requests because of a custom notification.
#[tokio::test]
async fn messages_caused_by_a_notification_reach_no_other_client() {
    for era in [Era::Legacy, Era::Modern] {
        let TwoClients { hosted, mut ann, hanging, answers } =
            ann_while_bob_waits(Era::Legacy).await;
        let teller = TestClient::with(era, hosted.address, &[ANN]).await.unwrap();
        pass_time(AFTER_GRACE).await;
        tell(&teller, "notifications/acme/import").await;
        answers.until_answered(1).await;
        assert_silent(hanging, "a log line or a question").await;
        until_said(&mut ann, "answers", "another client").await;
        hosted.end().await;
    }
}

/// A single client receives requests and notifications, whatever happened before.
#[tokio::test]
async fn only_client_receives_every_message() {
    let hosted = TestGateway::to(&json!({ "echoing": echoing("legacy") })).await;
    let mut ann = TestClient::new(Era::Legacy, hosted.address).await.unwrap();
    let mut standing = ann.request("GET", &[]).await.1;
    let said = ann.call("say", json!({ "method": CUSTOM, "wait": 600 })).await;
    assert_eq!(text(&said), "said");
    assert_eq!(message(&mut standing).await["method"], CUSTOM, "it came after the answer");
    assert_eq!(text(&ann.call("ask_after", json!({ "wait": 700 })).await), "later");
    let mut hanging = begun(&mut ann, "hang", json!({ "token": "own" })).await;
    let question = message(&mut hanging).await;
    ann.tell(&accepted(&question)).await.unwrap();
    until_said(&mut ann, "answers", "Ada").await;
    hosted.end().await;
}

/// After a while the server's requests reach the next client.
#[tokio::test]
async fn server_request_reaches_the_next_client_after_the_grace_period() {
    let hosted = hosted(&json!({ "echoing": echoing("legacy") })).await;
    let mut ann = TestClient::with(Era::Legacy, hosted.address, &[ANN]).await.unwrap();
    assert_eq!(text(&ann.call("echo", json!({ "token": "early" })).await), "early");
    pass_time(AFTER_GRACE).await;
    let mut bob = TestClient::with(Era::Legacy, hosted.address, &[BOB]).await.unwrap();
    let mut asking = begun(&mut bob, "ask", json!({ "wait": 300 })).await;
    let question = timeout(Duration::from_secs(30), message(&mut asking)).await.unwrap();
    bob.tell(&accepted(&question)).await.unwrap();
    assert_eq!(text(&message(&mut asking).await), "Ada");
    hosted.end().await;
}

/// A server that sends unattributed logs and server requests while it handles a subscription.
fn nosy() -> Value {
    let mut server = echoing("legacy");
    server["args"].as_array_mut().unwrap().extend(["watched".into(), "nosy".into()]);
    json!({ "echoing": server })
}

/// Subscriptions to a shared server are requests of the connection, on behalf of a client.
#[tokio::test]
async fn server_request_about_a_subscription_reaches_no_other_client() {
    let hosted = hosted(&nosy()).await;
    let mut ann = TestClient::with(Era::Legacy, hosted.address, &[ANN]).await.unwrap();
    let mut modern_ann = TestClient::with(Era::Modern, hosted.address, &[ANN]).await.unwrap();
    ann.ask("resources/list", json!({})).await;
    let bob = TestClient::with(Era::Legacy, hosted.address, &[BOB]).await.unwrap();
    let hanging = first_message_of_hanging_call(bob, "bobs").await;
    until_said(&mut ann, "hung", "bobs").await;
    let note = json!({ "uri": "x://note" });
    for (method, params) in [
        ("resources/subscribe", note.clone()),
        ("resources/unsubscribe", note),
        ("logging/setLevel", json!({ "level": "debug" })),
    ] {
        pass_time(AFTER_GRACE).await;
        ann.ask(method, params).await;
        sleep(LATE).await;
        assert!(!hanging.is_finished(), "{method} of another client: {:?}", hanging.await);
    }
    pass_time(AFTER_GRACE).await;
    let wanted = json!({ "notifications": { "resourceSubscriptions": ["x://note"] } });
    let written = modern_ann.write("subscriptions/listen", wanted);
    assert!(modern_ann.begin(&written).await.unwrap().is_stream());
    sleep(LATE).await;
    assert_silent(hanging, "a question").await;
    until_said(&mut ann, "answers", "another client").await;
    assert!(!text(&ann.call("answers", json!({})).await).contains("Ada"));
    hosted.end().await;
}

/// A single client receives messages about its subscription, as about a call.
#[tokio::test]
async fn only_client_receives_messages_about_its_subscription() {
    let hosted = hosted(&nosy()).await;
    let mut ann = TestClient::with(Era::Legacy, hosted.address, &[ANN]).await.unwrap();
    ann.ask("resources/list", json!({})).await;
    let mut hanging = begun(&mut ann, "hang", json!({ "token": "own" })).await;
    ann.ask("resources/subscribe", json!({ "uri": "x://note" })).await;
    let line = message(&mut hanging).await;
    assert_eq!(line["params"]["data"], "about resources/subscribe", "{line}");
    let question = message(&mut hanging).await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    hosted.end().await;
}
