//! Servers of which each client has its own: their questions reach their client, and nobody else.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::asker::{Asker, Era, text};
use crate::channel::Channel;
use crate::hosting::Hosted;
use crate::identities::{go_on, state_of};
use crate::manners::{echoing, until_said};

/// Nothing of what these tests wait for takes nearly as long.
const LONGEST: Duration = Duration::from_secs(30);

async fn hosted() -> Hosted {
    let mut server = echoing("legacy");
    server["share"] = "per-client".into();
    Hosted::to(&json!({ "echoing": server })).await
}

/// Nothing tells two windows of one program apart: they share a process, and may be two people.
#[tokio::test]
async fn a_question_of_clients_that_look_the_same_is_for_the_only_call_or_for_nobody() {
    let hosted = hosted().await;
    let mut one = Asker::new(Era::Modern, hosted.address).await.unwrap();
    let mut other = Asker::new(Era::Modern, hosted.address).await.unwrap();
    let mut looking = Asker::new(Era::Modern, hosted.address).await.unwrap();
    let call = json!({ "name": "hang", "arguments": { "token": "others" } });
    let written = other.write("tools/call", call);
    let hanging = tokio::spawn(async move { other.exchange(&written).await.is_ok() });
    until_said(&mut looking, "hung", "others").await;
    let refused = one.call("ask", json!({ "wait": 200 })).await;
    assert!(text(&refused).contains("several calls"), "{refused}");
    assert!(!hanging.is_finished(), "it was asked what was not for it");
    hanging.abort();
    until_said(&mut looking, "cancelled", "others").await;
    let state = state_of(&one.call("ask", json!({})).await);
    assert_eq!(text(&go_on(&mut one, "ask", &state).await), "Ada");
    hosted.end().await;
}

/// Whoever does not answer, or not yet, keeps nobody from being asked who looks the same.
#[tokio::test]
async fn a_call_that_waits_for_its_client_has_a_process_for_itself() {
    let hosted = hosted().await;
    let mut one = Asker::new(Era::Modern, hosted.address).await.unwrap();
    let mut other = Asker::new(Era::Modern, hosted.address).await.unwrap();
    assert_eq!(text(&one.call("echo", json!({ "token": "up" })).await), "up");
    let first = state_of(&one.call("ask", json!({})).await);
    let second = state_of(&other.call("ask", json!({})).await);
    for (asker, state) in [(&mut other, &second), (&mut one, &first)] {
        assert_eq!(text(&go_on(asker, "ask", state).await), "Ada");
    }
    hosted.end().await;
}

/// Lists come from the process that all share: nobody but its client would notice that it is down.
#[tokio::test]
async fn a_process_that_has_ended_is_replaced_at_the_next_call() {
    let hosted = hosted().await;
    for era in [Era::Legacy, Era::Modern] {
        let mut asker = Asker::new(era, hosted.address).await.unwrap();
        let ended = asker.call("exit", json!({})).await;
        assert_eq!(ended["result"]["isError"], true, "{ended}");
        let deadline = tokio::time::Instant::now() + LONGEST;
        while text(&asker.call("echo", json!({ "token": "again" })).await) != "again" {
            assert!(tokio::time::Instant::now() < deadline, "it stays down");
        }
    }
    hosted.end().await;
}

/// A call of a legacy client that is not over yet, and the stream on which it is answered.
async fn begun(asker: &mut Asker, tool: &str, arguments: Value) -> Channel {
    let written = asker.write("tools/call", json!({ "name": tool, "arguments": arguments }));
    assert!(asker.begin(&written).await.unwrap().is_stream());
    let other = Channel::to(asker.address).await.unwrap();
    std::mem::replace(&mut asker.channel, other)
}

/// The next message of a stream.
async fn message(stream: &mut Channel) -> Value {
    loop {
        let event = timeout(LONGEST, stream.event()).await.expect("an event in time").unwrap();
        if let Some(message) = event.expect("an event").message {
            return message;
        }
    }
}

fn accepted(question: &Value) -> Value {
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer })
}

/// The stream of a GET is optional.
#[tokio::test]
async fn a_session_is_asked_on_a_stream_that_it_reads() {
    for has_standing in [false, true] {
        let hosted = hosted().await;
        let mut asker = Asker::new(Era::Legacy, hosted.address).await.unwrap();
        let mut hanging = begun(&mut asker, "hang", json!({ "token": "own" })).await;
        let mut standing = match has_standing {
            true => Some(asker.request("GET", &[]).await.1),
            false => None,
        };
        let mut asking = begun(&mut asker, "ask", json!({ "wait": 500 })).await;
        let question = match &mut standing {
            Some(standing) => message(standing).await,
            None => tokio::select! {
                question = message(&mut hanging) => question,
                question = message(&mut asking) => question,
            },
        };
        asker.tell(&accepted(&question)).await.unwrap();
        assert_eq!(text(&message(&mut asking).await), "Ada");
        hosted.end().await;
    }
}

#[tokio::test]
async fn a_session_that_reads_no_stream_cannot_be_asked_and_the_server_hears_so_at_once() {
    let hosted = hosted().await;
    let mut asker = Asker::new(Era::Legacy, hosted.address).await.unwrap();
    assert_eq!(text(&asker.call("ask_after", json!({ "wait": 300 })).await), "later");
    // A call that looks for it meanwhile would be a way to be asked.
    sleep(Duration::from_secs(1)).await;
    until_said(&mut asker, "answers", "no stream").await;
    hosted.end().await;
}
