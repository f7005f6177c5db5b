//! The configuration and its agents, with everything that is wrong with either.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use trunkline::config::{
    self, Agent, Consent, ConsentHold, DiscoveredFiles, Environment, LoadOptions, LoadedConfig,
};
use trunkline::name::AgentName;

use crate::environment::{ProcessEnv, wait};
use crate::settings::Settings;

/// What is said when a file of the configuration, or a folder in which one may be, does not answer.
pub(crate) const UNANSWERED: &str = "the configuration cannot be loaded";

/// All agents of a configuration, those in files included.
pub(crate) type Agents = BTreeMap<AgentName, Agent>;

/// Loads the configuration used here, or a file instead of it, and the agents that it names.
pub(crate) fn load(
    settings: &Settings,
    environment: &ProcessEnv,
    file: Option<PathBuf>,
) -> Result<(LoadedConfig, Agents)> {
    load_waiting(environment, settings.load_options(environment, file))
}

/// Loads a configuration and its agents, if the file system answers.
pub(crate) fn load_waiting(
    environment: &ProcessEnv,
    options: LoadOptions,
) -> Result<(LoadedConfig, Agents)> {
    let environment = environment.clone();
    wait(move || load_through(&environment, &options)).context(UNANSWERED)
}

/// The same to look at it only: of a discovered file everything counts, trusted or not. Returns also
/// why its servers could not be started, if they could not.
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

/// Loads a configuration and its agents with something between that is asked for files and folders.
pub(crate) fn load_through(
    surroundings: &dyn Environment,
    options: &LoadOptions,
) -> (LoadedConfig, Agents) {
    let mut loaded = config::load(surroundings, options);
    let agents = config::load_agents(surroundings, loaded.config.agents());
    loaded.diagnostics.extend(agents.diagnostics);
    (loaded, agents.agents)
}
