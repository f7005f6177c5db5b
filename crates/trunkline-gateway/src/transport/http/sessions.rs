//! Sessions of legacy clients over HTTP, and their event streams.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use foldhash::HashMap;
use futures_util::StreamExt as _;
use tokio::time::{Instant, interval};
use tracing::debug;
use trunkline::principal::{ClientId, Evictable, FairShare, Principal};
use trunkline::protocol::{Era, ProtocolVersion};

use super::event_stream::{self, EventStream};
use super::retained_events::{RetainedEvents, SessionRetention};
use super::unread::UnreadBudgets;
use crate::access::budget::{BudgetExhausted, ByteBudget, Reservation, UnreadMessages};
use crate::access::scope::CallerIdentity;
use crate::client::caller::Lease;
use crate::client::in_flight::InFlightRequests;
use crate::client::session::{self, Session, SessionStream};
use crate::handlers::gateway::Gateway;
use crate::options::Limits;
use crate::request::incoming::ClientProfile;
use crate::request::mcp_headers::VERSION;

pub(super) static SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The first protocol version with priming events: events without content that make a stream
/// resumable.
const FIRST_PRIMED_VERSION: &str = ProtocolVersion::LATEST_LEGACY.as_str();

/// Time for which a finished stream can be resumed.
const KEPT: Duration = Duration::from_secs(60);

/// Limit of finished streams per session.
const MAX_STREAMS: usize = 1024;

/// Limit on the bytes of the `clientInfo` and capabilities of all sessions: 6 KiB for each of
/// 10,000 sessions; most have 300 bytes.
const MAX_IDENTITY_BYTES_OF_ALL: usize = 64 * 1024 * 1024;

/// Limit on the bytes of the `clientInfo` and capabilities of one principal's sessions.
const MAX_IDENTITY_BYTES_OF_ONE: usize = 16 * 1024 * 1024;

/// Interval of the removal of idle sessions and expired streams.
const SWEEP: Duration = Duration::from_secs(10);

/// All sessions.
pub(super) struct Sessions {
    gateway: Arc<Gateway>,
    limits: Limits,
    open: Mutex<HashMap<ClientId, Arc<HttpSession>>>,
    finished: Mutex<FinishedStreams>,
    retained: Arc<RetainedEvents>,
    /// Budget for `clientInfo` and capabilities.
    identities: Arc<ByteBudget>,
    pub(super) unread: UnreadBudgets,
}

/// Finished streams of all sessions, oldest first; some may have been removed already.
#[derive(Default)]
struct FinishedStreams(VecDeque<(Weak<HttpSession>, u64, Instant)>);

impl FinishedStreams {
    fn add(&mut self, session: &Arc<HttpSession>, number: u64) {
        self.0.push_back((Arc::downgrade(session), number, Instant::now()));
    }

    /// Removes the streams that were finished before this time.
    fn sweep(&mut self, before: Instant) {
        while let Some((session, number, _)) = self.0.pop_front_if(|(.., since)| *since <= before) {
            if let Some(session) = session.upgrade() {
                session.remove_stream(number);
            }
        }
    }
}

/// A session over HTTP.
pub(super) struct HttpSession {
    pub(super) session: Arc<Session>,
    pub(super) requests: Arc<InFlightRequests>,
    /// The stream for messages that belong to no request.
    stream: Arc<EventStream>,
    streams: Mutex<HashMap<u64, Arc<EventStream>>>,
    /// Numbers of the finished streams, oldest first.
    over: Mutex<VecDeque<u64>>,
    /// Counts the retained bytes of events.
    retention: SessionRetention,
    next: AtomicU64,
    /// Time of the last request with this session ID.
    incoming: Mutex<Instant>,
    /// Counts responses that the client has not read.
    pub(super) unread: UnreadMessages,
    /// The reservation for its `clientInfo` and capabilities, once it is open.
    reservation: Mutex<Option<Reservation>>,
}

impl HttpSession {
    /// Creates a stream for one request.
    pub(super) fn stream(&self) -> Arc<EventStream> {
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let stream = EventStream::new(number, self.unread.clone(), self.retention.clone());
        lock(&self.streams).insert(number, Arc::clone(&stream));
        stream
    }

    /// Retains a finished stream for resumption, and removes the oldest beyond the limit.
    fn retain(&self, number: u64) {
        let mut over = lock(&self.over);
        over.push_back(number);
        let is_full = over.len() > MAX_STREAMS;
        let oldest = over.pop_front_if(|_| is_full);
        drop(over);
        if let Some(oldest) = oldest {
            lock(&self.streams).remove(&oldest);
        }
    }

    /// Removes a finished stream.
    fn remove_stream(&self, number: u64) {
        lock(&self.over).retain(|known| *known != number);
        lock(&self.streams).remove(&number);
    }

    /// A stream as the response to a request.
    pub(super) fn answer(&self, stream: &Arc<EventStream>, after: u64) -> Response {
        events(self.body(stream, after))
    }

    fn body(&self, stream: &Arc<EventStream>, after: u64) -> Body {
        // Older clients treat an event without content as an error.
        let primes = &*self.session.client.version == FIRST_PRIMED_VERSION;
        stream.body(after, primes)
    }

    fn find(&self, number: u64) -> Option<Arc<EventStream>> {
        match number {
            0 => Some(Arc::clone(&self.stream)),
            _ => lock(&self.streams).get(&number).cloned().filter(|stream| !stream.is_evicted()),
        }
    }

    fn is_unused(&self, since: Instant) -> bool {
        self.last_use() < since && !self.requests.is_busy() && !self.stream.is_read()
    }
}

impl Evictable for HttpSession {
    type LastUse = Instant;

    fn holder(&self) -> &Principal {
        &self.session.identity.principal
    }

    fn is_in_use(&self) -> bool {
        !self.is_unused(Instant::now())
    }

    /// Time of the client's last activity: it began a request, had one in flight, or read its
    /// stream.
    fn last_use(&self) -> Instant {
        let ends = [self.requests.last_end(), self.stream.last_disconnect()];
        ends.into_iter().flatten().fold(*lock(&self.incoming), Instant::max)
    }
}

impl SessionStream for EventStream {
    fn notify(&self, message: Bytes) {
        self.push(message);
    }

    fn is_read(&self) -> bool {
        Self::is_read(self)
    }
}

impl Sessions {
    pub(super) fn new(gateway: Arc<Gateway>, limits: Limits) -> Arc<Self> {
        let identities = ByteBudget::new(MAX_IDENTITY_BYTES_OF_ALL, MAX_IDENTITY_BYTES_OF_ONE);
        let (open, finished, retained, unread) = Default::default();
        let sessions =
            Arc::new(Self { gateway, limits, open, finished, retained, identities, unread });
        let weak = Arc::downgrade(&sessions);
        tokio::spawn(async move {
            let mut ticks = interval(SWEEP);
            loop {
                ticks.tick().await;
                let Some(sessions) = weak.upgrade() else { return };
                sessions.sweep(Instant::now());
            }
        });
        sessions
    }

    /// Creates a session that is not open yet: if the client disconnects, nothing remains of it.
    pub(super) fn prepare(
        &self,
        client: ClientProfile,
        identity: &Arc<CallerIdentity>,
    ) -> Arc<HttpSession> {
        let id = session::new_id();
        let principal = identity.principal.of_client(&id);
        let retention = self.retained.of_session(id.clone(), principal.clone());
        let unread = self.unread.notifications_to(principal.clone());
        let stream = EventStream::new(0, unread, retention.clone());
        let tell: Arc<dyn SessionStream> = Arc::clone(&stream) as _;
        let host = self.gateway.host.clone();
        let identity = Arc::clone(identity);
        Arc::new(HttpSession {
            session: Arc::new(Session::new(id, host, client, identity, tell)),
            requests: Arc::default(),
            unread: self.unread.answers_to(principal),
            stream,
            streams: Mutex::default(),
            over: Mutex::default(),
            retention,
            next: AtomicU64::new(0),
            incoming: Mutex::new(Instant::now()),
            reservation: Mutex::default(),
        })
    }

    /// Opens a session. Returns whether the limits permit it.
    pub(super) fn open(&self, session: &Arc<HttpSession>) -> bool {
        let mut open = lock(&self.open);
        let mut ended = Vec::new();
        let has_room = self.has_room_for(session, &mut open, &mut ended);
        if has_room {
            *lock(&session.incoming) = Instant::now();
            open.insert(session.session.id.clone(), Arc::clone(session));
        }
        // Dropping sessions runs other code, which may lock the table.
        drop(open);
        for ended in ended {
            release(&self.gateway, &ended.session);
        }
        has_room
    }

    /// Makes room for a session, evicting others if necessary.
    fn has_room_for(
        &self,
        session: &HttpSession,
        open: &mut HashMap<ClientId, Arc<HttpSession>>,
        ended: &mut Vec<Arc<HttpSession>>,
    ) -> bool {
        if open.len() >= self.limits.sessions {
            let Some(unused) = evict_for(open, session.holder()) else { return false };
            ended.push(unused);
        }
        let bytes = session.session.client.bytes();
        loop {
            let of_whom = match self.identities.reserve(session.holder(), bytes) {
                Ok(reservation) => {
                    *lock(&session.reservation) = Some(reservation);
                    return true;
                }
                Err(BudgetExhausted::Share) => session.holder().clone(),
                Err(BudgetExhausted::Total) => self.identities.largest().unwrap_or_default(),
            };
            let Some(unused) = take_unused(open, &of_whom) else { return false };
            // In-flight requests may still hold the session, but it cannot be found any more.
            drop(lock(&unused.reservation).take());
            ended.push(unused);
        }
    }

    /// The session of a request, if it belongs to the same client; otherwise the error response.
    pub(super) fn find(
        &self,
        identity: &Arc<CallerIdentity>,
        headers: &HeaderMap,
    ) -> Result<Arc<HttpSession>, Box<Response>> {
        let refuse =
            |status: StatusCode, text: &'static str| Box::new((status, text).into_response());
        let Some(id) = headers.get(&SESSION).map(|id| id.to_str().unwrap_or_default()) else {
            let text = "the Mcp-Session-Id header is missing: open a session with `initialize`\n";
            return Err(refuse(StatusCode::BAD_REQUEST, text));
        };
        let found = lock(&self.open).get(id).cloned();
        let found = found.filter(|it| it.session.identity == *identity);
        let Some(session) = found else {
            let text = "there is no such session, or it has ended: open another one\n";
            return Err(refuse(StatusCode::NOT_FOUND, text));
        };
        let version = headers.get(&VERSION).map(|it| it.to_str().unwrap_or_default().trim());
        if version.is_some_and(|version| Era::of_version(version) != Some(Era::Legacy)) {
            let text = "the MCP-Protocol-Version header names no revision that opens sessions\n";
            return Err(refuse(StatusCode::BAD_REQUEST, text));
        }
        *lock(&session.incoming) = Instant::now();
        Ok(session)
    }

    /// Finishes a stream, and retains it for resumption.
    pub(super) fn finish(&self, session: &Arc<HttpSession>, stream: &Arc<EventStream>) {
        stream.finish();
        session.retain(stream.number());
        lock(&self.finished).add(session, stream.number());
    }

    /// Opens the stream for messages that belong to no request, or resumes a broken one. It ends
    /// with the lease: a session depends on its token.
    pub(super) fn open_stream(
        &self,
        identity: &Arc<CallerIdentity>,
        headers: &HeaderMap,
        lease: Lease,
    ) -> Response {
        if !headers.contains_key(&SESSION) && is_modern(headers) {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        }
        let session = match self.find(identity, headers) {
            Ok(session) => session,
            Err(refusal) => return *refusal,
        };
        let accepts = headers.get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or("*/*");
        if !accepts.contains("text/event-stream") && !accepts.contains("*/*") {
            let text = "a stream is text/event-stream: say so in the Accept header\n";
            return (StatusCode::NOT_ACCEPTABLE, text).into_response();
        }
        let last = headers.get("last-event-id").map(|id| id.to_str().unwrap_or_default());
        let (number, after) = match last.map(event_stream::place) {
            None => (0, None),
            Some(Some((number, place))) => (number, Some(place)),
            Some(None) => {
                return (StatusCode::BAD_REQUEST, "there is no such event\n").into_response();
            }
        };
        self.gateway.start_notifications(&session.session);
        match session.find(number) {
            Some(stream) => {
                let body = session.body(&stream, after.unwrap_or_else(|| stream.read()));
                events(until_expired(body, lease))
            }
            None => (StatusCode::NOT_FOUND, "that stream is over\n").into_response(),
        }
    }

    /// Ends a session by request of its client.
    pub(super) fn end(&self, identity: &Arc<CallerIdentity>, headers: &HeaderMap) -> Response {
        if !headers.contains_key(&SESSION) && is_modern(headers) {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        }
        if let Err(refusal) = self.find(identity, headers) {
            return *refusal;
        }
        let id = headers.get(&SESSION).and_then(|id| id.to_str().ok()).unwrap_or_default();
        let ended = lock(&self.open).remove(&ClientId::from(id));
        if let Some(ended) = &ended {
            ended.stream.finish();
            ended.requests.cancel_all();
            release(&self.gateway, &ended.session);
        }
        StatusCode::NO_CONTENT.into_response()
    }

    fn sweep(&self, now: Instant) {
        let before = |pause: Duration| now.checked_sub(pause).unwrap_or(now);
        let idle = now.checked_sub(self.limits.session_idle);
        lock(&self.finished).sweep(before(KEPT));
        let mut ended = Vec::new();
        lock(&self.open).retain(|_, session| {
            let is_unused = idle.is_some_and(|idle| session.is_unused(idle));
            if is_unused {
                ended.push(Arc::clone(session));
            }
            !is_unused
        });
        // Dropping sessions runs other code, which may lock the table.
        for session in ended {
            release(&self.gateway, &session.session);
        }
    }
}

/// Evicts the least recently used idle session of the principal with the most sessions.
fn evict_for(
    open: &mut HashMap<ClientId, Arc<HttpSession>>,
    principal: &Principal,
) -> Option<Arc<HttpSession>> {
    let holders = open.values().map(|session| session.holder());
    let share = FairShare::with_holders(open.len(), holders);
    let id = share.evict_for(principal, open.iter().map(|(id, it)| (id, &**it)))?.clone();
    open.remove(&id)
}

/// Removes the least recently used idle session of a principal.
fn take_unused(
    open: &mut HashMap<ClientId, Arc<HttpSession>>,
    principal: &Principal,
) -> Option<Arc<HttpSession>> {
    let is_out_of_use = |it: &HttpSession| it.holder() == principal && it.is_unused(Instant::now());
    let unused = open.iter().filter(|(_, it)| is_out_of_use(it));
    let oldest = unused.min_by_key(|(_, it)| it.last_use()).map(|(id, _)| id.clone());
    open.remove(&oldest?)
}

fn is_modern(headers: &HeaderMap) -> bool {
    let version = headers.get(&VERSION).and_then(|it| it.to_str().ok());
    version.is_some_and(|version| Era::of_version(version.trim()) != Some(Era::Legacy))
}

/// Closes the dedicated servers of a session.
fn release(gateway: &Arc<Gateway>, session: &Session) {
    debug!("session ended");
    gateway.shown_tools.remove(&session.id);
    let (gateway, id) = (Arc::clone(gateway), session.id.clone());
    tokio::spawn(async move { gateway.host.close_client(id.as_str()).await });
}

/// A body that ends when a lease expires.
fn until_expired(body: Body, lease: Lease) -> Body {
    let expired = async move { lease.expired().await };
    Body::from_stream(body.into_data_stream().take_until(expired))
}

/// An event stream as a response.
pub(super) fn events(body: Body) -> Response {
    let headers = [
        (CONTENT_TYPE.as_str(), "text/event-stream"),
        (CACHE_CONTROL.as_str(), "no-cache"),
        ("x-accel-buffering", "no"),
    ];
    (headers, body).into_response()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
