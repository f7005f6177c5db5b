//! Starting a server and agreeing with it on what is spoken (CON-2, CON-4).

use std::time::Duration;

use tokio::time::Instant;

use super::generation::{Generation, LEGACY, initialize_params};
use super::lists::{Next, ToolList, ToolPages, page_params};
use super::session::Session;
use super::task::Ids;
use crate::config::{self, ResolvedTransport, Resolver, Server, Timeouts};
use crate::error::{Error, ErrorKind};
use crate::message::Raw;
use crate::wire::ChildOptions;
use crate::wire::stdio::StdioWire;

/// How long a server may think about a question that only modern ones understand. Most answer at
/// once that they do not; some never do, and get the older question from a fresh start.
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
    pub(super) resolver: &'o (dyn Resolver + Send + Sync),
    pub(super) child: &'o ChildOptions,
    pub(super) ids: &'o Ids,
}

/// What a question that only modern servers understand came to.
enum Probed {
    /// It is modern, and said what it is.
    Modern(Raw),
    /// It is not, and can be asked the older way.
    Legacy,
    /// It cannot be asked anything any more.
    Spoiled,
}

impl Opener<'_> {
    /// Starts the server, whatever it speaks, and lists its tools.
    pub(super) async fn open(&self) -> Result<Opened, Error> {
        let timeouts = &self.server.behaviour.timeouts;
        let deadline = Instant::now() + timeouts.connect + timeouts.handshake;
        let mut session = self.start()?;
        let opened = self.agree(&mut session, deadline).await;
        let (mut session, server_info) = match opened {
            Ok(Some(server_info)) => (session, server_info),
            Ok(None) => self.again(session, deadline).await?,
            Err(error) => return Err(self.failed(session, error).await),
        };
        match self.list_tools(&mut session).await {
            Ok(tools) => Ok(Opened { session, server_info, tools }),
            Err(error) => Err(self.failed(session, error).await),
        }
    }

    fn start(&self) -> Result<Session, Error> {
        let transport = config::resolve(self.server, self.resolver)
            .map_err(|mut errors| errors.swap_remove(0))?;
        match transport {
            ResolvedTransport::Stdio(program) => {
                StdioWire::start(&program, self.child).map(Session::new)
            }
            ResolvedTransport::Remote(_) => {
                let message = "servers at an address cannot be reached yet";
                Err(Error::new(ErrorKind::Unreachable, message))
            }
        }
    }

    /// Agrees with the server. `None` when it has to be started again for that.
    async fn agree(
        &self,
        session: &mut Session,
        deadline: Instant,
    ) -> Result<Option<Option<Raw>>, Error> {
        match self.probe(session, deadline).await {
            Probed::Modern(server_info) => Ok(Some(Some(server_info))),
            Probed::Legacy => self.initialize(session, deadline).await.map(Some),
            Probed::Spoiled => Ok(None),
        }
    }

    /// Starts the server again, asking the older way from the start.
    async fn again(
        &self,
        spoiled: Session,
        deadline: Instant,
    ) -> Result<(Session, Option<Raw>), Error> {
        spoiled.close(self.timeouts().shutdown).await;
        let mut session = self.start()?;
        match self.initialize(&mut session, deadline).await {
            Ok(server_info) => Ok((session, server_info)),
            Err(error) => Err(self.failed(session, error).await),
        }
    }

    fn timeouts(&self) -> &Timeouts {
        &self.server.behaviour.timeouts
    }

    async fn probe(&self, session: &mut Session, deadline: Instant) -> Probed {
        let bound = deadline.min(Instant::now() + PROBE.min(self.timeouts().handshake));
        session.generation = Generation::Modern;
        let answer = session.exchange(self.ids.next(), "server/discover", None, bound).await;
        match answer {
            Ok(Ok(result)) => {
                let meta = result.get("_meta");
                let info = meta.and_then(|meta| meta.get("io.modelcontextprotocol/serverInfo"));
                Probed::Modern(info.unwrap_or_else(|| Raw::from_value(&serde_json::json!({}))))
            }
            Ok(Err(_)) => Probed::Legacy,
            Err(_) => Probed::Spoiled,
        }
    }

    async fn initialize(
        &self,
        session: &mut Session,
        deadline: Instant,
    ) -> Result<Option<Raw>, Error> {
        session.generation = Generation::Legacy(LEGACY[0].into());
        let params = Some(initialize_params());
        let answer = session.exchange(self.ids.next(), "initialize", params, deadline).await?;
        let result = answer.map_err(|error| {
            let message = format!("it refused to be initialised: {}", error.message());
            Error::new(ErrorKind::NotMcp, message)
        })?;
        let [version, server_info] = result.get_all(["protocolVersion", "serverInfo"]);
        let version = version.as_ref().and_then(Raw::as_str);
        let known = LEGACY.iter().find(|known| version.as_deref() == Some(**known));
        let Some(revision) = known else {
            let message = "it speaks no revision of the protocol that is known";
            return Err(Error::new(ErrorKind::NotMcp, message));
        };
        session.generation = Generation::Legacy((*revision).into());
        session.tell("notifications/initialized", None);
        Ok(server_info)
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
                Err(error) if error.code() == crate::message::code::METHOD_NOT_FOUND => break,
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
        let lines = session.wire().tail().lines();
        session.close(self.timeouts().shutdown).await;
        explained(error, &lines)
    }
}

/// An error with the last lines of the server's standard error as its hint, if it has no other.
pub(super) fn explained(error: Error, lines: &[String]) -> Error {
    let last: Vec<_> = lines.iter().rev().take(3).rev().map(String::as_str).collect();
    let hint = match (error.kind(), last.as_slice()) {
        (_, [_, ..]) => format!("it said: {}", last.join(" | ")),
        (ErrorKind::TimedOut | ErrorKind::NotMcp, []) => "is this an MCP server?".to_owned(),
        _ => return error,
    };
    error.with_hint(hint)
}
