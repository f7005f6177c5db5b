//! The documents of OTLP: spans and metrics of requests, named by the semantic conventions for MCP.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use trunkline::protocol::request_method;
use trunkline_gateway::{RequestOutcome, RequestRecord, RequestTrace, TraceContext};

use super::CONVENTIONS;
use crate::audit::hex;

/// Kinds of spans.
const SERVER: u8 = 2;
const CLIENT: u8 = 3;

/// The status of a span that failed.
const ERROR: u8 = 2;

/// Sums since the start of the process.
const CUMULATIVE: u8 = 2;

/// Bounds of durations in seconds, those of the conventions.
const BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// Series of durations; further ones are counted as `other`.
const MAX_SERIES: usize = 2000;

/// The resource that all spans and metrics belong to.
pub(super) fn resource(service: &str, version: &str) -> Value {
    let attributes = [("service.name", service), ("service.version", version)];
    json!({ "attributes": strings(&attributes) })
}

fn strings(pairs: &[(&str, &str)]) -> Vec<Value> {
    let attribute =
        |(key, value): &(&str, &str)| json!({ "key": key, "value": { "stringValue": value } });
    pairs.iter().map(attribute).collect()
}

fn nanoseconds(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    since.as_nanos().to_string()
}

/// The spans of a request: its own, and that of the request to the server.
pub(super) fn spans_of(record: &RequestRecord) -> Vec<Value> {
    let Some(trace) = record.trace else { return Vec::new() };
    let end = record.started + record.duration;
    let mut spans =
        vec![span(record, &trace, (SERVER, trace.server, trace.parent), (record.started, end))];
    if let Some((client, started)) = trace.client {
        let end = (started + record.upstream).min(end);
        spans.push(span(record, &trace, (CLIENT, client, Some(trace.server)), (started, end)));
    }
    spans
}

fn span(
    record: &RequestRecord,
    trace: &RequestTrace,
    (kind, context, parent): (u8, TraceContext, Option<TraceContext>),
    (start, end): (SystemTime, SystemTime),
) -> Value {
    let (target, _) = target(record);
    let name = match target {
        Some((_, name)) => format!("{} {name}", record.method),
        None => record.method.to_string(),
    };
    let mut span = json!({
        "traceId": hex(&context.trace_id),
        "spanId": hex(&context.span_id),
        "name": name,
        "kind": kind,
        "startTimeUnixNano": nanoseconds(start),
        "endTimeUnixNano": nanoseconds(end),
        "attributes": attributes(record),
    });
    if let Some(parent) = parent {
        span["parentSpanId"] = hex(&parent.span_id).into();
    }
    if let Some(link) = trace.link.filter(|_| kind == SERVER) {
        span["links"] = json!([{ "traceId": hex(&link.trace_id), "spanId": hex(&link.span_id) }]);
    }
    if error_type(record).is_some() {
        span["status"] = json!({ "code": ERROR });
    }
    span
}

/// The tool or prompt of a request, with its attribute. URIs of resources may contain credentials.
fn target(record: &RequestRecord) -> (Option<(&'static str, &str)>, bool) {
    let key = match &*record.method {
        "tools/call" => Some("gen_ai.tool.name"),
        "prompts/get" => Some("gen_ai.prompt.name"),
        _ => None,
    };
    (key.zip(record.subject.as_deref()), &*record.method == "tools/call")
}

fn attributes(record: &RequestRecord) -> Vec<Value> {
    let (target, is_call) = target(record);
    let error = error_type(record);
    let mut pairs = vec![("mcp.method.name", &*record.method)];
    pairs.extend(target);
    pairs.extend(is_call.then_some(("gen_ai.operation.name", "execute_tool")));
    pairs.extend(error.as_deref().map(|error| ("error.type", error)));
    pairs.extend(record.server.as_ref().map(|server| ("trunkline.server", server.as_str())));
    pairs.extend(record.client.as_deref().map(|client| ("trunkline.client", client)));
    strings(&pairs)
}

/// The code of an error response, or the kind of failure; `None` for a success.
fn error_type(record: &RequestRecord) -> Option<String> {
    match (record.outcome, record.code) {
        (RequestOutcome::Ok, _) => None,
        (RequestOutcome::RpcError, Some(code)) => Some(code.to_string()),
        (outcome, _) => Some(outcome.as_str().to_owned()),
    }
}

/// A series of durations: method, tool, and kind of error.
type SeriesKey = (String, String, Option<String>);

/// Durations of requests, as a histogram per series.
#[derive(Default)]
pub(super) struct Durations {
    series: BTreeMap<SeriesKey, Histogram>,
    started: Option<SystemTime>,
}

#[derive(Default)]
struct Histogram {
    count: u64,
    sum: f64,
    buckets: [u64; BOUNDS.len() + 1],
}

impl Durations {
    pub(super) fn add(&mut self, record: &RequestRecord) {
        self.started.get_or_insert(record.started);
        let method = request_method(&record.method).unwrap_or("other");
        // Names that no server has may be invented by clients.
        let target = target(record).0.filter(|_| record.server.is_some());
        let target = target.map_or("", |(_, name)| name);
        let mut key = (method.to_owned(), target.to_owned(), error_type(record));
        if self.series.len() >= MAX_SERIES && !self.series.contains_key(&key) {
            key.1 = "other".to_owned();
        }
        let histogram = self.series.entry(key).or_default();
        let seconds = record.duration.as_secs_f64();
        histogram.count += 1;
        histogram.sum += seconds;
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        histogram.buckets[bucket] += 1;
    }

    fn points(&self, now: SystemTime) -> Vec<Value> {
        let start = nanoseconds(self.started.unwrap_or(now));
        let point = |((method, target, error), histogram): (&SeriesKey, &Histogram)| {
            let mut pairs = vec![("mcp.method.name", &**method)];
            let key =
                if method == "prompts/get" { "gen_ai.prompt.name" } else { "gen_ai.tool.name" };
            pairs.extend((!target.is_empty()).then_some((key, &**target)));
            pairs.extend(error.as_deref().map(|error| ("error.type", error)));
            json!({
                "attributes": strings(&pairs),
                "startTimeUnixNano": start,
                "timeUnixNano": nanoseconds(now),
                "count": histogram.count.to_string(),
                "sum": histogram.sum,
                "bucketCounts": histogram.buckets.map(|count| count.to_string()),
                "explicitBounds": BOUNDS,
            })
        };
        self.series.iter().map(point).collect()
    }
}

pub(super) fn traces_document(resource: &Value, spans: &[Value]) -> Value {
    let scope =
        json!({ "scope": { "name": "trunkline" }, "spans": spans, "schemaUrl": CONVENTIONS });
    json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [scope] }] })
}

pub(super) fn metrics_document(resource: &Value, durations: &Durations, lost: u64) -> Value {
    let now = SystemTime::now();
    let histogram = json!({
        "name": "mcp.server.operation.duration",
        "unit": "s",
        "histogram": { "dataPoints": durations.points(now), "aggregationTemporality": CUMULATIVE },
    });
    let point = json!({ "timeUnixNano": nanoseconds(now), "asInt": lost.to_string() });
    let sum = json!({
        "dataPoints": [point], "aggregationTemporality": CUMULATIVE, "isMonotonic": true,
    });
    let lost = json!({ "name": "trunkline.spans.lost", "unit": "{span}", "sum": sum });
    let scope = json!({
        "scope": { "name": "trunkline" }, "metrics": [histogram, lost], "schemaUrl": CONVENTIONS,
    });
    json!({ "resourceMetrics": [{ "resource": resource, "scopeMetrics": [scope] }] })
}
