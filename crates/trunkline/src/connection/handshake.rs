//! Starting a server and agreeing with it on what is spoken (CON-2, CON-4).

pub(super) mod closing;
mod references;
mod requests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, watch};
use tokio::time::{Instant, timeout_at};

use super::cache::Spoken;
use super::handler::untrusted;
use super::options::Options;
use super::pagination::List;
use super::published::Shadow;
use super::session::{Answer, Ids, Session, stopping};
use super::state::error_context::{
    explained, explained_by_server, late_to_list, late_to_start, with_next_step,
};
use super::state::status::Described;
use crate::config::{
    Behaviour, Fingerprint, Protocol, RemoteProtocol, ResolvedTransport, Server, Timeouts,
    Transport,
};
use crate::error::{Error, ErrorKind};
use crate::message::Raw;
use crate::protocol::Era;
use crate::transport::http::HttpWire;
use crate::transport::sse::SseWire;
use crate::transport::stdio::StdioWire;
use crate::transport::{HttpTarget, Wire};
use closing::SessionEndings;
use references::resolved;

pub(super) use requests::asks_for_modern;
use requests::{Initialized, Probed, unknown_revision};

/// How long a server may think about a question that only modern ones understand, before it is asked
/// the older one as well. Most answer at once; some are still being downloaded; some never answer,
/// and are asked the older question once more from a fresh start.
const PROBE: Duration = Duration::from_secs(8);

/// A server that has been started and agreed with.
pub(super) struct Opened {
    pub(super) session: Session,
    pub(super) described: Described,
    pub(super) spoken: Spoken,
    pub(super) tools: List,
}

/// Starts servers.
pub(super) struct Opener<'o> {
    pub(super) server: &'o Server,
    /// The bounds and rules of this start.
    pub(super) behaviour: Arc<Behaviour>,
    pub(super) fingerprint: &'o Fingerprint,
    pub(super) options: &'o Options,
    pub(super) ids: &'o Ids,
    pub(super) shadow: &'o Arc<Shadow>,
    /// Sessions of this server that came to nothing, and are ending.
    pub(super) endings: &'o SessionEndings,
    /// Turns true when the start is not wanted any more.
    pub(super) stop: watch::Receiver<bool>,
    /// The transport with its references filled in, once for all processes of this start.
    pub(super) transport: OnceCell<ResolvedTransport>,
    /// The last lines of a process of this start that has been ended, for an error of the next one.
    pub(super) earlier: Mutex<Vec<String>>,
}

/// A session that both sides agree on.
type Agreed = (Session, Described);

impl Opener<'_> {
    /// Starts the server, whatever it speaks, and lists its tools.
    pub(super) async fn open(&self) -> Result<Opened, Error> {
        self.options.chain().admit_identity(&self.server.identity).map_err(|error| {
            Error::new(ErrorKind::StartFailed, error.to_string()).with_hint(error.hint())
        })?;
        self.transport().await?;
        let deadline = Instant::now() + self.timeouts().handshake;
        tokio::select! {
            room = self.endings.make_room(half_way_to(deadline)) => room?,
            () = self.stopped() => return Err(stopping()),
        }
        let agreed = self.agreed(deadline).await;
        let (mut session, described) = agreed.map_err(|error| self.recalled(error))?;
        let described = match described.bounded() {
            Ok(described) => described,
            Err(error) => return Err(self.failed(session, error, deadline).await),
        };
        let spoken = spoken_in(&session);
        self.options.memory().learn(*self.fingerprint, spoken);
        let deadline = Instant::now() + self.timeouts().list;
        match self.list_tools(&mut session, deadline).await {
            Ok(tools) => {
                let described = untrusted::described(self.server.trust, described);
                Ok(Opened { session, described, spoken, tools })
            }
            Err(error) => Err(self.unlisted(session, error, deadline).await),
        }
    }

    /// Agrees with the server in the way that is pinned, that worked the last time, or that is
    /// found out.
    async fn agreed(&self, deadline: Instant) -> Result<Agreed, Error> {
        let declared = self.declared();
        match (self.server.behaviour.protocol, self.options.memory().spoken(self.fingerprint)) {
            (Protocol::Legacy, None) => {
                self.initialized(self.start(declared, deadline).await?, deadline).await
            }
            (Protocol::Modern, _) => {
                self.modern(self.start(declared, deadline).await?, deadline).await
            }
            (Protocol::Auto, None) => self.find_out(deadline).await,
            (pinned, Some(spoken)) => match self.as_before(spoken, deadline).await {
                Err(error) if is_misunderstanding(error.kind()) => {
                    // It is not what it was.
                    self.options.memory().forget(self.fingerprint);
                    match pinned {
                        Protocol::Legacy => {
                            self.initialized(self.start(declared, deadline).await?, deadline).await
                        }
                        _ => self.find_out(deadline).await,
                    }
                }
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    // There is no time left to find out; there is the next time.
                    self.options.memory().forget(self.fingerprint);
                    Err(error)
                }
                agreed => agreed,
            },
        }
    }

    /// Speaks to the server as it was spoken to before.
    async fn as_before(&self, spoken: Spoken, deadline: Instant) -> Result<Agreed, Error> {
        let session = self.start(spoken.transport, deadline).await?;
        if spoken.is_modern {
            self.modern(session, deadline).await
        } else {
            self.initialized_in(session, deadline).await
        }
    }

    /// Starts a process, or makes ready to reach an address.
    async fn start(&self, spoken: RemoteProtocol, deadline: Instant) -> Result<Session, Error> {
        if *self.stop.borrow() {
            return Err(stopping());
        }
        let wire = match self.transport().await? {
            ResolvedTransport::Stdio(program) => {
                Wire::Stdio(Box::new(StdioWire::start(program, self.options.child())?))
            }
            ResolvedTransport::Remote(remote) => {
                let (client, target) = (self.options.client()?, HttpTarget::new(remote)?);
                match spoken {
                    RemoteProtocol::Sse => {
                        let opened = SseWire::open(client, target);
                        let wire = tokio::select! {
                            opened = timeout_at(deadline, opened) => opened.map_err(|_| self.late())??,
                            () = self.stopped() => return Err(stopping()),
                        };
                        Wire::Sse(Box::new(wire))
                    }
                    _ => Wire::Http(Box::new(HttpWire::new(client, target))),
                }
            }
        };
        self.shadow.hears(wire.tail());
        let client_meta = self.options.client_meta().clone();
        let attendant = self.options.attendant();
        let attendant = attendant.map(|it| untrusted::attended(self.server.trust, it));
        let answering = (attendant, self.timeouts().question);
        let mask = self.server.behaviour.redact.then(|| wire.tail().mask());
        let mut session = Session::new(wire, self.ids.next(), client_meta, answering);
        session.mask = mask;
        Ok(session)
    }

    /// Fills in what the server refers to. That has a bound of its own: it is not the server's time.
    async fn transport(&self) -> Result<&ResolvedTransport, Error> {
        let bound = Instant::now() + self.timeouts().connect;
        let resolved = || resolved(self.server, self.options, bound);
        tokio::select! {
            transport = self.transport.get_or_try_init(resolved) => transport,
            () = self.stopped() => Err(stopping()),
        }
    }

    /// What is spoken at the server's address, as far as it was declared.
    fn declared(&self) -> RemoteProtocol {
        match &self.server.transport {
            Transport::Remote(remote) => remote.protocol,
            Transport::Stdio(_) => RemoteProtocol::Streamable,
        }
    }

    /// Finds out what the server speaks, starting it again where that is needed.
    async fn find_out(&self, deadline: Instant) -> Result<Agreed, Error> {
        let mut session = self.start(self.declared(), deadline).await?;
        if self.declared() == RemoteProtocol::Sse {
            return self.initialized(session, deadline).await;
        }
        // A server that does not know the question needs time for the older one.
        let bound = Instant::now() + PROBE.min(self.timeouts().handshake / 2);
        match self.probe(&mut session, deadline.min(bound)).await {
            Probed::Modern(described) => Ok((session, described)),
            Probed::Legacy => self.initialized(session, deadline).await,
            Probed::Hopeless(error) => Err(self.failed(session, error, deadline).await),
            Probed::Silent => self.asked_both(session, deadline).await,
            Probed::Spoiled(_) => {
                self.close(session, half_way_to(deadline)).await;
                self.initialized(self.start(self.declared(), deadline).await?, deadline).await
            }
        }
    }

    /// Speaks the modern generation and no other.
    async fn modern(&self, mut session: Session, deadline: Instant) -> Result<Agreed, Error> {
        let error = match self.probe(&mut session, deadline).await {
            Probed::Modern(described) => return Ok((session, described)),
            Probed::Hopeless(error) => error,
            Probed::Silent => self.late(),
            // That it ended says more than that it did not answer.
            Probed::Spoiled(error) if error.kind() != ErrorKind::NotMcp => error,
            Probed::Legacy | Probed::Spoiled(_) => {
                let message = "it does not speak revision 2026-07-28 of the protocol";
                let error = Error::new(ErrorKind::NotMcp, message);
                match self.server.behaviour.protocol {
                    Protocol::Modern => error.with_hint("`protocol` says that it does"),
                    _ => error,
                }
            }
        };
        Err(self.failed(session, error, deadline).await)
    }

    /// Asks a process that is silent the older way: it may be slow to start, or not understand. If
    /// it stays silent, it may have been spoiled by the first question, and is started again.
    async fn asked_both(&self, mut session: Session, deadline: Instant) -> Result<Agreed, Error> {
        match self.initialize(&mut session, half_way_to(deadline)).await {
            Ok(Initialized::Agreed(described)) => Ok((session, described)),
            Ok(Initialized::WantsModern) => self.modern(session, deadline).await,
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                self.close(session, half_way_to(deadline)).await;
                self.initialized(self.start(self.declared(), deadline).await?, deadline).await
            }
            Err(error) => Err(self.failed(session, error, deadline).await),
        }
    }

    /// Opens the conversation the older way; where no address says how, in the oldest way last.
    async fn initialized(&self, session: Session, deadline: Instant) -> Result<Agreed, Error> {
        let error = match self.initialized_in(session, deadline).await {
            Err(error) => error,
            agreed => return agreed,
        };
        let is_other = match error.kind() {
            ErrorKind::Refused(status) => (400..=499).contains(&status) && status != 429,
            kind => kind == ErrorKind::NotMcp,
        };
        if self.declared() != RemoteProtocol::Detect || !is_other {
            return Err(error);
        }
        // If that fails as well, what the address said first is what its owner has to know.
        let Ok(session) = self.start(RemoteProtocol::Sse, deadline).await else {
            return Err(error);
        };
        self.initialized_in(session, deadline).await.map_err(|_| error)
    }

    /// Opens the conversation the older way.
    async fn initialized_in(
        &self,
        mut session: Session,
        deadline: Instant,
    ) -> Result<Agreed, Error> {
        let error = match self.initialize(&mut session, deadline).await {
            Ok(Initialized::Agreed(described)) => return Ok((session, described)),
            Ok(Initialized::WantsModern) => unknown_revision(),
            Err(error) => error,
        };
        Err(self.failed(session, error, deadline).await)
    }

    /// Asks and waits for the answer, for as long as the start is wanted.
    async fn ask(
        &self,
        session: &mut Session,
        method: &str,
        params: Option<Raw>,
        deadline: Instant,
    ) -> Answer {
        tokio::select! {
            biased;
            () = self.stopped() => Err(stopping()),
            answer = session.exchange(self.ids.next(), method, params, deadline) => {
                answer.map_err(|error| self.within_bound(error, method))
            }
        }
    }

    /// An error with the bound that was passed, if it is that of a request.
    fn within_bound(&self, error: Error, method: &str) -> Error {
        let timeouts = self.timeouts();
        match (error.kind(), method) {
            (ErrorKind::TimedOut, "tools/list") => late_to_list(timeouts.list),
            (ErrorKind::TimedOut, _) => late_to_start(timeouts.handshake),
            _ => error,
        }
    }

    /// Waits until the start is not wanted any more.
    async fn stopped(&self) {
        if self.stop.clone().wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn late(&self) -> Error {
        late_to_start(self.timeouts().handshake)
    }

    fn timeouts(&self) -> &Timeouts {
        &self.behaviour.timeouts
    }

    /// Ends a conversation that came to nothing, and its server. That goes on by itself after this time: a
    /// process that does not end when it is told to keeps nobody.
    async fn close(&self, session: Session, until: Instant) {
        let lines = session.wire().last_lines();
        if !lines.is_empty() {
            *self.earlier() = lines;
        }
        self.endings.end(session, (self.server, self.options), self.shadow, until).await;
    }

    /// Stops a server that could not be agreed with, and adds what it said last.
    async fn failed(&self, session: Session, error: Error, deadline: Instant) -> Error {
        let noise = session.noise;
        self.shadow.noticed(&session);
        self.close(session, deadline).await;
        let lines = self.earlier().clone();
        match &self.server.transport {
            Transport::Remote(_) if error.kind() == ErrorKind::TimedOut => {
                error.with_hint("`timeouts.handshake` is the bound: raise it if the server is slow")
            }
            _ => with_next_step(explained(error, &lines, noise)),
        }
    }

    /// Stops a server that is agreed with and does not list its tools, and adds what it said last.
    async fn unlisted(&self, session: Session, error: Error, deadline: Instant) -> Error {
        let noise = session.noise;
        self.shadow.noticed(&session);
        self.close(session, deadline).await;
        with_next_step(explained_by_server(error, &self.earlier().clone(), noise))
    }
}

impl Opener<'_> {
    fn earlier(&self) -> MutexGuard<'_, Vec<String>> {
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error of a start that ran out of time, with what an earlier process of it said.
    fn recalled(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::TimedOut => explained(error, &self.earlier(), 0),
            _ => error,
        }
    }
}

/// The middle of the time that is left until then.
fn half_way_to(deadline: Instant) -> Instant {
    let now = Instant::now();
    now + deadline.saturating_duration_since(now) / 2
}

/// Whether an error comes of speaking to a server in a way it does not know.
fn is_misunderstanding(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotMcp | ErrorKind::Refused(_))
}

fn spoken_in(session: &Session) -> Spoken {
    Spoken {
        is_modern: session.version.era() == Era::Modern,
        transport: match session.wire() {
            Wire::Sse(_) => RemoteProtocol::Sse,
            Wire::Http(_) | Wire::Stdio(_) => RemoteProtocol::Streamable,
        },
    }
}
