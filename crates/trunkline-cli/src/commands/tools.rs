//! `trunkline tools`: lists the tools as a model would get them, and the hidden ones.

use std::sync::Arc;

use anyhow::Result;
use trunkline::catalog::ItemKind;

use crate::arguments::ListArguments;
use crate::environment::ProcessEnv;
use crate::host::list_command;
use crate::output::exit::Outcome;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

pub(crate) fn run(
    arguments: &ListArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    list_command::run(&[ItemKind::Tool], arguments, settings, environment, terminal)
}
