//! The library as an embedding program uses it: servers of this process, without the CLI.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use trunkline::config::{self, Resolver, Secret};
use trunkline::connection::{ChildOptions, ConnectionOptions, HttpOptions, RequestError, Status};
use trunkline::error::Error;
use trunkline::message::Raw;
use trunkline::registry::{Registry, ServerSet};

use crate::support::program::Folder;

/// Some servers, hosted in this process.
pub(crate) struct Host {
    servers: ServerSet,
}

/// A resolver without any references, for servers that run in a directory of the test.
struct Within(PathBuf);

impl Resolver for Within {
    fn variable(&self, _: &str) -> Option<Secret> {
        None
    }

    fn file(&self, _: &Path) -> io::Result<Secret> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn working_directory(&self) -> PathBuf {
        self.0.clone()
    }
}

impl Host {
    /// A host with servers that all run in the directory. Nothing is started yet.
    pub(crate) fn new(folder: &Folder, servers: &Value) -> Self {
        let mut servers = servers.clone();
        let with_command = |server: &&mut Value| server.get("command").is_some();
        for server in servers.as_object_mut().unwrap().values_mut().filter(with_command) {
            server["cwd"] = json!(folder.project());
        }
        let text = json!({ "mcpServers": servers }).to_string();
        let loaded = config::parse("the test", text);
        assert!(!loaded.has_errors(false), "{:?}", loaded.diagnostics);
        let child = ChildOptions::from_environment(std::env::vars_os());
        let resolver = Arc::new(Within(folder.project()));
        let options = ConnectionOptions::new(resolver, child, HttpOptions::default());
        Self { servers: Registry::new(options).open(&loaded.config) }
    }

    /// Starts all servers, and returns the errors of those that failed.
    pub(crate) async fn start(&self) -> Vec<Error> {
        self.servers.connect_all().await
    }

    /// The first text of a tool result.
    pub(crate) async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: &Value,
    ) -> Result<String, RequestError> {
        let connection = self.servers.get(server).unwrap();
        let params = Raw::from_value(&json!({ "name": tool, "arguments": arguments }));
        let result = connection.request("tools/call", Some(params)).await?;
        Ok(result.to_value()["content"][0]["text"].as_str().unwrap().to_owned())
    }

    /// The status of a server.
    pub(crate) fn status(&self, server: &str) -> Status {
        self.servers.get(server).unwrap().status()
    }

    /// Stops all servers.
    pub(crate) async fn end(self) {
        self.servers.close().await;
    }
}
