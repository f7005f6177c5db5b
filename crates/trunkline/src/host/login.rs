//! Logins of users to remote servers (CON-12).

use super::Host;
use crate::config::Server;
use crate::connection::login_auth;
use crate::error::{Error, ErrorKind};
use crate::oauth::{
    DeviceLogin, LoginRequest, LoginStatus, LogoutOutcome, PendingLogin, ServerAuth,
};

impl Host {
    /// Begins a login to a server. The user opens [`PendingLogin::url`] in a browser; the URL that the
    /// browser is redirected to completes it.
    ///
    /// ```no_run
    /// # async fn login(host: trunkline::Host) -> Result<(), Box<dyn std::error::Error>> {
    /// use trunkline::oauth::{LoginRequest, LoopbackListener};
    ///
    /// let listener = LoopbackListener::bind(None).await?;
    /// let request = LoginRequest::default().redirect_uri(listener.redirect_uri());
    /// let login = host.begin_login("docs", request).await?;
    /// println!("open {}", login.url());
    /// let callback = listener.callback(|url| login.is_for(url)).await?;
    /// login.finish(&callback).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// If the server is unknown, needs no login, or its authorization server cannot be found or trusted.
    pub async fn begin_login(
        &self,
        server: &str,
        request: LoginRequest,
    ) -> Result<PendingLogin, Error> {
        let (server, auth) = self.login_auth(server).await?;
        auth.begin_login(request).await.map_err(|error| error.of(&server.name))
    }

    /// Begins a login on another device, for a machine without a browser.
    ///
    /// # Errors
    ///
    /// As [`begin_login`](Self::begin_login), and if the authorization server does not offer it.
    pub async fn begin_device_login(
        &self,
        server: &str,
        request: LoginRequest,
    ) -> Result<DeviceLogin, Error> {
        let (server, auth) = self.login_auth(server).await?;
        auth.begin_device_login(&request).await.map_err(|error| error.of(&server.name))
    }

    /// Revokes the tokens of a login, removes it, and closes the connection.
    ///
    /// # Errors
    ///
    /// If the server is unknown, or the store cannot be changed.
    pub async fn logout(&self, server: &str) -> Result<LogoutOutcome, Error> {
        let (server, auth) = self.login_auth(server).await?;
        let outcome = auth.logout().await.map_err(|error| error.of(&server.name))?;
        self.close(server.name.as_str()).await;
        Ok(outcome)
    }

    /// The login to a server, as it is stored; `None` if there is none. No request is sent.
    ///
    /// # Errors
    ///
    /// If the server is unknown, needs no login, or the store cannot be read.
    pub async fn login_status(&self, server: &str) -> Result<Option<LoginStatus>, Error> {
        let (server, auth) = self.login_auth(server).await?;
        auth.status().await.map_err(|error| error.of(&server.name))
    }

    async fn login_auth(&self, name: &str) -> Result<(Server, ServerAuth), Error> {
        let config = self.config();
        let Some(server) = config.server(name).cloned() else {
            let message = "there is no such server";
            return Err(Error::new(ErrorKind::UnusableValue, message));
        };
        if let Some(hold) = &server.hold {
            return Err(Error::new(ErrorKind::UnusableValue, hold.to_string()).of(&server.name));
        }
        let [_, options] = &self.shared.connections;
        let auth = login_auth(&server, options).await?;
        Ok((server, auth))
    }
}
