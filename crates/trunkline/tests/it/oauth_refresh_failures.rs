//! CON-12: refreshes that fail, are lost or interrupted. A login survives what is temporary.

use std::time::Duration;

use serde_json::Value;
use trunkline::Host;
use trunkline::call::CallErrorKind;
use trunkline::config::Secret;
use trunkline::error::ErrorKind;
use trunkline::oauth::LoginRequest;
use trunkline::secrets::{MemoryStore, SecretStore};
use trunkline_testkit::oauth_server::{Fault, OAuthServer, OAuthServerOptions};

use crate::support::file_driven_server::{pass_time, poll_until, within};
use crate::support::oauth_host::{
    assert_needs_login, call, host, log_in, log_in_exactly, oauth, refresh_under_way, refreshes,
    whoami,
};
use crate::support::secret_stores::{ObservedStore, credential, credentials};

/// A server, and a connected host that is logged in to it.
async fn logged_in(store: impl SecretStore + 'static) -> (OAuthServer, Host) {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let host = host(&server, oauth(store)).await;
    log_in(&host).await.unwrap();
    call(&host, "echo").await.unwrap();
    (server, host)
}

fn without_refresh_token(mut credential: Value) -> Value {
    credential.as_object_mut().unwrap().remove("refreshToken").unwrap();
    credential
}

#[tokio::test]
async fn refused_refresh_token_is_removed_and_asks_for_a_login() {
    let store = MemoryStore::default();
    let (server, host) = logged_in(store.clone()).await;
    let before = credential(&store);
    server.revoke_all_tokens().await;
    let error = assert_needs_login(&host).await;
    assert!(error.to_string().contains("invalid_grant"), "{error}");
    assert_eq!(credential(&store), without_refresh_token(before), "nothing else is removed");
    assert!(!host.login_status("docs").await.unwrap().unwrap().is_renewable);

    // Known by now: no further request is made for it.
    assert_needs_login(&host).await;
    assert_needs_login(&host).await;
    assert_eq!(refreshes(&server).await, 1);

    log_in(&host).await.unwrap();
    whoami(&host).await;
    let statistics = server.statistics().await;
    assert_eq!(statistics.count("registration"), 1, "the client is the same");
    within(host.shutdown()).await;
}

/// A process that does not lock may have replaced a refresh token while this one was refused.
#[tokio::test]
async fn newer_login_of_another_process_is_adopted_after_a_refusal() {
    let store = MemoryStore::default();
    let (server, one) = logged_in(store.clone()).await;
    server.revoke_all_tokens().await;
    let elsewhere = MemoryStore::default();
    let other = host(&server, oauth(elsewhere.clone())).await;
    log_in(&other).await.unwrap();
    let (key, newer) = credentials(&elsewhere).pop_first().unwrap();

    let slow = Fault::slow(Duration::from_secs(1)).for_grant_type("refresh_token");
    server.add_fault(slow).await;
    let replace = async {
        refresh_under_way(&server).await;
        store.set(&key, &Secret::new(newer.to_string())).unwrap();
    };
    let (identity, ()) = tokio::join!(whoami(&one), replace);
    assert_eq!(identity["token_id"], whoami(&other).await["token_id"]);
    assert_eq!(refreshes(&server).await, 1);
    assert_eq!(credential(&store), newer);
    within(one.shutdown()).await;
    within(other.shutdown()).await;
}

#[tokio::test]
async fn temporary_failures_keep_the_login() {
    let store = MemoryStore::default();
    let (server, host) = logged_in(store.clone()).await;
    let faults = [
        (Fault::status(500), ErrorKind::HttpStatus(500)),
        (Fault::status(503), ErrorKind::HttpStatus(503)),
        (Fault::status(429).with_retry_after(1), ErrorKind::HttpStatus(429)),
        (Fault::error("temporarily_unavailable"), ErrorKind::HttpStatus(503)),
        (Fault::close(), ErrorKind::Broken),
    ];
    for (fault, kind) in faults {
        server.revoke_access_tokens().await;
        server.add_fault(fault.for_grant_type("refresh_token")).await;
        let before = credential(&store);
        let error = call(&host, "echo").await.unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::Failed(kind), "{error}");
        assert!(error.is_retryable(), "{error}");
        assert_eq!(credential(&store), before, "{kind:?}");
        assert_eq!(call(&host, "echo").await.as_deref(), Ok("x"), "{kind:?}");
    }
    assert_eq!(server.statistics().await.refresh_token_reuses, 0);
    within(host.shutdown()).await;
}

#[tokio::test]
async fn refresh_without_a_response_is_abandoned_and_keeps_the_login() {
    let store = MemoryStore::default();
    let (server, host) = logged_in(store.clone()).await;
    server.revoke_access_tokens().await;
    let never = Fault::slow(Duration::from_secs(600)).for_grant_type("refresh_token");
    server.add_fault(never).await;
    let before = credential(&store);
    let pass = async {
        refresh_under_way(&server).await;
        pass_time(Duration::from_secs(21)).await;
    };
    let (result, ()) = tokio::join!(call(&host, "echo"), pass);
    let error = result.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Failed(ErrorKind::TimedOut), "{error}");
    assert!(error.is_retryable(), "{error}");
    assert_eq!(credential(&store), before);
    assert_eq!(call(&host, "echo").await.as_deref(), Ok("x"));
    within(host.shutdown()).await;
}

/// A token that expires soon is still good.
#[tokio::test]
async fn valid_token_is_used_while_it_cannot_be_renewed() {
    let (server, host) = logged_in(MemoryStore::default()).await;
    server.set_stated_lifetime(Some(Duration::from_secs(25))).await;
    server.revoke_access_tokens().await;
    call(&host, "echo").await.unwrap();
    let before = refreshes(&server).await;
    server.add_fault(Fault::status(500).for_grant_type("refresh_token").times(100)).await;
    assert_eq!(call(&host, "echo").await.as_deref(), Ok("x"));
    assert!(refreshes(&server).await > before);
    within(host.shutdown()).await;
}

/// The server has rotated the refresh token, and the client does not know the new one.
#[tokio::test]
async fn lost_response_ends_in_a_login_at_worst() {
    let store = MemoryStore::default();
    let (server, host) = logged_in(store.clone()).await;
    server.revoke_access_tokens().await;
    server.add_fault(Fault::lose_response().for_grant_type("refresh_token")).await;
    let error = call(&host, "echo").await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Failed(ErrorKind::Broken), "{error}");
    assert!(error.is_retryable(), "{error}");
    assert_needs_login(&host).await;
    log_in(&host).await.unwrap();
    assert_eq!(call(&host, "echo").await.as_deref(), Ok("x"));
    within(host.shutdown()).await;
}

#[tokio::test]
async fn refresh_is_stored_although_its_caller_has_left() {
    let store = MemoryStore::default();
    let (server, host) = logged_in(store.clone()).await;
    server.revoke_access_tokens().await;
    let before = credential(&store);
    let slow = Fault::slow(Duration::from_secs(1)).for_grant_type("refresh_token");
    server.add_fault(slow).await;
    tokio::select! {
        result = call(&host, "echo") => panic!("{result:?}"),
        () = refresh_under_way(&server) => {}
    }
    poll_until(async || credential(&store)["refreshToken"] != before["refreshToken"]).await;
    assert_eq!(call(&host, "echo").await.as_deref(), Ok("x"));
    let statistics = server.statistics().await;
    assert_eq!((refreshes(&server).await, statistics.refresh_token_reuses), (1, 0));
    within(host.shutdown()).await;
}

/// A refresh that fails after its caller has left is the failure of those who waited for it, too.
#[tokio::test]
async fn failure_is_shared_although_its_caller_has_left() {
    let store = MemoryStore::default();
    let (server, host) = logged_in(store.clone()).await;
    server.revoke_access_tokens().await;
    server.add_fault(Fault::status(500).for_grant_type("refresh_token").times(10)).await;
    let refusals = async || {
        let requests = server.statistics().await.requests;
        requests.iter().filter(|it| it.endpoint == "mcp" && it.status == Some(401)).count()
    };
    let before = refusals().await;
    // The refresh begins when this is dropped.
    let (key, _) = credentials(&store).pop_first().unwrap();
    let guard = store.lock(&key).unwrap();
    let mut first = Box::pin(call(&host, "echo"));
    tokio::select! {
        result = &mut first => panic!("{result:?}"),
        () = poll_until(async || refusals().await == before + 1) => {}
    }
    let mut second = Box::pin(call(&host, "echo"));
    tokio::select! {
        result = &mut first => panic!("{result:?}"),
        result = &mut second => panic!("{result:?}"),
        () = poll_until(async || refusals().await == before + 2) => {}
    }
    drop(first);
    drop(guard);
    let error = second.await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Failed(ErrorKind::HttpStatus(500)), "{error}");
    assert_eq!(refreshes(&server).await, 1);
    within(host.shutdown()).await;
}

/// Codex #41133: the rotated token was lost at shutdown.
#[tokio::test]
async fn shutdown_waits_for_a_refresh_to_be_stored() {
    let store = MemoryStore::default();
    let (server, host) = logged_in(store.clone()).await;
    server.revoke_access_tokens().await;
    let before = credential(&store);
    let slow = Fault::slow(Duration::from_secs(2)).for_grant_type("refresh_token");
    server.add_fault(slow).await;
    let shutdown = async {
        refresh_under_way(&server).await;
        within(host.shutdown()).await;
        credential(&store)
    };
    let (_, stored) = tokio::join!(call(&host, "echo"), shutdown);
    assert_ne!(stored["refreshToken"], before["refreshToken"]);
}

#[tokio::test]
async fn refresh_that_cannot_be_stored_is_used_from_memory() {
    let store = ObservedStore::default();
    let (server, host) = logged_in(store.clone()).await;
    let before = credential(&store);
    store.set_full(true);
    for _ in 0..2 {
        server.revoke_access_tokens().await;
        assert_eq!(call(&host, "echo").await.as_deref(), Ok("x"));
        assert_eq!(credential(&store), before, "nothing is half stored");
    }
    store.set_full(false);
    server.revoke_access_tokens().await;
    assert_eq!(call(&host, "echo").await.as_deref(), Ok("x"));
    assert_ne!(credential(&store)["refreshToken"], before["refreshToken"]);
    let statistics = server.statistics().await;
    assert_eq!((refreshes(&server).await, statistics.refresh_token_reuses), (3, 0));
    within(host.shutdown()).await;
}

/// The authorization server has forgotten the client, for example because its database was replaced.
#[tokio::test]
async fn forgotten_client_is_registered_anew() {
    let store = MemoryStore::default();
    let (server, host) = logged_in(store.clone()).await;
    let client = credential(&store)["client"]["id"].clone();
    server.forget_clients().await;
    server.revoke_access_tokens().await;
    let error = assert_needs_login(&host).await;
    assert!(error.to_string().contains("invalid_client"), "{error}");
    let other_port = LoginRequest::default().redirect_uri("http://127.0.0.1:41998/callback");
    log_in_exactly(&host, other_port).await.unwrap();
    assert_ne!(whoami(&host).await["client_id"], client);
    within(host.shutdown()).await;
}
