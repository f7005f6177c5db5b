//! CON-12: clients that are configured, registered or described by a document, and grants without a user.

use serde_json::{Value, json};
use trunkline::Host;
use trunkline::error::ErrorKind;
use trunkline::secrets::MemoryStore;
use trunkline_testkit::oauth_server::{ClientCredential, OAuthServer, OAuthServerOptions};

use crate::support::file_driven_server::within;
use crate::support::oauth_host::{
    assert_needs_login, call, host, host_with, last_error, log_in, oauth, refreshes,
    successful_calls, whoami,
};
use crate::support::secret_stores::{credential, credentials};

async fn host_of(server: &OAuthServer, settings: Value) -> Host {
    let oauth = oauth(MemoryStore::default());
    host_with(server, oauth, &json!({ "oauth": settings })).await
}

#[tokio::test]
async fn configured_client_is_not_registered() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let client = &server.clients.public.client_id;
    let host = host_of(&server, json!({ "clientId": client })).await;
    log_in(&host).await.unwrap();
    assert_eq!(whoami(&host).await["client_id"], json!(client));
    assert_eq!(server.statistics().await.count("registration"), 0);
    within(host.shutdown()).await;
}

#[tokio::test]
async fn configured_client_with_a_secret_logs_in_and_refreshes() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let ClientCredential { client_id, client_secret, .. } = &server.clients.confidential;
    let settings = json!({ "clientId": client_id, "clientSecret": client_secret });
    let host = host_of(&server, settings).await;
    log_in(&host).await.unwrap();
    call(&host, "echo").await.unwrap();
    server.revoke_access_tokens().await;
    assert_eq!(whoami(&host).await["client_id"], json!(client_id));
    assert!(matches!(within(host.logout("docs")).await.unwrap().revoked, Some(Ok(()))));
    within(host.shutdown()).await;
}

#[tokio::test]
async fn client_metadata_document_takes_the_place_of_a_registration() {
    let options = OAuthServerOptions::new().with_client_metadata_documents();
    let server = OAuthServer::start(options).await;
    let client = &server.clients.metadata_document.client_id;
    let host = host_of(&server, json!({ "clientMetadataUrl": client })).await;
    log_in(&host).await.unwrap();
    assert_eq!(whoami(&host).await["client_id"], json!(client));
    assert_eq!(server.statistics().await.count("registration"), 0);
    within(host.shutdown()).await;
}

#[tokio::test]
async fn client_metadata_document_is_not_used_where_it_is_not_supported() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let client = &server.clients.metadata_document.client_id;
    let host = host_of(&server, json!({ "clientMetadataUrl": client })).await;
    log_in(&host).await.unwrap();
    assert_eq!(server.statistics().await.count("registration"), 1);
    within(host.shutdown()).await;
}

#[tokio::test]
async fn server_without_registration_asks_for_a_client() {
    let server = OAuthServer::start(OAuthServerOptions::new().without_registration()).await;
    let store = MemoryStore::default();
    let host = host(&server, oauth(store.clone())).await;
    let error = log_in(&host).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert!(error.message().contains("does not register clients"), "{error}");
    assert!(error.hint().unwrap().contains("`oauth.clientId`"), "{error}");
    assert!(credentials(&store).is_empty());
    within(host.shutdown()).await;
}

#[tokio::test]
async fn authorization_server_on_another_port_is_used() {
    let options = OAuthServerOptions::new().with_separate_authorization_server();
    let server = OAuthServer::start(options).await;
    let host = host_of(&server, json!({})).await;
    assert_eq!(log_in(&host).await.unwrap().issuer, server.issuer);
    whoami(&host).await;
    within(host.shutdown()).await;
}

/// The tokens and the client of one authorization server are not for another.
#[tokio::test]
async fn other_authorization_server_needs_a_login_and_a_new_client() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let store = MemoryStore::default();
    let host = host(&server, oauth(store.clone())).await;
    log_in(&host).await.unwrap();
    let before = whoami(&host).await;
    let issuer = server.migrate().await;
    let error = assert_needs_login(&host).await;
    assert!(error.to_string().contains("does not accept the token"), "{error}");
    assert_eq!(refreshes(&server).await, 1, "one more would not help");
    assert_needs_login(&host).await;
    assert_eq!(refreshes(&server).await, 1);
    let outcome = log_in(&host).await.unwrap();
    assert_eq!(outcome.issuer, issuer);
    assert_ne!(whoami(&host).await["client_id"], before["client_id"]);
    assert_eq!(credential(&store)["issuer"], json!(issuer));
    let requests = server.statistics().await.requests;
    let at_second = |endpoint: &str| {
        requests.iter().filter(|it| it.server == "second" && it.endpoint == endpoint).count()
    };
    assert_eq!((at_second("registration"), at_second("token")), (1, 1));
    within(host.shutdown()).await;
}

/// Grants of the client itself: a secret in the header, in the form, and a private key.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn client_credentials_need_no_login() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let clients = &server.clients;
    for client in [&clients.confidential, &clients.post, &clients.key] {
        let mut settings = json!({ "grant": "client-credentials", "clientId": client.client_id });
        if let Some(secret) = &client.client_secret {
            settings["clientSecret"] = secret.as_str().into();
        }
        if let Some(key) = &client.private_key_pem {
            settings["privateKey"] = key.as_str().into();
        }
        let host = host_of(&server, settings).await;
        let result = call(&host, "whoami").await;
        let identity: Value = serde_json::from_str(&result.unwrap_or_else(|error| {
            panic!("{}: {error}: {:?}", client.client_id, last_error(&host))
        }))
        .unwrap();
        assert_eq!(identity["client_id"], json!(client.client_id));

        let before = server.statistics().await.grants("client_credentials");
        server.revoke_access_tokens().await;
        successful_calls(&host, 25).await;
        assert_eq!(server.statistics().await.grants("client_credentials"), before + 1);
        let error = log_in(&host).await.unwrap_err();
        assert!(error.message().contains("it needs no login"), "{error}");
        within(host.shutdown()).await;
    }
}

#[tokio::test]
async fn wrong_client_credentials_name_the_settings_and_not_the_secret() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let settings = json!({
        "grant": "client-credentials",
        "clientId": server.clients.confidential.client_id,
        "clientSecret": "not-the-hunter2",
    });
    let host = host_of(&server, settings).await;
    call(&host, "whoami").await.unwrap_err();
    let error = last_error(&host).unwrap();
    assert_eq!(error.kind(), ErrorKind::Unauthorized, "{error}");
    assert!(error.message().contains("invalid_client"), "{error}");
    assert!(error.hint().unwrap().contains("`oauth`"), "{error}");
    assert!(!format!("{error:?}").contains("hunter2"));
    within(host.shutdown()).await;
}
