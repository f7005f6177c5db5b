//! The principal decides access to sessions and parked calls, and servers learn nothing of tokens.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use trunkline::connection::{State, Status};
use trunkline_gateway::{GatewayOptions, Limits};
use trunkline_testkit::peers;

use crate::support::client::{Era, TestClient, Written, text};
use crate::support::echoing_server::{Gate, echoing};
use crate::support::gateway::{Folder, TestGateway};
use crate::support::http_connection::{Channel, Sent};
use crate::support::http_server::Frank;
use crate::support::server_requests::{go_on, go_on_with, message, state_of};
use crate::support::tokens::{ANN, BOB, gateway};
use crate::support::wait::{LONGEST, pass_time, passing_time, until};

#[tokio::test]
async fn session_belongs_to_its_principal() {
    let gateway = gateway(&json!({ "echoing": echoing("legacy") })).await;
    let mut ann = TestClient::with(Era::Legacy, gateway.address, &[ANN]).await.unwrap();
    let mut bob = TestClient::with(Era::Legacy, gateway.address, &[BOB]).await.unwrap();
    bob.session = ann.session.clone();
    for method in ["GET", "DELETE"] {
        assert_eq!(bob.request(method, &[]).await.0.status, 404, "{method}");
    }
    let written = bob.write("tools/list", json!({}));
    assert_eq!(bob.begin(&written).await.unwrap().status, 404);
    // A response from another principal does not match any server request.
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    let mut bob = TestClient::with(Era::Legacy, gateway.address, &[BOB]).await.unwrap();
    bob.session = ann.session.clone();
    let told = tokio::spawn(async move { bob.tell(&answer).await });
    assert!(told.await.is_err());
    assert_eq!(text(&ann.call("echo", json!({ "token": "still mine" })).await), "still mine");
    gateway.end().await;
}

#[tokio::test]
async fn a_parked_call_goes_on_once_for_its_caller_alone() {
    let gateway = gateway(&json!({ "echoing": echoing("legacy") })).await;
    let mut ann = TestClient::with(Era::Modern, gateway.address, &[ANN]).await.unwrap();
    let mut bob = TestClient::with(Era::Modern, gateway.address, &[BOB]).await.unwrap();
    let state = state_of(&ann.call("ask", json!({})).await);
    let refused = |answer: &Value| answer["error"]["code"] == -32_602;
    for place in [state.len() / 2, state.len() - 1] {
        let mut tampered = state.clone().into_bytes();
        tampered[place] = if tampered[place] == b'A' { b'B' } else { b'A' };
        let tampered = String::from_utf8(tampered).unwrap();
        assert!(refused(&go_on(&mut ann, "ask", &tampered).await), "{tampered}");
    }
    for invented in ["trunkline.", "trunkline.AAAA", "trunkline.1"] {
        assert!(refused(&go_on(&mut ann, "ask", invented).await), "{invented}");
    }
    assert!(refused(&go_on(&mut bob, "ask", &state).await));
    assert!(refused(&go_on(&mut ann, "echo", &state).await));
    // None of these has consumed the state.
    assert_eq!(text(&go_on(&mut ann, "ask", &state).await), "Ada");
    assert!(refused(&go_on(&mut ann, "ask", &state).await));
    gateway.end().await;
}

/// A parked call continues only with the same arguments, in any order.
#[tokio::test]
async fn a_parked_call_goes_on_with_the_arguments_it_was_made_with() {
    let gateway = gateway(&json!({ "echoing": echoing("legacy") })).await;
    let mut ann = TestClient::with(Era::Modern, gateway.address, &[ANN]).await.unwrap();
    let state = state_of(&ann.call("ask", json!({ "wait": 1, "of": { "x": 1, "y": [2] } })).await);
    let others =
        [json!({}), json!({ "wait": 1 }), json!({ "wait": 1, "of": { "x": 1, "y": [3] } })];
    for other in others {
        let refused = go_on_with(&mut ann, ("ask", other), &state).await;
        assert_eq!(
            refused["error"]["message"],
            "the request state is not one of this call; make the call again without it"
        );
    }
    let written = ann.write(
        "tools/call",
        json!({ "name": "ask", "requestState": state,
        "inputResponses": { "question-1": { "action": "decline" } }, "arguments": "HERE" }),
    );
    let same = r#"{"of": {"y":[2], "x":1}, "wait":1}"#;
    let written = Written { body: written.body.replace("\"HERE\"", same), ..written };
    let (_, messages) = ann.exchange(&written).await.unwrap();
    assert_eq!(text(&messages[0]), "None");
    gateway.end().await;
}

/// A late retry gets an error that suggests a new call; the parked call is cancelled.
#[tokio::test]
async fn a_parked_call_is_given_up_when_its_client_stays_away() {
    for share in ["all", "per-client"] {
        let limits = Limits { answer_wait: Duration::from_secs(2), ..Limits::default() };
        let options = GatewayOptions { limits, ..GatewayOptions::default() };
        let mut server = echoing("legacy");
        server["share"] = share.into();
        let gateway = TestGateway::with(&json!({ "echoing": server }), options).await;
        let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
        let state = state_of(&client.call("ask", json!({})).await);
        assert_eq!(text(&go_on(&mut client, "ask", &state).await), "Ada", "in time");
        // Until then, a server request may still be about the call before.
        pass_time(Duration::from_millis(3200)).await;
        let state = state_of(&client.call("ask", json!({})).await);
        pass_time(Duration::from_millis(2100)).await;
        let refused = go_on(&mut client, "ask", &state).await;
        assert_eq!(refused["error"]["code"], -32_602, "{refused}");
        assert_eq!(
            refused["error"]["message"],
            "the request state is too old: no answer came within 2s, and its call was given up; \
             make the call again without it"
        );
        // The same when only the sealed state identifies the call.
        pass_time(Duration::from_millis(2500)).await;
        assert_eq!(go_on(&mut client, "ask", &state).await["error"], refused["error"]);
        let next = client.call("ask", json!({})).await;
        match share {
            // The server may still work on the cancelled call, which may belong to any client.
            "all" => assert!(text(&next).contains("given up without an answer"), "{next}"),
            // With one call in flight, the recipient of a server request is unambiguous.
            _ => assert_eq!(text(&go_on(&mut client, "ask", &state_of(&next)).await), "Ada"),
        }
        gateway.end().await;
    }
}

#[tokio::test]
async fn answers_that_do_not_fit_leave_the_question_open() {
    let gateway = gateway(&json!({ "echoing": echoing("legacy") })).await;
    let mut ann = TestClient::with(Era::Modern, gateway.address, &[ANN]).await.unwrap();
    let first = state_of(&ann.call("ask", json!({})).await);
    let call = json!({ "name": "ask", "arguments": {}, "requestState": first,
        "inputResponses": { "question-7": { "action": "accept" } } });
    let second = state_of(&ann.ask("tools/call", call).await);
    assert_eq!(go_on(&mut ann, "ask", &first).await["error"]["code"], -32_602);
    assert_eq!(text(&go_on(&mut ann, "ask", &second).await), "Ada");
    gateway.end().await;
}

/// Server requests over stdio are unattributed: with a single call they are unambiguous.
#[tokio::test]
async fn a_question_that_may_be_about_anybodys_call_is_refused_with_the_reason() {
    for (share, is_refused) in [("all", true), ("per-client", false)] {
        let mut server = echoing("legacy");
        if share == "per-client" {
            server["share"] = share.into();
        }
        let gateway = gateway(&json!({ "echoing": server })).await;
        let mut bob = TestClient::with(Era::Legacy, gateway.address, &[BOB]).await.unwrap();
        let call = json!({ "name": "hang", "arguments": { "token": "bobs" } });
        let written = bob.write("tools/call", call);
        assert!(bob.begin(&written).await.unwrap().is_stream());
        let mut ann = TestClient::with(Era::Modern, gateway.address, &[ANN]).await.unwrap();
        let answer = ann.call("ask", json!({})).await;
        if is_refused {
            assert!(text(&answer).contains("per-client"), "{answer}");
        } else {
            let state = state_of(&answer);
            assert_eq!(text(&go_on(&mut ann, "ask", &state).await), "Ada");
        }
        gateway.end().await;
    }
}

/// A second server request is ambiguous, so it is shown to no client.
#[tokio::test]
async fn parked_call_blocks_server_requests_to_other_clients_with_a_reason() {
    let gateway = gateway(&json!({ "echoing": echoing("legacy") })).await;
    let mut ann = TestClient::with(Era::Modern, gateway.address, &[ANN]).await.unwrap();
    let mut bob = TestClient::with(Era::Modern, gateway.address, &[BOB]).await.unwrap();
    let state = state_of(&ann.call("ask", json!({})).await);
    let refused = bob.call("ask", json!({})).await;
    for reason in ["for its client to answer another question", "per-client"] {
        assert!(text(&refused).contains(reason), "{refused}");
    }
    assert_eq!(text(&go_on(&mut ann, "ask", &state).await), "Ada");
    // Until then, a server request may still concern the other call.
    pass_time(Duration::from_millis(3200)).await;
    let state = state_of(&bob.call("ask", json!({})).await);
    assert_eq!(text(&go_on(&mut bob, "ask", &state).await), "Ada");
    gateway.end().await;
}

#[tokio::test]
async fn servers_never_see_the_token_of_a_client() {
    let frank = Frank::new("say-headers");
    let plain = json!({ "url": frank.url, "access": "read-write" });
    let mut known = plain.clone();
    known["headers"] = json!({ "Authorization": "Bearer of-the-host" });
    let gateway = gateway(&json!({ "plain": plain, "known": known })).await;
    for era in [Era::Legacy, Era::Modern] {
        let more = [ANN, ("Cookie", "cookie-of-ann"), ("X-Other", "header-of-ann")];
        let mut ann = TestClient::with(era, gateway.address, &more).await.unwrap();
        for (tool, has_own) in [("plain_wait", false), ("known_wait", true)] {
            let answer = ann.call(tool, json!({})).await;
            let seen = text(&answer).to_ascii_lowercase();
            assert!(seen.contains("\"host\""), "{seen}");
            assert!(!seen.contains("of-ann"), "{era:?} {tool}: {seen}");
            assert_eq!(seen.contains("bearer of-the-host"), has_own, "{seen}");
            if let Some(session) = &ann.session {
                assert!(!seen.contains(&session.to_ascii_lowercase()), "{seen}");
            }
        }
    }
    gateway.end().await;
}

#[tokio::test]
async fn one_session_too_many_ends_the_one_unused_for_longest() {
    let limit = Limits::default().sessions;
    let gateway = TestGateway::to(&json!({ "echoing": echoing("legacy") })).await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let first = client.session.clone();
    for _ in 1..limit {
        client.initialize().await.unwrap();
    }
    let last = client.session.clone();
    client.session = first.clone();
    let (head, _) = client.request("GET", &[("Accept", "application/json")]).await;
    assert_eq!(head.status, 406, "the first is still there");
    // The session that was opened last is not the one that is evicted.
    client.open().await.unwrap();
    for session in [first, last, client.session.clone()] {
        client.session = session;
        assert_eq!(text(&client.call("echo", json!({ "token": "in" })).await), "in");
    }
    gateway.end().await;
}

/// Recent activity of a session counts as much as a recent request.
#[tokio::test]
async fn a_session_is_in_use_until_its_stream_breaks_and_its_request_ends() {
    for reads in [true, false] {
        let limits = Limits { sessions: 2, ..Limits::default() };
        let options = GatewayOptions { limits, ..GatewayOptions::default() };
        let gateway = TestGateway::with(&json!({ "echoing": echoing("legacy") }), options).await;
        let mut first = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
        let gate = Gate::new();
        let arguments = json!({ "token": "late", "wait": gate.path() });
        let written = first.write("tools/call", json!({ "name": "echo", "arguments": arguments }));
        let stream = match reads {
            true => Some(first.request("GET", &[]).await.1),
            false => {
                assert!(first.begin(&written).await.unwrap().is_stream());
                None
            }
        };
        let mut second = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
        match stream {
            Some(stream) => stream.leave().await,
            None => {
                gate.open();
                while first.channel.event().await.unwrap().is_some() {}
            }
        }
        let _third = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
        assert!(first.ask("ping", json!({})).await["result"].is_object(), "reads: {reads}");
        let written = second.write("ping", json!({}));
        assert_eq!(second.begin(&written).await.unwrap().status, 404, "reads: {reads}");
        gateway.end().await;
    }
}

#[tokio::test]
async fn sessions_in_use_are_not_ended_for_others() {
    let limits = Limits { sessions: 2, ..Limits::default() };
    let options = GatewayOptions { limits, ..GatewayOptions::default() };
    let gateway = TestGateway::with(&json!({ "echoing": echoing("legacy") }), options).await;
    let mut reading = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let stream = reading.request("GET", &[]).await;
    assert!(stream.0.is_stream());
    let mut busy = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let call = json!({ "name": "hang", "arguments": { "token": "busy" } });
    let written = busy.write("tools/call", call);
    assert!(busy.begin(&written).await.unwrap().is_stream());
    let mut late = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    late.era = Era::Legacy;
    let written = late.write("initialize", json!({}));
    assert_eq!(late.begin(&written).await.unwrap().status, 503);
    drop(stream);
    assert_eq!(text(&reading.call("echo", json!({ "token": "in" })).await), "in");
    let opened = until("a session is opened", async || {
        let mut late = TestClient::new(Era::Modern, gateway.address).await.unwrap();
        late.era = Era::Legacy;
        let written = late.write("initialize", json!({}));
        let status = late.begin(&written).await.unwrap().status;
        (status != 503).then_some(status)
    });
    assert_eq!(opened.await, 200);
    let written = reading.write("tools/list", json!({}));
    assert_eq!(reading.begin(&written).await.unwrap().status, 404);
    gateway.end().await;
}

/// CON-15: a server that hangs does not delay opening, and delays listing once, not for each
/// client.
#[tokio::test]
async fn a_server_that_hangs_at_its_start_is_waited_for_once() {
    let mut slow = json!({ "command": "sleep", "args": ["1000"] });
    // Any wait for it is longer than this test may take, unless the time is passed.
    slow["timeouts"] = json!({ "grace": "8m", "handshake": "20m", "shutdown": "100ms" });
    let gateway = TestGateway::with(&json!({ "slow": slow }), GatewayOptions::default()).await;
    let mut clients = Vec::new();
    for era in [Era::Legacy, Era::Legacy, Era::Modern] {
        let opened = timeout(LONGEST, TestClient::new(era, gateway.address)).await;
        clients.push(opened.expect("opening does not wait").unwrap());
    }
    let written = clients[0].write("tools/list", json!({}));
    let listing = clients[0].begin(&written).await.unwrap();
    assert!(listing.is_stream(), "the first list waits: {listing:?}");
    pass_time(Duration::from_secs(8 * 60)).await;
    let first = timeout(LONGEST, message(&mut clients[0].channel)).await.expect("a list");
    assert!(first["result"].is_object(), "{first}");
    for client in &mut clients {
        client.reconnect().await;
    }
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        for client in &mut clients {
            let listed = timeout(LONGEST, client.ask(method, json!({}))).await;
            let listed = listed.expect("no list waits again");
            assert!(listed["result"].is_object(), "{listed}");
        }
    }
    gateway.end().await;
}

/// CON-15: a server that is restarted repeatedly is not waited for each time.
#[tokio::test]
async fn a_server_that_hangs_at_every_start_is_waited_for_once() {
    const LISTS: u32 = 12;
    let mut slow = json!({ "command": "sleep", "args": ["1000"] });
    // Any wait for it is longer than this test may take, unless the time is passed.
    slow["timeouts"] = json!({ "grace": "8m", "handshake": "4m", "shutdown": "100ms" });
    slow["restart"] = json!({ "policy": "on-failure", "delay": "10ms", "maxDelay": "10ms" });
    let gateway = TestGateway::with(&json!({ "slow": slow }), GatewayOptions::default()).await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    // Its grace period has ended, and its third start has begun.
    let mut status = gateway.host.servers().get("slow").unwrap().watch();
    let is_third = |it: &Status| it.restarts == 2 && it.state == State::Starting;
    passing_time(Duration::from_secs(60), status.wait_for(is_third)).await.unwrap();
    client.reconnect().await;
    // Regression: each list waited for that start, because every start counted.
    for _ in 0..LISTS {
        let listed = timeout(LONGEST, client.ask("tools/list", json!({}))).await;
        let listed = listed.expect("no list waits");
        assert!(listed.to_string().contains("slow"), "it says who is missing: {listed}");
    }
    gateway.end().await;
}

/// A session of a rejected client could never be used.
#[tokio::test]
async fn rejected_initialize_leaves_no_session() {
    let limits = Limits { sessions: 1, ..Limits::default() };
    let gateway =
        TestGateway::with(&json!({}), GatewayOptions { limits, ..GatewayOptions::default() }).await;
    let mut staying = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let long = json!({ "clientInfo": { "name": "x".repeat(100_000), "version": "1" } });
    let body = crate::support::demo_server::legacy("initialize", &long);
    for (path, status) in [("/mcp/agents/missing", 404), ("/mcp", 400)] {
        let asks = Sent { method: "POST", path, headers: &[], body: &body };
        let mut refused = Channel::to(gateway.address).await.unwrap();
        assert_eq!(refused.send(&asks).await.unwrap().status, status);
    }
    // The limit is one session, which either of them would have taken.
    assert!(staying.ask("ping", json!({})).await["result"].is_object());
    gateway.end().await;
}

/// How a session ends.
#[derive(Clone, Copy, Debug)]
enum End {
    ByItsClient,
    ForAnother,
}

/// A dedicated process is of no use without its client.
#[tokio::test]
async fn servers_of_a_session_end_with_it() {
    for end in [End::ByItsClient, End::ForAnother] {
        let folder = Folder::new();
        folder.write("polite", "");
        let server = json!({
            "command": peers::python(),
            "args": ["-I", peers::lively_server(), folder.path(), "legacy"],
            "share": "per-client",
            "access": "read-write",
            "timeouts": { "shutdown": "1s" },
        });
        let limits = Limits { sessions: 1, ..Limits::default() };
        let options = GatewayOptions { limits, ..GatewayOptions::default() };
        let gateway = TestGateway::with(&json!({ "own": server }), options).await;
        let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
        // One process lists the items, the other is dedicated to the client.
        assert_eq!(text(&client.call("own_started", json!({})).await), "2");
        match end {
            End::ByItsClient => assert_eq!(client.request("DELETE", &[]).await.0.status, 204),
            End::ForAnother => client.open().await.unwrap(),
        }
        let saved = folder.path().join("saved");
        until(&format!("its server ends {end:?}"), async || saved.exists().then_some(())).await;
        gateway.end().await;
    }
}
