//! Providers of credentials that the embedding host supplies, by `authProviderId`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::header::{HeaderValue, WWW_AUTHENTICATE};
use tokio::sync::Mutex as AsyncMutex;

use super::{AfterRefusal, AuthFuture, AuthHeaders, AuthRefusal, AuthRequest, RequestAuth};
use crate::config::Secret;
use crate::error::Error;
use crate::name::ServerName;

/// Supplies the credentials of servers with an `authProviderId` (CON-12).
///
/// A host that keeps tokens elsewhere implements it, and adds it with
/// [`HostBuilder::auth_provider`](crate::HostBuilder::auth_provider):
///
/// ```
/// use std::sync::Arc;
/// use trunkline::auth::{AuthFuture, AuthProvider, CredentialRequest};
/// use trunkline::config::Secret;
/// use trunkline::Host;
///
/// struct Vault;
///
/// impl AuthProvider for Vault {
///     fn authorization<'a>(&'a self, request: CredentialRequest<'a>) -> AuthFuture<'a, Secret> {
///         // `request.rejected` is the value that the server has just refused, if any.
///         let token = if request.rejected.is_some() { "second" } else { "first" };
///         Box::pin(async move { Ok(Secret::new(format!("Bearer {token}"))) })
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let host = Host::builder()
///     .config_text("mcp.json", r#"{ "mcpServers": {
///         "docs": { "url": "https://example.com/mcp", "authProviderId": "vault" }
///     } }"#)
///     .auth_provider("vault", Arc::new(Vault))
///     .start()
///     .await?;
/// # host.shutdown().await;
/// # Ok::<(), trunkline::host::StartError>(()) }).unwrap();
/// ```
pub trait AuthProvider: Send + Sync {
    /// The value of the `Authorization` header. It is used until the server refuses it; then this is
    /// called again, once for all requests that were refused with the same value.
    fn authorization<'a>(&'a self, request: CredentialRequest<'a>) -> AuthFuture<'a, Secret>;
}

/// The server that needs a credential, and the one that it refused.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CredentialRequest<'a> {
    /// The name of the server in the configuration.
    pub server: &'a ServerName,
    /// The value that the server refused with status 401.
    pub rejected: Option<&'a Secret>,
    /// The `WWW-Authenticate` header of that response.
    pub challenge: Option<&'a str>,
}

/// Authorizes requests with the values of a provider.
pub(crate) struct ProviderAuth {
    server: ServerName,
    provider: Arc<dyn AuthProvider>,
    current: Mutex<Option<Secret>>,
    /// Held while the provider works, so that it is asked once.
    asking: AsyncMutex<()>,
}

impl ProviderAuth {
    /// Authorization of one server.
    pub(crate) fn new(server: ServerName, provider: Arc<dyn AuthProvider>) -> Self {
        Self { server, provider, current: Mutex::default(), asking: AsyncMutex::default() }
    }

    fn current(&self) -> MutexGuard<'_, Option<Secret>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A value other than the rejected one, from memory or from the provider.
    async fn value(
        &self,
        rejected: Option<&Secret>,
        challenge: Option<&str>,
    ) -> Result<Secret, Error> {
        let usable = || self.current().clone().filter(|value| Some(value) != rejected);
        if let Some(value) = usable() {
            return Ok(value);
        }
        let _asking = self.asking.lock().await;
        if let Some(value) = usable() {
            return Ok(value);
        }
        let request = CredentialRequest { server: &self.server, rejected, challenge };
        let value = self.provider.authorization(request).await?;
        *self.current() = Some(value.clone());
        Ok(value)
    }
}

impl RequestAuth for ProviderAuth {
    fn headers<'a>(&'a self, _: AuthRequest<'a>) -> AuthFuture<'a, AuthHeaders> {
        Box::pin(async { AuthHeaders::authorization(&self.value(None, None).await?) })
    }

    fn on_refused<'a>(&'a self, refusal: AuthRefusal<'a>) -> AuthFuture<'a, AfterRefusal> {
        Box::pin(async move {
            let Some(rejected) = refusal.sent.credential.as_ref().filter(|_| refusal.status == 401)
            else {
                return Ok(AfterRefusal::Accept);
            };
            let challenge = refusal.headers.get(WWW_AUTHENTICATE).map(HeaderValue::as_bytes);
            let challenge = challenge.and_then(|it| str::from_utf8(it).ok());
            let value = self.value(Some(rejected), challenge).await?;
            Ok(if value == *rejected { AfterRefusal::Accept } else { AfterRefusal::Retry })
        })
    }

    fn secrets(&self) -> Vec<Secret> {
        let value = self.current().clone();
        let token = value.as_ref().and_then(|it| it.expose().split_once(' '));
        let token = token.map(|(_, token)| Secret::new(token));
        value.into_iter().chain(token).collect()
    }
}
