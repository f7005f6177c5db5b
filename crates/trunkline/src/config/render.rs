//! Renders diagnostics as text, in the style of rustc: location, line, caret, help.
//!
//! Crates for this print the source line as it is. Here credentials in it are masked first, control
//! characters are escaped, and a line of ten megabytes is cut around the caret.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

use super::diagnostic::{Diagnostic, Severity};
use super::redact::{self, escape_control, is_hidden, quoted_server};
use super::secret::MASK;
use super::source::{Location, Span};

/// Longest line that is shown whole, in bytes; of longer ones, the part around the location is
/// shown.
const SHOWN_BYTES: usize = 160;

/// Bytes shown before the location in a longer line.
const SHOWN_BEFORE: usize = 60;

/// Whether the text may contain terminal colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorStyle {
    /// Plain text.
    #[default]
    Plain,
    /// With ANSI escapes.
    Colored,
}

impl Diagnostic {
    /// Renders this problem as text that ends with a line break.
    ///
    /// Credentials in the quoted line are replaced by `***`, also literal ones.
    pub fn render(&self, style: ColorStyle) -> String {
        let mut report = ReportText { paint: Paint { style }, text: String::new() };
        report.diagnostic(self);
        report.text
    }
}

struct Paint {
    style: ColorStyle,
}

impl Paint {
    fn with(&self, code: &str, text: &str) -> String {
        match self.style {
            ColorStyle::Plain => text.to_owned(),
            ColorStyle::Colored => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }

    fn severity(&self, severity: Severity, text: &str) -> String {
        let code = match severity {
            Severity::Error => "1;31",
            Severity::Warning => "1;33",
            Severity::Hint => "1;36",
            Severity::Note => "1;32",
        };
        self.with(code, text)
    }

    fn frame(&self, text: &str) -> String {
        self.with("1;34", text)
    }

    fn strong(&self, text: &str) -> String {
        self.with("1", text)
    }
}

struct ReportText {
    paint: Paint,
    text: String,
}

impl ReportText {
    fn diagnostic(&mut self, found: &Diagnostic) {
        let title = format!("{}[{}]", found.severity.as_str(), found.code);
        let title = self.paint.severity(found.severity, &title);
        let message = format!(": {}{}", subject(found), escape_control(&found.message));
        let message = self.paint.strong(&message);
        self.line(&format!("{title}{message}"));
        let gutter = gutter_width(found);
        if let Some(location) = &found.location {
            let label = found.label.as_deref().unwrap_or_default();
            self.snippet(gutter, location, label, found.severity);
        }
        for related in &found.related {
            self.snippet(gutter, &related.location, &related.label, Severity::Note);
        }
        if let Some(help) = &found.help {
            let frame = self.paint.frame(&format!("{:gutter$} =", ""));
            let word = self.paint.strong("help");
            self.line(&format!("{frame} {word}: {}", escape_control(help)));
        }
    }

    fn snippet(&mut self, gutter: usize, location: &Location, label: &str, severity: Severity) {
        let excerpt = Excerpt::of(location);
        let line = location.start().line;
        let arrow = self.paint.frame(&format!("{:gutter$}-->", ""));
        self.line(&format!("{arrow} {}", escape_control(&location.to_string())));
        let empty = self.paint.frame(&format!("{:gutter$} |", ""));
        self.line(&empty);
        let number = self.paint.frame(&format!("{line:gutter$} |"));
        self.line(&format!("{number} {}", excerpt.text));
        let mark = if severity == Severity::Note { "-" } else { "^" }.repeat(excerpt.width);
        let marked = format!("{mark} {}", escape_control(label));
        let marked = self.paint.severity(severity, marked.trim_end());
        self.line(&format!("{empty} {:indent$}{marked}", "", indent = excerpt.indent));
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{}", text.trim_end());
    }
}

/// The affected server, unless the message names it.
fn subject(found: &Diagnostic) -> String {
    let Some(server) = &found.server else { return String::new() };
    let name = quoted_server(server.as_str());
    if found.message.contains(&name) { String::new() } else { format!("server {name}: ") }
}

/// Width of the largest line number shown.
fn gutter_width(found: &Diagnostic) -> usize {
    let places = found.location.iter().chain(found.related.iter().map(|related| &related.location));
    let largest = places.map(|location| location.start().line).max().unwrap_or(0);
    largest.to_string().len()
}

/// The line of a location, ready to show, with the columns of the location.
struct Excerpt {
    text: String,
    indent: usize,
    width: usize,
}

impl Excerpt {
    fn of(location: &Location) -> Self {
        let source = location.source();
        let window = Window::around(location);
        let mut drawing = ExcerptLine::new(location.span());
        if window.cut_before {
            drawing.push_text("…");
        }
        let hidden = source.sensitive(redact::sensitive_spans);
        let first = hidden.partition_point(|span| span.end() <= window.start);
        let mut offset = window.start;
        for span in &hidden[first..] {
            if span.start() >= window.end {
                break;
            }
            drawing.push_source(source.text(), offset..span.start().max(offset));
            drawing.push_hidden(*span);
            offset = span.end().min(window.end).max(offset);
        }
        drawing.push_source(source.text(), offset..window.end);
        if window.cut_after {
            drawing.push_text("…");
        }
        drawing.finish()
    }
}

/// The part of a line that is shown.
struct Window {
    start: usize,
    end: usize,
    cut_before: bool,
    cut_after: bool,
}

impl Window {
    fn around(location: &Location) -> Self {
        let text = location.source().text();
        let line = location.source().line_range(location.span().start());
        if line.len() <= SHOWN_BYTES {
            return Self { start: line.start, end: line.end, cut_before: false, cut_after: false };
        }
        let wanted = location.span().start().saturating_sub(SHOWN_BEFORE).max(line.start);
        let start = text.floor_char_boundary(wanted);
        let end = text.floor_char_boundary((start + SHOWN_BYTES).min(line.end));
        Self { start, end, cut_before: start > line.start, cut_after: end < line.end }
    }
}

/// A line under construction, with the columns of the marked span.
struct ExcerptLine {
    text: String,
    columns: usize,
    marked: Span,
    mark_start: Option<usize>,
    mark_end: Option<usize>,
}

impl ExcerptLine {
    fn new(marked: Span) -> Self {
        Self { text: String::new(), columns: 0, marked, mark_start: None, mark_end: None }
    }

    fn push_text(&mut self, text: &str) {
        for character in text.chars() {
            self.columns += character.width().unwrap_or(1);
            self.text.push(character);
        }
    }

    fn push_source(&mut self, source: &str, range: std::ops::Range<usize>) {
        for (at, character) in source.get(range.clone()).unwrap_or("").char_indices() {
            self.reached(range.start + at);
            match character {
                '\t' => self.push_text("    "),
                hidden if is_hidden(hidden) => self.push_text("\u{fffd}"),
                plain => self.push_text(plain.encode_utf8(&mut [0; 4])),
            }
        }
        self.reached(range.end);
    }

    fn push_hidden(&mut self, span: Span) {
        self.reached(span.start());
        // A span that starts inside a masked part is marked from the start of the mask.
        if span.contains(Span::new(self.marked.start(), self.marked.start())) {
            self.mark_start.get_or_insert(self.columns);
        }
        self.push_text(MASK);
        self.reached(span.end());
    }

    fn reached(&mut self, offset: usize) {
        if offset >= self.marked.start() {
            self.mark_start.get_or_insert(self.columns);
        }
        if offset >= self.marked.end() {
            self.mark_end.get_or_insert(self.columns);
        }
    }

    fn finish(self) -> Excerpt {
        let indent = self.mark_start.unwrap_or(self.columns);
        let end = self.mark_end.unwrap_or(self.columns);
        Excerpt { text: self.text, indent, width: end.saturating_sub(indent).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::diagnostic::Code;
    use super::super::source::Source;
    use super::*;

    fn rendered(text: &str, marked: &str) -> String {
        let source = Arc::new(Source::new("mcp.json", text));
        let start = text.find(marked).unwrap();
        Diagnostic::new(Severity::Error, Code::WrongType, "`args` must be an array")
            .at(&source, Span::new(start, start + marked.len()))
            .label("expected an array")
            .help("put it in brackets")
            .render(ColorStyle::Plain)
    }

    #[test]
    fn the_place_is_shown_with_a_caret_under_it() {
        insta::assert_snapshot!(rendered("{ \"servers\": { \"größe\": {\n\t\"args\": \"--mcp\"\n} } }", "\"--mcp\""), @r#"
        error[wrong-type]: `args` must be an array
         --> mcp.json:2:10
          |
        2 |     "args": "--mcp"
          |             ^^^^^^^ expected an array
          = help: put it in brackets
        "#);
    }

    #[test]
    fn a_long_line_is_shown_around_the_place_only() {
        let text = format!("{{\"a\": [{}\"here\"{}]}}", "1, ".repeat(5000), ", 2".repeat(5000));
        let shown = rendered(&text, "\"here\"");
        assert!(shown.lines().all(|line| line.chars().count() < 400), "{shown}");
        assert!(shown.contains(" ^^^^^ expected an array"), "{shown}");
    }

    #[test]
    fn handwritten_secrets_and_terminal_escapes_are_not_shown() {
        let shown =
            rendered("{\"env\": {\"K\": \"sesame\u{1b}[2J\"}, \"args\": \"x\u{1b}[2J\"}", "\"x");
        assert!(!shown.contains("sesame") && !shown.contains('\u{1b}'), "{shown}");
    }
}
