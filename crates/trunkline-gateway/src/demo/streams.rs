//! The servers over a pair of streams: a message a line, an answer a line.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use super::{DemoServer, LONGEST_MESSAGE, answer};
use crate::request::errors::refusal;
use crate::request::malformed;
use crate::transport::ndjson::{Line, Lines};

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
            Line::Message(message) => answer::answer(server, &message),
            Line::TooLong => Some(refusal(None, &malformed::too_long(LONGEST_MESSAGE))),
        };
        if let Some(reply) = answered {
            writer.write_all(&[&reply[..], b"\n"].concat()).await?;
            writer.flush().await?;
        }
    }
    Ok(())
}
