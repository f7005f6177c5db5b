//! `trunkline logs`: the log of the background service, or what one of its servers wrote to standard error.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use trunkline::config::escape_control;

use super::restart::ask_for_server;
use crate::arguments::{Format, LogsArguments};
use crate::environment::ProcessEnv;
use crate::output::exit::Outcome;
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::service::{start, tail};
use crate::settings::Settings;
use crate::socket::hello::Wants;
use crate::socket::runtime_dir::shown;

/// The interval of looking for new lines.
const PAUSE: Duration = Duration::from_millis(250);

pub(crate) fn run(
    arguments: &LogsArguments,
    settings: &Settings,
    environment: &ProcessEnv,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    if let Some(server) = &arguments.server {
        let mut lines = server_stderr(server, arguments.lines, environment)?;
        if settings.format == Format::Text {
            lines.iter_mut().for_each(|line| *line = escape_control(line));
        }
        terminal.print(&shown_lines(&lines, settings.format, false))?;
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

fn server_stderr(server: &str, count: usize, environment: &ProcessEnv) -> Result<Vec<String>> {
    let wants = Wants::Stderr { server: server.to_owned() };
    let welcome = ask_for_server(server, wants, environment)?;
    let lines = welcome.response.as_array().into_iter().flatten().filter_map(Value::as_str);
    let lines: Vec<_> = lines.map(str::to_owned).collect();
    Ok(lines.get(lines.len().saturating_sub(count)..).unwrap_or_default().to_vec())
}
