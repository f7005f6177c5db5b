//! Renders diagnostics and documents, as text and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};
use trunkline::config::{
    ColorStyle, ConsentHold, Diagnostic, LoadedConfig, Location, Server, Severity, escape_control,
};
use trunkline::message::Raw;
use trunkline::name::ServerName;
use unicode_width::UnicodeWidthStr as _;

use super::text_layout::{Emphasis, TextLayout};
use crate::arguments::Format;
use crate::output_schema::{SCHEMA_VERSION, SCHEMA_VERSION_KEY};
use crate::settings::Verbosity;

/// The message when there is no configuration, which is not an error.
pub(crate) const NOTHING_FOUND: &str = "No configuration found, so there are no servers. `trunkline add NAME \
                                        -- COMMAND…` adds one, `--config FILE` names a file.\n\
                                        `trunkline --help` lists where one is looked for; \
                                        `trunkline demo` needs none.\n";

/// The message when no server of the configuration is usable. Its errors have been reported.
const NOTHING_USABLE: &str =
    "No server of the configuration can be used. `trunkline check` says why.\n";

/// The message when there are no servers.
pub(crate) fn no_servers(loaded: &LoadedConfig) -> &'static str {
    match loaded.origins.is_empty() {
        _ if loaded.has_errors(false) => NOTHING_USABLE,
        true => NOTHING_FOUND,
        false => "The configuration has no servers: add one under `mcpServers`.\n",
    }
}

/// Servers that are named in one message; more would not be read.
const MAX_NAMED: usize = 5;

/// The reason why no server is in use, if the configuration is the reason; `config` is the option
/// that names it. Servers of a file that is not trusted are reported elsewhere.
pub(crate) fn why_no_server(loaded: &LoadedConfig, config: &str) -> Option<String> {
    if loaded.config.servers().len() == 0 {
        return Some(match loaded.origins.is_empty() {
            _ if loaded.has_errors(false) => {
                format!(
                    "no server of the configuration can be used: `trunkline check{config}` says why"
                )
            }
            true => "no configuration was found".to_owned(),
            false => "the configuration has no servers: add one under `mcpServers`".to_owned(),
        });
    }
    let is_off = |server: &Server| !server.enabled && server.hold.is_none();
    if !loaded.config.servers().all(is_off) {
        return None;
    }
    let count = loaded.config.servers().len();
    let named = loaded.config.servers().take(MAX_NAMED);
    let names: Vec<_> = named.map(|server| escape_control(server.name.as_str())).collect();
    let others = if count > names.len() { ", …" } else { "" };
    let (servers, verb) = (plural(count, "server"), if count == 1 { "is" } else { "are" });
    Some(format!(
        "no server is enabled: {servers} {verb} switched off ({}{others}); \
         `trunkline config{config}` shows where each is written",
        names.join(", ")
    ))
}

/// The note on an untrusted file in an inspection; empty if it may run.
pub(crate) fn held(hold: Option<&ConsentHold>) -> String {
    let Some(hold) = hold else { return String::new() };
    let hold = escape_control(&hold.to_string());
    format!("{hold}: nothing of it is started until `trunkline trust` has allowed it\n")
}

/// Deepest indented level.
const MAX_INDENTED: usize = 100;

/// The lowest severity that is shown.
fn threshold(verbosity: Verbosity) -> Severity {
    match verbosity {
        Verbosity::Quiet => Severity::Error,
        Verbosity::Normal => Severity::Hint,
        Verbosity::Verbose => Severity::Note,
    }
}

/// The problems to show at this verbosity, as text.
pub(crate) fn problems(loaded: &LoadedConfig, verbosity: Verbosity, style: ColorStyle) -> String {
    problems_from(loaded, threshold(verbosity), style)
}

/// The problems of a strict check as text: includes all that fail it, even with `--quiet`.
pub(crate) fn strict_problems(
    loaded: &LoadedConfig,
    verbosity: Verbosity,
    style: ColorStyle,
) -> String {
    problems_from(loaded, threshold(verbosity).min(Severity::Hint), style)
}

fn problems_from(loaded: &LoadedConfig, threshold: Severity, style: ColorStyle) -> String {
    let shown = |found: &&Diagnostic| found.severity >= threshold;
    loaded.diagnostics.iter().filter(shown).map(|found| found.render(style) + "\n").collect()
}

/// The number of problems, and the command that shows them; empty if there are none.
pub(crate) fn problem_count(loaded: &LoadedConfig, options: &str) -> String {
    let Some(counts) = counts(&loaded.diagnostics) else { return String::new() };
    let sources: Vec<_> = loaded.origins.iter().map(ToString::to_string).collect();
    format!("{counts} in {}; `trunkline check{options}` shows more\n", sources.join(" and "))
}

/// "2 errors, 1 warning", or `None`.
pub(crate) fn counts(diagnostics: &[Diagnostic]) -> Option<String> {
    let severities = [Severity::Error, Severity::Warning, Severity::Hint];
    let counts = severities.into_iter().filter_map(|severity| {
        let count = diagnostics.iter().filter(|found| found.severity == severity).count();
        (count > 0).then(|| plural(count, severity.as_str()))
    });
    let counts: Vec<_> = counts.collect();
    (!counts.is_empty()).then(|| counts.join(", "))
}

/// A count with its noun.
pub(crate) fn plural(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

/// A diagnostic as JSON.
pub(crate) fn problem_json(found: &Diagnostic) -> Value {
    let related = found.related.iter().map(|related| {
        let mut place = location_json(&related.location);
        place["label"] = related.label.clone().into();
        place
    });
    let mut json = json!({
        "severity": found.severity.as_str(),
        "code": found.code.as_str(),
        "message": found.message,
        "label": found.label,
        "help": found.help,
        "server": found.server.as_ref().map(ServerName::as_str),
        "related": related.collect::<Vec<_>>(),
    });
    if let (Some(location), Value::Object(members)) = (&found.location, &mut json)
        && let Value::Object(place) = location_json(location)
    {
        members.extend(place);
    }
    json
}

pub(crate) fn location_json(location: &Location) -> Value {
    let (start, end) = (location.start(), location.end());
    json!({
        "file": location.source().name(),
        "line": start.line,
        "column": start.column,
        "endLine": end.line,
        "endColumn": end.column,
    })
}

/// Formats rows as a table with aligned columns.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let cells = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.width())));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

/// The same with a first row that names the columns.
pub(crate) fn table_with_head<const N: usize>(rows: &[[String; N]], layout: TextLayout) -> String {
    with_head(&table(rows), layout)
}

/// Paints the first line of a table, which names its columns.
pub(crate) fn with_head(table: &str, layout: TextLayout) -> String {
    let (head, rest) = table.split_once('\n').unwrap_or((table, ""));
    format!("{}\n{rest}", layout.paint(Emphasis::Heading, head))
}

/// A JSON document with its version, indented or on one line.
pub(crate) fn document(json: &Value, format: Format) -> String {
    match format {
        Format::Raw => line(json),
        Format::Json | Format::Text => format!("{:#}\n", versioned(json)),
    }
}

/// A JSON document with its version, on one line.
pub(crate) fn line(json: &Value) -> String {
    format!("{}\n", versioned(json))
}

fn versioned(json: &Value) -> Value {
    let mut json = json.clone();
    json[SCHEMA_VERSION_KEY] = SCHEMA_VERSION.into();
    json
}

/// The same for a document whose parts keep their spelling, indented.
pub(crate) fn raw_document(json: &Raw) -> String {
    indented(&json.with(SCHEMA_VERSION_KEY, &Raw::from_value(&SCHEMA_VERSION.into())))
}

/// Indents a JSON value. Numbers, strings and the order of keys keep their spelling.
pub(crate) fn indented(value: &Raw) -> String {
    let mut text = String::with_capacity(value.bytes().len() * 2);
    let (mut depth, mut rest) = (0_usize, value.text());
    while let Some(sign) = rest.chars().next() {
        let length = match sign {
            '"' => string_length(rest),
            _ => sign.len_utf8(),
        };
        let Some((token, after)) = rest.split_at_checked(length) else { break };
        rest = after;
        match sign {
            ' ' | '\t' | '\n' | '\r' => {}
            '{' | '[' => {
                text.push(sign);
                rest = rest.trim_start();
                if let Some(after) = rest.strip_prefix(['}', ']']) {
                    text.push(if sign == '{' { '}' } else { ']' });
                    rest = after;
                } else {
                    depth += 1;
                    break_line(&mut text, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                break_line(&mut text, depth);
                text.push(sign);
            }
            ',' => {
                text.push(sign);
                break_line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            _ => text.push_str(token),
        }
    }
    text + "\n"
}

fn break_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.push_str(&"  ".repeat(depth.min(MAX_INDENTED)));
}

/// The length of the JSON string at the start of a text, including its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CALL-4: a result in JSON format is complete.
    #[test]
    fn nothing_but_white_space_changes() {
        let text =
            r#"{ "z":12345678901234567890.123450,"a" : [1E+2, -0,[ ],{ }, "x\\\"{,:}" ],"é":null}"#;
        let expected = "{\n  \"z\": 12345678901234567890.123450,\n  \"a\": [\n    1E+2,\n    -0,\n    [],\n    {},\n    \"x\\\\\\\"{,:}\"\n  ],\n  \"é\": null\n}\n";
        assert_eq!(indented(&Raw::from_text(text).unwrap()), expected);
        let value = serde_json::json!({ "a": [], "b": { "c": [true, {}] }, "d": "x" });
        assert_eq!(indented(&Raw::from_value(&value)), format!("{value:#}\n"));
    }

    #[test]
    fn deep_values_are_printed_within_the_limit() {
        let text = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
        assert!(indented(&Raw::from_text(&text).unwrap()).len() < 10_000_000);
    }
}
