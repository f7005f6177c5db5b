//! The environment of the process: variables, files, proxies and CA certificates (feature `env`).
//!
//! [`HostBuilder::inherit_env`](crate::HostBuilder::inherit_env) uses it. The rest of this crate
//! reads variables and files only through [`Environment`] and [`Resolver`], so that an embedder can
//! pass its own.

#[cfg(unix)]
mod ownership;
pub mod files;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fmt, io};

use crate::config::{Environment, FileRefusal, MAX_SOURCE_BYTES, Resolver, Secret};
use crate::connection::{ChildOptions, HttpOptions, Proxies};

const ROOT_CERTIFICATES_HINT: &str = "if its certificate comes from an authority of your own, name \
                                      the file with that one in NODE_EXTRA_CA_CERTS";

/// Variables and files of this process, as seen from its working directory, or those of a client.
///
/// Discovered files are read only if no other user can change them, and need consent, which this
/// type never gives: see [`Environment::consent`].
#[derive(Clone, Debug)]
pub struct SystemEnv {
    working_directory: PathBuf,
    variables: Variables,
}

/// The source of variables.
#[derive(Clone)]
enum Variables {
    Process,
    Client(Arc<BTreeMap<OsString, OsString>>),
}

impl fmt::Debug for Variables {
    /// Prints no values: some are credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Process => "Process",
            Self::Client(_) => "Client",
        })
    }
}

impl Default for SystemEnv {
    fn default() -> Self {
        Self::new()
    }
}

impl SystemEnv {
    /// The environment of this process, with the current working directory.
    pub fn new() -> Self {
        // If the working directory does not exist any more, relative paths fail one by one.
        let working_directory = env::current_dir().unwrap_or_default();
        Self { working_directory, variables: Variables::Process }
    }

    /// The environment of a client that this process works for.
    pub fn of_client(
        working_directory: impl Into<PathBuf>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        let variables = Variables::Client(Arc::new(variables.into_iter().collect()));
        Self { working_directory: working_directory.into(), variables }
    }

    /// The value of a variable.
    pub fn var_os(&self, name: &str) -> Option<OsString> {
        match &self.variables {
            Variables::Process => env::var_os(name),
            Variables::Client(variables) => variables.get(OsStr::new(name)).cloned(),
        }
    }

    /// All variables.
    pub fn vars_os(&self) -> Vec<(OsString, OsString)> {
        match &self.variables {
            Variables::Process => env::vars_os().collect(),
            Variables::Client(variables) => {
                variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
            }
        }
    }

    fn var(&self, name: &str) -> Option<String> {
        self.var_os(name)?.into_string().ok()
    }

    /// The home directory of the user.
    pub fn home_dir(&self) -> Option<PathBuf> {
        match &self.variables {
            Variables::Process => env::home_dir(),
            Variables::Client(_) => {
                let home = self.var_os("HOME").filter(|home| !home.is_empty());
                home.map(PathBuf::from).or_else(env::home_dir)
            }
        }
    }

    /// The base directory of relative paths.
    pub fn working_directory(&self) -> &Path {
        &self.working_directory
    }

    /// Options for child processes, which inherit variables by `inheritEnv` of their entry.
    pub fn child_options(&self) -> ChildOptions {
        ChildOptions::from_environment(self.vars_os())
    }

    /// Options for HTTP: proxies from `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, in
    /// either case, and CA certificates from `NODE_EXTRA_CA_CERTS` and `SSL_CERT_FILE`.
    pub fn http_options(&self) -> HttpOptions {
        self.http_options_with(files::read)
    }

    /// [`http_options`](Self::http_options) with another function to read certificate files, such
    /// as one with a timeout. A file that cannot be read is left out.
    pub fn http_options_with(&self, read: impl Fn(&Path) -> io::Result<Vec<u8>>) -> HttpOptions {
        let first = |names: &[&str]| names.iter().find_map(|name| self.var(name));
        let proxy = |names: &[&str]| first(names).filter(|it| !it.is_empty()).map(Secret::new);
        let certificates = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"].into_iter();
        let mut certificates: Vec<_> =
            certificates.filter_map(|name| self.var_os(name)).map(PathBuf::from).collect();
        // Often both name the bundle of the system.
        certificates.dedup();
        HttpOptions {
            proxies: Proxies {
                http: proxy(&["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]),
                https: proxy(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
                no_proxy: first(&["no_proxy", "NO_PROXY"]).map(Into::into),
                for_loopback: false,
            },
            extra_root_certificates: certificates
                .iter()
                .filter_map(|path| read(path).ok())
                .collect(),
            root_certificates_hint: Some(ROOT_CERTIFICATES_HINT.into()),
            ..HttpOptions::default()
        }
    }
}

impl Environment for SystemEnv {
    fn variable(&self, name: &str) -> Option<OsString> {
        self.var_os(name)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        files::read(path)
    }

    fn read_discovered(&self, path: &Path) -> io::Result<Vec<u8>> {
        files::read_safely(path)
    }

    fn is_regular_file(&self, path: &Path) -> bool {
        // `read` reports missing files and directories.
        std::fs::metadata(path).map_or(true, |metadata| metadata.is_file() || metadata.is_dir())
    }

    fn files_in(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(folder)?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let is_file = |path: &io::Result<PathBuf>| path.as_ref().map_or(true, |it| it.is_file());
        paths.filter(is_file).collect()
    }
}

/// The variable that resolves `${input:id}`.
fn input_variable(id: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("TRUNKLINE_INPUT_{}", id.chars().map(upper).collect::<String>())
}

impl Resolver for SystemEnv {
    fn variable(&self, name: &str) -> Option<Secret> {
        self.var(name).map(Secret::new)
    }

    fn file(&self, path: &Path) -> io::Result<Secret> {
        let bytes = files::read(path)?;
        if bytes.len() > MAX_SOURCE_BYTES {
            return Err(FileRefusal::TooLarge.into());
        }
        let text = String::from_utf8(bytes);
        text.map(Secret::new).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn file_within(&self, folder: &Path, listed: &[PathBuf], path: &Path) -> io::Result<Secret> {
        self.file(&files::inside(folder, listed, path)?)
    }

    fn input(&self, id: &str) -> Option<Secret> {
        self.var(&input_variable(id)).map(Secret::new)
    }

    fn user_home(&self) -> Option<PathBuf> {
        self.home_dir()
    }

    fn working_directory(&self) -> PathBuf {
        self.working_directory.clone()
    }

    fn input_hint(&self, id: &str) -> Option<String> {
        Some(format!("set the variable {}", input_variable(id)))
    }
}
