//! The requests of a handshake: `server/discover`, `initialize`, and the first `tools/list`.

use tokio::time::Instant;

use super::ServerConnector;
use crate::config::Transport;
use crate::connection::client_meta::{initialize_params, lists_legacy, lists_modern};
use crate::connection::pagination::{ItemList, NextPage, PageReader, page_params};
use crate::connection::session::Session;
use crate::connection::state::status::ServerDescription;
use crate::error::{Error, ErrorKind};
use crate::item::ItemKind;
use crate::message::{Raw, RpcError};
use crate::protocol::{Era, ProtocolVersion, code, meta};

/// What `initialize` came to.
pub(super) enum InitializeOutcome {
    /// A revision was agreed on.
    Agreed(ServerDescription),
    /// The server speaks the modern generation, and says so.
    WantsModern,
}

/// What a question that only modern servers understand came to.
pub(super) enum ProbeOutcome {
    /// It is modern, and said what it is.
    Modern(ServerDescription),
    /// It is not, and can be asked the older way.
    Legacy,
    /// It has not said anything yet.
    Silent,
    /// It cannot be asked anything any more, for this reason, and has to be started again.
    Spoiled(Error),
    /// It cannot be reached.
    Hopeless(Error),
}

impl ServerConnector<'_> {
    pub(super) async fn probe(&self, session: &mut Session, bound: Instant) -> ProbeOutcome {
        session.set_version(ProtocolVersion::MODERN);
        let mut answer = self.request(session, "server/discover", None, bound).await;
        if matches!(&answer, Ok(Err(error)) if requires_modern(error)) {
            // It names the very revision it was asked in: it may take it now.
            answer = self.request(session, "server/discover", None, bound).await;
        }
        match answer {
            Ok(Ok(result)) => match parse_discovery(&result) {
                Some(described) => ProbeOutcome::Modern(described),
                // There are servers that answer everything.
                None => ProbeOutcome::Legacy,
            },
            Ok(Err(_)) => ProbeOutcome::Legacy,
            Err(error) if error.kind() == ErrorKind::ShuttingDown => ProbeOutcome::Hopeless(error),
            Err(error) => match (error.kind(), &self.server.transport) {
                (ErrorKind::TimedOut, Transport::Stdio(_)) => ProbeOutcome::Silent,
                (_, Transport::Stdio(_)) => ProbeOutcome::Spoiled(error),
                // A server that is busy, or leads back here, is not one that does not understand.
                (ErrorKind::HttpStatus(429 | 502..=504 | 508), _) => ProbeOutcome::Hopeless(error),
                (
                    ErrorKind::HttpStatus(_) | ErrorKind::TimedOut | ErrorKind::ProtocolViolation,
                    _,
                ) => ProbeOutcome::Legacy,
                _ => ProbeOutcome::Hopeless(error),
            },
        }
    }

    pub(super) async fn initialize(
        &self,
        session: &mut Session,
        deadline: Instant,
    ) -> Result<InitializeOutcome, Error> {
        session.set_version(ProtocolVersion::LATEST_LEGACY);
        let params = Some(initialize_params(self.options.capabilities()));
        let answer = self.request(session, "initialize", params, deadline).await?;
        let result = match answer {
            Ok(result) => result,
            Err(error) if error.code() == code::UNSUPPORTED_PROTOCOL_VERSION => {
                return Ok(InitializeOutcome::WantsModern);
            }
            Err(error) => {
                let said = session.transport().quoted(&error.message());
                let message = format!("it refused to be initialised: {said}");
                return Err(Error::new(ErrorKind::ProtocolViolation, message));
            }
        };
        let [version, server_info, capabilities, instructions] =
            result.get_all(["protocolVersion", "serverInfo", "capabilities", "instructions"]);
        let version = version.as_ref().and_then(Raw::as_str);
        let known = version.as_deref().and_then(ProtocolVersion::parse);
        let Some(version) = known.filter(|version| version.era() == Era::Legacy) else {
            return Err(unsupported_version());
        };
        session.set_version(version);
        session.notify("notifications/initialized", None);
        session.listen();
        let speaks_both_eras = false;
        Ok(InitializeOutcome::Agreed(ServerDescription {
            server_info,
            capabilities,
            instructions,
            speaks_both_eras,
        }))
    }

    /// Lists the tools of a server, every page of them.
    pub(super) async fn list_tools(
        &self,
        session: &mut Session,
        deadline: Instant,
    ) -> Result<ItemList, Error> {
        let mut pages =
            PageReader::new(ItemKind::Tool, session.sends_param_headers()).of(self.server.trust);
        let mut params = None;
        loop {
            let page = match self.request(session, "tools/list", params, deadline).await? {
                Ok(page) => page,
                // A server without tools need not know how to list them.
                Err(error) if error.code() == code::METHOD_NOT_FOUND => break,
                Err(error) => {
                    let said = session.transport().quoted(&error.message());
                    let message = format!("it did not list its tools: {said}");
                    return Err(Error::new(ErrorKind::ProtocolViolation, message));
                }
            };
            match pages.add(&page)? {
                NextPage::Done => break,
                NextPage::Page(cursor) => params = Some(page_params(&cursor)),
            }
        }
        Ok(pages.finish())
    }
}

/// Whether a server that does not take a revision names the modern one as one that it takes.
pub(in crate::connection) fn requires_modern(error: &RpcError) -> bool {
    error.code() == code::UNSUPPORTED_PROTOCOL_VERSION
        && error.raw().get("data").is_some_and(|data| lists_modern(data.get("supported").as_ref()))
}

/// What a server says about itself that speaks the modern generation; nothing if it does not.
fn parse_discovery(result: &Raw) -> Option<ServerDescription> {
    let [versions, meta, server_info, capabilities, instructions] = result.get_all([
        "supportedVersions",
        "_meta",
        "serverInfo",
        "capabilities",
        "instructions",
    ]);
    if !lists_modern(versions.as_ref()) {
        return None;
    }
    let in_meta = meta.and_then(|meta| meta.get(meta::SERVER_INFO));
    let server_info = in_meta.or(server_info);
    let speaks_both_eras = lists_legacy(versions.as_ref());
    Some(ServerDescription { server_info, capabilities, instructions, speaks_both_eras })
}

pub(super) fn unsupported_version() -> Error {
    Error::new(ErrorKind::ProtocolViolation, "it speaks no revision of the protocol that is known")
}
