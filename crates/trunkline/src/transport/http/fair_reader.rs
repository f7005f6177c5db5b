//! A reader that yields after a byte budget, so that one fast server cannot starve the runtime.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// Byte budget between two yields. hyper reads everything before the response headers without a
/// pause, and the budget of tokio counts reads, each of which may return many bytes.
const MAX_AT_ONCE: usize = 256 * 1024;

/// Counts the bytes read since the last yield.
#[derive(Debug, Default)]
pub(in crate::transport) struct FairReader {
    read: usize,
}

impl FairReader {
    /// Reads from a stream, or yields if the budget is used up.
    pub(in crate::transport) fn poll_read(
        &mut self,
        stream: Pin<&mut impl AsyncRead>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read >= MAX_AT_ONCE {
            self.read = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let polled = stream.poll_read(context, buffer);
        match polled {
            Poll::Ready(_) => self.read += buffer.filled().len() - before,
            Poll::Pending => self.read = 0,
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn continuous_reader_must_yield() {
        let endless = vec![0; 10 * MAX_AT_ONCE];
        let (mut stream, mut pace) = (&endless[..], FairReader::default());
        let mut room = [0; 1000];
        let (mut turns, mut at_once) = (0, 0);
        poll_fn(|context| {
            (turns, at_once) = (turns + 1, 0);
            loop {
                let mut buffer = ReadBuf::new(&mut room);
                let polled = pace.poll_read(Pin::new(&mut stream), context, &mut buffer);
                match (polled, buffer.filled().len()) {
                    (Poll::Pending, _) => return Poll::Pending,
                    (Poll::Ready(_), 0) => return Poll::Ready(()),
                    (Poll::Ready(_), count) => at_once += count,
                }
                assert!(at_once < MAX_AT_ONCE + room.len());
            }
        })
        .await;
        assert_eq!(turns, 10);
    }

    #[test]
    fn a_stream_that_has_no_more_is_a_pause_too() {
        let mut pace = FairReader { read: MAX_AT_ONCE - 1 };
        let (mut stream, _other) = tokio::io::duplex(10);
        let mut room = [0; 10];
        let mut context = Context::from_waker(std::task::Waker::noop());
        let polled =
            pace.poll_read(Pin::new(&mut stream), &mut context, &mut ReadBuf::new(&mut room));
        assert!(polled.is_pending());
        assert_eq!(pace.read, 0);
    }
}
