//! The OAuth logins of the program, in the store for secrets.
//!
//! Opening the store may ask the user for the password of a keychain, and most servers need no login. A file
//! without content marks each login, so that the store is opened only for servers that have one.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trunkline::config::{LoadOptions, Secret};
use trunkline::oauth::{OAuth, OAuthOptions};
use trunkline::secrets::{SecretKey, SecretStore, StoreError, StoreGuard};
use trunkline_gateway::digest_of;

use super::secrets::open_lazily;
use crate::environment::ProcessEnv;
use crate::output::terminal::write_message;
use crate::settings::Settings;

/// The place of the user's browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Browser {
    /// On this machine, for clients that are given links.
    Local,
    /// On other machines too, for clients that are not given links.
    Remote,
    /// Anywhere, for commands without clients.
    Unknown,
}

/// The logins of the settings. Nothing is opened yet.
pub(crate) fn oauth(settings: &Settings, environment: &Arc<ProcessEnv>, browser: Browser) -> OAuth {
    let markers = environment.state_directory().map(|state| state.join("logins"));
    let load = settings.load_options(environment, None);
    let store = LoginStore { load, environment: Arc::clone(environment), markers };
    let mut options = OAuthOptions::default();
    options.login_command = match browser {
        // Clients of other machines are not told where the configuration is.
        Browser::Remote => Some("trunkline login".into()),
        Browser::Local | Browser::Unknown => Some(settings.login_command().into()),
    };
    options.has_local_browser = browser == Browser::Local;
    OAuth::new(Arc::new(store), options)
}

/// The store for secrets, opened when a login is read that exists, or when one is changed.
struct LoginStore {
    load: LoadOptions,
    environment: Arc<ProcessEnv>,
    markers: Option<PathBuf>,
}

impl LoginStore {
    fn open(&self) -> Result<&Arc<dyn SecretStore>, StoreError> {
        open_lazily(&self.load, &self.environment)
    }

    fn marker(&self, key: &SecretKey) -> Option<PathBuf> {
        // A digest: the names of servers are not for other users.
        self.markers.as_ref().map(|folder| folder.join(digest_of(&key.id())))
    }

    /// Whether there is certainly no login.
    fn is_absent(&self, key: &SecretKey) -> bool {
        let marker = self.marker(key).map(fs::symlink_metadata);
        marker.is_some_and(|it| it.is_err_and(|error| error.kind() == io::ErrorKind::NotFound))
    }
}

impl SecretStore for LoginStore {
    fn description(&self) -> String {
        match self.open() {
            Ok(store) => store.description(),
            Err(_) => "the store for secrets".to_owned(),
        }
    }

    fn get(&self, key: &SecretKey) -> Result<Option<Secret>, StoreError> {
        match self.is_absent(key) {
            true => Ok(None),
            false => self.open()?.get(key),
        }
    }

    fn set(&self, key: &SecretKey, value: &Secret) -> Result<(), StoreError> {
        // First: a login without a marker would not be found, a marker without a login does no harm.
        if let (Some(folder), Some(marker)) = (&self.markers, self.marker(key)) {
            let made = create_marker(folder, &marker);
            made.map_err(|error| {
                StoreError::new(format!("{} cannot be written: {error}", marker.display()))
                    .with_hint("check the permissions of its directory, and the free space")
            })?;
        }
        let stored = self.open().and_then(|store| store.set(key, value));
        if let Err(error) = &stored {
            // A renewed login is used from memory, and lost with the process.
            write_message(&format!("warning: a login could not be stored: {error}\n"));
        }
        stored
    }

    fn remove(&self, key: &SecretKey) -> Result<bool, StoreError> {
        if self.is_absent(key) {
            return Ok(false);
        }
        let was_there = self.open()?.remove(key)?;
        if let Some(marker) = self.marker(key) {
            let _ = fs::remove_file(marker);
        }
        Ok(was_there)
    }

    fn keys(&self) -> Result<Vec<SecretKey>, StoreError> {
        self.open()?.keys()
    }

    fn lock(&self, key: &SecretKey) -> Result<StoreGuard, StoreError> {
        self.open()?.lock(key)
    }
}

/// Creates a marker that only its owner can see.
fn create_marker(folder: &Path, marker: &Path) -> io::Result<()> {
    let (mut directory, mut file) = (DirBuilder::new(), OpenOptions::new());
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        directory.mode(0o700);
        file.mode(0o600);
    }
    directory.recursive(true).create(folder)?;
    file.write(true).create(true).truncate(true).open(marker).map(drop)
}
