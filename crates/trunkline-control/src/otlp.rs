//! Exports spans and metrics to a collector of OpenTelemetry: OTLP over HTTP, in JSON.
//!
//! By hand, because the crates of OpenTelemetry bring 14 others, among them a second HTTP client, and make the IDs of spans
//! themselves, while here they are in the requests to servers before a span ends. What is sent are two documents made of one
//! record. A collector on this machine takes them on from there, with TLS if needed.
//!
//! Names are those of the semantic conventions for MCP, which are in development: see [`CONVENTIONS`].

mod document;
mod post;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use trunkline_gateway::RequestRecord;

use document::{Durations, metrics_document, spans_of, traces_document};
pub use post::{InvalidEndpoint, OtlpEndpoint};

/// The version of the semantic conventions whose names are used.
pub const CONVENTIONS: &str = "https://opentelemetry.io/schemas/1.38.0";

/// Records that wait to be exported.
const MAX_WAITING: usize = 8192;

/// Spans in one request.
const MAX_BATCH: usize = 512;

/// The longest time until a span is exported.
const BATCH_TIME: Duration = Duration::from_secs(1);

/// Time between two exports of metrics.
const METRICS_TIME: Duration = Duration::from_secs(15);

/// Exports the requests of a program. Clones are the same. A collector that does not respond loses spans, which are
/// counted, and holds nothing else.
#[derive(Clone, Debug)]
pub struct OtlpExporter {
    records: SyncSender<Box<RequestRecord>>,
    lost: Arc<AtomicU64>,
}

impl OtlpExporter {
    /// Starts to export to a collector.
    ///
    /// # Errors
    ///
    /// When no thread can be started for it.
    pub fn start(endpoint: OtlpEndpoint, service: &str, version: &str) -> std::io::Result<Self> {
        let (records, waiting) = sync_channel(MAX_WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let resource = document::resource(service, version);
        let export =
            Export { endpoint, resource, lost: Arc::clone(&lost), durations: Durations::default() };
        let run = move || export.run(&waiting);
        thread::Builder::new().name("trunkline-otlp".to_owned()).spawn(run)?;
        Ok(Self { records, lost })
    }

    /// Exports a request.
    pub(crate) fn add(&self, record: &RequestRecord) {
        // Payloads are never exported.
        let record = RequestRecord { result: None, ..record.clone() };
        if self.records.try_send(Box::new(record)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct Export {
    endpoint: OtlpEndpoint,
    resource: serde_json::Value,
    lost: Arc<AtomicU64>,
    durations: Durations,
}

impl Export {
    fn run(mut self, waiting: &Receiver<Box<RequestRecord>>) {
        let mut metrics_due = Instant::now() + METRICS_TIME;
        let mut spans = Vec::new();
        let mut batch_due = None;
        loop {
            let due = batch_due.unwrap_or(metrics_due).min(metrics_due);
            let is_open = match waiting.recv_timeout(due.saturating_duration_since(Instant::now()))
            {
                Ok(record) => {
                    self.durations.add(&record);
                    let is_sampled = record.trace.is_none_or(|trace| trace.server.is_sampled);
                    if is_sampled {
                        spans.extend(spans_of(&record));
                        batch_due.get_or_insert(Instant::now() + BATCH_TIME);
                    }
                    true
                }
                Err(RecvTimeoutError::Timeout) => true,
                Err(RecvTimeoutError::Disconnected) => false,
            };
            let is_due = batch_due.is_some_and(|due| due <= Instant::now());
            if !spans.is_empty() && (is_due || spans.len() >= MAX_BATCH || !is_open) {
                self.send("/v1/traces", &traces_document(&self.resource, &spans), spans.len());
                spans.clear();
                batch_due = None;
            }
            if metrics_due <= Instant::now() || !is_open {
                let lost = self.lost.load(Ordering::Relaxed);
                self.send(
                    "/v1/metrics",
                    &metrics_document(&self.resource, &self.durations, lost),
                    0,
                );
                metrics_due = Instant::now() + METRICS_TIME;
            }
            if !is_open {
                return;
            }
        }
    }

    fn send(&self, path: &str, document: &serde_json::Value, spans: usize) {
        if self.endpoint.post(path, &document.to_string()).is_err() {
            self.lost.fetch_add(spans as u64, Ordering::Relaxed);
        }
    }
}
