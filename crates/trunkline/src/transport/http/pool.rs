//! Pool of HTTP connections, which are used again while the server keeps them open.
//!
//! The client of hyper-util has one too. It looks connections up by URL, wraps them, and spawns a
//! task for each response: with this one, a call over HTTP takes a tenth fewer instructions.

use std::error::Error as StdError;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use foldhash::HashMap;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::connector::{BoxError, Connector};
use super::url::ServerUrl;

/// Lifetime of an idle connection: less than the 60 s after which common load balancers close it,
/// so that a request does not use a connection that is just being closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval of the removal of idle connections.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// Limit on the time until a connection whose response was read is ready for the next request.
const READY_TIMEOUT: Duration = Duration::from_millis(100);

/// Limit on the bytes of response headers, and size of one read: far more than common servers and
/// proxies allow.
pub(in crate::transport) const MAX_HEAD_BYTES: usize = 256 * 1024;

/// Reusable connections to servers.
pub(super) struct HttpConnectionPool {
    connector: Connector,
    idle: Arc<Mutex<IdleConnections>>,
}

#[derive(Default)]
struct IdleConnections {
    /// The connections to each server, by its scheme, host and port.
    of_servers: HashMap<Arc<str>, ServerConnections>,
    /// The task that removes those that are not used. It ends with its runtime.
    sweeper: Option<JoinHandle<()>>,
}

/// The idle connections to one server.
#[derive(Default)]
struct ServerConnections {
    /// The last used at the end.
    idle: Vec<IdleConnection>,
    /// Notified of each that is added, and shared with the requests that wait for one.
    added: Arc<Notify>,
    /// Whether one is being opened that no request waits for.
    opens_spare: bool,
}

struct IdleConnection {
    connection: HttpConnection,
    since: Instant,
    /// Whether nothing is left to be read on it, so that it is ready in a moment, if it is not closed.
    is_read: bool,
}

/// An established connection, for one request at a time.
struct HttpConnection {
    sender: SendRequest<Full<Bytes>>,
    /// Whether a forwarding proxy reads the requests, which then need absolute URLs.
    is_forwarded: bool,
}

/// A connection whose response is being read. It returns to its pool when it is dropped, and is used
/// again if the response was read completely.
pub(super) struct LeasedConnection {
    connection: Option<HttpConnection>,
    server: Arc<str>,
    idle: Weak<Mutex<IdleConnections>>,
    is_read: bool,
}

/// A request that could not be sent, or has no response.
#[derive(Debug)]
pub(in crate::transport) struct SendError {
    is_connect: bool,
    source: BoxError,
}

impl SendError {
    /// Whether no connection could be established.
    pub(in crate::transport) fn is_connect(&self) -> bool {
        self.is_connect
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_connect { "cannot connect" } else { "cannot send a request" })
    }
}

impl StdError for SendError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.source)
    }
}

impl HttpConnectionPool {
    pub(super) fn new(connector: Connector) -> Self {
        Self { connector, idle: Arc::default() }
    }

    /// Sends a request on an idle or a new connection, and waits for the head of the response.
    pub(super) async fn send(
        &self,
        address: &ServerUrl,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, LeasedConnection), SendError> {
        let mut usable = Usable::InAMoment;
        loop {
            let idle = lock(&self.idle).take(address.server(), usable);
            let (mut connection, is_reused) = match idle {
                Some(connection) => (connection, true),
                // Boxed, because most requests need no new connection.
                None => Box::pin(self.open_or_wait(address)).await?,
            };
            if is_reused && !connection.becomes_ready().await {
                usable = Usable::Now;
                continue;
            }
            *request.uri_mut() = match connection.is_forwarded {
                true => address.uri().clone(),
                false => address.target().clone(),
            };
            match connection.sender.try_send_request(request).await {
                Ok(response) => return Ok((response, self.lease(address, connection))),
                Err(mut failed) => match failed.take_message() {
                    // The server closed the connection before it received anything.
                    Some(unsent) if is_reused => request = unsent,
                    _ => {
                        let source = failed.into_error().into();
                        return Err(SendError { is_connect: false, source });
                    }
                },
            }
        }
    }

    /// Opens a connection, and takes one that becomes idle before that: a server may serve few at the same time. Returns
    /// whether it was used before.
    async fn open_or_wait(&self, address: &ServerUrl) -> Result<(HttpConnection, bool), SendError> {
        let server = address.server();
        let added = lock(&self.idle).added(server);
        let mut opening = Box::pin(open(self.connector.clone(), address.clone()));
        loop {
            tokio::select! {
                biased;
                opened = &mut opening => return Ok((opened?, false)),
                () = added.notified() => {
                    let idle = lock(&self.idle).take(server, Usable::InAMoment);
                    if let Some(idle) = idle {
                        self.keep_spare(server, opening);
                        return Ok((idle, true));
                    }
                }
            }
        }
    }

    /// Keeps a connection that is being opened for other requests, at most one to each server. Without it, a server with
    /// calls that are shorter than the time to connect would never get a second connection.
    fn keep_spare(
        &self,
        server: &Arc<str>,
        opening: impl Future<Output = Result<HttpConnection, SendError>> + Send + 'static,
    ) {
        if let Some(spare) = SpareConnection::begin(&self.idle, server) {
            tokio::spawn(async move {
                if let Ok(opened) = opening.await {
                    spare.opened(opened);
                }
            });
        }
    }

    fn lease(&self, address: &ServerUrl, connection: HttpConnection) -> LeasedConnection {
        let (server, idle) = (Arc::clone(address.server()), Arc::downgrade(&self.idle));
        LeasedConnection { connection: Some(connection), server, idle, is_read: false }
    }
}

/// Opens a connection to a server.
async fn open(connector: Connector, address: ServerUrl) -> Result<HttpConnection, SendError> {
    let failed = |source: BoxError| SendError { is_connect: true, source };
    let stream = connector.connect(address.uri()).await.map_err(failed)?;
    let is_forwarded = stream.is_forwarded();
    let mut builder = Builder::new();
    let handshake = builder.max_buf_size(MAX_HEAD_BYTES).handshake(TokioIo::new(stream));
    let (sender, connection) = handshake.await.map_err(|error| failed(error.into()))?;
    // Its errors are those of its request.
    tokio::spawn(async { drop(connection.await) });
    Ok(HttpConnection { sender, is_forwarded })
}

/// A connection that is being opened for later, until this is dropped.
struct SpareConnection {
    server: Arc<str>,
    idle: Weak<Mutex<IdleConnections>>,
}

impl SpareConnection {
    /// `None` if another one is being opened.
    fn begin(idle: &Arc<Mutex<IdleConnections>>, server: &Arc<str>) -> Option<Self> {
        let mut connections = lock(idle);
        let of_server = connections.of_servers.entry(Arc::clone(server)).or_default();
        let is_first = !std::mem::replace(&mut of_server.opens_spare, true);
        is_first.then(|| Self { server: Arc::clone(server), idle: Arc::downgrade(idle) })
    }

    fn opened(self, connection: HttpConnection) {
        if let Some(idle) = self.idle.upgrade() {
            keep(&idle, &self.server, IdlePlace::First, (connection, true));
        }
    }
}

impl Drop for SpareConnection {
    fn drop(&mut self) {
        let Some(idle) = self.idle.upgrade() else { return };
        if let Some(of_server) = lock(&idle).of_servers.get_mut(&self.server) {
            of_server.opens_spare = false;
        }
    }
}

/// Where a connection is added to those that are idle. The last one is taken first.
#[derive(Clone, Copy)]
enum IdlePlace {
    /// It was never used: a server that serves few connections may not have accepted it.
    First,
    Last,
}

/// The idle connections that a request takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Usable {
    Now,
    /// Also one that was read. It may turn out not to become ready, which a request waits for once.
    InAMoment,
}

impl IdleConnections {
    /// An idle connection to a server.
    fn take(&mut self, server: &str, usable: Usable) -> Option<HttpConnection> {
        let ServerConnections { idle: connections, added, .. } = self.of_servers.get_mut(server)?;
        // Others are being closed, or read the rest of a response that was dropped.
        let is_ready = |it: &IdleConnection| it.connection.sender.is_ready() && !it.is_expired();
        let is_read =
            |it: &IdleConnection| usable == Usable::InAMoment && it.is_read && !it.is_unusable();
        let found = connections.iter().rposition(is_ready);
        let found = found.or_else(|| connections.iter().rposition(is_read))?;
        let found = connections.remove(found).connection;
        // Of two that were added at once, another request may have been notified only of this one.
        if !connections.is_empty() {
            added.notify_one();
        }
        Some(found)
    }

    /// Notified of each connection to a server that is added.
    fn added(&mut self, server: &Arc<str>) -> Arc<Notify> {
        Arc::clone(&self.of_servers.entry(Arc::clone(server)).or_default().added)
    }

    fn remove_unused(&mut self) {
        self.of_servers.retain(|_, connections| {
            connections.idle.retain(|it| !it.is_unusable());
            let is_awaited = Arc::strong_count(&connections.added) > 1 || connections.opens_spare;
            is_awaited || !connections.idle.is_empty()
        });
    }
}

impl IdleConnection {
    fn is_expired(&self) -> bool {
        self.since.elapsed() >= IDLE_TIMEOUT
    }

    fn is_unusable(&self) -> bool {
        self.connection.sender.is_closed() || self.is_expired()
    }
}

impl HttpConnection {
    /// Whether another request can be sent. That is known at once, unless the last response was
    /// just read, or ended before the server read its request.
    async fn becomes_ready(&mut self) -> bool {
        self.sender.is_ready()
            || matches!(timeout(READY_TIMEOUT, self.sender.ready()).await, Ok(Ok(())))
    }
}

impl LeasedConnection {
    /// Notes that the response was read completely.
    pub(super) fn on_read(&mut self) {
        self.is_read = true;
    }
}

impl Drop for LeasedConnection {
    fn drop(&mut self) {
        if let (Some(connection), Some(idle)) = (self.connection.take(), self.idle.upgrade()) {
            keep(&idle, &self.server, IdlePlace::Last, (connection, self.is_read));
        }
    }
}

/// Adds a connection to those that are idle.
fn keep(
    idle: &Arc<Mutex<IdleConnections>>,
    server: &Arc<str>,
    place: IdlePlace,
    (connection, is_read): (HttpConnection, bool),
) {
    // Without a runtime, nothing would close it later.
    let Ok(runtime) = Handle::try_current() else { return };
    if connection.sender.is_closed() {
        return;
    }
    let added = IdleConnection { connection, since: Instant::now(), is_read };
    let mut connections = lock(idle);
    match connections.of_servers.get_mut(server) {
        Some(known) => known.add(added, place),
        None => connections.of_servers.entry(Arc::clone(server)).or_default().add(added, place),
    }
    if connections.sweeper.as_ref().is_none_or(JoinHandle::is_finished) {
        connections.sweeper = Some(runtime.spawn(sweep(Arc::downgrade(idle))));
    }
}

impl ServerConnections {
    fn add(&mut self, connection: IdleConnection, place: IdlePlace) {
        let at = match place {
            IdlePlace::First => 0,
            IdlePlace::Last => self.idle.len(),
        };
        self.idle.insert(at, connection);
        self.added.notify_one();
    }
}

/// Removes idle connections until there are none.
async fn sweep(idle: Weak<Mutex<IdleConnections>>) {
    loop {
        sleep(SWEEP_INTERVAL).await;
        let Some(idle) = idle.upgrade() else { return };
        let mut connections = lock(&idle);
        connections.remove_unused();
        if connections.of_servers.is_empty() {
            connections.sweeper = None;
            return;
        }
    }
}

fn lock(idle: &Mutex<IdleConnections>) -> MutexGuard<'_, IdleConnections> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpStream as BlockingStream};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpSocket, TcpStream};
    use url::Url;

    use super::*;
    use crate::transport::http::proxy::ProxyMatcher;
    use crate::transport::http::tls::LazyTls;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn pool() -> HttpConnectionPool {
        let options = crate::transport::HttpOptions::default();
        let detours = Arc::new(ProxyMatcher::new(&options.proxies).unwrap());
        let tls = LazyTls::new(&options.extra_root_certificates).unwrap();
        HttpConnectionPool::new(Connector::new(tls, detours, PATIENCE * 2))
    }

    fn request() -> Request<Full<Bytes>> {
        Request::post("/").header("host", "server").body(Full::default()).unwrap()
    }

    /// A server that does not accept connections, and lets few be established anyway.
    fn listener() -> TcpListener {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        socket.listen(1).unwrap()
    }

    /// Opens connections until no more can be established.
    fn occupy(address: SocketAddr) -> Vec<BlockingStream> {
        let connect = || BlockingStream::connect_timeout(&address, Duration::from_millis(500)).ok();
        std::iter::from_fn(connect).take(100).collect()
    }

    async fn read_request(stream: &mut TcpStream) {
        let mut seen = Vec::new();
        while !seen.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0, "{seen:?}");
        }
    }

    /// A server that serves few connections at the same time still serves the next request.
    #[tokio::test]
    async fn a_request_takes_a_connection_that_becomes_idle_while_it_opens_one() {
        let (pool, listener) = (pool(), listener());
        let local = listener.local_addr().unwrap();
        let url = ServerUrl::new(Url::parse(&format!("http://{local}/")).unwrap()).unwrap();
        let first = async {
            let (response, mut lease) = pool.send(&url, request()).await.unwrap();
            drop(response);
            lease.on_read();
        };
        let (occupied, is_occupied) = tokio::sync::oneshot::channel::<()>();
        let second = async {
            is_occupied.await.unwrap();
            pool.send(&url, request()).await.unwrap().0.status()
        };
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_request(&mut stream).await;
            let others = occupy(local);
            assert!(others.len() < 100, "the backlog is full");
            occupied.send(()).unwrap();
            // Until the other request opens a connection.
            sleep(Duration::from_millis(100)).await;
            for _ in 0..2 {
                stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
                if timeout(PATIENCE, read_request(&mut stream)).await.is_err() {
                    break;
                }
            }
        };
        tokio::select! {
            ((), status) = async { tokio::join!(first, second) } => assert_eq!(status, 204),
            () = serve => panic!("the second request came on no connection"),
        }
    }
}
