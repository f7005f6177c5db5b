//! Where the programs of entries without `cwd` run.

use std::path::PathBuf;
use std::time::Duration;

use trunkline::config::{Config, FoundBy, Origin, Server, Share};

use crate::environment::ProcessEnv;

/// How long a program without calls runs, if its entry does not say.
const IDLE_SERVER: Duration = Duration::from_secs(30 * 60);

/// Where the programs of entries without `cwd` run. It depends on the configuration, not on the client that
/// happens to be first, so that clients in other directories share them.
#[derive(Clone)]
pub(crate) struct ProgramDirectories {
    home: PathBuf,
    project: PathBuf,
}

impl ProgramDirectories {
    pub(super) fn of(environment: &ProcessEnv, project: PathBuf) -> Self {
        let home = environment.home_directory().unwrap_or_else(|| project.clone());
        Self { home, project }
    }

    /// Sets the directories in a configuration.
    pub(crate) fn apply(&self, config: Config) -> Config {
        let config = config.with_directories(|server| self.directory(server).into());
        config.for_many_clients(IDLE_SERVER)
    }

    fn directory(&self, server: &Server) -> PathBuf {
        match &server.provenance.origin {
            _ if server.behaviour.share == Share::PerProject => self.project.clone(),
            Origin::File(file) if file.found == FoundBy::Fallback => self.home.clone(),
            Origin::File(file) => file.workspace.clone(),
            _ => self.project.clone(),
        }
    }
}
