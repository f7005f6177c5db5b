//! Serves stdio.

use std::sync::Arc;

use anyhow::Result;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::ServerInitializeError;
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, ServiceExt};

use crate::eras::ServedEras;
use crate::profile::Profile;
use crate::server::Fixture;
use crate::world::World;

/// Serves one client until stdin closes.
pub(crate) async fn serve(generation: ServedEras, profile: Profile) -> Result<()> {
    let inner = AsyncRwTransport::new(tokio::io::stdin(), tokio::io::stdout());
    let fixture = Fixture::new(Arc::new(World::new(profile)), generation);
    match fixture.serve(Gate { inner, generation }).await {
        Ok(running) => running.waiting().await.map(drop)?,
        // A client that disconnects before the handshake is not an error.
        Err(ServerInitializeError::ConnectionClosed(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// A transport that responds to messages of an unsupported era before `rmcp` receives them.
struct Gate<T> {
    inner: T,
    generation: ServedEras,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Gate<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let message = self.inner.receive().await?;
            let Some(refusal) = self.generation.refusal(&message) else { return Some(message) };
            // Spawned, because this future may be dropped at any time.
            tokio::spawn(self.inner.send(refusal));
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
