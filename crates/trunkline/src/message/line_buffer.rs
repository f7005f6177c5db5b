//! Splits a stream of bytes into lines of limited length: one message each, over stdio.

use bytes::{Bytes, BytesMut};

/// Lines up to this size are copied, so that a retained line does not keep its neighbours in
/// memory; longer ones are split off without a copy.
const COPIED_BYTES: usize = 8 * 1024;

/// Capacity for a read while the buffer is empty. It holds many small responses, and is the memory
/// cost of an idle server.
const FIRST_READ_BYTES: usize = 8 * 1024;

/// Capacity for a read in the middle of a line: the size of a pipe.
const READ_BYTES: usize = 64 * 1024;

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub enum BufferedLine<O> {
    /// A whole line, without its line break.
    Whole(Bytes),
    /// A line that exceeds the limit.
    TooLong(Box<O>),
}

/// Receives the bytes of a line that exceeds the limit, as they arrive.
pub trait OversizedLine {
    /// An empty line; `limit` is the limit that it exceeds.
    fn new(limit: usize) -> Self;

    /// Adds bytes of the line.
    fn push(&mut self, bytes: &[u8]);
}

/// Discards the bytes of a line that exceeds the limit.
#[derive(Debug, PartialEq, Eq)]
pub struct DiscardedLine;

impl OversizedLine for DiscardedLine {
    fn new(_limit: usize) -> Self {
        Self
    }

    fn push(&mut self, _bytes: &[u8]) {}
}

/// Bytes that were read and not yet returned as lines.
///
/// ```
/// use trunkline::message::{BufferedLine, DiscardedLine, LineBuffer};
///
/// let mut lines = LineBuffer::<DiscardedLine>::new(8);
/// lines.room().extend_from_slice(b"one\nmuch too long\ntw");
/// assert_eq!(lines.next_line(), Some(BufferedLine::Whole("one".into())));
/// assert_eq!(lines.next_line(), Some(BufferedLine::TooLong(Box::new(DiscardedLine))));
/// assert_eq!(lines.next_line(), None, "the last line is not complete");
/// ```
pub struct LineBuffer<O> {
    bytes: BytesMut,
    /// Position where the search for a line break continues.
    searched: usize,
    /// Whether the buffer grew beyond the capacity for an idle server.
    is_large: bool,
    longest: usize,
    /// The line that is being discarded, if any.
    oversized: Option<O>,
}

impl<O: OversizedLine> LineBuffer<O> {
    /// An empty buffer, for lines of up to `longest` bytes.
    pub fn new(longest: usize) -> Self {
        Self { bytes: BytesMut::new(), searched: 0, is_large: false, longest, oversized: None }
    }

    /// Buffer for the next read.
    pub fn room(&mut self) -> &mut BytesMut {
        if self.bytes.is_empty() && self.oversized.is_none() {
            self.bytes.reserve(FIRST_READ_BYTES);
        } else {
            self.is_large = true;
            self.bytes.reserve(READ_BYTES);
        }
        &mut self.bytes
    }

    /// The next complete line that is not empty.
    pub fn next_line(&mut self) -> Option<BufferedLine<O>> {
        loop {
            let found = memchr::memchr(b'\n', &self.bytes[self.searched..]);
            let Some(length) = found.map(|at| self.searched + at) else {
                self.searched = self.bytes.len();
                self.shed();
                return None;
            };
            let line = self.take(length);
            if line
                .as_ref()
                .is_none_or(|line| !matches!(line, BufferedLine::Whole(line) if line.is_empty()))
            {
                return line;
            }
        }
    }

    /// The bytes after the last line break, once the stream has ended.
    pub fn last_line(&mut self) -> Option<BufferedLine<O>> {
        if self.bytes.is_empty() && self.oversized.is_none() {
            return None;
        }
        self.bytes.extend_from_slice(b"\n");
        self.next_line()
    }

    fn take(&mut self, length: usize) -> Option<BufferedLine<O>> {
        self.searched = 0;
        if let Some(mut oversized) = self.oversized.take() {
            oversized.push(&self.bytes[..length]);
            advance(&mut self.bytes, length + 1);
            return Some(BufferedLine::TooLong(Box::new(oversized)));
        }
        if length > self.longest {
            let mut oversized = O::new(self.longest);
            oversized.push(&self.bytes[..length]);
            advance(&mut self.bytes, length + 1);
            return Some(BufferedLine::TooLong(Box::new(oversized)));
        }
        let content = self.bytes[..length].strip_suffix(b"\r").unwrap_or(&self.bytes[..length]);
        if content.len() <= COPIED_BYTES {
            let line = Bytes::copy_from_slice(content);
            advance(&mut self.bytes, length + 1);
            return Some(BufferedLine::Whole(line));
        }
        let kept = content.len();
        self.is_large = true;
        let mut line = self.bytes.split_to(length + 1);
        line.truncate(kept);
        Some(BufferedLine::Whole(line.freeze()))
    }

    /// Discards the bytes of a line that already exceeds the limit.
    fn shed(&mut self) {
        if self.bytes.len() > self.longest || self.oversized.is_some() {
            let oversized = self.oversized.get_or_insert_with(|| O::new(self.longest));
            oversized.push(&self.bytes);
            self.bytes.clear();
            self.searched = 0;
        }
        // Frees a buffer that grew for one long line.
        if self.bytes.is_empty() && self.is_large {
            self.bytes = BytesMut::new();
            self.is_large = false;
        }
    }
}

fn advance(bytes: &mut BytesMut, count: usize) {
    bytes::Buf::advance(bytes, count);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(
        buffer: &mut LineBuffer<DiscardedLine>,
        bytes: &[u8],
    ) -> Vec<BufferedLine<DiscardedLine>> {
        buffer.room().extend_from_slice(bytes);
        std::iter::from_fn(|| buffer.next_line()).collect()
    }

    fn whole(text: &str) -> BufferedLine<DiscardedLine> {
        BufferedLine::Whole(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn lines_come_out_whole_however_the_bytes_come_in() {
        let text = b"one\r\n\ntwo\nthree";
        for size in 1..text.len() {
            let mut buffer = LineBuffer::new(100);
            let mut lines = Vec::new();
            for part in text.chunks(size) {
                lines.extend(fed(&mut buffer, part));
            }
            lines.extend(buffer.last_line());
            assert_eq!(lines, [whole("one"), whole("two"), whole("three")], "{size}");
        }
    }

    #[test]
    fn a_long_line_is_handed_over_and_the_buffer_shrinks_again() {
        let mut buffer = LineBuffer::new(10 * 1024 * 1024);
        let long = "x".repeat(1024 * 1024);
        let lines = fed(&mut buffer, format!("{long}\n").as_bytes());
        assert_eq!(lines, [whole(&long)]);
        drop(lines);
        assert!(buffer.room().capacity() <= 2 * FIRST_READ_BYTES);
    }

    #[test]
    fn a_line_that_is_too_long_is_discarded_and_the_next_one_is_not() {
        let mut buffer = LineBuffer::new(1000);
        let mut lines = Vec::new();
        for _ in 0..100 {
            lines.extend(fed(&mut buffer, &[b'x'; 500]));
            assert!(buffer.bytes.len() <= 1500);
        }
        lines.extend(fed(&mut buffer, b"x\nnext\n"));
        assert_eq!(lines, [BufferedLine::TooLong(Box::new(DiscardedLine)), whole("next")]);
    }
}
