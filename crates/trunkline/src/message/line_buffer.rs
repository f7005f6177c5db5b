//! Splits a stream of bytes into lines of limited length: one message each, over stdio.

use bytes::{Bytes, BytesMut};

/// Lines up to this size are copied, so that a retained line does not keep its neighbours in
/// memory. Longer ones are split off without a copy, unless they are a small part of their
/// allocation.
const COPIED_BYTES: usize = READ_BYTES;

/// Capacity for a read while the buffer is empty. It holds many small responses.
const FIRST_READ_BYTES: usize = 8 * 1024;

/// Capacity that an empty buffer keeps if its bytes were pushed.
const KEPT_BYTES: usize = 1024;

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
    /// Bytes of the same allocation before these, which were returned already.
    returned: usize,
    /// Position where the search for a line break continues.
    searched: usize,
    /// Whether the buffer grew beyond the capacity for an idle server.
    is_large: bool,
    longest: usize,
    /// The line that exceeds the limit and has not ended, if any.
    oversized: Option<O>,
}

impl<O: OversizedLine> LineBuffer<O> {
    /// Whether bytes of a line are there that has not ended, once [`next_line`](Self::next_line) has returned `None`.
    pub fn has_partial_line(&self) -> bool {
        !self.bytes.is_empty() || self.oversized.is_some()
    }

    /// An empty buffer, for lines of up to `longest` bytes.
    pub fn new(longest: usize) -> Self {
        let bytes = BytesMut::new();
        Self { bytes, returned: 0, searched: 0, is_large: false, longest, oversized: None }
    }

    /// Buffer for the next read.
    pub fn room(&mut self) -> &mut BytesMut {
        if self.bytes.is_empty() && self.oversized.is_none() {
            // The allocation is small: a large one is freed when it is empty.
            self.returned = 0;
            self.bytes.reserve(FIRST_READ_BYTES);
        } else {
            if self.returned > 0 {
                self.renew();
            }
            self.is_large = true;
            self.bytes.reserve(READ_BYTES);
        }
        &mut self.bytes
    }

    /// Adds bytes that were read into another buffer. When all of them are returned, this one keeps little memory.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.bytes.is_empty() {
            self.returned = 0;
        }
        self.bytes.extend_from_slice(bytes);
        self.is_large |= self.bytes.capacity() > KEPT_BYTES;
    }

    /// The next complete line that is not empty.
    pub fn next_line(&mut self) -> Option<BufferedLine<O>> {
        loop {
            let found = memchr::memchr(b'\n', &self.bytes[self.searched..]);
            let Some(length) = found.map(|at| self.searched + at) else {
                self.searched = self.bytes.len();
                self.release();
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
            self.advance(length + 1);
            return Some(BufferedLine::TooLong(Box::new(oversized)));
        }
        if length > self.longest {
            let mut oversized = O::new(self.longest);
            oversized.push(&self.bytes[..length]);
            self.advance(length + 1);
            return Some(BufferedLine::TooLong(Box::new(oversized)));
        }
        let content = self.bytes[..length].strip_suffix(b"\r").unwrap_or(&self.bytes[..length]);
        if content.len() <= COPIED_BYTES || !self.is_most_of_allocation(content.len()) {
            let line = Bytes::copy_from_slice(content);
            self.advance(length + 1);
            return Some(BufferedLine::Whole(line));
        }
        let kept = content.len();
        self.is_large = true;
        let mut line = self.bytes.split_to(length + 1);
        line.truncate(kept);
        // The next line would keep this one in memory.
        self.renew();
        Some(BufferedLine::Whole(line.freeze()))
    }

    /// Whether a line is so large a part of the allocation that it may keep all of it in memory: the
    /// limits of pending messages count the length of lines. Growing doubles an allocation.
    fn is_most_of_allocation(&self, length: usize) -> bool {
        self.returned + self.bytes.capacity() <= 2 * (length + READ_BYTES)
    }

    /// Moves the rest to an allocation of its own.
    fn renew(&mut self) {
        self.bytes = BytesMut::from(&self.bytes[..]);
        self.returned = 0;
    }

    fn advance(&mut self, count: usize) {
        bytes::Buf::advance(&mut self.bytes, count);
        self.returned += count;
    }

    /// Passes on the bytes of a line that already exceeds the limit, and frees memory.
    fn release(&mut self) {
        if self.bytes.len() > self.longest || self.oversized.is_some() {
            let oversized = self.oversized.get_or_insert_with(|| O::new(self.longest));
            oversized.push(&self.bytes);
            self.bytes.clear();
            self.searched = 0;
        }
        // Frees a buffer that grew for one long line.
        if self.bytes.is_empty() && self.is_large {
            self.bytes = BytesMut::new();
            self.returned = 0;
            self.is_large = false;
        }
    }
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
    fn pushed_bytes_leave_a_small_buffer() {
        for size in [1, KEPT_BYTES, 4 * KEPT_BYTES, FIRST_READ_BYTES] {
            let mut buffer = LineBuffer::new(100 * 1024);
            let text = format!("{}\n", "x".repeat(size));
            for _ in 0..3 {
                buffer.push(text.as_bytes());
                assert_eq!(buffer.next_line(), Some(whole(text.trim_end())));
                assert_eq!(buffer.next_line(), None);
                assert!(!buffer.bytes.try_reclaim(2 * KEPT_BYTES), "{size}");
            }
        }
    }

    #[test]
    fn lines_come_out_whole_however_the_bytes_are_added() {
        let text = b"one\r\n\ntwo\nthree";
        for size in 1..text.len() {
            let mut buffer = LineBuffer::new(100);
            let mut lines = Vec::new();
            for (number, part) in text.chunks(size).enumerate() {
                match number % 2 {
                    0 => buffer.push(part),
                    _ => buffer.room().extend_from_slice(part),
                }
                lines.extend(std::iter::from_fn(|| buffer.next_line()));
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

    /// The limits of pending messages count the length of lines, not of allocations.
    #[test]
    fn retained_line_keeps_no_longer_line_in_memory() {
        const LONG: usize = 4 * 1024 * 1024;
        let large = "y".repeat(2 * COPIED_BYTES);
        for short in ["x".repeat(9 * 1024), "x".repeat(COPIED_BYTES + 1)] {
            let mut buffer = LineBuffer::new(LONG);
            let text = format!("{}\n{large}\n{short}\n{short}\n", "z".repeat(LONG));
            for line in fed(&mut buffer, text.as_bytes()) {
                let BufferedLine::Whole(line) = line else { panic!("a whole line") };
                let length = line.len();
                // A unique line is converted without a copy, and shows its allocation.
                let allocated = line.try_into_mut().map_or(usize::MAX, |line| line.capacity());
                assert!(allocated <= 4 * length, "{length} bytes keep {allocated}");
            }
        }
    }

    /// However small the parts of the allocation become.
    #[test]
    fn lines_of_half_the_rest_keep_little_in_memory() {
        let mut buffer = LineBuffer::<DiscardedLine>::new(64 * 1024 * 1024);
        let lengths = std::iter::successors(Some(16 * 1024 * 1024), |length| Some(length / 2));
        let lengths: Vec<usize> = lengths.take_while(|length| *length > 1024).collect();
        let mut text = Vec::new();
        for length in &lengths {
            text.extend(std::iter::repeat_n(b'x', *length));
            text.push(b'\n');
        }
        buffer.room().extend_from_slice(&text);
        let mut kept = Vec::new();
        while let Some(BufferedLine::Whole(line)) = buffer.next_line() {
            kept.push(line);
        }
        assert_eq!(kept.iter().map(Bytes::len).collect::<Vec<_>>(), lengths);
        drop(buffer);
        let smallest = kept.pop().unwrap();
        drop(kept);
        let allocated = smallest.try_into_mut().map_or(usize::MAX, |line| line.capacity());
        assert!(allocated < COPIED_BYTES, "{allocated}");
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
