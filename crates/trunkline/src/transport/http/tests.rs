//! Streamable HTTP against a scripted server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::{advance, pause, resume, timeout};

use super::HttpTransport;
use crate::error::{Error, ErrorKind};
use crate::message::{Message, Response};
use crate::protocol::ProtocolVersion;
use crate::transport::tests::scripted_server::{
    PATIENCE, Reply, ScriptedServer, Seen, client, notification, request, result, round_trips,
    target,
};
use crate::transport::{InboundEvent, MAX_MESSAGE_BYTES, MessageKind, OutboundMessage};

fn transport(server: &ScriptedServer) -> HttpTransport {
    HttpTransport::new(client(), server.target())
}

async fn next(transport: &mut HttpTransport) -> InboundEvent {
    timeout(PATIENCE, transport.next()).await.expect("something happens")
}

/// Drives the transport until a future completes, and fails if it has an event.
async fn quiet_until(transport: &mut HttpTransport, future: impl Future<Output = ()>) {
    tokio::select! {
        incoming = transport.next() => panic!("{incoming:?}"),
        () = future => {}
    }
}

async fn message(transport: &mut HttpTransport) -> String {
    match next(transport).await {
        InboundEvent::Message(bytes) | InboundEvent::OnRequestStream { line: bytes, .. } => {
            String::from_utf8(bytes.to_vec()).unwrap()
        }
        InboundEvent::Response(response) => text(response),
        other => panic!("{other:?}"),
    }
}

fn text(response: Response) -> String {
    String::from_utf8(Message::Response(response).write().to_vec()).unwrap()
}

async fn lost(transport: &mut HttpTransport) -> (u64, Error) {
    match next(transport).await {
        InboundEvent::RequestFailed { id, error } => (id, error),
        other => panic!("{other:?}"),
    }
}

/// The error of a request with this response.
async fn error_of(reply: Reply) -> Error {
    let server = ScriptedServer::in_turn(vec![reply]).await;
    let mut transport = transport(&server);
    transport.send(request(7, "tools/list"));
    let (id, error) = lost(&mut transport).await;
    assert_eq!(id, 7);
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    assert!(!format!("{error:?}").contains("sesame"), "{error:?}");
    error
}

#[tokio::test]
async fn oversized_headers_are_reported() {
    let headers: Vec<_> = (0..200).map(|number| format!("x-{number}")).collect();
    let many: Vec<_> = headers.iter().map(|name| (&**name, "y")).collect();
    let long = "y".repeat(256 * 1024);
    for reply in [Reply::new(200, &many, "{}"), Reply::new(200, &[("x", &*long)], "{}")] {
        let error = error_of(reply).await;
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(error.to_string().ends_with("more than 100 headers or 256 KiB of them"), "{error}");
    }
    let error = error_of(Reply::raw("SSH-2.0-OpenSSH_9.9\r\n")).await;
    assert!(error.to_string().ends_with("does not speak HTTP"), "{error}");
}

#[tokio::test]
async fn unrequested_content_encoding_is_reported_without_the_body() {
    let packed = b"\x1f\x8b\x08\x00hunter\xff";
    for status in [200, 500] {
        let reply = Reply::bytes(status, &[("content-encoding", "gzip")], packed);
        let error = error_of(reply).await;
        let words = "it is encoded as `gzip`, which was not asked for";
        assert!(error.to_string().ends_with(words), "{error}");
    }
}

/// A transport with a session.
async fn wire_with_session(server: &ScriptedServer) -> HttpTransport {
    let mut transport = transport(server);
    transport.send(request(1, "initialize"));
    assert_eq!(message(&mut transport).await, result(1));
    transport.set_protocol_version(ProtocolVersion::parse("2025-11-25").unwrap());
    transport
}

fn session(id: u64) -> Reply {
    let headers = [("content-type", "application/json"), ("Mcp-Session-Id", "s1")];
    Reply::new(200, &headers, &result(id))
}

#[tokio::test]
async fn a_request_is_posted_and_its_answer_comes_back() {
    let server = ScriptedServer::start(|seen| Reply::json(&result(seen.id()))).await;
    let mut transport = transport(&server);
    for id in 1..=3 {
        transport.send(request(id, "tools/list"));
    }
    let mut answers = [
        message(&mut transport).await,
        message(&mut transport).await,
        message(&mut transport).await,
    ];
    answers.sort();
    assert_eq!(answers, [result(1), result(2), result(3)]);
    let all = server.seen();
    let seen = all.iter().find(|seen| seen.id() == 1).unwrap();
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/mcp?key=sesame"));
    assert_eq!(seen.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("authorization"), Some("Bearer hunter2"));
    assert_eq!(seen.header("mcp-protocol-version"), None);
    assert_eq!(seen.header("mcp-method"), None);
    assert_eq!(seen.body, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
}

#[tokio::test(start_paused = true)]
async fn nothing_happens_while_nothing_goes_on() {
    let server = ScriptedServer::in_turn(Vec::new()).await;
    let mut transport = transport(&server);
    assert!(timeout(PATIENCE, transport.next()).await.is_err());
}

#[tokio::test]
async fn waiting_can_be_given_up_and_taken_up_again() {
    let server = ScriptedServer::start(|seen| Reply::json(&result(seen.id()))).await;
    let mut transport = transport(&server);
    transport.send(request(1, "ping"));
    for _ in 0..20 {
        let _ = timeout(Duration::from_micros(50), std::future::pending::<()>()).await;
        if let Ok(InboundEvent::Response(response)) =
            timeout(Duration::ZERO, transport.next()).await
        {
            assert_eq!(text(response), result(1));
            return;
        }
    }
    assert_eq!(message(&mut transport).await, result(1));
}

#[tokio::test]
async fn nothing_secret_is_printed() {
    let transport =
        HttpTransport::new(client(), target("https://me:hunter3@a.example/hunter4?k=hunter5"));
    let printed = format!("{transport:?}");
    assert!(printed.contains("https://a.example") && !printed.contains("hunter"), "{printed}");
}

#[tokio::test]
async fn notifications_come_before_the_answer_and_the_connection_is_used_again() {
    let told = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
    let events = format!(": hi\n\ndata: {told}\n\nevent: ping\ndata: x\n\ndata: {}\n\n", result(1));
    let replies = vec![Reply::finished_events(&events), Reply::json(&result(2))];
    let server = ScriptedServer::in_turn(replies).await;
    let mut transport = transport(&server);
    transport.send(request(1, "tools/call"));
    assert_eq!(message(&mut transport).await, told);
    assert_eq!(message(&mut transport).await, result(1));
    // The end of the stream arrives.
    quiet_until(&mut transport, round_trips()).await;
    transport.send(request(2, "ping"));
    assert_eq!(message(&mut transport).await, result(2));
    let ports: Vec<_> = server.seen().iter().map(|seen| seen.port).collect();
    assert_eq!(ports[0], ports[1]);
}

#[tokio::test]
async fn the_session_is_repeated_and_ended() {
    let ok = |seen: &Seen| match seen.method.as_str() {
        "POST" if seen.body.contains("initialize\"") => session(seen.id()),
        "POST" if seen.body.contains("\"id\"") => Reply::json(&result(seen.id())),
        _ => Reply::new(202, &[], ""),
    };
    let server = ScriptedServer::start(ok).await;
    let mut transport = wire_with_session(&server).await;
    transport.send(request(2, "tools/list"));
    assert_eq!(message(&mut transport).await, result(2));
    transport.send(request(3, "initialize"));
    assert_eq!(message(&mut transport).await, result(3));
    transport.close().await;
    let seen = server.seen();
    let sessions: Vec<_> = seen.iter().map(|seen| seen.header("mcp-session-id")).collect();
    assert_eq!(sessions, [None, Some("s1"), None, Some("s1")]);
    let versions: Vec<_> = seen.iter().map(|seen| seen.header("mcp-protocol-version")).collect();
    assert_eq!(versions, [None, Some("2025-11-25"), None, Some("2025-11-25")]);
    assert_eq!(seen[3].method, "DELETE");
}

#[tokio::test]
async fn expired_session_is_distinguished_from_an_unknown_path() {
    let gone =
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"No valid session"},"id":null}"#;
    for reply in [Reply::new(404, &[], gone), Reply::new(400, &[], gone), Reply::new(400, &[], "")]
    {
        let server = ScriptedServer::in_turn(vec![session(1), reply]).await;
        let mut transport = wire_with_session(&server).await;
        transport.send(request(2, "tools/list"));
        let (id, error) = lost(&mut transport).await;
        assert_eq!((id, error.kind()), (2, ErrorKind::SessionExpired), "{error}");
    }
    let error = error_of(Reply::new(404, &[("content-type", "text/html")], "<html>")).await;
    assert_eq!(error.kind(), ErrorKind::HttpStatus(404));
    assert!(error.hint().unwrap().contains("path") && !error.to_string().contains("html"));
}

#[tokio::test]
async fn an_error_about_the_request_is_an_answer_even_with_a_session() {
    let answer = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no"}}"#;
    let server = ScriptedServer::in_turn(vec![session(1), Reply::new(400, &[], answer)]).await;
    let mut transport = wire_with_session(&server).await;
    transport.send(request(2, "tools/call"));
    assert_eq!(message(&mut transport).await, answer);
}

#[tokio::test]
async fn modern_requests_repeat_method_and_name_in_headers() {
    let server = ScriptedServer::start(|seen| match seen.body.contains("\"id\"") {
        true => Reply::new(200, &[("mcp-session-id", "s")], &result(seen.id())),
        false => Reply::new(202, &[], ""),
    })
    .await;
    let mut transport = transport(&server);
    transport.set_protocol_version(ProtocolVersion::parse("2026-07-28").unwrap());
    let mut call = request(1, "tools/call");
    let MessageKind::Request { name, parameters, .. } = &mut call.purpose else { unreachable!() };
    *name = Some("grüße".into());
    parameters.push(("Region".into(), "eu".into()));
    transport.send(call);
    assert_eq!(message(&mut transport).await, result(1));
    transport.send(notification("notifications/cancelled"));
    quiet_until(&mut transport, server.saw(2)).await;
    let seen = server.seen();
    assert_eq!(seen[0].header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(seen[0].header("mcp-method"), Some("tools/call"));
    assert_eq!(seen[0].header("mcp-name"), Some("=?base64?Z3LDvMOfZQ==?="));
    assert_eq!(seen[0].header("mcp-param-region"), Some("eu"));
    assert_eq!(seen[1].header("mcp-method"), Some("notifications/cancelled"));
    transport.send(request(2, "initialize"));
    assert_eq!(message(&mut transport).await, result(2));
    assert_eq!(server.seen()[2].header("mcp-method"), None);
    assert_eq!(server.seen()[2].header("mcp-protocol-version"), None);
}

#[tokio::test]
async fn requests_do_not_overtake_the_news_that_all_is_initialized() {
    let accepts = Arc::new(Notify::new());
    let accepted = Arc::clone(&accepts);
    let server = ScriptedServer::start(move |seen| match seen.body.contains("notifications") {
        true => Reply::new(202, &[], "").after(&accepted),
        false => Reply::json(&result(seen.id())),
    })
    .await;
    let mut transport = transport(&server);
    transport.send(notification("notifications/initialized"));
    transport.send(request(1, "tools/list"));
    transport.send(request(2, "prompts/list"));
    transport.cancel(2);
    quiet_until(&mut transport, server.saw(1)).await;
    quiet_until(&mut transport, round_trips()).await;
    assert_eq!(server.seen().len(), 1, "only the notification is on its way");
    accepts.notify_one();
    assert_eq!(message(&mut transport).await, result(1));
    assert_eq!(server.seen().len(), 2, "what was cancelled is not sent");
}

#[tokio::test]
async fn a_response_of_ours_is_posted() {
    let server = ScriptedServer::start(|seen| match seen.body == result(9) {
        true => Reply::new(202, &[], ""),
        false => Reply::json(&result(seen.id())),
    })
    .await;
    let mut transport = transport(&server);
    transport.send(OutboundMessage::new(result(9).into(), MessageKind::Response));
    quiet_until(&mut transport, server.saw(1)).await;
    assert_eq!(server.seen()[0].body, result(9));
    // The next event is that of the next request: none came of the response.
    transport.send(request(2, "ping"));
    assert_eq!(message(&mut transport).await, result(2));
}

#[tokio::test]
async fn redirects_are_followed_within_the_same_server() {
    let server = ScriptedServer::start(|seen| match seen.path.as_str() {
        "/mcp?key=sesame" => Reply::new(307, &[("location", "/mcp/")], ""),
        "/mcp/" => Reply::new(308, &[("location", "v2")], ""),
        _ => Reply::json(&result(seen.id())),
    })
    .await;
    let mut transport = transport(&server);
    transport.send(request(1, "ping"));
    assert_eq!(message(&mut transport).await, result(1));
    let last = server.seen().pop().unwrap();
    assert_eq!((last.method.as_str(), last.path.as_str()), ("POST", "/mcp/v2"));
    assert_eq!(last.header("authorization"), Some("Bearer hunter2"));
}

#[tokio::test]
async fn redirects_to_another_server_and_without_end_are_not_followed() {
    let other = ScriptedServer::in_turn(Vec::new()).await;
    let away = format!("{}/secret?token=abc", other.origin);
    let error = error_of(Reply::new(307, &[("location", &away)], "")).await;
    assert!(error.to_string().contains(&other.origin), "{error}");
    assert!(!error.to_string().contains("abc"), "{error}");
    assert!(other.seen().is_empty());

    let looping = ScriptedServer::start(|_| Reply::new(307, &[("location", "/mcp")], "")).await;
    let mut transport = transport(&looping);
    transport.send(request(1, "ping"));
    let (_, error) = lost(&mut transport).await;
    assert!(error.to_string().contains("again and again"), "{error}");
    assert_eq!(looping.seen().len(), 6);
}

#[tokio::test]
async fn unauthorized_error_repeats_no_credentials() {
    let challenge = r#"Bearer realm="hunter2", error="invalid_token""#;
    let headers = [("www-authenticate", challenge)];
    let body = r#"{"jsonrpc":"2.0","error":{"code":1,"message":"bad token hunter2"},"id":null}"#;
    let error = error_of(Reply::new(401, &headers, body)).await;
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert!(error.to_string().ends_with("bad token ***"), "{error}");
    assert!(error.hint().unwrap().contains("`Bearer`"), "{error:?}");
    assert_eq!(error_of(Reply::new(403, &[], "")).await.kind(), ErrorKind::Unauthorized);
}

#[tokio::test]
async fn refusals_include_the_message_of_the_server() {
    let error = error_of(Reply::new(429, &[("retry-after", "30")], "slow\r\n \u{1b}[1mdown")).await;
    assert_eq!(error.kind(), ErrorKind::HttpStatus(429));
    assert!(error.to_string().ends_with("Too Many Requests: try again in 30 s: slow [1mdown"));
    let error = error_of(Reply::new(405, &[], "")).await;
    assert!(error.hint().unwrap().contains("sse"), "{error:?}");
    let error = error_of(Reply::new(500, &[], &"x".repeat(1000))).await;
    assert_eq!(error.kind(), ErrorKind::HttpStatus(500));
    assert!(error.to_string().chars().count() < 300 && error.to_string().ends_with("xx…"));
}

#[tokio::test]
async fn a_json_rpc_error_under_any_status_is_an_answer_to_the_request() {
    for status in [200, 400, 404, 500] {
        let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"data":{"supported":[]}}}"#;
        let server = ScriptedServer::in_turn(vec![Reply::new(status, &[], body)]).await;
        let mut transport = transport(&server);
        transport.send(request(7, "server/discover"));
        assert_eq!(message(&mut transport).await, body.replace("null", "7"), "{status}");
    }
}

#[tokio::test]
async fn an_answer_that_is_none_fails_its_request() {
    for reply in [
        Reply::new(202, &[], ""),
        Reply::new(200, &[("content-type", "text/html")], "<html>log in</html>"),
        Reply::json("{\"jsonrpc\":"),
        Reply::json(&result(8)),
    ] {
        let error = error_of(reply).await;
        assert_eq!(error.kind(), ErrorKind::ProtocolViolation, "{error}");
    }
}

#[tokio::test]
async fn oversized_response_fails_its_request_only() {
    let length = MAX_MESSAGE_BYTES + 1;
    let announced = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
    assert_eq!(error_of(Reply::raw(announced)).await.kind(), ErrorKind::TooLarge);
    let body = format!("HTTP/1.1 200 OK\r\n\r\n{}", " ".repeat(length));
    assert_eq!(error_of(Reply::raw(body)).await.kind(), ErrorKind::TooLarge);
    let event = format!("data: {}", " ".repeat(length));
    assert_eq!(error_of(Reply::events(&event)).await.kind(), ErrorKind::TooLarge);
}

#[tokio::test]
async fn a_connection_that_breaks_fails_its_request() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{";
    for reply in [
        Reply::raw(half),
        Reply::raw(half).then_reset(),
        Reply::raw(""),
        Reply::events("data: {}\n"),
        Reply::events("").then_reset(),
    ] {
        assert_eq!(error_of(reply).await.kind(), ErrorKind::Broken);
    }
    let error = error_of(Reply::raw("SSH-2.0-OpenSSH_9.9\r\n")).await;
    assert_eq!(error.kind(), ErrorKind::ProtocolViolation, "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let server = ScriptedServer::in_turn(Vec::new()).await;
    let origin = server.origin.clone();
    drop(server);
    tokio::task::yield_now().await;
    let mut transport =
        HttpTransport::new(client(), target(&format!("{origin}/secret-path?key=sesame")));
    transport.send(request(1, "ping"));
    let (_, error) = lost(&mut transport).await;
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(error.to_string(), format!("{origin} refuses connections"));
    let place = origin.strip_prefix("http://").unwrap();
    assert_eq!(error.hint(), Some(format!("is the server running at {place}?").as_str()));
}

#[tokio::test]
async fn a_host_that_does_not_exist_is_named() {
    let mut transport = HttpTransport::new(client(), target("http://nowhere.invalid/"));
    transport.send(request(1, "ping"));
    let (_, error) = lost(&mut transport).await;
    assert_eq!(error.to_string(), "the host `nowhere.invalid` is not known");
}

#[tokio::test]
async fn plaintext_server_is_distinguished_from_an_unreachable_one() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad\r\n\r\n").await;
        std::future::pending::<()>().await;
    });
    let mut transport = HttpTransport::new(client(), target(&plain));
    transport.send(request(1, "ping"));
    let (_, error) = lost(&mut transport).await;
    assert_eq!(error.kind(), ErrorKind::Tls, "{error}");
    assert!(error.to_string().contains("does not speak TLS"), "{error}");
}

#[tokio::test]
async fn a_stream_that_broke_is_resumed_where_it_broke() {
    let told = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;
    let server = ScriptedServer::in_turn(vec![
        session(1),
        Reply::events("id: e1\nretry: 100\ndata:\n\n"),
        Reply::new(503, &[], ""),
        Reply::events(&format!("id: e2\ndata: {told}\n\nid: e3\ndata: half")),
        Reply::events(&format!("id: e3\ndata: {}\n\n", result(2))),
    ])
    .await;
    let mut transport = wire_with_session(&server).await;
    let start = Instant::now();
    transport.send(request(2, "tools/call"));
    assert_eq!(message(&mut transport).await, told);
    assert_eq!(message(&mut transport).await, result(2));
    assert!(start.elapsed() >= Duration::from_millis(400), "{:?}", start.elapsed());
    let seen = &server.seen()[2..];
    let methods: Vec<_> = seen.iter().map(|seen| seen.method.as_str()).collect();
    assert_eq!(methods, ["GET", "GET", "GET"]);
    let places: Vec<_> = seen.iter().map(|seen| seen.header("last-event-id").unwrap()).collect();
    assert_eq!(places, ["e1", "e1", "e2"]);
    assert!(seen.iter().all(|seen| seen.header("mcp-session-id") == Some("s1")));
    assert!(seen.iter().all(|seen| seen.header("accept") == Some("text/event-stream")));
}

#[tokio::test]
async fn resuming_ends_when_it_leads_nowhere() {
    let server = ScriptedServer::start(|_| Reply::events("id: e1\nretry: 0\ndata:\n\n")).await;
    let mut transport = transport(&server);
    transport.send(request(1, "tools/call"));
    let (_, error) = lost(&mut transport).await;
    assert_eq!(error.kind(), ErrorKind::Broken);
    assert_eq!(server.seen().len(), 6);
}

#[tokio::test]
async fn modern_or_refused_streams_are_not_resumed() {
    let primed = || Reply::events("id: e1\nretry: 0\ndata:\n\n");
    let server = ScriptedServer::in_turn(vec![primed(), primed(), Reply::new(405, &[], "")]).await;
    let mut transport = transport(&server);
    transport.set_protocol_version(ProtocolVersion::parse("2026-07-28").unwrap());
    transport.send(request(1, "tools/call"));
    assert_eq!(lost(&mut transport).await.1.kind(), ErrorKind::Broken);
    transport.set_protocol_version(ProtocolVersion::parse("2025-06-18").unwrap());
    transport.send(request(2, "tools/call"));
    assert_eq!(lost(&mut transport).await.1.kind(), ErrorKind::HttpStatus(405));
}

#[tokio::test]
async fn a_request_that_is_given_up_closes_its_connection() {
    let hanging = [Reply::events(": hi\n\n").then_hang(), Reply::raw("").then_hang()];
    for reply in hanging {
        let mut server = ScriptedServer::in_turn(vec![reply]).await;
        let mut transport = transport(&server);
        transport.send(request(1, "tools/call"));
        quiet_until(&mut transport, server.saw(1)).await;
        quiet_until(&mut transport, round_trips()).await;
        transport.cancel(1);
        tokio::select! {
            () = server.client_left() => {}
            incoming = transport.next() => panic!("{incoming:?}"),
        }
    }
}

#[tokio::test]
async fn a_wire_that_is_dropped_closes_its_connections() {
    let mut server = ScriptedServer::in_turn(vec![Reply::events("").then_hang()]).await;
    let mut transport = transport(&server);
    transport.send(request(1, "tools/call"));
    quiet_until(&mut transport, server.saw(1)).await;
    quiet_until(&mut transport, round_trips()).await;
    drop(transport);
    server.client_left().await;
}

#[tokio::test]
async fn a_server_can_speak_of_its_own_accord_and_again_after_its_stream_broke() {
    let told = |number: u8| format!(r#"{{"jsonrpc":"2.0","method":"notifications/n{number}"}}"#);
    let mut server = ScriptedServer::in_turn(vec![
        session(1),
        Reply::events(&format!("id: e1\nretry: 1\ndata: {}\n\n", told(1))),
        Reply::new(409, &[], ""),
        Reply::events(&format!("data: {}\n\n", told(2))).then_hang(),
        Reply::new(200, &[], ""),
    ])
    .await;
    let mut transport = wire_with_session(&server).await;
    transport.open_get_stream();
    assert_eq!(message(&mut transport).await, told(1));
    assert_eq!(message(&mut transport).await, told(2));
    transport.close().await;
    server.client_left().await;
    let seen = server.seen();
    let places: Vec<_> = seen.iter().map(|seen| seen.header("last-event-id")).collect();
    assert_eq!(places, [None, None, Some("e1"), Some("e1"), None]);
    assert_eq!(seen[1].header("accept"), Some("text/event-stream"));
    assert_eq!(seen[4].method, "DELETE");
}

#[tokio::test]
async fn a_server_without_a_stream_of_its_own_is_left_alone() {
    for status in [405, 404, 400, 501] {
        let server = ScriptedServer::in_turn(vec![Reply::new(status, &[], "")]).await;
        let mut transport = transport(&server);
        transport.open_get_stream();
        quiet_until(&mut transport, server.saw(1)).await;
        let retries = async {
            round_trips().await;
            // Longer than any delay before a retry.
            pause();
            advance(Duration::from_secs(60)).await;
            resume();
            round_trips().await;
        };
        quiet_until(&mut transport, retries).await;
        assert_eq!(server.seen().len(), 1, "{status}");
    }
}
