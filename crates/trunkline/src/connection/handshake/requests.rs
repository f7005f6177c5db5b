//! The requests of a handshake: `server/discover`, `initialize`, and the first `tools/list`.

use tokio::time::Instant;

use super::ServerConnector;
use crate::config::Transport;
use crate::connection::client_meta::{initialize_params, lists_legacy, lists_modern};
use crate::connection::pagination::{ItemList, NextPage, PageReader, page_params};
use crate::connection::request_error::RequestError;
use crate::connection::session::Session;
use crate::connection::state::status::ServerDescription;
use crate::error::{Error, ErrorKind};
use crate::item::ItemKind;
use crate::message::{Raw, RpcError};
use crate::protocol::{Era, ProtocolVersion, code, meta};

/// The outcome of `initialize`.
pub(super) enum InitializeOutcome {
    /// A protocol version was negotiated.
    Agreed(ServerDescription),
    /// The server reports that it supports the modern era.
    WantsModern,
}

/// The outcome of `server/discover`.
pub(super) enum ProbeOutcome {
    /// The server is modern.
    Modern(ServerDescription),
    /// The server is legacy, and can be sent `initialize`.
    Legacy,
    /// The server has not responded yet.
    Silent,
    /// The server cannot be used any more, for this reason, and has to be restarted.
    Spoiled(Error),
    /// The server cannot be reached.
    Hopeless(Error),
}

impl ServerConnector<'_> {
    pub(super) async fn probe(&self, session: &mut Session, bound: Instant) -> ProbeOutcome {
        session.set_version(ProtocolVersion::MODERN);
        let mut answer = self.request(session, "server/discover", None, bound).await;
        if matches!(&answer, Err(RequestError::Refused(error)) if requires_modern(error)) {
            // It lists the very version of the request: it may accept it now.
            answer = self.request(session, "server/discover", None, bound).await;
        }
        match answer {
            Ok(result) => match parse_discovery(&result) {
                Some(described) => ProbeOutcome::Modern(described),
                // Some servers respond to every method.
                None => ProbeOutcome::Legacy,
            },
            Err(RequestError::Refused(_)) => ProbeOutcome::Legacy,
            Err(RequestError::Failed(error)) => self.failed_probe(error),
        }
    }

    /// The outcome of a `server/discover` without a response.
    fn failed_probe(&self, error: Error) -> ProbeOutcome {
        match (error.kind(), &self.server.transport) {
            (ErrorKind::ShuttingDown, _) => ProbeOutcome::Hopeless(error),
            (ErrorKind::TimedOut, Transport::Stdio(_)) => ProbeOutcome::Silent,
            (_, Transport::Stdio(_)) => ProbeOutcome::Spoiled(error),
            // A server that is busy, or leads back here, is not one that does not understand.
            (ErrorKind::HttpStatus(429 | 502..=504 | 508), _) => ProbeOutcome::Hopeless(error),
            (ErrorKind::HttpStatus(_) | ErrorKind::TimedOut | ErrorKind::ProtocolViolation, _) => {
                ProbeOutcome::Legacy
            }
            _ => ProbeOutcome::Hopeless(error),
        }
    }

    pub(super) async fn initialize(
        &self,
        session: &mut Session,
        deadline: Instant,
    ) -> Result<InitializeOutcome, Error> {
        session.set_version(ProtocolVersion::LATEST_LEGACY);
        let params = Some(initialize_params(&self.options.capabilities()));
        let result = match self.request(session, "initialize", params, deadline).await {
            Ok(result) => result,
            Err(RequestError::Failed(error)) => return Err(error),
            Err(RequestError::Refused(error))
                if error.code() == code::UNSUPPORTED_PROTOCOL_VERSION =>
            {
                return Ok(InitializeOutcome::WantsModern);
            }
            Err(RequestError::Refused(error)) => {
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

    /// Lists all pages of the tools of a server.
    pub(super) async fn list_tools(
        &self,
        session: &mut Session,
        deadline: Instant,
    ) -> Result<ItemList, Error> {
        let mut pages =
            PageReader::new(ItemKind::Tool, session.sends_param_headers()).of(self.server.trust);
        let mut params = None;
        loop {
            let page = match self.request(session, "tools/list", params, deadline).await {
                Ok(page) => page,
                Err(RequestError::Failed(error)) => return Err(error),
                // A server without tools need not implement the list method.
                Err(RequestError::Refused(error)) if error.code() == code::METHOD_NOT_FOUND => {
                    break;
                }
                Err(RequestError::Refused(error)) => {
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

/// Whether a server that rejects a protocol version lists the modern one as supported.
pub(in crate::connection) fn requires_modern(error: &RpcError) -> bool {
    error.code() == code::UNSUPPORTED_PROTOCOL_VERSION
        && error.raw().get("data").is_some_and(|data| lists_modern(data.get("supported").as_ref()))
}

/// Parses the result of `server/discover`; `None` if the server does not list the modern version.
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
