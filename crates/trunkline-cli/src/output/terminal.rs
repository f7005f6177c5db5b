//! Standard output and standard error: the only module that writes to them.

use std::borrow::Cow;
#[cfg(unix)]
use std::fs::OpenOptions;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
#[cfg(unix)]
use std::os::fd::{AsFd as _, OwnedFd};
use std::panic::Location;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use trunkline::config::{ColorStyle, is_hidden};
use unicode_width::UnicodeWidthChar as _;

use super::text_layout::{TextLayout, with_label, wrap_message};
use super::{hidden_input, inline_image, pager, stdio};
use crate::settings::{Colors, ImageProtocol, Settings, Verbosity};

/// Whether a stream is a socket that accepts connections. Apple's systems do not say.
#[cfg(all(unix, not(target_vendor = "apple")))]
fn is_listening(stream: &io::Stdin) -> bool {
    rustix::net::sockopt::socket_acceptconn(stream).unwrap_or(false)
}

#[cfg(target_vendor = "apple")]
fn is_listening(_: &io::Stdin) -> bool {
    false
}

/// Writes results and messages.
pub(crate) struct Terminal {
    output_style: ColorStyle,
    message_style: ColorStyle,
    shows_progress: bool,
    says_warnings: bool,
    /// Whether standard output is a terminal.
    is_output_terminal: bool,
    /// Whether any part of a result has been printed.
    has_printed: bool,
    /// How images are shown, if standard output is a terminal that can.
    images: Option<ImageProtocol>,
    /// The command of the pager for long results.
    pager: Option<String>,
    /// A result for the pager.
    paged: String,
}

/// Longest line that is read from standard input.
const MAX_LINE_BYTES: u64 = 64 * 1024;

/// Reads a line of standard input.
pub(crate) fn read_line() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().lock().take(MAX_LINE_BYTES).read_line(&mut line)?;
    Ok(line)
}

impl Terminal {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            output_style: style(settings.colors, io::stdout().is_terminal()),
            message_style: style(settings.colors, io::stderr().is_terminal()),
            shows_progress: settings.progress && io::stderr().is_terminal(),
            says_warnings: settings.verbosity > Verbosity::Quiet,
            is_output_terminal: io::stdout().is_terminal(),
            has_printed: false,
            images: settings.images.filter(|_| io::stdout().is_terminal()),
            pager: settings.pager.clone(),
            paged: String::new(),
        }
    }

    /// Whether results may have colours.
    pub(crate) fn output_style(&self) -> ColorStyle {
        self.output_style
    }

    /// Whether messages may have colours.
    pub(crate) fn message_style(&self) -> ColorStyle {
        self.message_style
    }

    /// Prints a result. A closed pipe, as in `trunkline schema | head`, is not an error.
    pub(crate) fn print(&mut self, text: &str) -> io::Result<()> {
        self.print_on(text).map(|_| ())
    }

    /// Prints that a command has done what it was asked for, unless `--quiet` is set.
    pub(crate) fn confirm(&mut self, text: &str) -> io::Result<()> {
        if self.says_warnings { self.print(text) } else { Ok(()) }
    }

    /// Prints a part of a result. Returns `false` if the reader has closed the pipe.
    pub(crate) fn print_on(&mut self, text: &str) -> io::Result<bool> {
        self.has_printed |= !text.is_empty();
        let text = if self.is_output_terminal { visible(text) } else { text.into() };
        let mut output = io::stdout().lock();
        match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => {
                let message = format!("standard output cannot be written: {error}");
                Err(io::Error::new(error.kind(), message))
            }
            Ok(()) => Ok(true),
        }
    }

    /// Shows an image in a terminal that can. Returns `false` if it is not shown.
    pub(crate) fn print_image(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let columns = self.size().map_or(80, |(width, _)| width);
        let image = self.images.and_then(|protocol| inline_image::encode(protocol, bytes, columns));
        let Some(image) = image else { return Ok(false) };
        self.print_on(&image)
    }

    /// Whether any part of a result has been printed, successfully or not.
    pub(crate) fn has_printed(&self) -> bool {
        self.has_printed
    }

    /// Shows progress on a terminal; [`Terminal::clear_progress`] removes it.
    pub(crate) fn progress(&self, text: &str) {
        if self.shows_progress {
            let size = terminal_size::terminal_size_of(io::stderr());
            let width = size.map_or(usize::MAX, |(width, _)| usize::from(width.0));
            self.say_verbatim(&format!("\r\u{1b}[K{}", cut(text, width)));
        }
    }

    /// Removes the output of [`Terminal::progress`].
    pub(crate) fn clear_progress(&self) {
        self.progress("");
    }

    /// Width and height of the terminal for results; `None` if they go elsewhere.
    pub(crate) fn size(&self) -> Option<(usize, usize)> {
        let (width, height) = terminal_size::terminal_size_of(io::stdout())?;
        Some((usize::from(width.0).max(1), usize::from(height.0).max(1)))
    }

    /// How results are laid out.
    pub(crate) fn layout(&self) -> TextLayout {
        TextLayout { width: self.size().map(|(width, _)| width), style: self.output_style }
    }

    /// Prints a result, in a pager if it is longer than the terminal.
    pub(crate) fn page(&mut self, text: &str) -> io::Result<()> {
        let height = self.size().map_or(usize::MAX, |(_, height)| height);
        let is_long = text.lines().count() >= height && self.has_keyboard();
        match self.pager.is_some() && is_long {
            true => self.paged.push_str(text),
            false => return self.print(text),
        }
        self.has_printed = true;
        Ok(())
    }

    /// Shows the result that is too long for the terminal, once all servers have ended: Ctrl-C is for the pager then.
    pub(crate) fn show_paged(&mut self) -> io::Result<()> {
        let text = std::mem::take(&mut self.paged);
        let Some(pager) = self.pager.take().filter(|_| !text.is_empty()) else { return Ok(()) };
        match pager::show(&pager, &visible(&text)) {
            true => Ok(()),
            false => self.print(&text),
        }
    }

    /// Whether standard input is a terminal.
    pub(crate) fn has_keyboard(&self) -> bool {
        io::stdin().is_terminal()
    }

    /// Whether the user can be prompted: both standard input and stderr are terminals.
    pub(crate) fn can_ask(&self) -> bool {
        self.has_keyboard() && io::stderr().is_terminal()
    }

    /// Prompts for confirmation. Anything but yes is no.
    pub(crate) fn ask(&self, question: &str) -> io::Result<bool> {
        self.say(&format!("{question} [y/N] "));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(is_yes(&answer))
    }

    /// Prompts for confirmation, without blocking other tasks or a signal.
    pub(crate) async fn ask_async(&self, question: &str) -> io::Result<bool> {
        let answer = self.ask_line_async(&format!("{question} [y/N] ")).await?;
        Ok(is_yes(&answer))
    }

    /// Asks for a line, without blocking other tasks or a signal. The end of the input is an error, since there is
    /// no answer.
    pub(crate) async fn ask_line_async(&self, question: &str) -> io::Result<String> {
        self.say_verbatim(question);
        let line = tokio::task::spawn_blocking(read_line).await.map_err(io::Error::other)??;
        match line.is_empty() {
            true => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "there is no answer")),
            false => Ok(line),
        }
    }

    /// Reads a secret: a line from the terminal without echo, or else all of standard input, up to `max`
    /// bytes.
    pub(crate) fn read_secret(&mut self, prompt: &str, max: usize) -> io::Result<String> {
        if self.has_keyboard() {
            self.say(prompt);
            let line = hidden_input::read_line(&io::stdin(), max);
            self.say("\n");
            return line;
        }
        let mut bytes = Vec::new();
        let limit = u64::try_from(max).unwrap_or(u64::MAX);
        io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
        hidden_input::text(bytes)
    }

    /// Reads all of standard input.
    pub(crate) fn read_input(&mut self) -> io::Result<String> {
        io::read_to_string(io::stdin().lock())
    }

    /// Standard input and output as streams, for a server that uses them.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub(crate) fn streams(&mut self) -> (stdio::Input, stdio::Output) {
        let (input, output, messages) = (io::stdin(), io::stdout(), io::stderr());
        let input = stdio::input(&input, &messages);
        let output = stdio::output(&output, &messages);
        (
            input.unwrap_or_else(|| Box::new(tokio::io::stdin())),
            output.unwrap_or_else(|| Box::new(tokio::io::stdout())),
        )
    }

    /// The socket that a supervisor has bound and passes as standard input, if there is one.
    #[cfg(unix)]
    pub(crate) fn listening_socket() -> Option<OwnedFd> {
        let input = io::stdin();
        is_listening(&input).then(|| input.as_fd().try_clone_to_owned())?.ok()
    }

    /// Prints a last line, and closes standard output: its reader waits for the end.
    #[cfg(unix)]
    pub(crate) fn print_last_line(text: &str) {
        // If the reader has ended, the line is for no process.
        let _ = writeln!(io::stdout(), "{text}");
        let _ = io::stdout().flush();
        if let Ok(null) = OpenOptions::new().write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdout(null);
        }
    }

    /// Prints a warning, unless `--quiet` is set.
    pub(crate) fn warn(&self, text: &str) {
        if self.says_warnings {
            self.say(&format!("warning: {text}\n"));
        }
    }

    /// Prints a notice, unless `--quiet` is set.
    pub(crate) fn tell(&self, text: &str) {
        if self.says_warnings {
            self.say(text);
        }
    }

    /// Prints a message to stderr, wrapped if that is a terminal. Failures are ignored.
    pub(crate) fn say(&self, text: &str) {
        let is_logged = LOGS_MESSAGES.load(Ordering::Relaxed);
        match terminal_size::terminal_size_of(io::stderr()) {
            Some((width, _)) if !is_logged => {
                self.say_verbatim(&wrap_message(&visible(text), usize::from(width.0)));
            }
            _ => self.say_verbatim(text),
        }
    }

    /// Prints a message without wrapping: text of others, and questions with it, in which the second line of a sentence could
    /// pass for a line of ours.
    pub(crate) fn say_verbatim(&self, text: &str) {
        write_message(&with_label(&visible(text), self.message_style));
    }
}

/// Whether an answer is yes.
fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// Messages that wait to be written while there is a log.
const MAX_MESSAGES: usize = 4096;

/// Time at the end of the program for the messages that wait.
const LAST_MESSAGES: Duration = Duration::from_secs(1);

/// Whether messages are events of the log.
static LOGS_MESSAGES: AtomicBool = AtomicBool::new(false);

/// The queue of messages, once there is a log.
static QUEUE: OnceLock<MessageQueue> = OnceLock::new();

/// Messages for the thread that writes them to stderr. A log may fill a pipe that is not read;
/// messages that do not fit into the queue are dropped and counted, so that nothing waits for it.
struct MessageQueue {
    messages: SyncSender<QueuedMessage>,
    dropped: AtomicU64,
}

enum QueuedMessage {
    Text(String),
    /// Reports when the messages before it are written.
    Flush(SyncSender<()>),
}

impl MessageQueue {
    fn send(&self, text: &str) {
        if self.messages.try_send(QueuedMessage::Text(text.to_owned())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes messages on a thread of their own from now on, until the guard is dropped.
pub(crate) fn queue_messages() -> QueueGuard {
    let (messages, receiver) = mpsc::sync_channel(MAX_MESSAGES);
    if QUEUE.set(MessageQueue { messages, dropped: AtomicU64::new(0) }).is_ok() {
        thread::spawn(move || write_queued(&receiver));
    }
    QueueGuard
}

/// Writes the messages that wait when dropped.
pub(crate) struct QueueGuard;

impl Drop for QueueGuard {
    fn drop(&mut self) {
        let Some(queue) = QUEUE.get() else { return };
        let (done, finished) = mpsc::sync_channel(1);
        // A full queue means that standard error is not read.
        if queue.messages.try_send(QueuedMessage::Flush(done)).is_ok() {
            let _ = finished.recv_timeout(LAST_MESSAGES);
        }
    }
}

fn write_queued(messages: &Receiver<QueuedMessage>) {
    for message in messages {
        match message {
            QueuedMessage::Text(text) => write_directly(&text),
            QueuedMessage::Flush(done) => drop(done.try_send(())),
        }
        let missing = QUEUE.get().map_or(0, |queue| queue.dropped.swap(0, Ordering::Relaxed));
        if missing > 0 {
            write_directly(&format!("{missing} lines of the log are missing here\n"));
        }
    }
}

/// Writes to stderr, through the queue if there is one. Failures are ignored.
pub(crate) fn write_message(text: &str) {
    if LOGS_MESSAGES.load(Ordering::Relaxed) {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            tracing::info!("{line}");
        }
        return;
    }
    match QUEUE.get() {
        Some(queue) => queue.send(text),
        None => write_directly(text),
    }
}

fn write_directly(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Writes messages to the log instead of stderr from now on, as events.
pub(crate) fn log_messages() {
    LOGS_MESSAGES.store(true, Ordering::Relaxed);
}

/// Escapes invisible characters, and those that change how others are displayed, as in JSON. In a
/// JSON document they occur only in strings, so the document stays equivalent. Control characters
/// below 0x20 are our own: colours, line breaks, and clearing progress.
fn visible(text: &str) -> Cow<'_, str> {
    let is_foreign = |character: char| character >= '\u{7f}' && is_hidden(character);
    if !text.contains(is_foreign) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_foreign(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(character);
        }
    }
    shown.into()
}

/// Truncates a text to one line: a wrapped one could not be removed.
fn cut(text: &str, width: usize) -> String {
    let mut room = width.saturating_sub(1);
    let fits = |character: &char| {
        let needed = character.width().unwrap_or(0);
        let fits = needed <= room;
        room = room.saturating_sub(needed);
        fits
    };
    text.chars().take_while(fits).collect()
}

fn style(colors: Colors, is_terminal: bool) -> ColorStyle {
    match colors {
        Colors::Always => ColorStyle::Colored,
        Colors::OnTerminal if is_terminal => ColorStyle::Colored,
        Colors::OnTerminal | Colors::Never => ColorStyle::Plain,
    }
}

/// Reports panics by their location only: the message may quote data of a client or server.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        write_message(&panic_line(panic.location()));
    }));
}

fn panic_line(place: Option<&Location<'_>>) -> String {
    let place = place.map_or_else(|| "an unknown place".to_owned(), Location::to_string);
    format!(
        "error: trunkline has a defect at {place}, and what it did there failed; please report this\n"
    )
}

/// Prints help, the version, or a usage error.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let is_mistake = error.use_stderr();
    match error.print() {
        Err(error) if !is_mistake && error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ if is_mistake => ExitCode::from(2),
        _ => ExitCode::SUCCESS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-3: such characters reach no terminal from any sender, and JSON stays equivalent.
    #[test]
    fn characters_that_are_not_seen_are_written_as_escapes() {
        let text =
            "{\"a\": \"x\u{202e}y\u{2028}z\u{e0041}\u{9b}2J\"}\n\u{1b}[1mbold\u{1b}[0m größe";
        let shown = visible(text);
        assert_eq!(
            shown,
            "{\"a\": \"x\\u202ey\\u2028z\\udb40\\udc41\\u009b2J\"}\n\u{1b}[1mbold\u{1b}[0m größe"
        );
        let [before, after] = [text, &shown].map(|text| {
            serde_json::from_str::<serde_json::Value>(text.lines().next().unwrap()).unwrap()
        });
        assert_eq!(before, after);
    }

    #[test]
    fn messages_beyond_the_queue_are_dropped_and_counted() {
        let (messages, _receiver) = mpsc::sync_channel(2);
        let queue = MessageQueue { messages, dropped: AtomicU64::new(0) };
        for _ in 0..5 {
            queue.send("line\n");
        }
        assert_eq!(queue.dropped.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_panic_is_reported_by_its_place() {
        let line = panic_line(Some(Location::caller()));
        assert!(line.starts_with("error: ") && line.contains("terminal.rs:"), "{line}");
        assert_eq!(line.lines().count(), 1);
    }
}
