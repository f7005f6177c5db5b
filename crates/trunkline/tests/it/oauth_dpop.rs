//! CON-12: tokens that are bound to a key (DPoP, RFC 9449).

use serde_json::{Value, json};
use trunkline::Host;
use trunkline::secrets::MemoryStore;
use trunkline_testkit::oauth_server::{DpopMode, OAuthServer, OAuthServerOptions};

use crate::support::file_driven_server::within;
use crate::support::oauth_host::{
    call, host_with, log_in, oauth, refreshes, successful_calls, whoami,
};
use crate::support::secret_stores::credential;

struct Bound {
    server: OAuthServer,
    store: MemoryStore,
    host: Host,
}

/// A connected host that is logged in.
async fn bound(options: OAuthServerOptions, settings: Value) -> Bound {
    let server = OAuthServer::start(options).await;
    let store = MemoryStore::default();
    let host = host_with(&server, oauth(store.clone()), &json!({ "oauth": settings })).await;
    log_in(&host).await.unwrap();
    call(&host, "echo").await.unwrap();
    Bound { server, store, host }
}

#[tokio::test]
async fn tokens_are_bound_where_the_server_requires_it_or_the_user_wants_it() {
    for (mode, settings, is_bound) in [
        (DpopMode::Offered, json!({ "dpop": true }), true),
        (DpopMode::Offered, json!({}), false),
        (DpopMode::Required, json!({}), true),
        (DpopMode::Nonce, json!({}), true),
    ] {
        let Bound { server, store, host } =
            bound(OAuthServerOptions::new().with_dpop(mode), settings).await;
        assert_eq!(credential(&store)["dpopKey"].is_string(), is_bound, "{mode:?}");
        let key = credential(&store)["dpopKey"].clone();
        successful_calls(&host, 10).await;
        server.revoke_access_tokens().await;
        successful_calls(&host, 10).await;
        assert_eq!(credential(&store)["dpopKey"], key, "{mode:?}: a refresh keeps the key");
        let statistics = server.statistics().await;
        // The first of them is refused, to name the nonce.
        let expected = if mode == DpopMode::Nonce { 2 } else { 1 };
        assert_eq!(refreshes(&server).await, expected, "{mode:?}");
        assert_eq!(statistics.refresh_token_reuses, 0, "{mode:?}");
        within(host.shutdown()).await;
    }
}

#[tokio::test]
async fn refused_proofs_are_made_anew_when_the_nonce_changes() {
    let options = OAuthServerOptions::new().with_dpop(DpopMode::Nonce);
    let Bound { server, host, .. } = bound(options, json!({})).await;
    for _ in 0..3 {
        server.change_dpop_nonce().await;
        whoami(&host).await;
    }
    assert_eq!(refreshes(&server).await, 0);
    within(host.shutdown()).await;
}

/// The token is good: only the proofs of the calls that were under way are old.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn change_of_the_nonce_during_many_calls_needs_no_refresh() {
    let options = OAuthServerOptions::new().with_dpop(DpopMode::Nonce).without_refresh_tokens();
    let Bound { server, host, .. } = bound(options, json!({})).await;
    for _ in 0..5 {
        server.change_dpop_nonce().await;
        successful_calls(&host, 25).await;
    }
    assert_eq!(refreshes(&server).await, 0);
    within(host.shutdown()).await;
}

#[tokio::test]
async fn client_credentials_are_bound_as_well() {
    let server = OAuthServer::start(OAuthServerOptions::new().with_dpop(DpopMode::Nonce)).await;
    let client = &server.clients.confidential;
    let settings = json!({ "oauth": {
        "grant": "client-credentials",
        "clientId": client.client_id,
        "clientSecret": client.client_secret,
    } });
    let host = host_with(&server, oauth(MemoryStore::default()), &settings).await;
    whoami(&host).await;
    server.revoke_access_tokens().await;
    whoami(&host).await;
    within(host.shutdown()).await;
}
