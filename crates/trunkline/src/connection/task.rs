//! The task that owns a server: it starts it when needed, passes calls on, and says how it is.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::handshake::{Opened, Opener};
use super::lists::{Next, Tool, ToolPages, page_params};
use super::options::Options;
use super::session::{Answer, Asked, Event, Ids, Session, gone};
use super::status::{State, Status};
use crate::config::{Server, Transport};
use crate::error::{Error, ErrorKind};
use crate::message::Raw;

/// Requests that may wait for one server. What comes on top is told so at once.
const MAX_PENDING: usize = 1024;

/// What the task can be told.
pub(super) enum Command {
    /// Be ready; say when, or why not.
    Connect(oneshot::Sender<Result<(), Error>>),
    /// Pass a request on.
    Ask(Asked),
    /// End, and say when nothing is left.
    Close(oneshot::Sender<()>),
}

/// The task of one server.
pub(super) struct Task {
    pub(super) server: Arc<Server>,
    pub(super) options: Options,
    pub(super) ids: Arc<Ids>,
    pub(super) commands: mpsc::Receiver<Command>,
    /// Requests that nobody waits for any more.
    pub(super) abandoned: mpsc::UnboundedReceiver<u64>,
    pub(super) status: watch::Sender<Status>,
    pub(super) tools: watch::Sender<Arc<[Tool]>>,
}

/// Why the task stops serving a session.
enum End {
    /// The server ended.
    Server(Error),
    /// We were told to end, by this command if nobody was lost.
    Told(Option<Command>),
}

impl Task {
    pub(super) async fn run(mut self) {
        let mut failure: Option<Error> = None;
        while let Some(command) = self.commands.recv().await {
            match (&command, failure.as_ref().filter(|_| !self.may_return())) {
                (Command::Close(_), _) => return self.stopped(Some(command)),
                // Once a process has ended it stays down until somebody asks for it (CON-5).
                (Command::Ask(_), Some(error)) => {
                    refuse(command, error);
                    continue;
                }
                _ => {}
            }
            let mut waiting = Vec::from([command]);
            let opened = tokio::select! {
                opened = open(&self.server, &self.options, &self.ids, &self.status) => opened,
                // Whoever wants us to end does not wait for a server that hangs at its start.
                close = told_to_close(&mut self.commands, &mut waiting) => {
                    return self.stopped(close);
                }
            };
            failure = match opened {
                Ok(opened) => match self.serve(opened, waiting).await {
                    End::Server(error) => Some(self.failed(error)),
                    End::Told(close) => return self.stopped(close),
                },
                Err(error) => {
                    let error = self.failed(error);
                    waiting.into_iter().for_each(|command| refuse(command, &error));
                    Some(error)
                }
            };
        }
        self.stopped(None);
    }

    /// Whether a server that failed is tried again when it is needed. What failed on the network
    /// may be back; a process that ended is not.
    fn may_return(&self) -> bool {
        matches!(self.server.transport, Transport::Remote(_))
    }

    /// Serves until the server ends or we are told to.
    async fn serve(&mut self, opened: Opened, waiting: Vec<Command>) -> End {
        let Opened { mut session, tools, .. } = opened;
        self.noticed(&session);
        self.tools.send_replace(tools.tools.into());
        for command in waiting {
            self.obey(&mut session, command);
        }
        let mut listing = None;
        let end = loop {
            tokio::select! {
                event = session.next() => match event {
                    Event::Ended(error) => break End::Server(error),
                    Event::Told(told) if &*told.method == "notifications/tools/list_changed" => {
                        listing = Some(Listing::start(&mut session, self.ask_for_list(None)));
                    }
                    Event::Told(_) => {}
                    Event::Noise => self.noticed(&session),
                },
                answer = listed(&mut listing) => self.took_page(&mut session, &mut listing, answer),
                Some(id) = self.abandoned.recv() => session.abandon(id),
                command = self.commands.recv() => match command {
                    Some(command @ Command::Close(_)) => break End::Told(Some(command)),
                    Some(command) => self.obey(&mut session, command),
                    None => break End::Told(None),
                },
            }
        };
        self.noticed(&session);
        session.close(self.server.behaviour.timeouts.shutdown).await;
        end
    }

    /// Says what the server has said beside its messages.
    fn noticed(&self, session: &Session) {
        self.status.send_modify(|status| {
            status.noise = session.noise;
            status.stderr = session.wire().last_lines();
        });
    }

    /// A request for a page of the list of tools.
    fn ask_for_list(&self, cursor: Option<Raw>) -> (Asked, oneshot::Receiver<Answer>) {
        let (reply, answer) = oneshot::channel();
        let asked = Asked {
            id: self.ids.next(),
            method: "tools/list".into(),
            params: cursor.map(|cursor| page_params(&cursor)),
            deadline: Instant::now() + self.server.behaviour.timeouts.list,
            reply,
        };
        (asked, answer)
    }

    /// Takes a page of a list that has changed. One that cannot be had leaves the old list.
    fn took_page(&mut self, session: &mut Session, listing: &mut Option<Listing>, answer: Answer) {
        let Some(mut current) = listing.take() else { return };
        let Ok(Ok(page)) = answer else { return };
        match current.pages.add(&page) {
            Err(error) => self.status.send_modify(|status| {
                status.last_error = Some(error.of(&self.server.name));
            }),
            Ok(Next::Page(cursor)) => {
                let (asked, answer) = self.ask_for_list(Some(cursor));
                session.ask(asked);
                current.answer = answer;
                *listing = Some(current);
            }
            Ok(Next::Done) => {
                let list = current.pages.finish();
                self.status.send_modify(|status| {
                    status.tools = list.tools.len();
                    status.set_aside = list.set_aside;
                });
                self.tools.send_replace(list.tools.into());
            }
        }
    }

    fn obey(&mut self, session: &mut Session, command: Command) {
        match command {
            Command::Connect(done) => {
                let _ = done.send(Ok(()));
            }
            Command::Ask(asked) if session.pending() >= MAX_PENDING => {
                let message = format!("more than {MAX_PENDING} calls wait for it already");
                let _ = asked.reply.send(Err(Error::new(ErrorKind::TooLarge, message)));
            }
            Command::Ask(mut asked) => {
                // What was left of the time for the start is not time for the call.
                let call = self.server.behaviour.timeouts.call;
                asked.deadline = asked.deadline.min(Instant::now() + call);
                self.status.send_modify(|status| status.calls += 1);
                session.ask(asked);
            }
            // Taken by whoever received it.
            Command::Close(_) => {}
        }
    }

    fn failed(&mut self, error: Error) -> Error {
        let error = error.of(&self.server.name);
        self.tools.send_replace(Arc::new([]));
        self.status.send_modify(|status| {
            status.state = State::Failed;
            status.last_error = Some(error.clone());
            status.tools = 0;
            status.process_id = None;
            status.ready_since = None;
        });
        error
    }

    /// Says that the server has been ended, and to whoever asked for it that it is done.
    fn stopped(&mut self, close: Option<Command>) {
        self.tools.send_replace(Arc::new([]));
        self.status.send_modify(|status| {
            status.state = State::Stopped;
            status.process_id = None;
            status.ready_since = None;
        });
        if let Some(Command::Close(done)) = close {
            let _ = done.send(());
        }
    }
}

/// Starts the server and says how it is.
async fn open(
    server: &Server,
    options: &Options,
    ids: &Ids,
    status: &watch::Sender<Status>,
) -> Result<Opened, Error> {
    status.send_modify(|status| status.state = State::Starting);
    let opener = Opener { server, options, ids };
    let opened = opener.open().await?;
    status.send_modify(|status| {
        status.state = State::Ready;
        status.protocol = Some(opened.session.generation.revision().into());
        status.server_info.clone_from(&opened.server_info);
        status.tools = opened.tools.tools.len();
        status.set_aside.clone_from(&opened.tools.set_aside);
        status.last_error = None;
        status.process_id = opened.session.wire().process_id();
        status.ready_since = Some(std::time::Instant::now());
    });
    Ok(opened)
}

/// Waits for the command to close, while others queue up. `None` when nobody can command any more.
async fn told_to_close(
    commands: &mut mpsc::Receiver<Command>,
    waiting: &mut Vec<Command>,
) -> Option<Command> {
    loop {
        match commands.recv().await {
            Some(close @ Command::Close(_)) => return Some(close),
            Some(command) if waiting.len() < MAX_PENDING => waiting.push(command),
            Some(command) => {
                let message = format!("more than {MAX_PENDING} calls wait for it already");
                refuse(command, &Error::new(ErrorKind::TooLarge, message));
            }
            None => return None,
        }
    }
}

/// A list that is being asked for again, while calls go on.
struct Listing {
    pages: ToolPages,
    answer: oneshot::Receiver<Answer>,
}

impl Listing {
    fn start(session: &mut Session, (asked, answer): (Asked, oneshot::Receiver<Answer>)) -> Self {
        session.ask(asked);
        Self { pages: ToolPages::default(), answer }
    }
}

/// The next page of a list that is being asked for; never, if none is.
async fn listed(listing: &mut Option<Listing>) -> Answer {
    match listing {
        Some(listing) => (&mut listing.answer).await.unwrap_or_else(|_| Err(gone())),
        None => std::future::pending().await,
    }
}

/// Answers a command that came to nothing.
fn refuse(command: Command, error: &Error) {
    match command {
        Command::Connect(done) => {
            let _ = done.send(Err(error.clone()));
        }
        Command::Ask(asked) => {
            let _ = asked.reply.send(Err(error.clone()));
        }
        Command::Close(done) => {
            let _ = done.send(());
        }
    }
}

/// Somebody's wait for an answer. Dropping it forgets the request and tells the server.
pub(super) struct Wait {
    pub(super) id: u64,
    pub(super) answer: oneshot::Receiver<Answer>,
    pub(super) abandoned: mpsc::UnboundedSender<u64>,
    pub(super) deadline: Instant,
    pub(super) answered: bool,
}

impl Wait {
    /// Waits for the answer, and not a moment longer than it may take.
    pub(super) async fn answer(mut self) -> Answer {
        // The task watches the deadline; this catches the time before it has seen the request.
        let answer = tokio::time::timeout_at(self.deadline, &mut self.answer).await;
        match answer {
            Ok(answer) => {
                self.answered = true;
                answer.unwrap_or_else(|_| Err(gone()))
            }
            Err(_) => Err(Error::new(ErrorKind::TimedOut, "it did not answer in time")),
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if !self.answered {
            let _ = self.abandoned.send(self.id);
        }
    }
}
