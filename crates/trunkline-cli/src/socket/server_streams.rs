//! Streams to servers of the background service, for commands that would otherwise start them.

use std::path::PathBuf;
use std::sync::Arc;

use tracing::{debug, info};
use trunkline::config::{Server, Trust};
use trunkline::connection::{ServerStream, StreamFuture, StreamSource};

use super::dial::dial;
use super::hello::{ClientEnvironment, Wants};
use super::runtime_dir::RuntimeDir;
use crate::environment::ProcessEnv;

/// Opens streams to the servers of a running service. Without one, servers are started.
pub(crate) struct ServiceStreams {
    folder: RuntimeDir,
    config: Option<PathBuf>,
    environment: Arc<ProcessEnv>,
}

impl ServiceStreams {
    /// Streams for the servers of a configuration file, or of the one that is found. `None` if there can be no
    /// service.
    pub(crate) fn new(config: Option<PathBuf>, environment: &Arc<ProcessEnv>) -> Option<Self> {
        let folder = RuntimeDir::of(environment).ok()?;
        // The service has another working directory.
        let config = config.map(|file| environment.working_directory().join(file));
        Some(Self { folder, config, environment: Arc::clone(environment) })
    }

    fn wants(&self, server: &Server) -> Wants {
        let directory = self.environment.working_directory().to_owned();
        let mut client = ClientEnvironment::new(directory, self.environment.variables());
        client.config.clone_from(&self.config);
        client.server = Some(server.name.as_str().to_owned());
        Wants::Mcp(Box::new(client))
    }

    async fn stream(&self, server: &Server) -> Option<ServerStream> {
        match dial(&self.folder, self.wants(server)).await {
            Ok(link) => {
                let link = link?;
                info!(server = %server.name, pid = link.welcome.service.pid, "server of the service");
                Some(ServerStream::new(link.lines.into_reader(), link.writer))
            }
            // A start by this process fails with an error that says more, or succeeds.
            Err(error) => {
                debug!(server = %server.name, %error, "the service does not serve it");
                None
            }
        }
    }
}

impl StreamSource for ServiceStreams {
    fn open<'a>(&'a self, server: &'a Server) -> StreamFuture<'a> {
        Box::pin(async move {
            // The service marks the content of untrusted servers, and so would this process, again.
            match server.trust {
                Trust::Untrusted => None,
                Trust::Trusted => self.stream(server).await,
            }
        })
    }
}
