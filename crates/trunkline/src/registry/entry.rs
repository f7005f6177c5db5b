//! Entries of a server set, and the key by which servers are equal across configurations.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::config::{
    Fingerprint, InheritEnv, Restart, Server, ServerSettings, Share, StartPolicy, Timeouts,
    Transport, Trust,
};
use crate::connection::{Connection, ConnectionOptions};
use crate::name::ServerName;

/// The servers of a set, by name.
pub(super) type ServerEntries = Arc<BTreeMap<ServerName, ServerEntry>>;

/// An entry of a set.
#[derive(Clone)]
pub(super) struct ServerEntry {
    pub(super) key: ServerKey,
    pub(super) connection: Arc<Connection>,
}

/// Identity of a server: its name, its transport and the settings of its connection. Filters on its
/// items are not part of the identity.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct ServerKey {
    name: ServerName,
    fingerprint: Fingerprint,
    rules: SettingsKey,
    client: Option<ClientKey>,
}

/// The part of the key that depends on the client of a server, where clients with other environments share
/// one pool.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ClientKey {
    values: Fingerprint,
    /// The program, where the client finds it.
    program: Option<PathBuf>,
    /// PATH, if the name of the program depends on references.
    path: Option<String>,
    /// Inherited variables that not every server inherits.
    inherited: Vec<(OsString, OsString)>,
    project: Option<PathBuf>,
}

/// Variables of one terminal or one process, which make no other server.
const OF_ONE_TERMINAL: [&str; 9] =
    ["_", "COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "TERM_SESSION_ID", "TTY", "WINDOWID"];

/// Variables that decide how a remote server is reached.
const OF_CONNECTIONS: [&str; 10] = [
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

impl ClientKey {
    fn of(server: &Server, (options, project): (&ConnectionOptions, &Path)) -> Self {
        let resolver = options.resolver();
        let (mut program, mut path) = (None, None);
        let inherited = match &server.transport {
            Transport::Stdio(stdio) => {
                let folders = resolver.variable("PATH").map(|it| it.expose().to_owned());
                match stdio.command.as_literal() {
                    Some(name) => program = folders.and_then(|path| find_program(name, &path)),
                    None => path = folders,
                }
                own_variables(server, options)
            }
            Transport::Remote(_) => options.child().variables_named(&OF_CONNECTIONS),
        };
        let is_per_project = server.behaviour.share == Share::PerProject;
        Self {
            values: server.fingerprint_for(&*resolver),
            program,
            path,
            inherited,
            project: is_per_project.then(|| project.to_owned()),
        }
    }
}

/// The variables that a server inherits by its own `inheritEnv`.
fn own_variables(server: &Server, options: &ConnectionOptions) -> Vec<(OsString, OsString)> {
    let inherit = &server.behaviour.inherit_env;
    let is_everything = *inherit == InheritEnv::Everything;
    let is_volatile = |name: &OsStr| is_everything && OF_ONE_TERMINAL.iter().any(|it| name == *it);
    let own = options.child().inherited_on_request(inherit).filter(|(name, _)| !is_volatile(name));
    own.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The file of a program in the folders of PATH.
fn find_program(name: &str, path: &str) -> Option<PathBuf> {
    if Path::new(name).components().count() != 1 {
        return None;
    }
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct SettingsKey {
    connect: StartPolicy,
    restart: Restart,
    timeouts: Timeouts,
    tools_ttl: Duration,
    idle_timeout: Option<Duration>,
    redact: bool,
    /// The connection sanitizes messages of untrusted servers.
    trust: Trust,
}

impl ServerKey {
    /// Whether a connection with this key can take the settings of the other. Redaction and
    /// sanitizing are fixed for an open connection: a change of `redact` or `trust` needs a new
    /// one.
    pub(super) fn can_follow(&self, other: &Self) -> bool {
        let (rules, new) = (&self.rules, &other.rules);
        self.name == other.name
            && self.fingerprint == other.fingerprint
            && (rules.redact, rules.trust) == (new.redact, new.trust)
            && self.client == other.client
    }

    /// The key of a server. Servers that clients with other environments share have the options and the
    /// project of the client in it.
    pub(super) fn of(server: &Server, client: Option<(&ConnectionOptions, &Path)>) -> Self {
        let ServerSettings { connect, restart, timeouts, tools_ttl, idle_timeout, redact, .. } =
            server.behaviour;
        Self {
            name: server.name.clone(),
            fingerprint: server.fingerprint(),
            client: client.map(|client| ClientKey::of(server, client)),
            rules: SettingsKey {
                connect,
                restart,
                timeouts,
                tools_ttl,
                idle_timeout,
                redact,
                trust: server.trust,
            },
        }
    }
}
