//! The transport of a server with every reference resolved.

use std::collections::BTreeMap;
use std::path::Path;

use super::identity::ConfigIdentity;
use super::inherit::InheritEnv;
use super::model::{RemoteTransport, Server};
use super::oauth::ResolvedOAuth;
use super::redact;
use super::secret::Secret;

/// A transport with every reference resolved. `Debug` prints none of its values.
#[derive(Clone, PartialEq, Eq)]
pub enum ResolvedTransport {
    /// A child process.
    Stdio(ResolvedStdio),
    /// A remote server.
    Remote(ResolvedRemote),
}

impl std::fmt::Debug for ResolvedTransport {
    /// Omits names too: those of an `envFile` are file content.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Stdio(_) => "Stdio(***)",
            Self::Remote(_) => "Remote(***)",
        })
    }
}

/// A child process, ready to start.
#[derive(Clone, PartialEq, Eq)]
pub struct ResolvedStdio {
    /// The program.
    pub command: Secret,
    /// The program for display: its file name, or the unresolved command if it has references.
    pub shown: Box<str>,
    /// The path of the program as it can be shown, where a path was written.
    pub shown_path: Box<str>,
    /// Its arguments.
    pub args: Vec<Secret>,
    /// Its working directory.
    pub cwd: Option<Secret>,
    /// The same as it can be shown.
    pub shown_cwd: Option<Box<str>>,
    /// Variables set, or removed where there is no value.
    pub env: BTreeMap<Box<str>, Option<Secret>>,
    /// Host variables that it inherits in addition to the default ones.
    pub inherit_env: InheritEnv,
    /// The values of its references, to mask them in the server's output.
    pub filled_in: Vec<Secret>,
    /// Literal arguments, or parts of them, that look like credentials.
    pub credentials: Vec<Secret>,
    /// Identity of its configuration.
    pub(crate) identity: ConfigIdentity,
}

impl ResolvedStdio {
    /// A program of a server's configuration that is not the server itself.
    pub(crate) fn of_words(words: &[Secret], server: &Server) -> Self {
        let (command, args) = words
            .split_first()
            .map_or((Secret::new(""), &[][..]), |(first, rest)| (first.clone(), rest));
        let name = Path::new(command.expose()).file_name().unwrap_or_default().to_string_lossy();
        let shown: Box<str> = redact::argument(&redact::RedactionInput::of_text(&name)).into();
        Self {
            command,
            shown_path: shown.clone(),
            shown,
            args: args.to_vec(),
            cwd: None,
            shown_cwd: None,
            env: BTreeMap::new(),
            inherit_env: server.behaviour.inherit_env.clone(),
            filled_in: Vec::new(),
            credentials: Vec::new(),
            identity: server.identity.clone(),
        }
    }
}

/// A remote server, ready to connect.
#[derive(Clone, PartialEq, Eq)]
pub struct ResolvedRemote {
    /// The URL, validated.
    pub url: Secret,
    /// Headers sent with every request.
    pub headers: Vec<(Box<str>, Secret)>,
    /// The HTTP transport.
    pub protocol: RemoteTransport,
    /// How tokens are obtained; `None` if they are not.
    pub oauth: Option<ResolvedOAuth>,
    /// A program that prints headers, with its arguments.
    pub headers_command: Option<Vec<Secret>>,
    /// The values of its references, to mask them in the server's output.
    pub filled_in: Vec<Secret>,
}
