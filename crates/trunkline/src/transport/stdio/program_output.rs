//! Runs a program to its end and collects its output, with the same environment and the same end as a
//! server.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

use super::process::{ChildOptions, ServerProcess};
use crate::config::ResolvedStdio;
use crate::error::{Error, ErrorKind};

/// Time for a program to end after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Limits of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunLimits {
    pub(crate) time: Duration,
    pub(crate) bytes: usize,
}

/// Runs a program without input and returns its standard output. Its standard error is discarded: it may
/// contain what the output does. Errors contain neither.
pub(crate) async fn program_output(
    program: &ResolvedStdio,
    options: &ChildOptions,
    limits: RunLimits,
) -> Result<Vec<u8>, Error> {
    let (mut process, streams) = ServerProcess::start(program, options)?;
    drop(streams.input);
    let mut errors = streams.errors;
    let run = async {
        let (output, ()) = tokio::join!(read(streams.output, limits.bytes), drain(&mut errors));
        (output, process.ended().await)
    };
    let finished = timeout(limits.time, run).await;
    // Ends what the program has left behind, too.
    process.stop(STOP_TIMEOUT).await;
    let name = &program.shown;
    let failed = |kind, what: String| Err(Error::new(kind, format!("`{name}` {what}")));
    match finished {
        Err(_) => {
            let seconds = limits.time.as_secs();
            failed(ErrorKind::TimedOut, format!("did not end within {seconds} s"))
        }
        Ok((None, _)) => {
            failed(ErrorKind::TooLarge, format!("printed more than {} bytes", limits.bytes))
        }
        Ok((Some(_), Ok(status))) if !status.success() => {
            failed(ErrorKind::Exited, format!("ended with {status}"))
        }
        Ok((Some(_), Err(error))) => {
            failed(ErrorKind::Exited, format!("was lost: {}", error.kind()))
        }
        Ok((Some(output), Ok(_))) => Ok(output),
    }
}

/// The whole output, or `None` if it exceeds the limit.
async fn read(mut stream: impl AsyncRead + Unpin, limit: usize) -> Option<Vec<u8>> {
    let mut output = Vec::new();
    let mut limited = (&mut stream).take(limit as u64 + 1);
    let _ = limited.read_to_end(&mut output).await;
    (output.len() <= limit).then_some(output)
}

async fn drain(stream: &mut (impl AsyncRead + Unpin)) {
    let _ = tokio::io::copy(stream, &mut tokio::io::sink()).await;
}
