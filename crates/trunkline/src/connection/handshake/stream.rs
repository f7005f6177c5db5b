//! The handshake over a stream that the embedding program opens, in place of a start.

use tokio::time::{Instant, timeout_at};

use super::requests::ProbeOutcome;
use super::{ConnectedServer, NegotiatedSession, ServerConnector};
use crate::connection::session::{Session, shutting_down};
use crate::error::Error;
use crate::transport::AnyTransport;
use crate::transport::stream::StreamTransport;

impl ServerConnector<'_> {
    /// Connects over a stream; `None` if there is none for this server.
    pub(super) async fn open_stream(&self) -> Result<Option<ConnectedServer>, Error> {
        let Some(streams) = self.options.streams() else { return Ok(None) };
        let deadline = Instant::now() + self.timeouts().handshake;
        let opened = tokio::select! {
            opened = timeout_at(deadline, streams.open(self.server)) => opened,
            () = self.wait_for_stop() => return Err(shutting_down()),
        };
        let Some(stream) = opened.map_err(|_| self.timeout_error())? else { return Ok(None) };
        let wire = AnyTransport::Stream(Box::new(StreamTransport::new(stream)));
        let negotiated = self.negotiate_on_stream(self.session(wire), deadline).await?;
        self.connected(negotiated, deadline).await.map(Some)
    }

    /// Negotiates with a server that cannot be restarted.
    async fn negotiate_on_stream(
        &self,
        mut session: Session,
        deadline: Instant,
    ) -> Result<NegotiatedSession, Error> {
        match self.probe(&mut session, deadline).await {
            ProbeOutcome::Modern(described) => Ok((session, described)),
            ProbeOutcome::Legacy => self.initialize_session(session, deadline).await,
            ProbeOutcome::Silent => Err(self.failed(session, self.timeout_error(), deadline).await),
            ProbeOutcome::Spoiled(error) | ProbeOutcome::Hopeless(error) => {
                Err(self.failed(session, error, deadline).await)
            }
        }
    }
}
