//! The report of the comparison with peers: tables with medians and spread, as text, Markdown and JSON.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

/// Unit of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Bytes,
    Kilobytes,
    PerSecond,
    Count,
    Ratio,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Bytes | Self::Kilobytes => "bytes",
            Self::Ratio => "ratio",
            Self::PerSecond => "per second",
            Self::Count => "count",
        }
    }

    fn format(self, value: f64) -> String {
        match self {
            Self::Seconds => format!("{:.3?}", Duration::from_secs_f64(value.max(0.0))),
            Self::Bytes => format!("{:.1} MB", value / 1e6),
            Self::Kilobytes => format!("{:.1} kB", value / 1e3),
            Self::Ratio => format!("{value:.2}"),
            Self::PerSecond | Self::Count => format!("{value:.0}"),
        }
    }
}

/// The median of several rounds, with the smallest and the largest value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    low: f64,
    high: f64,
}

impl Spread {
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let median = *values.get(values.len() / 2)?;
        Some(Self { median, low: *values.first()?, high: *values.last()? })
    }

    fn format(self, unit: Unit) -> String {
        let Self { median, low, high } = self;
        // Spread in percent: below 1 it is hidden by the rounding.
        let percent = if median > 0.0 { 100.0 * (high - low) / 2.0 / median } else { 0.0 };
        let text = unit.format(median);
        if percent < 1.0 { text } else { format!("{text} ±{percent:.0} %") }
    }
}

/// Measurements of one peer, in the order of the columns, or the reason why there are none.
pub(crate) struct PeerRow {
    pub(crate) peer: String,
    pub(crate) cells: Result<Vec<Option<Spread>>, String>,
}

/// One scenario.
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) columns: Vec<(&'static str, Unit)>,
    pub(crate) rows: Vec<PeerRow>,
}

impl Section {
    /// The median of a peer in a column.
    fn median(&self, peer: &str, column: &str) -> Option<f64> {
        let at = self.columns.iter().position(|(name, _)| *name == column)?;
        let row = self.rows.iter().find(|row| row.peer == peer)?;
        Some((*row.cells.as_ref().ok()?.get(at)?)?.median)
    }

    /// The row that the others are compared with: ours, or the first of ours if each is a command.
    fn own_row(&self, ours: &str) -> Option<&PeerRow> {
        let is_command =
            |row: &&PeerRow| row.peer.strip_prefix(ours).is_some_and(|rest| rest.starts_with(' '));
        let exact = self.rows.iter().find(|row| row.peer == ours);
        exact.or_else(|| self.rows.iter().find(is_command))
    }

    fn header(&self, ours: &str) -> Vec<String> {
        let ours = self.own_row(ours).map_or(ours, |row| row.peer.as_str());
        let mut header = vec!["peer".to_owned()];
        header.extend(self.columns.iter().map(|(name, _)| (*name).to_owned()));
        header.push(format!("{ours} ÷ this"));
        header
    }

    /// Cells of a row. The last one is the ratio of the first column.
    fn cells(&self, row: &PeerRow, ours: &str) -> Vec<String> {
        let mut cells = vec![row.peer.clone()];
        match &row.cells {
            Err(reason) => cells.push(format!("not measured: {reason}")),
            Ok(values) => {
                for (value, (_, unit)) in values.iter().zip(&self.columns) {
                    cells.push(value.map_or_else(|| "–".to_owned(), |it| it.format(*unit)));
                }
                let first = self.columns.first().map_or("", |(name, _)| *name);
                let ours = self.own_row(ours).and_then(|row| self.median(&row.peer, first));
                let ratio = ours.zip(self.median(&row.peer, first));
                let ratio = ratio.map(|(ours, this)| ours / this).filter(|it| it.is_finite());
                cells.push(ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")));
            }
        }
        cells
    }
}

/// An aim: a ratio of two medians, or a median against an amount. It is printed, and never fails a run.
pub(crate) struct AimLine {
    pub(crate) what: &'static str,
    pub(crate) section: &'static str,
    pub(crate) column: &'static str,
    /// The peer to divide by; without one, the median itself is compared.
    pub(crate) against: Option<&'static str>,
    pub(crate) at_most: f64,
}

/// All sections of a run.
pub(crate) struct Comparison {
    /// Name of the row that the others are compared with.
    ours: &'static str,
    machine: Vec<(String, String)>,
    sections: Vec<Section>,
    notes: Vec<String>,
}

impl Comparison {
    pub(crate) fn new(ours: &'static str, machine: Vec<(String, String)>) -> Self {
        Self { ours, machine, sections: Vec::new(), notes: Vec::new() }
    }

    /// Adds a note below the tables.
    pub(crate) fn note(&mut self, note: &str) {
        self.notes.push(note.to_owned());
    }

    /// Adds a section and prints it, so that a run that is stopped has shown what it has measured.
    pub(crate) fn push(&mut self, section: Section) {
        println!("{}", self.section_text(&section));
        self.sections.push(section);
    }

    fn section_text(&self, section: &Section) -> String {
        let mut text = format!("{}\n", section.title);
        let mut lines = vec![section.header(self.ours)];
        lines.extend(section.rows.iter().map(|row| section.cells(row, self.ours)));
        let width = |column: usize| {
            // A reason is longer than any cell, and has no cells after it.
            let cells = lines.iter().filter(|line| line.len() > 2 || column == 0);
            cells.filter_map(|line| line.get(column)).map(|it| it.chars().count()).max()
        };
        let widths: Vec<_> = (0..lines[0].len()).map(|at| width(at).unwrap_or(0)).collect();
        for line in &lines {
            let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            let _ = writeln!(text, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        text
    }

    /// Prints the machine, before the first section.
    pub(crate) fn print_machine(&self) {
        for (key, value) in &self.machine {
            println!("{key}: {value}");
        }
        println!();
    }

    /// Prints the notes, after the last section.
    pub(crate) fn print_notes(&self) {
        for note in &self.notes {
            println!("{note}\n");
        }
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        for (key, value) in &self.machine {
            let _ = writeln!(text, "- {key}: {value}");
        }
        for section in &self.sections {
            let header = section.header(self.ours);
            let _ = writeln!(text, "\n### {}\n\n| {} |", section.title, header.join(" | "));
            let _ = writeln!(text, "|{}", "---|".repeat(header.len()));
            for row in &section.rows {
                let mut cells = section.cells(row, self.ours);
                cells.resize(header.len(), String::new());
                let _ = writeln!(text, "| {} |", cells.join(" | "));
            }
        }
        for note in &self.notes {
            let _ = writeln!(text, "\n{note}");
        }
        text
    }

    pub(crate) fn json(&self) -> Value {
        let machine: serde_json::Map<_, _> =
            self.machine.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        let sections: Vec<_> = self.sections.iter().map(section_json).collect();
        json!({ "machine": machine, "sections": sections, "notes": self.notes })
    }

    /// Notes how far the aims are reached, for those whose sections were measured.
    pub(crate) fn note_aims(&mut self, aims: &[AimLine]) {
        let mut lines = Vec::new();
        for aim in aims {
            let Some(section) = self.sections.iter().find(|it| it.title == aim.section) else {
                continue;
            };
            let Some(ours) = section.median(self.ours, aim.column) else { continue };
            let (value, against) = match aim.against {
                None => (ours, String::new()),
                Some(peer) => match section.median(peer, aim.column) {
                    Some(theirs) => (ours / theirs, format!(" of {peer}")),
                    None => continue,
                },
            };
            let verdict = if value <= aim.at_most { "reached" } else { "not reached" };
            let format = |value: f64| match aim.against {
                Some(_) => format!("{value:.2}"),
                None => format!("{value:.3e}"),
            };
            let (value, limit) = (format(value), format(aim.at_most));
            lines.push(format!("- {}: {value}{against}, aim at most {limit}: {verdict}", aim.what));
        }
        if !lines.is_empty() {
            self.notes.push(format!("Aims, as measured in this run:\n\n{}", lines.join("\n")));
        }
    }

    /// Rows of ours that failed, which fail the run. Those of peers do not.
    pub(crate) fn own_failures(&self) -> Vec<String> {
        let rows = self
            .sections
            .iter()
            .flat_map(|section| section.rows.iter().map(move |row| (&section.title, row)));
        let failed = rows.filter_map(|(title, row)| {
            let reason = row.cells.as_ref().err()?;
            let is_ours = row.peer.starts_with(self.ours);
            is_ours.then(|| format!("{title}: {}: {reason}", row.peer))
        });
        failed.collect()
    }
}

fn section_json(section: &Section) -> Value {
    let cell = |(value, (name, unit)): (&Option<Spread>, &(&'static str, Unit))| {
        let value = value.as_ref()?;
        let value = json!({
            "unit": unit.name(), "median": value.median, "low": value.low, "high": value.high,
        });
        Some(((*name).to_owned(), value))
    };
    let row = |row: &PeerRow| match &row.cells {
        Err(reason) => json!({ "peer": row.peer, "not_measured": reason }),
        Ok(cells) => {
            let cells: serde_json::Map<_, _> =
                cells.iter().zip(&section.columns).filter_map(cell).collect();
            json!({ "peer": row.peer, "measured": cells })
        }
    };
    let rows: Vec<_> = section.rows.iter().map(row).collect();
    json!({ "title": section.title, "rows": rows })
}
