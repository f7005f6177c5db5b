//! The client and principal of a request, and fair shares between principals.

mod fair_share;
mod fair_slots;
mod request_path;

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

pub use fair_share::{Evictable, FairShare};
pub use fair_slots::{FairSlots, Slot};
pub use request_path::RequestPath;

/// Client ID of requests on behalf of more than one client. Real client IDs are random or digests,
/// so they never equal it.
const SEVERAL_CLIENTS: &str = "several clients";

/// Principal accountable for requests. Limited resources are divided fairly between principals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Principal {
    /// No identity: the host itself, or any client of a gateway without tokens.
    #[default]
    Anonymous,
    /// The holders of a token, by its name.
    Token(Arc<str>),
    /// One client, where no token identifies it.
    Client(ClientId),
}

impl Principal {
    /// The name of the token or the ID of the client. Empty for [`Principal::Anonymous`].
    pub fn as_str(&self) -> &str {
        match self {
            Self::Anonymous => "",
            Self::Token(name) => name,
            Self::Client(id) => id.as_str(),
        }
    }

    /// Whether both hold the same token, or neither holds one.
    pub(crate) fn has_same_token(&self, other: &Self) -> bool {
        let token = |principal: &Self| match principal {
            Self::Token(name) => Some(name.clone()),
            Self::Anonymous | Self::Client(_) => None,
        };
        token(self) == token(other)
    }

    /// Principal accountable for a client: an anonymous client is accountable for itself.
    #[must_use]
    pub fn of_client(&self, client: &ClientId) -> Self {
        match self {
            Self::Anonymous => Self::Client(client.clone()),
            known => known.clone(),
        }
    }
}

/// ID of one client: a session, or all requests of a client without sessions. Server messages about
/// a request of one client never reach another client.
///
/// Knowing an ID may be enough to act as the client, so `Debug` does not print it.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct ClientId(Arc<str>);

impl ClientId {
    /// The ID as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for ClientId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ClientId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl From<Arc<str>> for ClientId {
    fn from(id: Arc<str>) -> Self {
        Self(id)
    }
}

impl fmt::Debug for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientId(..)")
    }
}

/// The client that a request is made for, with its principal. The default is the host itself, for
/// hosts that serve no other clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Requester {
    /// The only client that receives server messages about the request.
    pub client: ClientId,
    /// The principal whose share of limited resources the request uses.
    pub principal: Principal,
    /// Whether the client has no session. Such clients have the same ID if they look the same, so a
    /// server request is delivered only to the request that it concerns.
    pub is_sessionless: bool,
    /// The processes that forwarded the request.
    pub path: RequestPath,
}

impl Requester {
    /// Whether another request certainly belongs to the same client.
    pub(crate) fn is_same_client(&self, other: &Self) -> bool {
        self.client == other.client && !self.is_sessionless
    }

    /// The requester of a request for this client and another one. Unless they are the same, its
    /// client is neither of them, so that server messages about it reach neither.
    #[must_use]
    pub(crate) fn joined(&self, other: &Self) -> Self {
        if self.client == other.client {
            return self.clone();
        }
        let client = ClientId::from(SEVERAL_CLIENTS);
        let principal = match self.principal.has_same_token(&other.principal) {
            true => self.principal.clone(),
            false => Principal::Client(client.clone()),
        };
        // A request on behalf of both starts here, so its path is empty.
        Self { client, principal, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_two_clients_is_of_neither() {
        let [ann, bob, eve] = [("ann", "team"), ("bob", "team"), ("eve", "other")].map(|it| {
            let principal = Principal::Token(it.1.into());
            Requester { client: it.0.into(), principal, ..Requester::default() }
        });
        assert_eq!(ann.joined(&ann), ann);
        let both = ann.joined(&bob);
        assert!(both.client != ann.client && both.client != bob.client);
        assert_eq!(both.principal, ann.principal);
        let all = both.joined(&eve);
        assert_eq!(all.client, both.client);
        assert!(!all.principal.has_same_token(&ann.principal));
        assert!(!all.principal.has_same_token(&eve.principal));
    }

    #[test]
    fn two_requests_without_a_session_are_never_of_one_client_for_certain() {
        let session = Requester { client: "ann".into(), ..Requester::default() };
        let sessionless = Requester { is_sessionless: true, ..session.clone() };
        assert!(session.is_same_client(&session));
        assert!(!sessionless.is_same_client(&sessionless));
    }

    #[test]
    fn debug_output_never_shows_a_client_id() {
        let client = ClientId::from("session-7f3");
        for principal in [Principal::Anonymous, Principal::Token("ann".into())] {
            let principal = principal.of_client(&client);
            let requester = Requester { client: client.clone(), principal, ..Requester::default() };
            assert!(!format!("{requester:?}").contains("7f3"), "{requester:?}");
        }
    }
}
