//! Clients of a socket of Trunkline: who connects, what it wants, and the process that a command gets.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::warn;
use trunkline::error::Error;
use trunkline_gateway::{InputLine, LineReader};

use super::process_pool::ProcessPool;
use crate::socket::dial::line;
use crate::socket::hello::{Hello, ProcessRequest, SUPPORTED, ServiceInfo, Wants, Welcome};

/// How long a client may take to say what it wants.
const HELLO: Duration = Duration::from_secs(10);

/// Limit on the first line of a client: its environment.
const MAX_HELLO: usize = 8 * 1024 * 1024;

/// Limit on a message of a command to a process.
const MAX_COMMAND_LINE: usize = 64 * 1024 * 1024;

/// Limit on clients that are connected.
const MAX_CLIENTS: usize = 4096;

/// Pause after a connection could not be accepted: files may be exhausted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// A client that has not said what it wants.
pub(super) struct SocketClient {
    /// The process, where the system tells.
    pub(super) process: Option<i32>,
    pub(super) lines: LineReader<OwnedReadHalf>,
    pub(super) writer: OwnedWriteHalf,
}

/// Accepts clients, forever.
pub(super) async fn accept<F>(
    listener: &UnixListener,
    clients: &mut JoinSet<()>,
    on_client: impl Fn(SocketClient) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if clients.len() < MAX_CLIENTS => {
                    if let Some(client) = SocketClient::new(stream) {
                        clients.spawn(on_client(client));
                    }
                }
                Ok(_) => warn!("a client was refused: {MAX_CLIENTS} are connected"),
                Err(error) => {
                    warn!(%error, "a client cannot be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = clients.join_next() => {}
        }
    }
}

impl SocketClient {
    /// A client of the same user. The folder of the socket keeps others out as well.
    fn new(stream: UnixStream) -> Option<Self> {
        let own = rustix::process::geteuid().as_raw();
        let Some(peer) = stream.peer_cred().ok().filter(|peer| peer.uid() == own) else {
            warn!("a client of another user was refused");
            return None;
        };
        let (reader, writer) = stream.into_split();
        Some(Self { process: peer.pid(), lines: LineReader::new(reader, MAX_HELLO), writer })
    }

    /// What the client wants; `None` if it does not say so, or has another version, which it is told.
    pub(super) async fn wants(&mut self) -> io::Result<Option<Wants>> {
        let Ok(hello) = timeout(HELLO, self.lines.next()).await else { return Ok(None) };
        let Some(InputLine::Message(hello)) = hello? else { return Ok(None) };
        match serde_json::from_slice::<Hello>(&hello) {
            Ok(Hello { trunkline, wants, .. }) if SUPPORTED.contains(&trunkline) => Ok(Some(wants)),
            _ => {
                self.write(&Welcome::refusal(other_version())).await?;
                Ok(None)
            }
        }
    }

    pub(super) async fn write(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        self.writer.write_all(&line(value)?).await?;
        self.writer.flush().await
    }

    /// Gives the process of a stdio server to a command, until the command or the owner of the process ends.
    pub(super) async fn use_process(
        mut self,
        request: &ProcessRequest,
        pool: &ProcessPool,
        stopped: impl Future<Output = Error>,
    ) -> io::Result<()> {
        let lease = match pool.lease(request).await {
            Ok(lease) => lease,
            Err(error) => return self.write(&Welcome::refusal(error.to_string())).await,
        };
        let written = self.write(&Welcome::with(lease.description())).await;
        // The first reader has the limit of the first line.
        let mut lines = LineReader::new(self.lines.into_reader(), MAX_COMMAND_LINE);
        lease.relay(&mut lines, &mut self.writer, stopped).await.and(written)
    }
}

fn other_version() -> String {
    let info = ServiceInfo::of_process();
    format!(
        "the running service ({}, version {}) is older than this program; `trunkline restart` replaces it",
        info.process(),
        info.build
    )
}
