//! The identity of this client at an authorization server: registered before, described by a metadata
//! document, or registered now (RFC 7591).

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::discovery::Discovery;
use super::quote::quoted;
use super::secret_text;
use crate::config::{ResolvedOAuth, Secret};
use crate::error::{Error, ErrorKind};
use crate::transport::{GuardedClient, GuardedPost, GuardedResponse};

/// The name of this client in consent pages, unless the host has another.
pub(super) const CLIENT_NAME: &str = "Trunkline";

/// The grant of device logins.
pub(super) const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// How a client authenticates at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ClientAuth {
    #[serde(rename = "none")]
    Public,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
    #[serde(rename = "private_key_jwt")]
    PrivateKey,
}

impl ClientAuth {
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::Public),
            "client_secret_basic" => Some(Self::Basic),
            "client_secret_post" => Some(Self::Post),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Public => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::PrivateKey => "private_key_jwt",
        }
    }
}

/// A client at one authorization server. It is never used at another one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OAuthClient {
    pub(super) id: String,
    #[serde(default, with = "secret_text", skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<Secret>,
    pub(super) auth: ClientAuth,
    /// The redirect URI of a client that was registered now, which is bound to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) redirect_uri: Option<String>,
    /// Whether the authorization server has refused it, so that the next login registers another one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) is_refused: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// How a client is found or registered.
pub(super) struct ClientRequest<'a> {
    pub(super) settings: &'a ResolvedOAuth,
    pub(super) client_name: &'a str,
    pub(super) metadata_url: Option<&'a str>,
    pub(super) redirect_uri: Option<&'a str>,
    /// A client that was registered at the same authorization server by an earlier login.
    pub(super) earlier: Option<&'a OAuthClient>,
    pub(super) is_device: bool,
}

impl ClientRequest<'_> {
    /// The client to use: the configured one, one with a metadata document, an earlier one, or a new one.
    pub(super) async fn find(
        &self,
        http: &GuardedClient,
        discovery: &Discovery,
    ) -> Result<OAuthClient, Error> {
        if let Some(client) = configured(self.settings, discovery) {
            return Ok(client);
        }
        let authorization = &discovery.authorization;
        let own = self.settings.client_metadata_url.as_deref();
        if let Some(url) = own.or(self.metadata_url)
            && authorization.client_id_metadata_document_supported
        {
            let (id, auth) = (url.to_owned(), ClientAuth::Public);
            return Ok(OAuthClient {
                id,
                secret: None,
                auth,
                redirect_uri: None,
                is_refused: false,
            });
        }
        let is_same = |client: &&OAuthClient| {
            !client.is_refused && client.redirect_uri.as_deref() == self.redirect_uri
        };
        match self.earlier.filter(is_same) {
            Some(client) => Ok(client.clone()),
            None => self.register(http, discovery).await,
        }
    }

    async fn register(
        &self,
        http: &GuardedClient,
        discovery: &Discovery,
    ) -> Result<OAuthClient, Error> {
        let authorization = &discovery.authorization;
        let Some(endpoint) = &authorization.registration_endpoint else {
            return Err(not_offered(&authorization.issuer));
        };
        let wanted = registered_auth(discovery);
        // A client for devices has no redirect URI, and a client without one has no codes.
        let (grant, response_types) = match self.is_device {
            true => (DEVICE_GRANT, vec![]),
            false => ("authorization_code", vec!["code"]),
        };
        let body = json!({
            "client_name": self.client_name,
            "application_type": "native",
            "redirect_uris": self.redirect_uri.into_iter().collect::<Vec<_>>(),
            "grant_types": [grant, "refresh_token"],
            "response_types": response_types,
            "token_endpoint_auth_method": wanted.name(),
        });
        let content_type = "application/json";
        let post = GuardedPost {
            url: endpoint,
            content_type,
            headers: Vec::new(),
            body: body.to_string(),
        };
        let response = http.post(post).await?;
        if !response.status.is_success() {
            return Err(refused(&response, &authorization.issuer));
        }
        let registered = serde_json::from_slice(&response.body);
        let registered: RegistrationResponse = registered.map_err(|_| unreadable())?;
        Ok(self.registered(registered, wanted, discovery))
    }

    fn registered(
        &self,
        response: RegistrationResponse,
        wanted: ClientAuth,
        discovery: &Discovery,
    ) -> OAuthClient {
        let named = response.token_endpoint_auth_method.as_deref().and_then(ClientAuth::from_name);
        // Some servers send a secret to clients that have to send none.
        let auth = named.unwrap_or(match (&response.client_secret, wanted) {
            (Some(_), ClientAuth::Public) if !discovery.authorization.accepts("none") => {
                ClientAuth::Basic
            }
            _ => wanted,
        });
        let secret = response.client_secret.filter(|_| auth != ClientAuth::Public);
        OAuthClient {
            id: response.client_id,
            secret: secret.map(Secret::new),
            auth,
            redirect_uri: self.redirect_uri.map(str::to_owned),
            is_refused: false,
        }
    }
}

/// The parts of a registration that are used.
#[derive(Deserialize)]
struct RegistrationResponse {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

/// The parts of a refusal that are shown.
#[derive(Default, Deserialize)]
struct RegistrationError {
    error: Option<String>,
    error_description: Option<String>,
}

/// The client of the configuration.
pub(super) fn configured(settings: &ResolvedOAuth, discovery: &Discovery) -> Option<OAuthClient> {
    let id = settings.client_id.as_ref()?.expose().to_owned();
    let secret = settings.client_secret.clone();
    let auth = match (&secret, &settings.private_key) {
        (_, Some(_)) => ClientAuth::PrivateKey,
        (None, None) => ClientAuth::Public,
        (Some(_), None) => secret_auth(discovery),
    };
    Some(OAuthClient { id, secret, auth, redirect_uri: None, is_refused: false })
}

/// How a client with a secret authenticates.
fn secret_auth(discovery: &Discovery) -> ClientAuth {
    let authorization = &discovery.authorization;
    let only_post = !authorization.accepts("client_secret_basic");
    match only_post && authorization.accepts("client_secret_post") {
        true => ClientAuth::Post,
        false => ClientAuth::Basic,
    }
}

/// How a new client authenticates: without a secret where that is possible, since a program on the
/// machine of a user cannot keep one.
fn registered_auth(discovery: &Discovery) -> ClientAuth {
    let authorization = &discovery.authorization;
    let methods = &authorization.token_endpoint_auth_methods_supported;
    match methods.is_none() || authorization.accepts("none") {
        true => ClientAuth::Public,
        false => secret_auth(discovery),
    }
}

fn not_offered(issuer: &str) -> Error {
    let message = format!("its authorization server {} does not register clients", shown(issuer));
    Error::new(ErrorKind::Unauthorized, message).with_hint(
        "register a client there by hand, and write its ID as `oauth.clientId` of the server",
    )
}

fn refused(response: &GuardedResponse, issuer: &str) -> Error {
    let status = response.status.as_u16();
    let body: RegistrationError = serde_json::from_slice(&response.body).unwrap_or_default();
    let said = [body.error, body.error_description].into_iter().flatten().collect::<Vec<_>>();
    let reason = match said.is_empty() {
        true => format!("status {status}"),
        false => quoted(&said.join(": "), Vec::new()),
    };
    let message = format!(
        "its authorization server {} refused to register a client: {reason}",
        shown(issuer)
    );
    let kind = match status {
        429 | 500..=599 => ErrorKind::HttpStatus(status),
        _ => ErrorKind::Unauthorized,
    };
    Error::new(kind, message).with_hint(
        "if it asks for another redirect address, set `oauth.callbackPort`; or register a client by \
         hand, and write its ID as `oauth.clientId`",
    )
}

fn unreadable() -> Error {
    let message = "its authorization server answered a registration with something that is none";
    Error::new(ErrorKind::ProtocolViolation, message)
}

/// The origin of an issuer, for messages.
pub(super) fn shown(issuer: &str) -> String {
    let url = url::Url::parse(issuer);
    url.map_or_else(|_| "(unnamed)".to_owned(), |url| url.origin().ascii_serialization())
}
