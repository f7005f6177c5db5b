//! Failures of the next requests to an OAuth server.

use std::time::Duration;

use serde::Serialize;

/// A failure of the next request to an endpoint: the token endpoint, unless another is chosen.
#[derive(Debug, Clone, Serialize)]
pub struct Fault {
    kind: &'static str,
    endpoint: String,
    times: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    grant_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
}

impl Fault {
    /// Answers with an HTTP status, and the OAuth error `server_error`.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self { status: Some(status), ..Self::of_kind("status") }
    }

    /// Answers with HTTP status 400 and an OAuth error such as `invalid_grant`.
    #[must_use]
    pub fn error(error: &str) -> Self {
        Self { error: Some(error.to_owned()), ..Self::status(400) }
    }

    /// Performs the request after a delay.
    #[must_use]
    pub fn slow(delay: Duration) -> Self {
        Self { seconds: Some(delay.as_secs_f64()), ..Self::of_kind("slow") }
    }

    /// Closes the connection without a response.
    #[must_use]
    pub fn close() -> Self {
        Self::of_kind("close")
    }

    /// Performs the request, but closes the connection without a response.
    #[must_use]
    pub fn lose_response() -> Self {
        Self::of_kind("lose")
    }

    fn of_kind(kind: &'static str) -> Self {
        Self {
            kind,
            endpoint: "token".to_owned(),
            times: 1,
            grant_type: None,
            status: None,
            error: None,
            retry_after: None,
            seconds: None,
        }
    }

    /// The number of requests that fail.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times, ..self }
    }

    /// The endpoint, by its name in the statistics, or `any`.
    #[must_use]
    pub fn at_endpoint(self, endpoint: &str) -> Self {
        Self { endpoint: endpoint.to_owned(), ..self }
    }

    /// Only requests of a grant type, such as `refresh_token`.
    #[must_use]
    pub fn for_grant_type(self, grant_type: &str) -> Self {
        Self { grant_type: Some(grant_type.to_owned()), ..self }
    }

    /// Adds a `Retry-After` header to the status.
    #[must_use]
    pub fn with_retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }
}
