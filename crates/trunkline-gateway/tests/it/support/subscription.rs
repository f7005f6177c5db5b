//! A subscription of a modern client.

use serde_json::{Value, json};
use tokio::time::timeout;

use super::client::{TestClient, borrowed};
use super::http_connection::{Channel, Sent};
use super::wait::LONGEST;

/// A subscription to changes of tools.
pub(crate) struct Subscribed {
    pub(crate) id: u64,
    pub(crate) stream: Channel,
}

impl Subscribed {
    pub(crate) async fn at(path: &str, client: &mut TestClient) -> Self {
        let wanted = json!({ "notifications": { "toolsListChanged": true } });
        let written = client.write("subscriptions/listen", wanted);
        let mut stream = Channel::to(client.address).await.unwrap();
        let headers = borrowed(&written.headers);
        let sent = Sent { method: "POST", path, headers: &headers, body: &written.body };
        let head = timeout(LONGEST, stream.send(&sent)).await.expect("a stream").unwrap();
        assert!(head.is_stream(), "{head:?}");
        let mut subscribed = Self { id: written.id, stream };
        let first = subscribed.next().await.unwrap();
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        subscribed
    }

    /// The next message; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let event = timeout(LONGEST, self.stream.event()).await.expect("an event in time");
            let message = event.unwrap()?.message;
            if message.is_some() {
                return message;
            }
        }
    }

    /// Waits for the response, which is the last message. Returns the notifications before it.
    pub(crate) async fn ends(mut self) -> Vec<Value> {
        let mut said = Vec::new();
        let answer = loop {
            let message = self.next().await.expect("an answer");
            if message.get("method").is_none() {
                break message;
            }
            said.push(message["method"].clone());
        };
        assert_eq!(
            (&answer["id"], &answer["result"]["resultType"]),
            (&json!(self.id), &json!("complete"))
        );
        let meta = &answer["result"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], json!(self.id), "{answer}");
        assert_eq!(self.next().await, None);
        said
    }
}
