//! CON-12: tools that need more scopes than the login has.

use serde_json::{Value, json};
use trunkline::Host;
use trunkline::call::{CallError, CallErrorKind};
use trunkline::error::ErrorKind;
use trunkline::oauth::LoginRequest;
use trunkline::secrets::MemoryStore;
use trunkline_testkit::oauth_server::{OAuthServer, OAuthServerOptions};

use crate::support::file_driven_server::within;
use crate::support::oauth_host::{call, host, host_with, log_in, log_in_with, oauth, whoami};
use crate::support::secret_stores::{change_credential, credential};

fn has_scope(value: &Value, scope: &str) -> bool {
    value.as_array().unwrap().iter().any(|it| it == scope)
}

/// The error of the tool `write`, which names the scope that it needs.
async fn assert_needs_scope(host: &Host) -> CallError {
    let error = call(host, "write").await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Failed(ErrorKind::NeedsScopes), "{error}");
    assert!(error.to_string().contains("it needs a login with more rights: write"), "{error}");
    assert_eq!(error.hint(), Some("run `trunkline login docs --scope write`"));
    error
}

#[tokio::test]
async fn login_after_a_refusal_adds_the_scope_that_was_missing() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let store = MemoryStore::default();
    let host = host(&server, oauth(store.clone())).await;
    log_in(&host).await.unwrap();
    assert!(!has_scope(&whoami(&host).await["scopes"], "write"));
    assert_needs_scope(&host).await;
    assert_eq!(call(&host, "echo").await.as_deref(), Ok("x"), "other tools do not need it");

    log_in(&host).await.unwrap();
    assert_eq!(call(&host, "write").await.as_deref(), Ok("wrote x"));
    let identity = whoami(&host).await;
    assert!(has_scope(&identity["scopes"], "read") && has_scope(&identity["scopes"], "write"));
    assert_eq!(server.statistics().await.count("registration"), 1);

    // A refresh keeps them, and so does a login at which nothing was asked for.
    server.revoke_access_tokens().await;
    assert_eq!(call(&host, "write").await.as_deref(), Ok("wrote x"));
    log_in(&host).await.unwrap();
    assert_eq!(call(&host, "write").await.as_deref(), Ok("wrote x"));
    within(host.shutdown()).await;
}

/// Only one tool needs a login: the server is usable.
#[tokio::test]
async fn missing_scope_of_one_tool_leaves_the_server_ready() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let host = host(&server, oauth(MemoryStore::default())).await;
    log_in(&host).await.unwrap();
    call(&host, "echo").await.unwrap();
    let before = server.statistics().await.count("mcp");
    assert_needs_scope(&host).await;
    assert_eq!(host.status()[0].condition.as_str(), "ready");
    call(&host, "echo").await.unwrap();
    assert_eq!(server.statistics().await.count("mcp"), before + 2, "no other request");
    within(host.shutdown()).await;
}

#[tokio::test]
async fn scopes_of_a_request_are_added() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let store = MemoryStore::default();
    let settings = json!({ "oauth": { "scopes": ["read"] } });
    let host = host_with(&server, oauth(store.clone()), &settings).await;
    log_in(&host).await.unwrap();
    assert_eq!(credential(&store)["requested"], json!(["read"]));
    assert_needs_scope(&host).await;
    log_in_with(&host, LoginRequest::default().scopes(["write"])).await.unwrap();
    assert_eq!(call(&host, "write").await.as_deref(), Ok("wrote x"));
    within(host.shutdown()).await;
}

/// A server that grants less than was requested says so in the token response, or not at all.
#[tokio::test]
async fn scope_that_was_requested_and_not_granted_is_not_asked_for_again() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let store = MemoryStore::default();
    let first = host(&server, oauth(store.clone())).await;
    log_in(&first).await.unwrap();
    within(first.shutdown()).await;
    change_credential(&store, |login| login["requested"] = json!(["read", "write"]));

    let host = host(&server, oauth(store.clone())).await;
    call(&host, "echo").await.unwrap();
    let before = server.statistics().await;
    let error = call(&host, "write").await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Failed(ErrorKind::Unauthorized), "{error}");
    assert!(error.to_string().contains("did not grant: write"), "{error}");
    assert!(error.hint().unwrap().contains("operator"), "{error}");
    let after = server.statistics().await;
    assert_eq!(after.count("mcp"), before.count("mcp") + 1, "it is not repeated");
    assert_eq!(after.count("token"), before.count("token"));
    assert_eq!(call(&host, "echo").await.as_deref(), Ok("x"));
    within(host.shutdown()).await;
}
