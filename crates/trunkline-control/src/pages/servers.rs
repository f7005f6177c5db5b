//! The section with the servers.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use maud::Markup;

use super::respond::{self, PageResult};
use crate::api::problem::ApiError;
use crate::api::servers::{self, ServerAction};
use crate::control::Control;
use crate::templates::{self, Nonce, Section};
use crate::types::Project;

pub(super) async fn page(State(control): State<Control>) -> Response {
    respond::page(&control, "Servers", Section::Servers, |nonce| list(&control, nonce)).await
}

pub(super) async fn fragment(State(control): State<Control>) -> Response {
    respond::fragment(|nonce| list(&control, nonce))
}

fn list(control: &Control, nonce: Nonce<'_>) -> Markup {
    let open = control.source().projects();
    let projects: Vec<Project> = open.iter().map(|project| project.info.clone()).collect();
    templates::servers(nonce, &projects, &servers::all(&open))
}

pub(super) async fn act(
    State(control): State<Control>,
    Path((project, name, action)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> PageResult {
    let action = match &*action {
        "start" => ServerAction::Start,
        "stop" => ServerAction::Stop,
        "restart" => ServerAction::Restart,
        other => return Err(ApiError::not_found("action", other).into()),
    };
    servers::act(&control, (&project, &name), action).await?;
    Ok(respond::after_change(&headers, "/servers", |nonce| list(&control, nonce)))
}
