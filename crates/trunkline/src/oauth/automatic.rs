//! Grants without a user: credentials of the client, a token of the platform, and an ID token of the
//! company's identity provider. Their tokens are kept in memory only, since they can be had again.

use std::sync::Arc;

use url::Url;

use super::client::{ClientAuth, OAuthClient, configured, shown};
use super::credential::{Credential, CredentialOrigin};
use super::discovery::{Discovery, discover};
use super::form::ClientIdentity;
use super::jwt::DpopKey;
use super::scopes::union;
use super::target::AuthTarget;
use super::token::{Grant, TokenRequest};
use super::token_source::TokenSource;
use crate::config::{OAuthGrant, ResolvedOAuth, Secret};
use crate::error::{Error, ErrorKind};

/// Obtains a token, and publishes it. After a rejected one, the authorization server is looked up again: it
/// may be another one now.
pub(super) async fn obtain(
    target: &AuthTarget,
    source: &TokenSource,
    rejected: Option<&Secret>,
    scopes: &[Box<str>],
) -> Result<Option<Arc<Credential>>, Error> {
    if rejected.is_some() {
        source.set_discovery(None);
    }
    let resolve = Arc::clone(&target.resolve);
    let settings = tokio::task::spawn_blocking(move || resolve()).await;
    let settings = settings.unwrap_or_else(|_| Err(unresolved()))?;
    let challenge = source.challenge();
    let discovery = match source.discovery() {
        Some(known) => known,
        None => {
            let found = discover(&target.http, &target.url, challenge.as_ref(), &settings).await?;
            let found = Arc::new(found);
            source.set_discovery(Some(Arc::clone(&found)));
            found
        }
    };
    check_issuer(source, &discovery)?;
    let asked = challenge.and_then(|challenge| challenge.scopes);
    let base = settings.scopes.clone().or(asked).or_else(|| discovery.scopes.clone());
    let scopes = union(&base.unwrap_or_default(), scopes);
    let grant = AutomaticGrant { target, settings: &settings, discovery: &discovery };
    let credential = grant.obtain(scopes).await?;
    Ok(source.publish(Some(credential)))
}

/// One grant for one server.
struct AutomaticGrant<'a> {
    target: &'a AuthTarget,
    settings: &'a ResolvedOAuth,
    discovery: &'a Discovery,
}

impl AutomaticGrant<'_> {
    async fn obtain(&self, scopes: Vec<Box<str>>) -> Result<Credential, Error> {
        let (settings, discovery) = (self.settings, self.discovery);
        let client = self.client()?;
        let key = discovery.needs_dpop.then(DpopKey::generate).transpose()?;
        let assertion = match settings.grant {
            OAuthGrant::EnterpriseManaged => Some(self.exchange().await?),
            _ => settings.assertion.clone(),
        };
        let grant = match &assertion {
            Some(assertion) if settings.grant != OAuthGrant::ClientCredentials => {
                Grant::Assertion(assertion)
            }
            _ => Grant::ClientCredentials,
        };
        let authorization = &discovery.authorization;
        let endpoint = authorization.token_endpoint.as_ref();
        let endpoint = authorization.endpoint(endpoint, "token endpoint")?;
        let request = TokenRequest {
            endpoint,
            identity: ClientIdentity {
                client: &client,
                issuer: &authorization.issuer,
                signing_key: settings.signing_key(),
            },
            grant,
            resource: Some(&discovery.resource),
            scopes: &scopes,
            dpop: key.as_ref(),
        };
        let sent = request.send(&self.target.http).await;
        let response = sent.map_err(|error| self.explain(error.into_error()))?;
        let origin = CredentialOrigin {
            server: self.target.url.to_string(),
            resource: discovery.resource.clone(),
            issuer: authorization.issuer.clone(),
            token_endpoint: endpoint.clone(),
            revocation_endpoint: None,
            dpop_key: key.as_ref().map(|key| key.stored().clone()),
            client,
            scopes,
        };
        Ok(Credential::new(origin, response))
    }

    /// The configured client. A workload may have none: its token identifies it.
    fn client(&self) -> Result<OAuthClient, Error> {
        let nameless = || OAuthClient {
            id: String::new(),
            secret: None,
            auth: ClientAuth::Public,
            redirect_uri: None,
            is_refused: false,
        };
        match configured(self.settings, self.discovery) {
            Some(client) => Ok(client),
            None if self.settings.grant == OAuthGrant::JwtBearer => Ok(nameless()),
            None => Err(Error::new(ErrorKind::MissingSecret, "`oauth.clientId` is missing")),
        }
    }

    /// Exchanges the ID token for an assertion that the authorization server accepts (ID-JAG).
    async fn exchange(&self) -> Result<Secret, Error> {
        let Some(provider) = &self.settings.identity_provider else {
            let message = "`oauth.identityProvider` is missing";
            return Err(Error::new(ErrorKind::MissingSecret, message));
        };
        let endpoint = Url::parse(&provider.token_url).map_err(|_| {
            let message = "`oauth.identityProvider.tokenUrl` is not an address";
            Error::new(ErrorKind::UnusableValue, message)
        })?;
        let id = provider.client_id.as_ref().map(|id| id.expose().to_owned()).unwrap_or_default();
        let auth = match (&provider.client_secret, id.is_empty()) {
            (Some(_), false) => ClientAuth::Basic,
            _ => ClientAuth::Public,
        };
        let client = OAuthClient {
            id,
            secret: provider.client_secret.clone(),
            auth,
            redirect_uri: None,
            is_refused: false,
        };
        let request = TokenRequest {
            endpoint: &endpoint,
            identity: ClientIdentity {
                client: &client,
                issuer: &provider.token_url,
                signing_key: None,
            },
            grant: Grant::Exchange {
                id_token: &provider.id_token,
                audience: &self.discovery.authorization.issuer,
            },
            resource: Some(&self.discovery.resource),
            scopes: self.settings.scopes.as_deref().unwrap_or_default(),
            dpop: None,
        };
        let sent = request.send(&self.target.http).await;
        let response = sent.map_err(|error| self.explain(error.into_error()))?;
        Ok(response.access_token)
    }

    /// A refusal is one of the configured credentials: nothing that a user can log in for.
    fn explain(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::Unauthorized => {
                let grant = self.settings.grant.as_str();
                error.with_hint(format!("check what `oauth` says for the grant `{grant}`"))
            }
            _ => error,
        }
    }
}

/// Checks that the server still names the same authorization server: another one would receive the configured
/// credentials.
fn check_issuer(source: &TokenSource, discovery: &Discovery) -> Result<(), Error> {
    let issuer = &discovery.authorization.issuer;
    match source.current() {
        Some(current) if current.issuer != *issuer => {
            let (before, now) = (shown(&current.issuer), shown(issuer));
            let message = format!(
                "it names another authorization server than before ({now} instead of {before}), which \
                 would receive the credentials in `oauth`"
            );
            Err(Error::new(ErrorKind::Unauthorized, message).with_hint(
                "if that is right, restart; `oauth.metadataUrl` pins an authorization server",
            ))
        }
        _ => Ok(()),
    }
}

fn unresolved() -> Error {
    Error::new(ErrorKind::UnreadableSecret, "the settings in `oauth` could not be read")
}
