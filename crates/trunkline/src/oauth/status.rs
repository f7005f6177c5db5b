//! The login to a server, as it is stored.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::client::shown;
use super::server_auth::ServerAuth;
use crate::error::Error;

/// A stored login.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoginStatus {
    /// The origin of the authorization server.
    pub issuer: String,
    /// The scopes of the token.
    pub scopes: Vec<Box<str>>,
    /// When the access token expires, if that is known.
    pub expires_at: Option<SystemTime>,
    /// Whether it is renewed without the user.
    pub is_renewable: bool,
    /// The redirect URI that its client was registered with, if the login registered one.
    pub redirect_uri: Option<String>,
}

impl LoginStatus {
    /// Whether the user has to log in again.
    pub fn has_expired(&self) -> bool {
        !self.is_renewable && self.expires_at.is_some_and(|at| at <= SystemTime::now())
    }
}

impl ServerAuth {
    /// Whether the store has a login that this process does not use yet.
    pub(crate) async fn has_new_login(&self) -> bool {
        let Ok(Some(stored)) = self.source.load().await else { return false };
        let is_usable = stored.is_fresh() || stored.refresh_token.is_some();
        let current = self.source.current();
        let is_known = current.is_some_and(|current| {
            current.access_token == stored.access_token
                && current.refresh_token == stored.refresh_token
        });
        is_usable && !is_known
    }

    /// The stored login. No request is sent.
    pub(crate) async fn status(&self) -> Result<Option<LoginStatus>, Error> {
        let stored = self.source.load().await?;
        Ok(stored.map(|stored| LoginStatus {
            issuer: shown(&stored.issuer),
            is_renewable: stored.refresh_token.is_some(),
            expires_at: stored.expires_at.map(|at| UNIX_EPOCH + Duration::from_secs(at)),
            scopes: stored.scopes,
            redirect_uri: stored.client.redirect_uri,
        }))
    }
}
