//! Servers that are down: how lists and calls report them, and whether a retry may help.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use trunkline::config;
use trunkline::connection::{HttpOptions, NoopHandler, OutgoingRequest, State};
use trunkline::message::Raw;
use trunkline::principal::{Principal, Requester};
use trunkline_testkit::peers;

use crate::support::client::{Era, TestClient, borrowed, text};
use crate::support::echoing_server::{Gate, echoing};
use crate::support::gateway::{Folder, TestGateway, configuration, connecting_with};
use crate::support::http_connection::Sent;
use crate::support::http_server::Frank;
use crate::support::server_requests::{go_on, message, state_of};
use crate::support::subscription::Subscribed;
use crate::support::wait::{LONGEST, passing_time, until};

/// A remote server that can be stopped and restarted.
struct Remote {
    process: Child,
    port: String,
}

impl Remote {
    fn start(port: &str) -> Self {
        let mut command = Command::new(peers::python());
        command.arg("-I").arg(peers::forgetful_server()).arg(port).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { process, port: port.trim().to_owned() }
    }

    fn signal(&self, signal: &str) {
        let process = self.process.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &process]).status();
        assert!(sent.unwrap().success());
    }

    fn entry(&self) -> Value {
        let url = format!("http://127.0.0.1:{}/mcp", self.port);
        json!({ "type": "http", "url": url, "prefix": "", "access": "read-write" })
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The names of the tools in a list, and its unavailable servers.
async fn listed(client: &mut TestClient) -> (Vec<String>, Value) {
    let result = client.ask("tools/list", json!({})).await["result"].take();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    let names = result["tools"].as_array().unwrap().iter().map(name).collect();
    (names, result["_meta"]["io.trunkline/unavailable"].clone())
}

/// The `ttlMs` of a list.
async fn ttl(client: &mut TestClient) -> Value {
    client.ask("tools/list", json!({})).await["result"]["ttlMs"].take()
}

/// The text of a failed call, and whether a retry may help.
async fn failed(client: &mut TestClient, tool: &str) -> (String, Value) {
    let answer = client.call(tool, json!({ "token": "x" })).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let retry = answer["result"]["_meta"]["io.trunkline/retry"].clone();
    (text(&answer).to_owned(), retry)
}

/// CON-5: a process that ended stays down, whatever is listed and called, without a restart policy.
#[tokio::test]
async fn permanently_failed_server_is_reported_without_retry() {
    let mut entry = echoing("legacy");
    entry["restart"] = json!("never");
    let gateway = TestGateway::to(&json!({ "echoing": entry })).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let (words, retry) = failed(&mut client, "exit").await;
    assert_eq!(retry, json!(false), "{words}");
    for _ in 0..2 {
        let (names, missing) = listed(&mut client).await;
        assert_eq!((names.len(), &missing[0]["retry"]), (0, &json!(false)), "{missing}");
        assert_eq!(missing[0]["state"], "failed");
        // Listing again soon would not help.
        assert_eq!(ttl(&mut client).await, 60_000);
        let (words, retry) = failed(&mut client, "echo").await;
        assert_eq!(retry, json!(false));
        assert!(words.contains("server `echoing` is down"), "{words}");
        assert!(words.ends_with("Trying again will not help until the cause is fixed."));
    }
    gateway.end().await;
}

#[tokio::test]
async fn a_process_that_is_started_again_is_worth_another_try() {
    let mut entry = echoing("legacy");
    entry["restart"] = json!({ "policy": "on-failure", "delay": "60s", "maxDelay": "60s" });
    let gateway = TestGateway::to(&json!({ "echoing": entry })).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let (words, retry) = failed(&mut client, "exit").await;
    assert_eq!(retry, json!(true), "{words}");
    let connection = gateway.host.servers().get("echoing").unwrap();
    until("a restart is scheduled", async || connection.status().next_attempt).await;
    let (_, missing) = listed(&mut client).await;
    assert_eq!(missing[0]["retry"], json!(true), "{missing}");
    assert_eq!(ttl(&mut client).await, 0);
    gateway.end().await;
}

/// A remote server is absent while it is unreachable, and returns when it is reachable again.
#[tokio::test]
async fn unreachable_url_is_absent_from_lists_until_it_recovers() {
    let remote = Remote::start("0");
    let port = remote.port.clone();
    let gateway = TestGateway::to(&json!({ "remote": remote.entry() })).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    assert_eq!(
        listed(&mut client).await,
        (["announce", "lose", "slow"].map(str::to_owned).into(), Value::Null)
    );
    let mut subscribed = Subscribed::at("/mcp", &mut client).await;
    drop(remote);
    let words = loop {
        let (words, retry) = failed(&mut client, "slow").await;
        assert_eq!(retry, json!(true), "{words}");
        if words.contains("refuses connections") {
            break words;
        }
    };
    assert!(words.ends_with("Trying again later may help."), "{words}");
    assert_eq!(subscribed.next().await.unwrap()["method"], "notifications/tools/list_changed");
    let (names, missing) = listed(&mut client).await;
    assert_eq!((names.len(), &missing[0]["retry"]), (0, &json!(true)), "{missing}");
    let _remote = Remote::start(&port);
    assert_eq!(subscribed.next().await.unwrap()["method"], "notifications/tools/list_changed");
    assert_eq!(listed(&mut client).await.0.len(), 3);
    gateway.end().await;
}

/// A host that accepts no connections does not respond at all: nothing is refused or closed.
#[cfg_attr(not(target_os = "linux"), ignore = "relies on how Linux limits a backlog")]
#[tokio::test]
async fn an_address_that_takes_no_connection_is_absent_until_it_does() {
    let remote = Remote::start("0");
    let mut entry = remote.entry();
    entry["timeouts"] = json!({ "call": "2s", "grace": "20s" });
    let connect_timeout = Duration::from_millis(500);
    let connections = connecting_with(HttpOptions { connect_timeout, ..HttpOptions::default() });
    let gateway = TestGateway::connecting(&json!({ "remote": entry }), connections).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    assert_eq!(listed(&mut client).await.0.len(), 3);
    let mut subscribed = Subscribed::at("/mcp", &mut client).await;
    remote.signal("STOP");
    // The backlog of the system, and more that are dropped.
    let address = format!("127.0.0.1:{}", remote.port);
    let mut crowd = JoinSet::new();
    (0..40).for_each(|_| drop(crowd.spawn(TcpStream::connect(address.clone()))));
    // Those that the backlog has room for.
    crowd.join_next().await.unwrap().unwrap().unwrap();
    let reaching = async {
        loop {
            let (words, retry) = failed(&mut client, "lose").await;
            assert_eq!(retry, json!(true), "{words}");
            // An existing connection may be used first.
            if words.contains("takes no connection in time") {
                break words;
            }
        }
    };
    let words = timeout(LONGEST, reaching).await.expect("it is found out");
    assert!(words.starts_with("MCP server unreachable: server `remote`"), "{words}");
    assert_eq!(subscribed.next().await.unwrap()["method"], "notifications/tools/list_changed");
    let (names, missing) = listed(&mut client).await;
    assert_eq!((names.len(), &missing[0]["server"]), (0, &json!("remote")), "{missing}");
    assert_eq!(missing[0]["retry"], json!(true), "{missing}");
    drop(crowd);
    remote.signal("CONT");
    let back = timeout(LONGEST, subscribed.next()).await.expect("it is tried by itself");
    assert_eq!(back.unwrap()["method"], "notifications/tools/list_changed");
    assert_eq!(listed(&mut client).await.0.len(), 3);
    gateway.end().await;
}

/// A server that was never reached is retried when a list is requested.
#[tokio::test]
async fn an_address_that_was_never_there_may_come() {
    let remote = Remote::start("0");
    let (entry, port) = (remote.entry(), remote.port.clone());
    drop(remote);
    let gateway = TestGateway::to(&json!({ "remote": entry })).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let (names, missing) = listed(&mut client).await;
    assert_eq!((names.len(), &missing[0]["retry"]), (0, &json!(true)), "{missing}");
    let (words, retry) = failed(&mut client, "slow").await;
    assert_eq!(retry, json!(true), "{words}");
    let _remote = Remote::start(&port);
    until("it is tried again", async || (!listed(&mut client).await.0.is_empty()).then_some(()))
        .await;
    gateway.end().await;
}

/// A subscriber gets no error if the server is unavailable at that time.
#[tokio::test]
async fn subscription_is_renewed_when_its_server_returns() {
    let remote = Remote::start("0");
    let (mut entry, port) = (remote.entry(), remote.port.clone());
    let gateway = TestGateway::to(&json!({ "remote": entry })).await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let subscribed = client.ask("resources/subscribe", json!({ "uri": "x://note" })).await;
    assert!(subscribed["result"].is_object(), "{subscribed}");
    drop(remote);
    entry["headers"] = json!({ "X-Changed": "yes" });
    let changed = configuration(&json!({ "remote": entry }));
    gateway.host.reload(changed, BTreeMap::new()).await;
    let connection = gateway.host.servers().get("remote").unwrap();
    let becomes = async |state: State| {
        let mut status = connection.watch();
        let there = timeout(LONGEST, status.wait_for(|status| status.state == state)).await;
        assert!(there.is_ok(), "it is never {state:?}");
    };
    becomes(State::Failed).await;
    let _remote = Remote::start(&port);
    becomes(State::Ready).await;
    let params = Raw::from_value(&json!({ "name": "subscribed", "arguments": {} }));
    let is_subscribed = async || {
        let answer = connection.request("tools/call", Some(params.clone())).await;
        let answer = answer.unwrap().to_string();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        (answer["content"][0]["text"] != "").then_some(())
    };
    until("the server has a subscription", is_subscribed).await;
    gateway.end().await;
}

/// CALL-2: the error about a reachable server is accurate, and names the server.
#[tokio::test]
async fn a_server_that_was_reached_is_not_called_unreachable() {
    let mut entry = echoing("legacy");
    entry["timeouts"]["call"] = json!("300ms");
    let gateway = TestGateway::to(&json!({ "echoing": entry })).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let (words, retry) = failed(&mut client, "hang").await;
    assert_eq!(
        words,
        "The call failed: server `echoing`: it did not answer the call within 300ms. \
         Trying again later may help."
    );
    assert_eq!(retry, json!(true));
    gateway.end().await;
    // A server that never responded is unreachable.
    let mut silent = json!({ "command": "sleep", "args": ["1000"], "restart": "never" });
    silent["timeouts"] = json!({ "connect": "100ms", "handshake": "100ms" });
    let gateway = TestGateway::to(&json!({ "silent": silent })).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let (words, retry) = failed(&mut client, "silent_x").await;
    let expected = "MCP server unreachable: server `silent`: it did not answer in time: \
                    `timeouts.handshake` is 100ms. ";
    assert!(words.starts_with(expected), "{words}");
    assert_eq!(retry, json!(false));
    gateway.end().await;
}

/// All requests for items of a server, except calls.
fn asked_of(server: &str) -> [(&'static str, Value); 4] {
    let completed =
        |reference: Value| json!({ "ref": reference, "argument": { "name": "a", "value": "" } });
    let (name, uri) = (format!("{server}_p"), format!("trunkline://{server}/x://note"));
    [
        ("prompts/get", json!({ "name": name })),
        ("resources/read", json!({ "uri": uri })),
        ("completion/complete", completed(json!({ "type": "ref/prompt", "name": name }))),
        ("completion/complete", completed(json!({ "type": "ref/resource", "uri": uri }))),
    ]
}

/// The items of a server that never started are unknown, but not which server would own them.
#[tokio::test]
async fn items_of_a_server_that_never_started_are_unavailable() {
    let servers = json!({ "down": { "command": "no-such-program" }, "echoing": echoing("legacy") });
    let agents = json!({ "limited": { "tools": ["echoing_*"] } });
    let written = json!({ "mcpServers": servers, "agents": agents });
    let gateway = TestGateway::of(config::parse("test", written.to_string()).config).await;
    for era in [Era::Legacy, Era::Modern] {
        let mut client = TestClient::new(era, gateway.address).await.unwrap();
        for (method, params) in asked_of("down") {
            let error = client.ask(method, params).await["error"].take();
            assert_eq!((&error["code"], &error["data"]["retry"]), (&json!(-32_603), &json!(false)));
            let words = error["message"].as_str().unwrap();
            let expected = "MCP server unreachable: server `down`: the program `no-such-program` was not found";
            assert!(words.starts_with(expected), "{words}");
        }
        for (method, params) in asked_of("none") {
            let error = client.ask(method, params).await["error"].take();
            assert!(error["message"].as_str().unwrap().starts_with("there is no "), "{error}");
        }
    }
    // A caller that cannot see any of its items learns nothing of the server.
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    for (method, params) in asked_of("down") {
        let written = client.write(method, params);
        let headers = borrowed(&written.headers);
        let path = "/mcp/agents/limited";
        let sent = Sent { method: "POST", path, headers: &headers, body: &written.body };
        let (_, messages) = client.channel.messages(&sent).await.unwrap();
        let words = messages[0]["error"]["message"].as_str().unwrap();
        assert!(words.starts_with("there is no "), "{words}");
    }
    gateway.end().await;
}

/// CON-15: a request that names a server waits for it, also by a URI.
#[tokio::test]
async fn a_read_waits_for_the_server_that_its_address_names() {
    for era in [Era::Legacy, Era::Modern] {
        let gate = Gate::new();
        let script = "while [ ! -e \"$0\" ]; do sleep 0.02; done; exec \"$@\"";
        let mut slow = echoing("legacy");
        slow["command"] = "sh".into();
        slow["args"] = json!([
            "-c",
            script,
            gate.path(),
            peers::python(),
            "-I",
            peers::echoing_server(),
            "legacy",
            "watched"
        ]);
        slow["timeouts"]["grace"] = "50ms".into();
        let gateway = TestGateway::to(&json!({ "slow": slow })).await;
        let mut client = TestClient::new(era, gateway.address).await.unwrap();
        let written = client.write("resources/read", json!({ "uri": "trunkline://slow/x://note" }));
        // A response becomes a stream when it takes longer than the grace period.
        let head = passing_time(Duration::from_secs(1), client.begin(&written)).await.unwrap();
        assert!(head.is_stream(), "{head:?}");
        gate.open();
        let read = message(&mut client.channel).await;
        assert_eq!(read["result"]["contents"][0]["text"], "what x://note says", "{read}");
        gateway.end().await;
    }
}

/// The error is about the missing client capability, not about the called method.
#[tokio::test]
async fn missing_client_capability_is_reported_to_the_client() {
    let folder = Folder::new();
    let args = json!(["-I", peers::lively_server(), folder.text(), "modern"]);
    let server = json!({ "command": peers::python(), "args": args, "prefix": "" });
    let gateway = TestGateway::to(&json!({ "lively": server })).await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    client.capabilities = json!({});
    client.open().await.unwrap();
    let (words, retry) = failed(&mut client, "ask").await;
    assert_eq!(
        words,
        "The call failed: server `lively` has a question, and the client of this call does not offer \
         `elicitation/create`. Trying again will not help until the cause is fixed."
    );
    assert_eq!(retry, json!(false));
    gateway.end().await;
}

/// A server whose request is refused decides itself on the result of the call.
#[tokio::test]
async fn error_of_a_server_after_a_refused_request_is_passed_on() {
    let gateway = TestGateway::to(&json!({ "echoing": echoing("legacy") })).await;
    let own = json!({ "code": -32_601, "message": "its own words", "data": { "ticket": 42 } });
    for era in [Era::Legacy, Era::Modern] {
        let mut client = TestClient::new(era, gateway.address).await.unwrap();
        client.capabilities = json!({});
        if era == Era::Legacy {
            client.open().await.unwrap();
        }
        assert_eq!(client.call("ask_or_fail", json!({})).await["error"], own, "{era:?}");
    }
    gateway.end().await;
}

/// A server at its concurrency limit is available, and a retry may succeed.
#[tokio::test]
async fn a_server_that_has_too_much_to_do_is_worth_another_try() {
    let gateway = TestGateway::to(&json!({ "echoing": echoing("legacy") })).await;
    let connection = gateway.host.servers().get("echoing").unwrap();
    connection.connect().await.unwrap();
    let mut crowd = JoinSet::new();
    for number in 0..2048 {
        let connection = Arc::clone(&connection);
        let call = json!({ "name": "hang", "arguments": { "token": "crowd" } });
        crowd.spawn(async move {
            // Each has another principal, so that none exceeds its share.
            let principal = Principal::Token(number.to_string().as_str().into());
            let requester = Requester { principal, ..Requester::default() };
            let ask = OutgoingRequest::new("tools/call", Some(Raw::from_value(&call)));
            connection
                .request_with(OutgoingRequest { requester, ..ask }, &NoopHandler)
                .await
                .is_ok()
        });
    }
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let words = loop {
        let answer = client.call("echo", json!({ "token": "x" })).await;
        if answer["result"]["isError"] == true {
            assert_eq!(answer["result"]["_meta"]["io.trunkline/retry"], true, "{answer}");
            break text(&answer).to_owned();
        }
    };
    assert_eq!(
        words,
        "The call failed: server `echoing`: too many calls wait for it already: one token or client \
         may have half of 2048, and less while others call it. Trying again later may help."
    );
    crowd.shutdown().await;
    until("a call is accepted again", async || {
        let answer = client.call("echo", json!({ "token": "x" })).await;
        (answer["result"]["isError"] != true).then_some(())
    })
    .await;
    gateway.end().await;
}

/// Starts a call that hangs, and returns its final result.
async fn hanging(gateway: &TestGateway) -> tokio::task::JoinHandle<(String, Value)> {
    let address = gateway.address;
    let mut client = TestClient::new(Era::Modern, address).await.unwrap();
    listed(&mut client).await;
    let call = tokio::spawn(async move { failed(&mut client, "hang").await });
    let mut client = TestClient::new(Era::Modern, address).await.unwrap();
    until("the call hangs", async || {
        (text(&client.call("hung", json!({})).await) != "[]").then_some(())
    })
    .await;
    call
}

#[tokio::test]
async fn ended_call_reports_whether_its_tool_is_removed() {
    let gateway = TestGateway::to(&json!({ "echoing": echoing("legacy") })).await;
    let call = hanging(&gateway).await;
    gateway.host.reload(configuration(&json!({})), Default::default()).await;
    let (words, retry) = timeout(LONGEST, call).await.expect("it ends").unwrap();
    assert_eq!(retry, json!(false), "{words}");
    assert_eq!(
        words,
        "The call failed: server `echoing` is not in the configuration any more. \
         Trying again will not help: list the tools again."
    );
    gateway.end().await;

    let gateway = TestGateway::to(&json!({ "echoing": echoing("legacy") })).await;
    let call = hanging(&gateway).await;
    gateway.host.shutdown().await;
    let (words, retry) = timeout(LONGEST, call).await.expect("it ends").unwrap();
    assert_eq!(retry, json!(true), "{words}");
    assert!(words.starts_with("The call failed: server `echoing`: "), "{words}");
    gateway.end().await;
}

/// CALL-8: over HTTP, the modern era has no response to a server request. A dual-era server that
/// has sent one is used in the legacy era, whichever client calls. Regression: every call failed.
#[tokio::test]
async fn a_server_of_both_eras_that_sends_requests_is_answered_in_the_older_one() {
    for (era, capabilities) in
        [(Era::Modern, json!({ "elicitation": {} })), (Era::Legacy, json!({}))]
    {
        let frank = Frank::new("request-both");
        let entry = json!({ "url": frank.url, "prefix": "", "access": "read-write" });
        let gateway = TestGateway::to(&json!({ "frank": entry })).await;
        let mut client = TestClient::new(era, gateway.address).await.unwrap();
        client.capabilities = capabilities;
        if era == Era::Legacy {
            client.open().await.unwrap();
        }
        let (words, retry) = failed(&mut client, "wait").await;
        assert!(words.contains("it sent the request `elicitation/create`"), "{words}");
        assert_eq!(retry, json!(true), "{words}");
        let answer = client.call("wait", json!({})).await;
        let said = match era {
            Era::Modern => go_on(&mut client, "wait", &state_of(&answer)).await,
            Era::Legacy => answer,
        };
        let expected = if era == Era::Modern { "Ada" } else { "does not offer" };
        assert!(text(&said).contains(expected), "{said}");
        gateway.end().await;
    }
}
