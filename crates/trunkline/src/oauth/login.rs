//! A login with the authorization code flow: the URL for the browser, and the redirect that ends it.

use std::fmt;

use hyper::Method;
use serde_json::json;
use tracing::debug;
use url::Url;

use super::challenge::Challenge;
use super::client::{ClientRequest, OAuthClient, shown};
use super::credential::{Credential, CredentialOrigin};
use super::discovery::{Discovery, discover};
use super::form::ClientIdentity;
use super::jwt::{DpopKey, pkce_challenge, random_text};
use super::quote::quoted;
use super::scopes::union;
use super::server_auth::ServerAuth;
use super::token::{Grant, GrantError, TokenRequest, TokenResponse};
use crate::config::Secret;
use crate::error::{Error, ErrorKind};
use crate::transport::GuardedPost;

/// Scope of refresh tokens, where an authorization server has it.
const OFFLINE_ACCESS: &str = "offline_access";

/// A login to begin.
#[derive(Clone, Debug, Default)]
pub struct LoginRequest {
    /// The redirect URI: that of a [`LoopbackListener`](super::LoopbackListener), unless the configuration
    /// has one.
    redirect_uri: Option<String>,
    /// Scopes to request in addition to those of the server and of an earlier login.
    scopes: Vec<Box<str>>,
}

impl LoginRequest {
    /// Sets the redirect URI.
    #[must_use]
    pub fn redirect_uri(self, redirect_uri: impl Into<String>) -> Self {
        Self { redirect_uri: Some(redirect_uri.into()), ..self }
    }

    /// Adds scopes.
    #[must_use]
    pub fn scopes<S: Into<Box<str>>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }
}

/// A login that waits for the redirect of the browser. It is valid in this process only.
#[must_use = "a login is completed with `finish`"]
pub struct PendingLogin {
    flow: LoginFlow,
    url: Url,
    redirect_uri: String,
    state: String,
    verifier: Secret,
}

impl fmt::Debug for PendingLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingLogin").field("issuer", &self.issuer()).finish_non_exhaustive()
    }
}

/// A login that has succeeded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoginOutcome {
    /// The origin of the authorization server.
    pub issuer: String,
    /// The scopes of the token.
    pub scopes: Vec<Box<str>>,
    /// Whether the login can be renewed without the user.
    pub is_renewable: bool,
}

/// What a login has found out so far.
pub(super) struct LoginFlow {
    pub(super) auth: ServerAuth,
    pub(super) discovery: Discovery,
    pub(super) client: OAuthClient,
    pub(super) scopes: Vec<Box<str>>,
    pub(super) dpop: Option<DpopKey>,
}

/// How a login is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LoginKind {
    Browser,
    Device,
}

impl ServerAuth {
    /// Begins a login. Nothing is stored before it ends.
    pub(crate) async fn begin_login(&self, request: LoginRequest) -> Result<PendingLogin, Error> {
        let settings = &self.target.settings;
        let redirect_uri =
            request.redirect_uri.clone().or(settings.redirect_uri.as_deref().map(str::to_owned));
        let redirect_uri = redirect_uri.ok_or_else(|| {
            Error::new(ErrorKind::UnusableValue, "a login needs a redirect address")
        })?;
        let flow = self.flow(&request, Some(&redirect_uri), LoginKind::Browser).await?;
        flow.discovery.authorization.check_pkce()?;
        let (state, verifier) = (random_text()?, Secret::new(random_text()?));
        let url = flow.authorization_url(&redirect_uri, &state, &verifier)?;
        Ok(PendingLogin { flow, url, redirect_uri, state, verifier })
    }

    /// Finds the authorization server and the client.
    pub(super) async fn flow(
        &self,
        request: &LoginRequest,
        redirect_uri: Option<&str>,
        kind: LoginKind,
    ) -> Result<LoginFlow, Error> {
        if self.is_automatic() {
            let grant = self.target.settings.grant.as_str();
            let message = format!("it needs no login: its tokens come from the grant `{grant}`");
            return Err(Error::new(ErrorKind::UnusableValue, message));
        }
        let challenge = match self.source.challenge() {
            Some(challenge) => Some(challenge),
            None => self.probe().await?,
        };
        let target = &self.target;
        let discovery =
            discover(&target.http, &target.url, challenge.as_ref(), &target.settings).await?;
        if kind == LoginKind::Device {
            // Before a client is registered for it.
            discovery.authorization.device_endpoint()?;
        }
        // A broken entry is replaced by the login.
        let earlier = self.source.load().await.ok().flatten();
        // Its client secret goes to the same place only.
        let earlier = earlier.filter(|it| {
            it.issuer == discovery.authorization.issuer
                && Some(&it.token_endpoint) == discovery.authorization.token_endpoint.as_ref()
        });
        let client = ClientRequest {
            settings: &target.settings,
            client_name: &self.options().client_name,
            metadata_url: self.options().client_metadata_url.as_deref(),
            redirect_uri,
            earlier: earlier.as_ref().map(|it| &it.client),
            is_device: kind == LoginKind::Device,
        };
        let client = client.find(&target.http, &discovery).await?;
        let scopes = self.scopes(request, challenge.as_ref(), &discovery, earlier.as_ref());
        let dpop = discovery.needs_dpop.then(DpopKey::generate).transpose()?;
        Ok(LoginFlow { auth: self.clone(), discovery, client, scopes, dpop })
    }

    /// The challenge of the server, for a login before any other request.
    async fn probe(&self) -> Result<Option<Challenge>, Error> {
        let message = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": { "name": "trunkline", "version": env!("CARGO_PKG_VERSION") },
            },
        });
        let url = &self.target.url;
        let post = GuardedPost {
            url,
            content_type: "application/json",
            headers: Vec::new(),
            body: message.to_string(),
        };
        let response = self.target.http.post(post).await?;
        debug!(status = response.status.as_u16(), method = %Method::POST, "probe for a challenge");
        Ok(Challenge::from_headers(&response.headers))
    }

    /// The scopes to request: the configured ones; else those of the challenge, else those of the resource,
    /// with those of an earlier login and of the caller.
    fn scopes(
        &self,
        request: &LoginRequest,
        challenge: Option<&Challenge>,
        discovery: &Discovery,
        earlier: Option<&Credential>,
    ) -> Vec<Box<str>> {
        if let Some(configured) = &self.target.settings.scopes {
            return union(configured, &request.scopes);
        }
        let asked = challenge.and_then(|challenge| challenge.scopes.clone());
        let asked = asked.or_else(|| discovery.scopes.clone()).unwrap_or_default();
        let kept = earlier.map(|it| it.requested.clone()).unwrap_or_default();
        let mut scopes = union(&union(&kept, &asked), &request.scopes);
        if discovery.authorization.has_scope(OFFLINE_ACCESS) {
            scopes = union(&scopes, &[OFFLINE_ACCESS.into()]);
        }
        scopes
    }
}

impl LoginFlow {
    fn authorization_url(
        &self,
        redirect_uri: &str,
        state: &str,
        verifier: &Secret,
    ) -> Result<Url, Error> {
        let authorization = &self.discovery.authorization;
        let endpoint = authorization.authorization_endpoint.as_ref();
        let mut url = authorization.endpoint(endpoint, "page for logins")?.clone();
        self.auth.target.http.check(&url)?;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client.id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("state", state)
            .append_pair("code_challenge", &pkce_challenge(verifier))
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &self.discovery.resource);
        if !self.scopes.is_empty() {
            url.query_pairs_mut().append_pair("scope", &self.scopes.join(" "));
        }
        if self.scopes.iter().any(|scope| &**scope == OFFLINE_ACCESS) {
            // Without it, OpenID providers leave out the refresh token.
            url.query_pairs_mut().append_pair("prompt", "consent");
        }
        Ok(url)
    }

    /// Exchanges a grant, and stores the credential.
    pub(super) async fn exchange(&self, grant: Grant<'_>) -> Result<LoginOutcome, Error> {
        let response = self.request(grant).await.map_err(GrantError::into_error)?;
        self.store(response).await
    }

    /// The client of this login.
    pub(super) fn identity(&self) -> ClientIdentity<'_> {
        ClientIdentity {
            client: &self.client,
            issuer: &self.discovery.authorization.issuer,
            signing_key: self.auth.target.settings.signing_key(),
        }
    }

    /// Requests tokens for a grant.
    pub(super) async fn request(&self, grant: Grant<'_>) -> Result<TokenResponse, GrantError> {
        let authorization = &self.discovery.authorization;
        let endpoint = authorization.token_endpoint.as_ref();
        let request = TokenRequest {
            endpoint: authorization.endpoint(endpoint, "token endpoint")?,
            identity: self.identity(),
            grant,
            resource: Some(&self.discovery.resource),
            scopes: &self.scopes,
            dpop: self.dpop.as_ref(),
        };
        request.send(&self.auth.target.http).await
    }

    /// Stores a credential, and publishes it to the requests of this process.
    pub(super) async fn store(&self, response: TokenResponse) -> Result<LoginOutcome, Error> {
        let authorization = &self.discovery.authorization;
        let endpoint = authorization.token_endpoint.as_ref();
        let origin = CredentialOrigin {
            server: self.auth.target.url.origin().ascii_serialization(),
            resource: self.discovery.resource.clone(),
            issuer: authorization.issuer.clone(),
            token_endpoint: authorization.endpoint(endpoint, "token endpoint")?.clone(),
            revocation_endpoint: authorization.revocation_endpoint.clone(),
            client: self.client.clone(),
            scopes: self.scopes.clone(),
            dpop_key: self.dpop.as_ref().map(|key| key.stored().clone()),
        };
        let credential = Credential::new(origin, response);
        let outcome = LoginOutcome {
            issuer: shown(&credential.issuer),
            scopes: credential.scopes.clone(),
            is_renewable: credential.refresh_token.is_some(),
        };
        let source = &self.auth.source;
        let _guard = source.lock().await?;
        source.save(&credential).await?;
        source.publish(Some(credential));
        Ok(outcome)
    }
}

impl PendingLogin {
    /// The URL that the user opens in a browser.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The redirect URI of this login.
    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// The origin of the authorization server.
    pub fn issuer(&self) -> String {
        shown(&self.flow.discovery.authorization.issuer)
    }

    /// Whether a redirect belongs to this login. Others are ignored: any page can send the browser to the
    /// redirect URI.
    pub fn is_for(&self, callback: &Url) -> bool {
        parameter(callback, "state").is_some_and(|state| state == self.state)
    }

    /// Completes the login with the URL that the browser was redirected to, and stores the credential.
    ///
    /// # Errors
    ///
    /// If the redirect is not that of this login or of its authorization server, if the user has refused, or
    /// if the tokens cannot be obtained or stored. Nothing is stored then.
    pub async fn finish(self, callback: &Url) -> Result<LoginOutcome, Error> {
        let server = self.flow.auth.target.server.clone();
        self.complete(callback).await.map_err(|error| error.of(&server))
    }

    async fn complete(self, callback: &Url) -> Result<LoginOutcome, Error> {
        if !self.is_for(callback) {
            let message = "the redirect does not belong to this login (its `state` is another one)";
            return Err(Error::new(ErrorKind::ProtocolViolation, message)
                .with_hint("begin again, and use the newest link"));
        }
        // Before anything else of the redirect is believed.
        self.check_issuer(callback)?;
        if let Some(error) = parameter(callback, "error") {
            return Err(refused(&error, parameter(callback, "error_description")));
        }
        let Some(code) = parameter(callback, "code") else {
            let message = "the redirect has no code";
            return Err(Error::new(ErrorKind::ProtocolViolation, message));
        };
        let code = Secret::new(code);
        let (redirect_uri, verifier) = (self.redirect_uri.as_str(), &self.verifier);
        self.flow.exchange(Grant::Code { code: &code, redirect_uri, verifier }).await
    }

    /// Checks the issuer of the redirect (RFC 9207), character by character.
    fn check_issuer(&self, callback: &Url) -> Result<(), Error> {
        let authorization = &self.flow.discovery.authorization;
        let message = match parameter(callback, "iss") {
            Some(issuer) if issuer == authorization.issuer => return Ok(()),
            None if !authorization.authorization_response_iss_parameter_supported => return Ok(()),
            Some(_) => "the redirect comes from another authorization server than the login",
            None => {
                "the redirect does not say which authorization server it comes from, although that of \
                 the login always does"
            }
        };
        Err(Error::new(ErrorKind::ProtocolViolation, message)
            .with_hint("do not enter anything there; tell the operator of the server"))
    }
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

fn refused(error: &str, description: Option<String>) -> Error {
    let mut message = format!("the login was refused: {}", quoted(error, Vec::new()));
    if let Some(description) = description.filter(|text| !text.is_empty()) {
        message = format!("{message} ({})", quoted(&description, Vec::new()));
    }
    Error::new(ErrorKind::Unauthorized, message)
}
