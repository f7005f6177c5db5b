//! Links to log in to a server, for clients that open URLs: a login that is completed in the background.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;
use tracing::debug;

use super::{Host, WeakHost};
use crate::name::ServerName;
use crate::oauth::{LoginRequest, LoopbackListener, PendingLogin};

/// Time for the user to open the link and log in.
const LINK_LIFETIME: Duration = Duration::from_secs(600);

/// Time to find the authorization server: a caller waits for the link.
const LINK_TIMEOUT: Duration = Duration::from_secs(15);

/// The links that wait for a user, one for each server.
#[derive(Default)]
pub(super) struct LoginLinks(Mutex<HashMap<ServerName, LoginLink>>);

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
        let status = connection.status();
        let needs_login = status.needs_login();
        // Locked while the link is made, so that many calls make one.
        let mut links = self.shared.login_links.0.lock().await;
        if let Some(link) = links.get(server) {
            return Some(link.clone());
        }
        if !needs_login {
            return None;
        }
        let begun = timeout(LINK_TIMEOUT, self.begin_linked_login(server)).await.ok()?;
        let (listener, login) = begun?;
        let id = login.url().query_pairs().find(|(key, _)| key == "state")?.1.into_owned();
        let link = LoginLink { url: login.url().to_string(), id };
        links.insert(server.clone(), link.clone());
        tokio::spawn(complete(self.downgrade(), server.clone(), (listener, login)));
        Some(link)
    }

    async fn begin_linked_login(
        &self,
        server: &ServerName,
    ) -> Option<(LoopbackListener, PendingLogin)> {
        let listener = LoopbackListener::bind(None).await.ok()?;
        let request = LoginRequest::default().redirect_uri(listener.redirect_uri());
        let login = self.begin_login(server.as_str(), request).await;
        let login = login.inspect_err(|error| debug!(%error, "no link for a login")).ok()?;
        Some((listener, login))
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
    host.shared.login_links.0.lock().await.remove(&server);
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
