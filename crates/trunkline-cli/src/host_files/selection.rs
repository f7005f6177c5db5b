//! Which of the found servers an import is about: those of the user or of a directory, if our file can have them.

use serde_json::json;
use trunkline::config::{self, escape_control};
use trunkline_hosts::hosts::ConfigLevel;

use super::found::{FoundServer, FoundServers};

/// The servers that were found, by what can be done with them.
pub(crate) struct SelectedServers {
    pub(crate) meant: Vec<FoundServer>,
    /// The number of servers of the other level.
    pub(crate) others: usize,
    pub(crate) failures: Vec<String>,
}

impl SelectedServers {
    /// Selects the servers of the user, or of the directory. Those of a directory are not for all others, and may have
    /// been written by anyone.
    pub(crate) fn of(found: FoundServers, is_project: bool) -> Self {
        let is_meant = |level| (level != ConfigLevel::User) == is_project;
        let (meant, others): (Vec<_>, Vec<_>) =
            found.servers.into_iter().partition(|server| is_meant(server.level));
        let (meant, unusable): (Vec<_>, Vec<_>) =
            meant.into_iter().partition(|it| problem(it).is_none());
        let unusable = unusable.iter().filter_map(problem);
        let failures = found.failures.into_iter().chain(unusable).collect();
        Self { meant, others: others.len(), failures }
    }
}

/// Why an entry could not be used in our file, if so.
fn problem(server: &FoundServer) -> Option<String> {
    let config = json!({ "mcpServers": { server.name.as_str(): server.entry } });
    let checked = config::parse("the entry", config.to_string());
    let error = checked.diagnostics.iter().find(|it| it.is_error(false))?;
    let (file, name) =
        (escape_control(&server.file.to_string_lossy()), escape_control(&server.name));
    Some(format!("{file}: `{name}` cannot be imported: {}", escape_control(&error.message)))
}
