//! `/trust`: configuration files that wait for a decision of the user (SEC-1).

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::extract::PathOf;
use super::problem::{ApiError, ApiResult};
use crate::control::Control;
use crate::source::{ControlSource, TrustDecision, UnknownTrustRequest};
use crate::types::{Page, TrustRequest};

/// The files that wait for a decision, or are blocked.
pub(crate) async fn requests(control: &Control) -> Vec<TrustRequest> {
    control.blocking(ControlSource::trust_requests).await.unwrap_or_default()
}

pub(super) async fn list(State(control): State<Control>) -> ApiResult<Page<TrustRequest>> {
    Ok(Json(Page { items: requests(&control).await, next: None }))
}

/// Decides on a file. Returns the files that still wait.
pub(crate) async fn decide(
    control: &Control,
    id: &str,
    decision: TrustDecision,
) -> Result<Vec<TrustRequest>, ApiError> {
    let asked = id.to_owned();
    let decided = control.blocking(move |source| source.decide(&asked, decision)).await;
    match decided {
        Some(Ok(Ok(()))) => Ok(requests(control).await),
        Some(Ok(Err(UnknownTrustRequest))) => Err(ApiError::not_found("file to decide on", id)),
        Some(Err(problem)) => Err(ApiError::new(StatusCode::INSUFFICIENT_STORAGE, problem)),
        None => Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "the decision failed")),
    }
}

pub(super) async fn trust(
    State(control): State<Control>,
    PathOf(id): PathOf<String>,
) -> ApiResult<Page<TrustRequest>> {
    let items = decide(&control, &id, TrustDecision::Trust).await?;
    Ok(Json(Page { items, next: None }))
}

pub(super) async fn block(
    State(control): State<Control>,
    PathOf(id): PathOf<String>,
) -> ApiResult<Page<TrustRequest>> {
    let items = decide(&control, &id, TrustDecision::Block).await?;
    Ok(Json(Page { items, next: None }))
}
