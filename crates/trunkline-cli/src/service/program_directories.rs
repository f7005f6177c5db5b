//! Where the programs of entries without `cwd` run.

use std::path::PathBuf;
use std::time::Duration;

use trunkline::config::{Config, FoundBy, Origin, Server, Share};

use crate::environment::ProcessEnv;

/// How long a program without calls runs, if its entry does not say.
const IDLE_SERVER: Duration = Duration::from_secs(30 * 60);

/// Where the programs of entries without `cwd` run.
#[derive(Clone)]
pub(crate) enum ProgramDirectories {
    /// For hosts: it depends on the configuration, not on the client that happens to be first, so that clients in
    /// other directories share them.
    OfConfig { home: PathBuf, project: PathBuf },
    /// For commands, as if they started the programs: in their own directory.
    OfCommands(PathBuf),
}

impl ProgramDirectories {
    pub(super) fn of_config(environment: &ProcessEnv, project: PathBuf) -> Self {
        let home = environment.home_directory().unwrap_or_else(|| project.clone());
        Self::OfConfig { home, project }
    }

    /// Sets the directories in a configuration.
    pub(crate) fn apply(&self, config: Config) -> Config {
        let config = config.with_directories(|server| self.directory(server).into());
        config.for_many_clients(IDLE_SERVER)
    }

    fn directory(&self, server: &Server) -> PathBuf {
        let (home, project) = match self {
            Self::OfConfig { home, project } => (home, project),
            Self::OfCommands(directory) => return directory.clone(),
        };
        match &server.provenance.origin {
            _ if server.behaviour.share == Share::PerProject => project.clone(),
            Origin::File(file) if file.found == FoundBy::Fallback => home.clone(),
            Origin::File(file) => file.workspace.clone(),
            _ => project.clone(),
        }
    }
}
