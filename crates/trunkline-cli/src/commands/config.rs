//! `trunkline config`: what would run here, and where each part of it was written.

use anyhow::Result;
use serde_json::{Value, json};
use trunkline::config::{Hold, Loaded};
use trunkline::name::ServerName;

use crate::arguments::Format;
use crate::effective;
use crate::environment::Environment;
use crate::exit::Outcome;
use crate::loading;
use crate::report;
use crate::settings::Settings;
use crate::terminal::Terminal;

pub(crate) fn run(
    settings: &Settings,
    environment: &Environment,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let (loaded, hold) = loading::inspect(settings, environment, None)?;
    terminal.say(&report::problems(&loaded, settings.verbosity, terminal.message_style()));
    match settings.format {
        Format::Json | Format::Raw => {
            terminal.print(&report::document(&as_json(&loaded, hold.as_ref()), settings.format))?;
        }
        Format::Text => {
            let text = effective::text(&loaded, settings.verbosity, terminal.output_style());
            terminal.print(&(text + &report::held(hold.as_ref())))?;
        }
    }
    Ok(if loaded.fails(false) { Outcome::Bad } else { Outcome::Good })
}

fn as_json(loaded: &Loaded, hold: Option<&Hold>) -> Value {
    let mut shown = loaded.config.to_json();
    shown["sources"] = json!(loaded.origins.iter().map(ToString::to_string).collect::<Vec<_>>());
    shown["hold"] = json!(hold.map(ToString::to_string));
    shown["broken"] =
        json!(loaded.config.broken().iter().map(ServerName::as_str).collect::<Vec<_>>());
    shown
}
