//! Loads the configuration and its agents, with the diagnostics of both.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use trunkline::config::{
    self, Agent, Consent, ConsentHold, DiscoveredFiles, Environment, LoadOptions, LoadedConfig,
};
use trunkline::name::AgentName;

use crate::environment::{ProcessEnv, wait};
use crate::settings::Settings;

/// The error when the file system does not respond.
pub(crate) const UNANSWERED: &str = "the configuration cannot be loaded";

/// All agents of a configuration, including those in files.
pub(crate) type Agents = BTreeMap<AgentName, Agent>;

/// Loads the current configuration, or another file, and its agents.
pub(crate) fn load(
    settings: &Settings,
    environment: &ProcessEnv,
    file: Option<PathBuf>,
) -> Result<(LoadedConfig, Agents)> {
    load_waiting(environment, settings.load_options(environment, file))
}

/// Loads a configuration and its agents, with a timeout.
pub(crate) fn load_waiting(
    environment: &ProcessEnv,
    options: LoadOptions,
) -> Result<(LoadedConfig, Agents)> {
    let environment = environment.clone();
    wait(move || load_through(&environment, &options)).context(UNANSWERED)
}

/// Loads a configuration for inspection only: a discovered file is used even if it is not trusted.
/// Also returns why its servers would not be started.
pub(crate) fn inspect(
    settings: &Settings,
    environment: &ProcessEnv,
    file: Option<PathBuf>,
) -> Result<(LoadedConfig, Option<ConsentHold>)> {
    let mut options = settings.load_options(environment, file);
    options.discovered = DiscoveredFiles::Run;
    let (loaded, _) = load_waiting(environment, options)?;
    let hold = loaded.discovered.as_ref().and_then(|(file, _)| match environment.consent(file) {
        Consent::Given(_) => None,
        Consent::Withheld(reason) => Some(ConsentHold { file: file.path.clone(), reason }),
    });
    Ok((loaded, hold))
}

/// Loads a configuration and its agents through an [`Environment`].
pub(crate) fn load_through(
    surroundings: &dyn Environment,
    options: &LoadOptions,
) -> (LoadedConfig, Agents) {
    let mut loaded = config::load(surroundings, options);
    let agents = config::load_agents(surroundings, loaded.config.agents());
    loaded.diagnostics.extend(agents.diagnostics);
    (loaded, agents.agents)
}
