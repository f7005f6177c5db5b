//! Connects to the service, or to a gateway.

use std::io;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;
use trunkline_gateway::{InputLine, LineReader};

use super::endpoint::Endpoint;
use super::hello::{BUILD, Hello, Wants, Welcome};
use super::runtime_dir::{RuntimeDir, shown};
use crate::output::stdio::is_disconnect;

/// How long the service may take to respond: it loads the configuration of the client, from files that may
/// be on a slow disk.
const WELCOME: Duration = Duration::from_secs(30);

/// How long it may take to say how it is, or to begin to end. It waits for nothing before it does.
const STATUS: Duration = Duration::from_secs(5);

/// How long it may take to start a process, or to find one. A command that waits longer starts it itself.
const PROCESS_START: Duration = Duration::from_secs(1);

/// The same for a gateway. There may be several, which are asked one after another.
const GATEWAY_START: Duration = Duration::from_millis(300);

/// Limit on the length of one message of the service: results may be as long as their configuration allows.
const MAX_LINE: usize = 1024 * 1024 * 1024;

/// A connection to the service, or to a gateway.
pub(crate) struct Link {
    pub(crate) lines: LineReader<OwnedReadHalf>,
    pub(crate) writer: OwnedWriteHalf,
    pub(crate) welcome: Welcome,
    /// Whether the service does not read any more. It may have sent responses before.
    pub(crate) is_write_closed: bool,
}

/// Connects to the service; `None` if none runs.
pub(crate) async fn dial(folder: &RuntimeDir, wants: Wants) -> Result<Option<Link>> {
    dial_endpoint(&Endpoint::service(folder), folder, wants).await
}

/// Connects to the service or to a gateway; `None` if it does not run.
pub(crate) async fn dial_endpoint(
    endpoint: &Endpoint,
    folder: &RuntimeDir,
    wants: Wants,
) -> Result<Option<Link>> {
    let limit = match (&wants, endpoint) {
        (Wants::Process(_), Endpoint::Service(_)) => PROCESS_START,
        (Wants::Process(_), Endpoint::Gateway { .. }) => GATEWAY_START,
        _ => WELCOME,
    };
    dial_within(limit, (endpoint, folder), wants).await
}

async fn dial_within(
    limit: Duration,
    (endpoint, folder): (&Endpoint, &RuntimeDir),
    wants: Wants,
) -> Result<Option<Link>> {
    folder.check()?;
    let stream = match UnixStream::connect(endpoint.socket()).await {
        Ok(stream) => stream,
        Err(error) if is_nothing_there(&error) => return Ok(None),
        Err(error) => {
            let socket = shown(endpoint.socket());
            return Err(error).with_context(|| format!("cannot connect to {socket}"));
        }
    };
    let (reader, mut writer) = stream.into_split();
    let mut lines = LineReader::new(reader, MAX_LINE);
    let hello = Hello { trunkline: wants.version(), build: BUILD.to_owned(), wants };
    let answer = async {
        writer.write_all(&line(&hello)?).await?;
        lines.next().await
    };
    let Ok(answer) = timeout(limit, answer).await else {
        bail!(
            "{endpoint} has not responded for {} s\n  {}",
            limit.as_secs_f32(),
            endpoint.remedy()
        );
    };
    let answer = match answer {
        // It ended meanwhile.
        Ok(None) => return Ok(None),
        Err(error) if is_disconnect(&error) => return Ok(None),
        answer => answer.with_context(|| format!("the connection to {endpoint} failed"))?,
    };
    let Some(InputLine::Message(answer)) = answer else { bail!("{endpoint} sent too much") };
    let welcome: Welcome = serde_json::from_slice(&answer).map_err(|_| {
        anyhow!(
            "{endpoint} has another version and cannot be understood; {}",
            endpoint.restart_advice()
        )
    })?;
    match &welcome.error {
        Some(error) => bail!("{error}"),
        None => Ok(Some(Link { lines, writer, welcome, is_write_closed: false })),
    }
}

/// Asks a running service for something; `None` if none runs.
pub(crate) async fn ask(folder: &RuntimeDir, wants: Wants) -> Result<Option<Welcome>> {
    ask_endpoint(&Endpoint::service(folder), folder, wants).await
}

/// The same for the service or a gateway.
pub(crate) async fn ask_endpoint(
    endpoint: &Endpoint,
    folder: &RuntimeDir,
    wants: Wants,
) -> Result<Option<Welcome>> {
    let limit = match &wants {
        // Servers have to end first.
        Wants::Restart { .. } => WELCOME,
        _ => STATUS,
    };
    Ok(dial_within(limit, (endpoint, folder), wants).await?.map(|link| link.welcome))
}

/// The states of all gateways that run, or why one does not tell it.
pub(crate) async fn gateway_states(folder: &RuntimeDir) -> Vec<(Endpoint, Result<Welcome>)> {
    let ask = |gateway: Endpoint| {
        let folder = folder.clone();
        tokio::spawn(async move {
            let state = ask_endpoint(&gateway, &folder, Wants::Status).await.transpose()?;
            Some((gateway, state))
        })
    };
    // All at once: each that hangs takes its time.
    let asked: Vec<_> = Endpoint::gateways(folder).into_iter().map(ask).collect();
    let mut states = Vec::new();
    for answer in asked {
        states.extend(answer.await.ok().flatten());
    }
    states
}

/// A value as one line.
pub(crate) fn line(value: &impl serde::Serialize) -> io::Result<Bytes> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    Ok(text.into())
}

fn is_nothing_there(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}
