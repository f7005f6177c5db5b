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
