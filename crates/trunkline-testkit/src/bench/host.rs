//! Trunkline as a host: the only part of the benchmark that uses connections and the registry.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::{env, io};

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use trunkline::config::{self, EmptyResolver};
use trunkline::connection::{ChildOptions, Connection, ConnectionOptions, HttpOptions};
use trunkline::message::Raw;
use trunkline::registry::{Registry, ServerSet};

use crate::server::{MODERN, SERVE, SERVE_HTTP};

/// A host with ready servers.
pub(crate) struct Host {
    runtime: Runtime,
    servers: ServerSet,
}

/// Calls to make.
#[derive(Clone)]
pub(crate) struct Calls {
    pub(crate) params: Raw,
    pub(crate) count: usize,
    pub(crate) in_flight: usize,
}

impl Host {
    /// Starts servers concurrently and waits until all are ready.
    pub(crate) fn start<'a>(servers: impl IntoIterator<Item = &'a Value>) -> Self {
        let named = servers.into_iter().enumerate();
        let servers: serde_json::Map<_, _> =
            named.map(|(number, server)| (format!("s{number}"), server.clone())).collect();
        let loaded = config::parse("bench", json!({ "mcpServers": servers }).to_string());
        let child = ChildOptions::from_environment(env::vars_os());
        let options =
            ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default());
        let runtime = runtime();
        let servers = runtime.block_on(async {
            let servers = Registry::new(options).open(&loaded.config);
            let failed = servers.connect_all().await;
            assert!(failed.is_empty(), "{failed:?}");
            servers
        });
        Self { runtime, servers }
    }

    fn first(&self) -> Arc<Connection> {
        self.servers.get("s0").expect("there is a server")
    }

    /// Sends a request to the first server.
    pub(crate) fn ask(&self, method: &str, params: &Raw) -> Raw {
        self.runtime.block_on(ask(&self.first(), method, params))
    }

    /// Calls the first server, with up to `in_flight` calls pending.
    pub(crate) fn call(&self, calls: &Calls) {
        let first = self.first();
        let call = |_| async { drop(ask(&first, "tools/call", &calls.params).await) };
        let all = stream::iter(0..calls.count).map(call).buffer_unordered(calls.in_flight);
        self.runtime.block_on(all.for_each(|()| async {}));
    }

    /// Calls every server once, with up to `in_flight` calls pending.
    pub(crate) fn call_each(&self, params: &Raw, in_flight: usize) {
        let call = |connection: Arc<Connection>| async move {
            drop(ask(&connection, "tools/call", params).await);
        };
        let all = stream::iter(self.servers.connections()).map(call).buffer_unordered(in_flight);
        self.runtime.block_on(all.for_each(|()| async {}));
    }

    /// Shuts down all servers.
    pub(crate) fn end(self) {
        self.runtime.block_on(self.servers.close());
    }
}

async fn ask(connection: &Connection, method: &str, params: &Raw) -> Raw {
    let answer = connection.request(method, Some(params.clone())).await;
    answer.expect("the server answers with a result")
}

/// A single-threaded runtime, so that measurements contain no thread wake-ups.
pub(crate) fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made")
}

/// The path of this program.
pub(crate) fn program() -> PathBuf {
    env::current_exe().expect("this program is somewhere")
}

/// Configuration of a stdio server that takes a while to start.
pub(crate) fn stdio_server(milliseconds: u64) -> Value {
    json!({ "command": program(), "args": [SERVE, milliseconds.to_string()] })
}

/// A running HTTP server, stopped on drop.
pub(crate) struct HttpServer {
    process: Child,
    pub(crate) port: u16,
}

impl HttpServer {
    pub(crate) fn start() -> Self {
        Self::start_as(&[SERVE_HTTP, MODERN])
    }

    /// Starts this program as another server, which prints its port and ends when its stdin closes.
    pub(crate) fn start_as(arguments: &[&str]) -> Self {
        let mut command = Command::new(program());
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("the server starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("it was piped");
        io::BufRead::read_line(&mut io::BufReader::new(output), &mut line).expect("it speaks");
        Self { process, port: line.trim().parse().expect("it says its port") }
    }

    /// The process ID.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The configuration of the server.
    pub(crate) fn configured(&self) -> Value {
        json!({ "type": "http", "url": format!("http://127.0.0.1:{}/mcp", self.port) })
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
