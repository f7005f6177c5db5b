//! The stored state of a project: where it is, and which project a configuration belongs to.

use std::path::PathBuf;

use trunkline::config::{FoundBy, LoadedConfig, Origin};
use trunkline_state::{ProjectState, StateFile};

use crate::environment::ProcessEnv;

/// The state of the project of a configuration; `None` if there is no directory to keep it in.
pub(crate) fn of_project(loaded: &LoadedConfig, environment: &ProcessEnv) -> Option<ProjectState> {
    let project = project_directory(loaded, environment);
    Some(file(environment)?.project(project.to_string_lossy()))
}

/// The state of all projects of the user.
pub(crate) fn file(environment: &ProcessEnv) -> Option<StateFile> {
    environment.state_directory().map(|directory| StateFile::at(directory.join("state.redb")))
}

/// The project of a configuration: the directory of the file that was named or found, trusted or not. With the
/// user's own file alone, each working directory is a project.
pub(crate) fn project_directory(loaded: &LoadedConfig, environment: &ProcessEnv) -> PathBuf {
    let of_file = |origin: &Origin| match origin {
        Origin::File(file) if file.found != FoundBy::Fallback => Some(file.workspace.clone()),
        _ => None,
    };
    let discovered = loaded.discovered.as_ref().map(|(file, _)| file.workspace.clone());
    let directory = discovered.or_else(|| loaded.origins.iter().find_map(of_file));
    let working_directory = environment.working_directory();
    let directory = working_directory.join(directory.unwrap_or_default());
    // One project, however its path is spelled.
    std::fs::canonicalize(&directory).unwrap_or(directory)
}
