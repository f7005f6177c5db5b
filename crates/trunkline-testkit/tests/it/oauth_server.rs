//! The OAuth server for tests, judged by independent OAuth clients and through its Rust interface.

use std::time::Duration;

use serde_json::json;
use trunkline_testkit::oauth_server::{
    DpopMode, Fault, Misbehaviour, OAuthServer, OAuthServerOptions,
};
use trunkline_testkit::{browser, peers};

/// Drives the server with oauth4webapi and with the TypeScript SDK.
#[tokio::test]
async fn independent_clients_can_use_the_server() {
    let printed = peers::run(peers::conformance_node_client("oauth_selftest.mjs")).await;
    let flows: Vec<_> = printed.lines().filter_map(|line| line.strip_prefix("ok ")).collect();
    assert!(flows.len() > 30, "{printed}");
}

fn authorization_url(server: &OAuthServer) -> String {
    let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    format!(
        "{}/authorize?client_id={}&response_type=code&redirect_uri=http://127.0.0.1:1/callback\
         &scope=read&state=s&code_challenge={challenge}&code_challenge_method=S256",
        server.issuer, server.clients.public.client_id,
    )
}

#[tokio::test]
async fn one_request_ends_at_the_callback() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let url = authorization_url(&server);
    let callback = browser::open(&url).await;
    assert!(callback.starts_with("http://127.0.0.1:1/callback?code="), "{callback}");
    assert!(callback.contains("&state=s&iss=http"), "{callback}");
    let statistics = server.statistics().await;
    assert_eq!((statistics.count("authorization"), statistics.grants("refresh_token")), (1, 0));
    assert_eq!(statistics.requests[0].status, Some(303));

    server.deny_authorization().await;
    let callback = browser::open(&url).await;
    assert!(callback.contains("error=access_denied"), "{callback}");
    server.reset().await;
    assert_eq!(server.statistics().await.requests, []);
}

#[tokio::test]
async fn every_control_call_is_understood() {
    let options = OAuthServerOptions::new()
        .with_access_token_lifetime(Duration::from_secs(5))
        .with_refresh_token_lifetime(Duration::from_secs(60))
        .with_dpop(DpopMode::Nonce)
        .with_client_metadata_documents()
        .with_separate_authorization_server()
        .with_misbehaviour(Misbehaviour::NoPkce)
        .without_registration()
        .without_device_flow()
        .without_refresh_tokens()
        .without_rotation();
    let mut server = OAuthServer::start(options).await;
    assert!(!server.mcp_url.starts_with(&server.issuer));
    server.set_misbehaviours(&Misbehaviour::ALL).await;
    server.set_access_token_lifetime(Duration::from_secs(1)).await;
    server.set_stated_lifetime(Some(Duration::from_secs(9))).await;
    server.set_stated_lifetime(None).await;
    for fault in [
        Fault::status(429).with_retry_after(1),
        Fault::error("invalid_grant").times(2).for_grant_type("refresh_token"),
        Fault::slow(Duration::from_millis(1)).at_endpoint("any"),
        Fault::close(),
        Fault::lose_response(),
    ] {
        server.add_fault(fault).await;
    }
    server.revoke_access_tokens().await;
    server.revoke_refresh_tokens().await;
    server.revoke_all_tokens().await;
    server.use_up_refresh_tokens().await;
    server.forget_clients().await;
    server.set_clock_offset(-60).await;
    server.change_dpop_nonce().await;
    server.add_client_metadata(json!({ "client_id": "https://a.example.com/b" })).await;
    assert_eq!(server.approve_pending_devices().await, 0);
    assert_ne!(server.migrate().await, server.issuer);
    server.reset().await;
    server.stop().await;
}
