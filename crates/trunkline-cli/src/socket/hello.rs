//! The first lines of a connection to the service: what the client wants, and who responds. After them, a
//! connection for MCP carries messages, one per line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of these lines. A change that an older part does not understand gets another number.
pub(crate) const PROTOCOL: u32 = 3;

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
    Stderr { server: String },
    /// A link that opens the page.
    Page,
}

impl Wants {
    /// The lowest version that has everything of this, so that an older service can respond if possible. A
    /// service of version 1 would ignore the conversation, and show what is switched off in it; one of version 2
    /// would serve all servers instead of one.
    pub(crate) fn version(&self) -> u32 {
        match self {
            Self::Mcp(client) if client.server.is_some() => 3,
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
    /// The only server, under its own names and without rules: those of the client apply.
    #[serde(default)]
    pub(crate) server: Option<String>,
    variables: BTreeMap<String, EnvValue>,
}

/// A variable, which need not be text.
#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum EnvValue {
    Text(String),
    Bytes(Vec<u8>),
}

impl ClientEnvironment {
    pub(crate) fn new(
        directory: PathBuf,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        let variables = variables.into_iter().filter_map(|(name, value)| {
            let value = match value.to_str() {
                Some(text) => EnvValue::Text(text.to_owned()),
                None => EnvValue::Bytes(value.as_bytes().to_vec()),
            };
            Some((name.into_string().ok()?, value))
        });
        Self {
            directory,
            config: None,
            agent: None,
            bundles: Vec::new(),
            mode: None,
            conversation: None,
            server: None,
            variables: variables.collect(),
        }
    }

    /// Whether a variable is set.
    pub(crate) fn has_variable(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    /// The variables, by name.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.variables.iter().map(|(name, value)| {
            let value = match value {
                EnvValue::Text(text) => text.into(),
                EnvValue::Bytes(bytes) => OsString::from_vec(bytes.clone()),
            };
            (name.into(), value)
        })
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
