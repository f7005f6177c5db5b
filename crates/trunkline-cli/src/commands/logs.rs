//! `trunkline logs`: the log of the background service, or what one of its servers wrote to standard error.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;
use trunkline::config::escape_control;

use super::restart::ask_for_server;
use crate::arguments::{Format, LogsArguments};
use crate::environment::ProcessEnv;
use crate::output::exit::Outcome;
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::service::{start, tail};
use crate::settings::Settings;
use crate::socket::hello::{StderrSource, Wants};
use crate::socket::runtime_dir::shown;

const OTHER_RESPONSE: &str = "the service has another version; run `trunkline restart`";

/// The interval of looking for new lines.
const PAUSE: Duration = Duration::from_millis(250);

pub(crate) fn run(
    arguments: &LogsArguments,
    settings: &Settings,
    environment: &ProcessEnv,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    if let Some(server) = &arguments.server {
        let sources = server_stderr(server, arguments.lines, environment)?;
        terminal.print(&match settings.format {
            Format::Text => sources_text(&sources),
            format => {
                let lines: Vec<_> = sources.iter().flat_map(|it| &it.lines).collect();
                report::document(&json!({ "lines": lines, "sources": sources }), format)
            }
        })?;
        return Ok(Outcome::Good);
    }
    let path = start::log_file(environment)?;
    let mut log = match File::open(&path) {
        Ok(log) => log,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            terminal.tell("There is no log: the service has not run yet.\n");
            terminal.print(&shown_lines(&[], settings.format, false))?;
            return Ok(Outcome::Good);
        }
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be read", shown(&path)));
        }
    };
    let lines = tail::last_lines_of(&mut log, arguments.lines)?;
    let lines: Vec<_> = lines.iter().map(|line| tail::readable(line)).collect();
    terminal.print(&shown_lines(&lines, settings.format, arguments.follow))?;
    if arguments.follow {
        follow(log, &path, settings.format, terminal)?;
    }
    Ok(Outcome::Good)
}

/// Lines in a format. As JSON they are one document, or one each if others follow.
fn shown_lines(lines: &[String], format: Format, is_followed: bool) -> String {
    match format {
        Format::Text => lines.iter().map(|line| format!("{line}\n")).collect(),
        _ if is_followed => {
            lines.iter().map(|line| report::line(&json!({ "line": line }))).collect()
        }
        format => report::document(&json!({ "lines": lines }), format),
    }
}

/// Prints new lines as they come.
fn follow(mut log: File, path: &Path, format: Format, terminal: &mut Terminal) -> Result<()> {
    loop {
        thread::sleep(PAUSE);
        // A log that was begun anew is shorter.
        if std::fs::metadata(path).is_ok_and(|it| it.len() < log.stream_position().unwrap_or(0)) {
            log = File::open(path)?;
        }
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        let text: String = String::from_utf8_lossy(&bytes).into_owned();
        let lines: Vec<_> = text.lines().map(tail::readable).collect();
        if !lines.is_empty() && !terminal.print_on(&shown_lines(&lines, format, true))? {
            return Ok(());
        }
    }
}

/// The lines of one project as they are, and those of several below their directories.
fn sources_text(sources: &[StderrSource]) -> String {
    let mut text = String::new();
    for source in sources {
        let indent = if sources.len() > 1 { "  " } else { "" };
        if sources.len() > 1 {
            let directories: Vec<_> =
                source.directories.iter().map(|it| escape_control(it)).collect();
            text += &format!("{}\n", directories.join(", "));
        }
        if sources.len() > 1 && source.lines.is_empty() {
            text += "  (nothing)\n";
        }
        for line in &source.lines {
            text += &format!("{indent}{}\n", escape_control(line));
        }
    }
    text
}

/// The last lines of a server, by project.
fn server_stderr(
    server: &str,
    count: usize,
    environment: &ProcessEnv,
) -> Result<Vec<StderrSource>> {
    let wants = || Wants::Stderr { server: server.to_owned(), by_project: true };
    let mut sources = Vec::new();
    for response in ask_for_server(server, wants, environment)? {
        match serde_json::from_value::<Vec<StderrSource>>(response.clone()) {
            Ok(of_projects) => sources.extend(of_projects),
            // An older service has the lines of all projects in one list.
            Err(_) => {
                let lines = serde_json::from_value(response).context(OTHER_RESPONSE)?;
                sources.push(StderrSource { directories: Vec::new(), lines });
            }
        }
    }
    let mut sources = StderrSource::join(sources);
    for StderrSource { lines, .. } in &mut sources {
        lines.drain(..lines.len().saturating_sub(count));
    }
    Ok(sources)
}
