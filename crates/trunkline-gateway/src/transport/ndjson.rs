//! Reads newline-delimited messages with a length limit.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};

/// Bytes per read: the capacity of a pipe.
const READ_BYTES: usize = 64 * 1024;

/// The lines of a stream.
pub(crate) struct LineReader<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    longest: usize,
    /// Whether the current line is longer than the limit.
    is_too_long: bool,
}

pub(crate) enum InputLine {
    Blank,
    Message(Bytes),
    TooLong,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(reader: R, longest: usize) -> Self {
        let reader = BufReader::with_capacity(READ_BYTES, reader);
        Self { reader, line: Vec::new(), longest, is_too_long: false }
    }

    /// The next line; the end of the stream ends a line too. Cancel safe.
    pub(crate) async fn next(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            let read = self.read_part().await?;
            if self.line.ends_with(b"\n") {
                break;
            }
            if self.line.len() > self.longest {
                self.is_too_long = true;
                self.line.clear();
            } else if read == 0 {
                if self.line.is_empty() && !self.is_too_long {
                    return Ok(None);
                }
                break;
            }
        }
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            return Ok(Some(InputLine::TooLong));
        }
        let message = Bytes::from(line);
        let message = message.slice_ref(message.trim_ascii());
        Ok(Some(if message.is_empty() { InputLine::Blank } else { InputLine::Message(message) }))
    }

    /// Reads to the end of the line, but at most one byte more than the limit.
    async fn read_part(&mut self) -> io::Result<usize> {
        let room = (self.longest + 1).saturating_sub(self.line.len());
        let mut part = (&mut self.reader).take(room as u64);
        part.read_until(b'\n', &mut self.line).await
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
                InputLine::Blank => "blank".to_owned(),
                InputLine::TooLong => "too long".to_owned(),
                InputLine::Message(message) => String::from_utf8(message.to_vec()).unwrap(),
            });
        }
        found
    }

    #[tokio::test]
    async fn every_line_is_one_message_whatever_ends_it() {
        assert_eq!(lines(b"ab\n\r\n  \nabcd\nend").await, ["ab", "blank", "blank", "abcd", "end"]);
        assert!(lines(b"").await.is_empty());
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_passed_over_whole() {
        assert_eq!(lines(b"abcde\nab\n").await, ["too long", "ab"]);
        assert_eq!(lines(b"0123456789012345678901234\nab").await, ["too long", "ab"]);
        assert_eq!(lines(b"ab\n012345678901").await, ["ab", "too long"]);
    }
}
