//! The form of an entry in the table of hosts: a directory, a path below it, and where the servers are in the file.

use std::path::{Path, PathBuf};

use crate::edit::{FileFormat, KeyPath};
use crate::system::{System, UserEnvironment};

/// Most files that one place with a free name may have. Profiles and server blocks are written by hand.
const MAX_FREE_NAMES: usize = 1_000;

/// Files in one place.
#[derive(Debug)]
pub(crate) struct FilePlace {
    pub(crate) systems: &'static [System],
    pub(crate) base: Base,
    /// Path below the base, with `/`. One part may be `*` or `*.EXTENSION`, which stands for any name.
    pub(crate) path: &'static str,
    pub(crate) servers: &'static Servers,
}

/// The directory that a place starts from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Base {
    Home,
    /// `~/.config`, or `XDG_CONFIG_HOME`.
    XdgConfig,
    /// The directory of the system for settings of applications.
    ApplicationData,
    /// A directory in a variable, or else one below the home directory.
    Variable {
        name: &'static str,
        otherwise: &'static str,
    },
    /// A directory in a variable. Without the variable there is none.
    OnlyVariable(&'static str),
    /// The project directory.
    Project,
}

/// The servers in a file.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) format: FileFormat,
    pub(crate) keys: &'static [&'static str],
    pub(crate) newer_keys: Option<&'static [&'static str]>,
    pub(crate) is_list: bool,
}

impl Servers {
    pub(crate) const fn map(format: FileFormat, keys: &'static [&'static str]) -> Self {
        Self { format, keys, newer_keys: None, is_list: false }
    }

    pub(crate) fn key_path(&self) -> KeyPath {
        let keys = self.keys.iter().copied();
        if self.is_list { KeyPath::list(keys) } else { KeyPath::map(keys) }
    }
}

impl FilePlace {
    pub(crate) fn is_on(&self, system: System) -> bool {
        self.systems.contains(&system)
    }

    /// The directory that the path is below.
    pub(crate) fn directory(&self, user: &UserEnvironment<'_>) -> Option<PathBuf> {
        Some(match self.base {
            Base::Home => user.home().to_owned(),
            Base::XdgConfig => user.xdg_config(),
            Base::ApplicationData => user.application_data(),
            Base::Variable { name, otherwise } => {
                user.directory(name).unwrap_or_else(|| below(user.home(), otherwise))
            }
            Base::OnlyVariable(name) => user.directory(name)?,
            Base::Project => return None,
        })
    }

    /// The paths below a directory: one, or the existing ones for a path with a free name.
    pub(crate) fn paths(&self, root: &Path) -> Vec<PathBuf> {
        let Some((before, after)) = self.path.split_once('*') else {
            return vec![below(root, self.path)];
        };
        let folder = below(root, before);
        let (extension, rest) = after.split_once('/').unwrap_or((after, ""));
        let Ok(entries) = std::fs::read_dir(&folder) else { return Vec::new() };
        let names = entries.flatten().take(MAX_FREE_NAMES).map(|entry| entry.file_name());
        let names = names.filter_map(|name| name.into_string().ok());
        let mut names: Vec<_> = names.filter(|name| name.ends_with(extension)).collect();
        names.sort();
        let paths = names.into_iter().map(|name| below(&folder.join(name), rest));
        paths.filter(|path| path.is_file()).collect()
    }
}

/// A path below another, whatever the separator of the system is.
fn below(root: &Path, path: &str) -> PathBuf {
    let mut result = root.to_owned();
    result.extend(path.split('/').filter(|part| !part.is_empty()));
    result
}
