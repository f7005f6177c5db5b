//! Messages that a server sends after the end of a client's call never reach another client.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use trunkline_gateway::{GatewayOptions, Tokens};

use crate::support::client::{Era, TestClient, borrowed, text};
use crate::support::client_notifications::tell;
use crate::support::echoing_server::{AnswerLog, Gate, echoing, until_said};
use crate::support::gateway::TestGateway;
use crate::support::http_connection::{Channel, Sent};
use crate::support::server_requests::{accepted, begun, message};
use crate::support::tokens::{ANN, BOB, gateway, known_tokens};
use crate::support::wait::{LONGEST, pass_time};

const CUSTOM: &str = "notifications/custom";

/// Longer than a finished request is considered as the cause of an unattributed message.
const AFTER_GRACE: Duration = Duration::from_millis(3200);

/// A call in flight that may receive messages that are not for its client.
struct HangingCall {
    /// The first message that the client receives.
    first: JoinHandle<Value>,
    /// Lets the server respond.
    gate: Gate,
}

impl HangingCall {
    /// Starts a call with the token `bobs`.
    fn start(mut client: TestClient) -> Self {
        let gate = Gate::new();
        let arguments = json!({ "token": "bobs", "wait": gate.path() });
        let written = client.write("tools/call", json!({ "name": "echo", "arguments": arguments }));
        let first = tokio::spawn(async move {
            let head = client.begin(&written).await.unwrap();
            match head.is_stream() {
                true => message(&mut client.channel).await,
                false => serde_json::from_str(&client.channel.body().await.unwrap()).unwrap(),
            }
        });
        Self { first, gate }
    }

    /// Ends the call, and fails if any message came before its response. The gateway has processed
    /// every message that could have: each was followed by a server request, which it has answered.
    async fn assert_silent(self, what: &str) {
        self.gate.open();
        let first = timeout(LONGEST, self.first).await.expect("a response in time").unwrap();
        let received = first["result"]["content"][0]["text"].as_str();
        assert_eq!(received, Some("bobs"), "{what} reached another client: {first}");
    }
}

/// A gateway, Ann, and a call of Bob in flight.
struct TwoClients {
    gateway: TestGateway,
    ann: TestClient,
    /// Bob's call.
    hanging: HangingCall,
    answers: AnswerLog,
}

/// A gateway with tokens, Ann, and a call of Bob in flight.
async fn ann_while_bob_waits(era: Era) -> TwoClients {
    let answers = AnswerLog::new();
    let gateway = gateway(&json!({ "echoing": answers.server() })).await;
    let mut ann = TestClient::with(Era::Legacy, gateway.address, &[ANN]).await.unwrap();
    let bob = TestClient::with(era, gateway.address, &[BOB]).await.unwrap();
    let hanging = HangingCall::start(bob);
    until_said(&mut ann, "hung", "bobs").await;
    TwoClients { gateway, ann, hanging, answers }
}

#[tokio::test]
async fn notification_after_the_response_reaches_no_other_client() {
    for era in [Era::Legacy, Era::Modern] {
        for method in [CUSTOM, "notifications/message"] {
            let TwoClients { gateway, mut ann, hanging, answers } = ann_while_bob_waits(era).await;
            let gate = Gate::new();
            let late = json!({ "method": method, "wait": gate.path() });
            assert_eq!(text(&ann.call("say", late).await), "said");
            gate.open();
            // A ping follows the notification.
            answers.until_answered(1).await;
            hanging.assert_silent(method).await;
            gateway.end().await;
        }
    }
}

#[tokio::test]
async fn server_request_after_the_response_is_refused() {
    for era in [Era::Legacy, Era::Modern] {
        let TwoClients { gateway, mut ann, hanging, answers } = ann_while_bob_waits(era).await;
        let gate = Gate::new();
        assert_eq!(text(&ann.call("ask_after", json!({ "wait": gate.path() })).await), "later");
        gate.open();
        answers.until_answered(1).await;
        hanging.assert_silent("a question").await;
        until_said(&mut ann, "answers", "another client ended a moment ago").await;
        until_said(&mut ann, "answers", "per-client").await;
        gateway.end().await;
    }
}

/// The server continues the cancelled work for longer than a finished call is remembered.
#[tokio::test]
async fn server_request_of_a_cancelled_call_reaches_no_other_client() {
    for era in [Era::Legacy, Era::Modern] {
        let TwoClients { gateway, mut ann, hanging, answers } = ann_while_bob_waits(era).await;
        let gate = Gate::new();
        let asking = begun(&mut ann, "ask", json!({ "wait": gate.path() })).await;
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": ann.last_id() } });
        ann.tell(&cancelled).await.unwrap();
        drop(asking);
        until_said(&mut ann, "cancelled", "asked").await;
        pass_time(AFTER_GRACE).await;
        gate.open();
        answers.until_answered(1).await;
        hanging.assert_silent("a question").await;
        gateway.end().await;
    }
}

/// The same for a call that timed out.
#[tokio::test]
async fn server_request_of_a_timed_out_call_reaches_no_other_client() {
    let answers = AnswerLog::new();
    let mut server = answers.server();
    server["timeouts"]["call"] = "1m".into();
    let gateway = gateway(&json!({ "echoing": server })).await;
    let mut ann = TestClient::with(Era::Legacy, gateway.address, &[ANN]).await.unwrap();
    let gate = Gate::new();
    let mut asking = begun(&mut ann, "ask", json!({ "wait": gate.path(), "token": "anns" })).await;
    until_said(&mut ann, "hung", "anns").await;
    pass_time(Duration::from_secs(61)).await;
    let late = message(&mut asking).await;
    assert!(text(&late).contains("within 60s"), "{late}");
    let bob = TestClient::with(Era::Legacy, gateway.address, &[BOB]).await.unwrap();
    let hanging = HangingCall::start(bob);
    until_said(&mut ann, "hung", "bobs").await;
    pass_time(AFTER_GRACE).await;
    gate.open();
    answers.until_answered(1).await;
    hanging.assert_silent("a question").await;
    gateway.end().await;
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
    let gateway = TestGateway::start(config, options).await;
    let client = |path| TestClient::at((gateway.address, path), Era::Modern, headers);
    let (mut ann, bob) = (client(paths[0]).await.unwrap(), client(paths[1]).await.unwrap());
    let hanging = HangingCall::start(bob);
    until_said(&mut ann, "hung", "bobs").await;
    pass_time(AFTER_GRACE).await;
    TwoClients { gateway, ann, hanging, answers }
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
        let TwoClients { gateway, mut ann, hanging, answers } = lookalikes(headers, paths).await;
        let gate = Gate::new();
        assert_eq!(text(&ann.call("ask_after", json!({ "wait": gate.path() })).await), "later");
        gate.open();
        answers.until_answered(1).await;
        hanging.assert_silent("a question").await;
        until_said(&mut ann, "answers", "another client").await;
        gateway.end().await;
    }
}

#[tokio::test]
async fn server_request_of_a_cancelled_call_reaches_no_lookalike_client() {
    for headers in [&[][..], &[ANN]] {
        let clients = lookalikes(headers, ["/mcp", "/mcp"]).await;
        let TwoClients { gateway, mut ann, hanging, answers } = clients;
        let gate = Gate::new();
        let arguments = json!({ "wait": gate.path(), "token": "anns" });
        let written = ann.write("tools/call", json!({ "name": "ask", "arguments": arguments }));
        let mut leaving = TestClient::with(Era::Modern, gateway.address, headers).await.unwrap();
        let asking = tokio::spawn(async move { leaving.exchange(&written).await.is_ok() });
        until_said(&mut ann, "hung", "anns").await;
        asking.abort();
        until_said(&mut ann, "cancelled", "asked").await;
        pass_time(AFTER_GRACE).await;
        gate.open();
        answers.until_answered(1).await;
        hanging.assert_silent("a question").await;
        gateway.end().await;
    }
}

/// Log messages are less strict: clients with one token, or without any, belong to one user.
#[tokio::test]
async fn log_message_reaches_the_next_call_of_a_sessionless_client() {
    let gateway = TestGateway::to(&json!({ "echoing": echoing("legacy") })).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    for _ in 0..2 {
        let written =
            client.write("tools/call", json!({ "name": "say", "arguments": { "method": CUSTOM } }));
        let (_, messages) = client.exchange(&written).await.unwrap();
        assert_eq!(messages[0]["method"], CUSTOM, "{messages:?}");
    }
    gateway.end().await;
}

/// A call that creates a task is not completed by its response. Its server requests name the task.
#[tokio::test]
async fn server_request_of_a_task_reaches_no_other_client() {
    let TwoClients { gateway, mut ann, hanging, answers } = ann_while_bob_waits(Era::Legacy).await;
    let gate = Gate::new();
    let begun = ann.call("begin_task", json!({ "wait": gate.path() })).await;
    assert_eq!(begun["result"]["task"]["taskId"], "task-1", "{begun}");
    pass_time(AFTER_GRACE).await;
    gate.open();
    answers.until_answered(1).await;
    hanging.assert_silent("a question").await;
    until_said(&mut ann, "answers", "it is about a task").await;
    gateway.end().await;
}

/// A client receives requests about its own task in its only call, whatever other clients do.
#[tokio::test]
async fn server_request_of_a_task_reaches_its_client_beside_others() {
    let TwoClients { gateway, mut ann, hanging: of_bob, answers: _answers } =
        ann_while_bob_waits(Era::Legacy).await;
    let gate = Gate::new();
    ann.call("begin_task", json!({ "wait": gate.path() })).await;
    let mut hanging = begun(&mut ann, "hang", json!({ "token": "own" })).await;
    gate.open();
    let question = message(&mut hanging).await;
    ann.tell(&accepted(&question)).await.unwrap();
    until_said(&mut ann, "answers", "Ada").await;
    of_bob.assert_silent("a question").await;
    gateway.end().await;
}

/// A server may send log messages and requests because of a custom notification.
#[tokio::test]
async fn messages_caused_by_a_notification_reach_no_other_client() {
    for era in [Era::Legacy, Era::Modern] {
        let TwoClients { gateway, mut ann, hanging, answers } =
            ann_while_bob_waits(Era::Legacy).await;
        let teller = TestClient::with(era, gateway.address, &[ANN]).await.unwrap();
        pass_time(AFTER_GRACE).await;
        tell(&teller, "notifications/acme/import").await;
        answers.until_answered(1).await;
        hanging.assert_silent("a log line or a question").await;
        until_said(&mut ann, "answers", "another client").await;
        gateway.end().await;
    }
}

/// A single client receives requests and notifications, whatever happened before.
#[tokio::test]
async fn only_client_receives_every_message() {
    let gateway = TestGateway::to(&json!({ "echoing": echoing("legacy") })).await;
    let mut ann = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let mut standing = ann.request("GET", &[]).await.1;
    let gate = Gate::new();
    let said = ann.call("say", json!({ "method": CUSTOM, "wait": gate.path() })).await;
    assert_eq!(text(&said), "said");
    gate.open();
    assert_eq!(message(&mut standing).await["method"], CUSTOM, "it came after the answer");
    let gate = Gate::new();
    assert_eq!(text(&ann.call("ask_after", json!({ "wait": gate.path() })).await), "later");
    let mut hanging = begun(&mut ann, "hang", json!({ "token": "own" })).await;
    gate.open();
    let question = message(&mut hanging).await;
    ann.tell(&accepted(&question)).await.unwrap();
    until_said(&mut ann, "answers", "Ada").await;
    gateway.end().await;
}

/// After a while the server's requests reach the next client.
#[tokio::test]
async fn server_request_reaches_the_next_client_after_the_grace_period() {
    let gateway = gateway(&json!({ "echoing": echoing("legacy") })).await;
    let mut ann = TestClient::with(Era::Legacy, gateway.address, &[ANN]).await.unwrap();
    assert_eq!(text(&ann.call("echo", json!({ "token": "early" })).await), "early");
    pass_time(AFTER_GRACE).await;
    let mut bob = TestClient::with(Era::Legacy, gateway.address, &[BOB]).await.unwrap();
    let mut asking = begun(&mut bob, "ask", json!({})).await;
    let question = message(&mut asking).await;
    bob.tell(&accepted(&question)).await.unwrap();
    assert_eq!(text(&message(&mut asking).await), "Ada");
    gateway.end().await;
}

/// A server that sends unattributed logs and server requests while it handles a subscription.
fn nosy(answers: &AnswerLog) -> Value {
    let mut server = answers.server();
    server["args"].as_array_mut().unwrap().extend(["watched".into(), "nosy".into()]);
    json!({ "echoing": server })
}

/// Subscriptions to a shared server are requests of the connection, on behalf of a client.
#[tokio::test]
async fn server_request_about_a_subscription_reaches_no_other_client() {
    let answers = AnswerLog::new();
    let gateway = gateway(&nosy(&answers)).await;
    let mut ann = TestClient::with(Era::Legacy, gateway.address, &[ANN]).await.unwrap();
    let mut modern_ann = TestClient::with(Era::Modern, gateway.address, &[ANN]).await.unwrap();
    ann.ask("resources/list", json!({})).await;
    let bob = TestClient::with(Era::Legacy, gateway.address, &[BOB]).await.unwrap();
    let hanging = HangingCall::start(bob);
    until_said(&mut ann, "hung", "bobs").await;
    let note = json!({ "uri": "x://note" });
    let requests = [
        ("resources/subscribe", note.clone()),
        ("resources/unsubscribe", note),
        ("logging/setLevel", json!({ "level": "debug" })),
    ];
    for (before, (method, params)) in requests.into_iter().enumerate() {
        pass_time(AFTER_GRACE).await;
        // The server responds only when its own request has a response, which Bob does not give.
        timeout(LONGEST, ann.ask(method, params)).await.expect(method);
        answers.until_answered(before + 1).await;
    }
    pass_time(AFTER_GRACE).await;
    let wanted = json!({ "notifications": { "resourceSubscriptions": ["x://note"] } });
    let written = modern_ann.write("subscriptions/listen", wanted);
    assert!(modern_ann.begin(&written).await.unwrap().is_stream());
    answers.until_answered(4).await;
    hanging.assert_silent("a question").await;
    until_said(&mut ann, "answers", "another client").await;
    assert!(!text(&ann.call("answers", json!({})).await).contains("Ada"));
    gateway.end().await;
}

/// A single client receives messages about its subscription, as about a call.
#[tokio::test]
async fn only_client_receives_messages_about_its_subscription() {
    let answers = AnswerLog::new();
    let gateway = gateway(&nosy(&answers)).await;
    let mut ann = TestClient::with(Era::Legacy, gateway.address, &[ANN]).await.unwrap();
    ann.ask("resources/list", json!({})).await;
    let mut hanging = begun(&mut ann, "hang", json!({ "token": "own" })).await;
    let written = ann.write("resources/subscribe", json!({ "uri": "x://note" }));
    let headers = borrowed(&written.headers);
    let subscribe = Sent::post(&headers, &written.body);
    let mut channel = Channel::to(gateway.address).await.unwrap();
    let answering = async {
        let line = message(&mut hanging).await;
        assert_eq!(line["params"]["data"], "about resources/subscribe", "{line}");
        ann.tell(&accepted(&message(&mut hanging).await)).await.unwrap();
    };
    let (subscribed, ()) = tokio::join!(channel.messages(&subscribe), answering);
    let subscribed = &subscribed.unwrap().1[0];
    assert!(subscribed["result"].is_object(), "{subscribed}");
    gateway.end().await;
}
