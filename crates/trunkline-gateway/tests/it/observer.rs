//! Records of finished requests, as an observer receives them.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use trunkline_gateway::{GatewayOptions, Observer, RequestObserver, RequestOutcome, RequestRecord};

use crate::support::client::{Era, TestClient, borrowed};
use crate::support::echoing_server::{Gate, echoing};
use crate::support::gateway::TestGateway;
use crate::support::http_connection::{Channel, Sent};
use crate::support::wait::until;

#[derive(Default)]
struct Records(Mutex<Vec<RequestRecord>>);

impl Records {
    /// The next record of a call.
    async fn next(&self) -> RequestRecord {
        until("a call has ended", async || {
            let mut records = self.0.lock().unwrap();
            let index = records.iter().position(|it| &*it.method == "tools/call")?;
            Some(records.remove(index))
        })
        .await
    }
}

impl RequestObserver for Records {
    fn on_request(&self, record: RequestRecord) {
        self.0.lock().unwrap().push(record);
    }
}

async fn observed_gateway(server: &Value) -> (TestGateway, Arc<Records>) {
    let records = Arc::new(Records::default());
    let observer = Some(Observer(records.clone()));
    let options = GatewayOptions { observer, ..GatewayOptions::default() };
    (TestGateway::with(&json!({ "echoing": server }), options).await, records)
}

#[tokio::test]
async fn a_call_is_recorded_with_server_and_time() {
    for era in [Era::Legacy, Era::Modern] {
        let (gateway, records) = observed_gateway(&echoing("legacy")).await;
        let mut client = TestClient::new(era, gateway.address).await.unwrap();
        client.call("echo", json!({ "token": "t", "wait": 50 })).await;
        let record = records.next().await;
        assert_eq!(record.outcome, RequestOutcome::Ok);
        assert_eq!(record.subject.as_deref(), Some("echo"));
        assert_eq!(record.server.unwrap().as_str(), "echoing");
        assert!(record.token.is_none() && record.code.is_none());
        assert!(record.upstream.as_millis() >= 50 && record.upstream <= record.duration);
        assert_eq!(record.params.to_value()["arguments"]["token"], "t");
        assert_eq!(record.result.unwrap().to_value()["content"][0]["text"], "t");
        gateway.end().await;
    }
}

#[tokio::test]
async fn failures_are_recorded_as_what_they_are() {
    let mut server = echoing("legacy");
    server["timeouts"] = json!({ "call": "1s", "shutdown": "1s" });
    let (gateway, records) = observed_gateway(&server).await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    client.call("no-such-tool", json!({})).await;
    assert_eq!(records.next().await.outcome, RequestOutcome::Denied);
    client.call("hang", json!({ "token": "t" })).await;
    assert_eq!(records.next().await.outcome, RequestOutcome::Timeout);
    // The response to the client is a result with `isError`, and the tool has not run to its end.
    client.call("exit", json!({})).await;
    let record = records.next().await;
    assert_eq!(record.outcome, RequestOutcome::Unavailable);
    assert_eq!(record.server.unwrap().as_str(), "echoing");
    gateway.end().await;
}

#[tokio::test]
async fn a_request_whose_client_is_gone_is_recorded_as_cancelled() {
    let (gateway, records) = observed_gateway(&echoing("legacy")).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let gate = Gate::new();
    let arguments = json!({ "token": "t", "wait": gate.path() });
    let written = client.write("tools/call", json!({ "name": "echo", "arguments": arguments }));
    let mut channel = Channel::to(gateway.address).await.unwrap();
    channel.write(&Sent::post(&borrowed(&written.headers), &written.body)).await.unwrap();
    until("the server has the call", async || {
        let said = client.call("hung", json!({})).await;
        assert_eq!(records.next().await.outcome, RequestOutcome::Ok);
        said.to_string().contains("\\\"t\\\"").then_some(())
    })
    .await;
    drop(channel);
    assert_eq!(records.next().await.outcome, RequestOutcome::Cancelled);
    gateway.end().await;
}
