//! The requests of clients: recent ones, metrics, and the audit log.

use std::collections::VecDeque;
#[cfg(feature = "otel")]
use std::sync::OnceLock;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;
use trunkline::message::Raw;
use trunkline_gateway::{Observer, RequestObserver, RequestRecord};

use crate::audit::{AuditLog, Payloads, milliseconds};
use crate::clock::rfc3339;
use crate::metrics::Metrics;
#[cfg(feature = "otel")]
use crate::otlp::OtlpExporter;
use crate::types::Call;

/// Recent requests that are kept.
const MAX_RECENT: usize = 1000;

/// Largest payload that is kept with a request, in bytes.
const MAX_PAYLOAD: usize = 64 * 1024;

/// The requests of all clients of a program. Clones are the same.
#[derive(Clone, Default)]
pub struct Activity {
    shared: Arc<ActivityShared>,
}

#[derive(Default)]
struct ActivityShared {
    metrics: Metrics,
    recent: Mutex<RecentCalls>,
    #[cfg(feature = "otel")]
    exporter: OnceLock<OtlpExporter>,
    /// The audit logs of projects that have one.
    audits: Mutex<HashMap<Box<str>, AuditLog>>,
}

#[derive(Default)]
struct RecentCalls {
    calls: VecDeque<RecentCall>,
    last: u64,
}

/// A call as it is kept. It is described when it is asked for, which most never are.
struct RecentCall {
    id: u64,
    project: Arc<str>,
    /// Without payloads that are not wanted.
    record: RequestRecord,
    payloads: Payloads,
}

impl Activity {
    /// Writes the calls of a project to an audit log from now on, or to none.
    pub fn set_audit(&self, project: &str, log: Option<AuditLog>) {
        let mut audits = self.shared.audits.lock().unwrap_or_else(PoisonError::into_inner);
        match log {
            Some(log) => drop(audits.insert(project.into(), log)),
            None => drop(audits.remove(project)),
        }
    }

    fn audit(&self, project: &str) -> Option<AuditLog> {
        let audits = self.shared.audits.lock().unwrap_or_else(PoisonError::into_inner);
        audits.get(project).cloned()
    }

    /// Exports all requests from now on. Only the first exporter has an effect.
    #[cfg(feature = "otel")]
    pub fn set_exporter(&self, exporter: OtlpExporter) {
        let _ = self.shared.exporter.set(exporter);
    }

    /// Whether requests are exported as spans.
    fn is_tracing(&self) -> bool {
        #[cfg(feature = "otel")]
        return self.shared.exporter.get().is_some();
        #[cfg(not(feature = "otel"))]
        false
    }

    /// The observer for the gateways of one project.
    pub fn observer(&self, project: &str) -> Observer {
        let (activity, project) = (self.clone(), project.into());
        Observer(Arc::new(ProjectObserver { activity, project }))
    }

    /// Adds a request that has ended.
    pub(crate) fn add(&self, project: &Arc<str>, record: RequestRecord) {
        self.shared.metrics.count(&record);
        #[cfg(feature = "otel")]
        if let Some(exporter) = self.shared.exporter.get() {
            exporter.add(&record);
        }
        // Lists and pings would crowd out calls.
        if !is_call(&record.method) {
            return;
        }
        let audit = self.audit(project);
        let payloads = audit.as_ref().map_or(Payloads::Digests, AuditLog::payloads);
        if let Some(audit) = &audit {
            audit.add(project, &record);
        }
        let mut recent = self.recent();
        recent.last += 1;
        let id = recent.last;
        let record = kept_record(record, payloads);
        recent.calls.push_front(RecentCall { id, project: Arc::clone(project), record, payloads });
        recent.calls.truncate(MAX_RECENT);
    }

    /// The newest calls that match, newest first, with IDs below `before`.
    pub(crate) fn recent_calls(
        &self,
        before: Option<u64>,
        limit: usize,
        is_wanted: impl Fn(&Call) -> bool,
    ) -> Vec<Call> {
        let recent = self.recent();
        let older = recent.calls.iter().filter(|call| before.is_none_or(|before| call.id < before));
        older.map(call_of).filter(|call| is_wanted(call)).take(limit).collect()
    }

    /// The ID of the newest call.
    pub(crate) fn last_call(&self) -> u64 {
        self.recent().last
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    fn recent(&self) -> MutexGuard<'_, RecentCalls> {
        self.shared.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct ProjectObserver {
    activity: Activity,
    project: Arc<str>,
}

impl RequestObserver for ProjectObserver {
    fn on_start(&self) {
        self.activity.metrics().in_flight().inc();
    }

    fn on_request(&self, record: RequestRecord) {
        self.activity.metrics().in_flight().dec();
        self.activity.add(&self.project, record);
    }

    fn is_tracing(&self) -> bool {
        self.activity.is_tracing()
    }
}

/// Whether a method uses one item of a server.
fn is_call(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

/// A record without payloads that are not kept: they would hold memory.
fn kept_record(record: RequestRecord, payloads: Payloads) -> RequestRecord {
    let is_kept = |raw: &Raw| payloads == Payloads::Full && raw.bytes().len() <= MAX_PAYLOAD;
    let params = Some(record.params).filter(is_kept).unwrap_or_else(Raw::empty_object);
    RequestRecord { params, result: record.result.filter(is_kept), ..record }
}

fn call_of(call: &RecentCall) -> Call {
    let RecentCall { id, project, record, payloads } = call;
    let payload =
        |raw: Option<Raw>| raw.filter(|_| *payloads == Payloads::Full).map(|raw| raw.to_value());
    Call {
        id: *id,
        time: rfc3339(record.started),
        project: project.to_string(),
        client: record.client.as_deref().map(Into::into),
        principal: record.token.as_deref().map(Into::into),
        conversation: record.conversation.as_ref().map(|name| name.as_str().to_owned()),
        method: record.method.to_string(),
        name: record.subject.as_deref().map(Into::into),
        server: record.server.as_ref().map(|server| server.as_str().to_owned()),
        duration_ms: milliseconds(record.duration),
        outcome: record.outcome.as_str().to_owned(),
        code: record.code,
        arguments: payload(record.params.get("arguments")),
        result: payload(record.result.clone()),
    }
}
