//! The section with recent calls.

use axum::extract::{RawQuery, State};
use maud::Markup;

use super::form::FormFields;
use super::respond::{self, PageResult};
use crate::api::calls::{self, CallSelection};
use crate::api::problem::ApiError;
use crate::control::Control;
use crate::templates::{self, CallPage, CallQuery, Nonce, Section};
use crate::types::Call;

/// Calls in the table.
const ROWS: usize = 100;

pub(super) async fn page(State(control): State<Control>, RawQuery(query): RawQuery) -> PageResult {
    let query = query_of(query.as_deref());
    let found = select(&control, &query)?;
    let body =
        |nonce: Nonce<'_>| render(&control, &query, &found, |it| templates::calls(nonce, it));
    Ok(respond::page(&control, "Calls", Section::Calls, body).await)
}

pub(super) async fn fragment(
    State(control): State<Control>,
    RawQuery(query): RawQuery,
) -> PageResult {
    let query = query_of(query.as_deref());
    let found = select(&control, &query)?;
    Ok(respond::fragment(|nonce| {
        render(&control, &query, &found, |it| templates::call_list(nonce, it))
    }))
}

fn query_of(text: Option<&str>) -> CallQuery {
    let fields = FormFields::parse(text.unwrap_or_default());
    let text = |name: &str| fields.get(name).to_owned();
    CallQuery { server: text("server"), outcome: text("outcome"), client: text("client") }
}

fn select(control: &Control, query: &CallQuery) -> Result<Vec<Call>, ApiError> {
    let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let selection = CallSelection {
        server: given(&query.server),
        outcome: given(&query.outcome),
        client: given(&query.client),
        limit: Some(ROWS),
        ..CallSelection::default()
    };
    calls::select(control, &selection).map(|page| page.items)
}

fn render(
    control: &Control,
    query: &CallQuery,
    calls: &[Call],
    template: impl FnOnce(&CallPage<'_>) -> Markup,
) -> Markup {
    let all = control.activity().recent_calls(None, usize::MAX, |_| true);
    let names = |name: fn(&Call) -> Option<&String>| {
        let mut names: Vec<String> = all.iter().filter_map(name).cloned().collect();
        names.sort();
        names.dedup();
        names
    };
    let servers = names(|call| call.server.as_ref());
    let clients = names(|call| call.client.as_ref());
    let latencies: Vec<f64> = calls.iter().rev().map(|call| call.duration_ms).collect();
    let (servers, clients, latencies) = (&*servers, &*clients, &*latencies);
    template(&CallPage { query, servers, clients, calls, latencies })
}
