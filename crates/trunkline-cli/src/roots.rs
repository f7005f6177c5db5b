//! The directories that a command tells servers of (MCP roots).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use trunkline::config::{Config, Server, Template, Transport};
use trunkline::connection::{CallHandler, HandlerFuture, ServerRequest};
use trunkline::message::{Raw, RpcError};
use trunkline::name::ServerName;
use trunkline::protocol::code;
use url::Url;

use crate::environment::file_timeout;

/// The directories that a command names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RootsSetting {
    /// None, and servers are not offered any.
    None,
    /// Those of `--root`, for all servers.
    Given(Vec<PathBuf>),
    /// The working directory, on a terminal.
    WorkingDirectory(PathBuf),
}

/// The roots of each server.
#[derive(Debug, Default)]
pub(crate) struct ServerRoots {
    /// Without an entry, a server has none.
    servers: BTreeMap<ServerName, RootsOfServer>,
    are_declared: bool,
    /// The servers that have requested them.
    requested: Mutex<BTreeSet<ServerName>>,
}

/// The roots of one server.
#[derive(Clone, Debug)]
struct RootsOfServer {
    directories: Vec<PathBuf>,
    /// Paths in its arguments. If one is a directory, the server has its own directories, and some servers use
    /// roots instead of them.
    own_paths: Vec<PathBuf>,
}

impl ServerRoots {
    /// The roots of all servers; the working directory only if the command runs on a terminal.
    pub(crate) fn new(setting: &RootsSetting, is_terminal: bool, config: &Config) -> Self {
        let roots = |server: &Server| match setting {
            RootsSetting::Given(directories) => {
                Some(RootsOfServer { directories: directories.clone(), own_paths: Vec::new() })
            }
            RootsSetting::WorkingDirectory(directory) => Some(RootsOfServer {
                directories: vec![directory.clone()],
                own_paths: argument_paths(server, directory)?,
            }),
            RootsSetting::None => None,
        };
        let are_declared = match setting {
            RootsSetting::None => false,
            RootsSetting::Given(_) => true,
            RootsSetting::WorkingDirectory(_) => is_terminal,
        };
        let servers = config.servers().filter(|_| are_declared);
        let servers = servers.filter_map(|it| Some((it.name.clone(), roots(it)?)));
        Self { servers: servers.collect(), are_declared, requested: Mutex::default() }
    }

    /// Whether servers are told that they may ask.
    pub(crate) fn are_declared(&self) -> bool {
        self.are_declared
    }

    /// The roots of a server.
    pub(crate) async fn of(&self, server: &ServerName) -> Vec<PathBuf> {
        let Some(RootsOfServer { directories, own_paths }) = self.servers.get(server).cloned()
        else {
            return Vec::new();
        };
        let has_own = !own_paths.is_empty()
            && file_timeout::answered(move || own_paths.iter().any(|it| it.is_dir()))
                .await
                .unwrap_or(true);
        if has_own { Vec::new() } else { directories }
    }

    /// Whether a server has requested its roots.
    pub(crate) fn were_requested(&self, server: &ServerName) -> bool {
        self.requested.lock().unwrap_or_else(PoisonError::into_inner).contains(server)
    }

    /// The result of `roots/list`.
    pub(crate) async fn result(&self, server: &ServerName) -> Raw {
        self.requested.lock().unwrap_or_else(PoisonError::into_inner).insert(server.clone());
        let roots = self.of(server).await;
        let uris = roots.iter().filter_map(|root| Url::from_file_path(root).ok());
        let roots: Vec<_> = uris.map(|uri| json!({ "uri": uri.as_str() })).collect();
        Raw::from_value(&json!({ "roots": roots }))
    }
}

/// Paths that the arguments of a server may name. `None` if the server is not of this machine, or an argument is
/// known only when the server starts.
fn argument_paths(server: &Server, directory: &Path) -> Option<Vec<PathBuf>> {
    let Transport::Stdio(program) = &server.transport else { return None };
    let directory = match &program.cwd {
        Some(cwd) => directory.join(cwd.as_literal()?),
        None => directory.to_owned(),
    };
    let arguments = program.args.iter().map(Template::as_literal);
    let arguments = arguments.collect::<Option<Vec<_>>>()?;
    // Also `--directory=docs`.
    let values = arguments.into_iter().filter_map(|it| it.rsplit('=').next());
    Some(values.filter(|it| !it.is_empty()).map(|it| directory.join(it)).collect())
}

/// Answers `roots/list` of servers that ask as they start, outside of a call.
pub(crate) struct RootsHandler(pub(crate) Arc<ServerRoots>);

impl CallHandler for RootsHandler {
    fn on_server_request(&self, request: ServerRequest) -> HandlerFuture<'_> {
        Box::pin(async move {
            match &*request.method {
                "roots/list" => Ok(self.0.result(&request.server).await),
                method => {
                    let message =
                        format!("this client does not support {method} outside of a call");
                    Err(RpcError::new(code::METHOD_NOT_FOUND, &message))
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use trunkline::config::parse;

    use super::*;

    /// The roots of each server in the directory `/`, by name.
    async fn on_terminal(text: &str) -> Vec<(String, Vec<PathBuf>)> {
        let config = parse("trunkline.json", text).config;
        let setting = RootsSetting::WorkingDirectory("/".into());
        let roots = ServerRoots::new(&setting, true, &config);
        let mut all = Vec::new();
        for server in config.servers() {
            all.push((server.name.to_string(), roots.of(&server.name).await));
        }
        all
    }

    #[tokio::test]
    async fn servers_without_directories_of_their_own_get_the_working_directory() {
        let roots = on_terminal(
            r#"{ "mcpServers": {
                "plain": { "command": "npx", "args": ["-y", "@scope/server", "--port=80"] },
                "own": { "command": "npx", "args": ["-y", "@scope/files", "/tmp"] },
                "option": { "command": "uvx", "args": ["--repository=tmp"] },
                "later": { "command": "npx", "args": ["${HOME}/docs"] },
                "remote": { "url": "https://example.com/mcp" }
            } }"#,
        );
        let has_root = roots.await.into_iter().map(|(name, roots)| (name, !roots.is_empty()));
        let has_root: BTreeMap<_, _> = has_root.collect();
        let names: Vec<_> =
            has_root.iter().filter(|(_, has)| **has).map(|(name, _)| name).collect();
        assert_eq!(has_root.len(), 5);
        assert_eq!(names, ["plain"]);
    }

    #[tokio::test]
    async fn without_a_terminal_only_given_directories_are_named() {
        let text = r#"{ "mcpServers": { "s": { "url": "https://example.com/mcp" } } }"#;
        let config = parse("trunkline.json", text).config;
        let server = ServerName::new("s").unwrap();
        let directory = PathBuf::from("/");
        let quiet = RootsSetting::WorkingDirectory(directory.clone());
        let roots = ServerRoots::new(&quiet, false, &config);
        assert!(!roots.are_declared() && roots.of(&server).await.is_empty());
        let roots = ServerRoots::new(&RootsSetting::Given(vec![directory]), false, &config);
        assert!(roots.are_declared() && roots.of(&server).await.len() == 1);
    }
}
