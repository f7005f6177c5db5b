//! The log of spans and events: `-v`, `-vv`, `-vvv` and `TRUNKLINE_LOG`.
//!
//! A thread writes the lines, so that a client that does not read standard error stops neither
//! calls nor servers: lines that do not fit into the queue are dropped and counted.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::terminal;

/// Lines that wait to be written.
const MAX_LINES: usize = 4096;

/// Time at the end of the program for the lines that wait.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Our crates; those of dependencies are logged only if the variable names them.
const TARGETS: [&str; 3] = ["trunkline", "trunkline_gateway", "trunkline_cli"];

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
pub(crate) fn start(filter: Targets) -> LogGuard {
    let (lines, receiver) = mpsc::sync_channel(MAX_LINES);
    let dropped = Arc::new(AtomicU64::new(0));
    let writer = LogWriter { lines: lines.clone(), dropped: Arc::clone(&dropped) };
    thread::spawn(move || write_lines(&receiver, &dropped));
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(writer)
        .log_internal_errors(false);
    // There is one log per process, and this is called once.
    let _ = tracing_subscriber::registry().with(layer).with(filter).try_init();
    LogGuard { lines }
}

/// Writes the lines that wait when dropped.
pub(crate) struct LogGuard {
    lines: SyncSender<LogMessage>,
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        let (done, finished) = mpsc::sync_channel(1);
        // A full queue means that standard error is not read.
        if self.lines.try_send(LogMessage::Flush(done)).is_ok() {
            let _ = finished.recv_timeout(LAST_LINES);
        }
    }
}

enum LogMessage {
    Line(Vec<u8>),
    /// Reports when the lines before it are written.
    Flush(SyncSender<()>),
}

fn write_lines(messages: &Receiver<LogMessage>, dropped: &AtomicU64) {
    for message in messages {
        match message {
            LogMessage::Line(line) => terminal::write_log(&String::from_utf8_lossy(&line)),
            LogMessage::Flush(done) => drop(done.try_send(())),
        }
        let missing = dropped.swap(0, Ordering::Relaxed);
        if missing > 0 {
            terminal::write_log(&format!("{missing} lines of the log are missing here\n"));
        }
    }
}

/// Queues lines for the thread that writes them.
#[derive(Clone)]
struct LogWriter {
    lines: SyncSender<LogMessage>,
    dropped: Arc<AtomicU64>,
}

impl<'w> MakeWriter<'w> for LogWriter {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}

impl io::Write for LogWriter {
    /// Queues one line, which the subscriber writes at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.lines.try_send(LogMessage::Line(line.to_vec())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
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

    #[test]
    fn lines_beyond_the_queue_are_dropped_and_counted() {
        let (lines, _receiver) = mpsc::sync_channel(2);
        let dropped = Arc::new(AtomicU64::new(0));
        let mut writer = LogWriter { lines, dropped: Arc::clone(&dropped) };
        for _ in 0..5 {
            io::Write::write_all(&mut writer, b"line\n").unwrap();
        }
        assert_eq!(dropped.load(Ordering::Relaxed), 3);
    }
}
