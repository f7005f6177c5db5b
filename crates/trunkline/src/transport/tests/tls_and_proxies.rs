//! Tests of the HTTP client with certificates of all kinds, and through proxies.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::scripted_server::{PATIENCE, Reply, ScriptedServer, request, result, target};
use crate::config::Secret;
use crate::error::{Error, ErrorKind};
use crate::transport::InboundEvent;
use crate::transport::http::HttpTransport;
use crate::transport::http::client::{HttpClient, HttpOptions};
use crate::transport::http::proxy::Proxies;

/// A server with a certificate for a name.
struct SecureServer {
    url: String,
    /// As PEM.
    certificate: Vec<u8>,
    /// The one request it handles, after the negotiated ALPN protocol.
    seen: oneshot::Receiver<String>,
}

async fn serve(name: &str, years: (i32, i32)) -> SecureServer {
    let (acceptor, certificate) = acceptor(name, years);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let (tell, seen) = oneshot::channel();
    tokio::spawn(answer_one(listener, acceptor, tell));
    SecureServer { url, certificate, seen }
}

fn acceptor(name: &str, years: (i32, i32)) -> (TlsAcceptor, Vec<u8>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(years.0, 1, 1);
    params.not_after = date_time_ymd(years.1, 1, 1);
    let certificate = params.self_signed(&key).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (TlsAcceptor::from(Arc::new(config)), certificate.pem().into_bytes())
}

async fn answer_one(listener: TcpListener, acceptor: TlsAcceptor, tell: oneshot::Sender<String>) {
    let (stream, _) = listener.accept().await.unwrap();
    let Ok(mut stream) = acceptor.accept(stream).await else { return };
    let agreed = stream.get_ref().1.alpn_protocol().unwrap_or_default().to_vec();
    let head = read_head(&mut stream).await;
    let _ = tell.send(format!("{}\n{head}", String::from_utf8(agreed).unwrap()));
    let body = result(1);
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(answer.as_bytes()).await.unwrap();
    let _ = stream.read_to_end(&mut Vec::new()).await;
}

async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// A CONNECT proxy, and the requests it received.
struct TunnelProxy {
    place: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl TunnelProxy {
    /// A proxy with this response, which opens the tunnel if the response is a success.
    async fn start(answer: &'static str, acceptor: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = listener.local_addr().unwrap().to_string();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let all = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let all = Arc::clone(&all);
                match acceptor.clone() {
                    Some(acceptor) => {
                        let stream = acceptor.accept(stream).await.unwrap();
                        tokio::spawn(tunnel(stream, answer, all));
                    }
                    None => drop(tokio::spawn(tunnel(stream, answer, all))),
                }
            }
        });
        Self { place, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn tunnel(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    answer: &'static str,
    asked: Arc<Mutex<Vec<String>>>,
) {
    let head = read_head(&mut client).await;
    asked.lock().unwrap().push(head.clone());
    client.write_all(answer.as_bytes()).await.unwrap();
    if answer == TUNNEL {
        let place = head.split(' ').nth(1).unwrap();
        let mut server = TcpStream::connect(place).await.unwrap();
        let _ = copy_bidirectional(&mut client, &mut server).await;
    } else {
        let _ = client.read_to_end(&mut Vec::new()).await;
    }
}

const TUNNEL: &str = "HTTP/1.1 200 Connection established\r\n\r\n";

/// Options with a proxy for both `http` and `https` URLs.
fn through(proxy: &str, no_proxy: &str) -> HttpOptions {
    let proxy = || Some(Secret::new(proxy));
    let no_proxy = Some(no_proxy.into());
    let proxies = Proxies { http: proxy(), https: proxy(), no_proxy, for_loopback: true };
    HttpOptions { proxies, ..HttpOptions::default() }
}

async fn ask(url: &str, extra_root_certificates: Vec<Vec<u8>>) -> Result<(), Error> {
    ask_with(&HttpOptions { extra_root_certificates, ..HttpOptions::default() }, url).await
}

async fn ask_with(options: &HttpOptions, url: &str) -> Result<(), Error> {
    let mut transport = HttpTransport::new(HttpClient::new(options).unwrap(), target(url));
    transport.send(request(1, "ping"));
    match timeout(PATIENCE, transport.next()).await.unwrap() {
        InboundEvent::RequestFailed { error, .. } | InboundEvent::EmptyReply { error, .. } => {
            Err(error)
        }
        _ => Ok(()),
    }
}

#[tokio::test]
async fn an_unknown_authority_is_not_trusted_unless_it_is_named() {
    let SecureServer { url, .. } = serve("127.0.0.1", (2020, 2090)).await;
    let error = ask(&url, Vec::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls);
    assert!(error.to_string().ends_with("a certificate of an unknown authority"), "{error}");
    assert!(error.hint().unwrap().contains("extra root certificate"));
    let SecureServer { url, certificate, seen } = serve("127.0.0.1", (2020, 2090)).await;
    ask(&url, vec![certificate]).await.unwrap();
    assert!(seen.await.unwrap().starts_with("http/1.1\nPOST / HTTP/1.1\r\n"));
}

#[tokio::test]
async fn certificate_error_is_reported() {
    let cases = [
        ("127.0.0.1", (2000, 2001), "has expired"),
        ("127.0.0.1", (2089, 2090), "is not valid yet"),
        ("other.example", (2020, 2090), "of another host"),
    ];
    for (name, years, problem) in cases {
        let SecureServer { url, certificate, .. } = serve(name, years).await;
        let error = ask(&url, vec![certificate]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tls);
        assert!(error.to_string().ends_with(problem), "{error}");
    }
}

#[tokio::test]
async fn a_proxy_is_used_except_where_it_is_not_wanted() {
    let proxy = ScriptedServer::start(|seen| Reply::json(&result(seen.id()))).await;
    let options = through(&proxy.origin, "direct.invalid");
    ask_with(&options, "http://far.invalid/mcp?key=sesame#part").await.unwrap();
    let seen = &proxy.seen()[0];
    assert_eq!(seen.path, "http://far.invalid/mcp?key=sesame");
    assert_eq!(seen.header("host"), Some("far.invalid"));
    assert_eq!(seen.header("proxy-authorization"), None);
    let error = ask_with(&options, "http://direct.invalid/mcp").await.unwrap_err();
    assert_eq!(error.to_string(), "the host `direct.invalid` is not known");
    assert_eq!(proxy.seen().len(), 1);
}

#[tokio::test]
async fn forwarding_proxy_gets_credentials_with_each_request() {
    let proxy = ScriptedServer::start(|seen| Reply::json(&result(seen.id()))).await;
    let place = proxy.origin.strip_prefix("http://").unwrap();
    let options = through(&format!("http://me:p%40ss@{place}"), "");
    ask_with(&options, "http://you:hunter3@far.invalid/mcp").await.unwrap();
    let seen = &proxy.seen()[0];
    assert_eq!(seen.path, "http://far.invalid/mcp");
    // `me:p@ss`
    assert_eq!(seen.header("proxy-authorization"), Some("Basic bWU6cEBzcw=="));
}

#[tokio::test]
async fn tunnel_credentials_are_not_sent_to_the_server() {
    let server = serve("127.0.0.1", (2020, 2090)).await;
    let proxy = TunnelProxy::start(TUNNEL, None).await;
    let mut options = through(&format!("me:hunter3@{}", proxy.place), "");
    options.extra_root_certificates = vec![server.certificate];
    ask_with(&options, &format!("{}/mcp", server.url)).await.unwrap();
    let place = server.url.strip_prefix("https://").unwrap();
    let asked = proxy.asked().remove(0).to_lowercase();
    assert!(asked.starts_with(&format!("connect {place} http/1.1\r\nhost: {place}\r\n")));
    // `me:hunter3`
    assert!(asked.contains("\r\nproxy-authorization: basic bwu6ahvudgvymw==\r\n"), "{asked}");
    assert!(asked.contains("\r\nuser-agent: trunkline/"), "{asked}");
    assert!(!asked.contains("bearer"), "{asked}");
    let seen = server.seen.await.unwrap();
    assert!(seen.contains("POST /mcp HTTP/1.1\r\n"), "{seen}");
    assert!(!seen.to_lowercase().contains("proxy-authorization"), "{seen}");
}

#[tokio::test]
async fn excluded_hosts_are_reached_without_a_tunnel() {
    let server = serve("127.0.0.1", (2020, 2090)).await;
    let proxy = TunnelProxy::start(TUNNEL, None).await;
    let mut options = through(&proxy.place, "127.0.0.0/8");
    options.extra_root_certificates = vec![server.certificate];
    ask_with(&options, &server.url).await.unwrap();
    assert_eq!(proxy.asked().len(), 0);
}

#[tokio::test]
async fn the_way_to_a_proxy_can_be_encrypted_too() {
    let server = serve("127.0.0.1", (2020, 2090)).await;
    let (acceptor, certificate) = acceptor("127.0.0.1", (2020, 2090));
    let proxy = TunnelProxy::start(TUNNEL, Some(acceptor.clone())).await;
    let mut options = through(&format!("https://{}", proxy.place), "");
    options.extra_root_certificates = vec![server.certificate, certificate.clone()];
    ask_with(&options, &server.url).await.unwrap();
    assert_eq!(proxy.asked().len(), 1);

    let body = result(1);
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let proxy = TunnelProxy::start(answer.leak(), Some(acceptor)).await;
    let mut options = through(&format!("https://{}", proxy.place), "");
    options.extra_root_certificates = vec![certificate];
    ask_with(&options, "http://far.invalid/mcp").await.unwrap();
    assert!(proxy.asked()[0].starts_with("POST http://far.invalid/mcp HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_proxy_that_makes_no_tunnel_is_suspected_and_its_password_kept() {
    for answer in [
        "HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\r\n",
        "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n",
        "SSH-2.0-OpenSSH_9.9\r\n",
    ] {
        let proxy = TunnelProxy::start(answer, None).await;
        let options = through(&format!("http://me:hunter3@{}", proxy.place), "");
        let error = ask_with(&options, "https://far.invalid/mcp").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{answer}");
        assert_eq!(error.to_string(), "https://far.invalid cannot be reached", "{answer}");
        assert_suspects_proxy(&error);
    }
}

#[tokio::test]
async fn silent_proxy_times_out() {
    let proxy = TunnelProxy::start("", None).await;
    let connect_timeout = Duration::from_millis(300);
    let options = through(&format!("http://me:hunter3@{}", proxy.place), "");
    let options = HttpOptions { connect_timeout, ..options };
    let error = ask_with(&options, "https://far.invalid/mcp").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(error.to_string(), "https://far.invalid takes no connection in time");
    assert_suspects_proxy(&error);
}

#[tokio::test]
async fn a_proxy_that_does_not_speak_http_is_suspected() {
    let options = through("socks5://me:hunter3@127.0.0.1:9", "");
    for url in ["http://far.invalid/", "https://far.invalid/"] {
        let error = ask_with(&options, url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        assert_suspects_proxy(&error);
    }
}

#[track_caller]
fn assert_suspects_proxy(error: &Error) {
    let hint = error.hint().unwrap_or_default();
    assert!(hint.starts_with("it is reached through the proxy `127.0.0.1:"), "{hint}");
    assert!(!format!("{error:?}").contains("hunter"), "{error:?}");
}

#[tokio::test]
async fn silent_server_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let connect_timeout = Duration::from_millis(300);
    let options = HttpOptions { connect_timeout, ..HttpOptions::default() };
    let error = ask_with(&options, &url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(error.to_string(), format!("{url} takes no connection in time"));
}

#[tokio::test]
async fn a_proxy_that_is_away_is_suspected() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let https = Some(Secret::new(address));
    let proxies = Proxies { https, ..Proxies::default() };
    let options = HttpOptions { proxies, ..HttpOptions::default() };
    let error = ask_with(&options, "https://far.invalid/mcp").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(error.to_string(), "https://far.invalid refuses connections");
    assert_suspects_proxy(&error);
}
