//! Where the configuration of a host comes from, and how it is loaded.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;

use super::HostConfig;
use crate::config::{self, Agent, Environment, LoadOptions, LoadedConfig};
use crate::name::AgentName;

/// The source of the configuration.
pub(super) enum ConfigSource {
    Loaded(Box<LoadedConfig>),
    Load(Box<LoadOptions>),
}

/// An environment without files and variables, for configurations that come as text.
struct NoEnvironment;

impl Environment for NoEnvironment {
    fn variable(&self, _name: &str) -> Option<OsString> {
        None
    }

    fn read(&self, _path: &Path) -> io::Result<Vec<u8>> {
        let message = "the host was built without an environment to read files with; \
                       call `inherit_env` or `environment`";
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    }
}

/// Loads the configuration and, unless they are given, its agents, including those in files.
pub(super) fn load(
    source: ConfigSource,
    agents: Option<BTreeMap<AgentName, Agent>>,
    environment: Option<&(dyn Environment + Send + Sync)>,
) -> HostConfig {
    let environment: &dyn Environment = match environment {
        Some(environment) => environment,
        None => &NoEnvironment,
    };
    let mut loaded = match source {
        ConfigSource::Loaded(loaded) => *loaded,
        ConfigSource::Load(options) => config::load(environment, &options),
    };
    let agents = agents.unwrap_or_else(|| {
        let read = config::load_agents(environment, loaded.config.agents());
        loaded.diagnostics.extend(read.diagnostics);
        read.agents
    });
    let LoadedConfig { config, diagnostics, .. } = loaded;
    HostConfig { config, agents, diagnostics }
}
