//! The process around the program: the only place that reads variables, folders and files of it.

#[cfg(unix)]
mod ownership;
mod files;
mod file_timeout;
mod private_file;
mod trust;
mod watched_files;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, io};

use trunkline::config::{
    Consent, ConsentHoldReason, DiscoveredFile, Environment, FileRefusal, MAX_SOURCE_BYTES,
    Resolver, Secret, UsedFile,
};
use trunkline::connection::{ChildOptions, HttpOptions, Proxies};

pub(crate) use file_timeout::{answered, wait};
pub(crate) use private_file::PrivateFile;
pub(crate) use trust::{TrustStore, TrustedFile, TrustedUse, outside_files};
pub(crate) use watched_files::WatchedFiles;

const ROOT_CERTIFICATES_HINT: &str = "if its certificate comes from an authority of your own, name \
                                      the file with that one in NODE_EXTRA_CA_CERTS";

/// What the program can see of the process it runs in.
#[derive(Clone)]
pub(crate) struct ProcessEnv {
    working_directory: PathBuf,
}

impl ProcessEnv {
    pub(crate) fn of_process() -> Self {
        // Without a working directory, one that was removed say, relative paths fail one by one.
        Self { working_directory: env::current_dir().unwrap_or_default() }
    }

    pub(crate) fn arguments(&self) -> env::ArgsOs {
        env::args_os()
    }

    pub(crate) fn working_directory(&self) -> &Path {
        &self.working_directory
    }

    /// Where this program is, to run it again.
    pub(crate) fn program(&self) -> io::Result<PathBuf> {
        env::current_exe()
    }

    /// What servers may see of our variables. All child processes of this program are servers, so
    /// that it may adopt what they leave behind.
    pub(crate) fn child_options(&self) -> ChildOptions {
        ChildOptions::from_environment(env::vars_os()).with_subreaper().with_cgroups()
    }

    /// How addresses are reached: through the proxies and with the certificates that the usual
    /// variables name.
    pub(crate) fn http_options(&self) -> HttpOptions {
        let first = |names: &[&str]| names.iter().find_map(|name| env::var(name).ok());
        let proxy = |names: &[&str]| first(names).filter(|it| !it.is_empty()).map(Secret::new);
        let certificates = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"].into_iter();
        let certificates = certificates.filter_map(env::var_os).map(PathBuf::from);
        HttpOptions {
            proxies: Proxies {
                http: proxy(&["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]),
                https: proxy(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
                no_proxy: first(&["no_proxy", "NO_PROXY"]).map(Into::into),
                for_loopback: false,
            },
            extra_root_certificates: certificates
                .filter_map(|path| wait(move || files::read(&path)).and_then(|read| read).ok())
                .collect(),
            root_certificates_hint: Some(ROOT_CERTIFICATES_HINT.into()),
            ..HttpOptions::default()
        }
    }

    /// Whether a program is there, also without the extension that Windows adds to it.
    pub(crate) fn is_program(&self, path: &Path) -> bool {
        let mut extensions = ["exe", "cmd", "bat"].into_iter();
        files::is_executable(path)
            || (cfg!(windows)
                && extensions.any(|it| files::is_executable(&path.with_added_extension(it))))
    }

    /// The folders of a list such as PATH.
    pub(crate) fn folders(&self, list: &OsStr) -> Vec<PathBuf> {
        env::split_paths(list).map(|folder| self.working_directory.join(folder)).collect()
    }

    /// Whether a file is there.
    pub(crate) fn has_file(&self, path: &Path) -> bool {
        self.working_directory.join(path).is_file()
    }

    /// The day it is, as `2026-07-28`, in the time zone that everybody knows.
    pub(crate) fn today() -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        day(now.as_secs() / SECONDS_OF_DAY)
    }

    /// Where tokens are kept unless another file is named.
    pub(crate) fn tokens_file(&self) -> Option<PathBuf> {
        self.user_directory().map(|folder| folder.join("tokens.json"))
    }

    /// Whether a variable is set to something.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        env::var_os(name).is_some_and(|value| !value.is_empty())
    }

    /// Where what was learnt about servers is kept; nowhere if the user does not want it kept.
    pub(crate) fn memory_directory(&self) -> Option<PathBuf> {
        match env::var_os("TRUNKLINE_CACHE").filter(|value| !value.is_empty()) {
            Some(value) if value == "off" => None,
            Some(folder) => Some(self.working_directory.join(folder)),
            None => self.cache_directory().map(|folder| folder.join("servers")),
        }
    }

    /// The folder of what can be found out again, as each platform has it.
    fn cache_directory(&self) -> Option<PathBuf> {
        let configured = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let base = configured.filter(|path| path.is_absolute()).or_else(|| {
            if cfg!(windows) {
                env::var_os("LOCALAPPDATA").map(PathBuf::from)
            } else if cfg!(target_os = "macos") {
                env::home_dir().map(|home| home.join("Library/Caches"))
            } else {
                env::home_dir().map(|home| home.join(".cache"))
            }
        });
        base.map(|base| base.join("trunkline"))
    }

    /// Where the files are kept that the user has consented to.
    pub(crate) fn trust_file(&self) -> Option<PathBuf> {
        self.state_directory().map(|folder| folder.join("trust.json"))
    }

    /// The files that the user has consented to.
    pub(crate) fn trust_store(&self) -> io::Result<TrustStore> {
        let path = self.trust_file().ok_or_else(|| {
            let message = "there is no home directory to keep it in; set XDG_STATE_HOME";
            io::Error::new(io::ErrorKind::NotFound, message)
        })?;
        TrustStore::read(path)
    }

    /// Who else can change a file, if somebody can.
    pub(crate) fn unsafety(&self, path: &Path) -> Option<String> {
        files::unsafety(&self.working_directory.join(path))
    }

    /// Where a file is that a server has read for it, if it is outside of a folder.
    pub(crate) fn outside(&self, folder: &Path, file: &UsedFile) -> Option<OutsideFile> {
        let path = match file {
            UsedFile::At(path) => Some(path.clone()),
            UsedFile::InHome(path) => env::home_dir().map(|home| home.join(path)),
            UsedFile::Anywhere => None,
        };
        let Some(path) = path else { return Some(OutsideFile::Anywhere) };
        let outside = || OutsideFile::At(files::place(&path).unwrap_or(path.clone()));
        (!files::is_within(folder, &path)).then(outside)
    }

    /// The folder of what has to outlast a run and is no configuration, as each platform has it.
    fn state_directory(&self) -> Option<PathBuf> {
        let configured = env::var_os("XDG_STATE_HOME").map(PathBuf::from);
        let base = configured.filter(|path| path.is_absolute()).or_else(|| {
            if cfg!(windows) {
                env::var_os("LOCALAPPDATA").map(PathBuf::from)
            } else if cfg!(target_os = "macos") {
                env::home_dir().map(|home| home.join("Library/Application Support"))
            } else {
                env::home_dir().map(|home| home.join(".local/state"))
            }
        });
        base.map(|base| base.join("trunkline"))
    }

    /// The folder of the user's own configuration, as each platform has it.
    pub(crate) fn user_directory(&self) -> Option<PathBuf> {
        let configured = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let base = configured.filter(|path| path.is_absolute()).or_else(|| {
            if cfg!(windows) {
                env::var_os("APPDATA").map(PathBuf::from)
            } else if cfg!(target_os = "macos") {
                env::home_dir().map(|home| home.join("Library/Application Support"))
            } else {
                env::home_dir().map(|home| home.join(".config"))
            }
        });
        base.map(|base| base.join("trunkline"))
    }
}

/// A file outside of the folder of the configuration that refers to it.
pub(crate) enum OutsideFile {
    /// At this path, links followed.
    At(PathBuf),
    /// Where a variable or another file says.
    Anywhere,
}

const SECONDS_OF_DAY: u64 = 24 * 60 * 60;

/// The date of a day, counted from the first of January 1970.
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

/// The variable that answers `${input:id}`.
fn input_variable(id: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("TRUNKLINE_INPUT_{}", id.chars().map(upper).collect::<String>())
}

impl Environment for ProcessEnv {
    fn variable(&self, name: &str) -> Option<OsString> {
        env::var_os(name)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        files::read(path)
    }

    fn read_discovered(&self, path: &Path) -> io::Result<Vec<u8>> {
        files::read_safely(path)
    }

    fn consent(&self, file: &DiscoveredFile) -> Consent {
        match self.trust_store() {
            Ok(store) => store.consent(file),
            Err(error) => Consent::Withheld(ConsentHoldReason::Unknown(error.to_string().into())),
        }
    }

    fn is_regular_file(&self, path: &Path) -> bool {
        // What is missing or a directory is for `read` to say.
        std::fs::metadata(path).map_or(true, |metadata| metadata.is_file() || metadata.is_dir())
    }

    fn files_in(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(folder)?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let is_file = |path: &io::Result<PathBuf>| path.as_ref().map_or(true, |it| it.is_file());
        paths.filter(is_file).collect()
    }
}

impl Resolver for ProcessEnv {
    fn variable(&self, name: &str) -> Option<Secret> {
        env::var(name).ok().map(Secret::new)
    }

    fn file(&self, path: &Path) -> io::Result<Secret> {
        let bytes = files::read(path)?;
        if bytes.len() > MAX_SOURCE_BYTES {
            return Err(FileRefusal::TooLarge.into());
        }
        let text = String::from_utf8(bytes);
        text.map(Secret::new).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn file_within(&self, places: &[PathBuf], path: &Path) -> io::Result<Secret> {
        self.file(&files::inside(places, path)?)
    }

    fn input(&self, id: &str) -> Option<Secret> {
        env::var(input_variable(id)).ok().map(Secret::new)
    }

    fn user_home(&self) -> Option<PathBuf> {
        env::home_dir()
    }

    fn working_directory(&self) -> PathBuf {
        self.working_directory.clone()
    }

    fn input_hint(&self, id: &str) -> Option<String> {
        Some(format!("set the variable {}", input_variable(id)))
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
