//! Streams that the embedding program opens, in place of a process or a remote connection.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::{Instant, timeout_at};

use super::ServerConnector;
use crate::config::ResolvedTransport;
use crate::connection::session::shutting_down;
use crate::connection::stream_source::StreamRequest;
use crate::error::Error;
use crate::transport::ServerStream;
use crate::transport::stdio::program_secrets;
use crate::transport::stream::StreamTransport;

/// The use of a stream to a process that earlier clients have used.
#[derive(Default)]
pub(in crate::connection) struct StreamUse {
    is_reused: AtomicBool,
    is_avoided: AtomicBool,
}

impl StreamUse {
    pub(super) fn record(&self, stream: &ServerStream) {
        self.is_reused.store(stream.first_request_id() > 1, Ordering::Relaxed);
    }

    pub(super) fn is_reused(&self) -> bool {
        self.is_reused.load(Ordering::Relaxed)
    }

    pub(super) fn avoid(&self) {
        self.is_reused.store(false, Ordering::Relaxed);
        self.is_avoided.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_avoided(&self) -> bool {
        self.is_avoided.load(Ordering::Relaxed)
    }
}

impl ServerConnector<'_> {
    /// Opens a stream, if the embedding program has one for this server.
    pub(super) async fn open_stream(
        &self,
        transport: &ResolvedTransport,
        deadline: Instant,
    ) -> Result<Option<StreamTransport>, Error> {
        let Some(streams) = self.options.streams().filter(|_| !self.streams.is_avoided()) else {
            return Ok(None);
        };
        let (server, capabilities) = (self.server, &self.options.capabilities());
        let opened = streams.open(StreamRequest { server, transport, capabilities });
        let opened = tokio::select! {
            opened = timeout_at(deadline, opened) => opened,
            () = self.wait_for_stop() => return Err(shutting_down()),
        };
        let Some(stream) = opened.map_err(|_| self.timeout_error())? else { return Ok(None) };
        self.ids.skip_to(stream.first_request_id());
        self.streams.record(&stream);
        let secrets = match transport {
            ResolvedTransport::Stdio(program) => program_secrets(program, self.options.child()),
            ResolvedTransport::Remote(remote) => remote.filled_in.clone(),
        };
        Ok(Some(StreamTransport::new(stream, secrets)))
    }
}
