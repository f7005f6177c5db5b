//! Relays messages between a client and the service. The connection to the service is made again when it is
//! lost; the client does not notice, except for errors to requests that were in flight.

use std::future::pending;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, sleep_until, timeout};
use trunkline_gateway::{InputLine, Limits, LineReader};

use super::client_session::{ClientSession, too_long_response, unsent_response};
use super::line_queue::LineQueue;
use crate::socket::dial::Link;
use crate::socket::hello::{EndReason, Goodbye};

/// Bytes that wait for one side before the other is read on.
const MAX_WAITING: usize = 4 * 1024 * 1024;

/// How long the last responses may take after the client has closed its side.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// How long the client may take to read the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// How long a connection is tried again before the next message of the client is waited for.
const RETRY: Duration = Duration::from_secs(30);

/// How often a service is checked that has not answered a request.
const PROBE: Duration = Duration::from_secs(30);

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// How to connect to the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialMode {
    /// Starts it, if it does not run.
    Start,
    /// Only if it runs.
    Join,
}

/// The service, for one client.
pub(crate) trait ServiceAccess {
    /// Connects to it; `None` if it does not run.
    fn dial(&self, mode: DialMode) -> DialFuture<'_>;

    /// Checks that it responds. It need not run.
    fn probe(&self) -> ProbeFuture<'_>;
}

/// A connection that is being made.
pub(crate) type DialFuture<'a> = Pin<Box<dyn Future<Output = Result<Option<Link>>> + 'a>>;

/// A check of the service.
pub(crate) type ProbeFuture<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// Relays messages until the client closes its side.
///
/// # Errors
///
/// If the streams of the client fail. An unreachable service is reported to the client.
pub(crate) async fn relay<R, W>(
    (input, output): (R, W),
    service: &impl ServiceAccess,
    report: impl Fn(&str),
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let input = LineReader::new(input, Limits::default().message_bytes);
    let relay = Relay {
        input: Some(input),
        output,
        service,
        report,
        probe: None,
        probe_at: Instant::now() + PROBE,
        session: ClientSession::default(),
        link: None,
        dialing: None,
        retry: Some(Retry::now(DialMode::Start)),
        to_client: LineQueue::default(),
        to_service: LineQueue::default(),
    };
    relay.run().await
}

struct Relay<'a, R, W, S, P> {
    /// `None` once the client has closed it.
    input: Option<LineReader<R>>,
    output: W,
    service: &'a S,
    report: P,
    session: ClientSession,
    link: Option<Link>,
    dialing: Option<DialFuture<'a>>,
    /// A check of a service that has not answered for long.
    probe: Option<ProbeFuture<'a>>,
    probe_at: Instant,
    /// When to try again, and until when.
    retry: Option<Retry>,
    to_client: LineQueue,
    /// Messages that were not sent.
    to_service: LineQueue,
}

#[derive(Clone, Copy)]
struct Retry {
    mode: DialMode,
    at: Instant,
    until: Instant,
}

impl Retry {
    fn now(mode: DialMode) -> Self {
        Self { mode, at: Instant::now(), until: Instant::now() + RETRY }
    }
}

/// One thing that happened.
enum Event {
    FromClient(Option<InputLine>),
    FromService(Option<InputLine>),
    Written,
    WriteClosed,
    Dialed(Result<Option<Link>>),
    RetryTime,
    ProbeTime,
    Probed(Result<()>),
}

impl<'a, R, W, S, P> Relay<'a, R, W, S, P>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
    S: ServiceAccess,
    P: Fn(&str),
{
    async fn run(mut self) -> io::Result<()> {
        // The last messages of a client that closes its side at once are sent too.
        while self.input.is_some() || !self.to_service.is_empty() {
            self.start_lines();
            match self.next().await? {
                Event::FromClient(line) => self.on_client(line),
                Event::FromService(Some(InputLine::Message(line))) => self.on_service(&line),
                Event::FromService(_) => self.on_lost(None),
                Event::WriteClosed => {
                    if let Some(link) = &mut self.link {
                        link.is_write_closed = true;
                    }
                }
                Event::Dialed(dialed) => self.on_dialed(dialed),
                Event::RetryTime => self.redial(),
                Event::ProbeTime => self.probe = Some(self.service.probe()),
                Event::Probed(probed) => self.on_probed(probed),
                Event::Written => {}
            }
        }
        self.finish().await
    }

    /// The next event. Each branch can be dropped without loss.
    async fn next(&mut self) -> io::Result<Event> {
        let may_read = self.to_service.len() < MAX_WAITING;
        let may_receive = self.to_client.len() < MAX_WAITING;
        let can_write = self.link.as_ref().is_some_and(|link| !link.is_write_closed);
        let (link_lines, link_writer) = match &mut self.link {
            Some(link) => (Some(&mut link.lines), Some(&mut link.writer)),
            None => (None, None),
        };
        let (is_linked, is_waiting) = (link_lines.is_some(), self.session.is_waiting());
        let output = &mut self.output;
        tokio::select! {
            line = read(self.input.as_mut()), if may_read => Ok(Event::FromClient(line?)),
            // A failed connection and a closed one are the same.
            line = read(link_lines), if may_receive && is_linked => {
                Ok(Event::FromService(line.unwrap_or_default()))
            }
            written = self.to_client.write_to(Some(output)), if self.to_client.has_started() => {
                written.map(|()| Event::Written)
            }
            written = self.to_service.write_to(link_writer),
                if can_write && self.to_service.has_started() =>
            {
                Ok(if written.is_ok() { Event::Written } else { Event::WriteClosed })
            }
            dialed = poll_dialing(&mut self.dialing) => Ok(Event::Dialed(dialed)),
            () = wait_for(self.retry), if self.dialing.is_none() => Ok(Event::RetryTime),
            () = sleep_until(self.probe_at), if is_linked && is_waiting && self.probe.is_none() => {
                Ok(Event::ProbeTime)
            }
            probed = poll_probe(&mut self.probe) => Ok(Event::Probed(probed)),
        }
    }

    fn on_client(&mut self, line: Option<InputLine>) {
        match line {
            None => self.input = None,
            Some(InputLine::Message(line)) => self.to_service.push(line),
            Some(InputLine::TooLong) => {
                self.to_client.push(too_long_response(Limits::default().message_bytes));
            }
        }
        if self.link.is_none() && self.dialing.is_none() && !self.to_service.is_empty() {
            self.retry = Some(Retry::now(DialMode::Start));
        }
    }

    /// Starts the next line in each direction. A message to the service is recorded as sent when its first
    /// byte is about to be written.
    fn start_lines(&mut self) {
        self.to_client.start(|line| Some(line.clone()));
        if self.link.is_some() {
            let session = &mut self.session;
            self.to_service.start(|line| session.send(line));
        }
    }

    fn on_service(&mut self, line: &Bytes) {
        if let Some(reason) = goodbye(line) {
            return self.on_lost(Some(reason));
        }
        self.session.receive(line).into_iter().for_each(|line| self.to_client.push(line));
        if let Some(problem) = self.session.take_replay_problem() {
            (self.report)(&format!("the session could not be opened again as it was: {problem}"));
        }
    }

    /// Handles the loss of the connection. A service that was killed is started again, for a client that
    /// has a session.
    fn on_lost(&mut self, reason: Option<EndReason>) {
        self.link = None;
        self.to_service.forget_started();
        for message in self.session.on_lost() {
            self.to_client.push(message);
        }
        let is_waiting = self.session.is_waiting() || !self.to_service.is_empty();
        let needs_service = self.session.is_live() || is_waiting;
        self.retry = match reason {
            Some(EndReason::Stopped) if !is_waiting => None,
            Some(EndReason::Restarts) => Some(Retry::now(DialMode::Join)),
            _ if needs_service => Some(Retry::now(DialMode::Start)),
            _ => None,
        };
    }

    /// Gives up a connection to a service that does not respond to anything.
    fn on_probed(&mut self, probed: Result<()>) {
        (self.probe, self.probe_at) = (None, Instant::now() + PROBE);
        if let Err(error) = probed {
            (self.report)(&format!("{error:#}"));
            self.on_lost(None);
        }
    }

    fn redial(&mut self) {
        if let Some(retry) = self.retry {
            self.dialing = Some(self.service.dial(retry.mode));
        }
    }

    fn on_dialed(&mut self, dialed: Result<Option<Link>>) {
        self.dialing = None;
        match dialed {
            Ok(Some(link)) => self.on_linked(link),
            Ok(None) => self.try_again(None),
            Err(error) => self.try_again(Some(&error)),
        }
    }

    fn on_linked(&mut self, link: Link) {
        if let (Some(notice), false) =
            (link.welcome.response["notice"].as_str(), self.session.was_lost())
        {
            (self.report)(notice);
        }
        self.link = Some(link);
        self.retry = None;
        for message in self.session.replay().into_iter().rev() {
            self.to_service.push_recorded(message);
        }
        for message in self.session.list_changes().into_iter().filter(|_| self.session.was_lost()) {
            self.to_client.push(message);
        }
    }

    /// Tries again later, or gives up until the next message of the client.
    fn try_again(&mut self, error: Option<&anyhow::Error>) {
        let Some(retry) = self.retry else { return };
        let at = Instant::now() + PAUSE;
        // An error of the start itself will not go away by trying again.
        if error.is_none() && at < retry.until {
            // Another service should have come by now.
            let is_waiting = self.session.is_waiting() || !self.to_service.is_empty();
            let mode = if is_waiting { DialMode::Start } else { retry.mode };
            self.retry = Some(Retry { mode, at, ..retry });
            return;
        }
        self.retry = None;
        let message = match error {
            Some(error) => format!("{error:#}"),
            None => "the background service does not run".to_owned(),
        };
        (self.report)(&message);
        for line in self.to_service.drain() {
            self.to_client.extend(unsent_response(&line, &message, error.is_none()));
        }
        self.session.give_up(&message).into_iter().for_each(|line| self.to_client.push(line));
    }

    /// Passes on the last responses after the client has closed its side.
    async fn finish(mut self) -> io::Result<()> {
        let rest = async {
            while self.link.is_some() && self.to_service.has_started() {
                let writer = self.link.as_mut().map(|link| &mut link.writer);
                if self.to_service.write_to(writer).await.is_err() {
                    break;
                }
                self.start_lines();
            }
            if let Some(link) = &mut self.link {
                let _ = link.writer.shutdown().await;
            }
            while let Some(link) = &mut self.link {
                self.to_client.write_all_to(&mut self.output).await?;
                match link.lines.next().await {
                    Ok(Some(InputLine::Message(line))) if goodbye(&line).is_none() => {
                        let lines = self.session.receive(&line);
                        lines.into_iter().for_each(|line| self.to_client.push(line));
                    }
                    _ => self.link = None,
                }
            }
            self.to_client.write_all_to(&mut self.output).await
        };
        let finished = timeout(LAST_ANSWERS, rest).await;
        // What was not answered in time, or not by a service that ended meanwhile.
        self.session.on_lost().into_iter().for_each(|line| self.to_client.push(line));
        let last = timeout(LAST_LINES, self.to_client.write_all_to(&mut self.output)).await;
        finished.unwrap_or(Ok(())).and(last.unwrap_or(Ok(())))
    }
}

fn goodbye(line: &Bytes) -> Option<EndReason> {
    let goodbye: Goodbye = serde_json::from_slice(line).ok()?;
    Some(goodbye.trunkline)
}

/// The next line of a stream; waits forever if there is none.
async fn read<R: AsyncRead + Unpin>(
    reader: Option<&mut LineReader<R>>,
) -> io::Result<Option<InputLine>> {
    match reader {
        Some(reader) => reader.next().await,
        None => pending().await,
    }
}

async fn poll_dialing(dialing: &mut Option<DialFuture<'_>>) -> Result<Option<Link>> {
    match dialing {
        Some(dialing) => dialing.await,
        None => pending().await,
    }
}

async fn poll_probe(probe: &mut Option<ProbeFuture<'_>>) -> Result<()> {
    match probe {
        Some(probe) => probe.await,
        None => pending().await,
    }
}

async fn wait_for(retry: Option<Retry>) {
    match retry {
        Some(retry) => sleep_until(retry.at).await,
        None => pending().await,
    }
}
