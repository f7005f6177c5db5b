//! Starts a server and negotiates the protocol with it (CON-2, CON-4).

pub(super) mod closing;
mod requests;
mod process_start;
mod stream;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, watch};
use tokio::time::{Instant, timeout_at};

use super::cache::NegotiatedProtocol;
use super::credentials::request_auth;
use super::handler::untrusted;
use super::options::ConnectionOptions;
use super::pagination::ItemList;
use super::published::PublishedState;
use super::references::resolve_transport;
use super::session::{RequestIds, RequestOutcome, Session, shutting_down};
use super::state::error_context::{
    list_timeout, start_timeout, with_next_step, with_server_stderr, with_stderr,
};
use super::state::status::ServerDescription;
use crate::config::{
    Fingerprint, Protocol, RemoteTransport, ResolvedTransport, Server, ServerSettings, Timeouts,
    Transport,
};
use crate::error::{Error, ErrorKind};
use crate::message::Raw;
use crate::protocol::Era;
use crate::transport::http::HttpTransport;
use crate::transport::sse::SseTransport;
use crate::transport::{AnyTransport, HttpEndpoint};
use closing::SessionClosings;

pub(super) use requests::requires_modern;
use requests::{InitializeOutcome, ProbeOutcome, unsupported_version};
pub(super) use stream::StreamUse;

/// Timeout of `server/discover`, before `initialize` is sent as well. Most servers respond at once;
/// some are still being downloaded; some never respond, and receive `initialize` once more after a
/// restart.
const PROBE: Duration = Duration::from_secs(8);

/// A server after a successful handshake.
pub(super) struct ConnectedServer {
    pub(super) session: Session,
    pub(super) described: ServerDescription,
    pub(super) spoken: NegotiatedProtocol,
    pub(super) tools: ItemList,
}

/// Performs the start of a server.
pub(super) struct ServerConnector<'o> {
    pub(super) server: &'o Server,
    /// The limits and settings of this start.
    pub(super) behaviour: Arc<ServerSettings>,
    pub(super) fingerprint: &'o Fingerprint,
    pub(super) options: &'o ConnectionOptions,
    pub(super) ids: &'o RequestIds,
    pub(super) published: &'o Arc<PublishedState>,
    /// Sessions of failed handshakes that are closing.
    pub(super) endings: &'o SessionClosings,
    /// Turns true when the start is cancelled.
    pub(super) stop: watch::Receiver<bool>,
    /// The transport with its references resolved, once for all processes of this start.
    pub(super) transport: OnceCell<ResolvedTransport>,
    /// Whether this start uses a stream.
    pub(super) streams: StreamUse,
    /// The last stderr lines of an earlier process of this start, for an error of the next one.
    pub(super) earlier: Mutex<Vec<String>>,
}

/// A session after a successful negotiation.
type NegotiatedSession = (Session, ServerDescription);

impl ServerConnector<'_> {
    /// Starts the server, in any era, and lists its tools.
    pub(super) async fn open(&self) -> Result<ConnectedServer, Error> {
        match self.open_once().await {
            // The process that an earlier client has used may have been about to end. This one has sent it the
            // handshake and nothing else.
            Err(error)
                if self.streams.is_reused()
                    && !matches!(error.kind(), ErrorKind::ShuttingDown | ErrorKind::TimedOut) =>
            {
                self.streams.avoid();
                self.open_once().await
            }
            opened => opened,
        }
    }

    async fn open_once(&self) -> Result<ConnectedServer, Error> {
        self.options.chain().check_identity(&self.server.identity).map_err(|error| {
            Error::new(ErrorKind::StartFailed, error.to_string()).with_hint(error.hint())
        })?;
        self.transport().await?;
        let deadline = Instant::now() + self.timeouts().handshake;
        tokio::select! {
            room = self.endings.make_room(halfway_to(deadline)) => room?,
            () = self.wait_for_stop() => return Err(shutting_down()),
        }
        let agreed = self.negotiate(deadline).await;
        let (mut session, described) = agreed.map_err(|error| self.with_earlier_stderr(error))?;
        let described = match described.bounded() {
            Ok(described) => described,
            Err(error) => return Err(self.failed(session, error, deadline).await),
        };
        let spoken = negotiated_in(&session);
        self.options.cache().insert(*self.fingerprint, spoken);
        let deadline = Instant::now() + self.timeouts().list;
        match self.list_tools(&mut session, deadline).await {
            Ok(tools) => {
                let described = untrusted::sanitized_description(self.server.trust, described);
                Ok(ConnectedServer { session, described, spoken, tools })
            }
            Err(error) => Err(self.list_failed(session, error, deadline).await),
        }
    }

    /// Negotiates with the configured protocol, the cached one, or by detection.
    async fn negotiate(&self, deadline: Instant) -> Result<NegotiatedSession, Error> {
        let declared = self.declared_transport();
        match (self.server.behaviour.protocol, self.options.cache().negotiated(self.fingerprint)) {
            (Protocol::Legacy, None) => {
                self.initialize_or_sse(self.start(declared, deadline).await?, deadline).await
            }
            (Protocol::Modern, _) => {
                self.negotiate_modern(self.start(declared, deadline).await?, deadline).await
            }
            (Protocol::Auto, None) => self.detect(deadline).await,
            (pinned, Some(spoken)) => match self.negotiate_as_cached(spoken, deadline).await {
                Err(error) if is_protocol_mismatch(error.kind()) => {
                    // The server has changed since.
                    self.options.cache().remove(self.fingerprint);
                    match pinned {
                        Protocol::Legacy => {
                            self.initialize_or_sse(self.start(declared, deadline).await?, deadline)
                                .await
                        }
                        _ => self.detect(deadline).await,
                    }
                }
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    // No time is left for detection; the next start performs it.
                    self.options.cache().remove(self.fingerprint);
                    Err(error)
                }
                agreed => agreed,
            },
        }
    }

    /// Negotiates with the cached protocol.
    async fn negotiate_as_cached(
        &self,
        spoken: NegotiatedProtocol,
        deadline: Instant,
    ) -> Result<NegotiatedSession, Error> {
        let session = self.start(spoken.transport, deadline).await?;
        if spoken.is_modern {
            self.negotiate_modern(session, deadline).await
        } else {
            self.initialize_session(session, deadline).await
        }
    }

    /// Starts a process, or prepares a remote transport.
    async fn start(&self, spoken: RemoteTransport, deadline: Instant) -> Result<Session, Error> {
        if *self.stop.borrow() {
            return Err(shutting_down());
        }
        let transport = self.transport().await?;
        if let Some(stream) = self.open_stream(transport, deadline).await? {
            return Ok(self.session(AnyTransport::Stream(Box::new(stream))));
        }
        let wire = match transport {
            ResolvedTransport::Stdio(program) => {
                AnyTransport::Stdio(Box::new(self.start_process(program, deadline).await?))
            }
            ResolvedTransport::Remote(remote) => {
                let target = HttpEndpoint::new(remote)?;
                let auth = request_auth(self.server, remote, self.options, &target)?;
                let client = self.options.client()?.with_auth(auth.clone());
                let target = target.with_auth(auth);
                match spoken {
                    RemoteTransport::Sse => {
                        let opened = SseTransport::open(client, target);
                        let wire = tokio::select! {
                            opened = timeout_at(deadline, opened) => opened.map_err(|_| self.timeout_error())??,
                            () = self.wait_for_stop() => return Err(shutting_down()),
                        };
                        AnyTransport::Sse(Box::new(wire))
                    }
                    _ => AnyTransport::Http(Box::new(HttpTransport::new(client, target))),
                }
            }
        };
        Ok(self.session(wire))
    }

    /// A session on a transport.
    fn session(&self, wire: AnyTransport) -> Session {
        self.published.set_stderr(wire.stderr_tail());
        let client_meta = self.options.client_meta();
        let handler = self.options.handler();
        let handler = handler.map(|it| untrusted::sanitizing_handler(self.server.trust, it));
        let answering = (handler, self.server.name.clone(), self.timeouts().question);
        let mask = self.server.behaviour.redact.then(|| wire.stderr_tail().mask());
        let mut session = Session::new(wire, self.ids.next(), client_meta, answering);
        session.mask = mask;
        session
    }

    /// Resolves the references of the transport. It has its own timeout, because it does not depend
    /// on the server.
    async fn transport(&self) -> Result<&ResolvedTransport, Error> {
        let bound = Instant::now() + self.timeouts().connect;
        let resolved = || resolve_transport(self.server, self.options, bound);
        tokio::select! {
            transport = self.transport.get_or_try_init(resolved) => transport,
            () = self.wait_for_stop() => Err(shutting_down()),
        }
    }

    /// The configured transport of a remote server.
    fn declared_transport(&self) -> RemoteTransport {
        match &self.server.transport {
            Transport::Remote(remote) => remote.protocol,
            Transport::Stdio(_) => RemoteTransport::Streamable,
        }
    }

    /// Detects the era of the server, restarting it where needed.
    async fn detect(&self, deadline: Instant) -> Result<NegotiatedSession, Error> {
        let mut session = self.start(self.declared_transport(), deadline).await?;
        if self.declared_transport() == RemoteTransport::Sse {
            return self.initialize_or_sse(session, deadline).await;
        }
        // A server that does not know `server/discover` needs time for `initialize`.
        let bound = Instant::now() + PROBE.min(self.timeouts().handshake / 2);
        match self.probe(&mut session, deadline.min(bound)).await {
            ProbeOutcome::Modern(described) => Ok((session, described)),
            ProbeOutcome::Legacy => self.initialize_or_sse(session, deadline).await,
            ProbeOutcome::Hopeless(error) => Err(self.failed(session, error, deadline).await),
            ProbeOutcome::Silent => self.initialize_silent(session, deadline).await,
            ProbeOutcome::Spoiled(_) => {
                self.close(session, halfway_to(deadline)).await;
                self.initialize_or_sse(
                    self.start(self.declared_transport(), deadline).await?,
                    deadline,
                )
                .await
            }
        }
    }

    /// Negotiates the modern era only.
    async fn negotiate_modern(
        &self,
        mut session: Session,
        deadline: Instant,
    ) -> Result<NegotiatedSession, Error> {
        let error = match self.probe(&mut session, deadline).await {
            ProbeOutcome::Modern(described) => return Ok((session, described)),
            ProbeOutcome::Hopeless(error) => error,
            ProbeOutcome::Silent => self.timeout_error(),
            // The end of the process is more specific than a missing response.
            ProbeOutcome::Spoiled(error) if error.kind() != ErrorKind::ProtocolViolation => error,
            ProbeOutcome::Legacy | ProbeOutcome::Spoiled(_) => {
                let message = "it does not speak revision 2026-07-28 of the protocol";
                let error = Error::new(ErrorKind::ProtocolViolation, message);
                match self.server.behaviour.protocol {
                    Protocol::Modern => error.with_hint("`protocol` says that it does"),
                    _ => error,
                }
            }
        };
        Err(self.failed(session, error, deadline).await)
    }

    /// Sends `initialize` to a process that has not responded: it may be slow to start, or not know
    /// `server/discover`. If it stays silent, the first request may have confused it, and it is
    /// restarted.
    async fn initialize_silent(
        &self,
        mut session: Session,
        deadline: Instant,
    ) -> Result<NegotiatedSession, Error> {
        match self.initialize(&mut session, halfway_to(deadline)).await {
            Ok(InitializeOutcome::Agreed(described)) => Ok((session, described)),
            Ok(InitializeOutcome::WantsModern) => self.negotiate_modern(session, deadline).await,
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                self.close(session, halfway_to(deadline)).await;
                self.initialize_or_sse(
                    self.start(self.declared_transport(), deadline).await?,
                    deadline,
                )
                .await
            }
            Err(error) => Err(self.failed(session, error, deadline).await),
        }
    }

    /// Performs the legacy handshake. A remote server without a configured transport falls back to
    /// HTTP+SSE.
    async fn initialize_or_sse(
        &self,
        session: Session,
        deadline: Instant,
    ) -> Result<NegotiatedSession, Error> {
        let error = match self.initialize_session(session, deadline).await {
            Err(error) => error,
            agreed => return agreed,
        };
        let is_other = match error.kind() {
            ErrorKind::HttpStatus(status) => (400..=499).contains(&status) && status != 429,
            kind => kind == ErrorKind::ProtocolViolation,
        };
        if self.declared_transport() != RemoteTransport::Detect || !is_other {
            return Err(error);
        }
        // If that fails as well, the first error is the more useful one.
        let Ok(session) = self.start(RemoteTransport::Sse, deadline).await else {
            return Err(error);
        };
        self.initialize_session(session, deadline).await.map_err(|_| error)
    }

    /// Performs the legacy handshake.
    async fn initialize_session(
        &self,
        mut session: Session,
        deadline: Instant,
    ) -> Result<NegotiatedSession, Error> {
        let error = match self.initialize(&mut session, deadline).await {
            Ok(InitializeOutcome::Agreed(described)) => return Ok((session, described)),
            Ok(InitializeOutcome::WantsModern) => unsupported_version(),
            Err(error) => error,
        };
        Err(self.failed(session, error, deadline).await)
    }

    /// Sends a request and waits for the response, unless the start is cancelled.
    async fn request(
        &self,
        session: &mut Session,
        method: &str,
        params: Option<Raw>,
        deadline: Instant,
    ) -> RequestOutcome {
        tokio::select! {
            biased;
            () = self.wait_for_stop() => Err(shutting_down().into()),
            answer = session.exchange(self.ids.next(), method, params, deadline) => {
                answer.map_err(|error| {
                    error.map_failure(|error| self.with_timeout_name(error, method))
                })
            }
        }
    }

    /// Names the timeout in the error of a request that timed out.
    fn with_timeout_name(&self, error: Error, method: &str) -> Error {
        let timeouts = self.timeouts();
        match (error.kind(), method) {
            (ErrorKind::TimedOut, "tools/list") => list_timeout(timeouts.list),
            (ErrorKind::TimedOut, _) => start_timeout(timeouts.handshake),
            _ => error,
        }
    }

    /// Waits until the start is cancelled.
    async fn wait_for_stop(&self) {
        if self.stop.clone().wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn timeout_error(&self) -> Error {
        start_timeout(self.timeouts().handshake)
    }

    fn timeouts(&self) -> &Timeouts {
        &self.behaviour.timeouts
    }

    /// Closes the session of a failed handshake, and its server. After `until` this continues in
    /// the background: a process that ignores SIGTERM does not delay the caller.
    async fn close(&self, session: Session, until: Instant) {
        let lines = session.transport().stderr_lines();
        if !lines.is_empty() {
            *self.earlier_stderr() = lines;
        }
        self.endings.end(session, (self.server, self.options), self.published, until).await;
    }

    /// Stops a server after a failed negotiation, and adds its last stderr lines to the error.
    async fn failed(&self, session: Session, error: Error, deadline: Instant) -> Error {
        let noise = session.noise;
        self.published.record_noise(&session);
        self.close(session, deadline).await;
        let lines = self.earlier_stderr().clone();
        match &self.server.transport {
            Transport::Remote(_) if error.kind() == ErrorKind::TimedOut => {
                error.with_hint("`timeouts.handshake` is the bound: raise it if the server is slow")
            }
            _ => with_next_step(with_stderr(error, &lines, noise)),
        }
    }

    /// Stops a server that did not list its tools, and adds its last stderr lines to the error.
    async fn list_failed(&self, session: Session, error: Error, deadline: Instant) -> Error {
        let noise = session.noise;
        self.published.record_noise(&session);
        self.close(session, deadline).await;
        with_next_step(with_server_stderr(error, &self.earlier_stderr().clone(), noise))
    }
}

impl ServerConnector<'_> {
    fn earlier_stderr(&self) -> MutexGuard<'_, Vec<String>> {
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the stderr lines of an earlier process to the error of a start that timed out.
    fn with_earlier_stderr(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::TimedOut => with_stderr(error, &self.earlier_stderr(), 0),
            _ => error,
        }
    }
}

/// The middle of the remaining time.
fn halfway_to(deadline: Instant) -> Instant {
    let now = Instant::now();
    now + deadline.saturating_duration_since(now) / 2
}

/// Whether an error indicates that the server does not support the negotiated protocol.
fn is_protocol_mismatch(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ProtocolViolation | ErrorKind::HttpStatus(_))
}

fn negotiated_in(session: &Session) -> NegotiatedProtocol {
    NegotiatedProtocol {
        is_modern: session.version.era() == Era::Modern,
        transport: match session.transport() {
            AnyTransport::Sse(_) => RemoteTransport::Sse,
            AnyTransport::Http(_) | AnyTransport::Stdio(_) | AnyTransport::Stream(_) => {
                RemoteTransport::Streamable
            }
        },
    }
}
