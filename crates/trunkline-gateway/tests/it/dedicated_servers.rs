//! Dedicated servers (`share: "per-client"`): their server requests reach their own client only.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::client::{Era, TestClient, text};
use crate::support::echoing_server::{AnswerLog, Gate, echoing, until_said};
use crate::support::gateway::{TestGateway, configuration};
use crate::support::http_connection::Channel;
use crate::support::server_requests::{accepted, begun, message};
use crate::support::server_requests::{go_on, state_of};
use crate::support::wait::{pass_time, until};

async fn gateway() -> TestGateway {
    let mut server = echoing("legacy");
    server["share"] = "per-client".into();
    TestGateway::to(&json!({ "echoing": server })).await
}

/// Two windows of one program are indistinguishable: they share a process, and may be two users.
#[tokio::test]
async fn server_request_among_lookalikes_reaches_the_only_call_or_none() {
    let gateway = gateway().await;
    let mut one = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let mut other = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let mut looking = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let call = json!({ "name": "hang", "arguments": { "token": "others" } });
    let written = other.write("tools/call", call);
    let hanging = tokio::spawn(async move { other.exchange(&written).await.is_ok() });
    until_said(&mut looking, "hung", "others").await;
    let refused = one.call("ask", json!({})).await;
    assert!(text(&refused).contains("several calls"), "{refused}");
    assert!(!hanging.is_finished(), "it was asked what was not for it");
    hanging.abort();
    until_said(&mut looking, "cancelled", "others").await;
    let state = state_of(&one.call("ask", json!({})).await);
    assert_eq!(text(&go_on(&mut one, "ask", &state).await), "Ada");
    gateway.end().await;
}

/// A client that does not respond yet does not block server requests to an indistinguishable one.
#[tokio::test]
async fn parked_call_has_a_dedicated_process() {
    let gateway = gateway().await;
    let mut one = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let mut other = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    assert_eq!(text(&one.call("echo", json!({ "token": "up" })).await), "up");
    let first = state_of(&one.call("ask", json!({})).await);
    let second = state_of(&other.call("ask", json!({})).await);
    for (client, state) in [(&mut other, &second), (&mut one, &first)] {
        assert_eq!(text(&go_on(client, "ask", state).await), "Ada");
    }
    gateway.end().await;
}

/// Lists come from the shared process, so only the client of a dedicated one notices its end.
#[tokio::test]
async fn a_process_that_has_ended_is_replaced_at_the_next_call() {
    let gateway = gateway().await;
    for era in [Era::Legacy, Era::Modern] {
        let mut client = TestClient::new(era, gateway.address).await.unwrap();
        let ended = client.call("exit", json!({})).await;
        assert_eq!(ended["result"]["isError"], true, "{ended}");
        assert!(text(&ended).contains("Trying again later may help"), "{ended}");
        assert_eq!(text(&client.call("echo", json!({ "token": "again" })).await), "again");
    }
    gateway.end().await;
}

/// CALL-7: the concurrency limit applies to each process, not to all of them together.
#[tokio::test]
async fn slots_are_those_of_one_process() {
    let mut server = echoing("legacy");
    server["share"] = "per-client".into();
    server["concurrency"] = 1.into();
    let gateway = TestGateway::to(&json!({ "echoing": server })).await;
    let mut one = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let mut other = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let _hanging = begun(&mut one, "hang", json!({ "token": "one" })).await;
    assert_eq!(text(&other.call("echo", json!({ "token": "other" })).await), "other");
    gateway.end().await;
}

/// A session sends its log level and subscriptions to its dedicated server, and receives its
/// messages.
#[tokio::test]
async fn session_receives_updates_of_its_dedicated_server() {
    let mut server = echoing("legacy");
    server["share"] = "per-client".into();
    server["args"].as_array_mut().unwrap().push("watched".into());
    let gateway = TestGateway::to(&json!({ "echoing": server })).await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    client.ask("logging/setLevel", json!({ "level": "warning" })).await;
    until_level(&mut client, "warning").await;
    client.ask("logging/setLevel", json!({ "level": "debug" })).await;
    until_level(&mut client, "debug").await;
    let subscribed = client.ask("resources/subscribe", json!({ "uri": "x://note" })).await;
    assert!(subscribed["result"].is_object(), "{subscribed}");
    let mut standing = client.request("GET", &[]).await.1;
    assert_eq!(text(&client.call("touch", json!({})).await), r#"["x://note"]"#);
    let said = message(&mut standing).await;
    assert_eq!(
        (&said["method"], &said["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!("x://note"))
    );
    // A new process replaces the first, and gets the same subscriptions and log level.
    client.call("exit", json!({})).await;
    until_touched(&mut client).await;
    assert_eq!(message(&mut standing).await["method"], "notifications/resources/updated");
    until_level(&mut client, "debug").await;
    let complete = "notifications/elicitation/complete";
    for method in ["notifications/message", "notifications/of-its-own", complete] {
        let gate = Gate::new();
        let later = json!({ "method": method, "wait": gate.path() });
        assert_eq!(text(&client.call("say", later).await), "said");
        gate.open();
        assert_eq!(message(&mut standing).await["method"], method);
    }
    gateway.end().await;
}

/// The process that serves a session notifies it of changes, from its next call on.
#[tokio::test]
async fn subscription_survives_a_change_of_sharing() {
    let sharing = |share: &str| {
        let mut server = echoing("legacy");
        server["share"] = share.into();
        server["args"].as_array_mut().unwrap().push("watched".into());
        configuration(&json!({ "echoing": server }))
    };
    for (before, after) in [("all", "per-client"), ("per-client", "all")] {
        let gateway = TestGateway::of(sharing(before)).await;
        let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
        let mut standing = client.request("GET", &[]).await.1;
        let subscribed = client.ask("resources/subscribe", json!({ "uri": "x://note" })).await;
        assert!(subscribed["result"].is_object(), "{subscribed}");
        for share in [before, after] {
            gateway.host.reload(sharing(share), BTreeMap::new()).await;
            until_touched(&mut client).await;
            assert_eq!(
                updates_before_mark(&mut client, &mut standing).await,
                ["x://note"],
                "{share}"
            );
        }
        gateway.end().await;
    }
}

/// The first resource update on a stream, and those before a later message of the same process.
async fn updates_before_mark(client: &mut TestClient, stream: &mut Channel) -> Vec<Value> {
    let gate = Gate::new();
    client.call("visit", json!({ "id": "mark", "wait": gate.path() })).await;
    let mut updates = Vec::new();
    loop {
        let mut said = message(stream).await;
        match said["method"].as_str() {
            Some("notifications/resources/updated") => {
                updates.push(said["params"]["uri"].take());
                // Changes of a shared server are merged for a moment before they are sent.
                pass_time(Duration::from_secs(1)).await;
                gate.open();
            }
            Some("notifications/elicitation/complete") => return updates,
            _ => {}
        }
    }
}

/// Waits until the called process has the subscription, and triggers an update.
async fn until_touched(client: &mut TestClient) {
    until("the server has the subscription", async || {
        (text(&client.call("touch", json!({})).await) == r#"["x://note"]"#).then_some(())
    })
    .await;
}

/// Waits until the process of a client has received the log level.
async fn until_level(client: &mut TestClient, level: &str) {
    until("the server has the log level", async || {
        (text(&client.call("level", json!({})).await) == level).then_some(())
    })
    .await;
}

/// The GET stream is optional.
#[tokio::test]
async fn server_request_reaches_the_open_get_stream() {
    for has_standing in [false, true] {
        let gateway = gateway().await;
        let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
        let mut hanging = begun(&mut client, "hang", json!({ "token": "own" })).await;
        let mut standing = match has_standing {
            true => Some(client.request("GET", &[]).await.1),
            false => None,
        };
        let mut asking = begun(&mut client, "ask", json!({})).await;
        let question = match &mut standing {
            Some(standing) => message(standing).await,
            None => tokio::select! {
                question = message(&mut hanging) => question,
                question = message(&mut asking) => question,
            },
        };
        client.tell(&accepted(&question)).await.unwrap();
        assert_eq!(text(&message(&mut asking).await), "Ada");
        gateway.end().await;
    }
}

#[tokio::test]
async fn server_request_without_a_stream_is_refused_at_once() {
    let answers = AnswerLog::new();
    let mut server = answers.server();
    server["share"] = "per-client".into();
    let gateway = TestGateway::to(&json!({ "echoing": server })).await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let gate = Gate::new();
    assert_eq!(text(&client.call("ask_after", json!({ "wait": gate.path() })).await), "later");
    gate.open();
    // A poll meanwhile would be a stream for the server request.
    answers.until_answered(1).await;
    until_said(&mut client, "answers", "no stream").await;
    gateway.end().await;
}
