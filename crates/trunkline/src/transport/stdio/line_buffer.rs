//! Splits a stream of bytes into lines of limited length.

use bytes::{Bytes, BytesMut};

use crate::message::Response;
use crate::transport::truncation::MessageTruncator;

/// Lines up to this size are copied, so that a retained line does not keep its neighbours in
/// memory; longer ones are split off without a copy.
const COPIED_BYTES: usize = 8 * 1024;

/// Capacity for a read while the buffer is empty. It holds many small responses, and is the memory
/// cost of an idle server.
const FIRST_READ_BYTES: usize = 8 * 1024;

/// Capacity for a read in the middle of a line: the size of a pipe.
const READ_BYTES: usize = 64 * 1024;

/// Bytes kept of either end of a line that is too long: its ID is near one of them.
const KEPT_BYTES: usize = 1024;

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::transport) enum BufferedLine {
    /// A whole line, without its line break.
    Whole(Bytes),
    /// A line that exceeds the limit.
    TooLong(Box<OversizedLine>),
}

/// The rest of a line that exceeds the limit.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::transport) struct OversizedLine {
    head: Vec<u8>,
    tail: Vec<u8>,
    shortener: MessageTruncator,
}

/// Bytes that were read and not yet returned as lines.
pub(in crate::transport) struct LineBuffer {
    bytes: BytesMut,
    /// Position where the search for a line break continues.
    searched: usize,
    /// Whether the buffer grew beyond the capacity for an idle server.
    is_large: bool,
    longest: usize,
    /// The line that is being discarded, if any.
    oversized: Option<OversizedLine>,
}

impl LineBuffer {
    pub(in crate::transport) fn new(longest: usize) -> Self {
        Self { bytes: BytesMut::new(), searched: 0, is_large: false, longest, oversized: None }
    }

    /// Buffer for the next read.
    pub(in crate::transport) fn room(&mut self) -> &mut BytesMut {
        if self.bytes.is_empty() && self.oversized.is_none() {
            self.bytes.reserve(FIRST_READ_BYTES);
        } else {
            self.is_large = true;
            self.bytes.reserve(READ_BYTES);
        }
        &mut self.bytes
    }

    /// The next complete line.
    pub(in crate::transport) fn next_line(&mut self) -> Option<BufferedLine> {
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
    pub(in crate::transport) fn last_line(&mut self) -> Option<BufferedLine> {
        if self.bytes.is_empty() && self.oversized.is_none() {
            return None;
        }
        self.bytes.extend_from_slice(b"\n");
        self.next_line()
    }

    fn take(&mut self, length: usize) -> Option<BufferedLine> {
        self.searched = 0;
        if let Some(mut oversized) = self.oversized.take() {
            oversized.add(&self.bytes[..length]);
            advance(&mut self.bytes, length + 1);
            return Some(BufferedLine::TooLong(Box::new(oversized)));
        }
        if length > self.longest {
            let mut oversized = OversizedLine::new(self.longest);
            oversized.add(&self.bytes[..length]);
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
            let oversized = self.oversized.get_or_insert_with(|| OversizedLine::new(self.longest));
            oversized.add(&self.bytes);
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

impl OversizedLine {
    fn new(budget: usize) -> Self {
        let shortener = MessageTruncator::new(budget);
        Self { head: Vec::new(), tail: Vec::new(), shortener }
    }

    /// The response in the line, with a truncated result, if it is one.
    pub(in crate::transport) fn answer(self) -> Option<Response> {
        self.shortener.finish()?.answer()
    }

    fn add(&mut self, bytes: &[u8]) {
        self.shortener.push(bytes);
        let room = KEPT_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(KEPT_BYTES)..]);
        let excess = self.tail.len().saturating_sub(KEPT_BYTES);
        self.tail.drain(..excess);
    }

    /// The ID of the request that the line responds to, as far as it can be determined: a numeric
    /// ID before the payload, or after it.
    pub(in crate::transport) fn id(&self) -> Option<u64> {
        const KEY: &[u8] = b"\"id\":";
        let number = |text: &[u8]| {
            let text = text.trim_ascii_start();
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
        };
        let payload = memchr::memmem::find(&self.head, b"\"result\"").unwrap_or(self.head.len());
        let before = memchr::memmem::find(&self.head[..payload], KEY);
        if let Some(at) = before {
            return number(&self.head[at + KEY.len()..]);
        }
        let after = memchr::memmem::rfind(&self.tail, KEY)?;
        number(&self.tail[after + KEY.len()..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(buffer: &mut LineBuffer, bytes: &[u8]) -> Vec<BufferedLine> {
        buffer.room().extend_from_slice(bytes);
        std::iter::from_fn(|| buffer.next_line()).collect()
    }

    fn whole(text: &str) -> BufferedLine {
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
    fn a_line_that_is_too_long_is_thrown_away_and_the_next_one_is_not() {
        let mut buffer = LineBuffer::new(1000);
        let mut lines = Vec::new();
        lines.extend(fed(&mut buffer, br#"{"jsonrpc":"2.0","id":17,"result":""#));
        for _ in 0..100 {
            lines.extend(fed(&mut buffer, &[b'x'; 500]));
            assert!(buffer.bytes.len() <= 1500);
        }
        lines.extend(fed(&mut buffer, b"\"}\nnext\n"));
        let [BufferedLine::TooLong(oversized), next] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!(oversized.id(), Some(17));
        assert_eq!(*next, whole("next"));
    }

    #[test]
    fn the_id_of_a_long_line_is_found_at_either_end_and_not_inside() {
        let oversized = |text: &str| {
            let mut buffer = LineBuffer::new(10);
            match fed(&mut buffer, format!("{text}\n").as_bytes()).pop() {
                Some(BufferedLine::TooLong(oversized)) => oversized.id(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(oversized(r#"{"id": 3 ,"result":{"id":9}}"#), Some(3));
        assert_eq!(oversized(r#"{"result":{"x":"yyyyyyyyyyyy"},"id":4}"#), Some(4));
        assert_eq!(oversized(r#"{"method":"notifications/x","params":{}}"#), None);
    }
}
