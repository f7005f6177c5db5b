//! Task notifications reach the owner of a task, under the sealed task ID.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use trunkline_gateway::{GatewayOptions, Scope, Token, Tokens, digest_of};
use trunkline_testkit::peers;

use crate::support::client::{Era, TestClient, borrowed, text};
use crate::support::file_driven_server::heard_of;
use crate::support::gateway::{Folder, TestGateway, configuration};
use crate::support::http_connection::{Channel, Sent};
use crate::support::wait::{LONGEST, passing_time, until};

const ANN: (&str, &str) = ("Authorization", "Bearer token-of-ann");
const BOB: (&str, &str) = ("Authorization", "Bearer token-of-bob");

fn announcing(folder: &Folder, share: &str) -> Value {
    json!({
        "command": peers::python(),
        "args": ["-I", peers::announcing_server(), folder.text(), "modern"],
        "prefix": "",
        "share": share,
        "timeouts": { "shutdown": "1s" },
    })
}

async fn gateway(servers: &Value) -> TestGateway {
    let mut tokens = Tokens::default();
    for (name, token) in [("ann", "token-of-ann"), ("bob", "token-of-bob")] {
        let known = Token { name: name.to_owned(), scope: Scope::default() };
        tokens.insert(digest_of(token), known);
    }
    TestGateway::with(servers, GatewayOptions { tokens, ..GatewayOptions::default() }).await
}

/// A client that declares the tasks extension.
async fn knowing(gateway: &TestGateway, who: (&str, &str)) -> TestClient {
    let mut client = TestClient::with(Era::Modern, gateway.address, &[who]).await.unwrap();
    client.capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    client
}

async fn begin(client: &mut TestClient, name: &str) -> String {
    let begun = client.call("begin", json!({ "name": name })).await;
    assert_eq!(begun["result"]["resultType"], "task", "{begun}");
    begun["result"]["taskId"].as_str().unwrap().to_owned()
}

async fn advance(client: &mut TestClient, task: &str, status: &str) {
    let arguments = json!({ "task": task, "status": status });
    assert_eq!(text(&client.call("advance", arguments).await), "advanced");
}

async fn message(stream: &mut Channel) -> Value {
    loop {
        let event = timeout(LONGEST, stream.event()).await.expect("an event in time").unwrap();
        if let Some(message) = event.expect("an event").message {
            return message;
        }
    }
}

/// Subscribes, and returns the acknowledged task IDs, the request ID, and the stream.
async fn listen(client: &mut TestClient, tasks: &[&str]) -> (Value, u64, Channel) {
    let wanted = json!({ "notifications": { "taskIds": tasks } });
    let written = client.write("subscriptions/listen", wanted);
    let head = timeout(LONGEST, client.begin(&written)).await.expect("a stream").unwrap();
    assert!(head.is_stream(), "{head:?}");
    let other = Channel::to(client.address).await.unwrap();
    let mut stream = std::mem::replace(&mut client.channel, other);
    let acknowledged = message(&mut stream).await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    (acknowledged["params"]["notifications"]["taskIds"].clone(), written.id, stream)
}

#[tokio::test]
async fn task_updates_reach_only_their_owner() {
    for share in ["all", "per-client"] {
        let folder = Folder::new();
        let gateway = gateway(&json!({ "announcing": announcing(&folder, share) })).await;
        let mut ann = knowing(&gateway, ANN).await;
        let mut bob = knowing(&gateway, BOB).await;
        let number = begin(&mut ann, "1").await;
        assert!(!number.contains("task-1"), "it is sealed: {number}");
        let of_bob = begin(&mut bob, "2").await;
        // Bob cannot subscribe with another principal's task ID, or with the upstream one.
        let (heard_by_bob, _, mut to_bob) = listen(&mut bob, &[&number, "task-1", &of_bob]).await;
        assert_eq!(heard_by_bob, json!([of_bob]));
        let (heard, id, mut to_ann) = listen(&mut ann, &[&number, &number, "x"]).await;
        assert_eq!(heard, json!([number]));
        advance(&mut ann, "task-1", "working").await;
        let told = message(&mut to_ann).await;
        assert_eq!(told["method"], "notifications/tasks");
        assert_eq!(told["params"]["taskId"], json!(number));
        assert_eq!(told["params"]["status"], "working");
        let said = &told["params"]["_meta"];
        assert_eq!(*said, json!({ "io.modelcontextprotocol/subscriptionId": id }));
        advance(&mut bob, "task-2", "completed").await;
        assert_eq!(message(&mut to_bob).await["params"]["taskId"], json!(of_bob), "his own first");
        let asked = std::fs::read_to_string(folder.path().join("heard")).unwrap();
        assert!(!asked.contains(&number), "the server hears its own numbers");
        gateway.end().await;
    }
}

/// A task ID is valid only at the endpoint where the task was created.
#[tokio::test]
async fn a_task_is_known_at_the_address_it_was_begun_at_alone() {
    let folder = Folder::new();
    let servers = json!({ "announcing": announcing(&folder, "all") });
    let all = json!({ "mcpServers": servers, "agents": { "other": { "tools": ["*"] } } });
    let config = trunkline::config::parse("test", all.to_string()).config;
    let gateway = TestGateway::start(config, GatewayOptions::default()).await;
    let mut client = knowing(&gateway, ("X-Unknown", "in particular")).await;
    let number = begin(&mut client, "1").await;
    // The server does not implement the method, and its error shows that it was called.
    for (path, code) in [("/mcp", -32_601), ("/mcp/agents/other", -32_602), ("/mcp/", -32_601)] {
        let written = client.write("tasks/get", json!({ "taskId": number }));
        let headers = borrowed(&written.headers);
        let sent = Sent { method: "POST", path, headers: &headers, body: &written.body };
        let (_, messages) = client.channel.messages(&sent).await.unwrap();
        assert_eq!(messages[0]["error"]["code"], code, "{path}: {messages:?}");
    }
    gateway.end().await;
}

#[tokio::test]
async fn client_without_tasks_receives_no_task_updates() {
    let folder = Folder::new();
    let gateway = gateway(&json!({ "announcing": announcing(&folder, "all") })).await;
    let mut ann = TestClient::with(Era::Modern, gateway.address, &[ANN]).await.unwrap();
    let wanted = json!({ "notifications": { "taskIds": ["x"] } });
    assert_eq!(ann.ask("subscriptions/listen", wanted).await["error"]["code"], -32_021);
    gateway.end().await;
}

/// Upstream tokens are small numbers: a client's own token could equal that of another client's
/// call.
#[tokio::test]
async fn no_progress_token_of_a_client_reaches_a_server() {
    let folder = Folder::new();
    let gateway = gateway(&json!({ "announcing": announcing(&folder, "all") })).await;
    let mut ann = knowing(&gateway, ANN).await;
    let number = begin(&mut ann, "1").await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({ "taskId": number, "_meta": { "progressToken": 70_000 } });
        ann.ask(method, params).await;
        let heard = heard_of(&folder, method);
        let [request] = &heard[..] else { panic!("{heard:?}") };
        let token = &request["params"]["_meta"]["progressToken"];
        assert!(token.is_null() || *token == request["id"], "{method}: {request}");
    }
    gateway.end().await;
}

/// Tasks of revision 2025-11-25 are not supported, so that a request for one is not forwarded.
#[tokio::test]
async fn task_requests_of_the_legacy_revision_reach_no_server() {
    let folder = Folder::new();
    let mut server = announcing(&folder, "all");
    server["args"].as_array_mut().unwrap().pop();
    server["args"].as_array_mut().unwrap().push("legacy".into());
    let gateway = gateway(&json!({ "announcing": server })).await;
    for era in [Era::Legacy, Era::Modern] {
        let mut ann = TestClient::with(era, gateway.address, &[ANN]).await.unwrap();
        let wish = json!({ "ttl": 60_000 });
        let call = json!({ "name": "params", "arguments": { "task": 1 }, "task": wish });
        let answer = ann.ask("tools/call", call).await;
        let said: Value = serde_json::from_str(text(&answer)).unwrap();
        assert_eq!(said["arguments"], json!({ "task": 1 }), "{said}");
        assert!(said.get("task").is_none(), "{said}");
    }
    gateway.end().await;
}

/// A request about a task needs access to its tool.
#[tokio::test]
async fn a_task_of_a_tool_that_was_denied_is_out_of_reach() {
    let folder = Folder::new();
    let servers = |denied: &[&str]| {
        let mut server = announcing(&folder, "all");
        server["concurrency"] = 1.into();
        server["denyTools"] = json!(denied);
        json!({ "announcing": server })
    };
    let gateway = gateway(&servers(&[])).await;
    let mut ann = knowing(&gateway, ANN).await;
    let number = begin(&mut ann, "1").await;
    let (heard, _, mut stream) = listen(&mut ann, &[&number]).await;
    assert_eq!(heard, json!([number]));
    // A call takes the only slot, so that a request about the task waits for one.
    let call = ann.write("tools/call", json!({ "name": "wait", "arguments": {} }));
    let headers = borrowed(&call.headers);
    let mut calling = Channel::to(gateway.address).await.unwrap();
    let mut waiting = knowing(&gateway, ANN).await;
    let sent = Sent::post(&headers, &call.body);
    let calls = async {
        tokio::select! {
            head = calling.send(&sent) => drop(head),
            () = until_heard(&folder, "tools/call", 2) => {}
        }
    };
    timeout(LONGEST, calls).await.expect("the call in time");
    let queued = waiting.write("tasks/get", json!({ "taskId": number }));
    // A response becomes a stream when it takes long: it waits for a slot.
    let head = passing_time(Duration::from_secs(1), waiting.begin(&queued)).await.unwrap();
    assert!(head.is_stream(), "{head:?}");
    gateway.host.reload(configuration(&servers(&["begin"])), BTreeMap::new()).await;
    drop(calling);
    let refused = message(&mut waiting.channel).await;
    assert_eq!(refused["error"]["code"], -32_602, "{refused}");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = ann.ask(method, json!({ "taskId": number })).await;
        assert_eq!(refused["error"]["code"], -32_602, "{refused}");
        assert!(
            refused["error"]["message"].as_str().unwrap().contains("no such task"),
            "{refused}"
        );
        assert_eq!(heard_of(&folder, method), Vec::<Value>::new());
    }
    // No notification about it arrives, on the existing stream or on a new one.
    advance(&mut ann, "task-1", "working").await;
    assert_eq!(listen(&mut ann, &[&number]).await.0, json!([]));
    gateway.host.reload(configuration(&servers(&[])), BTreeMap::new()).await;
    let answered = ann.ask("tasks/get", json!({ "taskId": number })).await;
    assert_eq!(answered["error"]["code"], -32_601, "the server was asked: {answered}");
    // The next notification is the first on the stream.
    advance(&mut ann, "task-1", "completed").await;
    assert_eq!(message(&mut stream).await["params"]["status"], "completed");
    gateway.end().await;
}

/// Waits until a server has received `count` messages of a method.
async fn until_heard(folder: &Folder, method: &str, count: usize) {
    let is_received = async || (heard_of(folder, method).len() >= count).then_some(());
    until(&format!("{method} is received"), is_received).await;
}
