//! The control API under `/api/v1`, and everything else that is served with it.

pub(crate) mod problem;
mod extract;
pub(crate) mod servers;
pub(crate) mod tools;
pub(crate) mod tool_call;
pub(crate) mod calls;
pub(crate) mod conversations;
pub(crate) mod trust;
mod program;
mod events;
mod operations;
mod guard;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::any;

use crate::control::Control;
use problem::ApiError;

async fn unknown_address(address: Uri) -> ApiError {
    ApiError::not_found("address", address.path())
}

/// The prefix of all addresses of the API.
const PREFIX: &str = "/api/v1";

/// The routes of the API, and of the metrics.
pub(crate) fn router(control: &Control) -> Router {
    let api = operations::all().into_iter().fold(Router::new(), |router, operation| {
        router.route(&format!("{PREFIX}{}", operation.path), operation.handler)
    });
    let guarded = api
        .route("/metrics", axum::routing::get(program::metrics))
        .route(&format!("{PREFIX}/{{*path}}"), any(unknown_address))
        .method_not_allowed_fallback(async || {
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "this address has no such method")
        });
    guarded
        .layer(from_fn_with_state(control.clone(), guard::require_owner))
        .with_state(control.clone())
}
