//! One request's caller: who it is, what it can do, and the way to it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::sync::watch;
use trunkline::connection::LogLevel;
use trunkline::message::Raw;
use trunkline::principal::{ClientId, RequestPath, Requester};
use trunkline::protocol::{Era, meta};

use super::channel::ClientChannel;
use super::session::Session;
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
    /// The stream on which it asks, which says whether it is closed.
    Stream(watch::Receiver<bool>),
}

impl Lease {
    /// Waits until it does so no more.
    pub(crate) async fn expired(&self) {
        match self {
            Self::Asked => std::future::pending().await,
            Self::Token(pass) => pass.lost().await,
            Self::Stream(closed) => {
                let _ = closed.clone().wait_for(|is_closed| *is_closed).await;
            }
        }
    }
}

impl Caller {
    pub(crate) fn era(&self) -> Era {
        self.client.era
    }

    /// The client and principal its requests are made for.
    pub(crate) fn requester(&self) -> Requester {
        let client = self.id();
        let principal = self.identity.principal.of_client(&client);
        Requester { client, principal, path: self.path.clone() }
    }

    /// Who it is, for those who keep something for it.
    pub(crate) fn id(&self) -> ClientId {
        match &self.session {
            Some(session) => session.id.clone(),
            None => id_without_session(&self.client, &self.identity),
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

/// Id of a client that has no session: a digest of its token, its name and its capabilities. Nothing
/// else tells clients apart that say everything anew each time. As a digest it has a bounded length.
pub(crate) fn id_without_session(client: &ClientProfile, identity: &CallerIdentity) -> ClientId {
    let info = client.info.as_ref().map_or("", Raw::text);
    let principal = identity.principal.as_str();
    let said = format!("{principal:?}\n{info}\n{}", client.capabilities);
    digest_id(&said)
}

/// Id of a client by everything that it is known by.
fn digest_id(said: &str) -> ClientId {
    let digest = ring::digest::digest(&ring::digest::SHA256, said.as_bytes());
    URL_SAFE_NO_PAD.encode(digest).as_str().into()
}
