//! Options of a gateway: accepted tokens, hosts and origins, and limits.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::access::scope::Scope;
use crate::access::tokens::Tokens;
use crate::request::record::RequestObserver;

/// Options of a gateway that is served over HTTP.
#[derive(Clone, Debug, Default)]
pub struct GatewayOptions {
    /// Accepted bearer tokens. If there never were any, no token is required.
    pub tokens: Tokens,
    /// Accepted values of the `Host` header, beside those of the local machine.
    pub hosts: Vec<String>,
    /// Accepted values of the `Origin` header, beside those of the local machine:
    /// `https://example.com`.
    pub origins: Vec<String>,
    /// Limits that apply to all clients.
    pub limits: Limits,
    /// Receives a record of every request.
    pub observer: Option<Observer>,
}

/// Options of a gateway that serves one client over a pair of streams.
#[derive(Clone, Debug, Default)]
pub struct StreamOptions {
    /// The limits of the client.
    pub scope: Scope,
    /// Receives a record of every request.
    pub observer: Option<Observer>,
}

impl From<Scope> for StreamOptions {
    fn from(scope: Scope) -> Self {
        Self { scope, observer: None }
    }
}

/// A shared [`RequestObserver`].
#[derive(Clone)]
pub struct Observer(pub Arc<dyn RequestObserver>);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

/// Limits on the resources that clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest message, in bytes.
    pub message_bytes: usize,
    /// Most concurrent sessions of legacy clients.
    pub sessions: usize,
    /// Idle timeout of a session.
    pub session_idle: Duration,
    /// How long a parked call waits for its client to retry with input responses.
    pub answer_wait: Duration,
    /// Requests per second of one token, or of all clients without a token; `None` is no limit.
    pub requests_per_second: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 16 * 1024 * 1024,
            sessions: 10_000,
            session_idle: Duration::from_secs(60 * 60),
            answer_wait: Duration::from_secs(10 * 60),
            requests_per_second: None,
        }
    }
}
