//! Receives the redirect of a browser on a loopback port (RFC 8252).
//!
//! It reads one request line by hand: the library has no HTTP server, and needs a single GET.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Url;

/// The path of the redirect URI.
const CALLBACK_PATH: &str = "/callback";

/// Limit on the head of a request: codes are a few hundred bytes.
const MAX_REQUEST_HEAD_BYTES: usize = 16 * 1024;

/// Time for a browser to send its request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections at a time: browsers open a few ahead of their requests.
const MAX_CONNECTIONS: usize = 16;

/// Listens for the redirect of a login.
#[derive(Debug)]
pub struct LoopbackListener {
    listener: TcpListener,
    redirect_uri: Url,
}

impl LoopbackListener {
    /// Listens on a port of the loopback interface; any free one if `port` is `None`.
    ///
    /// # Errors
    ///
    /// If the port is in use.
    pub async fn bind(port: Option<u16>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await?;
        let address = listener.local_addr()?;
        let redirect_uri = Url::parse(&format!("http://{address}{CALLBACK_PATH}"));
        let redirect_uri = redirect_uri.map_err(io::Error::other)?;
        Ok(Self { listener, redirect_uri })
    }

    /// Listens at a redirect URI of the configuration, which has to be on this machine.
    ///
    /// # Errors
    ///
    /// If it is not, or if the port is in use.
    pub async fn bind_uri(redirect_uri: &str) -> io::Result<Self> {
        let unusable = |_| io::Error::other("the redirect address is not on this machine");
        let redirect_uri = Url::parse(redirect_uri).map_err(unusable)?;
        let host = redirect_uri.host_str().unwrap_or_default();
        let is_local = matches!(host, "localhost" | "127.0.0.1") && redirect_uri.scheme() == "http";
        if !is_local {
            return Err(io::Error::other("the redirect address is not on this machine"));
        }
        let port = redirect_uri.port_or_known_default().unwrap_or(80);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        Ok(Self { listener, redirect_uri })
    }

    /// The redirect URI for the login.
    pub fn redirect_uri(&self) -> &str {
        self.redirect_uri.as_str()
    }

    /// The port.
    pub fn port(&self) -> Option<u16> {
        self.redirect_uri.port_or_known_default()
    }

    /// Waits for a redirect that `is_for` accepts. Other requests get an error page.
    ///
    /// # Errors
    ///
    /// If no more connections can be accepted.
    pub async fn callback(&self, is_for: impl Fn(&Url) -> bool) -> io::Result<Url> {
        let (sender, mut received) = mpsc::channel::<(TcpStream, Url)>(MAX_CONNECTIONS);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    let (stream, _) = accepted?;
                    connections.spawn(read_request(stream, self.redirect_uri.clone(), sender.clone()));
                }
                Some(_) = connections.join_next() => {}
                Some((stream, url)) = received.recv() => {
                    let is_ours = url.path() == self.redirect_uri.path() && is_for(&url);
                    respond(stream, is_ours).await;
                    if is_ours {
                        return Ok(url);
                    }
                }
            }
        }
    }
}

/// Reads the head of a request, and passes its URL on.
async fn read_request(mut stream: TcpStream, base: Url, sender: mpsc::Sender<(TcpStream, Url)>) {
    let mut head = Vec::new();
    let read = async {
        while !head.windows(4).any(|it| it == b"\r\n\r\n") && head.len() < MAX_REQUEST_HEAD_BYTES {
            let mut chunk = [0; 2048];
            match stream.read(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(count) => head.extend(chunk.iter().take(count)),
            }
        }
    };
    if timeout(HEAD_TIMEOUT, read).await.is_err() {
        return;
    }
    let text = String::from_utf8_lossy(&head);
    let mut words = text.lines().next().unwrap_or_default().split(' ');
    if let (Some("GET"), Some(target)) = (words.next(), words.next())
        && target.starts_with('/')
        && let Ok(url) = base.join(target)
    {
        let _ = sender.send((stream, url)).await;
    }
}

/// Tells the user how it went. The page has no script and loads nothing.
async fn respond(mut stream: TcpStream, is_ours: bool) {
    let (status, text) = match is_ours {
        true => ("200 OK", "Received. You can close this page and go back to the program."),
        false => ("404 Not Found", "This page belongs to no login that is under way."),
    };
    let body = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Trunkline</title>\
         <body style=\"font:16px system-ui;margin:4em auto;max-width:30em\"><p>{text}</p></body></html>"
    );
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\n\
         content-security-policy: default-src 'none'; style-src 'unsafe-inline'\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    let write = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = timeout(HEAD_TIMEOUT, write).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(listener: &LoopbackListener, target: &str) -> String {
        let port = listener.port().unwrap();
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        answer
    }

    #[tokio::test]
    async fn redirects_of_other_logins_are_ignored() {
        let listener = LoopbackListener::bind(None).await.unwrap();
        let is_for = |url: &Url| url.query() == Some("state=right");
        let requests = async {
            // A connection ahead of its request, as browsers open them.
            let _idle =
                TcpStream::connect((Ipv4Addr::LOCALHOST, listener.port().unwrap())).await.unwrap();
            for wrong in ["/callback?state=wrong", "/favicon.ico", "/other?state=right"] {
                assert!(get(&listener, wrong).await.starts_with("HTTP/1.1 404"), "{wrong}");
            }
            get(&listener, "/callback?state=right").await
        };
        let (callback, answer) = tokio::join!(listener.callback(is_for), requests);
        assert_eq!(callback.unwrap().query(), Some("state=right"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    #[tokio::test]
    async fn a_port_that_is_taken_is_an_error() {
        let first = LoopbackListener::bind(None).await.unwrap();
        let error = LoopbackListener::bind(first.port()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        for elsewhere in ["https://localhost/x", "http://example.com/x", "x"] {
            assert!(LoopbackListener::bind_uri(elsewhere).await.is_err(), "{elsewhere}");
        }
    }
}
