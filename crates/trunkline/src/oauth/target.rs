//! The server that tokens are for.

use std::sync::Arc;

use url::Url;

use crate::config::ResolvedOAuth;
use crate::error::Error;
use crate::name::ServerName;
use crate::transport::GuardedClient;

/// Resolves the settings of a server again: a token of the platform is replaced in its file every hour.
pub(crate) type SettingsResolver = Arc<dyn Fn() -> Result<ResolvedOAuth, Error> + Send + Sync>;

/// The server that requests go to.
pub(crate) struct AuthTarget {
    pub(crate) server: ServerName,
    pub(crate) url: Url,
    /// Reaches the authorization server.
    pub(crate) http: GuardedClient,
    pub(crate) settings: ResolvedOAuth,
    pub(crate) resolve: SettingsResolver,
}
