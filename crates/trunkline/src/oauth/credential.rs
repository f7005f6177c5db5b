//! The credential of a login, as it is stored: one entry with everything that a refresh needs.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

use super::challenge::TokenScheme;
use super::client::OAuthClient;
use super::jwt::{DpopKey, now};
use super::secret_text;
use super::token::TokenResponse;
use crate::config::Secret;
use crate::error::Error;
use crate::secrets::StoreError;

/// The format of stored credentials.
const FORMAT: u32 = 1;

/// Time before its expiry at which a token is renewed, in seconds: a request may be under way for a
/// while, and clocks differ.
const EARLY_SECONDS: u64 = 30;

/// The credential of a login. `Debug` prints neither tokens nor keys.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Credential {
    format: u32,
    /// The URL of the server, for people who look at the store.
    pub(super) server: String,
    pub(super) resource: String,
    pub(super) issuer: String,
    pub(super) token_endpoint: Url,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revocation_endpoint: Option<Url>,
    pub(super) client: OAuthClient,
    #[serde(with = "secret_text")]
    pub(super) access_token: Option<Secret>,
    #[serde(default, with = "secret_text", skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<Secret>,
    /// Seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
    /// The scopes of the token.
    pub(super) scopes: Vec<Box<str>>,
    /// The scopes that were requested for it.
    pub(super) requested: Vec<Box<str>>,
    /// The private key that the tokens are bound to.
    #[serde(default, with = "secret_text", skip_serializing_if = "Option::is_none")]
    pub(super) dpop_key: Option<Secret>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// The parts of a credential that do not come from the token endpoint.
pub(super) struct CredentialOrigin {
    pub(super) server: String,
    pub(super) resource: String,
    pub(super) issuer: String,
    pub(super) token_endpoint: Url,
    pub(super) revocation_endpoint: Option<Url>,
    pub(super) client: OAuthClient,
    pub(super) scopes: Vec<Box<str>>,
    pub(super) dpop_key: Option<Secret>,
}

impl Credential {
    pub(super) fn new(origin: CredentialOrigin, response: TokenResponse) -> Self {
        let credential = Self {
            format: FORMAT,
            server: origin.server,
            resource: origin.resource,
            issuer: origin.issuer,
            token_endpoint: origin.token_endpoint,
            revocation_endpoint: origin.revocation_endpoint,
            client: origin.client,
            access_token: None,
            refresh_token: None,
            expires_at: None,
            requested: origin.scopes.clone(),
            scopes: origin.scopes,
            dpop_key: origin.dpop_key,
        };
        credential.renewed(response)
    }

    /// The credential after a refresh. A server that does not rotate refresh tokens sends none.
    pub(super) fn renewed(&self, response: TokenResponse) -> Self {
        let is_bound = response.scheme == TokenScheme::Dpop;
        Self {
            access_token: Some(response.access_token),
            refresh_token: response.refresh_token.or_else(|| self.refresh_token.clone()),
            expires_at: response.expires_in.map(|seconds| now().saturating_add(seconds)),
            scopes: response.scopes.unwrap_or_else(|| self.scopes.clone()),
            dpop_key: self.dpop_key.clone().filter(|_| is_bound),
            ..self.clone()
        }
    }

    /// The credential without its refresh token, which was refused.
    pub(super) fn without_refresh_token(&self) -> Self {
        Self { refresh_token: None, ..self.clone() }
    }

    /// The credential of a client that the authorization server does not know any more.
    pub(super) fn with_refused_client(&self) -> Self {
        let client = OAuthClient { is_refused: true, ..self.client.clone() };
        Self { client, ..self.clone() }
    }

    /// Whether the access token can be used for a while.
    pub(super) fn is_fresh(&self) -> bool {
        self.expires_at.is_none_or(|at| now().saturating_add(EARLY_SECONDS) < at)
    }

    /// Whether the access token has not expired yet.
    pub(super) fn is_valid(&self) -> bool {
        self.expires_at.is_none_or(|at| now() < at)
    }

    /// Whether it has this access token.
    pub(super) fn has_token(&self, token: &Secret) -> bool {
        self.access_token.as_ref() == Some(token)
    }

    /// The key of a bound token.
    pub(super) fn dpop(&self) -> Result<Option<DpopKey>, Error> {
        self.dpop_key.as_ref().map(DpopKey::from_stored).transpose()
    }

    /// Everything in it that must not be printed.
    pub(super) fn secrets(&self) -> impl Iterator<Item = Secret> {
        let own = [&self.access_token, &self.refresh_token, &self.client.secret, &self.dpop_key];
        own.into_iter().flatten().cloned().collect::<Vec<_>>().into_iter()
    }

    /// The text that is stored.
    pub(super) fn to_secret(&self) -> Result<Secret, StoreError> {
        let text = serde_json::to_string(self);
        text.map(Secret::new).map_err(|_| StoreError::new("a login could not be written"))
    }

    /// Reads a stored text.
    pub(super) fn from_secret(text: &Secret) -> Result<Self, StoreError> {
        let unreadable = || {
            StoreError::new("the stored login cannot be read")
                .with_hint("log in again, which replaces it")
        };
        let credential: Self = serde_json::from_str(text.expose()).map_err(|_| unreadable())?;
        match credential.format {
            FORMAT => Ok(credential),
            _ => Err(StoreError::new("the stored login was written by a newer version")
                .with_hint("use that version, or log in again, which replaces it")),
        }
    }
}
