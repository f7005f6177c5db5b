//! The calls that clients made.

use maud::{Markup, html};
use serde_json::Value;

use super::address::with_query;
use super::format::{count, counted, latency, timestamp};
use super::layout::Nonce;
use super::part::{Tone, badge, empty, filter};
use super::text::{cut, name, shown};
use crate::types::Call;

/// Points of the sparkline: one per pixel and a half.
const MAX_POINTS: usize = 160;

/// Characters of arguments and results in the table.
const MAX_PAYLOAD_CHARS: usize = 10_000;

/// Outcomes to filter by.
const OUTCOMES: &[&str] =
    &["ok", "tool_error", "rpc_error", "timeout", "cancelled", "unavailable", "denied"];

/// The query of `/calls`. Empty texts are no restriction.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallQuery {
    /// Name of the server.
    pub(crate) server: String,
    /// One of the outcomes.
    pub(crate) outcome: String,
    /// Name and version of the client.
    pub(crate) client: String,
}

/// Calls with the values of the filters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallPage<'a> {
    /// The query that found them.
    pub(crate) query: &'a CallQuery,
    /// Servers to choose from.
    pub(crate) servers: &'a [String],
    /// Clients to choose from.
    pub(crate) clients: &'a [String],
    /// The calls, newest first.
    pub(crate) calls: &'a [Call],
    /// Durations in milliseconds, oldest first.
    pub(crate) latencies: &'a [f64],
}

/// The calls with their filters.
pub(crate) fn calls(nonce: Nonce<'_>, page: &CallPage<'_>) -> Markup {
    let outcomes: Vec<_> = OUTCOMES.iter().map(|outcome| (*outcome).to_owned()).collect();
    html! {
        div.head { h1 { "Calls" } }
        form #call-filters.filters method="get" action="/calls" hx-get="/calls" hx-select="#calls" hx-target="#calls"
            hx-swap="outerMorph" hx-replace-url="true" hx-sync="replace"
            hx-trigger=r##"submit, change from:"#call-filters select""## hx-nonce=(nonce)
        {
            (filter("server", "Server", &page.query.server, page.servers))
            (filter("outcome", "Outcome", &page.query.outcome, &outcomes))
            (filter("client", "Client", &page.query.client, page.clients))
            noscript { button { "Filter" } }
        }
        (call_list(nonce, page))
    }
}

/// The calls. Fragment: `/fragments/calls` with the query of `/calls`; replaces `#calls`.
pub(crate) fn call_list(nonce: Nonce<'_>, page: &CallPage<'_>) -> Markup {
    let query = page.query;
    let parameters =
        [("server", query.server.as_str()), ("outcome", &query.outcome), ("client", &query.client)];
    html! {
        section #calls aria-label="Calls" hx-get=(with_query("/fragments/calls", &parameters))
            hx-trigger="calls from:#events throttle:250ms" hx-swap="outerMorph" hx-nonce=(nonce)
        {
            @if page.calls.is_empty() {
                (empty("No calls", "Calls of clients appear here as they finish."))
            } @else {
                (figures(page))
                (table(page.calls))
            }
        }
    }
}

fn figures(page: &CallPage<'_>) -> Markup {
    let mut sorted = page.latencies.to_vec();
    sorted.sort_by(f64::total_cmp);
    let percentile = |percent: usize| {
        let index = sorted.len().saturating_sub(1) * percent / 100;
        sorted.get(index).map_or("–".to_owned(), |ms| latency(*ms))
    };
    let failed = page.calls.iter().filter(|call| call.outcome != "ok").count();
    html! {
        dl.figures {
            div { dt { "Calls" } dd { (count(page.calls.len() as u64)) } }
            div { dt { "Not OK" } dd { (count(failed as u64)) } }
            div { dt { "Median" } dd { (percentile(50)) } }
            div { dt { "95th percentile" } dd { (percentile(95)) } }
            div.wide { dt { "Latency, newest at the right" } dd { (sparkline(page.latencies)) } }
        }
    }
}

/// Durations as a line, on a logarithmic scale: calls take from microseconds to minutes.
fn sparkline(latencies: &[f64]) -> Markup {
    const WIDTH: f64 = 240.0;
    const HEIGHT: f64 = 32.0;
    /// A day: also where a duration is infinite, there is a line to draw.
    const MAX_MS: f64 = 86_400_000.0;
    let skipped = latencies.len().saturating_sub(MAX_POINTS);
    let recent = latencies.get(skipped..).unwrap_or_default();
    let scale = |ms: f64| (1.0 + ms.clamp(0.0, MAX_MS)).ln();
    let scaled = || recent.iter().copied().map(scale);
    let bottom = scaled().fold(f64::MAX, f64::min);
    let range = (scaled().fold(0.0, f64::max) - bottom).max(0.1);
    let step = WIDTH / (recent.len().max(2) - 1) as f64;
    let point = |(index, ms): (usize, &f64)| {
        let height = (scale(*ms) - bottom) / range * (HEIGHT - 6.0);
        format!("{:.1},{:.1}", step * index as f64, HEIGHT - 4.0 - height)
    };
    let points: Vec<_> = recent.iter().enumerate().map(point).collect();
    let line = points.join(" ");
    let label = format!("Latency of the last {}", counted(recent.len(), "call"));
    html! {
        svg.spark viewBox="0 0 240 32" preserveAspectRatio="none" role="img" aria-label=(label) {
            polygon.area points={ "0,32 " (line) " 240,32" } {}
            polyline.line points=(line) vector-effect="non-scaling-stroke" {}
        }
    }
}

fn table(calls: &[Call]) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th scope="col" { "Time (UTC)" }
                    th scope="col" { "Call" }
                    th scope="col" { "Server" }
                    th scope="col" { "Client" }
                    th.number scope="col" { "Duration" }
                    th scope="col" { "Outcome" }
                }
            }
            tbody { @for call in calls { (row(call)) } }
        }
    }
}

fn row(call: &Call) -> Markup {
    let (date, time) = timestamp(&call.time);
    let (tone, word) = outcome(&call.outcome);
    html! {
        tr id={ "call-" (call.id) } {
            td.time data-label="Time (UTC)" { time datetime=(call.time) title=(call.time) { (time) span.sub { (date) } } }
            th scope="row" {
                @match &call.name { Some(text) => (name(text)), None => (name(&call.method)) }
                @if call.name.is_some() { span.sub { (name(&call.method)) } }
                (payload(call))
            }
            td data-label="Server" { (optional(call.server.as_deref())) }
            td data-label="Client" { (optional(call.client.as_deref())) (caller(call)) }
            td.number data-label="Duration" { (latency(call.duration_ms)) }
            td data-label="Outcome" {
                (badge(tone, word))
                @if let Some(code) = call.code { span.sub { "code " (code) } }
            }
        }
    }
}

fn optional(text: Option<&str>) -> Markup {
    html! { @match text { Some(text) => (name(text)), None => span.muted { "–" } } }
}

fn caller(call: &Call) -> Markup {
    let details: Vec<_> = [&call.principal, &call.conversation].into_iter().flatten().collect();
    html! { @for text in details { span.sub { (name(text)) } } }
}

fn payload(call: &Call) -> Markup {
    let parts = [("Arguments", &call.arguments), ("Result", &call.result)];
    html! {
        @if parts.iter().any(|(_, value)| value.is_some()) {
            details id={ "payload-" (call.id) } {
                summary { "Payload" }
                @for (title, value) in parts {
                    @if let Some(value) = value { p.kind { (title) } (payload_text(value)) }
                }
            }
        }
    }
}

fn payload_text(value: &Value) -> Markup {
    let text = format!("{value:#}");
    let (head, missing) = cut(&text, MAX_PAYLOAD_CHARS);
    html! {
        pre tabindex="0" { (shown(head)) }
        @if missing > 0 { p.muted { (count(missing as u64)) " more characters" } }
    }
}

fn outcome(outcome: &str) -> (Tone, &str) {
    match outcome {
        "ok" => (Tone::Good, "OK"),
        "tool_error" => (Tone::Bad, "Tool error"),
        "rpc_error" => (Tone::Bad, "RPC error"),
        "timeout" => (Tone::Bad, "Timeout"),
        "unavailable" => (Tone::Bad, "Unavailable"),
        "denied" => (Tone::Wait, "Denied"),
        "cancelled" => (Tone::Off, "Cancelled"),
        other => (Tone::Off, other),
    }
}

#[cfg(test)]
mod tests {
    use super::sparkline;

    #[test]
    fn a_sparkline_of_any_length_is_drawn() {
        for latencies in [vec![], vec![0.0], vec![1.0; 1_000], vec![f64::NAN, f64::INFINITY]] {
            let html = sparkline(&latencies).into_string();
            assert!(html.contains("<polyline") && !html.contains("style="), "{html}");
            assert!(!html.contains("inf"), "{html}");
        }
    }
}
