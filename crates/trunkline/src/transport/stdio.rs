//! The stdio transport: a child process with one message per line on its standard input and output.

mod process_group;
#[cfg(windows)]
mod job;
#[cfg(target_os = "linux")]
mod procfs;
mod own_children;
mod shared_read;
mod watchdog;
pub(super) mod process;
pub(super) mod program_output;
pub(super) mod standalone;
#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::process::ExitStatus;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::debug;

use super::oversized_response::{OversizedResponse, incoming};
use super::stderr_tail::StderrTail;
use super::write_queue::WriteQueue;
use super::{InboundEvent, MAX_MESSAGE_BYTES, OutboundMessage};
use crate::config::{MISCONFIGURED_EXIT_STATUS, ResolvedStdio, Secret, is_harmless_variable};
use crate::error::{Error, ErrorKind};
use crate::message::{DiscardedLine, LineBuffer, OversizedLine};
use crate::wake_filter::WakeFilter;
use process::{ChildOptions, ChildStreams, RemainingProcess, ServerProcess};

/// Time to drain the streams of a process that has exited, and time for a process to exit after it
/// closed its output.
const REMAINING_OUTPUT: Duration = Duration::from_millis(250);

/// A transport to a child process.
pub(crate) struct StdioTransport {
    process: ServerProcess,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    lines: LineBuffer<OversizedResponse>,
    outbox: WriteQueue,
    tail: StderrTail,
    ending: Option<ExitWait>,
    has_spoken: bool,
    /// For standard error and the exit of the process: calls do not poll them.
    rare_events: WakeFilter,
}

impl StdioTransport {
    /// Starts the process.
    pub(crate) fn start(program: &ResolvedStdio, options: &ChildOptions) -> Result<Self, Error> {
        let process = ServerProcess::start(program, options)?;
        let tail = StderrTail::with_secrets(program_secrets(program, options));
        Ok(Self::new(process, tail, MAX_MESSAGE_BYTES))
    }

    /// A transport to a process that has just been started, with lines up to a limit.
    fn new(
        (process, ChildStreams { input, output, errors }): (ServerProcess, ChildStreams),
        tail: StderrTail,
        max_line_bytes: usize,
    ) -> Self {
        debug!(process = process.id(), "process started");
        Self {
            process,
            input: Some(input),
            output: Some(output),
            errors: Some(errors),
            lines: LineBuffer::new(max_line_bytes),
            outbox: WriteQueue::default(),
            tail,
            ending: None,
            has_spoken: false,
            rare_events: WakeFilter::default(),
        }
    }

    /// The process ID, while it runs.
    pub(crate) fn process_id(&self) -> Option<u32> {
        self.process.id()
    }

    /// The last lines of its standard error.
    pub(crate) fn tail(&self) -> &StderrTail {
        &self.tail
    }

    /// Queues a message. Bytes move in [`next`](Self::next).
    pub(crate) fn send(&mut self, message: OutboundMessage) {
        self.outbox.push(message);
    }

    /// Removes a request from the queue, if no part of it has been written. Returns whether it did.
    pub(crate) fn cancel(&mut self, id: u64) -> bool {
        self.outbox.remove(id)
    }

    /// Whether the write queue is full, so that nothing more should be sent.
    pub(crate) fn is_full(&self) -> bool {
        self.outbox.is_full()
    }

    /// Whether a part of a line has been read.
    pub(crate) fn has_partial_line(&self) -> bool {
        self.lines.has_partial_line()
    }

    /// Moves bytes both ways until an event occurs. Cancel safe.
    pub(crate) async fn next(&mut self) -> InboundEvent {
        loop {
            if self.outbox.has_overflowed() {
                return InboundEvent::Closed(unread());
            }
            if let Some(incoming) = self.next_incoming() {
                return incoming;
            }
            if self.ending.is_none() {
                self.step().await;
            } else if self.wind_down().await {
                return self.last_incoming();
            }
        }
    }

    /// The event of the next buffered line.
    fn next_incoming(&mut self) -> Option<InboundEvent> {
        while let Some(line) = self.lines.next_line() {
            // An oversized line that is no response is skipped.
            if let Some(incoming) = incoming(line) {
                return Some(incoming);
            }
        }
        None
    }

    /// Performs one read or write.
    async fn step(&mut self) {
        let errors = read_errors(&mut self.errors, &self.tail);
        let rare_step = RareStep::next(&mut self.rare_events, errors, self.process.ended());
        tokio::select! {
            written = write(&mut self.input, &mut self.outbox), if !self.outbox.is_empty() => {
                if written.is_err() {
                    // It no longer reads. Its remaining output determines the error.
                    self.input = None;
                    self.outbox.clear();
                    self.ending = Some(ExitWait::new(None));
                }
            }
            read = read_output(&mut self.output, &mut self.lines) => {
                if !self.has_spoken {
                    self.has_spoken = true;
                    self.process.on_first_output();
                }
                if !matches!(read, Ok(count) if count > 0) {
                    self.output = None;
                    self.ending = Some(ExitWait::new(None));
                }
            }
            step = rare_step => match step {
                RareStep::ErrorsRead(read) => {
                    if !matches!(read, Ok(count) if count > 0) {
                        self.errors = None;
                    }
                }
                RareStep::Ended(status) => self.ending = Some(ExitWait::new(status.ok())),
            }
        }
    }

    /// Drains the streams of a process that has exited or closed its output. Returns whether that
    /// is complete, at the latest at the deadline: descendants may hold the streams open for ever.
    async fn wind_down(&mut self) -> bool {
        let Some(ending) = &mut self.ending else { return false };
        if ending.status.is_some() && self.output.is_none() && self.errors.is_none() {
            return true;
        }
        tokio::select! {
            biased;
            read = read_output(&mut self.output, &mut self.lines) => {
                if !matches!(read, Ok(count) if count > 0) {
                    self.output = None;
                }
                false
            }
            read = read_errors(&mut self.errors, &self.tail) => {
                if !matches!(read, Ok(count) if count > 0) {
                    self.errors = None;
                }
                false
            }
            status = self.process.ended(), if ending.status.is_none() => {
                ending.status = status.ok();
                ending.status.is_none()
            }
            () = sleep_until(ending.deadline) => true,
        }
    }

    fn last_incoming(&mut self) -> InboundEvent {
        if let Some(incoming) = self.lines.last_line().and_then(incoming) {
            return incoming;
        }
        let status = self.ending.as_ref().and_then(|ending| ending.status);
        debug!(status = status.map(display), "process ended");
        InboundEvent::Closed(match status {
            Some(status) => {
                let is_misconfigured = status.code() == Some(MISCONFIGURED_EXIT_STATUS.into());
                let kind =
                    if is_misconfigured { ErrorKind::StartFailed } else { ErrorKind::Exited };
                Error::new(kind, format!("the process ended ({status})"))
            }
            None => {
                let what = if self.output.is_none() { "output" } else { "input" };
                let message = format!("it closed its {what} and is still running");
                Error::new(ErrorKind::ProtocolViolation, message)
            }
        })
    }

    /// Stops the process and all its descendants. Returns the processes that could not be ended.
    /// The streams are drained until then: a process that blocks on output may not exit cleanly.
    pub(crate) async fn close(self, patience: Duration) -> Vec<RemainingProcess> {
        let Self { process, input, mut output, mut errors, tail, .. } = self;
        drop(input);
        let mut lines = LineBuffer::<DiscardedLine>::new(MAX_MESSAGE_BYTES);
        let remaining_output = async {
            while output.is_some() || errors.is_some() {
                tokio::select! {
                    read = read_output(&mut output, &mut lines) => {
                        if !matches!(read, Ok(count) if count > 0) {
                            output = None;
                        }
                        while lines.next_line().is_some() {}
                    }
                    read = read_errors(&mut errors, &tail) => {
                        if !matches!(read, Ok(count) if count > 0) {
                            errors = None;
                        }
                    }
                }
            }
        };
        let mut remaining_output = std::pin::pin!(remaining_output);
        let mut stopped = std::pin::pin!(process.stop(patience));
        tokio::select! {
            // The last output may still be in the pipe when the process is gone.
            remaining = &mut stopped => {
                let _ = timeout(REMAINING_OUTPUT, remaining_output).await;
                remaining
            }
            () = &mut remaining_output => stopped.await,
        }
    }
}

/// An event that calls do not cause.
enum RareStep {
    /// Bytes of standard error were read, or its end.
    ErrorsRead(io::Result<usize>),
    /// The process ended.
    Ended(io::Result<ExitStatus>),
}

impl RareStep {
    /// The next event, from futures whose sources keep the waker if they are dropped.
    async fn next(
        filter: &mut WakeFilter,
        errors: impl Future<Output = io::Result<usize>>,
        end: impl Future<Output = io::Result<ExitStatus>>,
    ) -> Self {
        let (mut errors, mut end) = (pin!(errors), pin!(end));
        poll_fn(|context| {
            // The end first: a process that it leaves behind may write without end.
            filter.poll(context, |context| match end.as_mut().poll(context) {
                Poll::Ready(status) => Poll::Ready(Self::Ended(status)),
                Poll::Pending => errors.as_mut().poll(context).map(Self::ErrorsRead),
            })
        })
        .await
    }
}

/// The process does not read its input fast enough.
fn unread() -> Error {
    let message = "it does not read what it is sent, and too much waits for it";
    Error::new(ErrorKind::ProtocolViolation, message)
        .with_hint("it may hang, or ask without waiting for answers: its own log may say more")
}

/// A process that is exiting.
struct ExitWait {
    /// Its exit status, once it has exited.
    status: Option<ExitStatus>,
    deadline: Instant,
}

impl ExitWait {
    fn new(status: Option<ExitStatus>) -> Self {
        Self { status, deadline: Instant::now() + REMAINING_OUTPUT }
    }
}

/// Values given to the process that must not appear in displayed text. Paths, packages, ports and
/// literal arguments are not secret: messages of the process refer to them.
pub(crate) fn program_secrets(program: &ResolvedStdio, options: &ChildOptions) -> Vec<Secret> {
    // A literal command is not secret; a command with a resolved reference is shown by its
    // reference.
    let is_shown = Path::new(program.command.expose()).ends_with(&*program.shown);
    let command = Some(&program.command).filter(|_| !is_shown);
    let variables = program.env.iter().filter_map(|(name, value)| {
        value.as_ref().filter(|value| !is_harmless_variable(name, value.expose()))
    });
    let whole = variables.chain(&program.credentials).chain(command);
    let inherited = options.inherited_secrets(&program.inherit_env);
    // A process may print the resolved part of an argument on its own.
    whole.chain(&program.filled_in).chain(inherited).cloned().collect()
}

/// Writes as much of the queue as one write takes.
async fn write(input: &mut Option<ChildStdin>, outbox: &mut WriteQueue) -> io::Result<()> {
    let Some(input) = input else { return Err(io::ErrorKind::BrokenPipe.into()) };
    let (slices, count) = outbox.slices();
    let written = input.write_vectored(&slices[..count]).await?;
    outbox.advance(written)
}

async fn read_output(
    output: &mut Option<ChildStdout>,
    lines: &mut LineBuffer<impl OversizedLine>,
) -> io::Result<usize> {
    let Some(output) = output else { return std::future::pending().await };
    if lines.has_partial_line() {
        return output.read_buf(lines.room()).await;
    }
    shared_read::read(output, |bytes| lines.push(bytes)).await
}

async fn read_errors(errors: &mut Option<ChildStderr>, tail: &StderrTail) -> io::Result<usize> {
    match errors {
        Some(errors) => shared_read::read(errors, |bytes| tail.add(bytes)).await,
        None => std::future::pending().await,
    }
}
