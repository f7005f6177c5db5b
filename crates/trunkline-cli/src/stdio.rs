//! Standard input and output as streams, for a server that speaks over them.
//!
//! What is read and written by threads of its own works with everything, and costs two changes of
//! thread for each message. Clients start servers with pipes or sockets, which can say when they are
//! ready. For that they must not block, which others who have them as well should not notice: pipes are
//! opened once more, and sockets are made to block again at the end.

use tokio::io::{AsyncRead, AsyncWrite};

/// What is read from a client.
pub(crate) type Input = Box<dyn AsyncRead + Send + Unpin>;

/// What is written to it.
pub(crate) type Output = Box<dyn AsyncWrite + Send + Unpin>;

pub(crate) use ready::{input, output};

#[cfg(target_os = "linux")]
mod ready {
    use std::fs::{File, Metadata};
    use std::io::{self, Stderr, Stdin, Stdout};
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    use std::os::unix::net;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    use super::{Input, Output};

    /// Standard input, if it can say when there is something to read.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub(crate) fn input(input: &Stdin, messages: &Stderr) -> Option<Input> {
        match StreamKind::of(input, messages)? {
            StreamKind::Pipe => {
                let pipe = pipe::OpenOptions::new().open_receiver("/proc/self/fd/0").ok()?;
                Some(Box::new(pipe))
            }
            StreamKind::Socket(socket) => Some(Box::new(Socket::new(socket)?)),
        }
    }

    /// Standard output, if it can say when there is room.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub(crate) fn output(output: &Stdout, messages: &Stderr) -> Option<Output> {
        match StreamKind::of(output, messages)? {
            StreamKind::Pipe => {
                let pipe = pipe::OpenOptions::new().open_sender("/proc/self/fd/1").ok()?;
                Some(Box::new(pipe))
            }
            StreamKind::Socket(socket) => Some(Box::new(Socket::new(socket)?)),
        }
    }

    /// What a stream is.
    enum StreamKind {
        Pipe,
        Socket(OwnedFd),
    }

    impl StreamKind {
        /// What a stream is, if it is of those that can say when they are ready.
        fn of(stream: &impl AsFd, messages: &Stderr) -> Option<Self> {
            let file = file(stream)?;
            let metadata = file.metadata().ok()?;
            if metadata.file_type().is_fifo() {
                return Some(Self::Pipe);
            }
            // Whoever writes to standard error waits until it is written.
            let is_same = |it: Metadata| (it.dev(), it.ino()) == (metadata.dev(), metadata.ino());
            let is_for_messages = self::file(messages)?.metadata().is_ok_and(is_same);
            let is_socket = metadata.file_type().is_socket() && !is_for_messages;
            is_socket.then(|| Self::Socket(file.into()))
        }
    }

    fn file(stream: &impl AsFd) -> Option<File> {
        stream.as_fd().try_clone_to_owned().ok().map(File::from)
    }

    /// A socket that blocks again once this is dropped: it may be another's as well.
    struct Socket {
        stream: UnixStream,
        blocking: net::UnixStream,
    }

    impl Socket {
        /// A socket, if it is one of this machine.
        fn new(socket: OwnedFd) -> Option<Self> {
            let blocking = net::UnixStream::from(socket);
            blocking.local_addr().ok()?;
            let stream = blocking.try_clone().ok()?;
            stream.set_nonblocking(true).ok()?;
            let stream = UnixStream::from_std(stream).ok()?;
            Some(Self { stream, blocking })
        }
    }

    impl Drop for Socket {
        fn drop(&mut self) {
            // Nobody is left to tell that it cannot be done.
            let _ = self.blocking.set_nonblocking(false);
        }
    }

    impl AsyncRead for Socket {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for Socket {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.stream).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_flush(context)
        }

        fn poll_shutdown(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_shutdown(context)
        }
    }
}

/// Elsewhere nothing of the kind can be had without changing it for others.
#[cfg(not(target_os = "linux"))]
mod ready {
    use std::io::{Stderr, Stdin, Stdout};

    use super::{Input, Output};

    pub(crate) fn input(_: &Stdin, _: &Stderr) -> Option<Input> {
        None
    }

    pub(crate) fn output(_: &Stdout, _: &Stderr) -> Option<Output> {
        None
    }
}
