//! Connects servers that needed a login once another process, such as `trunkline login`, has stored one.

use std::time::Duration;

use tokio::time::sleep;

use super::{Host, WeakHost};
use crate::config::Server;

/// Interval between looks at the store, while a server needs a login. Short enough for a user who has just
/// logged in, and rare enough for a keychain.
const WATCH_INTERVAL: Duration = Duration::from_secs(3);

/// Watches for new logins until the host ends. The store is read only while a server needs one.
pub(super) async fn watch_logins(host: WeakHost) {
    loop {
        sleep(WATCH_INTERVAL).await;
        let Some(host) = host.upgrade() else { return };
        if *host.shared.shutdown.borrow() {
            return;
        }
        for connection in host.shared.servers.connections() {
            if connection.status().needs_login() && has_new_login(&host, connection.server()).await
            {
                connection.start();
            }
        }
    }
}

async fn has_new_login(host: &Host, server: &Server) -> bool {
    let [_, options] = &host.shared.connections;
    match crate::connection::login_auth(server, options).await {
        Ok(auth) => auth.has_new_login().await,
        Err(_) => false,
    }
}
