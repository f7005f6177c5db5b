//! Standard input and output as asynchronous streams, for serving over stdio.
//!
//! Threads work with every kind of stream, but cost two context switches per message. Clients start
//! servers with pipes or sockets, which support readiness. This needs non-blocking mode, which
//! other processes with the same stream must not notice: pipes are opened again, and sockets are
//! set back to blocking at the end.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

/// Whether the other side has disconnected: pipes and sockets report it differently.
pub(crate) fn is_disconnect(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// The stream from a client.
pub(crate) type Input = Box<dyn AsyncRead + Send + Unpin>;

/// The stream to a client.
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

    /// Standard input as a non-blocking stream, if possible.
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

    /// Standard output as a non-blocking stream, if possible.
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

    /// The kind of a stream.
    enum StreamKind {
        Pipe,
        Socket(OwnedFd),
    }

    impl StreamKind {
        /// The kind of a stream, if it supports readiness.
        fn of(stream: &impl AsFd, messages: &Stderr) -> Option<Self> {
            let file = file(stream)?;
            let metadata = file.metadata().ok()?;
            if metadata.file_type().is_fifo() {
                return Some(Self::Pipe);
            }
            // Stderr on the same socket has to stay blocking.
            let is_same = |it: Metadata| (it.dev(), it.ino()) == (metadata.dev(), metadata.ino());
            let is_for_messages = self::file(messages)?.metadata().is_ok_and(is_same);
            let is_socket = metadata.file_type().is_socket() && !is_for_messages;
            is_socket.then(|| Self::Socket(file.into()))
        }
    }

    fn file(stream: &impl AsFd) -> Option<File> {
        stream.as_fd().try_clone_to_owned().ok().map(File::from)
    }

    /// A socket that is set back to blocking when dropped, because other processes may share it.
    struct Socket {
        stream: UnixStream,
        blocking: net::UnixStream,
    }

    impl Socket {
        /// A Unix socket; `None` for other kinds.
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
            // An error cannot be reported here.
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

/// On other systems this is not possible without affecting other processes.
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
