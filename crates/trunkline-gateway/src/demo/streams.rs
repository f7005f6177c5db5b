//! The servers over a pair of streams: a message a line, an answer a line.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use super::message::{self, Failure};
use super::{DemoServer, LONGEST_MESSAGE, answer};
use crate::lines::{Line, Lines};

/// Answers lines one after another: no tool takes long enough to overtake it.
pub(super) async fn serve<R, W>(server: DemoServer, reader: R, mut writer: W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut lines = Lines::new(reader, LONGEST_MESSAGE);
    while let Some(line) = lines.next().await? {
        let answered = match line {
            Line::Blank => None,
            Line::Message(message) => answer::answer_bytes(server, &message),
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
