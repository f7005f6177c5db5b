//! Records of finished requests, as an observer receives them.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use trunkline_gateway::{GatewayOptions, Observer, RequestObserver, RequestOutcome, RequestRecord};

use crate::support::client::{Era, TestClient, borrowed};
use crate::support::echoing_server::{Gate, echoing};
use crate::support::file_driven_server::{canned, heard_of};
use crate::support::gateway::{Folder, TestGateway};
use crate::support::http_connection::{Channel, Sent};
use crate::support::wait::until;

#[derive(Default)]
struct Records {
    ended: Mutex<Vec<RequestRecord>>,
    is_tracing: bool,
}

impl Records {
    /// The next record of a call.
    async fn next(&self) -> RequestRecord {
        until("a call has ended", async || {
            let mut records = self.ended.lock().unwrap();
            let index = records.iter().position(|it| &*it.method == "tools/call")?;
            Some(records.remove(index))
        })
        .await
    }
}

impl RequestObserver for Records {
    fn on_request(&self, record: RequestRecord) {
        self.ended.lock().unwrap().push(record);
    }

    fn is_tracing(&self) -> bool {
        self.is_tracing
    }
}

async fn observed_gateway(server: &Value) -> (TestGateway, Arc<Records>) {
    observed_by(Records::default(), server).await
}

async fn observed_by(records: Records, server: &Value) -> (TestGateway, Arc<Records>) {
    let records = Arc::new(records);
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

/// The trace context of the client reaches the server as it is, unless the gateway traces: then the server is below the
/// span of the gateway.
#[tokio::test]
async fn trace_context_is_passed_on() {
    const CLIENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const HTTP: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for is_tracing in [false, true] {
        let folder = Folder::new();
        folder.write(
            "tools.list.json",
            r#"{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#,
        );
        let observer = Records { is_tracing, ..Records::default() };
        let (gateway, records) = observed_by(observer, &canned(&folder, "legacy")).await;
        let header = ("traceparent", HTTP);
        let mut client = TestClient::with(Era::Legacy, gateway.address, &[header]).await.unwrap();
        let meta = json!({ "traceparent": CLIENT, "tracestate": "a=b" });
        client
            .ask("tools/call", json!({ "name": "echoing_t", "arguments": {}, "_meta": meta }))
            .await;
        let record = records.next().await;
        let heard = heard_of(&folder, "tools/call");
        let sent = &heard[0]["params"]["_meta"];
        assert_eq!(sent["tracestate"], "a=b", "{sent}");
        let Some(trace) = record.trace else {
            assert!(!is_tracing && sent["traceparent"] == CLIENT, "{sent}");
            gateway.end().await;
            continue;
        };
        let (upstream, _) = trace.client.unwrap();
        assert_eq!(sent["traceparent"], upstream.to_string());
        assert_eq!(trace.parent.unwrap().to_string(), CLIENT);
        assert_eq!(trace.link.unwrap().to_string(), HTTP);
        assert_eq!(upstream.trace_id, trace.parent.unwrap().trace_id);
        assert!(upstream.span_id != trace.server.span_id && trace.server.is_sampled);
        gateway.end().await;
    }
}
