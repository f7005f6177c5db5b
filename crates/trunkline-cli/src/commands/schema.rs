//! `trunkline schema`: prints the JSON Schema of configuration files.

use anyhow::Result;
use trunkline::config;

use crate::output::exit::Outcome;
use crate::output::terminal::Terminal;

pub(crate) fn run(terminal: &mut Terminal) -> Result<Outcome> {
    terminal.print(&format!("{:#}\n", config::schema()))?;
    Ok(Outcome::Good)
}
