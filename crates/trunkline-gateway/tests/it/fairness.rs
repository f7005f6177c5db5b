//! One principal cannot block others from shared resources.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::timeout;
use trunkline::connection::{NoopHandler, OutgoingRequest};
use trunkline::error::ErrorKind;
use trunkline::message::Raw;
use trunkline::principal::{Principal, Requester};

use crate::support::client::{Era, TestClient, text};
use crate::support::echoing_server::echoing;
use crate::support::tokens::{ANN, BOB, gateway};
use crate::support::wait::{LONGEST, until};

#[tokio::test]
async fn one_token_does_not_take_all_calls_of_a_server() {
    let gateway = gateway(&json!({ "echoing": echoing("legacy") })).await;
    let connection = gateway.host.servers().get("echoing").unwrap();
    connection.connect().await.unwrap();
    let (mut crowd, refused) = (JoinSet::new(), Arc::<AtomicUsize>::default());
    for _ in 0..2100 {
        let (connection, refused) = (Arc::clone(&connection), Arc::clone(&refused));
        let call = json!({ "name": "hang", "arguments": { "token": "crowd" } });
        let requester = Requester {
            client: "x".into(),
            principal: Principal::Token("ann".into()),
            ..Requester::default()
        };
        let ask = OutgoingRequest {
            requester,
            ..OutgoingRequest::new("tools/call", Some(Raw::from_value(&call)))
        };
        crowd.spawn(async move {
            let error = connection.request_with(ask, &NoopHandler).await.unwrap_err();
            assert_eq!(error.failure().unwrap().kind(), ErrorKind::Busy, "{error}");
            refused.fetch_add(1, Ordering::Relaxed);
        });
    }
    let all_refused = async || (refused.load(Ordering::Relaxed) >= 2100 - 1024).then_some(());
    until("the rest is refused", all_refused).await;
    let mut bob = TestClient::with(Era::Legacy, gateway.address, &[BOB]).await.unwrap();
    assert_eq!(text(&bob.call("echo", json!({ "token": "bob" })).await), "bob");
    let mut ann = TestClient::with(Era::Legacy, gateway.address, &[ANN]).await.unwrap();
    let busy = ann.call("echo", json!({ "token": "ann" })).await;
    assert_eq!(busy["result"]["_meta"]["io.trunkline/retry"], true, "{busy}");
    assert_eq!(refused.load(Ordering::Relaxed), 2100 - 1024, "no other call was refused");
    crowd.shutdown().await;
    gateway.end().await;
}

/// Waiting calls get slots in turns of their principals, not in order of arrival.
#[tokio::test]
async fn a_call_waits_for_one_turn_of_each_other_token() {
    let mut server = echoing("legacy");
    server["concurrency"] = 1.into();
    let gateway = gateway(&json!({ "echoing": server })).await;
    let (mut crowd, done) = (JoinSet::new(), Arc::<AtomicUsize>::default());
    for _ in 0..30 {
        let mut ann = TestClient::with(Era::Modern, gateway.address, &[ANN]).await.unwrap();
        let done = Arc::clone(&done);
        crowd.spawn(async move {
            let answer = ann.call("echo", json!({ "token": "ann", "wait": 200 })).await;
            assert_eq!(text(&answer), "ann");
            done.fetch_add(1, Ordering::Relaxed);
        });
    }
    let mut bob = TestClient::with(Era::Modern, gateway.address, &[BOB]).await.unwrap();
    until("a call is done", async || (done.load(Ordering::Relaxed) > 0).then_some(())).await;
    let answer = timeout(LONGEST, bob.call("echo", json!({ "token": "bob" }))).await.unwrap();
    assert_eq!(text(&answer), "bob");
    let before = done.load(Ordering::Relaxed);
    assert!(before < 25, "{before} calls of ann were made first");
    timeout(LONGEST, async { while crowd.join_next().await.is_some_and(|it| it.is_ok()) {} })
        .await
        .unwrap();
    assert_eq!(done.load(Ordering::Relaxed), 30, "no call was lost");
    gateway.end().await;
}
