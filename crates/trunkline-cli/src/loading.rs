//! The configuration and its agents, with everything that is wrong with either.

use std::collections::BTreeMap;
use std::path::PathBuf;

use trunkline::config::{
    self, Agent, Consent, DiscoveredFiles, Hold, LoadOptions, Loaded, Surroundings,
};
use trunkline::name::AgentName;

use crate::environment::Environment;
use crate::settings::Settings;

/// All agents of a configuration, those in files included.
pub(crate) type Agents = BTreeMap<AgentName, Agent>;

/// Loads the configuration used here, or a file instead of it, and the agents that it names.
pub(crate) fn load(
    settings: &Settings,
    environment: &Environment,
    file: Option<PathBuf>,
) -> (Loaded, Agents) {
    load_through(environment, &settings.load_options(environment, file))
}

/// The same to look at it only: of a discovered file everything counts, trusted or not. Returns also
/// why its servers could not be started, if they could not.
pub(crate) fn inspect(
    settings: &Settings,
    environment: &Environment,
    file: Option<PathBuf>,
) -> (Loaded, Option<Hold>) {
    let mut options = settings.load_options(environment, file);
    options.discovered = DiscoveredFiles::Run;
    let (loaded, _) = load_through(environment, &options);
    let hold = loaded.discovered.as_ref().and_then(|(file, _)| match environment.consent(file) {
        Consent::Given(_) => None,
        Consent::Withheld(reason) => Some(Hold { file: file.path.clone(), reason }),
    });
    (loaded, hold)
}

/// Loads a configuration and its agents with something between that is asked for files and folders.
pub(crate) fn load_through(
    surroundings: &dyn Surroundings,
    options: &LoadOptions,
) -> (Loaded, Agents) {
    let mut loaded = config::load(surroundings, options);
    let agents = config::load_agents(surroundings, loaded.config.agents());
    loaded.diagnostics.extend(agents.diagnostics);
    (loaded, agents.agents)
}
