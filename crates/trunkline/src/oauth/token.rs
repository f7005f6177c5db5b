//! Requests to the token endpoint, with all grants.

use hyper::Method;
use hyper::header::{HeaderMap, HeaderName};
use serde::Deserialize;
use url::Url;

use super::challenge::TokenScheme;
use super::client::{DEVICE_GRANT, shown};
use super::form::{ClientIdentity, FormRequest};
use super::jwt::{DpopKey, ProofRequest};
use super::quote::quoted;
use crate::config::Secret;
use crate::error::{Error, ErrorKind};
use crate::transport::{GuardedClient, GuardedResponse};

/// The header of a proof of possession, and of the nonce for the next one.
pub(super) const DPOP: HeaderName = HeaderName::from_static("dpop");
pub(super) const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

pub(super) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// A grant, which is exchanged for tokens.
pub(super) enum Grant<'a> {
    Code {
        code: &'a Secret,
        redirect_uri: &'a str,
        verifier: &'a Secret,
    },
    Refresh(&'a Secret),
    ClientCredentials,
    Device(&'a Secret),
    Assertion(&'a Secret),
    /// An ID token, exchanged for an assertion that an authorization server accepts.
    Exchange {
        id_token: &'a Secret,
        audience: &'a str,
    },
}

/// A request for tokens.
pub(super) struct TokenRequest<'a> {
    pub(super) endpoint: &'a Url,
    pub(super) identity: ClientIdentity<'a>,
    pub(super) grant: Grant<'a>,
    pub(super) resource: Option<&'a str>,
    pub(super) scopes: &'a [Box<str>],
    pub(super) dpop: Option<&'a DpopKey>,
}

/// Tokens.
pub(super) struct TokenResponse {
    pub(super) access_token: Secret,
    pub(super) scheme: TokenScheme,
    pub(super) refresh_token: Option<Secret>,
    pub(super) expires_in: Option<u64>,
    pub(super) scopes: Option<Vec<Box<str>>>,
}

/// Why there are no tokens.
#[derive(Debug)]
pub(super) enum GrantError {
    /// The authorization server refused the grant, with an error code of OAuth.
    Refused { code: Box<str>, error: Error },
    /// It could not be reached, or did not answer as it should. The grant may still be good.
    Failed(Error),
}

impl GrantError {
    /// The error for the user.
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Refused { error, .. } | Self::Failed(error) => error,
        }
    }
}

impl From<Error> for GrantError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The members of a successful response that are used.
#[derive(Deserialize)]
struct TokenBody {
    access_token: String,
    token_type: String,
    refresh_token: Option<String>,
    #[serde(default, deserialize_with = "lenient_seconds")]
    expires_in: Option<u64>,
    scope: Option<String>,
}

/// The members of an error response.
#[derive(Deserialize)]
struct ErrorBody {
    error: String,
    error_description: Option<String>,
}

/// Seconds as a number or as text, as some servers send them.
fn lenient_seconds<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    let number = value.as_f64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    Ok(number.map(|seconds| seconds as u64))
}

impl TokenRequest<'_> {
    /// Sends the request. If the server asks for a nonce in the proof, it is sent once more.
    pub(super) async fn send(&self, http: &GuardedClient) -> Result<TokenResponse, GrantError> {
        let response = self.attempt(http, None).await?;
        let nonce = response.headers.get(DPOP_NONCE).and_then(|nonce| nonce.to_str().ok());
        match nonce.filter(|_| self.dpop.is_some() && asks_for_nonce(&response)) {
            Some(nonce) => self.read(&self.attempt(http, Some(nonce)).await?),
            None => self.read(&response),
        }
    }

    async fn attempt(
        &self,
        http: &GuardedClient,
        nonce: Option<&str>,
    ) -> Result<GuardedResponse, Error> {
        let mut form = FormRequest::new(self.grant_form()).authenticate(self.identity)?;
        if let Some(key) = self.dpop {
            let url = self.endpoint;
            let proof = ProofRequest { method: &Method::POST, url, token: None, nonce };
            form = form.header(DPOP, key.proof(&proof)?);
        }
        form.send(http, self.endpoint).await
    }

    fn grant_form(&self) -> Vec<(&'static str, String)> {
        let mut form = match &self.grant {
            Grant::Code { code, redirect_uri, verifier } => vec![
                ("grant_type", "authorization_code".to_owned()),
                ("code", code.expose().to_owned()),
                ("redirect_uri", (*redirect_uri).to_owned()),
                ("code_verifier", verifier.expose().to_owned()),
            ],
            Grant::Refresh(token) => vec![
                ("grant_type", "refresh_token".to_owned()),
                ("refresh_token", token.expose().to_owned()),
            ],
            Grant::ClientCredentials => vec![("grant_type", "client_credentials".to_owned())],
            Grant::Device(code) => vec![
                ("grant_type", DEVICE_GRANT.to_owned()),
                ("device_code", code.expose().to_owned()),
            ],
            Grant::Assertion(assertion) => vec![
                ("grant_type", JWT_BEARER.to_owned()),
                ("assertion", assertion.expose().to_owned()),
            ],
            Grant::Exchange { id_token, audience } => vec![
                ("grant_type", TOKEN_EXCHANGE.to_owned()),
                ("requested_token_type", ID_JAG.to_owned()),
                ("subject_token", id_token.expose().to_owned()),
                ("subject_token_type", ID_TOKEN.to_owned()),
                ("audience", (*audience).to_owned()),
            ],
        };
        form.extend(self.resource.map(|resource| ("resource", resource.to_owned())));
        // A code has its scopes already, and a refresh keeps them.
        if !matches!(self.grant, Grant::Code { .. } | Grant::Refresh(_) | Grant::Device(_))
            && !self.scopes.is_empty()
        {
            form.push(("scope", self.scopes.join(" ")));
        }
        form
    }

    fn read(&self, response: &GuardedResponse) -> Result<TokenResponse, GrantError> {
        if !response.status.is_success() {
            return Err(self.refusal(response));
        }
        let body: TokenBody =
            serde_json::from_slice(&response.body).map_err(|_| self.unreadable())?;
        let scheme = match body.token_type.to_ascii_lowercase().as_str() {
            "bearer" if self.dpop.is_none() => TokenScheme::Bearer,
            "dpop" if self.dpop.is_some() => TokenScheme::Dpop,
            "bearer" => return Err(self.unbound()),
            // The assertion of an identity provider is no access token.
            "n_a" if matches!(self.grant, Grant::Exchange { .. }) => TokenScheme::Bearer,
            _ => return Err(self.unreadable()),
        };
        let scopes = body.scope.map(|text| text.split_whitespace().map(Into::into).collect());
        Ok(TokenResponse {
            access_token: Secret::new(body.access_token),
            scheme,
            refresh_token: body.refresh_token.map(Secret::new),
            expires_in: body.expires_in,
            scopes,
        })
    }

    fn refusal(&self, response: &GuardedResponse) -> GrantError {
        let status = response.status.as_u16();
        let server = shown(self.identity.issuer);
        let body = serde_json::from_slice::<ErrorBody>(&response.body).ok();
        let is_temporary = matches!(status, 408 | 429 | 500..=599);
        let Some(body) = body.filter(|_| !is_temporary) else {
            let message = format!("the authorization server {server} answered {}", response.status);
            let kind = ErrorKind::HttpStatus(status);
            return GrantError::Failed(Error::new(kind, message));
        };
        let mut message =
            format!("the authorization server {server} refused: {}", self.quoted(&body.error));
        if let Some(description) = body.error_description.filter(|text| !text.is_empty()) {
            message = format!("{message} ({})", self.quoted(&description));
        }
        // Some servers respond with these codes and status 400.
        if matches!(body.error.as_str(), "temporarily_unavailable" | "server_error") {
            return GrantError::Failed(Error::new(ErrorKind::HttpStatus(503), message));
        }
        let error = Error::new(ErrorKind::Unauthorized, message);
        GrantError::Refused { code: body.error.into(), error }
    }

    /// Text of the authorization server for a message: without what was sent to it, on one line, short.
    fn quoted(&self, text: &str) -> String {
        let mut sent: Vec<Secret> = self.identity.client.secret.iter().cloned().collect();
        match &self.grant {
            Grant::Code { code, verifier, .. } => sent.extend([*code, *verifier].map(Clone::clone)),
            Grant::Refresh(token) | Grant::Device(token) | Grant::Assertion(token) => {
                sent.push((*token).clone());
            }
            Grant::Exchange { id_token, .. } => sent.push((*id_token).clone()),
            Grant::ClientCredentials => {}
        }
        quoted(text, sent)
    }

    fn unbound(&self) -> GrantError {
        let server = shown(self.identity.issuer);
        let message =
            format!("the authorization server {server} issued a token that is not bound to a key");
        GrantError::Failed(
            Error::new(ErrorKind::ProtocolViolation, message)
                .with_hint("it does not support DPoP, which the server or `oauth.dpop` requires"),
        )
    }

    fn unreadable(&self) -> GrantError {
        let server = shown(self.identity.issuer);
        let message =
            format!("the authorization server {server} answered with something that is no token");
        GrantError::Failed(Error::new(ErrorKind::ProtocolViolation, message))
    }
}

fn asks_for_nonce(response: &GuardedResponse) -> bool {
    let body = serde_json::from_slice::<ErrorBody>(&response.body);
    response.status.is_client_error() && body.is_ok_and(|body| body.error == "use_dpop_nonce")
}

/// The nonce for the next proof at a resource.
pub(super) fn nonce(headers: &HeaderMap) -> Option<Box<str>> {
    headers.get(DPOP_NONCE)?.to_str().ok().map(Into::into)
}
