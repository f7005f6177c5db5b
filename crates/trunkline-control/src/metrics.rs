//! Metrics in the format of Prometheus.
//!
//! Labels are bounded: methods are those of MCP, and tools beyond the first [`MAX_TOOLS`] are counted as `other`.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use foldhash::HashMap;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use trunkline::name::ServerName;
use trunkline::protocol::request_method;
use trunkline_gateway::{RequestOutcome, RequestRecord};

use crate::source::OpenProject;
use crate::types;

/// Tools with a label of their own.
const MAX_TOOLS: usize = 1000;

/// The label of everything without one of its own.
const OTHER: &str = "other";

/// Bounds of durations, in seconds: those of the conventions of OpenTelemetry for MCP, and finer ones below.
const DURATIONS: [f64; 17] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0,
    300.0,
];

/// Bounds of the time that the gateway itself takes, in seconds.
const OVERHEADS: [f64; 11] =
    [0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 1.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    server: Box<str>,
    tool: Box<str>,
    outcome: OutcomeLabel,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    outcome: OutcomeLabel,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServerLabels {
    server: Box<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    project: Box<str>,
    server: Box<str>,
    state: Box<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProjectLabels {
    project: Box<str>,
    server: Box<str>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct OutcomeLabel(RequestOutcome);

impl fmt::Debug for OutcomeLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl EncodeLabelValue for OutcomeLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        self.0.as_str().encode(encoder)
    }
}

/// The metrics of one tool. A call of it finds them by its name, and builds no labels.
struct ToolMetrics {
    server: ServerName,
    /// Calls by outcome.
    calls: [Option<Counter>; RequestOutcome::ALL.len()],
    durations: Histogram,
}

/// All metrics of a program.
pub(crate) struct Metrics {
    registry: Registry,
    calls: Family<CallLabels, Counter>,
    requests: Family<RequestLabels, Counter>,
    durations: Family<ServerLabels, Histogram, fn() -> Histogram>,
    overhead: Histogram,
    in_flight: Gauge,
    states: Family<StateLabels, Gauge>,
    restarts: Family<ProjectLabels, Gauge>,
    queues: Family<ProjectLabels, Gauge>,
    /// Tools with a label, by exposed name.
    tools: Mutex<HashMap<Box<str>, ToolMetrics>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let durations: fn() -> Histogram = || Histogram::new(DURATIONS);
        let mut metrics = Self {
            registry: Registry::with_prefix("trunkline"),
            calls: Family::default(),
            requests: Family::default(),
            durations: Family::new_with_constructor(durations),
            overhead: Histogram::new(OVERHEADS),
            in_flight: Gauge::default(),
            states: Family::default(),
            restarts: Family::default(),
            queues: Family::default(),
            tools: Mutex::default(),
        };
        let (states, restarts) = (metrics.states.clone(), metrics.restarts.clone());
        let queues = metrics.queues.clone();
        let Self { registry, calls, requests, durations, overhead, in_flight, .. } = &mut metrics;
        registry.register("calls", "Tool calls by server, tool and outcome", calls.clone());
        registry.register("requests", "MCP requests by method and outcome", requests.clone());
        let help = "Time from request to response of tool calls";
        registry.register_with_unit("call_duration", help, Unit::Seconds, durations.clone());
        let help = "Time of tool calls in the gateway itself";
        registry.register_with_unit("overhead", help, Unit::Seconds, overhead.clone());
        let help = "MCP requests that wait for their response";
        registry.register("requests_in_flight", help, in_flight.clone());
        registry.register("server_state", "1 for the state that a server is in", states);
        let help = "Consecutive restarts of a server";
        registry.register("server_restarts", help, restarts);
        let help = "Calls that wait because `concurrency` of their server is reached";
        registry.register("server_queue", help, queues);
        metrics
    }
}

impl Metrics {
    /// Requests that wait for their response.
    pub(crate) fn in_flight(&self) -> &Gauge {
        &self.in_flight
    }

    /// Counts a request.
    pub(crate) fn count(&self, record: &RequestRecord) {
        let method = request_method(&record.method).unwrap_or(OTHER);
        let outcome = OutcomeLabel(record.outcome);
        self.requests.get_or_create(&RequestLabels { method, outcome }).inc();
        if &*record.method == "tools/call" {
            let overhead = record.duration.saturating_sub(record.upstream);
            self.overhead.observe(overhead.as_secs_f64());
            self.count_call(record);
        }
    }

    fn count_call(&self, record: &RequestRecord) {
        let duration = record.duration.as_secs_f64();
        let (Some(server), Some(tool)) = (&record.server, &record.subject) else {
            // Clients may invent names.
            let server = record.server.as_ref().map_or(OTHER, ServerName::as_str);
            self.calls_of(server, OTHER, record.outcome).inc();
            return self.durations_of(server).observe(duration);
        };
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if tools.len() < MAX_TOOLS && !tools.contains_key(tool) {
            let durations = self.durations_of(server.as_str());
            let calls = [const { None }; RequestOutcome::ALL.len()];
            tools.insert(tool.clone(), ToolMetrics { server: server.clone(), calls, durations });
        }
        match tools.get_mut(tool) {
            Some(known) if known.server == *server => {
                let calls = known.calls[record.outcome as usize]
                    .get_or_insert_with(|| self.calls_of(server.as_str(), tool, record.outcome));
                calls.inc();
                known.durations.observe(duration);
            }
            // The server of this name was another one before.
            known => {
                let tool = if known.is_some() { tool } else { OTHER };
                self.calls_of(server.as_str(), tool, record.outcome).inc();
                self.durations_of(server.as_str()).observe(duration);
            }
        }
    }

    fn calls_of(&self, server: &str, tool: &str, outcome: RequestOutcome) -> Counter {
        let outcome = OutcomeLabel(outcome);
        let labels = CallLabels { server: server.into(), tool: tool.into(), outcome };
        self.calls.get_or_create(&labels).clone()
    }

    fn durations_of(&self, server: &str) -> Histogram {
        self.durations.get_or_create(&ServerLabels { server: server.into() }).clone()
    }

    /// All metrics as text.
    pub(crate) fn text(&self, projects: &[OpenProject], servers: &[types::Server]) -> String {
        self.states.clear();
        self.restarts.clear();
        self.queues.clear();
        for server in servers {
            let project = projects.iter().find(|it| it.info.id == server.project);
            let connection = project.and_then(|it| it.host.servers().get(&server.name));
            let project: Box<str> = project.map_or("", |it| it.info.directory.as_str()).into();
            let name: Box<str> = server.name.as_str().into();
            let state = server.state.as_str().into();
            let labels = StateLabels { project: project.clone(), server: name.clone(), state };
            self.states.get_or_create(&labels).set(1);
            let labels = ProjectLabels { project, server: name };
            self.restarts.get_or_create(&labels).set(server.restarts.into());
            let waiting = connection.map_or(0, |it| it.waiting_calls());
            self.queues.get_or_create(&labels).set(waiting.try_into().unwrap_or(i64::MAX));
        }
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(error) => format!("# {error}\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use trunkline::message::Raw;

    use super::*;

    /// A request of a client, for a tool of a server if both are given.
    fn record(method: &str, server: Option<&str>, tool: Option<&str>) -> RequestRecord {
        RequestRecord {
            started: SystemTime::UNIX_EPOCH,
            duration: Duration::from_millis(3),
            upstream: Duration::from_millis(1),
            method: method.into(),
            subject: tool.map(Into::into),
            server: server.map(|name| ServerName::new(name).unwrap()),
            client: None,
            token: None,
            conversation: None,
            outcome: RequestOutcome::Ok,
            code: None,
            params: Raw::empty_object(),
            result: None,
            trace: None,
        }
    }

    fn text(metrics: &Metrics) -> String {
        metrics.text(&[], &[])
    }

    #[test]
    fn calls_are_counted_by_server_tool_and_outcome() {
        let metrics = Metrics::default();
        for (server, tool) in [("a", "a_x"), ("a", "a_x"), ("a", "a_y"), ("b", "a_x")] {
            metrics.count(&record("tools/call", Some(server), Some(tool)));
        }
        let failed = record("tools/call", Some("a"), Some("a_x"));
        metrics.count(&RequestRecord { outcome: RequestOutcome::ToolError, ..failed });
        metrics.count(&record("tools/call", None, Some("invented")));
        let text = text(&metrics);
        for line in [
            r#"calls_total{server="a",tool="a_x",outcome="ok"} 2"#,
            r#"calls_total{server="a",tool="a_y",outcome="ok"} 1"#,
            r#"calls_total{server="b",tool="a_x",outcome="ok"} 1"#,
            r#"calls_total{server="a",tool="a_x",outcome="tool_error"} 1"#,
            r#"calls_total{server="other",tool="other",outcome="ok"} 1"#,
            r#"call_duration_seconds_count{server="a"} 4"#,
            r#"overhead_seconds_count 6"#,
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn names_that_clients_invent_get_no_label() {
        let metrics = Metrics::default();
        for method in ["tasks/get", "tasks/a", "tasks/b", "Tools/Call", " ping ", "x"] {
            metrics.count(&record(method, None, None));
        }
        for number in 0..=MAX_TOOLS {
            metrics.count(&record("tools/call", Some("a"), Some(&format!("tool_{number}"))));
        }
        let text = text(&metrics);
        assert!(text.contains(r#"requests_total{method="other",outcome="ok"} 5"#), "{text}");
        assert!(text.contains(r#"requests_total{method="tasks/get",outcome="ok"} 1"#), "{text}");
        assert!(text.contains(r#"calls_total{server="a",tool="other",outcome="ok"} 1"#), "{text}");
        assert_eq!(text.matches("calls_total{").count(), MAX_TOOLS + 1);
    }
}
