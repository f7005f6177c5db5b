//! The process environment: the only module that reads its variables, directories and files.

pub(crate) mod browser;
pub(crate) mod file_timeout;
pub(crate) mod limits;
mod private_file;
mod trust;
mod watched_files;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, io, thread};

use trunkline::config::{
    Consent, ConsentHoldReason, DiscoveredFile, Environment, Resolver, Secret, SecretPlace,
    UsedFile,
};
use trunkline::connection::{ChildOptions, HttpOptions};
use trunkline::env::{SystemEnv, files};
use trunkline::error::Error;
use trunkline::secrets::{SecretStore, StoreError};
use trunkline_gateway::digest_of;
use trunkline_secrets::ChosenStore;

pub(crate) use file_timeout::{answered, wait};
pub(crate) use private_file::PrivateFile;
pub(crate) use trust::{TrustStore, TrustedFile, TrustedUse, outside_files};
pub(crate) use watched_files::WatchedFiles;

/// The environment of this process.
#[derive(Clone)]
pub(crate) struct ProcessEnv {
    system: SystemEnv,
    /// Looks up secrets in the store, which depends on settings.
    secrets: Arc<OnceLock<SecretLookup>>,
    stores: Arc<OpenStores>,
    /// The path of this program when it started: an update may replace the file.
    program: Option<PathBuf>,
}

/// The stores for secrets that are open in an environment.
#[derive(Default)]
pub(crate) struct OpenStores {
    /// The store of the settings.
    pub(crate) chosen: OnceLock<Result<ChosenStore, StoreError>>,
    /// The keychain, for `${keychain:NAME}`.
    pub(crate) keychain: OnceLock<Result<Arc<dyn SecretStore>, StoreError>>,
}

/// Looks up a secret by its name.
pub(crate) type SecretLookup =
    Box<dyn Fn(SecretPlace, &str) -> Result<Option<Secret>, Error> + Send + Sync>;

impl ProcessEnv {
    pub(crate) fn of_process() -> Self {
        Self {
            system: SystemEnv::new(),
            secrets: Arc::default(),
            stores: Arc::default(),
            program: env::current_exe().ok(),
        }
    }

    /// The environment of a client of the background service.
    #[cfg(unix)]
    pub(crate) fn of_client(
        directory: PathBuf,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        let system = SystemEnv::of_client(directory, variables);
        let (secrets, stores) = (Arc::default(), Arc::default());
        Self { system, secrets, stores, program: env::current_exe().ok() }
    }

    /// The same environment without the function that looks up secrets, for that function.
    pub(crate) fn without_secret_lookup(&self) -> Self {
        Self { secrets: Arc::default(), ..self.clone() }
    }

    pub(crate) fn stores(&self) -> &OpenStores {
        &self.stores
    }

    /// All variables of this environment.
    #[cfg(unix)]
    pub(crate) fn variables(&self) -> Vec<(OsString, OsString)> {
        self.system.vars_os()
    }

    /// Sets the function that looks up secrets, once.
    pub(crate) fn set_secret_lookup(&self, lookup: SecretLookup) {
        let _ = self.secrets.set(lookup);
    }

    pub(crate) fn arguments(&self) -> env::ArgsOs {
        env::args_os()
    }

    /// Whether there is such a directory.
    pub(crate) fn is_directory(&self, path: &Path) -> bool {
        let path = path.to_owned();
        wait(move || path.is_dir()).unwrap_or_default()
    }

    /// The path of a directory without `..` and links; as it is if there is no such directory.
    pub(crate) fn directory(&self, path: &Path) -> PathBuf {
        let named = path.to_owned();
        let found = wait(move || named.canonicalize().ok().filter(|it| it.is_dir()));
        found.ok().flatten().unwrap_or_else(|| path.to_owned())
    }

    pub(crate) fn working_directory(&self) -> &Path {
        self.system.working_directory()
    }

    /// The path of this program, to run it again.
    pub(crate) fn program(&self) -> io::Result<PathBuf> {
        self.program.clone().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Options for child processes, with the variables they may inherit. All child processes of
    /// this program are servers, so it may adopt their orphans.
    pub(crate) fn child_options(&self) -> ChildOptions {
        self.system.child_options().with_subreaper().with_cgroups()
    }

    /// The same, begun on a thread, because the programs above this one are inspected. The returned function waits
    /// for the result.
    pub(crate) fn child_options_soon(self: &Arc<Self>) -> impl FnOnce() -> ChildOptions {
        let (environment, own) = (Arc::clone(self), Arc::clone(self));
        let thread = thread::Builder::new().name("trunkline-ancestors".to_owned());
        let thread = thread.spawn(move || environment.child_options());
        let made = || thread.ok()?.join().ok();
        move || made().unwrap_or_else(|| own.child_options())
    }

    /// Options for HTTP, with proxies and certificates from the usual variables.
    pub(crate) fn http_options(&self) -> HttpOptions {
        self.system.http_options_with(|path| {
            let path = path.to_owned();
            wait(move || files::read(&path)).and_then(|read| read)
        })
    }

    /// Whether a program exists, with or without the extension that Windows adds.
    pub(crate) fn is_program(&self, path: &Path) -> bool {
        let mut extensions = ["exe", "cmd", "bat"].into_iter();
        files::is_executable(path)
            || (cfg!(windows)
                && extensions.any(|it| files::is_executable(&path.with_added_extension(it))))
    }

    /// The directories of a list such as PATH.
    pub(crate) fn folders(&self, list: &OsStr) -> Vec<PathBuf> {
        env::split_paths(list).map(|folder| self.working_directory().join(folder)).collect()
    }

    /// Whether a file exists.
    pub(crate) fn has_file(&self, path: &Path) -> bool {
        self.working_directory().join(path).is_file()
    }

    /// The date of today in UTC, as `2026-07-28`.
    pub(crate) fn today() -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        day(now.as_secs() / SECONDS_OF_DAY)
    }

    /// The default path of the token file.
    pub(crate) fn tokens_file(&self) -> Option<PathBuf> {
        self.user_directory().map(|folder| folder.join("tokens.json"))
    }

    /// The filter of the log, if the variable for it is set.
    pub(crate) fn log_filter(&self) -> Option<String> {
        Some(self.system.var_os("TRUNKLINE_LOG")?.to_string_lossy().into_owned())
    }

    /// Whether a variable is set and not empty.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.system.var_os(name).is_some_and(|value| !value.is_empty())
    }

    /// The directory of the server cache; `None` if it is disabled.
    pub(crate) fn memory_directory(&self) -> Option<PathBuf> {
        match self.system.var_os("TRUNKLINE_CACHE").filter(|value| !value.is_empty()) {
            Some(value) if value == "off" => None,
            Some(folder) => Some(self.working_directory().join(folder)),
            None => self.cache_directory().map(|folder| folder.join("servers")),
        }
    }

    /// The cache directory of the platform.
    fn cache_directory(&self) -> Option<PathBuf> {
        let configured = self.system.var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let base = configured.filter(|path| path.is_absolute()).or_else(|| {
            if cfg!(windows) {
                self.system.var_os("LOCALAPPDATA").map(PathBuf::from)
            } else if cfg!(target_os = "macos") {
                self.system.home_dir().map(|home| home.join("Library/Caches"))
            } else {
                self.system.home_dir().map(|home| home.join(".cache"))
            }
        });
        base.map(|base| base.join("trunkline"))
    }

    /// The home directory of the user.
    pub(crate) fn home_directory(&self) -> Option<PathBuf> {
        self.system.home_dir()
    }

    /// The path of the trust store.
    pub(crate) fn trust_file(&self) -> Option<PathBuf> {
        self.state_directory().map(|folder| folder.join("trust.json"))
    }

    /// The trust store.
    pub(crate) fn trust_store(&self) -> io::Result<TrustStore> {
        let path = self.trust_file().ok_or_else(|| {
            let message = "there is no home directory to keep it in; set XDG_STATE_HOME";
            io::Error::new(io::ErrorKind::NotFound, message)
        })?;
        TrustStore::read(path)
    }

    /// The reason why other users can change a file, if they can.
    pub(crate) fn unsafety(&self, path: &Path) -> Option<String> {
        files::unsafety(&self.working_directory().join(path))
    }

    /// The location of a file that a server uses, if it is outside of a directory.
    pub(crate) fn outside(&self, folder: &Path, file: &UsedFile) -> Option<OutsideFile> {
        let path = match file {
            UsedFile::At(path) => Some(path.clone()),
            UsedFile::InHome(path) => self.system.home_dir().map(|home| home.join(path)),
            UsedFile::Anywhere => None,
        };
        let Some(path) = path else { return Some(OutsideFile::Anywhere) };
        if files::is_within(folder, &path) {
            return None;
        }
        let place = files::place(&path).unwrap_or(path);
        Some(if place.is_dir() { OutsideFile::Folder } else { OutsideFile::At(place) })
    }

    /// The state directory of the platform.
    pub(crate) fn state_directory(&self) -> Option<PathBuf> {
        let configured = self.system.var_os("XDG_STATE_HOME").map(PathBuf::from);
        let base = configured.filter(|path| path.is_absolute()).or_else(|| {
            if cfg!(windows) {
                self.system.var_os("LOCALAPPDATA").map(PathBuf::from)
            } else if cfg!(target_os = "macos") {
                self.system.home_dir().map(|home| home.join("Library/Application Support"))
            } else {
                self.system.home_dir().map(|home| home.join(".local/state"))
            }
        });
        base.map(|base| base.join("trunkline"))
    }

    /// The directory of the user's configuration on this platform.
    pub(crate) fn user_directory(&self) -> Option<PathBuf> {
        let configured = self.system.var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let base = configured.filter(|path| path.is_absolute()).or_else(|| {
            if cfg!(windows) {
                self.system.var_os("APPDATA").map(PathBuf::from)
            } else if cfg!(target_os = "macos") {
                self.system.home_dir().map(|home| home.join("Library/Application Support"))
            } else {
                self.system.home_dir().map(|home| home.join(".config"))
            }
        });
        base.map(|base| base.join("trunkline"))
    }
}

/// A file outside of the directory of the configuration that refers to it.
pub(crate) enum OutsideFile {
    /// At this path, with links resolved.
    At(PathBuf),
    /// A directory, which cannot be read. Consent to it would include files that were not shown.
    Folder,
    /// Anywhere: the path contains a variable or the content of another file.
    Anywhere,
}

const SECONDS_OF_DAY: u64 = 24 * 60 * 60;

/// A time in the format of RFC 3339, in UTC, to the second.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, rest) = (seconds / SECONDS_OF_DAY, seconds % SECONDS_OF_DAY);
    format!("{}T{:02}:{:02}:{:02}Z", day(days), rest / 3600, rest / 60 % 60, rest % 60)
}

/// The date of a day, counted from 1970-01-01.
fn day(mut days: u64) -> String {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

impl Environment for ProcessEnv {
    fn variable(&self, name: &str) -> Option<OsString> {
        Environment::variable(&self.system, name)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.system.read(path)
    }

    fn read_discovered(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.system.read_discovered(path)
    }

    fn consent(&self, file: &DiscoveredFile) -> Consent {
        match self.trust_store() {
            Ok(store) => store.consent(file),
            Err(error) => Consent::Withheld(ConsentHoldReason::Unknown(error.to_string().into())),
        }
    }

    fn is_regular_file(&self, path: &Path) -> bool {
        self.system.is_regular_file(path)
    }

    fn files_in(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.system.files_in(folder)
    }
}

impl Resolver for ProcessEnv {
    fn variable(&self, name: &str) -> Option<Secret> {
        Resolver::variable(&self.system, name)
    }

    fn file(&self, path: &Path) -> io::Result<Secret> {
        self.system.file(path)
    }

    fn file_within(&self, folder: &Path, listed: &[PathBuf], path: &Path) -> io::Result<Secret> {
        self.system.file_within(folder, listed, path)
    }

    fn input(&self, id: &str) -> Option<Secret> {
        self.system.input(id)
    }

    fn secret(&self, place: SecretPlace, name: &str) -> Result<Option<Secret>, Error> {
        match self.secrets.get() {
            Some(lookup) => lookup(place, name),
            None => self.system.secret(place, name),
        }
    }

    fn secrets_identity(&self) -> Option<String> {
        let folders = [self.state_directory(), self.user_directory()];
        let keys =
            ["TRUNKLINE_SECRETS_KEY", "TRUNKLINE_SECRETS_KEY_FILE", "TRUNKLINE_SECRETS_PASSPHRASE"];
        let keys = keys.map(|name| self.system.var_os(name));
        Some(digest_of(&format!("{folders:?}{keys:?}")))
    }

    fn secret_hint(&self, place: SecretPlace, name: &str) -> Option<String> {
        let store = match place {
            SecretPlace::Store => "",
            SecretPlace::Keychain => " --store keychain",
        };
        Some(format!("run `trunkline secret set {name}{store}`"))
    }

    fn user_home(&self) -> Option<PathBuf> {
        self.system.user_home()
    }

    fn working_directory(&self) -> PathBuf {
        self.system.working_directory().to_owned()
    }

    fn input_hint(&self, id: &str) -> Option<String> {
        self.system.input_hint(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_the_dates_of_the_calendar() {
        for (days, date) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_662, "2026-07-28"),
            (20_818, "2026-12-31"),
            (20_819, "2027-01-01"),
        ] {
            assert_eq!(day(days), date);
        }
    }
}
