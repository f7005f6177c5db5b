//! The identity a request is made for, and fair shares between principals.

mod fair_share;
mod fair_slots;

use std::fmt;
use std::sync::Arc;

pub use fair_share::FairShare;
pub(crate) use fair_share::HeldItem;
pub use fair_slots::{FairSlots, Slot};

/// Client id of requests made for more than one client. Ids of clients are random or digests, never
/// this text.
const SEVERAL_CLIENTS: &str = "several clients";

/// Principal accountable for requests. Bounded resources are divided fairly between principals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Principal {
    /// Nobody in particular: the host itself, or whoever uses a gateway without tokens.
    #[default]
    Anonymous,
    /// The bearers of a token, by its name.
    Token(Arc<str>),
    /// One client, where nothing else tells clients apart.
    Client(ClientId),
}

impl Principal {
    /// The name of the token, or the id of the client. Empty for [`Principal::Anonymous`].
    pub fn as_str(&self) -> &str {
        match self {
            Self::Anonymous => "",
            Self::Token(name) => name,
            Self::Client(id) => id.as_str(),
        }
    }

    /// Whether both are the bearer of the same token, or both have none.
    pub(crate) fn has_same_token(&self, other: &Self) -> bool {
        let token = |principal: &Self| match principal {
            Self::Token(name) => Some(name.clone()),
            Self::Anonymous | Self::Client(_) => None,
        };
        token(self) == token(other)
    }

    /// Accountable principal of a client: a client of nobody in particular answers for itself.
    #[must_use]
    pub fn of_client(&self, client: &ClientId) -> Self {
        match self {
            Self::Anonymous => Self::Client(client.clone()),
            known => known.clone(),
        }
    }
}

/// One client: a session, or everything a client without sessions asks for. A server's message about a
/// request of one client never reaches another client.
///
/// The text of an id may let its bearer act for the client, so `Debug` does not print it.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct ClientId(Arc<str>);

impl ClientId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
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

/// The client a request is made for, with its principal. The default is the host itself, for hosts
/// that serve no other clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Requester {
    /// The client, to which alone the server's messages about the request go.
    pub client: ClientId,
    /// The principal whose share of bounded resources the request uses.
    pub principal: Principal,
}

impl Requester {
    /// The requester of something made for this client and for another one. Unless they are the same,
    /// its client is neither of them: a server's message about it must not reach either.
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
        Self { client, principal }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_two_clients_is_of_neither() {
        let [ann, bob, eve] = [("ann", "team"), ("bob", "team"), ("eve", "other")]
            .map(|it| Requester { client: it.0.into(), principal: Principal::Token(it.1.into()) });
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
    fn debug_output_never_shows_a_client_id() {
        let client = ClientId::from("session-7f3");
        for principal in [Principal::Anonymous, Principal::Token("ann".into())] {
            let principal = principal.of_client(&client);
            let requester = Requester { client: client.clone(), principal };
            assert!(!format!("{requester:?}").contains("7f3"), "{requester:?}");
        }
    }
}
