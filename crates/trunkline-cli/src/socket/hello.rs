//! The first lines of a connection to the service: what the client wants, and who responds. After them, a
//! connection for MCP carries messages, one per line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trunkline::config::{Secret, Server};
use trunkline::connection::ProgramLaunch;

use super::source_files::SourceFile;
use crate::environment::limits::InheritedLimits;

/// The version of these lines. A change that an older part does not understand gets another number.
pub(crate) const PROTOCOL: u32 = 4;

/// The versions that this program understands as a service.
pub(crate) const SUPPORTED: [u32; 3] = [1, 2, PROTOCOL];

/// The build of this program.
pub(crate) const BUILD: &str = env!("CARGO_PKG_VERSION");

/// The first line of a client.
#[derive(Deserialize, Serialize)]
pub(crate) struct Hello {
    /// The version of this line.
    pub(crate) trunkline: u32,
    pub(crate) build: String,
    pub(crate) wants: Wants,
}

/// What a client wants.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Wants {
    /// An MCP session.
    Mcp(Box<ClientEnvironment>),
    /// The process of a stdio server, for one command.
    Process(Box<ProcessRequest>),
    /// The state of the service and of its servers.
    Status,
    /// The end of the service.
    Stop {
        /// Whether another service takes its place.
        restarts: bool,
    },
    /// A server to be restarted.
    Restart { server: String },
    /// The last lines that a server wrote to standard error.
    Stderr {
        server: String,
        /// Whether the response has a [`StderrSource`] per project, and not all lines in one list.
        #[serde(default)]
        by_project: bool,
    },
    /// A link that opens the page.
    Page,
}

impl Wants {
    /// The lowest version that has everything of this, so that an older service can respond if possible. A
    /// service of version 1 would ignore the conversation, and show what is switched off in it.
    pub(crate) fn version(&self) -> u32 {
        match self {
            Self::Process(_) => 4,
            Self::Mcp(client) if client.conversation.is_some() => 2,
            Self::Page => 2,
            _ => 1,
        }
    }
}

/// The environment in which a client means its configuration.
#[derive(Deserialize, Serialize)]
pub(crate) struct ClientEnvironment {
    pub(crate) directory: PathBuf,
    pub(crate) config: Option<PathBuf>,
    pub(crate) agent: Option<String>,
    #[serde(default)]
    pub(crate) bundles: Vec<String>,
    pub(crate) mode: Option<String>,
    #[serde(default)]
    pub(crate) conversation: Option<String>,
    variables: EnvVariables,
}

impl ClientEnvironment {
    pub(crate) fn new(
        directory: PathBuf,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        Self {
            directory,
            config: None,
            agent: None,
            bundles: Vec::new(),
            mode: None,
            conversation: None,
            variables: variables.into_iter().collect(),
        }
    }

    /// Whether a variable is set.
    pub(crate) fn has_variable(&self, name: &str) -> bool {
        self.variables.0.contains_key(name)
    }

    /// The variables, by name.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.variables.iter()
    }
}

/// Variables by name. Those whose names are not text are left out.
#[derive(Clone, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct EnvVariables(BTreeMap<String, EnvValue>);

/// The value of a variable, which need not be text.
#[derive(Clone, Deserialize, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum EnvValue {
    Text(String),
    Bytes(Vec<u8>),
}

impl FromIterator<(OsString, OsString)> for EnvVariables {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        let variables = variables.into_iter().filter_map(|(name, value)| {
            let value = match value.to_str() {
                Some(text) => EnvValue::Text(text.to_owned()),
                None => EnvValue::Bytes(value.as_bytes().to_vec()),
            };
            Some((name.into_string().ok()?, value))
        });
        Self(variables.collect())
    }
}

impl EnvVariables {
    fn iter(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.0.iter().map(|(name, value)| {
            let value = match value {
                EnvValue::Text(text) => text.into(),
                EnvValue::Bytes(bytes) => OsString::from_vec(bytes.clone()),
            };
            (name.into(), value)
        })
    }
}

/// The process that a command needs: one that was started in the same way, for a client like it.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct ProcessRequest {
    /// The name of the server, for people.
    pub(crate) server: String,
    command: String,
    args: Vec<String>,
    directory: PathBuf,
    /// The directory as its entry writes it, with references in place of their values. `None` from an older program.
    #[serde(default)]
    pub(crate) shown_directory: Option<String>,
    variables: EnvVariables,
    chain: String,
    secrets: Vec<String>,
    pub(crate) client: CommandTraits,
    /// The files that it is started from.
    #[serde(default)]
    pub(crate) sources: Vec<SourceFile>,
    /// The entry of the server. `None` from an older program.
    #[serde(default)]
    pub(crate) fingerprint: Option<String>,
    /// How long the process may wait for the next command, if its entry says so.
    pub(crate) idle_timeout: Option<Duration>,
    /// How long it may take to end.
    pub(crate) shutdown_timeout: Duration,
    /// What the process would inherit from the command in addition.
    pub(crate) limits: InheritedLimits,
}

/// What a server learns of its client, and may keep.
#[derive(Clone, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct CommandTraits {
    pub(crate) build: String,
    /// The client capabilities, as JSON.
    pub(crate) capabilities: String,
    pub(crate) roots: Vec<PathBuf>,
}

impl ProcessRequest {
    pub(crate) fn new(server: &Server, launch: &ProgramLaunch, client: CommandTraits) -> Self {
        let exposed = |secret: &Secret| secret.expose().to_owned();
        Self {
            server: server.name.as_str().to_owned(),
            command: exposed(&launch.command),
            args: launch.args.iter().map(exposed).collect(),
            directory: launch.directory.clone(),
            shown_directory: None,
            variables: launch.variables.clone().into_iter().collect(),
            chain: launch.chain.clone(),
            secrets: launch.secrets.iter().map(exposed).collect(),
            client,
            sources: Vec::new(),
            fingerprint: Some(server.fingerprint().to_string()),
            idle_timeout: server.behaviour.idle_timeout,
            shutdown_timeout: server.behaviour.timeouts.shutdown,
            limits: InheritedLimits::of_process(),
        }
    }

    /// How the process is started.
    pub(crate) fn launch(&self) -> ProgramLaunch {
        ProgramLaunch {
            command: Secret::new(self.command.as_str()),
            args: self.args.iter().map(|it| Secret::new(it.as_str())).collect(),
            directory: self.directory.clone(),
            variables: self.variables.iter().collect(),
            chain: self.chain.clone(),
            secrets: self.secrets.iter().map(|it| Secret::new(it.as_str())).collect(),
        }
    }
}

/// The last lines that processes of a server wrote to standard error.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct StderrSource {
    /// The projects of the processes.
    pub(crate) directories: Vec<String>,
    pub(crate) lines: Vec<String>,
}

impl StderrSource {
    /// Joins the sources of the same projects.
    pub(crate) fn join(sources: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut joined: Vec<Self> = Vec::new();
        for source in sources {
            match joined.iter_mut().find(|it| it.directories == source.directories) {
                Some(same) => same.lines.extend(source.lines),
                None => joined.push(source),
            }
        }
        joined.sort_by(|one, two| one.directories.cmp(&two.directories));
        joined
    }
}

/// The first line of the service.
#[derive(Deserialize, Serialize)]
pub(crate) struct Welcome {
    pub(crate) service: ServiceInfo,
    /// Why the client does not get what it wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// The response, where the client does not want an MCP session.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) response: Value,
}

impl Welcome {
    pub(crate) fn with(response: Value) -> Self {
        Self { service: ServiceInfo::of_process(), error: None, response }
    }

    pub(crate) fn refusal(error: String) -> Self {
        Self { error: Some(error), ..Self::with(Value::Null) }
    }
}

/// A service.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ServiceInfo {
    /// The version of these lines.
    pub(crate) protocol: u32,
    pub(crate) build: String,
    pub(crate) pid: u32,
}

impl ServiceInfo {
    pub(crate) fn of_process() -> Self {
        Self { protocol: PROTOCOL, build: BUILD.to_owned(), pid: std::process::id() }
    }

    pub(crate) fn process(&self) -> String {
        format!("process {}", self.pid)
    }
}

/// The last line of the service on a connection for MCP, which is not for the client. Without it, the
/// service was killed.
#[derive(Deserialize, Serialize)]
pub(crate) struct Goodbye {
    pub(crate) trunkline: EndReason,
}

/// Why a service ends a connection.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum EndReason {
    /// It was stopped by the user, or has had no client for long.
    Stopped,
    /// Another service takes its place.
    Restarts,
    /// Clients cannot find it any more, and start another one.
    Unreachable,
}
