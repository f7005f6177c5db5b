//! Reads paths, queries and bodies; an unreadable one is a problem in the form of the API.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use trunkline::message::Raw;

use super::problem::ApiError;

/// The parameters of a path.
pub(crate) struct PathOf<T>(pub(crate) T);

impl<T, S> FromRequestParts<S> for PathOf<T>
where
    T: DeserializeOwned + Send,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::from_request_parts(parts, state).await;
        path.map(|Path(value)| Self(value))
            .map_err(|error| ApiError::bad_request(error.body_text()))
    }
}

/// The parameters of a query.
pub(crate) struct QueryOf<T>(pub(crate) T);

impl<T, S> FromRequestParts<S> for QueryOf<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::from_request_parts(parts, state).await;
        query
            .map(|Query(value)| Self(value))
            .map_err(|error| ApiError::bad_request(error.body_text()))
    }
}

/// A body of JSON.
pub(crate) struct JsonOf<T>(pub(crate) T);

impl<T, S> FromRequest<S> for JsonOf<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let body = Json::from_request(request, state).await;
        body.map(|Json(value)| Self(value)).map_err(|error| {
            let status = match error.status() {
                // One status for every body that is not as described.
                StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
                status => status,
            };
            ApiError::new(status, error.body_text())
        })
    }
}

/// A body of JSON, and the same as it was written.
pub(crate) struct RawJsonOf<T>(pub(crate) T, pub(crate) Raw);

impl<T, S> FromRequest<S> for RawJsonOf<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let bytes = Bytes::from_request(Request::new(body), state).await;
        let bytes = bytes.map_err(|error| ApiError::new(error.status(), error.body_text()))?;
        let copy = Request::from_parts(parts, Body::from(bytes.clone()));
        let JsonOf(value) = JsonOf::from_request(copy, state).await?;
        let text = std::str::from_utf8(&bytes)
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let raw = Raw::from_text(text).map_err(|error| ApiError::bad_request(error.to_string()))?;
        Ok(Self(value, raw))
    }
}
