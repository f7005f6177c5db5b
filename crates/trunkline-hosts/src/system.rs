//! The operating system and the user directories that decide where configuration files are.

use std::fmt;
use std::path::{Path, PathBuf};

/// An operating system with its own places for configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum System {
    /// Linux and other systems that follow the XDG directories.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl System {
    /// The system that this program is compiled for.
    pub const CURRENT: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Linux
    };
}

/// The function that looks up a variable.
type VariableLookup<'a> = Box<dyn Fn(&str) -> Option<String> + 'a>;

/// The home directory and the variables of a user.
pub struct UserEnvironment<'a> {
    system: System,
    home: PathBuf,
    variables: VariableLookup<'a>,
}

impl<'a> UserEnvironment<'a> {
    /// The environment of a user, with a function that looks up variables.
    pub fn new(
        system: System,
        home: impl Into<PathBuf>,
        variables: impl Fn(&str) -> Option<String> + 'a,
    ) -> Self {
        Self { system, home: home.into(), variables: Box::new(variables) }
    }

    /// The operating system.
    pub fn system(&self) -> System {
        self.system
    }

    /// The home directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The path in a variable. An empty one counts as not set.
    pub(crate) fn directory(&self, variable: &str) -> Option<PathBuf> {
        (self.variables)(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// The path in `XDG_CONFIG_HOME`, which has to be absolute, or `~/.config`.
    pub(crate) fn xdg_config(&self) -> PathBuf {
        let directory = self.directory("XDG_CONFIG_HOME").filter(|path| path.has_root());
        directory.unwrap_or_else(|| self.home.join(".config"))
    }

    /// The directory for the settings of applications with windows.
    pub(crate) fn application_data(&self) -> PathBuf {
        match self.system {
            System::Linux => self.xdg_config(),
            System::MacOs => self.home.join("Library").join("Application Support"),
            System::Windows => {
                let directory = self.directory("APPDATA");
                directory.unwrap_or_else(|| self.home.join("AppData").join("Roaming"))
            }
        }
    }
}

/// Variables may be secret, so they are not shown.
impl fmt::Debug for UserEnvironment<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("UserEnvironment");
        debug.field("system", &self.system).field("home", &self.home).finish_non_exhaustive()
    }
}
