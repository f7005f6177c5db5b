//! What a gateway is told when it is made.

use std::time::Duration;

use crate::access::tokens::Tokens;

/// How a gateway behaves over HTTP.
#[derive(Clone, Debug, Default)]
pub struct GatewayOptions {
    /// Who may ask. If there are none, everybody who reaches the address may.
    pub tokens: Tokens,
    /// Names the gateway may be asked under, beside those of this machine.
    pub hosts: Vec<String>,
    /// Origins of web pages that may ask, beside those of this machine: `https://example.com`.
    pub origins: Vec<String>,
    /// What nobody may exceed.
    pub limits: Limits,
}

/// What nobody may exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message.
    pub message_bytes: usize,
    /// Sessions of legacy clients at the same time.
    pub sessions: usize,
    /// How long a session may be unused.
    pub session_idle: Duration,
    /// How long a call waits for a client that has to call again with an answer.
    pub answer_wait: Duration,
    /// Requests of one token in a second, or of everybody without one; no limit if nothing is said.
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
