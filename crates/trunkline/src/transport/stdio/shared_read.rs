//! Reads through one buffer per thread. Most servers have nothing to say most of the time, and a buffer of its own for
//! each of them would be the largest part of the memory of an idle server.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Most bytes of one read. It holds many small responses.
const BUFFER_BYTES: usize = 8 * 1024;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(Vec::with_capacity(BUFFER_BYTES));
}

/// Reads once, and hands over the bytes; none at the end of the stream. Cancel safe.
pub(super) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    mut take: impl FnMut(&[u8]),
) -> io::Result<usize> {
    poll_fn(|context| {
        BUFFER.with_borrow_mut(|buffer| {
            let mut buffer = ReadBuf::uninit(buffer.spare_capacity_mut());
            ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer))?;
            take(buffer.filled());
            Poll::Ready(Ok(buffer.filled().len()))
        })
    })
    .await
}
