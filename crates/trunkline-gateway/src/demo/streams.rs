//! The servers over a pair of streams: a message a line, an answer a line.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use super::message::{self, Failure};
use super::{DemoServer, LONGEST_MESSAGE, answer};

/// Answers lines one after another: no tool takes long enough to overtake it.
pub(super) async fn serve<R, W>(server: DemoServer, reader: R, mut writer: W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut lines = Lines { reader: BufReader::new(reader), line: Vec::new() };
    while let Some(line) = lines.next().await? {
        let answered = match line {
            Line::Blank => None,
            Line::Message(message) => answer::answer_bytes(server, message),
            Line::TooLong => Some(message::reply(None, Err(Failure::too_long()))),
        };
        if let Some(mut reply) = answered {
            reply.push('\n');
            writer.write_all(reply.as_bytes()).await?;
            writer.flush().await?;
        }
    }
    Ok(())
}

struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
}

enum Line<'a> {
    Blank,
    Message(&'a [u8]),
    TooLong,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// The next line, which the end of the stream ends as well.
    async fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        if self.read_part().await? == 0 {
            return Ok(None);
        }
        if !self.is_cut() {
            let message = self.line.trim_ascii();
            return Ok(Some(if message.is_empty() { Line::Blank } else { Line::Message(message) }));
        }
        while self.is_cut() && self.read_part().await? > 0 {}
        Ok(Some(Line::TooLong))
    }

    /// Reads up to the end of the line, but one byte more than allowed at most.
    async fn read_part(&mut self) -> io::Result<usize> {
        self.line.clear();
        let mut part = (&mut self.reader).take(LONGEST_MESSAGE as u64 + 1);
        part.read_until(b'\n', &mut self.line).await
    }

    /// Whether the part was cut off by the limit rather than by the end of the line.
    fn is_cut(&self) -> bool {
        self.line.len() > LONGEST_MESSAGE && !self.line.ends_with(b"\n")
    }
}
