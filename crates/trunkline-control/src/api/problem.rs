//! Errors of the API, as RFC 9457 defines them.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use crate::types::Problem;

/// An error response.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    detail: String,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(crate) fn not_found(what: &str, name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no {what} `{name}`"))
    }

    /// The error as JSON.
    pub(crate) fn problem(&self) -> Problem {
        Problem {
            status: self.status.as_u16(),
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            detail: self.detail.clone(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = Json(self.problem());
        (self.status, [(CONTENT_TYPE, "application/problem+json")], body).into_response()
    }
}

/// The result of a handler.
pub(crate) type ApiResult<T> = Result<Json<T>, ApiError>;
