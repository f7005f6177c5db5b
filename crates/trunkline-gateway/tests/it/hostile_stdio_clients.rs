//! The gateway over a pair of streams, with misbehaving clients.

use std::collections::HashSet;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use trunkline_testkit::peers;

use crate::support::client::{Era, TestClient, text};
use crate::support::demo_server::{MODERN, legacy, modern};
use crate::support::echoing_server::until_said;
use crate::support::gateway::Folder;
use crate::support::stdio_client::{StdioTestClient, call};
use crate::support::wait::{LONGEST, until};

#[tokio::test]
async fn invalid_line_gets_an_error_and_the_session_continues() {
    let mut client = StdioTestClient::new("legacy").await;
    client.open().await;
    let ping = legacy("ping", &json!({}));
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let huge = legacy("ping", &json!({ "text": "x".repeat(17 * 1024 * 1024) }));
    for (message, code) in [
        ("hello", -32_700),
        ("[]", -32_600),
        (&*format!("[{ping},{ping}]"), -32_600),
        (&*deep, -32_600),
        (&*huge, -32_600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":"x","method":"ping","params":[]}"#, -32_602),
    ] {
        client.write(message).await;
        let answer = client.read().await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
        client.write(&ping).await;
        assert_eq!(client.read().await["result"], json!({}));
    }
    client.end().await;
}

#[tokio::test]
async fn an_id_is_used_once_at_a_time_on_a_pipe() {
    for is_modern in [false, true] {
        let mut client = StdioTestClient::new("legacy").await;
        client.open().await;
        // A call that is cancelled before its server has started does not reach it.
        client.write(&call(is_modern, "look", "hung", &json!({}))).await;
        client.read().await;
        client.write(&call(is_modern, "same", "hang", &json!({ "token": "first" }))).await;
        client.write(&call(is_modern, "same", "echo", &json!({ "token": "second" }))).await;
        let refused = client.read().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("same"), &json!(-32_600)));
        // The server may still be starting, and a call that has not reached it cannot be cancelled
        // there.
        let mut hung = String::new();
        while !hung.contains("first") {
            client.write(&call(is_modern, "look", "hung", &json!({}))).await;
            text(&client.read().await).clone_into(&mut hung);
        }
        // The same ID with other escapes.
        let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled",
            "params":{"requestId":"s\u0061me"}}"#;
        client.write(&cancel.replace('\n', " ")).await;
        // A cancelled call gets no response, and its ID is free.
        client.write(&call(is_modern, "same", "echo", &json!({ "token": "third" }))).await;
        assert_eq!(text(&client.read().await), "third");
        let mut said = String::new();
        while !said.contains("first") {
            client.write(&call(is_modern, "look", "cancelled", &json!({}))).await;
            text(&client.read().await).clone_into(&mut said);
        }
        client.end().await;
    }
}

/// Responses wait for a slow reader; notifications may be dropped.
#[tokio::test]
async fn a_pipe_that_is_not_read_loses_no_answer() {
    let mut client = StdioTestClient::new("legacy").await;
    client.open().await;
    let params = json!({ "name": "chatter", "arguments": { "count": 2000, "size": 10_000 },
        "_meta": { "progressToken": 7 } });
    let mut chatter: Value = serde_json::from_str(&legacy("tools/call", &params)).unwrap();
    chatter["id"] = "chatter".into();
    client.write(&chatter.to_string()).await;
    for number in 0..20 {
        let token = json!({ "token": format!("token-{number}") });
        client.write(&call(number % 2 == 0, &number.to_string(), "echo", &token)).await;
    }
    let mut answered = Vec::new();
    while answered.len() < 21 {
        let answer = client.answer().await;
        let id = answer["id"].as_str().unwrap();
        let expected = if id == "chatter" { "done".to_owned() } else { format!("token-{id}") };
        assert_eq!(text(&answer), expected);
        answered.push(id.to_owned());
    }
    answered.sort();
    answered.dedup();
    assert_eq!(answered.len(), 21);
    client.end().await;
}

/// CON-8: messages for a client that does not read are limited; the end of its input is noticed.
#[tokio::test]
async fn responses_to_a_client_that_never_reads_are_bounded() {
    const LINES: usize = 60_000;
    for line in ["rubbish\n".to_owned(), legacy("ping", &json!({})) + "\n"] {
        let mut client = StdioTestClient::new("legacy").await;
        client.open().await;
        let lines = line.repeat(LINES);
        timeout(LONGEST, client.stream.write_all(lines.as_bytes()))
            .await
            .expect("it reads")
            .unwrap();
        client.stream.shutdown().await.unwrap();
        let mut text = String::new();
        timeout(LONGEST, client.stream.read_to_string(&mut text)).await.expect("an end").unwrap();
        let answers = text.lines().count();
        assert!(answers > 100 && answers < LINES / 2, "{answers}");
        client.gateway.end().await;
    }
}

/// CON-8: calls made before the client stopped reading also run only up to the concurrency limit;
/// the others run when it reads again.
#[tokio::test]
async fn calls_with_unread_responses_wait_for_a_slot() {
    const LONG: usize = 20;
    let mut client = StdioTestClient::new("legacy").await;
    client.open().await;
    let mut looking = TestClient::new(Era::Modern, client.gateway.address).await.unwrap();
    // A call that is cancelled before its server has started does not reach it.
    looking.call("hung", json!({})).await;
    // All slots except six.
    for number in 0..250 {
        let token = json!({ "token": format!("hanging-{number}") });
        client.write(&call(number % 2 == 0, &format!("hangs-{number}"), "hang", &token)).await;
    }
    for number in 0..LONG {
        let arguments = json!({ "token": "is-long", "size": 2_000_000 });
        client.write(&call(number % 2 == 0, &format!("long-{number}"), "long", &arguments)).await;
    }
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": "hangs-0" } });
    client.write(&cancel.to_string()).await;
    until_said(&mut looking, "cancelled", "hanging-0").await;
    let hung = looking.call("hung", json!({})).await;
    assert_eq!(text(&hung).matches("hanging-").count(), 250);
    // Six at once, one in place of the cancelled call, and one for each response that is written
    // before 8 MiB are queued.
    let begun = text(&hung).matches("is-long").count();
    assert!(begun <= 12, "{begun}");
    // A request with a small result needs no slot, and no response is lost.
    client.write(&legacy("ping", &json!({}))).await;
    for _ in 0..=LONG {
        let answer = client.answer().await;
        let is_long = answer["id"].as_str().is_some_and(|id| id.starts_with("long-"));
        assert!(is_long || answer["result"] == json!({}), "{}", answer["id"]);
    }
    client.end().await;
}

/// A client that closes its side still gets the responses to its requests.
#[tokio::test]
async fn responses_are_written_after_the_end_of_input() {
    let mut client = StdioTestClient::new("modern").await;
    client.open().await;
    let later = json!({ "token": "last", "wait": 300 });
    client.write(&call(false, "last", "echo", &later)).await;
    client.write(&call(true, "hangs", "hang", &json!({ "token": "never" }))).await;
    client.stream.shutdown().await.unwrap();
    assert_eq!(text(&client.read().await), "last");
    client.end().await;
}

/// Requests in progress are limited in bytes. The rest waits in the pipe, and nothing is lost.
#[tokio::test]
async fn long_requests_on_a_pipe_wait_for_each_other() {
    const COUNT: usize = 12;
    let mut client = StdioTestClient::new("legacy").await;
    client.open().await;
    for number in 0..COUNT {
        let arguments = json!({ "token": "x", "wait": 300, "beside": "x".repeat(7_000_000) });
        let call = call(number % 2 == 0, &number.to_string(), "echo", &arguments);
        timeout(LONGEST, client.write(&call)).await.expect("room in time");
    }
    let mut answered: Vec<String> = Vec::new();
    while answered.len() < COUNT {
        answered.push(client.answer().await["id"].as_str().unwrap().to_owned());
    }
    answered.sort_by_key(|id| id.parse::<usize>().unwrap());
    assert_eq!(answered, (0..COUNT).map(|number| number.to_string()).collect::<Vec<_>>());
    client.end().await;
}

/// CALL-2: a call to a server that has never started reports the reason.
#[tokio::test]
async fn call_to_a_server_that_never_started_returns_the_reason() {
    let mut client =
        StdioTestClient::to(&json!({ "gone": { "command": "no-such-program" } })).await;
    client.open().await;
    client.write(&legacy("tools/call", &json!({ "name": "gone_x", "arguments": {} }))).await;
    let answer = client.read().await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("MCP server unreachable: server `gone`: the program `no-such-program`"),
        "{text}"
    );
    client.write(&legacy("tools/call", &json!({ "name": "other_x", "arguments": {} }))).await;
    assert_eq!(client.read().await["error"]["code"], -32602);
    client.gateway.end().await;
}

/// A new session is another client: the dedicated servers of the previous one end.
#[tokio::test]
async fn servers_of_a_session_end_with_it_on_a_pipe() {
    let folder = Folder::new();
    folder.write("polite", "");
    let own = json!({
        "command": peers::python(),
        "args": ["-I", peers::lively_server(), folder.path(), "legacy"],
        "share": "per-client",
        "access": "read-write",
        "timeouts": { "shutdown": "1s" },
    });
    let mut client = StdioTestClient::to(&json!({ "own": own })).await;
    client.open().await;
    client.write(&call(false, "first", "own_started", &json!({}))).await;
    assert_eq!(text(&client.answer().await), "2");
    client.open().await;
    let saved = folder.path().join("saved");
    until("its server ends", async || saved.exists().then_some(())).await;
    client.end().await;
}

/// Subscribes, and reads the acknowledgement.
async fn listen(client: &mut StdioTestClient) {
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    client.write(&modern(MODERN, "subscriptions/listen", wanted)).await;
    assert_eq!(client.read().await["method"], "notifications/subscriptions/acknowledged");
}

#[tokio::test]
async fn subscription_over_stdio_is_completed_at_the_end() {
    let is_over = |answer: &Value| {
        let meta = &answer["result"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], 1, "{answer}");
        answer["id"] == 1 && answer["result"]["resultType"] == "complete"
    };
    let mut client = StdioTestClient::new("modern").await;
    listen(&mut client).await;
    client.gateway.host.shutdown().await;
    assert!(is_over(&client.answer().await));
    timeout(LONGEST, client.serving).await.expect("it ends").unwrap().unwrap();
    // For a client that closes its side, the subscription ends at once.
    let mut client = StdioTestClient::new("modern").await;
    listen(&mut client).await;
    client.stream.shutdown().await.unwrap();
    assert!(is_over(&client.answer().await));
    client.end().await;
}

/// A stream has one client, so that a call that is over is of the same client as the next.
#[tokio::test]
async fn modern_stdio_client_gets_input_requests_in_every_call() {
    let mut client = StdioTestClient::new("legacy").await;
    let asks = |more: Value| {
        let written = call(true, "asks", "ask", &json!({}));
        let mut message: Value = serde_json::from_str(&written).unwrap();
        let params = &mut message["params"];
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({ "elicitation": {} });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message.to_string()
    };
    for _ in 0..2 {
        client.write(&asks(json!({}))).await;
        let asked = client.answer().await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
        let state = &asked["result"]["requestState"];
        let more = json!({ "requestState": state, "inputResponses": { "question-1": answer } });
        client.write(&asks(more)).await;
        assert_eq!(text(&client.answer().await), "Ada");
    }
    client.end().await;
}

/// Regression: errors of requests above the limit were dropped when too many responses waited, even
/// if the client read them.
#[tokio::test]
async fn every_request_above_the_limit_gets_an_error() {
    const REQUESTS: usize = 6000;
    const LIMIT: usize = 4096;
    let StdioTestClient { stream, gateway, serving } = StdioTestClient::new("legacy").await;
    let (reader, mut writer) = tokio::io::split(stream.into_inner());
    let writing = tokio::spawn(async move {
        let calls = (0..REQUESTS).map(|number| {
            call(true, &number.to_string(), "hang", &json!({ "token": "all" })) + "\n"
        });
        writer.write_all(calls.collect::<String>().as_bytes()).await.unwrap();
        writer
    });
    let mut lines = tokio::io::BufReader::new(reader).lines();
    let mut refused = HashSet::new();
    while refused.len() < REQUESTS - LIMIT {
        let line = timeout(LONGEST, lines.next_line()).await.expect("an error in time").unwrap();
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if message["error"].is_object() {
            refused.insert(message["id"].to_string());
        }
    }
    drop((lines, writing.await.unwrap()));
    timeout(LONGEST, serving).await.expect("it ends").unwrap().unwrap();
    gateway.end().await;
}
