//! `/calls`: the calls of clients that have ended, newest first.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;

use super::extract::QueryOf;
use super::problem::{ApiError, ApiResult};
use super::servers::{checked_limit, unknown_cursor};
use crate::control::Control;
use crate::types::{Call, Page};

/// Selects calls.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct CallSelection {
    /// Calls in this project.
    pub(crate) project: Option<String>,
    /// Calls of this server.
    pub(crate) server: Option<String>,
    /// Calls with this outcome.
    pub(crate) outcome: Option<String>,
    /// Calls of this client.
    pub(crate) client: Option<String>,
    pub(crate) limit: Option<usize>,
    pub(crate) cursor: Option<String>,
}

pub(super) async fn list(
    State(control): State<Control>,
    QueryOf(query): QueryOf<CallSelection>,
) -> ApiResult<Page<Call>> {
    select(&control, &query).map(Json)
}

/// The calls that a selection names. The cursor is the ID of the last call of the page before.
pub(crate) fn select(control: &Control, query: &CallSelection) -> Result<Page<Call>, ApiError> {
    let limit = checked_limit(query.limit)?;
    let before = query.cursor.as_deref().map(str::parse).transpose();
    let before = before.map_err(|_| unknown_cursor())?;
    let is = |wanted: &Option<String>, value: Option<&str>| match wanted.as_deref() {
        Some(wanted) => value == Some(wanted),
        None => true,
    };
    let is_wanted = |call: &Call| {
        is(&query.project, Some(&call.project))
            && is(&query.server, call.server.as_deref())
            && is(&query.outcome, Some(&call.outcome))
            && is(&query.client, call.client.as_deref())
    };
    let mut items = control.activity().recent_calls(before, limit + 1, is_wanted);
    let has_more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| has_more).map(|call| call.id.to_string());
    Ok(Page { items, next })
}
