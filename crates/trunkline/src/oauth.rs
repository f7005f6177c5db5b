//! OAuth 2.1 for remote servers (CON-12): discovery, registration, logins, and tokens that are renewed
//! once for all processes.
//!
//! The host owns the tokens. [`OAuth`] keeps them in a [`SecretStore`] and in memory; a request with a
//! fresh token reads neither store nor file. A server that needs a user is `needs-login`: no request
//! waits for a person, and nothing here opens a browser.
//!
//! The protocol is written on the HTTP client and `ring` of this crate. `rmcp` 3.8.0 with `auth` would
//! add 51 crates to the 95 of this one, among them a second HTTP client and a second cryptography library
//! (`aws-lc-sys`, two minutes to build); it has no DPoP, device logins, revocation or workload identity,
//! so that the requests to the token endpoint would be here anyway; and its events at level `debug`
//! contain authorization codes.

mod secret_text;
mod scopes;
mod quote;
mod challenge;
mod metadata;
mod jwt;
mod target;
mod discovery;
mod client;
mod form;
mod token;
mod credential;
mod token_source;
mod automatic;
mod server_auth;
mod loopback;
mod login;
mod device;
mod logout;
mod status;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use url::Url;

pub use device::DeviceLogin;
pub use login::{LoginOutcome, LoginRequest, PendingLogin};
pub use logout::LogoutOutcome;
pub use loopback::LoopbackListener;
pub(crate) use server_auth::ServerAuth;
pub use status::LoginStatus;
pub(crate) use target::AuthTarget;

use crate::config::{ResolvedOAuth, Secret};
use crate::name::ServerName;
use crate::secrets::{SecretKey, SecretStore};
use token_source::TokenSource;

/// Limit on renewals under way: far more than servers.
const MAX_SAVES: u32 = 4096;

/// Time for renewals under way to end when the host shuts down: longer than one request may take, whose
/// response may contain the only valid refresh token.
const FINISH_TIMEOUT: Duration = Duration::from_secs(25);

/// The OAuth logins of a host. Clones share their tokens.
///
/// ```
/// use std::sync::Arc;
/// use trunkline::Host;
/// use trunkline::oauth::{OAuth, OAuthOptions};
/// use trunkline::secrets::MemoryStore;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let oauth = OAuth::new(Arc::new(MemoryStore::default()), OAuthOptions::default());
/// let host = Host::builder()
///     .config_text("mcp.json", r#"{ "mcpServers": { "docs": { "url": "https://example.com/mcp" } } }"#)
///     .oauth(oauth)
///     .start()
///     .await?;
/// # host.shutdown().await;
/// # Ok::<(), trunkline::host::StartError>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct OAuth(Arc<OAuthShared>);

struct OAuthShared {
    store: Arc<dyn SecretStore>,
    options: OAuthOptions,
    sources: Mutex<HashMap<SecretKey, Arc<TokenSource>>>,
    saves: Arc<Semaphore>,
}

/// How a host appears to authorization servers and to users.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OAuthOptions {
    /// The name in consent pages. Default: `Trunkline`.
    pub client_name: Box<str>,
    /// URL of the client metadata document of the host, used as client ID where that is supported.
    pub client_metadata_url: Option<Box<str>>,
    /// The command that logs in, for messages; the name of the server follows. Without one, messages name
    /// the method of the library.
    pub login_command: Option<Box<str>>,
    /// Whether the browser of the user runs on this machine, so that clients can be given a link that leads
    /// back to it ([`Host::login_link`](crate::Host::login_link)). Default: no.
    pub has_local_browser: bool,
}

impl Default for OAuthOptions {
    fn default() -> Self {
        Self {
            client_name: client::CLIENT_NAME.into(),
            client_metadata_url: None,
            login_command: None,
            has_local_browser: false,
        }
    }
}

impl OAuthOptions {
    /// The hint of an error that needs a login.
    fn login_hint(&self, server: &ServerName, scopes: &[Box<str>]) -> String {
        let Some(command) = &self.login_command else {
            return "log in with `Host::begin_login`".to_owned();
        };
        // The server chooses the names of scopes, and the user copies the command.
        let is_plain = |scope: &str| {
            !scope.is_empty()
                && scope.bytes().all(|it| it.is_ascii_alphanumeric() || b":/._-".contains(&it))
        };
        let scopes = scopes.iter().filter(|scope| is_plain(scope));
        let options: String = scopes.map(|scope| format!(" --scope {scope}")).collect();
        format!("run `{command} {server}{options}`")
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OAuth").field(&self.0.options).finish()
    }
}

impl OAuth {
    /// Logins in a store.
    pub fn new(store: Arc<dyn SecretStore>, options: OAuthOptions) -> Self {
        let saves = Arc::new(Semaphore::new(MAX_SAVES as usize));
        Self(Arc::new(OAuthShared { store, options, sources: Mutex::default(), saves }))
    }

    pub(crate) fn options(&self) -> &OAuthOptions {
        &self.0.options
    }

    /// The store of the logins.
    pub fn store(&self) -> &Arc<dyn SecretStore> {
        &self.0.store
    }

    /// Authorizes the requests to a server. Servers with the same URL and client share their tokens.
    pub(crate) fn server_auth(&self, target: AuthTarget) -> ServerAuth {
        let key = credential_key(&target.url, &target.settings);
        let mut sources = self.0.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(TokenSource::new(key.clone(), Arc::clone(&self.0.store)));
        let source = Arc::clone(sources.entry(key.clone()).or_insert_with(new));
        ServerAuth { target: Arc::new(target), source, oauth: self.clone() }
    }

    /// Registers a renewal that has to end before the process does.
    async fn begin_save(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.saves).acquire_owned().await.ok()
    }

    /// Waits for renewals under way, so that no refresh token is lost.
    pub(crate) async fn finish(&self) {
        let _ = timeout(FINISH_TIMEOUT, self.0.saves.acquire_many(MAX_SAVES)).await;
    }
}

/// The key of a credential: the host of the server, for people who look at the store, and a digest of
/// all that distinguishes logins.
fn credential_key(url: &Url, settings: &ResolvedOAuth) -> SecretKey {
    let client = settings.client_id.as_ref().map(Secret::expose).unwrap_or_default();
    let mut resource = url.clone();
    resource.set_fragment(None);
    let grant = settings.grant.as_str();
    let mut parts = vec![resource.as_str(), client, grant];
    // Metadata of another place may have another token endpoint, for the same issuer.
    parts.extend(settings.metadata_url.as_deref());
    let text = serde_json::json!(parts).to_string();
    let hash = URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()));
    let host = url.host_str().unwrap_or_default().replace(['[', ']', ':'], "-");
    let short = hash.get(..22).unwrap_or(&hash);
    SecretKey::credential(format!("{host}-{short}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_are_told_apart_by_url_and_client() {
        let key = |url: &str, client: Option<&str>| {
            let client_id = client.map(Secret::new);
            let settings = ResolvedOAuth { client_id, ..ResolvedOAuth::default() };
            credential_key(&Url::parse(url).unwrap(), &settings)
        };
        let base = key("https://a.example/mcp", None);
        assert_eq!(base, key("https://a.example/mcp#x", None));
        assert!(base.id().starts_with("oauth:a.example-"), "{}", base.id());
        for other in [
            key("https://a.example/mcp2", None),
            key("http://a.example/mcp", None),
            key("https://a.example/mcp", Some("x")),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn hint_repeats_only_scopes_that_can_be_copied() {
        let options = OAuthOptions {
            login_command: Some("trunkline login".into()),
            ..OAuthOptions::default()
        };
        let server = ServerName::new("docs").unwrap();
        let scopes = ["mcp:write".into(), "a;rm -rf ~".into(), "".into()];
        let hint = options.login_hint(&server, &scopes);
        assert_eq!(hint, "run `trunkline login docs --scope mcp:write`");
    }
}
