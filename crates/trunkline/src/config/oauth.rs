//! Settings of OAuth logins and of commands that print headers, for remote servers (CON-12).

use super::decode::words;
use super::secret::Secret;
use super::template::Template;

words! {
    /// How a token for a server is obtained.
    pub enum OAuthGrant, "an OAuth grant" {
        /// A user logs in with a browser or on another device.
        AuthorizationCode = "authorization-code",
        /// The client has credentials of its own: a secret or a private key.
        ClientCredentials = "client-credentials",
        /// A token of the platform that the process runs on is exchanged (workload identity).
        JwtBearer = "jwt-bearer",
        /// An ID token of the company's identity provider is exchanged.
        EnterpriseManaged = "enterprise-managed",
    }
}

/// Whether and how tokens for a server are obtained.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum OAuthMode {
    /// `"oauth": false`: a refusal of the server is an error.
    Disabled,
    /// The default.
    Enabled(Box<OAuthSettings>),
}

impl Default for OAuthMode {
    fn default() -> Self {
        Self::Enabled(Box::default())
    }
}

/// Settings of OAuth. All are optional: most servers describe what they need.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OAuthSettings<V = Template> {
    /// How tokens are obtained.
    pub grant: OAuthGrant,
    /// ID of a client that was registered before.
    pub client_id: Option<V>,
    /// Its secret.
    pub client_secret: Option<V>,
    /// Its private key, in PEM.
    pub private_key: Option<V>,
    /// ID of that key, for the authorization server.
    pub key_id: Option<Box<str>>,
    /// URL of a client metadata document, which is the client ID where that is supported.
    pub client_metadata_url: Option<Box<str>>,
    /// Scopes to request instead of those that the server asks for.
    pub scopes: Option<Vec<Box<str>>>,
    /// Token of the workload, for the grant `jwt-bearer`.
    pub assertion: Option<V>,
    /// The identity provider, for the grant `enterprise-managed`.
    pub identity_provider: Option<IdentityProvider<V>>,
    /// URL of the authorization server's metadata, for servers that do not name it.
    pub metadata_url: Option<Box<str>>,
    /// Port of the loopback redirect URI.
    pub callback_port: Option<u16>,
    /// Redirect URI that the client was registered with.
    pub redirect_uri: Option<Box<str>>,
    /// Hosts that may have private addresses, besides the host of the server.
    pub private_hosts: Vec<Box<str>>,
    /// Whether tokens are bound to a key (DPoP). By default where the server requires it.
    pub dpop: Option<bool>,
}

/// An identity provider that issues grants for servers.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdentityProvider<V = Template> {
    /// Its token endpoint.
    pub token_url: Box<str>,
    /// The client ID there.
    pub client_id: Option<V>,
    /// The client secret there.
    pub client_secret: Option<V>,
    /// The ID token of the user.
    pub id_token: V,
}

impl<V> Default for OAuthSettings<V> {
    fn default() -> Self {
        Self {
            grant: OAuthGrant::AuthorizationCode,
            client_id: None,
            client_secret: None,
            private_key: None,
            key_id: None,
            client_metadata_url: None,
            scopes: None,
            assertion: None,
            identity_provider: None,
            metadata_url: None,
            callback_port: None,
            redirect_uri: None,
            private_hosts: Vec::new(),
            dpop: None,
        }
    }
}

/// Settings of OAuth with every reference resolved.
pub type ResolvedOAuth = OAuthSettings<Secret>;

impl ResolvedOAuth {
    /// The private key of the client, and its ID.
    pub(crate) fn signing_key(&self) -> Option<(&Secret, Option<&str>)> {
        self.private_key.as_ref().map(|key| (key, self.key_id.as_deref()))
    }
}

impl<V> OAuthSettings<V> {
    /// All values that may contain references.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        let provider = self.identity_provider.iter().flat_map(|provider| {
            let client = [provider.client_id.as_ref(), provider.client_secret.as_ref()];
            client.into_iter().flatten().chain([&provider.id_token])
        });
        let own = [&self.client_id, &self.client_secret, &self.private_key, &self.assertion];
        own.into_iter().flatten().chain(provider)
    }

    /// The same settings with every value replaced.
    pub(crate) fn map<W>(&self, mut value: impl FnMut(&V) -> W) -> OAuthSettings<W> {
        let mut optional = |it: &Option<V>| it.as_ref().map(&mut value);
        let (client_id, client_secret) = (optional(&self.client_id), optional(&self.client_secret));
        let (private_key, assertion) = (optional(&self.private_key), optional(&self.assertion));
        let identity_provider = self.identity_provider.as_ref().map(|it| IdentityProvider {
            token_url: it.token_url.clone(),
            client_id: it.client_id.as_ref().map(&mut value),
            client_secret: it.client_secret.as_ref().map(&mut value),
            id_token: value(&it.id_token),
        });
        OAuthSettings {
            grant: self.grant,
            client_id,
            client_secret,
            private_key,
            key_id: self.key_id.clone(),
            client_metadata_url: self.client_metadata_url.clone(),
            scopes: self.scopes.clone(),
            assertion,
            identity_provider,
            metadata_url: self.metadata_url.clone(),
            callback_port: self.callback_port,
            redirect_uri: self.redirect_uri.clone(),
            private_hosts: self.private_hosts.clone(),
            dpop: self.dpop,
        }
    }
}
