//! Lines that wait for a stream, and the one that is being written. A line counts as sent once its first byte
//! may have been written.

use std::collections::VecDeque;
use std::future::pending;
use std::io;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

/// Lines that wait to be written. The first one may be written in part.
#[derive(Default)]
pub(crate) struct LineQueue {
    lines: VecDeque<QueuedLine>,
    len: usize,
    /// The rest of the line that is being written.
    started: Option<Bytes>,
}

struct QueuedLine {
    line: Bytes,
    /// Whether it is known as sent before it is written.
    is_recorded: bool,
}

impl LineQueue {
    pub(crate) fn push(&mut self, line: Bytes) {
        self.len += line.len();
        self.lines.push_back(QueuedLine { line, is_recorded: false });
    }

    pub(crate) fn extend(&mut self, line: Option<Bytes>) {
        line.into_iter().for_each(|line| self.push(line));
    }

    /// Puts a line before all others that were not started, without recording it.
    pub(crate) fn push_recorded(&mut self, line: Bytes) {
        self.len += line.len();
        self.lines.push_front(QueuedLine { line, is_recorded: true });
    }

    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.started.is_none()
    }

    pub(crate) fn has_started(&self) -> bool {
        self.started.is_some()
    }

    /// Starts the next line, unless one is being written. `record` may change or drop it.
    pub(crate) fn start(&mut self, mut record: impl FnMut(&Bytes) -> Option<Bytes>) {
        while self.started.is_none()
            && let Some(QueuedLine { line, is_recorded }) = self.lines.pop_front()
        {
            self.len -= line.len();
            let line = if is_recorded { Some(line) } else { record(&line) };
            self.started = line.as_ref().map(with_line_break);
        }
    }

    /// Drops the line that was written in part.
    pub(crate) fn forget_started(&mut self) {
        self.started = None;
        // Those of a session that is opened again are made anew.
        let (kept, dropped): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.lines).into_iter().partition(|it| !it.is_recorded);
        self.len -= dropped.iter().map(|it| it.line.len()).sum::<usize>();
        self.lines = kept;
    }

    pub(crate) fn drain(&mut self) -> Vec<Bytes> {
        self.len = 0;
        self.lines.drain(..).map(|it| it.line).collect()
    }

    /// Writes a part of the line that was started. Can be dropped without loss.
    pub(crate) async fn write_to<W: AsyncWrite + Unpin>(
        &mut self,
        writer: Option<&mut W>,
    ) -> io::Result<()> {
        let Some(writer) = writer else { return pending().await };
        let Some(rest) = &mut self.started else { return Ok(()) };
        let count = writer.write(rest).await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let _ = rest.split_to(count);
        if rest.is_empty() {
            self.started = None;
        }
        Ok(())
    }

    pub(crate) async fn write_all_to<W: AsyncWrite + Unpin>(
        &mut self,
        writer: &mut W,
    ) -> io::Result<()> {
        while !self.is_empty() {
            self.start(|line| Some(line.clone()));
            self.write_to(Some(writer)).await?;
        }
        writer.flush().await
    }
}

fn with_line_break(line: &Bytes) -> Bytes {
    let mut text = Vec::with_capacity(line.len() + 1);
    text.extend_from_slice(line);
    text.push(b'\n');
    text.into()
}
