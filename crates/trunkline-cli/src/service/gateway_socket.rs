//! The socket of `trunkline serve`: commands with the same configuration use processes that the gateway keeps for them,
//! as they use those of the background service.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::info;
use trunkline::error::{Error, ErrorKind};
use trunkline::host::Host;

use super::process_pool::ProcessPool;
use super::socket_client::{SocketClient, accept};
use crate::environment::ProcessEnv;
use crate::host::server_status::server_statuses;
use crate::socket::endpoint::Endpoint;
use crate::socket::hello::{ProcessRequest, StderrSource, Wants, Welcome};
use crate::socket::runtime_dir::RuntimeDir;

/// How long commands may take to read the last line.
const GOODBYE: Duration = Duration::from_secs(2);

/// The error for a command that has other servers than the gateway.
const OTHER_CONFIG: &str = "the gateway has no such server, or one with another entry";

/// The socket of a gateway. Its file is removed with it.
pub(crate) struct GatewaySocket {
    listener: UnixListener,
    endpoint: Endpoint,
    keeper: Arc<ProcessKeeper>,
}

/// The processes of a gateway for commands.
struct ProcessKeeper {
    host: Host,
    url: String,
    /// The directory of the project.
    directory: String,
    processes: ProcessPool,
    is_ending: watch::Sender<bool>,
}

impl GatewaySocket {
    /// Opens the socket of the gateway of a host.
    pub(crate) fn bind(
        (host, directory): (&Host, &Path),
        url: &str,
        environment: &ProcessEnv,
    ) -> Result<Self> {
        let folder = RuntimeDir::of(environment)?;
        folder.create()?;
        let endpoint = Endpoint::own_gateway(&folder);
        // A process with this ID was killed. In another container, one may still run.
        if UnixStream::connect(endpoint.socket()).is_err() {
            let _ = fs::remove_file(endpoint.socket());
        }
        let listener = UnixListener::bind(endpoint.socket())
            .with_context(|| format!("cannot listen on {}", endpoint.socket().display()))?;
        let keeper = ProcessKeeper {
            host: host.clone(),
            url: url.to_owned(),
            directory: directory.to_string_lossy().into_owned(),
            processes: ProcessPool::new(host.child_options().for_another_host()),
            is_ending: watch::Sender::new(false),
        };
        Ok(Self { listener, endpoint, keeper: Arc::new(keeper) })
    }

    /// Serves commands until the servers of the host are shut down. When this returns, no process is running.
    pub(crate) async fn serve(self) {
        let Self { listener, keeper, .. } = &self;
        let mut commands = JoinSet::new();
        tokio::select! {
            () = accept(listener, &mut commands, |command| on_command(command, Arc::clone(keeper))) => {}
            () = keeper.host.shutdown_started() => {}
        }
        keeper.is_ending.send_replace(true);
        // One that does not read must not hold the others.
        let _ = timeout(GOODBYE, async { while commands.join_next().await.is_some() {} }).await;
        commands.shutdown().await;
        keeper.processes.close_all().await;
    }
}

impl Drop for GatewaySocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.endpoint.socket());
    }
}

async fn on_command(mut command: SocketClient, keeper: Arc<ProcessKeeper>) {
    let wants = tokio::select! {
        wants = command.wants() => wants,
        () = keeper.ended() => return,
    };
    let result = match wants {
        Ok(Some(wants)) => keeper.respond(wants, command).await,
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = result {
        info!(%error, "the connection of a command failed");
    }
}

impl ProcessKeeper {
    async fn respond(&self, wants: Wants, mut command: SocketClient) -> io::Result<()> {
        let welcome = match wants {
            Wants::Process(request) if self.has_entry_of(&request) => {
                let stopped = async {
                    self.ended().await;
                    gateway_ended()
                };
                return command.use_process(&request, &self.processes, stopped).await;
            }
            Wants::Process(_) => Welcome::refusal(OTHER_CONFIG.to_owned()),
            Wants::Status => Welcome::with(self.status()),
            Wants::Restart { server } => self.restart(&server).await,
            Wants::Stderr { server, .. } => {
                let own = self.host.servers().get(&server).map(|it| StderrSource {
                    directories: vec![self.directory.clone()],
                    lines: it.status().stderr,
                });
                let kept = self.processes.stderr(&server);
                Welcome::with(json!(StderrSource::join(own.into_iter().chain(kept))))
            }
            Wants::Mcp(_) | Wants::Stop { .. } | Wants::Page => {
                Welcome::refusal("this is a gateway, not the background service".to_owned())
            }
        };
        command.write(&welcome).await
    }

    /// Whether the gateway has the same entry, so that it starts no program that its configuration does not name.
    fn has_entry_of(&self, request: &ProcessRequest) -> bool {
        let connections = self.host.servers().connections();
        connections.iter().map(|it| it.server()).any(|server| {
            let is_same = Some(server.fingerprint().to_string()) == request.fingerprint;
            server.name.as_str() == request.server && is_same
        })
    }

    /// Restarts the server of clients, and ends the processes for commands.
    async fn restart(&self, server: &str) -> Welcome {
        let kept = self.processes.restart(server);
        let Some(connection) = self.host.servers().get(server) else {
            let response = |directories| json!({ "starts": false, "directories": directories });
            return match kept {
                Some(directories) => Welcome::with(response(directories)),
                None => Welcome::refusal(OTHER_CONFIG.to_owned()),
            };
        };
        self.host.close(server).await;
        connection.start();
        Welcome::with(json!({ "starts": true, "directories": [self.directory] }))
    }

    fn status(&self) -> Value {
        json!({
            "url": self.url,
            "directory": self.directory,
            "servers": server_statuses(&self.host),
            "commands": self.processes.status(),
            "ended": self.processes.ended_servers(),
        })
    }

    /// Waits until the gateway ends.
    async fn ended(&self) {
        let _ = self.is_ending.subscribe().wait_for(|it| *it).await;
    }
}

/// The error of a command that uses a process of a gateway that ends.
fn gateway_ended() -> Error {
    let message = "the gateway, which had its process, was stopped";
    Error::new(ErrorKind::Exited, message).with_hint("the next command starts its own process")
}
