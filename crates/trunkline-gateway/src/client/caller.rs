//! One request's caller: who it is, what it can do, and the way to it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::sync::watch;
use trunkline::call::OlderEra;
use trunkline::connection::LogLevel;
use trunkline::message::Raw;
use trunkline::principal::{ClientId, RequestPath, Requester};
use trunkline::protocol::{Era, meta};

use super::channel::ClientChannel;
use super::session::{Session, requester_of};
use crate::access::scope::CallerIdentity;
use crate::access::tokens::TokenLease;
use crate::request::incoming::ClientProfile;

/// Who asks for something.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) client: Arc<ClientProfile>,
    pub(crate) identity: Arc<CallerIdentity>,
    /// From which level on it wants lines of logs.
    pub(crate) level: Option<LogLevel>,
    pub(crate) channel: ClientChannel,
    /// The session of a legacy client.
    pub(crate) session: Option<Arc<Session>>,
    /// For how long it may hear things without asking again.
    pub(crate) admission: Lease,
    /// The processes its request has come through.
    pub(crate) path: RequestPath,
}

/// What lets a caller hear things without asking again, for as long as it does.
#[derive(Clone)]
pub(crate) enum Lease {
    /// That it has asked.
    Asked,
    /// A token.
    Token(TokenLease),
    /// The stream on which it asks.
    Stream(StreamLease),
}

/// A stream with one client at its other end.
#[derive(Clone)]
pub(crate) struct StreamLease {
    /// The client, whichever revision it speaks.
    pub(crate) client: ClientId,
    /// Whether the stream is closed.
    pub(crate) closed: watch::Receiver<bool>,
}

impl Lease {
    /// Waits until it does so no more.
    pub(crate) async fn expired(&self) {
        match self {
            Self::Asked => std::future::pending().await,
            Self::Token(pass) => pass.lost().await,
            Self::Stream(stream) => {
                let _ = stream.closed.clone().wait_for(|is_closed| *is_closed).await;
            }
        }
    }
}

impl Caller {
    pub(crate) fn era(&self) -> Era {
        self.client.era
    }

    /// How it is served in the older era, where that is needed.
    pub(crate) fn older_era(&self) -> OlderEra<'_> {
        OlderEra { capabilities: &self.client.capabilities, is_own: self.era() == Era::Legacy }
    }

    /// The client and principal its requests are made for.
    pub(crate) fn requester(&self) -> Requester {
        let requester = match (&self.session, &self.admission) {
            (Some(session), _) => session.requester(),
            (None, Lease::Stream(stream)) => requester_of(&stream.client, &self.identity),
            (None, Lease::Asked | Lease::Token(_)) => {
                requester_without_session(&self.client, &self.identity)
            }
        };
        Requester { path: self.path.clone(), ..requester }
    }

    /// Id under which it has processes of its own. Without a session, each set of capabilities has
    /// another one, because a process is told once what its client offers.
    pub(crate) fn dedicated_id(&self) -> ClientId {
        let sessionless = || id_without_session(&self.client, &self.identity);
        match (&self.session, &self.admission) {
            (Some(session), _) => session.id.clone(),
            (None, Lease::Stream(stream)) => {
                digest_id(&format!("{}\n{}", stream.client.as_str(), sessionless().as_str()))
            }
            (None, Lease::Asked | Lease::Token(_)) => sessionless(),
        }
    }

    /// Id under which the last list of a client without a session is known: over streams there is one
    /// client, elsewhere a digest of its token, its limits and its name. What it offers is left out,
    /// because clients may offer other things with each request.
    pub(crate) fn list_id(&self) -> ClientId {
        if let Lease::Stream(_) = self.admission {
            return ClientId::default();
        }
        let info = self.client.info.as_ref().map_or("", Raw::text);
        digest_id(&format!("{}\n{info}", self.identity.as_owner()))
    }

    /// Parameters that say for whom they are passed on, as servers of the modern generation want to
    /// know. Connections take it away where a server is of the other.
    pub(crate) fn with_client_meta(&self, params: &Raw) -> Raw {
        if self.era() == Era::Modern {
            return params.clone();
        }
        let said = params.get("_meta").filter(Raw::is_object).unwrap_or_else(Raw::empty_object);
        let mut said = said.with(meta::CLIENT_CAPABILITIES, &self.client.capabilities);
        if let Some(info) = &self.client.info {
            said = said.with(meta::CLIENT_INFO, info);
        }
        if let Some(level) = self.level {
            said = said.with(meta::LOG_LEVEL, &Raw::from_string(level.as_str()));
        }
        params.with("_meta", &said)
    }
}

/// The requester of a client that has no session.
pub(crate) fn requester_without_session(
    client: &ClientProfile,
    identity: &CallerIdentity,
) -> Requester {
    let id = id_without_session(client, identity);
    Requester { is_sessionless: true, ..requester_of(&id, identity) }
}

/// Id of a client that has no session: a digest of its token, its limits, its name and its capabilities.
/// Nothing else tells clients apart that say everything anew each time. As a digest it has a bounded
/// length.
fn id_without_session(client: &ClientProfile, identity: &CallerIdentity) -> ClientId {
    let info = client.info.as_ref().map_or("", Raw::text);
    digest_id(&format!("{}\n{info}\n{}", identity.as_owner(), client.capabilities))
}

/// Id of a client by everything that it is known by.
fn digest_id(said: &str) -> ClientId {
    let digest = ring::digest::digest(&ring::digest::SHA256, said.as_bytes());
    URL_SAFE_NO_PAD.encode(digest).as_str().into()
}
