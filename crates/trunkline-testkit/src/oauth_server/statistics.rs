//! Requests that an OAuth server and its MCP server received.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The requests since the start or a reset, without those to the control API.
#[derive(Debug, Clone, Deserialize)]
pub struct OAuthStatistics {
    /// All requests, in order of arrival.
    pub requests: Vec<RecordedRequest>,
    /// The number of refreshes with a refresh token that was used before.
    pub refresh_token_reuses: u64,
    counts: BTreeMap<String, u64>,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RecordedRequest {
    /// `first`, or `second` for the authorization server after a migration.
    pub server: String,
    /// `mcp`, `resource_metadata`, `metadata`, `registration`, `authorization`, `token`,
    /// `revocation`, `device_authorization`, `jwks`, `stolen` or `other`.
    pub endpoint: String,
    /// The HTTP method.
    pub method: String,
    /// The path, without a query.
    pub path: String,
    /// The grant type, at the token endpoint.
    pub grant_type: Option<String>,
    /// The HTTP status; 0 when there was no response, and none while there is none yet.
    pub status: Option<u16>,
}

impl OAuthStatistics {
    /// The number of requests to an endpoint.
    #[must_use]
    pub fn count(&self, endpoint: &str) -> u64 {
        self.counts.get(endpoint).copied().unwrap_or_default()
    }

    /// The number of token requests of a grant type, such as `refresh_token`.
    #[must_use]
    pub fn grants(&self, grant_type: &str) -> u64 {
        self.count(&format!("token:{grant_type}"))
    }
}
