//! The program itself: its version, log, metrics, and links that open the page.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::extract::QueryOf;
use super::problem::{ApiError, ApiResult};
use super::servers;
use crate::control::Control;
use crate::types::{LogLines, LoginLink, Program};

/// The most lines of a log.
pub(super) const MAX_LINES: usize = 10_000;

/// The format of the metrics.
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How much of a log.
#[derive(Debug, Default, Deserialize)]
pub(super) struct LogQuery {
    lines: Option<usize>,
}

pub(super) async fn status(State(control): State<Control>) -> ApiResult<Program> {
    let uptime = control.started().elapsed().as_millis();
    Ok(Json(Program {
        version: control.version().to_owned(),
        pid: std::process::id(),
        uptime_ms: u64::try_from(uptime).unwrap_or(u64::MAX),
        last_event: control.events().last_id(),
    }))
}

pub(super) async fn log(
    State(control): State<Control>,
    QueryOf(query): QueryOf<LogQuery>,
) -> ApiResult<LogLines> {
    let lines = query.lines.unwrap_or(100);
    if !(1..=MAX_LINES).contains(&lines) {
        return Err(ApiError::bad_request(format!("`lines` must be from 1 to {MAX_LINES}")));
    }
    let lines = control.blocking(move |source| source.log(lines)).await.unwrap_or_default();
    Ok(Json(LogLines { lines }))
}

pub(super) async fn login_link(
    State(control): State<Control>,
    headers: HeaderMap,
) -> ApiResult<LoginLink> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    Ok(Json(control.login_link(&format!("http://{host}"))))
}

pub(super) async fn metrics(State(control): State<Control>) -> Response {
    let projects = control.source().projects();
    let servers = servers::all(&projects);
    let text = control.activity().metrics().text(&projects, &servers);
    ([(CONTENT_TYPE, METRICS)], text).into_response()
}
