//! Links to log in to a server, for clients that open URLs: a login that is completed in the background.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;
use tracing::debug;
use url::Url;

use super::{Host, WeakHost};
use crate::config::Server;
use crate::name::ServerName;
use crate::oauth::{LoginRequest, LoopbackListener, PendingLogin};

/// Time for the user to open the link and log in.
const LINK_LIFETIME: Duration = Duration::from_secs(600);

/// Time to find the authorization server: a caller waits for the link.
const LINK_TIMEOUT: Duration = Duration::from_secs(15);

/// The links that wait for a user, one for each server.
#[derive(Default)]
pub(super) struct LoginLinks(Mutex<HashMap<ServerName, Arc<LinkSlot>>>);

/// The link of one server. Locked while it is made, so that many calls make one.
type LinkSlot = AsyncMutex<Option<LoginLink>>;

impl LoginLinks {
    fn slot(&self, server: &ServerName) -> Arc<LinkSlot> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(server.clone()).or_default())
    }
}

/// A link that the user opens in a browser on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginLink {
    /// The URL.
    pub url: String,
    /// The same for all requests for this link.
    pub id: String,
}

impl Host {
    /// A link to log in to a server, if it needs a login and the browser of the user runs on this machine
    /// ([`OAuthOptions::has_local_browser`](crate::oauth::OAuthOptions::has_local_browser)). The login is
    /// completed when the user has followed the link, and the server is connected then. Until that happens,
    /// or the link expires, all callers get the same one.
    pub async fn login_link(&self, server: &ServerName) -> Option<LoginLink> {
        let [_, options] = &self.shared.connections;
        let has_browser = options.oauth().is_some_and(|oauth| oauth.options().has_local_browser);
        let connection = self.shared.servers.get(server.as_str()).filter(|_| has_browser)?;
        if !connection.status().needs_login() {
            return None;
        }
        let slot = self.shared.login_links.slot(server);
        let mut link = slot.lock().await;
        if link.is_none() {
            let begun = timeout(LINK_TIMEOUT, self.begin_linked_login(server)).await.ok()?;
            let (listener, login) = begun?;
            let state = login.url().query_pairs().find(|(key, _)| key == "state")?;
            let id = state.1.into_owned();
            *link = Some(LoginLink { url: login.url().to_string(), id });
            tokio::spawn(complete(self.downgrade(), server.clone(), (listener, login)));
        }
        link.clone()
    }

    async fn begin_linked_login(
        &self,
        server: &ServerName,
    ) -> Option<(LoopbackListener, PendingLogin)> {
        let listener = self.login_listener(server.as_str()).await.ok()?;
        let request = LoginRequest::default().redirect_uri(listener.redirect_uri());
        let login = self.begin_login(server.as_str(), request).await;
        let login = login.inspect_err(|error| debug!(%error, "no link for a login")).ok()?;
        Some((listener, login))
    }

    /// Listens for the redirect of a login: where the configuration says, else where the last login did, else
    /// on any free port.
    ///
    /// # Errors
    ///
    /// If the configured port is in use.
    pub async fn login_listener(&self, server: &str) -> io::Result<LoopbackListener> {
        let config = self.config();
        let settings = config.server(server).and_then(Server::oauth_settings);
        if let Some(uri) = settings.and_then(|it| it.redirect_uri.as_deref()) {
            return LoopbackListener::bind_uri(uri).await;
        }
        if let Some(port) = settings.and_then(|it| it.callback_port) {
            return LoopbackListener::bind(Some(port)).await;
        }
        // A client that was registered for a port is used again at that port.
        let earlier = self.login_status(server).await.ok().flatten();
        let earlier = earlier.and_then(|it| Url::parse(it.redirect_uri.as_deref()?).ok()?.port());
        match LoopbackListener::bind(earlier).await {
            Err(_) if earlier.is_some() => LoopbackListener::bind(None).await,
            bound => bound,
        }
    }
}

/// Waits for the user, completes the login, and connects the server.
async fn complete(
    host: WeakHost,
    server: ServerName,
    (listener, login): (LoopbackListener, PendingLogin),
) {
    let callback = timeout(LINK_LIFETIME, listener.callback(|url| login.is_for(url)));
    let callback = tokio::select! {
        callback = callback => callback.ok().and_then(Result::ok),
        () = until_shutdown(&host) => return,
    };
    if let Some(callback) = callback
        && let Err(error) = login.finish(&callback).await
    {
        debug!(%error, "a login by link failed");
    }
    let Some(host) = host.upgrade() else { return };
    *host.shared.login_links.slot(&server).lock().await = None;
    if let Some(connection) = host.shared.servers.get(server.as_str()) {
        connection.start();
    }
}

async fn until_shutdown(host: &WeakHost) {
    let started = host.upgrade().map(|host| host.shared.shutdown.subscribe());
    if let Some(mut started) = started {
        // An error means that the host is gone.
        let _ = started.wait_for(|is_started| *is_started).await;
    }
}
