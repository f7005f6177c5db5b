//! The section with configuration files that wait for a decision.

use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;

use super::form::FormFields;
use super::respond::{self, PageResult};
use crate::api::problem::ApiError;
use crate::api::trust;
use crate::control::Control;
use crate::source::TrustDecision;
use crate::templates::{self, Section};

pub(super) async fn page(State(control): State<Control>) -> Response {
    let requests = trust::requests(&control).await;
    respond::page(&control, "Trust", Section::Trust, |nonce| templates::trust(nonce, &requests))
        .await
}

/// Whether the list has changed since the page was opened.
pub(super) async fn changes(State(control): State<Control>, RawQuery(query): RawQuery) -> Response {
    let fields = FormFields::parse(query.as_deref().unwrap_or_default());
    let seen = fields.get("seen").parse().unwrap_or_default();
    let requests = trust::requests(&control).await;
    respond::fragment(|nonce| templates::trust_changes(nonce, seen, &requests))
}

pub(super) async fn count(State(control): State<Control>) -> Response {
    let pending = respond::pending(&control).await;
    respond::fragment(|nonce| templates::trust_count(nonce, pending))
}

pub(super) async fn decide(
    State(control): State<Control>,
    Path((id, decision)): Path<(String, String)>,
    headers: HeaderMap,
) -> PageResult {
    let decision = match &*decision {
        "trust" => TrustDecision::Trust,
        "block" => TrustDecision::Block,
        other => return Err(ApiError::not_found("decision", other).into()),
    };
    let requests = trust::decide(&control, &id, decision).await?;
    Ok(respond::after_change(&headers, "/trust", |nonce| templates::trust(nonce, &requests)))
}
