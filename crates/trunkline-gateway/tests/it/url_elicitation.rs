//! Completed URL elicitations: which client receives the notification.

use serde_json::{Value, json};

use crate::support::client::{Era, TestClient, text};
use crate::support::echoing_server::{echoing, until_said};
use crate::support::gateway::TestGateway;
use crate::support::server_requests::{begun, message};

const COMPLETE: &str = "notifications/elicitation/complete";

async fn gateway(share: &str) -> TestGateway {
    let mut server = echoing("legacy");
    server["share"] = share.into();
    TestGateway::to(&json!({ "echoing": server })).await
}

/// A session with support for URL elicitation.
async fn visitor(gateway: &TestGateway) -> TestClient {
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    client.capabilities = json!({ "elicitation": { "url": {} } });
    client.open().await.unwrap();
    client
}

fn assert_complete(said: &Value, id: &str) {
    assert_eq!((&said["method"], &said["params"]["elicitationId"]), (&json!(COMPLETE), &json!(id)));
}

/// The call that required it has ended by then, and others may be running.
#[tokio::test]
async fn session_receives_completion_of_a_url_elicitation_error() {
    for share in ["all", "per-client"] {
        let gateway = gateway(share).await;
        let [mut one, mut other] = [visitor(&gateway).await, visitor(&gateway).await];
        let [mut to_one, mut to_other] =
            [one.request("GET", &[]).await.1, other.request("GET", &[]).await.1];
        let refused = one.call("visit", json!({ "id": "visit-1", "wait": 1000 })).await;
        assert_eq!(refused["error"]["code"], -32_042, "{refused}");
        let mut hanging = begun(&mut other, "hang", json!({ "token": "others" })).await;
        assert_complete(&message(&mut to_one).await, "visit-1");
        // Each is notified once, and other sessions are not: the next message of each is another
        // one.
        for (client, stream, id) in
            [(&mut one, &mut to_one, "visit-2"), (&mut other, &mut to_other, "visit-3")]
        {
            client.call("visit", json!({ "id": id, "wait": 1000 })).await;
            assert_complete(&message(stream).await, id);
        }
        other.call("exit", json!({})).await;
        let ended = message(&mut hanging).await;
        assert_eq!(ended["result"]["isError"], true, "{share}: {ended}");
        gateway.end().await;
    }
}

/// A client without another stream receives it there.
#[tokio::test]
async fn a_visit_that_a_call_asks_for_is_over_on_the_stream_of_the_call() {
    for share in ["all", "per-client"] {
        let gateway = gateway(share).await;
        let [mut one, mut other] = [visitor(&gateway).await, visitor(&gateway).await];
        let mut asking = begun(&mut one, "ask_visit", json!({ "id": "visit-2" })).await;
        let question = message(&mut asking).await;
        assert_eq!(question["params"]["elicitationId"], "visit-2", "{question}");
        // So that it is not the only call any more.
        let _hanging = begun(&mut other, "hang", json!({ "token": "others" })).await;
        until_said(&mut other, "hung", "others").await;
        let accepted = json!({ "action": "accept" });
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": accepted });
        one.tell(&answer).await.unwrap();
        assert_complete(&message(&mut asking).await, "visit-2");
        assert_eq!(text(&message(&mut asking).await), "None");
        gateway.end().await;
    }
}
