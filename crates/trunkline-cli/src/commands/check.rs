//! `trunkline check`: reports all problems of a configuration without starting anything.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::{Value, json};
use trunkline::config::{Code, ConsentHold, LoadedConfig};

use crate::arguments::{CheckArguments, Format};
use crate::config::inspection;
use crate::config::load;
use crate::environment::ProcessEnv;
use crate::output::exit::Outcome;
use crate::output::report::{self, plural};
use crate::output::terminal::Terminal;
use crate::settings::{Settings, Verbosity};

pub(crate) fn run(
    arguments: CheckArguments,
    settings: &Settings,
    environment: &ProcessEnv,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let (loaded, hold) = load::inspect(settings, environment, arguments.file)?;
    let loaded = inspection::inspected(loaded, environment)?;
    let outcome = if loaded.has_errors(arguments.strict) { Outcome::Bad } else { Outcome::Good };
    match settings.format {
        Format::Json | Format::Raw => {
            terminal.print(&report::document(
                &as_json(&loaded, hold.as_ref(), outcome),
                settings.format,
            ))?;
        }
        Format::Text => {
            let style = terminal.output_style();
            let problems =
                if arguments.strict { report::strict_problems } else { report::problems };
            let mut text = problems(&loaded, settings.verbosity, style);
            if settings.verbosity > Verbosity::Quiet {
                text += &summary(&loaded, outcome);
                text += &report::held(hold.as_ref());
            }
            terminal.print(&text)?;
        }
    }
    Ok(outcome)
}

fn summary(loaded: &LoadedConfig, outcome: Outcome) -> String {
    let servers = loaded.config.servers().len();
    let sources: Vec<_> = loaded.origins.iter().map(ToString::to_string).collect();
    let checked = match sources.as_slice() {
        [] if loaded.diagnostics.is_empty() => {
            return report::NOTHING_FOUND.to_owned();
        }
        [] => {
            let counts = report::counts(&loaded.diagnostics).unwrap_or_default();
            return format!("No configuration is used; {counts}\n");
        }
        sources => sources.join(" over "),
    };
    let verdict = match (report::counts(&loaded.diagnostics), outcome) {
        (None, _) => "no problems".to_owned(),
        (Some(counts), Outcome::Good) => format!("{counts}, {}", starts(loaded)),
        (Some(counts), _) => counts,
    };
    let broken = match loaded.config.broken().len() {
        0 => String::new(),
        count => format!(", {count} not usable"),
    };
    format!("{checked}: {}{broken}; {verdict}\n", plural(servers, "server"))
}

/// The servers that do not start in the environment of this command, for the summary.
fn starts(loaded: &LoadedConfig) -> String {
    let stops = |code| {
        matches!(code, Code::UnresolvedReference | Code::MissingProgram | Code::MissingDirectory)
    };
    let stopped = loaded.diagnostics.iter().filter(|found| stops(found.code));
    let servers: BTreeSet<_> = stopped.filter_map(|found| found.server.as_ref()).collect();
    match servers.len() {
        0 => "nothing that stops a server".to_owned(),
        1 => "1 server does not start in this environment".to_owned(),
        count => format!("{count} servers do not start in this environment"),
    }
}

fn as_json(loaded: &LoadedConfig, hold: Option<&ConsentHold>, outcome: Outcome) -> Value {
    let usable = loaded.config.servers().map(
        |server| json!({ "name": server.name.as_str(), "usable": true, "enabled": server.enabled }),
    );
    let broken =
        loaded.config.broken().iter().map(|name| json!({ "name": name.as_str(), "usable": false }));
    let count = |severity: &str| {
        let found = loaded.diagnostics.iter();
        found.filter(|found| found.severity.as_str() == severity).count()
    };
    json!({
        "ok": outcome == Outcome::Good,
        "hold": hold.map(ToString::to_string),
        "sources": loaded.origins.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "servers": usable.chain(broken).collect::<Vec<_>>(),
        "counts": {
            "errors": count("error"),
            "warnings": count("warning"),
            "hints": count("hint"),
            "notes": count("note"),
        },
        "diagnostics": loaded.diagnostics.iter().map(report::problem_json).collect::<Vec<_>>(),
    })
}
