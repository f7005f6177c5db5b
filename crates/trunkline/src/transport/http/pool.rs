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
    /// The connections to each server, by its scheme, host and port; the last used at the end.
    of_servers: HashMap<Arc<str>, Vec<IdleConnection>>,
    /// The task that removes those that are not used. It ends with its runtime.
    sweeper: Option<JoinHandle<()>>,
}

struct IdleConnection {
    connection: HttpConnection,
    since: Instant,
    /// Whether its last response was read, so that it is ready in a moment, if it is not closed.
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
        loop {
            let idle = lock(&self.idle).take(address.server());
            let is_reused = idle.is_some();
            let mut connection = match idle {
                Some(connection) => connection,
                // Boxed, because most requests need no new connection.
                None => Box::pin(self.connect(address)).await?,
            };
            if is_reused && !connection.becomes_ready().await {
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

    async fn connect(&self, address: &ServerUrl) -> Result<HttpConnection, SendError> {
        let failed = |source: BoxError| SendError { is_connect: true, source };
        let stream = self.connector.connect(address.uri()).await.map_err(failed)?;
        let is_forwarded = stream.is_forwarded();
        let mut builder = Builder::new();
        let handshake = builder.max_buf_size(MAX_HEAD_BYTES).handshake(TokioIo::new(stream));
        let (sender, connection) = handshake.await.map_err(|error| failed(error.into()))?;
        // Its errors are those of its request.
        tokio::spawn(async { drop(connection.await) });
        Ok(HttpConnection { sender, is_forwarded })
    }

    fn lease(&self, address: &ServerUrl, connection: HttpConnection) -> LeasedConnection {
        let (server, idle) = (Arc::clone(address.server()), Arc::downgrade(&self.idle));
        LeasedConnection { connection: Some(connection), server, idle, is_read: false }
    }
}

impl IdleConnections {
    /// A connection to a server that can be used now.
    fn take(&mut self, server: &str) -> Option<HttpConnection> {
        let connections = self.of_servers.get_mut(server)?;
        // Others are being closed, or read the rest of a response that was dropped.
        let is_ready = |it: &IdleConnection| it.connection.sender.is_ready() && !it.is_expired();
        let is_read = |it: &IdleConnection| it.is_read && !it.is_unusable();
        let found = connections.iter().rposition(is_ready);
        let found = found.or_else(|| connections.iter().rposition(is_read))?;
        Some(connections.remove(found).connection)
    }

    fn remove_unused(&mut self) {
        self.of_servers.retain(|_, connections| {
            connections.retain(|it| !it.is_unusable());
            !connections.is_empty()
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
        let (Some(connection), Some(idle)) = (self.connection.take(), self.idle.upgrade()) else {
            return;
        };
        // Without a runtime, nothing would close it later.
        let Ok(runtime) = Handle::try_current() else { return };
        if connection.sender.is_closed() {
            return;
        }
        let mut connections = lock(&idle);
        let idle_connection =
            IdleConnection { connection, since: Instant::now(), is_read: self.is_read };
        match connections.of_servers.get_mut(&self.server) {
            Some(known) => known.push(idle_connection),
            None => {
                connections.of_servers.insert(Arc::clone(&self.server), vec![idle_connection]);
            }
        }
        if connections.sweeper.as_ref().is_none_or(JoinHandle::is_finished) {
            connections.sweeper = Some(runtime.spawn(sweep(Arc::downgrade(&idle))));
        }
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
