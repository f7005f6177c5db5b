//! The table that the benchmark prints.

use std::fmt;
use std::time::Duration;

const MEGABYTE: f64 = 1e6;

/// A measured value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Quantity {
    Time(Duration),
    Bytes(f64),
    Count(f64),
}

impl Quantity {
    fn value(self) -> f64 {
        match self {
            Self::Time(time) => time.as_secs_f64(),
            Self::Bytes(number) | Self::Count(number) => number,
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(f, "{time:.2?}"),
            Self::Bytes(bytes) if *bytes < MEGABYTE / 10.0 => write!(f, "{bytes:.0} B"),
            Self::Bytes(bytes) => write!(f, "{:.2} MB", bytes / MEGABYTE),
            Self::Count(count) => write!(f, "{count:.1}"),
        }
    }
}

impl From<Duration> for Quantity {
    fn from(time: Duration) -> Self {
        Self::Time(time)
    }
}

/// Upper limit for a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aim {
    /// This multiple of the baseline.
    Ratio(f64),
    /// A fixed amount.
    Below(Quantity),
}

/// One measurement with its baseline.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) measured: Quantity,
    /// Name and measurement of the baseline, if there is one.
    pub(crate) baseline: Option<(&'static str, Quantity)>,
    /// The upper limit, if there is one.
    pub(crate) aim: Option<Aim>,
}

#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Table {
    pub(crate) fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.notes.is_empty()
    }

    pub(crate) fn extend(&mut self, rows: Vec<Row>) {
        self.rows.extend(rows);
    }

    /// Adds a note below the table: missing rows, and the reason.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}

impl Row {
    /// A baseline of zero has no ratio.
    fn ratio(&self) -> Option<f64> {
        let ratio = self.baseline.map(|(_, baseline)| self.measured.value() / baseline.value());
        ratio.filter(|ratio| ratio.is_finite())
    }

    fn aim(&self) -> String {
        let (aim, is_missed) = match self.aim {
            None => return String::new(),
            Some(Aim::Ratio(ratio)) => (format!("< {ratio:.2}"), self.ratio() >= Some(ratio)),
            Some(Aim::Below(limit)) => {
                (format!("< {limit}"), self.measured.value() >= limit.value())
            }
        };
        if is_missed { format!("{aim} MISSED") } else { aim }
    }

    fn cells(&self) -> [String; 6] {
        let (against, baseline) = self.baseline.unzip();
        [
            self.name.clone(),
            self.measured.to_string(),
            against.unwrap_or_default().to_owned(),
            baseline.as_ref().map(Quantity::to_string).unwrap_or_default(),
            self.ratio().map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            self.aim(),
        ]
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["what", "measured", "against", "measured", "ratio", "aim"].map(str::to_owned);
        let lines: Vec<_> =
            std::iter::once(header).chain(self.rows.iter().map(Row::cells)).collect();
        let width = |column: usize| {
            lines.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0)
        };
        let widths: [usize; 6] = std::array::from_fn(width);
        for cells in &lines {
            let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
            writeln!(f, "{}", padded.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        for note in &self.notes {
            writeln!(f, "\n{note}")?;
        }
        Ok(())
    }
}
