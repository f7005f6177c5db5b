//! `trunkline schema`: prints the JSON Schema of configuration files, or of the output of a command.

use anyhow::{Context as _, Result};
use trunkline::config;

use crate::arguments::SchemaArguments;
use crate::output::exit::Outcome;
use crate::output::terminal::Terminal;
use crate::output_schema;

pub(crate) fn run(arguments: &SchemaArguments, terminal: &mut Terminal) -> Result<Outcome> {
    let schema = match &arguments.output {
        Some(command) => output_schema::of_command(command).context("invariant: clap knows it")?,
        None => config::schema(),
    };
    terminal.print(&format!("{schema:#}\n"))?;
    Ok(Outcome::Good)
}
