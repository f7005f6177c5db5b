//! The AI hosts that are known, and their configuration files.
//!
//! ```
//! use trunkline_hosts::hosts;
//! use trunkline_hosts::system::{System, UserEnvironment};
//!
//! let user = UserEnvironment::new(System::Linux, "/home/me", |_| None);
//! let cursor = hosts::find("cursor").unwrap();
//! let file = cursor.user_files(&user).into_iter().next().unwrap();
//! assert_eq!(file.path.to_str(), Some("/home/me/.cursor/mcp.json"));
//! ```

mod place;
mod table;
mod disabled_list;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::edit::{self, EditError, FileFormat, KeyPath};
use crate::system::UserEnvironment;

use place::{FilePlace, Servers};

pub use disabled_list::DisabledList;
pub use table::HOSTS;

/// An AI host: an application that starts MCP servers.
#[derive(Debug)]
pub struct AiHost {
    id: &'static str,
    name: &'static str,
    user: &'static [FilePlace],
    project: &'static [FilePlace],
    has_project_sections: bool,
}

/// The level at which servers are configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConfigLevel {
    /// For all projects of a user.
    User,
    /// For one project, in a file of the user.
    UserProject,
    /// For one project, in a file of the project: others may have written it.
    Project,
}

/// A configuration file of a host, or one section of it.
#[derive(Clone, Debug)]
pub struct HostFile {
    /// The host that reads the file.
    pub host: &'static AiHost,
    /// The level of the servers.
    pub level: ConfigLevel,
    /// The path. Symbolic links are not resolved.
    pub path: PathBuf,
    /// The format.
    pub format: FileFormat,
    /// The keys that lead to the servers.
    pub key_path: KeyPath,
    /// Keys that newer versions of the host use instead, in the same file.
    pub newer_key_path: Option<KeyPath>,
}

/// Equal hosts have equal ids.
impl PartialEq for AiHost {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for AiHost {}

/// The name for people.
impl fmt::Display for AiHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl AiHost {
    /// The name for the command line, such as `claude-code`.
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// The name for people, such as `Claude Code`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the files of a user have a section per project.
    pub fn has_project_sections(&self) -> bool {
        self.has_project_sections
    }

    /// The files of a user, whether they exist or not. The first is the one for a host without any. Files whose
    /// names are free, such as those of profiles, are only among them if they exist.
    pub fn user_files(&'static self, user: &UserEnvironment<'_>) -> Vec<HostFile> {
        let places = self.user.iter().filter(|place| place.is_on(user.system()));
        let roots = places.filter_map(|place| Some((place, place.directory(user)?)));
        roots.flat_map(|(place, root)| self.files(place, &root, ConfigLevel::User)).collect()
    }

    /// The files of a project, whether they exist or not. The first is the one for a project without any.
    pub fn project_files(&'static self, project: &Path) -> Vec<HostFile> {
        let files = |place| self.files(place, project, ConfigLevel::Project);
        self.project.iter().flat_map(files).collect()
    }

    fn files(&'static self, place: &FilePlace, root: &Path, level: ConfigLevel) -> Vec<HostFile> {
        let file = |path| self.file(level, path, place.servers);
        place.paths(root).into_iter().map(file).collect()
    }

    fn file(&'static self, level: ConfigLevel, path: PathBuf, servers: &Servers) -> HostFile {
        HostFile {
            host: self,
            level,
            path,
            format: servers.format,
            key_path: servers.key_path(),
            newer_key_path: servers.newer_keys.map(|keys| KeyPath::map(keys.iter().copied())),
        }
    }

    /// The section of a project in a file of the user.
    fn project_section(&'static self, file: &HostFile, project: &Path) -> Option<HostFile> {
        let path = project.to_str().filter(|_| self.has_project_sections)?;
        let keys = ["projects", path].into_iter().chain(file.key_path.keys());
        let key_path = KeyPath::map(keys);
        Some(HostFile { level: ConfigLevel::UserProject, key_path, ..file.clone() })
    }
}

impl HostFile {
    /// The keys that lead to the servers in a text: the newer ones if it has them.
    pub fn key_path_in(&self, text: &str) -> Result<KeyPath, EditError> {
        let Some(newer) = &self.newer_key_path else { return Ok(self.key_path.clone()) };
        let keys: Vec<&str> = newer.keys().collect();
        let value = edit::value_at(text, self.format, &keys)?;
        // A server of the older form can have the name that is a key of the newer one. It has a type.
        let is_newer = value.is_some_and(|value| {
            value.as_object().is_some_and(|object| !object.contains_key("type"))
        });
        Ok(if is_newer { newer.clone() } else { self.key_path.clone() })
    }
}

/// The host with an id.
pub fn find(id: &str) -> Option<&'static AiHost> {
    HOSTS.iter().find(|host| host.id == id)
}

/// The existing files of all hosts: those of a user, and those in a project directory, but not above it.
///
/// `project` has to be absolute for hosts with a section per project, which find it by its path.
pub fn existing_files(user: &UserEnvironment<'_>, project: Option<&Path>) -> Vec<HostFile> {
    let mut found = Vec::new();
    for host in HOSTS {
        for file in host.user_files(user).into_iter().filter(|file| file.path.is_file()) {
            let section = project.and_then(|project| host.project_section(&file, project));
            found.push(file);
            found.extend(section);
        }
        let files = project.map(|project| host.project_files(project)).unwrap_or_default();
        found.extend(files.into_iter().filter(|file| file.path.is_file()));
    }
    found
}
