//! Text for people: wrapped to the width of the terminal, with colours if it has them.

use std::borrow::Cow;

use trunkline::config::ColorStyle;
use unicode_width::UnicodeWidthStr as _;

/// Narrowest text: below, words are not kept together.
const MIN_WIDTH: usize = 20;

/// Widest text: longer lines are hard to read.
const MAX_WIDTH: usize = 120;

/// How text is laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextLayout {
    /// Columns of the terminal; `None` if the text is not for one, so that its lines are not wrapped.
    pub(crate) width: Option<usize>,
    pub(crate) style: ColorStyle,
}

/// A meaning of text that has a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emphasis {
    /// The name of a server, or of a section.
    Heading,
    /// The name of an item or of an argument.
    Name,
    /// A type, or another detail.
    Detail,
}

impl Emphasis {
    fn code(self) -> &'static str {
        match self {
            Self::Heading => "1",
            Self::Name => "36",
            Self::Detail => "2",
        }
    }
}

/// The first words of messages, with their colours.
const LABELS: [(&str, &str); 2] = [("error", "1;31"), ("warning", "1;33")];

/// A message whose first word is coloured, if it says how bad it is.
pub(super) fn with_label(text: &str, style: ColorStyle) -> Cow<'_, str> {
    let label = |(word, _): &&(&str, &str)| {
        text.strip_prefix(*word).is_some_and(|rest| rest.starts_with(": "))
    };
    match LABELS.iter().find(label) {
        Some((word, color)) if style == ColorStyle::Colored => {
            let rest = text.get(word.len()..).unwrap_or_default();
            format!("\u{1b}[{color}m{word}\u{1b}[0m{rest}").into()
        }
        _ => text.into(),
    }
}

/// Beginnings of messages whose other lines begin below the text after them.
const HANGING_LABELS: [&str; 5] = ["error: ", "warning: ", "note: ", "hint: ", "= help: "];

/// Wraps the lines of a message that are wider than the terminal, between words. Backquoted text, quoted lines of files and JSON
/// are not broken.
pub(super) fn wrap_message(text: &str, columns: usize) -> String {
    let width = columns.clamp(MIN_WIDTH, MAX_WIDTH);
    text.split_inclusive('\n').map(|line| wrap_line(line, width)).collect()
}

fn wrap_line(line: &str, width: usize) -> String {
    let plain = without_colors(line);
    let plain = plain.trim_end_matches('\n');
    if plain.width() <= width || is_verbatim(plain) {
        return line.to_owned();
    }
    let indent = plain.len() - plain.trim_start_matches(' ').len();
    let label = HANGING_LABELS.iter().find(|label| plain.trim_start().starts_with(**label));
    let hanging = indent + label.map_or(0, |label| label.len());
    let (mut lines, mut columns, mut is_begin) = (String::new(), 0, true);
    for (spaces, word) in words(line) {
        let needed = without_colors(word).trim_end_matches('\n').width();
        if !is_begin && columns + spaces + needed > width {
            lines.push('\n');
            lines += &" ".repeat(hanging);
            columns = hanging;
        } else {
            lines += &" ".repeat(spaces);
            columns += spaces;
        }
        lines += word;
        columns += needed;
        is_begin = false;
    }
    lines
}

/// The words of a line, each with the number of spaces before it. Spaces between backquotes do not separate words; those at the
/// end of a line belong to its last word.
fn words(line: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let text = rest.trim_start_matches(' ');
        let spaces = rest.len() - text.len();
        let is_end = |it: &str| it.trim_matches([' ', '\n']).is_empty();
        let mut is_quoted = false;
        let end = text.char_indices().find(|(at, character)| {
            let after = text.get(*at..).unwrap_or_default();
            match character {
                '`' if is_quoted => is_quoted = false,
                // Without a second one, it is no quote.
                '`' => is_quoted = after.matches('`').nth(1).is_some(),
                ' ' => return !is_quoted && !is_end(after),
                _ => {}
            }
            false
        });
        let (word, after) =
            text.split_at_checked(end.map_or(text.len(), |(at, _)| at)).unwrap_or((text, ""));
        words.push((spaces, word));
        rest = after;
    }
    words
}

/// Whether a line is not broken: a quoted line of a file with its marks, or JSON.
fn is_verbatim(line: &str) -> bool {
    let text = line.trim_start();
    let after_number = text.trim_start_matches(|it: char| it.is_ascii_digit());
    after_number.trim_start().starts_with('|')
        || text.starts_with("--> ")
        || text.starts_with(['{', '}', '[', ']', '"'])
}

/// The text without sequences that set colours.
pub(crate) fn without_colors(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return text.into();
    }
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    let after = |part: &'_ str| part.split_once('m').map_or(part, |(_, after)| after).to_owned();
    parts.fold(first, |plain, part| plain + &after(part)).into()
}

impl TextLayout {
    /// Text in one colour.
    pub(crate) fn paint(self, emphasis: Emphasis, text: &str) -> String {
        match self.style {
            ColorStyle::Plain => text.to_owned(),
            ColorStyle::Colored => format!("\u{1b}[{}m{text}\u{1b}[0m", emphasis.code()),
        }
    }

    /// Wraps a text. The first line begins with `indent` spaces, the others with `hanging`. A word that is too long
    /// has a line of its own.
    pub(crate) fn wrap(self, text: &str, indent: usize, hanging: usize) -> String {
        let Some(width) = self.width else { return format!("{}{text}\n", " ".repeat(indent)) };
        let width = width.clamp(MIN_WIDTH, MAX_WIDTH);
        let mut lines = String::new();
        let (mut line, mut columns) = (" ".repeat(indent), indent);
        let mut is_begin = true;
        for word in text.split(' ').filter(|word| !word.is_empty()) {
            let needed = word.width() + usize::from(!is_begin);
            if !is_begin && columns + needed > width {
                lines += line.trim_end();
                lines.push('\n');
                (line, columns, is_begin) = (" ".repeat(hanging), hanging, true);
            }
            if !is_begin {
                line.push(' ');
                columns += 1;
            }
            line += word;
            columns += word.width();
            is_begin = false;
        }
        lines += line.trim_end();
        lines + "\n"
    }

    /// Wraps a text that begins with a name, and colours the name.
    pub(crate) fn wrap_named(
        self,
        name: &str,
        rest: &str,
        indent: usize,
        hanging: usize,
    ) -> String {
        let text = self.wrap(&format!("{name}{rest}"), indent, hanging);
        match text.split_once(name) {
            Some((before, after)) if before.trim().is_empty() => {
                format!("{before}{}{after}", self.paint(Emphasis::Name, name))
            }
            _ => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_messages_are_coloured() {
        let colored = |text| with_label(text, ColorStyle::Colored);
        assert_eq!(colored("error: x"), "\u{1b}[1;31merror\u{1b}[0m: x");
        assert_eq!(colored("warning: x"), "\u{1b}[1;33mwarning\u{1b}[0m: x");
        assert_eq!(colored("errors: x"), "errors: x");
        assert_eq!(with_label("error: x", ColorStyle::Plain), "error: x");
    }

    #[test]
    fn messages_are_wrapped_between_words() {
        for (text, expected) in [
            ("error: short\n", "error: short\n"),
            (
                "error: there is no tool `words_shuot`; did you mean `words_shout`?\n  `trunkline tools` lists the tools\n",
                "error: there is no tool\n       `words_shuot`; did you\n       mean `words_shout`?\n  `trunkline tools` lists the\n  tools\n",
            ),
            // A command stays on one line, also if it is too long.
            (
                "  use `trunkline tools --server some-server` or not, as `you like it\n",
                "  use\n  `trunkline tools --server some-server`\n  or not, as `you like it\n",
            ),
            (
                "Write all of these servers to it? [y/N] ",
                "Write all of these servers to\nit? [y/N] ",
            ),
            (
                "12 |   { \"a\": \"a quoted line of a file\" }\n",
                "12 |   { \"a\": \"a quoted line of a file\" }\n",
            ),
            (
                "   |          ^^^^^^^^^ a label of this\n",
                "   |          ^^^^^^^^^ a label of this\n",
            ),
            (
                "  { \"url\": \"http://127.0.0.1:7420/mcp\" }\n",
                "  { \"url\": \"http://127.0.0.1:7420/mcp\" }\n",
            ),
            ("a  b                                  c\n", "a  b\nc\n"),
            (
                "  = \u{1b}[1mhelp\u{1b}[0m: a text that is a bit too long\n",
                "  = \u{1b}[1mhelp\u{1b}[0m: a text that is a bit\n          too long\n",
            ),
        ] {
            assert_eq!(wrap_message(text, 30), expected);
        }
        assert_eq!(wrap_message("日本語 日本語 日本語 日本語", 20), "日本語 日本語 日本語\n日本語");
    }

    fn layout(width: Option<usize>) -> TextLayout {
        TextLayout { width, style: ColorStyle::Plain }
    }

    #[test]
    fn text_is_wrapped_at_words() {
        let text = "read(path: string)  Reads a file and returns it.";
        assert_eq!(layout(None).wrap(text, 2, 6), format!("  {text}\n"));
        assert_eq!(
            layout(Some(24)).wrap(text, 2, 6),
            "  read(path: string)\n      Reads a file and\n      returns it.\n"
        );
        assert_eq!(
            layout(Some(30)).wrap("日本語 日本語 日本語 日本語 日本語", 0, 0),
            "日本語 日本語 日本語 日本語\n日本語\n"
        );
        let long = "x".repeat(50);
        assert_eq!(
            layout(Some(30)).wrap(&format!("a {long} b"), 0, 2),
            format!("a\n  {long}\n  b\n")
        );
        assert_eq!(layout(Some(1)).wrap("", 2, 4), "\n");
    }

    #[test]
    fn only_the_name_is_coloured() {
        let colored = TextLayout { width: Some(40), style: ColorStyle::Colored };
        assert_eq!(colored.wrap_named("read", "(x)", 2, 4), "  \u{1b}[36mread\u{1b}[0m(x)\n");
    }
}
