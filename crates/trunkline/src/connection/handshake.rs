//! Starting a server and agreeing with it on what is spoken (CON-2, CON-4).

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::generation::{Generation, LEGACY, initialize_params};
use super::lists::{Next, ToolList, ToolPages, page_params};
use super::options::Options;
use super::session::{Ids, Session, explained};
use crate::config::{self, RemoteProtocol, ResolvedTransport, Server, Timeouts, Transport};
use crate::error::{Error, ErrorKind};
use crate::message::{Raw, code};
use crate::wire::http::HttpWire;
use crate::wire::sse::SseWire;
use crate::wire::stdio::StdioWire;
use crate::wire::{HttpTarget, Wire};

/// How long a server may think about a question that only modern ones understand, before it is asked
/// the older one as well. Most answer at once; some are still being downloaded; some never answer,
/// and are asked the older question once more from a fresh start.
const PROBE: Duration = Duration::from_secs(8);

/// A server that has been started and agreed with.
pub(super) struct Opened {
    pub(super) session: Session,
    pub(super) server_info: Option<Raw>,
    pub(super) tools: ToolList,
}

/// Starts servers.
pub(super) struct Opener<'o> {
    pub(super) server: &'o Server,
    pub(super) options: &'o Options,
    pub(super) ids: &'o Ids,
}

/// What `initialize` came to.
enum Initialized {
    /// A revision was agreed on; with what the server says it is.
    Agreed(Option<Raw>),
    /// The server speaks the modern generation, and says so.
    WantsModern,
}

/// What a question that only modern servers understand came to.
enum Probed {
    /// It is modern, and said what it is.
    Modern(Raw),
    /// It is not, and can be asked the older way.
    Legacy,
    /// It has not said anything yet.
    Silent,
    /// It cannot be asked anything any more, and has to be started again.
    Spoiled,
    /// It cannot be reached.
    Hopeless(Error),
}

impl Opener<'_> {
    /// Starts the server, whatever it speaks, and lists its tools.
    pub(super) async fn open(&self) -> Result<Opened, Error> {
        let deadline = Instant::now() + self.timeouts().connect + self.timeouts().handshake;
        let session = self.start(self.declared()).await?;
        let (mut session, server_info) = self.agree(session, deadline).await?;
        match self.list_tools(&mut session).await {
            Ok(tools) => Ok(Opened { session, server_info, tools }),
            Err(error) => Err(self.failed(session, error).await),
        }
    }

    /// Starts a process, or makes ready to reach an address.
    async fn start(&self, spoken: RemoteProtocol) -> Result<Session, Error> {
        let transport = config::resolve(self.server, self.options.resolver())
            .map_err(|mut errors| errors.swap_remove(0))?;
        let wire = match transport {
            ResolvedTransport::Stdio(program) => {
                Wire::Stdio(Box::new(StdioWire::start(&program, self.options.child())?))
            }
            ResolvedTransport::Remote(remote) => {
                let (client, target) = (self.options.client()?, HttpTarget::new(&remote)?);
                match spoken {
                    RemoteProtocol::Sse => {
                        let opened = SseWire::open(client, target);
                        let bound = self.timeouts().connect + self.timeouts().handshake;
                        let wire = timeout(bound, opened).await.map_err(|_| late())??;
                        Wire::Sse(Box::new(wire))
                    }
                    _ => Wire::Http(Box::new(HttpWire::new(client, target))),
                }
            }
        };
        Ok(Session::new(wire))
    }

    /// What is spoken at the server's address, as far as it was declared.
    fn declared(&self) -> RemoteProtocol {
        match &self.server.transport {
            Transport::Remote(remote) => remote.protocol,
            Transport::Stdio(_) => RemoteProtocol::Streamable,
        }
    }

    /// Agrees with the server on what is spoken, starting it again where that is needed.
    async fn agree(
        &self,
        mut session: Session,
        deadline: Instant,
    ) -> Result<(Session, Option<Raw>), Error> {
        if self.declared() == RemoteProtocol::Sse {
            return self.initialized(session, deadline).await;
        }
        let bound = Instant::now() + PROBE.min(self.timeouts().handshake);
        match self.probe(&mut session, deadline.min(bound)).await {
            Probed::Modern(server_info) => Ok((session, Some(server_info))),
            Probed::Legacy => self.initialized(session, deadline).await,
            Probed::Hopeless(error) => Err(self.failed(session, error).await),
            Probed::Silent => self.asked_both(session, deadline).await,
            Probed::Spoiled => {
                session.close(self.timeouts().shutdown).await;
                self.initialized(self.start(self.declared()).await?, deadline).await
            }
        }
    }

    /// Asks a process that is silent the older way: it may be slow to start, or not understand. If
    /// it stays silent, it may have been spoiled by the first question, and is started again.
    async fn asked_both(
        &self,
        mut session: Session,
        deadline: Instant,
    ) -> Result<(Session, Option<Raw>), Error> {
        let half = Instant::now() + deadline.saturating_duration_since(Instant::now()) / 2;
        match self.initialize(&mut session, half).await {
            Ok(Initialized::Agreed(server_info)) => Ok((session, server_info)),
            Ok(Initialized::WantsModern) => match self.probe(&mut session, deadline).await {
                Probed::Modern(server_info) => Ok((session, Some(server_info))),
                _ => Err(self.failed(session, late()).await),
            },
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                session.close(self.timeouts().shutdown).await;
                self.initialized(self.start(self.declared()).await?, deadline).await
            }
            Err(error) => Err(self.failed(session, error).await),
        }
    }

    /// Opens the conversation the older way; where no address says how, in the oldest way last.
    async fn initialized(
        &self,
        mut session: Session,
        deadline: Instant,
    ) -> Result<(Session, Option<Raw>), Error> {
        let error = match self.initialize(&mut session, deadline).await {
            Ok(Initialized::Agreed(server_info)) => return Ok((session, server_info)),
            Ok(Initialized::WantsModern) => unknown_revision(),
            Err(error) => error,
        };
        let is_other = matches!(error.kind(), ErrorKind::Refused(400..=499) | ErrorKind::NotMcp);
        if self.declared() != RemoteProtocol::Detect || !is_other {
            return Err(self.failed(session, error).await);
        }
        session.close(self.timeouts().shutdown).await;
        // If that fails as well, what the address said first is what its owner has to know.
        let Ok(mut session) = self.start(RemoteProtocol::Sse).await else { return Err(error) };
        match self.initialize(&mut session, deadline).await {
            Ok(Initialized::Agreed(server_info)) => Ok((session, server_info)),
            Ok(Initialized::WantsModern) | Err(_) => Err(self.failed(session, error).await),
        }
    }

    fn timeouts(&self) -> &Timeouts {
        &self.server.behaviour.timeouts
    }

    async fn probe(&self, session: &mut Session, bound: Instant) -> Probed {
        session.speak(Generation::Modern);
        let answer = session.exchange(self.ids.next(), "server/discover", None, bound).await;
        match answer {
            Ok(Ok(result)) => {
                let meta = result.get("_meta");
                let info = meta.and_then(|meta| meta.get("io.modelcontextprotocol/serverInfo"));
                Probed::Modern(info.unwrap_or_else(|| Raw::from_value(&serde_json::json!({}))))
            }
            Ok(Err(_)) => Probed::Legacy,
            Err(error) => match (error.kind(), &self.server.transport) {
                (ErrorKind::TimedOut, Transport::Stdio(_)) => Probed::Silent,
                (_, Transport::Stdio(_)) => Probed::Spoiled,
                (ErrorKind::Refused(_) | ErrorKind::TimedOut | ErrorKind::NotMcp, _) => {
                    Probed::Legacy
                }
                _ => Probed::Hopeless(error),
            },
        }
    }

    async fn initialize(
        &self,
        session: &mut Session,
        deadline: Instant,
    ) -> Result<Initialized, Error> {
        session.speak(Generation::Legacy(LEGACY[0].into()));
        let params = Some(initialize_params());
        let answer = session.exchange(self.ids.next(), "initialize", params, deadline).await?;
        let result = match answer {
            Ok(result) => result,
            Err(error) if error.code() == code::UNSUPPORTED_PROTOCOL_VERSION => {
                return Ok(Initialized::WantsModern);
            }
            Err(error) => {
                let message = format!("it refused to be initialised: {}", error.message());
                return Err(Error::new(ErrorKind::NotMcp, message));
            }
        };
        let [version, server_info] = result.get_all(["protocolVersion", "serverInfo"]);
        let version = version.as_ref().and_then(Raw::as_str);
        let known = LEGACY.iter().find(|known| version.as_deref() == Some(**known));
        let Some(revision) = known else { return Err(unknown_revision()) };
        session.speak(Generation::Legacy((*revision).into()));
        session.tell("notifications/initialized", None);
        session.listen();
        Ok(Initialized::Agreed(server_info))
    }

    /// Lists the tools of a server, every page of them.
    async fn list_tools(&self, session: &mut Session) -> Result<ToolList, Error> {
        let deadline = Instant::now() + self.timeouts().list;
        let mut pages = ToolPages::default();
        let mut params = None;
        loop {
            let id = self.ids.next();
            let page = match session.exchange(id, "tools/list", params, deadline).await? {
                Ok(page) => page,
                // A server without tools need not know how to list them.
                Err(error) if error.code() == code::METHOD_NOT_FOUND => break,
                Err(error) => {
                    let message = format!("it did not list its tools: {}", error.message());
                    return Err(Error::new(ErrorKind::NotMcp, message));
                }
            };
            match pages.add(&page)? {
                Next::Done => break,
                Next::Page(cursor) => params = Some(page_params(&cursor)),
            }
        }
        Ok(pages.finish())
    }

    /// Stops a server that could not be agreed with, and adds what it said last.
    async fn failed(&self, session: Session, error: Error) -> Error {
        let lines = session.wire().last_lines();
        session.close(self.timeouts().shutdown).await;
        explained(error, &lines)
    }
}

fn unknown_revision() -> Error {
    Error::new(ErrorKind::NotMcp, "it speaks no revision of the protocol that is known")
}

fn late() -> Error {
    Error::new(ErrorKind::TimedOut, "it did not answer in time")
}
