//! Form requests to an authorization server, authenticated as its client.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, HeaderName};
use url::{Url, form_urlencoded};

use super::client::{ClientAuth, OAuthClient};
use super::jwt::SigningKey;
use crate::config::Secret;
use crate::error::{Error, ErrorKind};
use crate::transport::{GuardedClient, GuardedPost, GuardedResponse};

const CLIENT_ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A client, and what it needs to authenticate at one authorization server.
#[derive(Clone, Copy)]
pub(super) struct ClientIdentity<'a> {
    pub(super) client: &'a OAuthClient,
    /// The audience of assertions.
    pub(super) issuer: &'a str,
    /// The private key of the configuration, and its ID.
    pub(super) signing_key: Option<(&'a Secret, Option<&'a str>)>,
}

/// A form and its headers.
pub(super) struct FormRequest {
    fields: Vec<(&'static str, String)>,
    headers: Vec<(HeaderName, Secret)>,
}

impl FormRequest {
    pub(super) fn new(fields: Vec<(&'static str, String)>) -> Self {
        Self { fields, headers: Vec::new() }
    }

    /// Adds a header.
    pub(super) fn header(mut self, name: HeaderName, value: Secret) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Adds the credentials of the client, as all endpoints of an authorization server expect them.
    pub(super) fn authenticate(mut self, identity: ClientIdentity<'_>) -> Result<Self, Error> {
        let OAuthClient { id, secret, auth, .. } = identity.client;
        let secret = secret.as_ref().map(Secret::expose).unwrap_or_default();
        match auth {
            ClientAuth::Basic => self.headers.push((AUTHORIZATION, basic(id, secret))),
            ClientAuth::Post => {
                self.fields.push(("client_id", id.clone()));
                self.fields.push(("client_secret", secret.to_owned()));
            }
            ClientAuth::PrivateKey => {
                let Some((key, key_id)) = identity.signing_key else {
                    let message = "`oauth.privateKey` is missing";
                    return Err(Error::new(ErrorKind::MissingSecret, message));
                };
                let key = SigningKey::from_pem(key)?;
                let assertion = key.client_assertion(id, key_id, identity.issuer)?;
                self.fields.push(("client_id", id.clone()));
                self.fields.push(("client_assertion_type", CLIENT_ASSERTION.to_owned()));
                self.fields.push(("client_assertion", assertion.expose().to_owned()));
            }
            ClientAuth::Public if id.is_empty() => {}
            ClientAuth::Public => self.fields.push(("client_id", id.clone())),
        }
        Ok(self)
    }

    /// Sends the form.
    pub(super) async fn send(
        self,
        http: &GuardedClient,
        url: &Url,
    ) -> Result<GuardedResponse, Error> {
        let body =
            form_urlencoded::Serializer::new(String::new()).extend_pairs(self.fields).finish();
        let content_type = "application/x-www-form-urlencoded";
        http.post(GuardedPost { url, content_type, headers: self.headers, body }).await
    }
}

/// The value of an `Authorization` header with ID and secret of a client.
fn basic(id: &str, secret: &str) -> Secret {
    let encoded =
        |text: &str| -> String { form_urlencoded::byte_serialize(text.as_bytes()).collect() };
    let pair = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
    Secret::new(format!("Basic {pair}"))
}
