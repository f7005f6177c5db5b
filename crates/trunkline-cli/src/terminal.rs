//! Standard output and standard error: the only place that writes to them.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::panic::Location;
use std::process::ExitCode;

use trunkline::config::{ColorStyle, is_hidden};
use unicode_width::UnicodeWidthChar as _;

use crate::settings::{Colors, Settings, Verbosity};
use crate::stdio;

/// Where results and messages go.
pub(crate) struct Terminal {
    output_style: ColorStyle,
    message_style: ColorStyle,
    shows_progress: bool,
    says_warnings: bool,
    /// Whether results appear on a terminal.
    is_output_terminal: bool,
    /// Whether anything of a result has been printed.
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

    /// Prints a result. That nobody reads on, as in `trunkline schema | head`, is the reader's
    /// right and changes nothing about how the program ends.
    pub(crate) fn print(&mut self, text: &str) -> io::Result<()> {
        self.print_on(text).map(|_| ())
    }

    /// Prints a part of a result that goes on. Says whether anybody still reads.
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

    /// Whether anything of a result has been printed, or was tried to be.
    pub(crate) fn has_printed(&self) -> bool {
        self.has_printed
    }

    /// Shows what is going on, where somebody watches; [`Terminal::clear_progress`] removes it.
    pub(crate) fn progress(&self, text: &str) {
        if self.shows_progress {
            let size = terminal_size::terminal_size_of(io::stderr());
            let width = size.map_or(usize::MAX, |(width, _)| usize::from(width.0));
            self.say(&format!("\r\u{1b}[K{}", cut(text, width)));
        }
    }

    /// Removes what [`Terminal::progress`] has shown.
    pub(crate) fn clear_progress(&self) {
        self.progress("");
    }

    /// How wide and high the terminal is on which results appear; nothing if they go elsewhere.
    pub(crate) fn size(&self) -> Option<(usize, usize)> {
        let (width, height) = terminal_size::terminal_size_of(io::stdout())?;
        Some((usize::from(width.0).max(1), usize::from(height.0).max(1)))
    }

    /// Whether somebody may be sitting at standard input.
    pub(crate) fn has_keyboard(&self) -> bool {
        io::stdin().is_terminal()
    }

    /// Whether somebody can be asked something: there is a keyboard, and messages are seen.
    pub(crate) fn can_ask(&self) -> bool {
        self.has_keyboard() && io::stderr().is_terminal()
    }

    /// Asks a question. Anything but yes is no.
    pub(crate) fn ask(&self, question: &str) -> io::Result<bool> {
        self.say(&format!("{question} [y/N] "));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }

    /// Everything on standard input.
    pub(crate) fn read_input(&mut self) -> io::Result<String> {
        io::read_to_string(io::stdin().lock())
    }

    /// Standard input and output as streams, for a server that speaks over them.
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

    /// Prints a warning, unless only failures are to be said.
    pub(crate) fn warn(&self, text: &str) {
        if self.says_warnings {
            self.say(&format!("warning: {text}\n"));
        }
    }

    /// Prints something worth knowing, unless only failures are to be said.
    pub(crate) fn tell(&self, text: &str) {
        if self.says_warnings {
            self.say(text);
        }
    }

    /// Prints a message beside the results. That it cannot be printed is nothing to fail for.
    pub(crate) fn say(&self, text: &str) {
        let _ = io::stderr().lock().write_all(visible(text).as_bytes());
    }
}

/// A text as a terminal may have it: characters that are not seen, or change how others are seen, are
/// written as escapes of JSON. In a document of JSON they stand in strings only, so that it stays the
/// same document. Control characters below 0x20 are ours: colours, lines, and what clears progress.
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

/// A text as far as it fits into a line: one that wraps could not be removed.
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

/// Reports panics by their place alone: the message of one may quote what a client or a server sent.
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

/// Prints help, the version, or what is wrong with the arguments.
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

    /// SEC-3: whoever sent them, such characters reach no terminal, and JSON stays what it was.
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
