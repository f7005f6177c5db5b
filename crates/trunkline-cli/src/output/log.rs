//! The log of spans and events: `-v`, `-vv`, `-vvv` and `TRUNKLINE_LOG`.
//!
//! A thread writes the lines and all other messages, so that a client that does not read standard
//! error stops neither calls nor servers: see [`terminal::queue_messages`].

use std::io;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use serde_json::json;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use trunkline::config::escape_control;
use trunkline_control::RotatedFile;

use super::terminal::{self, QueueGuard};

/// Size of a log file, in bytes.
const MAX_FILE_BYTES: u64 = 10 * 1024 * 1024;

/// Older log files.
const KEPT_FILES: usize = 3;

/// Lines that wait to be written to a file.
const MAX_WAITING: usize = 8192;

/// Time at the end of the program for the lines that wait.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Our crates; those of dependencies are logged only if the variable names them.
const TARGETS: [&str; 4] = ["trunkline", "trunkline_gateway", "trunkline_control", "trunkline_cli"];

/// The filter of the variable `TRUNKLINE_LOG`, or of the number of `-v`. `None` if nothing is logged.
pub(crate) fn filter(variable: Option<&str>, verbose: u8) -> Result<Option<Targets>, String> {
    let level = match (variable.map(str::trim).filter(|it| !it.is_empty()), verbose) {
        (Some(filter), _) => match filter.parse() {
            Ok(level) => level,
            Err(_) => return targets(filter).map(Some),
        },
        (None, 0) => return Ok(None),
        (None, 1) => LevelFilter::INFO,
        (None, 2) => LevelFilter::DEBUG,
        (None, _) => LevelFilter::TRACE,
    };
    Ok((level != LevelFilter::OFF).then(|| TARGETS.into_iter().map(|it| (it, level)).collect()))
}

/// A filter such as `trunkline_gateway=debug,hyper=info`.
fn targets(filter: &str) -> Result<Targets, String> {
    let is_pair = |part: &str| part.split_once('=').is_some_and(|(it, _)| !it.trim().is_empty());
    let targets = filter.parse().ok().filter(|_| filter.split(',').all(is_pair));
    targets.ok_or_else(|| {
        "TRUNKLINE_LOG must be a level (error, warn, info, debug, trace or off), or targets with \
         levels such as `trunkline=info,trunkline_gateway=debug`"
            .to_owned()
    })
}

/// Starts to log. The lines that wait are written when the guard is dropped.
pub(crate) fn start(filter: Targets) -> QueueGuard {
    let guard = terminal::queue_messages();
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(LogWriter)
        .log_internal_errors(false);
    // There is one log per process, and this is called once.
    let _ = tracing_subscriber::registry().with(layer).with(filter).try_init();
    guard
}

/// Starts to log to a file, as one object of JSON per line, with all messages of the program.
///
/// A thread writes the lines, so that a slow disk holds nothing; lines that a full disk does not take are counted.
pub(crate) fn start_file(filter: Targets, path: &Path) -> io::Result<FileLogGuard> {
    let (lines, waiting) = mpsc::sync_channel(MAX_WAITING);
    let file = RotatedFile::new(path, MAX_FILE_BYTES, KEPT_FILES);
    let write = move || write_file(file, &waiting);
    thread::Builder::new().name("trunkline-log".to_owned()).spawn(write)?;
    let writer = lines.clone();
    let layer = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_writer(move || FileWriter(writer.clone()))
        .log_internal_errors(false);
    let _ = tracing_subscriber::registry().with(layer).with(filter).try_init();
    terminal::log_messages();
    Ok(FileLogGuard(lines))
}

enum FileLine {
    Text(String),
    /// Reports when the lines before it are written.
    Flush(SyncSender<()>),
}

fn write_file(mut file: RotatedFile, waiting: &Receiver<FileLine>) {
    for line in waiting {
        let line = match line {
            FileLine::Text(line) => line,
            FileLine::Flush(done) => {
                let _ = done.try_send(());
                continue;
            }
        };
        let missing = file.dropped();
        if file.write_line(&line).is_ok() && missing > 0 {
            let message = format!("{missing} lines are missing before the last one");
            let _ = file.write_line(&json!({ "level": "WARN", "message": message }).to_string());
        }
    }
}

/// Writes the lines that wait when dropped.
pub(crate) struct FileLogGuard(SyncSender<FileLine>);

impl Drop for FileLogGuard {
    fn drop(&mut self) {
        let (done, finished) = mpsc::sync_channel(1);
        if self.0.try_send(FileLine::Flush(done)).is_ok() {
            let _ = finished.recv_timeout(LAST_LINES);
        }
    }
}

/// Sends lines to the thread that writes the file. If too many wait, lines are dropped.
struct FileWriter(SyncSender<FileLine>);

impl io::Write for FileWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches('\n').to_owned();
        let _ = self.0.try_send(FileLine::Text(text));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Queues lines for the thread that writes messages.
struct LogWriter;

impl MakeWriter<'_> for LogWriter {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        Self
    }
}

impl io::Write for LogWriter {
    /// Queues one line, which the subscriber writes at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let text = escape_control(text.trim_end_matches('\n'));
        terminal::write_message(&format!("{text}\n"));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enables(filter: &Targets, target: &str, level: tracing::Level) -> bool {
        filter.would_enable(target, &level)
    }

    #[test]
    fn verbosity_selects_a_level_of_our_crates() {
        use tracing::Level;
        assert!(filter(None, 0).unwrap().is_none());
        for (verbose, level, above) in [
            (1, Level::INFO, Some(Level::DEBUG)),
            (2, Level::DEBUG, Some(Level::TRACE)),
            (9, Level::TRACE, None),
        ] {
            let filter = filter(None, verbose).unwrap().unwrap();
            assert!(enables(&filter, "trunkline::connection", level));
            assert!(!enables(&filter, "hyper::proto", level));
            assert!(above.is_none_or(|above| !enables(&filter, "trunkline", above)));
        }
    }

    #[test]
    fn the_variable_takes_precedence_and_is_checked() {
        use tracing::Level;
        assert!(filter(Some("off"), 3).unwrap().is_none());
        assert!(filter(Some(" "), 0).unwrap().is_none());
        let debug = filter(Some("DEBUG"), 0).unwrap().unwrap();
        assert!(enables(&debug, "trunkline_gateway", Level::DEBUG));
        let named = filter(Some("hyper=trace,trunkline=warn"), 0).unwrap().unwrap();
        assert!(
            enables(&named, "hyper", Level::TRACE) && !enables(&named, "trunkline", Level::INFO)
        );
        for wrong in ["loud", "trunkline=loud", "=info", "trunkline=info,,"] {
            assert!(filter(Some(wrong), 0).is_err(), "{wrong}");
        }
    }
}
