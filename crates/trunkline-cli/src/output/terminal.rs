//! Standard output and standard error: the only module that writes to them.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::panic::Location;
use std::process::ExitCode;

use trunkline::config::{ColorStyle, escape_control, is_hidden};
use unicode_width::UnicodeWidthChar as _;

use super::stdio;
use crate::settings::{Colors, Settings, Verbosity};

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

    /// Whether any part of a result has been printed, successfully or not.
    pub(crate) fn has_printed(&self) -> bool {
        self.has_printed
    }

    /// Shows progress on a terminal; [`Terminal::clear_progress`] removes it.
    pub(crate) fn progress(&self, text: &str) {
        if self.shows_progress {
            let size = terminal_size::terminal_size_of(io::stderr());
            let width = size.map_or(usize::MAX, |(width, _)| usize::from(width.0));
            self.say(&format!("\r\u{1b}[K{}", cut(text, width)));
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
        Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
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

    /// Prints a message to stderr. Failures are ignored.
    pub(crate) fn say(&self, text: &str) {
        let _ = io::stderr().lock().write_all(visible(text).as_bytes());
    }
}

/// Writes a line of the log to stderr. Failures are ignored.
pub(crate) fn write_log(line: &str) {
    let text = format!("{}\n", escape_control(line.trim_end_matches('\n')));
    let _ = io::stderr().lock().write_all(text.as_bytes());
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
        let line = panic_line(panic.location());
        let _ = io::stderr().lock().write_all(line.as_bytes());
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
    fn a_panic_is_reported_by_its_place() {
        let line = panic_line(Some(Location::caller()));
        assert!(line.starts_with("error: ") && line.contains("terminal.rs:"), "{line}");
        assert_eq!(line.lines().count(), 1);
    }
}
