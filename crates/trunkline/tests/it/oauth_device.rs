//! CON-12: logins on another device (RFC 8628).

use std::time::Duration;

use trunkline::Host;
use trunkline::error::ErrorKind;
use trunkline::oauth::{DeviceLogin, LoginRequest};
use trunkline::secrets::MemoryStore;
use trunkline_testkit::oauth_server::{Fault, OAuthServer, OAuthServerOptions};

use crate::support::file_driven_server::{pass_time, poll_until, within};
use crate::support::oauth_host::{call, host, oauth, whoami};
use crate::support::secret_stores::credentials;

const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

async fn begin(host: &Host) -> DeviceLogin {
    within(host.begin_device_login("docs", LoginRequest::default())).await.unwrap()
}

async fn polls(server: &OAuthServer) -> u64 {
    server.statistics().await.grants(DEVICE_GRANT)
}

/// Lets time pass until the next poll has its response.
async fn next_poll(server: &OAuthServer, interval: Duration) {
    let before = polls(server).await;
    pass_time(interval).await;
    poll_until(async || {
        let requests = server.statistics().await.requests;
        requests.last().is_some_and(|it| it.status.is_some()) && polls(server).await > before
    })
    .await;
}

#[tokio::test]
async fn code_that_is_entered_elsewhere_logs_in() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let host = host(&server, oauth(MemoryStore::default())).await;
    let login = begin(&host).await;
    assert!(login.verification_url().as_str().starts_with(&server.issuer));
    let code = login.user_code().to_owned();
    let enter = async {
        next_poll(&server, Duration::from_secs(1)).await;
        server.approve_device(&code).await;
        pass_time(Duration::from_secs(2)).await;
    };
    let (outcome, ()) = within(async { tokio::join!(login.finish(), enter) }).await;
    assert!(outcome.unwrap().is_renewable);
    assert_eq!(whoami(&host).await["subject"], "alice");
    assert_eq!(polls(&server).await, 2);
    server.revoke_access_tokens().await;
    assert_eq!(call(&host, "echo").await.as_deref(), Ok("x"), "it is renewed like others");
    within(host.shutdown()).await;
}

#[tokio::test]
async fn code_that_is_denied_is_an_error() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let store = MemoryStore::default();
    let host = host(&server, oauth(store.clone())).await;
    let login = begin(&host).await;
    server.deny_device(login.user_code()).await;
    let error = within(login.finish()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert!(error.message().contains("access_denied"), "{error}");
    assert!(credentials(&store).is_empty());
    within(host.shutdown()).await;
}

#[tokio::test]
async fn polls_slow_down_when_they_are_asked_to_and_survive_failures() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let host = host(&server, oauth(MemoryStore::default())).await;
    let login = begin(&host).await;
    server.add_fault(Fault::error("slow_down").for_grant_type(DEVICE_GRANT)).await;
    let code = login.user_code().to_owned();
    let enter = async {
        next_poll(&server, Duration::from_secs(1)).await;
        server.approve_device(&code).await;
        server.add_fault(Fault::status(503).for_grant_type(DEVICE_GRANT)).await;
        // The interval is six seconds by now.
        pass_time(Duration::from_secs(5)).await;
        assert_eq!(polls(&server).await, 1);
        next_poll(&server, Duration::from_secs(2)).await;
        pass_time(Duration::from_secs(7)).await;
    };
    let (outcome, ()) = within(async { tokio::join!(login.finish(), enter) }).await;
    outcome.unwrap();
    assert_eq!(polls(&server).await, 3);
    within(host.shutdown()).await;
}

#[tokio::test]
async fn server_without_device_logins_says_so() {
    let server = OAuthServer::start(OAuthServerOptions::new().without_device_flow()).await;
    let host = host(&server, oauth(MemoryStore::default())).await;
    let begun = within(host.begin_device_login("docs", LoginRequest::default())).await;
    let error = begun.unwrap_err();
    assert!(error.message().contains("does not offer logins on another device"), "{error}");
    assert!(error.hint().unwrap().contains("browser"), "{error}");
    within(host.shutdown()).await;
}
