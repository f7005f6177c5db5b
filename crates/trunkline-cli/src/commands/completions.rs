//! `trunkline completions`: prints a completion script for a shell.

use anyhow::Result;
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::output::exit::Outcome;
use crate::output::terminal::Terminal;

pub(crate) fn run(shell: Shell, terminal: &mut Terminal) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "trunkline", &mut script);
    terminal.print(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Good)
}
