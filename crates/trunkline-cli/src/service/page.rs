//! Serves the control API and the page of the service, on this machine alone.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use trunkline_control::Control;

use super::projects::Projects;
use crate::control::control_of;
use crate::environment::ProcessEnv;
use crate::output::terminal::Terminal;

/// The port of the page, if it is free: bookmarks stay valid.
const PORT: u16 = 7421;

/// The page of the service.
pub(crate) struct ServicePage {
    control: Control,
    /// Its address, or why there is none.
    address: io::Result<String>,
    serving: Option<JoinHandle<io::Result<()>>>,
}

impl ServicePage {
    /// Starts to serve. A service without a page is better than none.
    pub(crate) async fn start(
        projects: &Projects,
        environment: &ProcessEnv,
        terminal: &Terminal,
    ) -> Self {
        let source = Arc::new(projects.clone());
        let activity = projects.activity().clone();
        let control = control_of(source, activity, Vec::new(), environment, terminal);
        match bind().await {
            Ok((listener, address)) => {
                let router = trunkline_control::router(&control);
                let serving = trunkline_gateway::serve(listener, router);
                let serving = Some(tokio::spawn(serving.into_future()));
                Self { control, address: Ok(format!("http://{address}")), serving }
            }
            Err(error) => Self { control, address: Err(error), serving: None },
        }
    }

    /// A link that opens the page.
    pub(crate) fn link(&self) -> Result<String, String> {
        match &self.address {
            Ok(address) => Ok(self.control.login_link(address).url),
            Err(error) => Err(format!("the service cannot listen for the page: {error}")),
        }
    }

    /// The address without a login.
    pub(crate) fn address(&self) -> Option<&str> {
        self.address.as_deref().ok()
    }

    /// Whether a page is open.
    pub(crate) fn is_watched(&self) -> bool {
        self.control.is_watched()
    }
}

impl Drop for ServicePage {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

async fn bind() -> io::Result<(TcpListener, SocketAddr)> {
    let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).await {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
    };
    let address = listener.local_addr()?;
    Ok((listener, address))
}
