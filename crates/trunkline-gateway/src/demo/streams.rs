//! The demo servers over a pair of streams, with one message per line.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use super::{DemoServer, LONGEST_MESSAGE, answer};
use crate::request::errors::{error_message, too_long};
use crate::transport::ndjson::{InputLine, LineReader};

/// Handles one line after another: no tool takes long enough to need concurrency.
pub(super) async fn serve<R, W>(server: DemoServer, reader: R, mut writer: W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut lines = LineReader::new(reader, LONGEST_MESSAGE);
    while let Some(line) = lines.next().await? {
        let answered = match line {
            InputLine::Message(message) => answer::answer(server, &message),
            InputLine::TooLong => Some(error_message(None, &too_long(LONGEST_MESSAGE))),
        };
        if let Some(reply) = answered {
            writer.write_all(&[&reply[..], b"\n"].concat()).await?;
            writer.flush().await?;
        }
    }
    Ok(())
}
