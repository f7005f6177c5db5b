//! CON-12: logins with a browser, what they store, and logouts, against a real authorization server.

use std::time::SystemTime;

use trunkline::config::Secret;
use trunkline::error::ErrorKind;
use trunkline::oauth::{LoginRequest, LoopbackListener};
use trunkline::secrets::{MemoryStore, SecretStore as _};
use trunkline_testkit::browser;
use trunkline_testkit::oauth_server::{Fault, OAuthServer, OAuthServerOptions};
use url::Url;

use crate::support::file_driven_server::within;
use crate::support::oauth_host::{
    REDIRECT_URI, assert_needs_login, call, host, last_error, log_in, oauth, whoami,
};
use crate::support::secret_stores::{ObservedStore, credential, credentials};

#[tokio::test]
async fn login_with_a_browser_makes_the_tools_usable() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let store = MemoryStore::default();
    let host = host(&server, oauth(store.clone())).await;
    call(&host, "whoami").await.unwrap_err();
    let error = last_error(&host).unwrap();
    assert_eq!(error.kind(), ErrorKind::NeedsLogin);
    assert_eq!(error.to_string(), "server `docs`: it needs a login");
    assert_eq!(error.hint(), Some("run `trunkline login docs`"));
    assert!(host.login_status("docs").await.unwrap().is_none());
    assert_eq!(server.statistics().await.count("metadata"), 0, "no login has begun");

    let outcome = log_in(&host).await.unwrap();
    assert_eq!(outcome.issuer, server.issuer);
    assert!(outcome.is_renewable && outcome.scopes.contains(&"read".into()), "{outcome:?}");
    let identity = whoami(&host).await;
    assert_eq!(identity["subject"], "alice");
    assert_eq!(identity["client_id"], credential(&store)["client"]["id"]);
    let status = host.login_status("docs").await.unwrap().unwrap();
    assert_eq!((status.issuer.as_str(), status.is_renewable), (server.issuer.as_str(), true));
    assert!(status.expires_at.unwrap() > SystemTime::now() && !status.has_expired());
    within(host.shutdown()).await;
}

#[tokio::test]
async fn logout_revokes_the_tokens_and_removes_the_login() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let store = MemoryStore::default();
    let host = host(&server, oauth(store.clone())).await;
    log_in(&host).await.unwrap();
    whoami(&host).await;
    let stored = credentials(&store);

    let outcome = within(host.logout("docs")).await.unwrap();
    assert!(outcome.was_logged_in && matches!(outcome.revoked, Some(Ok(()))), "{outcome:?}");
    assert_eq!(outcome.issuer.as_deref(), Some(server.issuer.as_str()));
    let statistics = server.statistics().await;
    assert_eq!(statistics.count("revocation"), 2, "the refresh token and the access token");
    assert!(credentials(&store).is_empty());
    assert_needs_login(&host).await;
    assert!(host.login_status("docs").await.unwrap().is_none());

    // The server refuses the tokens: a copy of the login is worth nothing.
    for (key, login) in stored {
        store.set(&key, &Secret::new(login.to_string())).unwrap();
    }
    assert_needs_login(&host).await;
    let again = within(host.logout("docs")).await.unwrap();
    assert!(again.was_logged_in);
    let nothing = within(host.logout("docs")).await.unwrap();
    assert!(!nothing.was_logged_in && nothing.revoked.is_none(), "{nothing:?}");
    within(host.shutdown()).await;
}

#[tokio::test]
async fn logout_removes_the_login_also_if_it_cannot_be_revoked() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let store = MemoryStore::default();
    let host = host(&server, oauth(store.clone())).await;
    log_in(&host).await.unwrap();
    server.add_fault(Fault::status(503).at_endpoint("revocation").times(2)).await;
    let outcome = within(host.logout("docs")).await.unwrap();
    let error = outcome.revoked.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HttpStatus(503), "{error}");
    assert!(credentials(&store).is_empty());
    within(host.shutdown()).await;
}

#[tokio::test]
async fn redirect_arrives_at_a_loopback_port() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let host = host(&server, oauth(MemoryStore::default())).await;
    let listener = LoopbackListener::bind(None).await.unwrap();
    let request = LoginRequest::default().redirect_uri(listener.redirect_uri());
    let login = within(host.begin_login("docs", request)).await.unwrap();
    let visit = async {
        let callback = browser::open(login.url().as_str()).await;
        let _ = std::net::TcpStream::connect(("127.0.0.1", listener.port().unwrap()));
        browser::visit(&callback).await
    };
    let callback = listener.callback(|url| login.is_for(url));
    let (callback, page) = within(async { tokio::join!(callback, visit) }).await;
    assert!(page.contains("You can close this page"), "{page}");
    within(login.finish(&callback.unwrap())).await.unwrap();
    whoami(&host).await;
    within(host.shutdown()).await;
}

/// A page in the browser may lead to the redirect URI of a login with a code of its own.
#[tokio::test]
async fn redirect_of_another_login_stores_nothing() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let store = MemoryStore::default();
    let host = host(&server, oauth(store.clone())).await;
    let request = || LoginRequest::default().redirect_uri(REDIRECT_URI);
    let first = within(host.begin_login("docs", request())).await.unwrap();
    let second = within(host.begin_login("docs", request())).await.unwrap();
    let callback = Url::parse(&browser::open(first.url().as_str()).await).unwrap();
    assert!(first.is_for(&callback) && !second.is_for(&callback));
    let error = within(second.finish(&callback)).await.unwrap_err();
    assert!(error.message().contains("does not belong to this login"), "{error}");
    assert!(error.hint().unwrap().contains("newest link"), "{error}");
    assert!(credentials(&store).is_empty());
    within(first.finish(&callback)).await.unwrap();
    within(host.shutdown()).await;
}

#[tokio::test]
async fn user_who_denies_gets_a_clear_error() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let store = MemoryStore::default();
    let host = host(&server, oauth(store.clone())).await;
    server.deny_authorization().await;
    let error = log_in(&host).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    let expected =
        "server `docs`: the login was refused: access_denied (the user denied the request)";
    assert_eq!(error.to_string(), expected);
    assert!(credentials(&store).is_empty());
    within(host.shutdown()).await;
}

#[tokio::test]
async fn login_that_cannot_be_stored_fails() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let store = ObservedStore::default();
    let host = host(&server, oauth(store.clone())).await;
    store.set_full(true);
    let error = log_in(&host).await.unwrap_err();
    assert!(error.to_string().contains("the disk is full"), "{error}");
    assert_eq!(error.hint(), Some("remove something"));
    assert!(credentials(&store).is_empty());
    call(&host, "whoami").await.unwrap_err();
    store.set_full(false);
    log_in(&host).await.unwrap();
    whoami(&host).await;
    within(host.shutdown()).await;
}

#[tokio::test]
async fn truncated_login_is_replaced_by_the_next_one() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let store = MemoryStore::default();
    let first = host(&server, oauth(store.clone())).await;
    log_in(&first).await.unwrap();
    within(first.shutdown()).await;
    let (key, login) = credentials(&store).pop_first().unwrap();
    let text = login.to_string();
    let half: String = text.chars().take(text.len() / 2).collect();
    store.set(&key, &Secret::new(half)).unwrap();

    let second = host(&server, oauth(store.clone())).await;
    call(&second, "whoami").await.unwrap_err();
    let error = last_error(&second).unwrap();
    assert_eq!(error.kind(), ErrorKind::UnreadableSecret);
    assert!(error.message().contains("the stored login cannot be read"), "{error}");
    assert!(error.hint().unwrap().contains("log in again"), "{error}");
    log_in(&second).await.unwrap();
    whoami(&second).await;
    within(second.shutdown()).await;
}
