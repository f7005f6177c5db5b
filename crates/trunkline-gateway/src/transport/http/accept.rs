//! Accepts HTTP connections, with limits on their number and on the time and size of request
//! headers.
//!
//! `axum::serve` has no such limits, and a limit by middleware counts requests after they were read.
//! Here a full gateway evicts connections that have not authenticated first.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;
use tracing::{Instrument as _, debug, debug_span, warn};
use trunkline::principal::{FairShare, Principal};

use super::accept_status::{AcceptHealth, AcceptStatus};
use super::connection_timer::ConnectionTimer;

/// Most concurrent connections, if the process may open as many files. One token gets half of them
/// if it is alone, and less while others have some.
const MOST: usize = 4096;

/// Files reserved for upstream servers and the program itself.
#[cfg(unix)]
const FILES: u64 = 128;

/// Timeout for the headers of a request, and for an idle connection.
const LONGEST_HEAD: Duration = Duration::from_secs(75);

/// Limit in bytes of the request line and headers. Cookies and tokens fit into 8 KiB, and this is
/// the cost of a connection before it is authenticated.
const HEAD_BYTES: usize = 64 * 1024;

/// Delay after `accept` failed for lack of resources.
const PAUSE: Duration = Duration::from_secs(1);

/// A response that is being made.
pub(super) type ServiceFuture = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

/// Responds to the requests of connections.
pub(super) trait ConnectionService: Clone + Send + 'static {
    fn call(&self, connection: &ConnectionState, request: Request) -> ServiceFuture;
}

/// The state of one connection.
#[derive(Clone)]
pub(super) struct ConnectionState {
    connection: Arc<CountedConnection>,
}

/// A connection, counted for the principal of its first authorized request.
struct CountedConnection {
    principal: OnceLock<Principal>,
    share: Arc<Mutex<FairShare>>,
    timer: ConnectionTimer,
}

impl ConnectionState {
    fn new(share: &Arc<Mutex<FairShare>>) -> Self {
        let (principal, timer) = (OnceLock::new(), ConnectionTimer::default());
        let connection = CountedConnection { principal, share: Arc::clone(share), timer };
        Self { connection: Arc::new(connection) }
    }

    /// The timer of the connection.
    pub(super) fn timer(&self) -> ConnectionTimer {
        self.connection.timer.clone()
    }

    /// Assigns a connection to the principal of its request, unless the principal has its share of
    /// connections already. Anonymous requests have no share, so they may take all connections.
    pub(super) fn authenticate(&self, principal: &Principal) -> Result<(), TooManyConnections> {
        if self.is_authenticated() { Ok(()) } else { self.connection.count(principal) }
    }

    fn is_authenticated(&self) -> bool {
        self.connection.principal.get().is_some()
    }
}

impl CountedConnection {
    fn count(&self, principal: &Principal) -> Result<(), TooManyConnections> {
        let mut share = lock(&self.share);
        if *principal != Principal::Anonymous && !share.admits(principal) {
            return Err(TooManyConnections);
        }
        if self.principal.set(principal.clone()).is_ok() {
            share.add(principal);
        }
        Ok(())
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        if let Some(principal) = self.principal.get() {
            lock(&self.share).remove(principal);
        }
    }
}

/// The error for a connection above the share of its principal.
#[derive(Debug)]
pub(super) struct TooManyConnections;

impl IntoResponse for TooManyConnections {
    fn into_response(self) -> Response {
        let headers = [(RETRY_AFTER, "1"), (CONNECTION, "close")];
        let text = "this token has too many connections open; close some, or try again later\n";
        (StatusCode::SERVICE_UNAVAILABLE, headers, text).into_response()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves requests on a listener until `end` completes, and returns once all responses are sent.
/// Reports whether connections can be accepted.
pub(super) async fn receive(
    service: impl ConnectionService,
    listener: TcpListener,
    end: impl Future<Output = ()>,
    report: impl FnMut(AcceptStatus),
) -> io::Result<()> {
    serve_connections(max_connections(), service, listener, end, report).await
}

async fn serve_connections(
    most: usize,
    service: impl ConnectionService,
    listener: TcpListener,
    end: impl Future<Output = ()>,
    report: impl FnMut(AcceptStatus),
) -> io::Result<()> {
    let mut connections = Connections::new(service, most);
    let mut acceptance = AcceptHealth::new(report);
    let mut end = std::pin::pin!(end);
    loop {
        tokio::select! {
            () = &mut end => break,
            accepted = listener.accept(), if connections.has_room() => match accepted {
                // The connections to evict may have authenticated meanwhile.
                Ok((stream, peer)) => tokio::select! {
                    () = connections.room() => connections.begin(stream, peer),
                    () = &mut end => break,
                },
                Err(error) if is_of_one_connection(&error) => {}
                // A lack of resources is temporary.
                Err(error) => {
                    warn!(%error, "accept failed");
                    acceptance.report_failing(error);
                    tokio::select! {
                        () = sleep(PAUSE) => {}
                        () = &mut end => break,
                    }
                }
            },
            () = acceptance.recovered() => acceptance.report_recovered(),
            Some(_) = connections.going_on.join_next() => {}
        }
    }
    drop(listener);
    connections.finish().await;
    Ok(())
}

struct Connections<S> {
    service: S,
    going_on: JoinSet<()>,
    most: usize,
    /// The number of connections per principal.
    share: Arc<Mutex<FairShare>>,
    /// Connections that were unauthenticated when last checked, oldest first.
    strangers: VecDeque<(ConnectionState, AbortHandle)>,
    is_over: watch::Sender<bool>,
}

impl<S: ConnectionService> Connections<S> {
    fn new(service: S, most: usize) -> Self {
        Self {
            service,
            going_on: JoinSet::new(),
            most,
            share: Arc::new(Mutex::new(FairShare::new(most))),
            strangers: VecDeque::new(),
            is_over: watch::channel(false).0,
        }
    }

    /// Whether another connection can be accepted, possibly by evicting an unauthenticated one.
    fn has_room(&mut self) -> bool {
        self.remove_authenticated();
        self.going_on.len() < self.most || !self.strangers.is_empty()
    }

    /// Waits until another connection can be accepted.
    async fn room(&mut self) {
        while !self.has_room() {
            self.going_on.join_next().await;
        }
    }

    /// Drops closed and authenticated connections from the front of the eviction queue.
    fn remove_authenticated(&mut self) {
        let is_over = |(visitor, task): &(ConnectionState, AbortHandle)| {
            visitor.is_authenticated() || task.is_finished()
        };
        while self.strangers.front().is_some_and(is_over) {
            self.strangers.pop_front();
        }
    }

    fn begin(&mut self, stream: TcpStream, peer: SocketAddr) {
        self.remove_authenticated();
        if self.going_on.len() >= self.most
            && let Some((_, longest)) = self.strangers.pop_front()
        {
            debug!("unauthenticated connection evicted");
            longest.abort();
        }
        // Small responses must not wait for more data. A socket that refuses the option is served
        // anyway.
        let _ = stream.set_nodelay(true);
        let visitor = ConnectionState::new(&self.share);
        let serving = serve_connection(
            self.service.clone(),
            stream,
            visitor.clone(),
            self.is_over.subscribe(),
        );
        let span = debug_span!("connection", %peer);
        let task = self.going_on.spawn(serving.instrument(span));
        self.strangers.push_back((visitor, task));
        // The queue may contain closed and authenticated connections, so it is pruned at twice the
        // limit.
        if self.strangers.len() > 2 * self.most {
            self.strangers
                .retain(|(visitor, task)| !visitor.is_authenticated() && !task.is_finished());
        }
    }

    /// Waits until all responses are sent.
    async fn finish(mut self) {
        self.is_over.send_replace(true);
        while self.going_on.join_next().await.is_some() {}
    }
}

async fn serve_connection(
    service: impl ConnectionService,
    stream: TcpStream,
    visitor: ConnectionState,
    mut is_over: watch::Receiver<bool>,
) {
    debug!("connection accepted");
    let timer = visitor.connection.timer.clone();
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        service.call(&visitor, request.map(Body::new))
    });
    let connection = http1::Builder::new()
        .timer(timer)
        .header_read_timeout(LONGEST_HEAD)
        // The buffer size alone admits nearly twice as much in one read.
        .max_buf_size(HEAD_BYTES)
        .max_header_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // An error of the connection has no recipient.
        _ = connection.as_mut() => return debug!("connection closed"),
        _ = is_over.wait_for(|is_over| *is_over) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// The connection limit: upstream servers and the program need some of the open files too.
fn max_connections() -> usize {
    #[cfg(unix)]
    {
        use rustix::process::Resource;
        use rustix::process::getrlimit;
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let files = files.saturating_sub(FILES).max(files / 2);
        MOST.min(usize::try_from(files).unwrap_or(MOST))
    }
    #[cfg(not(unix))]
    MOST
}

/// Whether an error concerns only the connection that was being accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::timeout;

    use super::*;

    /// Authenticates each connection that sends a request.
    #[derive(Clone)]
    struct Greeter;

    impl ConnectionService for Greeter {
        fn call(&self, connection: &ConnectionState, request: Request) -> ServiceFuture {
            let token = request.headers().get("x-token").and_then(|it| it.to_str().ok());
            let principal = token.map_or(Principal::Anonymous, |it| Principal::Token(it.into()));
            let response = match connection.authenticate(&principal) {
                Ok(()) => "hello".into_response(),
                Err(refusal) => refusal.into_response(),
            };
            Box::pin(async { Ok(response) })
        }
    }

    async fn ask(stream: &mut TcpStream) -> io::Result<usize> {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await?;
        stream.read(&mut [0; 512]).await
    }

    #[tokio::test]
    async fn silent_connection_is_evicted_for_a_new_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve_connections(3, Greeter, listener, std::future::pending(), |_| ()));
        let connect = || TcpStream::connect(address);
        let mut guest = connect().await.unwrap();
        assert!(ask(&mut guest).await.unwrap() > 0);
        let mut silent = Vec::new();
        for _ in 0..20 {
            silent.push(connect().await.unwrap());
        }
        let mut late = connect().await.unwrap();
        let incoming = timeout(Duration::from_secs(30), ask(&mut late)).await;
        assert!(incoming.expect("room in time").unwrap() > 0);
        let end = timeout(Duration::from_secs(30), silent[0].read(&mut [0; 1])).await;
        assert!(matches!(end.expect("an end in time"), Ok(0) | Err(_)));
        assert!(ask(&mut guest).await.unwrap() > 0, "those who are known stay");
    }

    /// In one piece or in several.
    #[tokio::test]
    async fn a_head_is_refused_from_its_bound_on() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve_connections(3, Greeter, listener, std::future::pending(), |_| ()));
        let (start, end) = ("GET / HTTP/1.1\r\nHost: x\r\nX: ", "\r\n\r\n");
        let room = HEAD_BYTES - start.len() - end.len();
        for pieces in [1, 3, 100] {
            for (extra, status) in
                [(0, "HTTP/1.1 200"), (1, "HTTP/1.1 431"), (9_000, "HTTP/1.1 431")]
            {
                let head = format!("{start}{}{end}", "x".repeat(room + extra));
                let mut stream = TcpStream::connect(address).await.unwrap();
                for piece in head.as_bytes().chunks(head.len().div_ceil(pieces)) {
                    // It may have been rejected already.
                    if stream.write_all(piece).await.is_err() {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
                let mut answer = [0; 12];
                let read = timeout(Duration::from_secs(30), stream.read_exact(&mut answer)).await;
                // After an early rejection the connection may be reset before the response is read.
                if read.expect("an answer in time").is_ok() || extra == 0 {
                    assert_eq!(&answer, status.as_bytes(), "{extra} more in {pieces} pieces");
                }
            }
        }
    }

    /// The response to a request of a token.
    async fn ask_as(stream: &mut TcpStream, token: &str) -> String {
        let request = format!("GET / HTTP/1.1\r\nHost: x\r\nX-Token: {token}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 1024];
        let read = timeout(Duration::from_secs(30), stream.read(&mut answer)).await;
        String::from_utf8_lossy(&answer[..read.unwrap().unwrap()]).into_owned()
    }

    #[tokio::test]
    async fn one_token_does_not_take_all_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve_connections(8, Greeter, listener, std::future::pending(), |_| ()));
        let mut anns = Vec::new();
        for number in 0..20 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let answer = ask_as(&mut stream, "ann").await;
            let is_let_in = answer.starts_with("HTTP/1.1 200");
            assert_eq!(is_let_in, number < 4, "{number} {answer}");
            assert!(is_let_in || answer.contains("retry-after"), "{answer}");
            anns.push(stream);
        }
        let mut bob = TcpStream::connect(address).await.unwrap();
        assert!(ask_as(&mut bob, "bob").await.starts_with("HTTP/1.1 200"));
        // Closed connections are free again.
        anns.truncate(3);
        let let_in = async {
            loop {
                let mut stream = TcpStream::connect(address).await.unwrap();
                if ask_as(&mut stream, "ann").await.starts_with("HTTP/1.1 200") {
                    return;
                }
            }
        };
        timeout(Duration::from_secs(30), let_in).await.expect("room in time");
        assert!(ask_as(&mut anns[0], "ann").await.starts_with("HTTP/1.1 200"));
    }

    /// Also those that were last in the queue when they were unauthenticated.
    #[tokio::test]
    async fn authenticated_connections_are_not_evicted() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve_connections(2, Greeter, listener, std::future::pending(), |_| ()));
        let mut guests = Vec::new();
        for _ in 0..2 {
            let mut guest = TcpStream::connect(address).await.unwrap();
            assert!(ask(&mut guest).await.unwrap() > 0);
            guests.push(guest);
        }
        let mut late = TcpStream::connect(address).await.unwrap();
        late.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        // All of them are served by one thread, in turn.
        for turn in 0..20 {
            assert!(ask(&mut guests[turn % 2]).await.unwrap() > 0, "those who are known stay");
        }
        let mut answer = [0; 512];
        let waits = late.try_read(&mut answer);
        assert_eq!(waits.unwrap_err().kind(), io::ErrorKind::WouldBlock, "there is no room");
        guests.pop();
        let read = timeout(Duration::from_secs(30), late.read(&mut answer)).await;
        assert!(read.expect("room in time").unwrap() > 0);
    }
}
