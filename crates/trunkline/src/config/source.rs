//! Configuration texts, and locations in them.

#![expect(
    clippy::string_slice,
    reason = "a parser of its own text: every offset comes from this text, and fuzzing covers it"
)]

use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Largest accepted configuration, in bytes. A hundred thousand servers fit; a device file or a log
/// given by mistake does not exhaust memory.
pub const MAX_SOURCE_BYTES: usize = 64 * 1024 * 1024;

/// A range of bytes in a [`Source`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Creates the range from `start` up to `end`, offsets into a text no longer than
    /// [`MAX_SOURCE_BYTES`].
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let offset = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        Self { start: offset(start), end: offset(end.max(start)) }
    }

    /// Offset of the first byte.
    pub fn start(self) -> usize {
        self.start as usize
    }

    /// Offset after the last byte.
    pub fn end(self) -> usize {
        self.end as usize
    }

    pub(crate) fn range(self) -> Range<usize> {
        self.start()..self.end()
    }

    pub(crate) fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// Line and column, both counted from one; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line, from one.
    pub line: usize,
    /// Column, from one, in characters.
    pub column: usize,
}

/// A configuration text with its name: a path or a variable.
pub struct Source {
    name: String,
    text: String,
    index: OnceLock<LineIndex>,
    sensitive: OnceLock<Vec<Span>>,
}

impl Source {
    /// Creates a source with a name for messages.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            index: OnceLock::new(),
            sensitive: OnceLock::new(),
        }
    }

    /// The name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text. It may contain literal secrets: show excerpts only through
    /// [`Diagnostic::render`](super::Diagnostic::render).
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column of a byte offset.
    pub fn position(&self, offset: usize) -> Position {
        let offset = self.text.floor_char_boundary(offset.min(self.text.len()));
        let checkpoints = &self.index().checkpoints;
        let nearest = checkpoints.partition_point(|checkpoint| checkpoint.offset <= offset) - 1;
        let Checkpoint { offset: start, position } = checkpoints[nearest];
        let further = self.text[start..offset].chars().count();
        Position { column: position.column + further, ..position }
    }

    /// The byte range of the line with an offset, without its line ending.
    pub(crate) fn line_range(&self, offset: usize) -> Range<usize> {
        let starts = &self.index().line_starts;
        let line = starts.partition_point(|&start| start <= offset) - 1;
        let end = starts.get(line + 1).copied().unwrap_or(self.text.len());
        let content = self.text[starts[line]..end].trim_end_matches(['\n', '\r']);
        starts[line]..starts[line] + content.len()
    }

    /// The spans that must not be shown, in order; computed once, on first use.
    pub(crate) fn sensitive(&self, find: impl FnOnce(&str) -> Vec<Span>) -> &[Span] {
        self.sensitive.get_or_init(|| find(&self.text))
    }

    fn index(&self) -> &LineIndex {
        self.index.get_or_init(|| LineIndex::of(&self.text))
    }
}

/// Bytes between two checkpoints: the maximum that a look-up counts, even if a ten-megabyte file is
/// one line with a problem in every entry.
const CHECKPOINT_BYTES: usize = 1024;

struct Checkpoint {
    offset: usize,
    position: Position,
}

/// Line starts, and known positions at least every [`CHECKPOINT_BYTES`].
struct LineIndex {
    line_starts: Vec<usize>,
    checkpoints: Vec<Checkpoint>,
}

impl LineIndex {
    fn of(text: &str) -> Self {
        let mut index = Self { line_starts: Vec::new(), checkpoints: Vec::new() };
        let mut position = Position { line: 1, column: 1 };
        index.start_line(0, position);
        for (offset, character) in text.char_indices() {
            if offset >= index.last_checkpoint() + CHECKPOINT_BYTES {
                index.checkpoints.push(Checkpoint { offset, position });
            }
            if character == '\n' {
                position = Position { line: position.line + 1, column: 1 };
                index.start_line(offset + 1, position);
            } else {
                position.column += 1;
            }
        }
        index
    }

    fn start_line(&mut self, offset: usize, position: Position) {
        self.line_starts.push(offset);
        self.checkpoints.push(Checkpoint { offset, position });
    }

    fn last_checkpoint(&self) -> usize {
        self.checkpoints.last().map_or(0, |checkpoint| checkpoint.offset)
    }
}

impl std::fmt::Debug for Source {
    /// Prints the name only: the text may contain secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A span in a source.
#[derive(Clone, Debug)]
pub struct Location {
    source: Arc<Source>,
    span: Span,
}

impl Location {
    pub(crate) fn new(source: &Arc<Source>, span: Span) -> Self {
        Self { source: Arc::clone(source), span }
    }

    /// The source.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The span.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Line and column of its first character.
    pub fn start(&self) -> Position {
        self.source.position(self.span.start())
    }

    /// Line and column after its last character.
    pub fn end(&self) -> Position {
        self.source.position(self.span.end())
    }
}

impl std::fmt::Display for Location {
    /// Formats as `file:line:column`, like compilers do and editors understand.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = self.start();
        write!(f, "{}:{}:{}", self.source.name(), start.line, start.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let source = Source::new("x", "a\r\nbüc\n");
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        let c = source.text().find('c').unwrap();
        assert_eq!(source.position(c), Position { line: 2, column: 3 });
        assert_eq!(&source.text()[source.line_range(0)], "a");
        assert_eq!(&source.text()[source.line_range(c)], "büc");
        assert_eq!(source.position(source.text().len()), Position { line: 3, column: 1 });
    }
}
