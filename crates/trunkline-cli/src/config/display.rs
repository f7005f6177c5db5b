//! Renders the effective configuration as text.

use std::fmt::Write as _;

use serde_json::{Value, json};
use trunkline::config::{
    ColorStyle, Config, ItemToolSettings, LoadedConfig, Server, ToolMode, Transport,
    escape_control, shown_variable,
};
use trunkline::connection::ChildOptions;
use unicode_width::UnicodeWidthStr as _;

use crate::output::report;
use crate::settings::Verbosity;

/// Settings that exist for all servers, and for each server.
const BEHAVIOUR: &[&str] = &[
    "access",
    "connect",
    "protocol",
    "restart",
    "inheritEnv",
    "timeouts",
    "concurrency",
    "redact",
    "toolsTtlMs",
    "idleTimeout",
    "maxResultBytes",
];

/// Settings of the form in which models receive tools.
const SURFACE: &[&str] = &["naming", "mode", "tokenBudget", "resourcesAsTools", "promptsAsTools"];

/// The effective configuration with the origin of each server. When verbose, a stdio server is
/// shown with the variables it would inherit.
pub(crate) fn text(
    loaded: &LoadedConfig,
    child: &ChildOptions,
    verbosity: Verbosity,
    style: ColorStyle,
) -> String {
    let mut text = String::new();
    match loaded.origins.as_slice() {
        [] if loaded.has_errors(false) => {
            text += "No configuration is used: see the errors above.\n";
        }
        [] => text.push_str(report::NOTHING_FOUND),
        origins => {
            for (index, origin) in origins.iter().enumerate() {
                let word = if index == 0 { "From" } else { "over" };
                let _ = writeln!(text, "{word} {origin}");
            }
        }
    }
    let inherited = (verbosity >= Verbosity::Verbose).then_some(child);
    servers(&mut text, &loaded.config, inherited, style);
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

fn servers(text: &mut String, config: &Config, verbose: Option<&ChildOptions>, style: ColorStyle) {
    let width = config.servers().map(|server| server.name.as_str().width()).max().unwrap_or(0);
    for server in config.servers() {
        let name = server.name.as_str();
        let padding = " ".repeat(width - name.width());
        let off = if server.enabled { "" } else { "  (switched off)" };
        let kind = server.transport_word();
        let endpoint = escape_control(&server.endpoint());
        let _ = writeln!(
            text,
            "\n{}{padding}  {kind:<6}  {endpoint}{off}",
            strong(style, &escape_control(name))
        );
        let indent = " ".repeat(width + 2);
        for line in details(server, verbose) {
            let _ = writeln!(text, "{indent}{}", escape_control(&line));
        }
    }
}

/// The lines below the first line of a server.
fn details(server: &Server, verbose: Option<&ChildOptions>) -> Vec<String> {
    let mut lines = vec![format!("written at {}", server.provenance.location)];
    if let Some((origin, location)) = &server.provenance.switched_by {
        lines.push(format!("switched at {location} ({origin})"));
    }
    // Taken from the JSON form, so that both forms agree.
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
    let more = ["trust", "authProviderId"];
    let more = more.iter().chain(BEHAVIOUR).filter(|_| verbose.is_some());
    for key in always.iter().chain(more) {
        if let Some(value) = shown.get(*key) {
            lines.push(format!("{key}: {}", setting(key, value)));
        }
    }
    lines.extend(verbose.and_then(|child| inherited(server, child)));
    lines
}

/// The environment variables that a server would inherit, with secrets masked.
pub(crate) fn inherited_variables(server: &Server, child: &ChildOptions) -> Vec<(String, String)> {
    let Transport::Stdio(stdio) = &server.transport else { return Vec::new() };
    let is_own = |name: &str| stdio.env.iter().any(|(own, _)| **own == *name);
    let variables = child.inherited(&server.behaviour.inherit_env);
    let variables =
        variables.map(|(name, value)| (name.to_string_lossy(), value.to_string_lossy()));
    let shown = variables.filter(|(name, _)| !is_own(name));
    let mut shown: Vec<_> =
        shown.map(|(name, value)| (name.to_string(), shown_variable(&name, &value))).collect();
    shown.sort();
    shown
}

fn inherited(server: &Server, child: &ChildOptions) -> Option<String> {
    let variables = inherited_variables(server, child);
    let pairs: Vec<_> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!pairs.is_empty()).then(|| format!("inherits: {}", pairs.join("  ")))
}

/// A setting on one line, with durations in a readable unit.
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

/// Milliseconds in the largest unit that gives an integer.
fn duration(value: &Value) -> String {
    let Some(milliseconds) = value.as_u64() else { return format!("{value}ms") };
    let units = [(3_600_000, "h"), (60_000, "m"), (1000, "s")];
    let whole = |(unit, _): &&(u64, &str)| milliseconds > 0 && milliseconds % unit == 0;
    match units.iter().find(whole) {
        Some((unit, name)) => format!("{}{name}", milliseconds / unit),
        None => format!("{milliseconds}ms"),
    }
}

/// A value on one line, with strings unquoted.
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

fn bundles(text: &mut String, config: &Config, style: ColorStyle) {
    for (name, bundle) in config.bundles() {
        let list = |names: &[Box<str>]| names.join(", ");
        let allow = bundle.tools.allow.as_ref().map_or("all tools".to_owned(), |names| list(names));
        let deny = match bundle.tools.deny.as_slice() {
            [] => String::new(),
            names => format!(", without {}", list(names)),
        };
        let (server, mode) = (&bundle.server, bundle.mode.as_str());
        let name = strong(style, name.as_str());
        let tools = escape_control(&format!("{allow}{deny}"));
        let _ = writeln!(text, "\nbundle {name}: {mode}, of {server}: {tools}");
        surface_lines(text, None, bundle.item_tools);
        let _ = writeln!(text, "  written at {}", bundle.location);
    }
    for name in config.disabled_bundles() {
        disabled(text, "bundle", &strong(style, name.as_str()));
    }
}

fn disabled(text: &mut String, what: &str, name: &str) {
    let _ = writeln!(text, "\n{what} {name} is disabled: see the errors above");
}

fn agents(text: &mut String, config: &Config, style: ColorStyle) {
    for (name, agent) in &config.agents().named {
        if agent.is_disabled {
            disabled(text, "agent", &strong(style, name.as_str()));
            continue;
        }
        let tools = match &agent.tools {
            Some(patterns) => {
                let texts: Vec<_> = patterns.iter().map(|it| it.pattern.as_str()).collect();
                escape_control(&texts.join(", "))
            }
            None => "all tools".to_owned(),
        };
        let name = strong(style, name.as_str());
        let _ = writeln!(text, "\nagent {name}: {tools}");
        surface_lines(text, agent.mode, agent.item_tools);
        let _ = writeln!(text, "  written at {}", agent.location);
    }
}

/// The settings of an agent or a bundle that replace those of all scopes.
fn surface_lines(text: &mut String, mode: Option<ToolMode>, tools: ItemToolSettings) {
    let flag = |value: bool| value.to_string();
    for (key, value) in [
        ("mode", mode.map(|mode| mode.as_str().to_owned())),
        ("resourcesAsTools", tools.resources.map(flag)),
        ("promptsAsTools", tools.prompts.map(flag)),
    ] {
        if let Some(value) = value {
            let _ = writeln!(text, "  {key}: {value}");
        }
    }
}

fn settings_lines(text: &mut String, config: &Config) {
    let shown = config.to_json();
    text.push_str("\nsettings\n");
    for key in SURFACE.iter().chain(BEHAVIOUR).chain(&["agentFiles"]) {
        if let Some(value) = shown.get(*key).filter(|value| **value != json!([])) {
            let _ = writeln!(text, "  {key}: {}", setting(key, value));
        }
    }
}

fn strong(style: ColorStyle, text: &str) -> String {
    let text = escape_control(text);
    match style {
        ColorStyle::Plain => text,
        ColorStyle::Colored => format!("\u{1b}[1m{text}\u{1b}[0m"),
    }
}
