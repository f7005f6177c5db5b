//! `trunkline config`: prints the effective configuration, with the location of each part.

use anyhow::Result;
use serde_json::{Map, Value, json};
use trunkline::config::{ConsentHold, LoadedConfig};
use trunkline::connection::ChildOptions;
use trunkline::name::ServerName;

use crate::arguments::Format;
use crate::config::display;
use crate::config::load;
use crate::environment::ProcessEnv;
use crate::output::exit::Outcome;
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::{Settings, Verbosity};

pub(crate) fn run(
    settings: &Settings,
    environment: &ProcessEnv,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let (loaded, hold) = load::inspect(settings, environment, None)?;
    terminal.say(&report::problems(&loaded, settings.verbosity, terminal.message_style()));
    match settings.format {
        Format::Json | Format::Raw => {
            let mut shown = as_json(&loaded, hold.as_ref());
            if settings.verbosity >= Verbosity::Verbose {
                add_inherited(&mut shown, &loaded, &environment.child_options());
            }
            terminal.print(&report::document(&shown, settings.format))?;
        }
        Format::Text => {
            let (child, style) = (environment.child_options(), terminal.output_style());
            let text = display::text(&loaded, &child, settings.verbosity, style);
            terminal.print(&(text + &report::held(hold.as_ref())))?;
        }
    }
    Ok(if loaded.has_errors(false) { Outcome::Bad } else { Outcome::Good })
}

/// Adds the environment variables that each server would inherit.
fn add_inherited(shown: &mut Value, loaded: &LoadedConfig, child: &ChildOptions) {
    for server in loaded.config.servers() {
        let variables = display::inherited_variables(server, child);
        if let Some(entry) = shown["mcpServers"].get_mut(server.name.as_str()) {
            let pairs = variables.into_iter().map(|(name, value)| (name, Value::from(value)));
            entry["inherits"] = pairs.collect::<Map<_, _>>().into();
        }
    }
}

fn as_json(loaded: &LoadedConfig, hold: Option<&ConsentHold>) -> Value {
    let mut shown = loaded.config.to_json();
    shown["sources"] = json!(loaded.origins.iter().map(ToString::to_string).collect::<Vec<_>>());
    shown["hold"] = json!(hold.map(ToString::to_string));
    shown["broken"] =
        json!(loaded.config.broken().iter().map(ServerName::as_str).collect::<Vec<_>>());
    shown
}
