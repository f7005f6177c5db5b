//! Measures configuration parsing against a plain JSON parser, and its growth with size.

use std::time::Duration;

use trunkline::config::{self, ColorStyle};
use trunkline_testkit::generate::{Entries, configuration, on_one_line};

use crate::measure::{Effort, shortest};
use crate::table::{Aim, Row, Table};

/// Allowed growth over linear, for cache misses only.
const LINEAR: f64 = 1.5;

pub(crate) fn rows(effort: Effort, table: &mut Table) {
    for entries in [Entries::Good, Entries::Bad] {
        let thousand = configuration(1_000, entries);
        let ten_thousand = configuration(10_000, entries);
        let what = match entries {
            Entries::Good => "configuration: read and check",
            Entries::Bad => "configuration: read, check and report",
        };
        let small = time(effort, &thousand);
        let large = time(effort, &ten_thousand);
        let one_line = time(effort, &on_one_line(&ten_thousand));
        let plain = shortest(effort, || serde_json::from_str::<serde_json::Value>(&ten_thousand));
        table.push(Row {
            name: format!("{what} 10,000 servers"),
            measured: large.into(),
            baseline: Some(("serde_json::Value of the same text", plain.into())),
            aim: None,
        });
        for (name, measured) in [("10,000 servers", large), ("10,000 on one line", one_line)] {
            table.push(Row {
                name: format!("{what} {name}"),
                measured: measured.into(),
                baseline: Some(("ten times 1,000 servers", (small * 10).into())),
                aim: Some(Aim::Ratio(LINEAR)),
            });
        }
    }
}

fn time(effort: Effort, text: &str) -> Duration {
    shortest(effort, || {
        let loaded = config::parse("bench.json", text);
        let report: usize =
            loaded.diagnostics.iter().map(|found| found.render(ColorStyle::Plain).len()).sum();
        (loaded, report)
    })
}
