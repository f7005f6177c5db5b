//! Relays lines between a command and the process that it uses.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use trunkline::connection::{ProcessEvent, StdioProcess};
use trunkline::error::{Error, ErrorKind};
use trunkline_gateway::{InputLine, LineReader};

use super::process_session::{LineRoute, ProcessSession};
use crate::socket::process_frames::{error_frames, output_frame};

/// Why a relay ends.
pub(super) enum RelayEnd {
    /// The command has ended, or does not need the process any more.
    Command,
    /// The process cannot be used any more.
    Process(Error),
}

/// Relays until the command or the process ends.
pub(super) async fn relay(
    (process, session): (&mut StdioProcess, &mut ProcessSession),
    lines: &mut LineReader<impl AsyncRead + Unpin>,
    (writer, mut stderr): (&mut (impl AsyncWrite + Unpin), mpsc::Receiver<Bytes>),
) -> io::Result<RelayEnd> {
    loop {
        let is_full = process.is_full();
        tokio::select! {
            line = lines.next(), if !is_full => match line {
                Ok(Some(InputLine::Message(line))) => match session.on_command_line(line) {
                    LineRoute::Forward(line) => process.send(line),
                    LineRoute::Respond(line) => writer.write_all(&output_frame(&line)).await?,
                    LineRoute::Drop => {}
                    LineRoute::Refuse => return Ok(RelayEnd::Process(other_handshake())),
                },
                Ok(Some(InputLine::TooLong)) => return Ok(RelayEnd::Process(too_long())),
                Ok(None) | Err(_) => return Ok(RelayEnd::Command),
            },
            event = process.next() => match event {
                ProcessEvent::Line(line) => {
                    if session.on_process_line(&line) {
                        writer.write_all(&output_frame(&line)).await?;
                    }
                }
                ProcessEvent::Ended(error) => {
                    while let Ok(part) = stderr.try_recv() {
                        writer.write_all(&error_frames(&part)).await?;
                    }
                    return Ok(RelayEnd::Process(error));
                }
            },
            Some(part) = stderr.recv() => writer.write_all(&error_frames(&part)).await?,
        }
    }
}

fn too_long() -> Error {
    let error = Error::new(ErrorKind::TooLarge, "the message is too long for the service");
    error.with_hint("`--no-service` sends it to a process of the command")
}

/// The command starts the server again after this error.
fn other_handshake() -> Error {
    Error::new(ErrorKind::ProtocolViolation, "its process was started for another client")
}
