//! Resolves the caller options of the command line, with the toggles of a file.

use std::path::Path;

use anyhow::Result;
use trunkline::config::{
    ConversationToggles, Diagnostic, Environment as _, escape_control, parse_toggles,
};
use trunkline::policy::Toggles;

use crate::arguments::CallerArguments;
use crate::environment::{ProcessEnv, wait};
use crate::output::exit::{Failure, FailureKind};
use crate::settings::Settings;

/// The caller that a command acts for.
pub(crate) struct CallerOptions<'a> {
    pub(crate) arguments: &'a CallerArguments,
    pub(crate) toggle_file: ConversationToggles,
    /// The `--config` option as written on the command line.
    config: String,
}

impl<'a> CallerOptions<'a> {
    /// Reads the toggle file, if there is one. An invalid file is an error, because its
    /// toggles might have hidden something.
    pub(crate) fn read(
        arguments: &'a CallerArguments,
        settings: &Settings,
        environment: &ProcessEnv,
    ) -> Result<Self> {
        let toggle_file = match &arguments.toggles {
            Some(path) => read(path, environment)?,
            None => ConversationToggles::default(),
        };
        Ok(Self { arguments, toggle_file, config: written(settings) })
    }

    /// The toggles of the file, without those of the command line.
    pub(crate) fn toggles(&self) -> Toggles {
        Toggles::from(&self.toggle_file)
    }

    /// The `--config` option as it would be written on a command line, after a space.
    pub(crate) fn config_flag(&self) -> &str {
        &self.config
    }

    /// Whether the options limit what the caller sees.
    pub(crate) fn is_limited(&self) -> bool {
        !self.arguments.written().is_empty()
    }

    /// The same options as they would be written on a command line, each after a space.
    pub(crate) fn as_flags(&self) -> String {
        self.arguments.written() + &self.config
    }
}

/// The options that name the configuration or the server, after a space.
fn written(settings: &Settings) -> String {
    let (before, after) = settings.written_server();
    settings.written_config() + &before + &after
}

fn read(path: &Path, environment: &ProcessEnv) -> Result<ConversationToggles> {
    let name = escape_control(&path.to_string_lossy());
    let (environment, place) = (environment.clone(), environment.working_directory().join(path));
    let bytes = wait(move || environment.read(&place)).and_then(|read| read).map_err(|error| {
        let message = format!("the toggles in {name} cannot be read: {error}");
        Failure::new(FailureKind::Usage, message)
    })?;
    let toggles = parse_toggles(&name, bytes);
    match toggles.diagnostics.as_slice() {
        [] => Ok(toggles),
        wrong => Err(unusable(&name, wrong).into()),
    }
}

/// The error for a toggle file, with all problems in it.
fn unusable(name: &str, wrong: &[Diagnostic]) -> Failure {
    let problem = |found: &Diagnostic| match &found.location {
        Some(place) => format!("{place}: {}", found.message),
        None => found.message.clone(),
    };
    let problems = wrong.iter().map(problem).collect::<Vec<_>>().join("\n  ");
    let message = format!("the toggles in {name} cannot be used\n  {problems}");
    let help = wrong.iter().find_map(|found| found.help.clone());
    let form = "it is written as {\"servers\": {\"NAME\": false}}".to_owned();
    Failure::new(FailureKind::Usage, message).with_hint(help.unwrap_or(form))
}
