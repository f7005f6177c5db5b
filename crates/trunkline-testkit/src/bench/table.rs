//! The table that the benchmark prints.

use std::fmt;
use std::time::Duration;

/// One measurement beside what it is measured against.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) measured: Duration,
    pub(crate) baseline_name: &'static str,
    pub(crate) baseline: Duration,
    /// What the ratio should stay below, where there is an aim.
    pub(crate) aim: Option<f64>,
}

#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

impl Table {
    pub(crate) fn push(&mut self, row: Row) {
        self.rows.push(row);
    }
}

impl Row {
    fn ratio(&self) -> f64 {
        self.measured.as_secs_f64() / self.baseline.as_secs_f64()
    }

    fn cells(&self) -> [String; 6] {
        let aim = self.aim.map_or(String::new(), |aim| format!("< {aim:.2}"));
        let missed = self.aim.is_some_and(|aim| self.ratio() >= aim);
        [
            self.name.clone(),
            format!("{:.2?}", self.measured),
            self.baseline_name.to_owned(),
            format!("{:.2?}", self.baseline),
            format!("{:.2}", self.ratio()),
            if missed { format!("{aim} MISSED") } else { aim },
        ]
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["what", "time", "against", "time", "ratio", "aim"].map(str::to_owned);
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
        Ok(())
    }
}
