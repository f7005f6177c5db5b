//! The caller of one request: client profile, identity, channel and lease.

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::sync::watch;
use trunkline::call::OlderEra;
use trunkline::connection::LogLevel;
use trunkline::message::Raw;
use trunkline::principal::{ClientId, RequestPath, Requester};
use trunkline::protocol::Era;

use super::channel::ClientChannel;
use super::session::{Session, requester_of};
use crate::access::scope::CallerIdentity;
use crate::access::tokens::TokenLease;
use crate::request::incoming::ClientProfile;

/// The caller of a request.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) client: Arc<ClientProfile>,
    pub(crate) identity: Arc<CallerIdentity>,
    /// The lowest level of log messages that it receives.
    pub(crate) level: Option<LogLevel>,
    pub(crate) channel: ClientChannel,
    /// The session of a legacy client.
    pub(crate) session: Option<Arc<Session>>,
    /// How long its authorization stays valid for a long-lived stream.
    pub(crate) admission: Lease,
    /// The processes that forwarded its request.
    pub(crate) path: RequestPath,
    pub(crate) ids: SessionlessIds,
}

/// The IDs of a client without a session, kept for one request: each is a digest.
#[derive(Clone, Default)]
pub(crate) struct SessionlessIds {
    client: OnceLock<ClientId>,
    lists: OnceLock<ClientId>,
}

impl SessionlessIds {
    /// The requester of a client that has no session.
    pub(crate) fn requester(&self, client: &ClientProfile, identity: &CallerIdentity) -> Requester {
        let id = self.client.get_or_init(|| id_without_session(client, identity));
        Requester { is_sessionless: true, ..requester_of(id, identity) }
    }
}

/// Limits how long a caller receives messages without a new request.
#[derive(Clone)]
pub(crate) enum Lease {
    /// The request itself, which does not expire.
    Request,
    /// Valid until the token is revoked, renamed or rescoped.
    Token(TokenLease),
    /// Valid until the client's stream closes.
    Stream(StreamLease),
}

/// A stream with a single client.
#[derive(Clone)]
pub(crate) struct StreamLease {
    /// The client, in any protocol version.
    pub(crate) client: ClientId,
    /// Whether the stream is closed.
    pub(crate) closed: watch::Receiver<bool>,
}

impl Lease {
    /// Waits until the lease expires.
    pub(crate) async fn expired(&self) {
        match self {
            Self::Request => std::future::pending().await,
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

    /// When it uses the legacy era of dual-era servers.
    pub(crate) fn older_era(&self) -> OlderEra<'_> {
        OlderEra { capabilities: &self.client.capabilities, is_own: self.era() == Era::Legacy }
    }

    /// The client and principal of its requests.
    pub(crate) fn requester(&self) -> Requester {
        let requester = match (&self.session, &self.admission) {
            (Some(session), _) => session.requester(),
            (None, Lease::Stream(stream)) => requester_of(&stream.client, &self.identity),
            (None, Lease::Request | Lease::Token(_)) => {
                self.ids.requester(&self.client, &self.identity)
            }
        };
        Requester { path: self.path.clone(), ..requester }
    }

    /// The ID for its dedicated processes. Without a session, it depends on the capabilities,
    /// because a process receives them only once.
    pub(crate) fn dedicated_id(&self) -> ClientId {
        let sessionless =
            || self.ids.client.get_or_init(|| id_without_session(&self.client, &self.identity));
        match (&self.session, &self.admission) {
            (Some(session), _) => session.id.clone(),
            (None, Lease::Stream(stream)) => {
                digest_id(&format!("{}\n{}", stream.client.as_str(), sessionless().as_str()))
            }
            (None, Lease::Request | Lease::Token(_)) => sessionless().clone(),
        }
    }

    /// The ID for the last list sent to a client without a session. A stream has a single client;
    /// otherwise it is a digest of token, limits and client info. Capabilities are left out,
    /// because clients may declare others in each request.
    pub(crate) fn list_id(&self) -> ClientId {
        if let Lease::Stream(_) = self.admission {
            return ClientId::default();
        }
        let digest = || {
            let info = self.client.info.as_ref().map_or("", Raw::text);
            digest_id(&format!("{}\n{info}", self.identity.as_owner()))
        };
        self.ids.lists.get_or_init(digest).clone()
    }

    /// The `_meta` for modern servers of a legacy client. Modern clients send it in each request.
    pub(crate) fn client_meta(&self) -> Option<Raw> {
        match (self.era(), &self.session) {
            (Era::Modern, _) => None,
            (Era::Legacy, Some(session)) => Some(session.client_meta()),
            (Era::Legacy, None) => Some(self.client.meta(self.level)),
        }
    }
}

/// The ID of a client without a session: a digest of its token, limits, client info and
/// capabilities. Nothing else distinguishes clients that declare everything per request. A digest
/// has a fixed length.
fn id_without_session(client: &ClientProfile, identity: &CallerIdentity) -> ClientId {
    let info = client.info.as_ref().map_or("", Raw::text);
    digest_id(&format!("{}\n{info}\n{}", identity.as_owner(), client.capabilities))
}

/// A client ID derived from everything that identifies the client.
fn digest_id(identity: &str) -> ClientId {
    let digest = ring::digest::digest(&ring::digest::SHA256, identity.as_bytes());
    URL_SAFE_NO_PAD.encode(digest).as_str().into()
}
