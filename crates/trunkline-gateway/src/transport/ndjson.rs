//! Reads newline-delimited messages with a length limit.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use trunkline::message::{BufferedLine, DiscardedLine, LineBuffer};

/// Reads newline-delimited messages from a stream.
pub struct LineReader<R> {
    reader: R,
    lines: LineBuffer<DiscardedLine>,
}

/// A line of a stream.
pub enum InputLine {
    /// A message, without surrounding white space.
    Message(Bytes),
    /// A line above the limit, which was discarded.
    TooLong,
}

impl InputLine {
    /// A line without surrounding white space; `None` if it is blank.
    fn of(line: BufferedLine<DiscardedLine>) -> Option<Self> {
        let BufferedLine::Whole(line) = line else { return Some(Self::TooLong) };
        let message = line.slice_ref(line.trim_ascii());
        (!message.is_empty()).then_some(Self::Message(message))
    }
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// A reader with a limit on the length of a line.
    pub fn new(reader: R, longest: usize) -> Self {
        Self { reader, lines: LineBuffer::new(longest) }
    }

    /// The stream. Messages that were received and not read are lost.
    pub fn into_reader(self) -> R {
        self.reader
    }

    /// The next line that is not blank; the end of the stream ends a line too. Cancel safe.
    ///
    /// # Errors
    ///
    /// If the stream fails.
    pub async fn next(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            while let Some(line) = self.lines.next_line() {
                if let Some(line) = InputLine::of(line) {
                    return Ok(Some(line));
                }
            }
            if self.reader.read_buf(self.lines.room()).await? == 0 {
                return Ok(self.lines.last_line().and_then(InputLine::of));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &[u8]) -> Vec<String> {
        let mut lines = LineReader::new(text, 4);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            found.push(match line {
                InputLine::TooLong => "too long".to_owned(),
                InputLine::Message(message) => String::from_utf8(message.to_vec()).unwrap(),
            });
        }
        found
    }

    #[tokio::test]
    async fn every_line_is_one_message_whatever_ends_it() {
        assert_eq!(lines(b"ab\n\r\n  \nabcd\n a\r\nend").await, ["ab", "abcd", "a", "end"]);
        assert!(lines(b"").await.is_empty());
        assert!(lines(b"\n  ").await.is_empty());
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_passed_over_whole() {
        assert_eq!(lines(b"abcde\nab\n").await, ["too long", "ab"]);
        assert_eq!(lines(b"0123456789012345678901234\nab").await, ["too long", "ab"]);
        assert_eq!(lines(b"ab\n012345678901").await, ["ab", "too long"]);
    }
}
