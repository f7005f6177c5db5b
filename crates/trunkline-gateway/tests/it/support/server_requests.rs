//! Server requests as clients of either era receive and answer them.

use serde_json::{Value, json};
use tokio::time::timeout;

use super::client::TestClient;
use super::http_connection::Channel;
use super::wait::LONGEST;

pub(crate) fn state_of(answer: &Value) -> String {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    answer["result"]["requestState"].as_str().unwrap().to_owned()
}

/// The response to a retry with a request state and a name as input response.
pub(crate) async fn go_on(client: &mut TestClient, tool: &str, state: &str) -> Value {
    go_on_with(client, (tool, json!({})), state).await
}

/// The same for a call with arguments.
pub(crate) async fn go_on_with(
    client: &mut TestClient,
    (tool, arguments): (&str, Value),
    state: &str,
) -> Value {
    let answers = json!({ "question-1": { "action": "accept", "content": { "name": "Ada" } } });
    let call = json!({ "name": tool, "arguments": arguments, "requestState": state,
        "inputResponses": answers });
    client.ask("tools/call", call).await
}

/// Starts a call of a legacy client, and returns the stream of its response.
pub(crate) async fn begun(client: &mut TestClient, tool: &str, arguments: Value) -> Channel {
    let written = client.write("tools/call", json!({ "name": tool, "arguments": arguments }));
    assert!(client.begin(&written).await.unwrap().is_stream());
    let other = Channel::to(client.address).await.unwrap();
    std::mem::replace(&mut client.channel, other)
}

/// The next message of a stream.
pub(crate) async fn message(stream: &mut Channel) -> Value {
    loop {
        let event = timeout(LONGEST, stream.event()).await.expect("an event in time").unwrap();
        let message = event.expect("an event").message;
        // List changes may come at any time while servers start.
        let says_change = |it: &Value| {
            it["method"].as_str().is_some_and(|method| method.ends_with("/list_changed"))
        };
        if let Some(message) = message.filter(|it| !says_change(it)) {
            return message;
        }
    }
}

pub(crate) fn accepted(question: &Value) -> Value {
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer })
}
