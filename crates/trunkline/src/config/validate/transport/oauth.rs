//! Settings of OAuth and of commands that print headers.

use super::{TransportReader, key_of, usable_url};
use crate::config::decode::WithSpan;
use crate::config::diagnostic::Code;
use crate::config::oauth::{IdentityProvider, OAuthGrant, OAuthMode, OAuthSettings};
use crate::config::raw::{IdentityProviderEntry, OAuthDetails, OAuthEntry, ServerEntry};
use crate::config::source::Span;
use crate::config::template::Template;

impl TransportReader<'_, '_> {
    /// The settings of OAuth. `None` means that they cannot be used, which was reported.
    pub(super) fn oauth(&mut self, keys: &ServerEntry) -> Option<OAuthMode> {
        let Some(written) = &keys.oauth else { return Some(OAuthMode::default()) };
        match &written.value {
            OAuthEntry::Switch(false) => Some(OAuthMode::Disabled),
            OAuthEntry::Switch(true) => Some(OAuthMode::default()),
            OAuthEntry::Details(details) => {
                let settings = self.oauth_settings(details)?;
                self.check_grant(&settings, written.key)?;
                Some(OAuthMode::Enabled(Box::new(settings)))
            }
        }
    }

    fn oauth_settings(&mut self, details: &OAuthDetails) -> Option<OAuthSettings> {
        let value = |it: &Option<WithSpan<Box<str>>>| it.as_ref().map(|it| it.value.clone());
        let identity_provider = match &details.identity_provider {
            Some(written) => Some(self.identity_provider(&written.value, written.key)?),
            None => None,
        };
        for url in [&details.client_metadata_url, &details.metadata_url, &details.redirect_uri] {
            self.check_oauth_url(url.as_ref())?;
        }
        let hosts = details.private_hosts.as_ref().map(|it| it.value.as_slice());
        Some(OAuthSettings {
            grant: details.grant.as_ref().map_or(OAuthGrant::AuthorizationCode, |it| it.value),
            client_id: self.secret_value(details.client_id.as_ref())?,
            client_secret: self.secret_value(details.client_secret.as_ref())?,
            private_key: self.secret_value(details.private_key.as_ref())?,
            key_id: value(&details.key_id),
            client_metadata_url: value(&details.client_metadata_url),
            scopes: details.scopes.as_ref().map(|it| it.value.0.clone()),
            assertion: self.secret_value(details.assertion.as_ref())?,
            identity_provider,
            metadata_url: value(&details.metadata_url),
            callback_port: self.callback_port(details)?,
            redirect_uri: value(&details.redirect_uri),
            private_hosts: hosts.unwrap_or_default().iter().map(|it| it.value.clone()).collect(),
            dpop: details.dpop.as_ref().map(|it| it.value),
        })
    }

    fn identity_provider(
        &mut self,
        entry: &IdentityProviderEntry,
        key: Span,
    ) -> Option<IdentityProvider> {
        let (Some(token_url), Some(id_token)) = (&entry.token_url, &entry.id_token) else {
            let message = "`identityProvider` needs `tokenUrl` and `idToken`";
            self.decoder.push(self.decoder.error(Code::IncompleteOAuth, key, message));
            return None;
        };
        self.check_oauth_url(Some(token_url))?;
        Some(IdentityProvider {
            token_url: token_url.value.clone(),
            client_id: self.secret_value(entry.client_id.as_ref())?,
            client_secret: self.secret_value(entry.client_secret.as_ref())?,
            id_token: self.template(&id_token.value, id_token.span)?,
        })
    }

    /// A value with references; the outer `None` means that one is invalid.
    fn secret_value(&mut self, written: Option<&WithSpan<Box<str>>>) -> Option<Option<Template>> {
        match written {
            Some(written) => self.template(&written.value, written.span).map(Some),
            None => Some(None),
        }
    }

    fn check_oauth_url(&mut self, written: Option<&WithSpan<Box<str>>>) -> Option<()> {
        match written {
            Some(url) if usable_url(&url.value).is_err() => {
                let message = "this is not an address";
                let found = self.decoder.error(Code::BadUrl, url.span, message);
                self.decoder.push(found.help("expected something like `https://example.com/…`"));
                None
            }
            _ => Some(()),
        }
    }

    fn callback_port(&mut self, details: &OAuthDetails) -> Option<Option<u16>> {
        let Some(port) = &details.callback_port else { return Some(None) };
        match u16::try_from(port.value.0) {
            Ok(port) => Some(Some(port)),
            Err(_) => {
                let found = self.decoder.error(Code::OutOfRange, port.span, "this is not a port");
                self.decoder.push(found.help("write a number from 1 to 65535"));
                None
            }
        }
    }

    /// Checks that a grant has what it needs.
    fn check_grant(&mut self, settings: &OAuthSettings, key: Span) -> Option<()> {
        let has_client = settings.client_id.is_some();
        let has_secret = settings.client_secret.is_some() || settings.private_key.is_some();
        let missing = match settings.grant {
            OAuthGrant::AuthorizationCode if has_secret && !has_client => {
                "`clientSecret` and `privateKey` need `clientId`"
            }
            OAuthGrant::ClientCredentials if !has_client || !has_secret => {
                "the grant `client-credentials` needs `clientId`, and `clientSecret` or `privateKey`"
            }
            OAuthGrant::JwtBearer if settings.assertion.is_none() => {
                "the grant `jwt-bearer` needs `assertion`"
            }
            OAuthGrant::EnterpriseManaged
                if !has_client || settings.identity_provider.is_none() =>
            {
                "the grant `enterprise-managed` needs `clientId` and `identityProvider`"
            }
            _ => return Some(()),
        };
        self.decoder.push(self.decoder.error(Code::IncompleteOAuth, key, missing));
        None
    }

    /// The program that prints headers. `None` means that it cannot be used, which was reported.
    pub(super) fn headers_command(&mut self, keys: &ServerEntry) -> Option<Option<Vec<Template>>> {
        match (&keys.headers_command, &keys.headers_helper) {
            (None, None) => Some(None),
            (Some(_), Some(helper)) => {
                let message =
                    "`headersCommand` and `headersHelper` are two ways to write one thing";
                let there = key_of(&keys.headers_command).unwrap_or(helper.key);
                self.contradiction(helper.key, there, message);
                None
            }
            (Some(command), None) => {
                let words = command.value.0.iter();
                let words: Vec<_> =
                    words.map(|word| self.template(&word.value, word.span)).collect();
                words.into_iter().collect::<Option<_>>().map(Some)
            }
            (None, Some(helper)) => {
                let shell = ["sh", "-c"].map(Template::literal);
                let line = self.template(&helper.value, helper.span)?;
                Some(Some(shell.into_iter().chain([line]).collect()))
            }
        }
    }
}
