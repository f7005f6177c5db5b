//! Ends a login: revokes its tokens (RFC 7009), and removes it from the store.

use super::credential::Credential;
use super::form::FormRequest;
use super::server_auth::ServerAuth;
use crate::error::Error;

/// What a logout did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogoutOutcome {
    /// Whether there was a login.
    pub was_logged_in: bool,
    /// Whether the authorization server has revoked the tokens; `None` if it offers no revocation.
    pub revoked: Option<Result<(), Error>>,
    /// The origin of the authorization server.
    pub issuer: Option<String>,
}

impl ServerAuth {
    /// Revokes the tokens of the login, and removes it from the store. It is removed also if the
    /// authorization server cannot be reached.
    pub(crate) async fn logout(&self) -> Result<LogoutOutcome, Error> {
        if self.source.unsaved().is_none()
            && let Ok(None) = self.source.load().await
        {
            self.source.publish(None);
            return Ok(LogoutOutcome { was_logged_in: false, revoked: None, issuer: None });
        }
        let _guard = self.source.lock().await?;
        // An entry that cannot be read can be removed.
        let stored = match self.source.unsaved() {
            Some(unsaved) => Some(Credential::clone(&unsaved)),
            None => self.source.load().await.ok().flatten(),
        };
        self.source.publish(stored.clone());
        let issuer = self.issuer();
        let revoked = match &stored {
            Some(stored) => self.revoke(stored).await,
            None => None,
        };
        let was_logged_in = self.source.remove().await?;
        Ok(LogoutOutcome { was_logged_in, revoked, issuer })
    }

    async fn revoke(&self, stored: &Credential) -> Option<Result<(), Error>> {
        let url = stored.revocation_endpoint.as_ref()?;
        // Most servers end the access token with it.
        let tokens = [
            ("refresh_token", stored.refresh_token.as_ref()),
            ("access_token", stored.access_token.as_ref()),
        ];
        let mut result = Ok(());
        for (kind, token) in tokens {
            let Some(token) = token else { continue };
            let fields =
                vec![("token", token.expose().to_owned()), ("token_type_hint", kind.to_owned())];
            let sent = match FormRequest::new(fields).authenticate(self.identity_of(stored)) {
                Ok(form) => form.send(&self.target.http, url).await,
                Err(error) => Err(error),
            };
            let sent = sent.and_then(|response| match response.status.is_success() {
                true => Ok(()),
                false => Err(refused(response.status.as_u16())),
            });
            result = result.and(sent);
        }
        Some(result)
    }
}

fn refused(status: u16) -> Error {
    let message = format!("the authorization server answered status {status}");
    Error::new(crate::error::ErrorKind::HttpStatus(status), message)
}
