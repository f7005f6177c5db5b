//! Positions in a text, and replacements by byte range that leave all other bytes alone.

use std::ops::Range;

/// The mark that some editors on Windows put at the start of a file.
pub(crate) const BYTE_ORDER_MARK: &str = "\u{feff}";

/// One replacement of a byte range.
#[derive(Debug)]
pub(crate) struct Splice {
    pub(crate) range: Range<usize>,
    pub(crate) with: String,
}

impl Splice {
    pub(crate) fn insert(at: usize, with: impl Into<String>) -> Self {
        Self { range: at..at, with: with.into() }
    }

    pub(crate) fn replace(range: Range<usize>, with: impl Into<String>) -> Self {
        Self { range, with: with.into() }
    }

    pub(crate) fn delete(range: Range<usize>) -> Self {
        Self { range, with: String::new() }
    }
}

/// The part of a text in a range; empty outside of the text.
pub(crate) fn slice(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}

/// The text before an offset.
pub(crate) fn before(text: &str, at: usize) -> &str {
    slice(text, 0..at)
}

/// The text from an offset.
pub(crate) fn after(text: &str, at: usize) -> &str {
    slice(text, at..text.len())
}

/// The text with all splices, which must not overlap.
pub(crate) fn apply(text: &str, mut splices: Vec<Splice>) -> String {
    splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for splice in &splices {
        result.push_str(slice(text, done..splice.range.start));
        result.push_str(&splice.with);
        done = done.max(splice.range.end);
    }
    result.push_str(after(text, done));
    result
}

/// The line break of a text: that of its first line.
pub(crate) fn line_break(text: &str) -> &'static str {
    match text.split_once('\n') {
        Some((line, _)) if line.ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// The start of the line of an offset.
pub(crate) fn line_start(text: &str, at: usize) -> usize {
    before(text, at).rfind('\n').map_or(0, |found| found + 1)
}

/// The end of the line of an offset, before its line break.
pub(crate) fn line_end(text: &str, at: usize) -> usize {
    let rest = after(text, at);
    let end = rest.find('\n').map_or(text.len(), |found| at + found);
    let has_return = end > at && end < text.len() && before(text, end).ends_with('\r');
    if has_return { end - 1 } else { end }
}

/// The start of the line after an offset; the end of the text after its last line.
pub(crate) fn next_line(text: &str, at: usize) -> usize {
    after(text, at).find('\n').map_or(text.len(), |found| at + found + 1)
}

/// The spaces and tabs at the start of the line of an offset.
pub(crate) fn line_indent(text: &str, at: usize) -> &str {
    let line = after(text, line_start(text, at));
    let length = line.find(|char| char != ' ' && char != '\t').unwrap_or(line.len());
    slice(line, 0..length)
}

/// Whether only spaces and tabs precede an offset in its line.
pub(crate) fn starts_line(text: &str, at: usize) -> bool {
    is_blank(slice(text, line_start(text, at)..at))
}

/// Whether a text has nothing but spaces and tabs.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(|char| char == ' ' || char == '\t')
}

/// The offset of the line break that ends at an offset, if one does.
pub(crate) fn break_before(text: &str, at: usize) -> Option<usize> {
    let text = before(text, at);
    let line = text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n'))?;
    Some(line.len())
}

/// The offset after spaces and tabs.
pub(crate) fn skip_blanks(text: &str, at: usize) -> usize {
    let rest = after(text, at);
    at + rest.find(|char| char != ' ' && char != '\t').unwrap_or(rest.len())
}

/// Whether a line ends at an offset.
pub(crate) fn ends_line(text: &str, at: usize) -> bool {
    let rest = after(text, at);
    rest.is_empty() || rest.starts_with('\n') || rest.starts_with("\r\n")
}
