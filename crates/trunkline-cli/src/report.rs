//! What was found in a configuration, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};
use trunkline::config::{Diagnostic, Loaded, Location, Severity, Style};
use trunkline::name::ServerName;
use unicode_width::UnicodeWidthStr as _;

use crate::arguments::Format;
use crate::settings::Verbosity;

/// What is said when there is no configuration, which is no error.
pub(crate) const NOTHING_FOUND: &str = "No configuration found, so there are no servers. \
                                        `trunkline --help` says where it is looked for.\n";

/// The mildest problem that is shown.
fn threshold(verbosity: Verbosity) -> Severity {
    match verbosity {
        Verbosity::Quiet => Severity::Error,
        Verbosity::Normal => Severity::Hint,
        Verbosity::Verbose => Severity::Note,
    }
}

/// Problems as text, those that are worth it at this verbosity.
pub(crate) fn problems(loaded: &Loaded, verbosity: Verbosity, style: Style) -> String {
    problems_from(loaded, threshold(verbosity), style)
}

/// Problems as text under a strict check: whatever fails it is shown, also by a quiet one.
pub(crate) fn strict_problems(loaded: &Loaded, verbosity: Verbosity, style: Style) -> String {
    problems_from(loaded, threshold(verbosity).min(Severity::Hint), style)
}

fn problems_from(loaded: &Loaded, threshold: Severity, style: Style) -> String {
    let shown = |found: &&Diagnostic| found.severity >= threshold;
    loaded.diagnostics.iter().filter(shown).map(|found| found.render(style) + "\n").collect()
}

/// How many problems there are and how to see them; nothing if there are none.
pub(crate) fn problem_count(loaded: &Loaded, options: &str) -> String {
    let Some(counts) = counts(&loaded.diagnostics) else { return String::new() };
    let sources: Vec<_> = loaded.origins.iter().map(ToString::to_string).collect();
    format!("{counts} in {}; `trunkline check{options}` shows more\n", sources.join(" and "))
}

/// "2 errors, 1 warning", or nothing.
pub(crate) fn counts(diagnostics: &[Diagnostic]) -> Option<String> {
    let severities = [Severity::Error, Severity::Warning, Severity::Hint];
    let counts = severities.into_iter().filter_map(|severity| {
        let count = diagnostics.iter().filter(|found| found.severity == severity).count();
        (count > 0).then(|| plural(count, severity.as_str()))
    });
    let counts: Vec<_> = counts.collect();
    (!counts.is_empty()).then(|| counts.join(", "))
}

/// A number of things.
pub(crate) fn plural(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

/// A problem for a program.
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

/// Rows in columns that are as wide as they have to be.
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

/// A document for a program: over many lines, or on one.
pub(crate) fn document(json: &Value, format: Format) -> String {
    match format {
        Format::Raw => format!("{json}\n"),
        Format::Json | Format::Text => format!("{json:#}\n"),
    }
}
