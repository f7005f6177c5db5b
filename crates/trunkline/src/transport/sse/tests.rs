//! HTTP+SSE against a scripted server.

use tokio::time::timeout;

use super::SseTransport;
use crate::error::{Error, ErrorKind};
use crate::protocol::ProtocolVersion;
use crate::transport::InboundEvent;
use crate::transport::tests::scripted_server::{
    PATIENCE, Reply, ScriptedServer, client, notification, request, result, round_trips,
};

const ENDPOINT: &str = "event: endpoint\ndata: /messages?session=s1\n\n";

async fn open(server: &ScriptedServer) -> Result<SseTransport, Error> {
    timeout(PATIENCE, SseTransport::open(client(), server.target())).await.expect("an end")
}

async fn next(transport: &mut SseTransport) -> InboundEvent {
    timeout(PATIENCE, transport.next()).await.expect("something happens")
}

/// Drives the transport until a future completes, and fails if it has an event.
async fn quiet_until(transport: &mut SseTransport, future: impl Future<Output = ()>) {
    tokio::select! {
        incoming = transport.next() => panic!("{incoming:?}"),
        () = future => {}
    }
}

/// A server whose stream is `stream`, and which responds to every POST with `status`.
async fn server(stream: String, status: u16) -> ScriptedServer {
    ScriptedServer::start(move |seen| match seen.method.as_str() {
        "GET" => Reply::events(&stream).then_hang(),
        _ => Reply::new(status, &[], "Accepted"),
    })
    .await
}

#[tokio::test]
async fn messages_are_posted_to_the_endpoint_and_come_on_the_stream() {
    let stream = format!("{ENDPOINT}event: message\ndata: {}\n\n", result(1));
    let mut server = server(stream, 202).await;
    let mut transport = open(&server).await.unwrap();
    transport.set_protocol_version(ProtocolVersion::parse("2024-11-05").unwrap());
    transport.send(notification("notifications/initialized"));
    transport.send(request(1, "tools/list"));
    let InboundEvent::Message(answer) = next(&mut transport).await else { panic!() };
    assert_eq!(answer, result(1));
    quiet_until(&mut transport, server.saw(3)).await;
    quiet_until(&mut transport, round_trips()).await;
    let seen = server.seen();
    assert_eq!((seen[0].method.as_str(), seen[0].path.as_str()), ("GET", "/mcp?key=sesame"));
    assert_eq!(seen[0].header("accept"), Some("text/event-stream"));
    assert!(seen.iter().all(|seen| seen.header("authorization") == Some("Bearer hunter2")));
    assert!(seen[1..].iter().all(|seen| seen.path == "/messages?session=s1"));
    assert!(seen[1].body.contains("initialized") && seen[2].body.contains("tools/list"));
    assert_eq!(seen[2].header("mcp-protocol-version"), Some("2024-11-05"));
    assert!(!format!("{transport:?}").contains("session"), "{transport:?}");
    transport.close().await;
    server.client_left().await;
}

#[tokio::test]
async fn an_endpoint_on_another_server_is_refused() {
    for endpoint in
        ["http://evil.example/steal?x=abc", "//evil.example/steal", "https://127.0.0.1/"]
    {
        let server = server(format!("event: endpoint\ndata: {endpoint}\n\n"), 202).await;
        let error = open(&server).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ProtocolViolation);
        assert!(error.to_string().contains("another server"), "{error}");
        assert!(!error.to_string().contains("steal"), "{error}");
    }
    let server = server("event: endpoint\ndata: http://[\n\n".to_owned(), 202).await;
    assert!(open(&server).await.unwrap_err().to_string().contains("no address"));
}

#[tokio::test]
async fn the_loss_of_the_stream_is_the_end() {
    let server = ScriptedServer::in_turn(vec![Reply::events(ENDPOINT)]).await;
    let mut transport = open(&server).await.unwrap();
    let InboundEvent::Closed(error) = next(&mut transport).await else { panic!() };
    assert_eq!(error.kind(), ErrorKind::Broken);
    let server = ScriptedServer::in_turn(vec![Reply::events(": nothing\n\n")]).await;
    assert_eq!(open(&server).await.unwrap_err().kind(), ErrorKind::Broken);
}

#[tokio::test]
async fn a_post_that_is_refused_fails_its_request_only() {
    for (status, kind) in [(500, ErrorKind::HttpStatus(500)), (404, ErrorKind::SessionExpired)] {
        let server = server(ENDPOINT.to_owned(), status).await;
        let mut transport = open(&server).await.unwrap();
        transport.send(request(3, "tools/list"));
        let InboundEvent::RequestFailed { id, error } = next(&mut transport).await else {
            panic!()
        };
        assert_eq!((id, error.kind()), (3, kind));
    }
}

#[tokio::test]
async fn non_stream_response_is_rejected() {
    let server = ScriptedServer::in_turn(vec![Reply::json("{}"), Reply::new(404, &[], "")]).await;
    assert_eq!(open(&server).await.unwrap_err().kind(), ErrorKind::ProtocolViolation);
    assert_eq!(open(&server).await.unwrap_err().kind(), ErrorKind::HttpStatus(404));
}

#[tokio::test]
async fn a_post_that_is_given_up_closes_its_connection() {
    let mut server = ScriptedServer::start(|seen| match seen.method.as_str() {
        "GET" => Reply::events(ENDPOINT).then_hang(),
        _ => Reply::raw("").then_hang(),
    })
    .await;
    let mut transport = open(&server).await.unwrap();
    transport.send(request(1, "tools/call"));
    quiet_until(&mut transport, server.saw(2)).await;
    quiet_until(&mut transport, round_trips()).await;
    transport.cancel(1);
    tokio::select! {
        () = server.client_left() => {}
        incoming = transport.next() => panic!("{incoming:?}"),
    }
}
