//! Hosts with one protected server, `docs`, and logins to it.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value, json};
use trunkline::Host;
use trunkline::call::{CallError, CallErrorKind};
use trunkline::error::{Error, ErrorKind};
use trunkline::host::{HostBuilder, ServerCondition};
use trunkline::oauth::{LoginOutcome, LoginRequest, OAuth, OAuthOptions};
use trunkline::secrets::SecretStore;
use trunkline_testkit::browser;
use trunkline_testkit::oauth_server::{OAuthServer, RecordedRequest};
use url::Url;

use super::file_driven_server::{poll_until, within};

/// A redirect URI that nothing has to listen at.
pub(crate) const REDIRECT_URI: &str = "http://127.0.0.1:41999/callback";

/// The hint of a server that needs a login.
const LOGIN_HINT: &str = "run `trunkline login docs`";

/// The logins of a store, with the command that messages name.
pub(crate) fn oauth(store: impl SecretStore + 'static) -> OAuth {
    let mut options = OAuthOptions::default();
    options.login_command = Some("trunkline login".into());
    OAuth::new(Arc::new(store), options)
}

/// A host with a server that has additional keys.
pub(crate) fn builder(url: &str, more: &Value) -> HostBuilder {
    let mut entry = json!({ "type": "http", "url": url });
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    let text = json!({ "mcpServers": { "docs": entry } }).to_string();
    Host::builder().config_text("mcp.json", text)
}

/// A started host with a server and logins.
pub(crate) async fn host_with(server: &OAuthServer, oauth: OAuth, more: &Value) -> Host {
    builder(&server.mcp_url, more).oauth(oauth).start().await.unwrap()
}

/// A started host, with nothing but the address of the server.
pub(crate) async fn host(server: &OAuthServer, oauth: OAuth) -> Host {
    host_with(server, oauth, &json!({})).await
}

/// Logs in with the browser.
pub(crate) async fn log_in(host: &Host) -> Result<LoginOutcome, Error> {
    log_in_with(host, LoginRequest::default()).await
}

/// Logs in with the browser and a request.
pub(crate) async fn log_in_with(host: &Host, request: LoginRequest) -> Result<LoginOutcome, Error> {
    log_in_exactly(host, request.redirect_uri(REDIRECT_URI)).await
}

/// Logs in with the browser, a request and its redirect URI.
pub(crate) async fn log_in_exactly(
    host: &Host,
    request: LoginRequest,
) -> Result<LoginOutcome, Error> {
    let login = within(host.begin_login("docs", request)).await?;
    let callback = within(browser::open(login.url().as_str())).await;
    within(login.finish(&Url::parse(&callback).unwrap())).await
}

/// Calls a tool, and returns the text of its result.
pub(crate) async fn call(host: &Host, tool: &str) -> Result<String, CallError> {
    let call = host.call_tool(&format!("docs_{tool}"), json!({ "text": "x" }));
    within(call.into_future()).await.map(|outcome| outcome.text())
}

/// What the server says about the token of a call.
pub(crate) async fn whoami(host: &Host) -> Value {
    serde_json::from_str(&call(host, "whoami").await.unwrap()).unwrap()
}

/// Calls the tool `echo` many times at once.
pub(crate) async fn calls(host: &Host, count: usize) -> Vec<Result<String, CallError>> {
    join_all((0..count).map(|_| call(host, "echo"))).await
}

/// Calls the tool `echo` many times at once, all of which succeed.
pub(crate) async fn successful_calls(host: &Host, count: usize) {
    for result in calls(host, count).await {
        assert_eq!(result.as_deref(), Ok("x"));
    }
}

/// The error of the server, in its status.
pub(crate) fn last_error(host: &Host) -> Option<Error> {
    match host.status().remove(0).condition {
        ServerCondition::Enabled(status) => status.last_error,
        other => panic!("{other:?}"),
    }
}

/// Checks that a call fails because the server needs a login, and that its status says how.
pub(crate) async fn assert_needs_login(host: &Host) -> CallError {
    let error = call(host, "whoami").await.unwrap_err();
    // The second is that of a server that was found to need one before.
    let kinds = [CallErrorKind::Failed(ErrorKind::NeedsLogin), CallErrorKind::Unavailable];
    assert!(kinds.contains(&error.kind()), "{error:?}");
    assert!(error.to_string().contains("it needs a login"), "{error}");
    assert!(!error.is_retryable(), "{error}");
    let shown = last_error(host).unwrap();
    assert_eq!((shown.kind(), shown.hint()), (ErrorKind::NeedsLogin, Some(LOGIN_HINT)), "{shown}");
    error
}

/// The number of refreshes that the authorization server was asked for.
pub(crate) async fn refreshes(server: &OAuthServer) -> u64 {
    server.statistics().await.grants("refresh_token")
}

/// Waits until a refresh has arrived that has no response yet.
pub(crate) async fn refresh_under_way(server: &OAuthServer) {
    let is_under_way = async || {
        let requests = server.statistics().await.requests;
        let is_refresh = |it: &&RecordedRequest| it.grant_type.as_deref() == Some("refresh_token");
        requests.iter().filter(is_refresh).any(|it| it.status.is_none())
    };
    poll_until(is_under_way).await;
}
