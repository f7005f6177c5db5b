//! Serves one client of either era over a pair of streams, with one message per line.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use trunkline::host::Host;
use trunkline::message::{Message, Notification, Raw, Request, RpcError};
use trunkline::principal::{ClientId, Principal, RequestPath};

use super::limiter::ConcurrencyLimit;
use super::ndjson::{InputLine, LineReader};
use crate::access::budget::{ByteBudget, Reservation};
use crate::access::scope::CallerIdentity;
use crate::client::caller::{Caller, Lease, SessionlessIds, StreamLease};
use crate::client::cancellation::Cancellation;
use crate::client::channel::{ClientChannel, OutboundChannel, StreamReceiver, StreamSender};
use crate::client::in_flight::InFlightRequests;
use crate::client::session::{Session, SessionStream, new_id, requester_of};
use crate::handlers::gateway::Gateway;
use crate::handlers::notify::cancelled_id;
use crate::handlers::{discover, dispatch, request_log};
use crate::options::{Limits, StreamOptions};
use crate::request::errors::{
    duplicate_id, error_message, handler_panicked, no_session, require_modern, too_long,
    too_many_requests,
};
use crate::request::incoming::{ClientProfile, IncomingRequest, claims_modern};
use crate::request::response::{ResponseLine, RpcResult, response};
use crate::request::{malformed, panics};

/// Time in which a client with too many pending requests has to read their responses.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Time for pending requests after the client has closed its side.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Pending requests, including responses that wait to be read.
const MAX_REQUESTS: usize = 4096;

/// Limit in bytes of pending requests; above it nothing is read. The message that is being read can
/// exceed it by one of the longest.
const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

/// Bytes per write.
const MAX_BATCH: usize = 64 * 1024;

/// Serves one client over a pair of streams, until the reader ends or the host shuts down. Pending
/// requests then get a short time to complete.
///
/// # Errors
///
/// When the reader or the writer fails. A malformed message gets an error response.
///
/// # Panics
///
/// Outside of a tokio runtime.
pub async fn serve_stream<R, W>(
    host: Host,
    options: impl Into<StreamOptions>,
    reader: R,
    writer: W,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let StreamOptions { scope, observer } = options.into();
    let limits = Limits::default();
    let (outlet, inbox) = StreamSender::new();
    let is_writing = Arc::new(AtomicBool::new(false));
    let identity = Arc::new(CallerIdentity::new(scope, Principal::Anonymous));
    let peer = StdioClient {
        gateway: Gateway::new(host, &limits, observer.map(|it| it.0)),
        identity,
        client: new_id(),
        outlet,
        session: None,
        requests: JoinSet::new(),
        in_flight: Arc::default(),
        turns: ConcurrencyLimit::new(),
        bytes: ByteBudget::new(MAX_REQUEST_BYTES, MAX_REQUEST_BYTES),
        closed: watch::Sender::new(false),
        is_writing: Arc::clone(&is_writing),
        is_reading: true,
    };
    tokio::select! {
        read = peer.read(LineReader::new(reader, limits.message_bytes)) => read,
        written = write(inbox, writer, &is_writing) => written,
    }
}

/// Writes messages as they are queued, several in one write if possible.
async fn write(
    mut inbox: StreamReceiver,
    mut writer: impl AsyncWrite + Unpin,
    is_writing: &AtomicBool,
) -> io::Result<()> {
    let mut batch = Vec::new();
    while let Some(message) = inbox.next().await {
        is_writing.store(true, Ordering::Relaxed);
        let mut next = Some(message);
        while let Some(message) = next {
            for part in message.iter() {
                if part.len() > MAX_BATCH {
                    // Long parts are not copied.
                    writer.write_all(&batch).await?;
                    writer.write_all(part).await?;
                    batch.clear();
                } else {
                    batch.extend_from_slice(part);
                }
            }
            batch.push(b'\n');
            next = if batch.len() < MAX_BATCH { inbox.try_next() } else { None };
        }
        writer.write_all(&batch).await?;
        writer.flush().await?;
        is_writing.store(false, Ordering::Relaxed);
        batch.clear();
    }
    // The reading side decides when to end.
    std::future::pending().await
}

/// The client, and the state of its connection.
struct StdioClient {
    gateway: Arc<Gateway>,
    identity: Arc<CallerIdentity>,
    /// Which client it is where it has no session.
    client: ClientId,
    outlet: StreamSender,
    /// The session of a legacy client.
    session: Option<Arc<Session>>,
    /// Tasks of requests and of messages that wait to be sent.
    requests: JoinSet<()>,
    /// Requests of both eras, which share one space of IDs.
    in_flight: Arc<InFlightRequests>,
    turns: ConcurrencyLimit,
    /// Bytes of pending requests.
    bytes: Arc<ByteBudget>,
    /// Whether reading has ended, for `subscriptions/listen`.
    closed: watch::Sender<bool>,
    /// Whether a message is being written.
    is_writing: Arc<AtomicBool>,
    /// Whether the client has read messages since the last timeout.
    is_reading: bool,
}

impl StdioClient {
    async fn read(mut self, mut lines: LineReader<impl AsyncRead + Unpin>) -> io::Result<()> {
        let gateway = Arc::clone(&self.gateway);
        let mut ending = std::pin::pin!(gateway.host.shutdown_started());
        loop {
            tokio::select! {
                // Finished requests free their bytes, which wakes this loop.
                line = lines.next(), if self.bytes.has_room() => match line? {
                    None => break,
                    Some(InputLine::TooLong) => {
                        let error = too_long(Limits::default().message_bytes);
                        self.send(error_message(None, &error)).await;
                    }
                    Some(InputLine::Message(message)) => self.receive(&message).await,
                },
                Some(_) = self.requests.join_next() => {}
                () = &mut ending => break,
            }
        }
        self.closed.send_replace(true);
        // After the timeout the rest is dropped.
        let _ = timeout(LAST_ANSWERS, async {
            while self.requests.join_next().await.is_some() {}
            while !self.outlet.is_empty() || self.is_writing.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        Ok(())
    }

    /// Sends a message. If too many wait, a client that reads gets this one a little later; one that
    /// has not read for a while gets it no more, because it may still close its side.
    async fn send(&mut self, message: Bytes) {
        let Err(message) = self.outlet.offer(message.into()) else {
            self.is_reading = true;
            return;
        };
        let outlet = self.outlet.clone();
        if self.requests.len() < MAX_REQUESTS {
            self.requests.spawn(async move { outlet.send(message).await });
        } else if self.is_reading {
            self.is_reading = timeout(UNREAD_TIMEOUT, outlet.send(message)).await.is_ok();
        }
    }

    async fn receive(&mut self, message: &Bytes) {
        match Message::read(message) {
            Ok(Message::Request(request)) => {
                let id = request.id.clone();
                let held = self.bytes.take(&self.identity.principal, message.len());
                let begun = panics::result_of(|| self.on_request(request, held));
                if let Err(error) = begun.unwrap_or_else(|| Err(handler_panicked())) {
                    self.send(response(&id, Err(error))).await;
                }
            }
            Ok(Message::Notification(notification)) => {
                // There is no response to a notification; a panic is only logged.
                let _ = panics::outcome_of(self.on_notification(notification)).await;
            }
            Ok(Message::Response(answer)) => {
                if let Some(session) = &self.session {
                    session.server_requests.on_response(answer);
                }
            }
            Err(malformed) => {
                let (id, error) = malformed::parse_error(message, malformed);
                self.send(error_message(id.as_ref(), &error)).await;
            }
        }
    }

    async fn on_notification(&mut self, notification: Notification) {
        let Some(id) = cancelled_id(&notification) else {
            let own = || requester_of(&self.client, &self.identity);
            let requester = self.session.as_ref().map_or_else(own, |session| session.requester());
            let relayed = self.gateway.relay_notification(&self.identity, &requester, notification);
            return relayed.await;
        };
        self.in_flight.cancel(&id, notification.params.as_ref());
    }

    /// Starts a request, unless it cannot be handled.
    fn on_request(&mut self, request: Request, held: Reservation) -> Result<(), RpcError> {
        let (id, incoming) = (request.id.clone(), IncomingRequest::of(request));
        let running = self.in_flight.begin(&id).ok_or_else(duplicate_id)?;
        let caller = self.caller(&incoming, running.cancellation())?;
        if self.requests.len() >= MAX_REQUESTS {
            return Err(too_many_requests(MAX_REQUESTS));
        }
        let (outlet, written) = (self.outlet.clone(), id.clone());
        // Boxed first, because each step around the future moves it.
        let request = running.run(Box::pin(self.handle(caller, incoming, held)));
        self.requests.spawn(async move {
            if panics::outcome_of(request).await.is_none() {
                outlet.send(response(&written, Err(handler_panicked())).into()).await;
            }
        });
        Ok(())
    }

    /// Handles a request and sends its response.
    fn handle(
        &self,
        caller: Caller,
        incoming: Box<IncomingRequest>,
        held: Reservation,
    ) -> impl Future<Output = ()> + use<> {
        let (gateway, outlet) = (Arc::clone(&self.gateway), self.outlet.clone());
        let (turns, id) = (self.turns.clone(), incoming.id.clone());
        async move {
            #[cfg(test)]
            assert_ne!(&*incoming.method, "test/panic-unanswered");
            let _turn = turns.next(&incoming.method).await;
            // A client that does not read gets no more responses.
            outlet.room().await;
            let answer = match (&*incoming.method, &caller.session) {
                ("initialize", Some(session)) => opened(&gateway, &caller, session).await,
                _ => dispatch::handle(gateway, caller, incoming).await,
            };
            drop(held);
            outlet.send(ResponseLine::of(&id, answer)).await;
        }
    }

    /// The caller of a request, from its `_meta` or the session.
    fn caller(
        &mut self,
        incoming: &IncomingRequest,
        cancellation: Cancellation,
    ) -> Result<Caller, RpcError> {
        let channel = ClientChannel::new(OutboundChannel::Stream(self.outlet.clone()))
            .with_cancellation(cancellation);
        if claims_modern(incoming) {
            let client = ClientProfile::of_request(&incoming.meta)?;
            require_modern(&client.version)?;
            return Ok(Caller {
                client: Arc::new(client),
                identity: Arc::clone(&self.identity),
                level: incoming.level()?,
                channel,
                session: None,
                admission: self.lease(),
                path: RequestPath::default(),
                ids: SessionlessIds::default(),
            });
        }
        if &*incoming.method == "initialize" {
            self.session = Some(Arc::new(self.opened_by(&incoming.params)?));
        }
        let Some(session) = &self.session else { return Err(no_session()) };
        Ok(Caller {
            client: Arc::clone(&session.client),
            identity: Arc::clone(&self.identity),
            level: Some(session.level()),
            channel: channel.with_server_requests(Arc::clone(&session.server_requests)),
            session: Some(Arc::clone(session)),
            admission: self.lease(),
            path: RequestPath::default(),
            ids: SessionlessIds::default(),
        })
    }

    fn lease(&self) -> Lease {
        Lease::Stream(StreamLease { client: self.client.clone(), closed: self.closed.subscribe() })
    }

    fn opened_by(&self, params: &Raw) -> Result<Session, RpcError> {
        let client = ClientProfile::of_initialize(params)?;
        let stream = Arc::new(StdioStream(self.outlet.clone()));
        let host = self.gateway.host.clone();
        Ok(Session::new(new_id(), host, client, Arc::clone(&self.identity), stream))
    }
}

/// The only stream to a stdio client.
struct StdioStream(StreamSender);

impl SessionStream for StdioStream {
    fn notify(&self, message: Bytes) {
        // A client that reads too slowly misses it.
        let _ = self.0.offer(message.into());
    }

    fn is_read(&self) -> bool {
        self.0.has_room()
    }
}

async fn opened(gateway: &Arc<Gateway>, caller: &Caller, session: &Session) -> RpcResult {
    let instructions = gateway.instructions(caller).await?;
    gateway.start_notifications(session);
    request_log::session_opened(&session.client);
    Ok(discover::initialize_result(&session.client, instructions).into())
}
