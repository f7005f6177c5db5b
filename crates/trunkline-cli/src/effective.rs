//! The effective configuration, for people.

use std::fmt::Write as _;

use serde_json::{Value, json};
use trunkline::config::{Config, Loaded, Server, Style, printable};
use unicode_width::UnicodeWidthStr as _;

use crate::report;
use crate::settings::Verbosity;

/// Bounds and rules that hold for all servers, or for one.
const BEHAVIOUR: &[&str] = &[
    "access",
    "connect",
    "protocol",
    "restart",
    "timeouts",
    "concurrency",
    "redact",
    "toolsTtlMs",
    "idleTimeout",
    "maxResultBytes",
];

/// Everything that is effective, with the origin of each server.
pub(crate) fn text(loaded: &Loaded, verbosity: Verbosity, style: Style) -> String {
    let mut text = String::new();
    match loaded.origins.as_slice() {
        [] if loaded.fails(false) => text += "No configuration is used: see the errors above.\n",
        [] => text.push_str(report::NOTHING_FOUND),
        origins => {
            for (index, origin) in origins.iter().enumerate() {
                let word = if index == 0 { "From" } else { "over" };
                let _ = writeln!(text, "{word} {origin}");
            }
        }
    }
    servers(&mut text, &loaded.config, verbosity, style);
    for name in loaded.config.broken() {
        let _ = writeln!(
            text,
            "\n{} is not usable: see the errors above",
            strong(style, name.as_str())
        );
    }
    bundles(&mut text, &loaded.config, style);
    agents(&mut text, &loaded.config, style);
    if verbosity >= Verbosity::Verbose {
        settings_lines(&mut text, &loaded.config);
    }
    text
}

fn servers(text: &mut String, config: &Config, verbosity: Verbosity, style: Style) {
    let width = config.servers().map(|server| server.name.as_str().width()).max().unwrap_or(0);
    for server in config.servers() {
        let name = server.name.as_str();
        let padding = " ".repeat(width - name.width());
        let off = if server.enabled { "" } else { "  (switched off)" };
        let kind = server.transport_word();
        let endpoint = printable(&server.endpoint());
        let _ = writeln!(
            text,
            "\n{}{padding}  {kind:<6}  {endpoint}{off}",
            strong(style, &printable(name))
        );
        let indent = " ".repeat(width + 2);
        for line in details(server, verbosity) {
            let _ = writeln!(text, "{indent}{}", printable(&line));
        }
    }
}

/// What is worth saying about a server below its first line.
fn details(server: &Server, verbosity: Verbosity) -> Vec<String> {
    let mut lines = vec![format!("written at {}", server.provenance.location)];
    if let Some((origin, location)) = &server.provenance.switched_by {
        lines.push(format!("switched at {location} ({origin})"));
    }
    // From the JSON form, so that both forms say the same.
    let shown = server.to_json();
    let mut pairs = |key: &str| {
        if let Some(Value::Object(members)) = shown.get(key).filter(|value| **value != json!({})) {
            let pairs = members.iter().map(|(name, value)| match value {
                Value::Null => format!("{name} removed"),
                value => format!("{name}={}", value.as_str().unwrap_or_default()),
            });
            lines.push(format!("{key}: {}", pairs.collect::<Vec<_>>().join("  ")));
        }
    };
    pairs("env");
    pairs("headers");
    let always = ["cwd", "envFile", "allowTools", "denyTools", "prefix", "unknownKeys"];
    let verbose = ["trust", "authProviderId"];
    let is_verbose = verbosity >= Verbosity::Verbose;
    let more = verbose.iter().chain(BEHAVIOUR).filter(|_| is_verbose);
    for key in always.iter().chain(more) {
        if let Some(value) = shown.get(*key) {
            lines.push(format!("{key}: {}", setting(key, value)));
        }
    }
    lines
}

/// A setting on one line; durations in the unit a person would choose.
fn setting(key: &str, value: &Value) -> String {
    match (key, value) {
        ("toolsTtlMs" | "idleTimeout" | "delay" | "maxDelay", value) => duration(value),
        ("timeouts", Value::Object(members)) => {
            let bounds = members.iter().map(|(name, value)| format!("{name} {}", duration(value)));
            bounds.collect::<Vec<_>>().join(", ")
        }
        _ => inline(value),
    }
}

/// Milliseconds in the largest unit that leaves a whole number.
fn duration(value: &Value) -> String {
    let Some(milliseconds) = value.as_u64() else { return format!("{value}ms") };
    let units = [(3_600_000, "h"), (60_000, "m"), (1000, "s")];
    let whole = |(unit, _): &&(u64, &str)| milliseconds > 0 && milliseconds % unit == 0;
    match units.iter().find(whole) {
        Some((unit, name)) => format!("{}{name}", milliseconds / unit),
        None => format!("{milliseconds}ms"),
    }
}

/// A value on one line, without the quotes of a plain text.
fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(inline).collect::<Vec<_>>().join(", "),
        Value::Object(members) => {
            let pairs = members.iter().map(|(key, value)| format!("{key} {}", inline(value)));
            pairs.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

fn bundles(text: &mut String, config: &Config, style: Style) {
    for (name, bundle) in config.bundles() {
        let list = |names: &[Box<str>]| names.join(", ");
        let allow = bundle.tools.allow.as_ref().map_or("all tools".to_owned(), |names| list(names));
        let deny = match bundle.tools.deny.as_slice() {
            [] => String::new(),
            names => format!(", without {}", list(names)),
        };
        let (server, mode) = (&bundle.server, bundle.mode.as_str());
        let name = strong(style, name.as_str());
        let tools = printable(&format!("{allow}{deny}"));
        let _ = writeln!(text, "\nbundle {name}: {mode}, of {server}: {tools}");
        let _ = writeln!(text, "  written at {}", bundle.location);
    }
    for name in config.disabled_bundles() {
        disabled(text, "bundle", &strong(style, name.as_str()));
    }
}

fn disabled(text: &mut String, what: &str, name: &str) {
    let _ = writeln!(text, "\n{what} {name} is disabled: see the errors above");
}

fn agents(text: &mut String, config: &Config, style: Style) {
    for (name, agent) in &config.agents().named {
        if agent.is_disabled {
            disabled(text, "agent", &strong(style, name.as_str()));
            continue;
        }
        let tools = match &agent.tools {
            Some(patterns) => {
                let texts: Vec<_> = patterns.iter().map(|it| it.pattern.as_str()).collect();
                printable(&texts.join(", "))
            }
            None => "all tools".to_owned(),
        };
        let name = strong(style, name.as_str());
        let _ = writeln!(text, "\nagent {name}: {tools}");
        let _ = writeln!(text, "  written at {}", agent.location);
    }
}

fn settings_lines(text: &mut String, config: &Config) {
    let shown = config.to_json();
    text.push_str("\nsettings\n");
    for key in ["naming"].iter().chain(BEHAVIOUR).chain(&["agentFiles"]) {
        if let Some(value) = shown.get(*key).filter(|value| **value != json!([])) {
            let _ = writeln!(text, "  {key}: {}", setting(key, value));
        }
    }
}

fn strong(style: Style, text: &str) -> String {
    let text = printable(text);
    match style {
        Style::Plain => text,
        Style::Colored => format!("\u{1b}[1m{text}\u{1b}[0m"),
    }
}
