//! How the client reaches servers: with certificates of all kinds, and through proxies.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::Incoming;
use super::client::{HttpClient, HttpOptions, Proxies};
use super::http::HttpWire;
use super::scripted::{PATIENCE, Reply, ScriptedServer, request, result, target};
use crate::config::Secret;
use crate::error::{Error, ErrorKind};

/// A server with a certificate for a name: its address and the certificate, as PEM.
async fn serve(name: &str, years: (i32, i32)) -> (String, Vec<u8>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(years.0, 1, 1);
    params.not_after = date_time_ymd(years.1, 1, 1);
    let certificate = params.self_signed(&key).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(answer_one(listener, TlsAcceptor::from(Arc::new(config))));
    (url, certificate.pem().into_bytes())
}

async fn answer_one(listener: TcpListener, acceptor: TlsAcceptor) {
    let (stream, _) = listener.accept().await.unwrap();
    let Ok(mut stream) = acceptor.accept(stream).await else { return };
    let _ = stream.read(&mut [0; 4096]).await;
    let body = result(1);
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(answer.as_bytes()).await.unwrap();
}

async fn ask(url: &str, extra_root_certificates: Vec<Vec<u8>>) -> Result<(), Error> {
    ask_with(&HttpOptions { extra_root_certificates, ..HttpOptions::default() }, url).await
}

async fn ask_with(options: &HttpOptions, url: &str) -> Result<(), Error> {
    let mut wire = HttpWire::new(HttpClient::new(options).unwrap(), target(url));
    wire.send(request(1, "ping"));
    match timeout(PATIENCE, wire.next()).await.unwrap() {
        Incoming::Lost { error, .. } => Err(error),
        _ => Ok(()),
    }
}

#[tokio::test]
async fn an_unknown_authority_is_not_trusted_unless_it_is_named() {
    let (url, _) = serve("127.0.0.1", (2020, 2090)).await;
    let error = ask(&url, Vec::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls);
    assert!(error.to_string().ends_with("a certificate of an unknown authority"), "{error}");
    assert!(error.hint().unwrap().contains("extra root certificate"));
    let (url, certificate) = serve("127.0.0.1", (2020, 2090)).await;
    ask(&url, vec![certificate]).await.unwrap();
}

#[tokio::test]
async fn what_is_wrong_with_a_certificate_is_said() {
    let cases = [
        ("127.0.0.1", (2000, 2001), "has expired"),
        ("127.0.0.1", (2089, 2090), "is not valid yet"),
        ("other.example", (2020, 2090), "of another host"),
    ];
    for (name, years, problem) in cases {
        let (url, certificate) = serve(name, years).await;
        let error = ask(&url, vec![certificate]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tls);
        assert!(error.to_string().ends_with(problem), "{error}");
    }
}

#[tokio::test]
async fn a_proxy_is_used_except_where_it_is_not_wanted() {
    let proxy = ScriptedServer::start(|seen| Reply::json(&result(seen.id()))).await;
    let proxies = Proxies {
        http: Some(Secret::new(proxy.origin.as_str())),
        https: None,
        no_proxy: Some("direct.invalid".into()),
    };
    let options = HttpOptions { proxies, ..HttpOptions::default() };
    ask_with(&options, "http://far.invalid/mcp").await.unwrap();
    assert_eq!(proxy.seen()[0].path, "http://far.invalid/mcp");
    let error = ask_with(&options, "http://direct.invalid/mcp").await.unwrap_err();
    assert_eq!(error.to_string(), "the host `direct.invalid` is not known");
    assert_eq!(proxy.seen().len(), 1);
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
    assert!(error.hint().unwrap().contains("proxy"), "{error:?}");
}
