//! CON-12: credentials of a provider that the embedding host supplies, by `authProviderId`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use trunkline::Host;
use trunkline::auth::{AuthFuture, AuthProvider, CredentialRequest};
use trunkline::config::Secret;
use trunkline::error::{Error, ErrorKind};
use trunkline::secrets::{MemoryStore, SecretStore as _};
use trunkline_testkit::oauth_server::{OAuthServer, OAuthServerOptions};

use crate::support::file_driven_server::within;
use crate::support::oauth_host::{
    builder, call, host, last_error, log_in, oauth, successful_calls, whoami,
};
use crate::support::secret_stores::credential;

/// A provider with the tokens of a login that another host has made.
#[derive(Default)]
struct Vault {
    store: MemoryStore,
    requests: AtomicUsize,
    /// The challenges of the requests.
    challenges: std::sync::Mutex<Vec<Option<String>>>,
}

impl AuthProvider for Vault {
    fn authorization<'a>(&'a self, request: CredentialRequest<'a>) -> AuthFuture<'a, Secret> {
        assert_eq!(request.server.as_str(), "docs");
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.challenges.lock().unwrap().push(request.challenge.map(str::to_owned));
        Box::pin(async move {
            if self.store.keys().unwrap().is_empty() {
                return Err(Error::new(ErrorKind::MissingSecret, "the vault is empty"));
            }
            let login = credential(&self.store);
            let token = login["accessToken"].as_str().unwrap();
            Ok(Secret::new(format!("Bearer {token}")))
        })
    }
}

async fn host_of(server: &OAuthServer, vault: &Arc<Vault>) -> Host {
    let entry = json!({ "authProviderId": "vault" });
    let provider: Arc<dyn AuthProvider> = vault.clone();
    builder(&server.mcp_url, &entry).auth_provider("vault", provider).start().await.unwrap()
}

/// Puts a token into the vault that the server accepts.
async fn fill(server: &OAuthServer, vault: &Vault) {
    let other = host(server, oauth(vault.store.clone())).await;
    log_in(&other).await.unwrap();
    within(other.shutdown()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn provider_is_asked_once_for_all_calls_that_are_refused() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let vault = Arc::new(Vault::default());
    fill(&server, &vault).await;
    let host = host_of(&server, &vault).await;
    successful_calls(&host, 50).await;
    assert_eq!(vault.requests.load(Ordering::SeqCst), 1);
    let first = whoami(&host).await;

    server.revoke_access_tokens().await;
    fill(&server, &vault).await;
    successful_calls(&host, 50).await;
    assert_eq!(vault.requests.load(Ordering::SeqCst), 2);
    assert_ne!(whoami(&host).await["token_id"], first["token_id"]);
    let challenges = vault.challenges.lock().unwrap().clone();
    assert_eq!(challenges[0], None);
    assert!(challenges[1].as_ref().unwrap().contains("invalid_token"), "{challenges:?}");
    within(host.shutdown()).await;
}

/// The refusal stands, and does not repeat the value.
#[tokio::test]
async fn provider_without_another_value_is_not_asked_for_ever() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let vault = Arc::new(Vault::default());
    fill(&server, &vault).await;
    let token = credential(&vault.store)["accessToken"].as_str().unwrap().to_owned();
    let host = host_of(&server, &vault).await;
    call(&host, "echo").await.unwrap();
    server.revoke_access_tokens().await;
    let error = call(&host, "echo").await.unwrap_err();
    assert!(error.to_string().contains("401"), "{error}");
    assert!(!format!("{error:?}").contains(&token));
    assert_eq!(vault.requests.load(Ordering::SeqCst), 2);
    within(host.shutdown()).await;
}

#[tokio::test]
async fn error_of_a_provider_is_that_of_the_server() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let vault = Arc::new(Vault::default());
    let host = host_of(&server, &vault).await;
    call(&host, "echo").await.unwrap_err();
    let error = last_error(&host).unwrap();
    assert_eq!(error.to_string(), "server `docs`: the vault is empty");
    assert_eq!(server.statistics().await.count("mcp"), 0);
    let error = log_in(&host).await.unwrap_err();
    assert!(error.message().contains("`authProviderId`"), "{error}");
    within(host.shutdown()).await;
}

#[tokio::test]
async fn unknown_provider_is_an_error_that_names_it() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let vault = Arc::new(Vault::default());
    let entry = json!({ "authProviderId": "valut" });
    let provider: Arc<dyn AuthProvider> = vault.clone();
    let builder = builder(&server.mcp_url, &entry).auth_provider("vault", provider);
    let host = builder.oauth(oauth(MemoryStore::default())).start().await.unwrap();
    call(&host, "echo").await.unwrap_err();
    let error = last_error(&host).unwrap();
    assert!(error.to_string().contains("`valut`"), "{error}");
    assert_eq!(vault.requests.load(Ordering::SeqCst), 0);
    assert_eq!(server.statistics().await.count("mcp"), 0, "nothing is sent without a credential");
    within(host.shutdown()).await;
}
