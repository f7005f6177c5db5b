//! Servers of which each client has its own: their questions reach their client, and nobody else.

use serde_json::json;

use crate::asker::{Asker, Era, text};
use crate::hosting::Hosted;
use crate::identities::{go_on, state_of};
use crate::manners::{echoing, until_said};

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
