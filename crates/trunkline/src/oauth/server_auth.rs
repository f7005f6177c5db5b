//! Authorizes the requests to one server with the tokens of a login, and decides what a refusal means.

use std::sync::Arc;

use hyper::header::{HeaderMap, WWW_AUTHENTICATE};

use super::automatic::obtain;
use super::challenge::Challenge;
use super::client::shown;
use super::credential::Credential;
use super::form::ClientIdentity;
use super::jwt::ProofRequest;
use super::quote::quoted;
use super::scopes::union;
use super::target::AuthTarget;
use super::token::{DPOP, Grant, GrantError, TokenRequest, nonce};
use super::token_source::{KnownToken, TokenSource};
use super::{OAuth, OAuthOptions};
use crate::auth::{AfterRefusal, AuthFuture, AuthHeaders, AuthRefusal, AuthRequest, RequestAuth};
use crate::config::{OAuthGrant, Secret};
use crate::error::{Error, ErrorKind};

/// Authorizes the requests to one server. Clones share their tokens.
#[derive(Clone)]
pub(crate) struct ServerAuth {
    pub(super) target: Arc<AuthTarget>,
    pub(super) source: Arc<TokenSource>,
    pub(super) oauth: OAuth,
}

impl ServerAuth {
    pub(super) fn options(&self) -> &OAuthOptions {
        self.oauth.options()
    }

    /// Whether tokens are obtained without a user.
    pub(super) fn is_automatic(&self) -> bool {
        self.target.settings.grant != OAuthGrant::AuthorizationCode
    }

    /// The headers of a request with a token.
    fn headers_of(
        &self,
        credential: &Credential,
        request: AuthRequest<'_>,
    ) -> Result<AuthHeaders, Error> {
        let Some(token) = &credential.access_token else { return Ok(AuthHeaders::default()) };
        let Some(key) = credential.dpop()? else {
            return AuthHeaders::token("Bearer", token);
        };
        let nonce = self.source.nonce();
        let AuthRequest { method, url } = request;
        let proof = ProofRequest { method, url, token: Some(token), nonce: nonce.as_deref() };
        let mut headers = AuthHeaders::token("DPoP", token)?;
        headers.push(DPOP, &key.proof(&proof)?)?;
        Ok(headers)
    }

    /// A token other than the rejected one: of another process, of a refresh, or of an automatic grant with
    /// these scopes too.
    async fn renew(
        &self,
        rejected: Option<&Secret>,
        scopes: Vec<Box<str>>,
    ) -> Result<Option<Arc<Credential>>, Error> {
        let (auth, refused) = (self.clone(), rejected.cloned());
        let permit = self.oauth.begin_save().await;
        let work = async move {
            let renewed = match auth.is_automatic() {
                true => auth.obtain(refused.as_ref(), &scopes).await,
                false => auth.adopt_or_refresh(refused.as_ref()).await,
            };
            drop(permit);
            renewed
        };
        self.source.renew(rejected, work).await
    }

    async fn obtain(
        &self,
        rejected: Option<&Secret>,
        scopes: &[Box<str>],
    ) -> Result<Option<Arc<Credential>>, Error> {
        self.check_unproven(rejected)?;
        let obtained = obtain(&self.target, &self.source, rejected, scopes).await?;
        let token = obtained.as_ref().and_then(|it| it.access_token.clone());
        self.source.set_unproven(token.filter(|_| rejected.is_some()));
        Ok(obtained)
    }

    /// Fails if the server rejects a token that was issued because it had rejected another: a further one would
    /// not help. It may have another authorization server now.
    fn check_unproven(&self, rejected: Option<&Secret>) -> Result<(), Error> {
        match rejected.is_some_and(|token| self.source.is_unproven(token)) {
            true => {
                let message = "it does not accept the token that was just issued for it";
                Err(self.needs_login(Some(&Error::new(ErrorKind::Unauthorized, message))))
            }
            false => Ok(()),
        }
    }

    async fn adopt_or_refresh(
        &self,
        rejected: Option<&Secret>,
    ) -> Result<Option<Arc<Credential>>, Error> {
        let source = &self.source;
        // Most servers have no login, and most logins are fresh: neither needs the lock.
        if source.unsaved().is_none() {
            let stored = source.load().await?;
            let is_done = stored.as_ref().is_none_or(|stored| is_usable(stored, rejected));
            if is_done {
                return Ok(source.publish(stored));
            }
        }
        let _guard = source.lock().await?;
        let stored = match source.unsaved() {
            Some(unsaved) => Some(Credential::clone(&unsaved)),
            None => source.load().await?,
        };
        let Some(stored) = stored else { return Ok(source.publish(None)) };
        if is_usable(&stored, rejected) {
            return Ok(source.publish(Some(stored)));
        }
        let is_rejected = rejected.is_some_and(|token| stored.has_token(token));
        self.check_unproven(rejected.filter(|_| is_rejected))?;
        match stored.refresh_token {
            Some(_) => self.refresh(stored, is_rejected).await,
            None if stored.is_valid() && !is_rejected => Ok(source.publish(Some(stored))),
            None => {
                source.publish(Some(stored));
                Err(self.needs_login(None))
            }
        }
    }

    /// Refreshes a credential, under the lock of the store.
    async fn refresh(
        &self,
        mut stored: Credential,
        is_rejected: bool,
    ) -> Result<Option<Arc<Credential>>, Error> {
        let source = &self.source;
        let is_good = stored.is_valid() && !is_rejected;
        let mut sent = self.request_refresh(&stored).await;
        if is_invalid_grant(&sent)
            && let Some(newer) = self.replacement(&stored).await?
        {
            if is_usable(&newer, stored.access_token.as_ref()) {
                return Ok(source.publish(Some(newer)));
            }
            sent = self.request_refresh(&newer).await;
            stored = newer;
        }
        match sent {
            Ok(renewed) => {
                source.set_unproven(renewed.access_token.clone().filter(|_| is_rejected));
                Ok(source.save_and_publish(renewed).await)
            }
            // The authorization server may be down for a moment, and the token is still good.
            Err(GrantError::Failed(_)) if is_good => {
                source.pause_early_renewal();
                Ok(source.publish(Some(stored)))
            }
            Err(GrantError::Failed(error)) => Err(error),
            Err(GrantError::Refused { code, error }) => {
                self.on_refresh_refused(stored, &code).await;
                Err(self.needs_login(Some(&error)))
            }
        }
    }

    /// The stored credential, if a process that does not lock has replaced the refresh token. One that could not
    /// be stored is newer than all.
    async fn replacement(&self, used: &Credential) -> Result<Option<Credential>, Error> {
        if self.source.unsaved().is_some() {
            return Ok(None);
        }
        let stored = self.source.load().await?;
        let is_newer =
            |it: &Credential| it.refresh_token.is_some() && it.refresh_token != used.refresh_token;
        Ok(stored.filter(is_newer))
    }

    /// Removes what the authorization server does not accept any more, and nothing else. The rest is published,
    /// so that it is not taken for a new login and tried again.
    async fn on_refresh_refused(&self, stored: Credential, code: &str) {
        match code {
            "invalid_grant" => {
                self.source.save_and_publish(stored.without_refresh_token()).await;
            }
            "invalid_client" | "unauthorized_client" => {
                self.source.save_and_publish(stored.with_refused_client()).await;
            }
            _ => {
                self.source.publish(Some(stored));
            }
        }
    }

    /// The client of a stored credential.
    pub(super) fn identity_of<'a>(&'a self, stored: &'a Credential) -> ClientIdentity<'a> {
        let signing_key = self.target.settings.signing_key();
        ClientIdentity { client: &stored.client, issuer: &stored.issuer, signing_key }
    }

    async fn request_refresh(&self, stored: &Credential) -> Result<Credential, GrantError> {
        let Some(token) = &stored.refresh_token else {
            return Err(GrantError::Failed(self.needs_login(None)));
        };
        let key = stored.dpop()?;
        let request = TokenRequest {
            endpoint: &stored.token_endpoint,
            identity: self.identity_of(stored),
            grant: Grant::Refresh(token),
            resource: Some(&stored.resource),
            scopes: &[],
            dpop: key.as_ref(),
        };
        Ok(stored.renewed(request.send(&self.target.http).await?))
    }

    /// Handles status 401.
    async fn on_unauthorized(&self, refusal: AuthRefusal<'_>) -> Result<AfterRefusal, Error> {
        let challenge = Challenge::from_headers(refusal.headers);
        if challenge.is_none() && refusal.headers.contains_key(WWW_AUTHENTICATE) {
            // It wants another scheme, such as Basic.
            return Ok(AfterRefusal::Accept);
        }
        if let Some(challenge) = challenge {
            self.source.set_challenge(challenge);
        }
        let rejected = refusal.sent.credential.as_ref();
        if rejected.is_none() {
            // A login may have been made since the store was read.
            self.source.forget();
        }
        match self.renew(rejected, Vec::new()).await? {
            Some(credential) if rejected.is_none_or(|token| !credential.has_token(token)) => {
                Ok(AfterRefusal::Retry)
            }
            _ => Err(self.needs_login(None)),
        }
    }

    /// Handles status 403 of a server that wants more scopes. They are requested once: a login that has
    /// requested them and did not get them is not repeated.
    async fn on_scopes_needed(
        &self,
        challenge: Challenge,
        refusal: AuthRefusal<'_>,
    ) -> Result<AfterRefusal, Error> {
        let current = self.source.current();
        let requested = current.as_ref().map(|it| it.requested.clone()).unwrap_or_default();
        let wanted = challenge.scopes.clone().unwrap_or_default();
        let is_other = match (&current, &refusal.sent.credential) {
            (Some(current), Some(sent)) => !current.has_token(sent),
            _ => false,
        };
        if is_other || self.adopt_newer(refusal.sent.credential.as_ref()).await? {
            return Ok(AfterRefusal::Retry);
        }
        if wanted.iter().all(|scope| requested.contains(scope)) {
            return Err(scopes_refused(&wanted));
        }
        let union = union(&requested, &wanted);
        self.source.set_challenge(Challenge { scopes: Some(union.clone()), ..challenge });
        if !self.is_automatic() {
            return Err(self.needs_scopes(&wanted));
        }
        let renewed = self.renew(refusal.sent.credential.as_ref(), union).await?;
        Ok(if renewed.is_some() { AfterRefusal::Retry } else { AfterRefusal::Accept })
    }

    /// Adopts a login that another process has stored since, with other scopes. Returns whether there is one.
    async fn adopt_newer(&self, sent: Option<&Secret>) -> Result<bool, Error> {
        if self.is_automatic() || self.source.unsaved().is_some() {
            return Ok(false);
        }
        let stored = self.source.load().await?;
        let newer = stored.filter(|stored| sent.is_some() && is_usable(stored, sent));
        let is_newer = newer.is_some();
        if is_newer {
            self.source.publish(newer);
        }
        Ok(is_newer)
    }

    /// The error for a server that a user has to log in to.
    pub(super) fn needs_login(&self, cause: Option<&Error>) -> Error {
        let message = match (cause, self.is_automatic()) {
            (Some(cause), _) => format!("it needs a login: {}", cause.message()),
            (None, true) => "it does not accept the credentials in `oauth`".to_owned(),
            (None, false) => "it needs a login".to_owned(),
        };
        match self.is_automatic() {
            true => Error::new(ErrorKind::Unauthorized, message)
                .with_hint("check the settings in `oauth`"),
            false => Error::new(ErrorKind::NeedsLogin, message).with_hint(self.login_hint()),
        }
    }

    /// What the user can do. A server that does not say where to log in may want a key instead.
    fn login_hint(&self) -> String {
        let hint = self.options().login_hint(&self.target.server, &[]);
        let challenge = self.source.challenge();
        match challenge.is_some_and(|challenge| challenge.resource_metadata.is_some()) {
            true => hint,
            false => format!("{hint}, or set its credentials in `headers`"),
        }
    }

    fn needs_scopes(&self, scopes: &[Box<str>]) -> Error {
        let message = format!("it needs a login with more rights: {}", shown_scopes(scopes));
        Error::new(ErrorKind::NeedsScopes, message)
            .with_hint(self.options().login_hint(&self.target.server, scopes))
    }

    /// Names the authorization server of the current credential.
    pub(super) fn issuer(&self) -> Option<String> {
        self.source.current().map(|credential| shown(&credential.issuer))
    }
}

fn is_invalid_grant<T>(sent: &Result<T, GrantError>) -> bool {
    matches!(sent, Err(GrantError::Refused { code, .. }) if &**code == "invalid_grant")
}

/// Whether a stored credential has a fresh token that was not rejected.
fn is_usable(stored: &Credential, rejected: Option<&Secret>) -> bool {
    stored.is_fresh() && !rejected.is_some_and(|token| stored.has_token(token))
}

fn scopes_refused(scopes: &[Box<str>]) -> Error {
    let message = format!(
        "it asks for rights that its authorization server did not grant: {}",
        shown_scopes(scopes)
    );
    Error::new(ErrorKind::Unauthorized, message)
        .with_hint("the operator of the server has to grant them to your account")
}

/// Scopes for a message: without control characters, and not too many.
fn shown_scopes(scopes: &[Box<str>]) -> String {
    quoted(&scopes.join(" "), Vec::new())
}

impl RequestAuth for ServerAuth {
    fn headers<'a>(&'a self, request: AuthRequest<'a>) -> AuthFuture<'a, AuthHeaders> {
        Box::pin(async move {
            let credential = match self.source.known() {
                KnownToken::Fresh(credential) => credential,
                KnownToken::Absent => return Ok(AuthHeaders::default()),
                // An automatic grant needs the challenge of the server first.
                KnownToken::Stale if self.is_automatic() && self.source.discovery().is_none() => {
                    return Ok(AuthHeaders::default());
                }
                KnownToken::Stale => match self.renew(None, Vec::new()).await? {
                    Some(credential) => credential,
                    None => return Ok(AuthHeaders::default()),
                },
            };
            self.headers_of(&credential, request)
        })
    }

    fn on_refused<'a>(&'a self, refusal: AuthRefusal<'a>) -> AuthFuture<'a, AfterRefusal> {
        Box::pin(async move {
            let challenge = Challenge::from_headers(refusal.headers);
            let nonce = nonce(refusal.headers);
            let has_nonce = nonce.is_some();
            nonce.into_iter().for_each(|nonce| self.source.set_nonce(nonce));
            // Another request may have recorded it already: the token is good, and the proof was not.
            if challenge.as_ref().is_some_and(Challenge::needs_nonce) && has_nonce {
                return Ok(AfterRefusal::Retry);
            }
            match (refusal.status, challenge) {
                (401, _) => self.on_unauthorized(refusal).await,
                (_, Some(challenge)) if challenge.needs_scopes() => {
                    self.on_scopes_needed(challenge, refusal).await
                }
                _ => Ok(AfterRefusal::Accept),
            }
        })
    }

    fn on_accepted(&self, sent: &AuthHeaders, headers: &HeaderMap) {
        if sent.credential.as_ref().is_some_and(|token| self.source.is_unproven(token)) {
            self.source.set_unproven(None);
        }
        if let Some(nonce) = nonce(headers) {
            self.source.set_nonce(nonce);
        }
    }

    fn secrets(&self) -> Vec<Secret> {
        self.source.secrets()
    }
}
