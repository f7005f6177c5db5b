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
    /// What its entry names. If one may be a directory, the server has its own directories, and some servers use
    /// roots instead of them.
    named: NamedPaths,
}

/// Paths that the entry of a server may name.
#[derive(Clone, Debug, Default)]
struct NamedPaths {
    /// Words that could be directories.
    words: Vec<PathBuf>,
    /// Words that are written like paths. One that is no file may be a directory, also if it is not found here: some
    /// servers read `~` and lists themselves.
    paths: Vec<PathBuf>,
}

impl NamedPaths {
    /// Whether one of them may be a directory.
    fn have_directory(&self) -> bool {
        self.words.iter().any(|it| it.is_dir()) || self.paths.iter().any(|it| !it.is_file())
    }
}

impl ServerRoots {
    /// The roots of all servers; the working directory only if the command runs on a terminal.
    pub(crate) fn new(setting: &RootsSetting, is_terminal: bool, config: &Config) -> Self {
        let roots = |server: &Server| match setting {
            RootsSetting::Given(directories) => Some(RootsOfServer {
                directories: directories.clone(),
                named: NamedPaths::default(),
            }),
            RootsSetting::WorkingDirectory(directory) => Some(RootsOfServer {
                directories: vec![directory.clone()],
                named: named_paths(server, directory)?,
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
        let Some(RootsOfServer { directories, named }) = self.servers.get(server).cloned() else {
            return Vec::new();
        };
        let has_own = file_timeout::answered(move || named.have_directory()).await;
        if has_own.unwrap_or(true) { Vec::new() } else { directories }
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

/// Paths that the entry of a server may name. `None` if the server is not of this machine, if a value is known only
/// when the server starts, or if a script decides what the server gets.
fn named_paths(server: &Server, directory: &Path) -> Option<NamedPaths> {
    let Transport::Stdio(program) = &server.transport else { return None };
    let directory = match &program.cwd {
        Some(cwd) => directory.join(cwd.as_literal()?),
        None => directory.to_owned(),
    };
    let mut named = NamedPaths::default();
    let command = program.command.as_literal()?;
    for argument in program.args.iter().map(Template::as_literal) {
        let argument = argument?;
        // A part of a script, such as that of `sh -c`.
        if argument.contains(|it: char| it.is_whitespace() || it == '$') || is_script(argument) {
            return None;
        }
        // Also `--directory=docs`.
        let option = argument.split_once('=').filter(|(name, _)| name.starts_with('-'));
        let word = option.map_or(argument, |(_, value)| value);
        let list = if is_path(word) { &mut named.paths } else { &mut named.words };
        list.push(directory.join(word));
    }
    // References are credentials, most of them.
    let values = program.env.iter().filter_map(|(_, value)| value.as_ref()?.as_literal());
    named.words.extend(values.map(|value| directory.join(value)));
    (!is_script(command)).then_some(named)
}

/// Whether a word is written like a path. Packages of npm and URLs are not.
fn is_path(word: &str) -> bool {
    let is_package = word.starts_with('@') && word.matches('/').count() == 1;
    let is_url = word.starts_with("https://") || word.starts_with("http://");
    word.contains(['/', '\\', '~']) && !is_package && !is_url
}

/// Whether a program is a script of a shell, which may have arguments for the server.
fn is_script(program: &str) -> bool {
    let extension = Path::new(program).extension().unwrap_or_default();
    ["sh", "bash", "zsh", "fish", "cmd", "bat", "ps1"].iter().any(|it| extension == *it)
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

    /// The roots of each server in the directory `/`.
    async fn on_terminal(text: &str) -> Vec<Vec<PathBuf>> {
        let config = parse("trunkline.json", text).config;
        let setting = RootsSetting::WorkingDirectory("/".into());
        let roots = ServerRoots::new(&setting, true, &config);
        let mut all = Vec::new();
        for server in config.servers() {
            all.push(roots.of(&server.name).await);
        }
        all
    }

    #[tokio::test]
    async fn servers_without_directories_of_their_own_get_the_working_directory() {
        let entries = [
            (true, r#""command": "npx", "args": ["-y", "@scope/server@1.2", "--port=80"]"#),
            (true, r#""command": "python3", "args": ["-m", "server"]"#),
            (
                true,
                r#""command": "/usr/bin/env", "args": ["/etc/passwd", "--url=https://example.com/x"]"#,
            ),
            (false, r#""command": "npx", "args": ["-y", "@scope/files", "/tmp"]"#),
            (false, r#""command": "uvx", "args": ["--repository=tmp"]"#),
            (false, r#""command": "uvx", "args": ["tmp"]"#),
            (false, r#""command": "npx", "args": ["~/docs"]"#),
            (false, r#""command": "npx", "args": ["--dirs=/tmp,/var"]"#),
            (false, r#""command": "npx", "args": ["-C/tmp"]"#),
            (false, r#""command": "npx", "args": ["file:///tmp"]"#),
            (false, r#""command": "npx", "args": ["/is/not/there"]"#),
            (false, r#""command": "npx", "args": ["${HOME}/docs"]"#),
            (false, r#""command": "sh", "args": ["-c", "exec server docs"]"#),
            (false, r#""command": "./files.sh""#),
            (false, r#""command": "server", "env": { "ROOT": "/tmp" }"#),
            (false, r#""url": "https://example.com/mcp""#),
        ];
        for (is_expected, entry) in entries {
            let text = format!(r#"{{ "mcpServers": {{ "s": {{ {entry} }} }} }}"#);
            let roots = on_terminal(&text).await;
            assert_eq!(roots.len(), 1, "{entry}");
            assert_eq!(!roots[0].is_empty(), is_expected, "{entry}");
        }
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
