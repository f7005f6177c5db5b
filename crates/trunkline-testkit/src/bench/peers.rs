//! Comparison with other gateways and proxies, all in one run: calls, start, memory and the command line.

mod report;
mod machine;
mod http_response;
mod client;
mod process;
mod program;
mod instance;
mod calls;
mod lifecycle;
mod scale;
mod command_line;

use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

use crate::measure::Effort;
pub(crate) use program::choose_peers;
use report::{AimLine, Comparison};

/// A part of the comparison that can be run alone.
struct Part {
    name: &'static str,
    sections: fn(Effort, &mut Comparison),
}

const PARTS: &[Part] = &[
    Part { name: "peers-calls", sections: calls::sections },
    Part { name: "peers-start", sections: lifecycle::sections },
    Part { name: "peers-scale", sections: scale::sections },
    Part { name: "peers-cli", sections: command_line::sections },
];

/// The argument for [`train`].
pub(crate) const TRAIN: &str = "--train";

/// The group of all parts.
pub(crate) const PEERS: &str = "peers";

const PROCESSOR_TIME: &str = "processor time per call";
const AGGREGATOR: &str = "mcp-aggregator (Rust)";

const fn ratio(
    what: &'static str,
    section: &'static str,
    column: &'static str,
    against: &'static str,
    at_most: f64,
) -> AimLine {
    AimLine { what, section, column, against: Some(against), at_most }
}

/// Aims that are printed with the measurements. None is asserted: they depend on the machine.
const AIMS: &[AimLine] = &[
    AimLine {
        what: "processor time of 1 MB",
        section: LARGE,
        column: PROCESSOR_TIME,
        against: None,
        at_most: 0.6e-3,
    },
    AimLine {
        what: "idle memory with 30 servers",
        section: THIRTY,
        column: "resident, main process",
        against: None,
        at_most: 9e6,
    },
    AimLine {
        what: "memory after a burst",
        section: BURST,
        column: "after ÷ idle",
        against: None,
        at_most: 1.2,
    },
    ratio("cold start of 30 servers", THIRTY, "start to full list", AGGREGATOR, 1.0),
    ratio(
        "processor time, HTTP → stdio, 64 in flight",
        "HTTP → stdio, 200 B, 64 in flight",
        PROCESSOR_TIME,
        AGGREGATOR,
        0.8,
    ),
    ratio(
        "processor time, HTTP → stdio, 1 in flight",
        "HTTP → stdio, 200 B, 1 in flight",
        PROCESSOR_TIME,
        AGGREGATOR,
        0.8,
    ),
    ratio(
        "p99, HTTP → stdio, 64 in flight",
        "HTTP → stdio, 200 B, 64 in flight",
        "p99",
        AGGREGATOR,
        1.0,
    ),
    ratio(
        "processor time, HTTP → HTTP, 64 in flight",
        "HTTP → HTTP, 200 B, 64 in flight",
        PROCESSOR_TIME,
        "mcp-proxy (Rust)",
        0.35,
    ),
    ratio(
        "processor time, HTTP → HTTP, 64 in flight",
        "HTTP → HTTP, 200 B, 64 in flight",
        PROCESSOR_TIME,
        "nginx (limit)",
        1.5,
    ),
];

/// Titles of sections with aims that are no ratio to a peer.
const LARGE: &str = "HTTP → stdio, results of 1 MB, 1 in flight";
const THIRTY: &str = "Cold start and idle memory, 30 stdio servers";
const BURST: &str = "Memory after 256 results of 1 MB, 64 in flight";

/// Whether a word names the group or one of its parts.
pub(crate) fn is_part(word: &str) -> bool {
    word == PEERS || PARTS.iter().any(|part| part.name == word)
}

/// Files that a report is written to, besides the terminal.
#[derive(Clone, Copy, Default)]
pub(crate) struct ReportFiles<'a> {
    pub(crate) json: Option<&'a Path>,
    pub(crate) markdown: Option<&'a Path>,
}

/// Lets the program do the work that it is optimised for, by `cargo xtask dist`. Nothing is measured.
pub(crate) fn train() -> ExitCode {
    match calls::train().and_then(|()| lifecycle::train()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("failed: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Runs parts and prints their report. Fails when one of our own rows failed.
pub(crate) fn run(
    effort: Effort,
    is_chosen: impl Fn(&str) -> bool,
    files: ReportFiles<'_>,
) -> ExitCode {
    let mut report = Comparison::new(program::OURS, machine::describe());
    report.print_machine();
    for part in PARTS.iter().filter(|part| is_chosen(part.name)) {
        (part.sections)(effort, &mut report);
    }
    report.note_aims(AIMS);
    report.print_notes();
    if let Err(error) = write(&report, files) {
        eprintln!("the report cannot be written: {error}");
        return ExitCode::FAILURE;
    }
    let failures = report.own_failures();
    for failure in &failures {
        eprintln!("failed: {failure}");
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn write(report: &Comparison, files: ReportFiles<'_>) -> io::Result<()> {
    if let Some(path) = files.json {
        fs::write(path, format!("{:#}\n", report.json()))?;
    }
    if let Some(path) = files.markdown {
        fs::write(path, report.markdown())?;
    }
    Ok(())
}
