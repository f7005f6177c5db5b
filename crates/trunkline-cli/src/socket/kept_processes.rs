//! Processes of servers that the background service or a gateway keeps, for commands that would otherwise start their
//! own.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tracing::{debug, info};
use trunkline::config::ResolvedTransport;
use trunkline::connection::{ServerStream, StreamFuture, StreamRequest, StreamSource};
use trunkline::error::{Error, ErrorKind};
use trunkline_gateway::{InputLine, LineReader};

use super::dial::{Link, ask_endpoint, dial_endpoint};
use super::endpoint::Endpoint;
use super::hello::{BUILD, CommandTraits, ProcessRequest, Wants};
use super::process_frames::{ProcessFrame, parse_frame};
use super::runtime_dir::RuntimeDir;
use super::source_files::source_files;
use crate::environment::ProcessEnv;
use crate::roots::ServerRoots;

/// The interval of checking that the owner of a process responds.
const CHECK: Duration = Duration::from_secs(5);

/// Bytes of a process that wait for the command.
const BUFFER_BYTES: usize = 64 * 1024;

/// Asks a running service for the processes of stdio servers, or gateways that have the same entries. Without one, the
/// command starts them.
pub(crate) struct KeptProcesses {
    folder: RuntimeDir,
    roots: Arc<ServerRoots>,
    environment: Arc<ProcessEnv>,
}

impl KeptProcesses {
    /// Processes for a command whose servers are told these roots. `None` if there can be no socket.
    pub(crate) fn new(roots: &Arc<ServerRoots>, environment: &Arc<ProcessEnv>) -> Option<Self> {
        let folder = RuntimeDir::of(environment).ok()?;
        Some(Self { folder, roots: Arc::clone(roots), environment: Arc::clone(environment) })
    }

    async fn stream(&self, request: StreamRequest<'_>) -> Option<ServerStream> {
        let ResolvedTransport::Stdio(program) = request.transport else { return None };
        let options = self.environment.child_options();
        let launch = options.launch(program, self.environment.working_directory());
        // Names that are not text cannot be passed on.
        if launch.variables.keys().any(|name| name.to_str().is_none()) {
            return None;
        }
        let client = CommandTraits {
            build: BUILD.to_owned(),
            capabilities: request.capabilities.text().to_owned(),
            roots: self.roots.of(&request.server.name).await,
        };
        let mut wanted = ProcessRequest::new(request.server, &launch, client);
        let shown = program.shown_cwd.as_deref().map(str::to_owned);
        let shown = shown.unwrap_or_else(|| launch.directory.to_string_lossy().into_owned());
        wanted.shown_directory = Some(shown);
        let trust = self.environment.trust_file();
        wanted.sources = source_files(request.server, &launch, trust.as_deref());
        self.of_service_or_gateway(wanted).await
    }

    /// Asks the service; if none runs, gateways.
    async fn of_service_or_gateway(&self, wanted: ProcessRequest) -> Option<ServerStream> {
        let service = Endpoint::service(&self.folder);
        if let Some(answer) = self.ask(&service, &wanted).await {
            // If it has none, another keeper could have one with another state.
            return answer.ok();
        }
        for gateway in Endpoint::gateways(&self.folder) {
            if let Some(Ok(stream)) = self.ask(&gateway, &wanted).await {
                return Some(stream);
            }
        }
        None
    }

    /// Asks for a process; `None` if nothing runs there.
    async fn ask(
        &self,
        endpoint: &Endpoint,
        wanted: &ProcessRequest,
    ) -> Option<Result<ServerStream, anyhow::Error>> {
        let server = &wanted.server;
        let wants = Wants::Process(Box::new(wanted.clone()));
        match dial_endpoint(endpoint, &self.folder, wants).await.transpose()? {
            Ok(link) => {
                info!(server, owner = link.welcome.service.pid, "process of {endpoint}");
                Some(Ok(stream(link, endpoint.clone(), self.folder.clone())))
            }
            // A start by this process fails with an error that says more, or succeeds.
            Err(error) => {
                debug!(server, %error, "{endpoint} has no process for it");
                Some(Err(error))
            }
        }
    }
}

impl StreamSource for KeptProcesses {
    fn open<'a>(&'a self, request: StreamRequest<'a>) -> StreamFuture<'a> {
        Box::pin(self.stream(request))
    }
}

fn stream(link: Link, endpoint: Endpoint, folder: RuntimeDir) -> ServerStream {
    let Link { lines, writer, welcome, .. } = link;
    let ((output, to_output), (errors, to_errors)) = (duplex(BUFFER_BYTES), duplex(BUFFER_BYTES));
    let (ended, end) = oneshot::channel();
    tokio::spawn(async move {
        let error = tokio::select! {
            error = distribute(lines, to_output, to_errors) => {
                error.unwrap_or_else(|| owner_ended(&endpoint))
            }
            error = hang(&endpoint, &folder) => error,
        };
        let _ = ended.send(error);
    });
    let end = Box::pin(async { end.await.unwrap_or_else(|_| runtime_ended()) });
    let process = welcome.response["process"].as_u64().and_then(|id| u32::try_from(id).ok());
    let first = welcome.response["firstRequestId"].as_u64().unwrap_or(1);
    ServerStream::new(output, writer).of_process(process, errors, end).with_first_request_id(first)
}

/// Distributes what a process writes, until it ends. Returns why it cannot be used any more, if that is said.
async fn distribute(
    mut lines: LineReader<OwnedReadHalf>,
    mut output: DuplexStream,
    mut errors: DuplexStream,
) -> Option<Error> {
    while let Ok(Some(InputLine::Message(line))) = lines.next().await {
        let written = match parse_frame(&line) {
            Some(ProcessFrame::Output(line)) => {
                let written = output.write_all(&line).await;
                written.and(output.write_all(b"\n").await)
            }
            Some(ProcessFrame::Errors(part)) => errors.write_all(&part).await,
            Some(ProcessFrame::End(end)) => return Some(end.into()),
            None => break,
        };
        // The command does not read any more.
        if written.is_err() {
            break;
        }
    }
    None
}

/// Waits until the owner of a process does not respond any more. It is asked on a connection of its own, because the one of
/// the process may be busy with a long message.
async fn hang(endpoint: &Endpoint, folder: &RuntimeDir) -> Error {
    loop {
        sleep(CHECK).await;
        if let Err(error) = ask_endpoint(endpoint, folder, Wants::Status).await {
            debug!(%error, "{endpoint} is checked");
            let message = format!("{endpoint}, which has its process, does not respond");
            let hint = format!("{}; `--no-service` does without it", endpoint.remedy());
            return Error::new(ErrorKind::Exited, message).with_hint(hint);
        }
    }
}

/// The error for an owner that ends without saying so.
fn owner_ended(endpoint: &Endpoint) -> Error {
    let error = Error::new(
        ErrorKind::Exited,
        format!("{endpoint}, which had its process, ended unexpectedly"),
    );
    match endpoint {
        Endpoint::Service(_) => error.with_hint("`trunkline logs` may say why"),
        Endpoint::Gateway { .. } => error.with_hint("the next command starts its own process"),
    }
}

/// The error if the task of a stream ends early, which happens only as the program ends.
fn runtime_ended() -> Error {
    Error::new(ErrorKind::ShuttingDown, "the program ends")
}
