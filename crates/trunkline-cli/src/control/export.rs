//! Exports spans and metrics, as the usual variables of OpenTelemetry say.

use trunkline::config::{Environment as _, escape_control};
use trunkline_control::Activity;
use trunkline_control::otlp::{OtlpEndpoint, OtlpExporter};

use crate::environment::ProcessEnv;
use crate::output::terminal::Terminal;

/// The address of the collector; without it nothing is exported.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Starts to export if `OTEL_EXPORTER_OTLP_ENDPOINT` names a collector.
pub(crate) fn start(activity: &Activity, environment: &ProcessEnv, terminal: &Terminal) {
    let variable = |name: &str| {
        let value = environment.variable(name)?.into_string().ok()?;
        Some(value).filter(|value| !value.trim().is_empty())
    };
    let is_disabled =
        variable("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true"));
    let Some(endpoint) = variable(ENDPOINT).filter(|_| !is_disabled) else { return };
    if let Some(protocol) = variable("OTEL_EXPORTER_OTLP_PROTOCOL").filter(|it| it != "http/json") {
        let protocol = escape_control(&protocol);
        terminal.warn(&format!("OTEL_EXPORTER_OTLP_PROTOCOL is {protocol}, and http/json is used"));
    }
    let headers = variable("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    let service = variable("OTEL_SERVICE_NAME").unwrap_or_else(|| "trunkline".to_owned());
    let endpoint = match OtlpEndpoint::parse(&endpoint, &headers) {
        Ok(endpoint) => endpoint,
        Err(error) => return terminal.warn(&format!("nothing is exported: {ENDPOINT}: {error}")),
    };
    match OtlpExporter::start(endpoint, &service, env!("CARGO_PKG_VERSION")) {
        Ok(exporter) => activity.set_exporter(exporter),
        Err(error) => terminal.warn(&format!("nothing is exported: {error}")),
    }
}
