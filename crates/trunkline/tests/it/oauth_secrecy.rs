//! CON-12: no token, code, key or client secret of any login appears in logs, errors, status or `Debug`.
//!
//! All requests pass a proxy that records them, so that the values are those that were really sent.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tracing_subscriber::fmt::format::FmtSpan;
use trunkline::Host;
use trunkline::oauth::{LoginRequest, OAuth};
use trunkline_testkit::oauth_server::{DpopMode, Fault, OAuthServer, OAuthServerOptions};

use crate::support::file_driven_server::{pass_time, within};
use crate::support::oauth_host::{builder, call, last_error, log_in, oauth, refreshes, whoami};
use crate::support::recording_proxy::RecordingProxy;
use crate::support::secret_stores::ObservedStore;

/// Events of all threads, as a program at the highest log level prints them.
#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log of this process, which begins at the first use.
fn log() -> &'static LogBuffer {
    static LOG: OnceLock<LogBuffer> = OnceLock::new();
    LOG.get_or_init(|| {
        let log = LogBuffer::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
            .with_span_events(FmtSpan::FULL)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
        log
    })
}

/// A host whose requests and output are recorded.
struct Watched {
    server: OAuthServer,
    proxy: RecordingProxy,
    store: ObservedStore,
    oauth: OAuth,
    host: Host,
    /// What a program could show.
    shown: String,
}

impl Watched {
    async fn new(
        options: OAuthServerOptions,
        settings: impl FnOnce(&OAuthServer) -> Value,
    ) -> Self {
        log();
        let server = OAuthServer::start(options).await;
        let proxy = RecordingProxy::start(&server.mcp_url).await;
        let store = ObservedStore::default();
        let oauth = oauth(store.clone());
        let builder = builder(&server.mcp_url, &json!({ "oauth": settings(&server) }));
        let builder = builder.oauth(oauth.clone()).http_options(proxy.http_options());
        let host = builder.start().await.unwrap();
        Self { server, proxy, store, oauth, host, shown: String::new() }
    }

    fn show(&mut self, value: &impl std::fmt::Debug) {
        self.shown.push_str(&format!("{value:?}\n"));
    }

    /// Calls a tool, and shows the outcome as programs do.
    async fn call(&mut self, tool: &str) {
        let result = call(&self.host, tool).await;
        if let Err(error) = &result {
            self.shown.push_str(&error.text_for_model());
        }
        self.show(&result);
        self.show(&self.host.status());
        self.show(&last_error(&self.host));
    }

    async fn log_in(&mut self) {
        let outcome = log_in(&self.host).await;
        self.show(&outcome);
        self.show(&self.oauth.clone());
        let status = self.host.login_status("docs").await;
        self.show(&status);
    }

    /// Checks that what was shown and logged contains none of the secrets, which include these kinds.
    async fn check(self, kinds: &[&str]) {
        within(self.host.shutdown()).await;
        let mut secrets = self.proxy.secrets();
        let found: BTreeSet<_> = secrets.keys().copied().collect();
        for kind in kinds {
            assert!(found.contains(kind), "no {kind} was sent, only {found:?}");
        }
        for credential in self.store.written() {
            let keys =
                [&credential["dpopKey"], &credential["refreshToken"], &credential["accessToken"]];
            let texts = keys.into_iter().filter_map(|it| it.as_str()).map(str::to_owned);
            secrets.entry("stored").or_default().extend(texts);
        }
        let log = String::from_utf8_lossy(&log().0.lock().unwrap()).into_owned();
        assert!(log.contains("trunkline"), "events are recorded: {log}");
        for (kind, values) in secrets {
            for value in values {
                assert!(value.len() > 8, "{kind}: {value}");
                for (place, text) in [("the log", &log), ("what was shown", &self.shown)] {
                    let line = text.lines().find(|line| line.contains(&value));
                    assert!(line.is_none(), "{kind} in {place}: {line:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn login_refresh_step_up_and_logout_show_no_secret() {
    let mut watched = Watched::new(OAuthServerOptions::new(), |_| json!({})).await;
    watched.call("echo").await;
    watched.log_in().await;
    watched.call("echo").await;
    watched.server.revoke_access_tokens().await;
    watched.call("echo").await;
    assert_eq!(refreshes(&watched.server).await, 1);
    watched.call("write").await;
    watched.log_in().await;
    watched.call("write").await;

    // Failures of all kinds, with and without a description.
    for fault in [Fault::status(500), Fault::close(), Fault::error("invalid_grant")] {
        watched.server.revoke_access_tokens().await;
        watched.server.add_fault(fault.for_grant_type("refresh_token")).await;
        watched.call("echo").await;
    }
    watched.log_in().await;
    watched.call("echo").await;
    let outcome = within(watched.host.logout("docs")).await;
    watched.show(&outcome);
    watched.server.deny_authorization().await;
    watched.log_in().await;
    watched.call("echo").await;
    let kinds =
        ["code", "code_verifier", "access_token", "refresh_token", "token", "authorization"];
    watched.check(&kinds).await;
}

#[tokio::test]
async fn login_that_is_under_way_shows_no_secret() {
    let mut watched = Watched::new(OAuthServerOptions::new(), |_| json!({})).await;
    let request = LoginRequest::default().redirect_uri("http://127.0.0.1:41999/callback");
    let login = within(watched.host.begin_login("docs", request)).await.unwrap();
    watched.show(&login);
    let callback = trunkline_testkit::browser::open(login.url().as_str()).await;
    let finished = within(login.finish(&callback.parse().unwrap())).await;
    watched.show(&finished);

    let request = LoginRequest::default();
    let login = within(watched.host.begin_device_login("docs", request)).await.unwrap();
    watched.show(&login);
    watched.server.approve_device(login.user_code()).await;
    let pass = pass_time(Duration::from_secs(2));
    let (finished, ()) = within(async { tokio::join!(login.finish(), pass) }).await;
    finished.as_ref().unwrap();
    watched.show(&finished);
    watched.call("echo").await;
    watched.check(&["device_code", "code_verifier", "access_token"]).await;
}

#[tokio::test]
async fn proofs_and_their_keys_are_not_shown() {
    let options = OAuthServerOptions::new().with_dpop(DpopMode::Nonce);
    let mut watched = Watched::new(options, |_| json!({})).await;
    watched.log_in().await;
    watched.call("echo").await;
    watched.server.change_dpop_nonce().await;
    watched.call("echo").await;
    watched.server.revoke_access_tokens().await;
    watched.call("echo").await;
    assert!(watched.store.written().iter().all(|login| login["dpopKey"].is_string()));
    watched.check(&["dpop", "authorization", "refresh_token"]).await;
}

#[tokio::test]
async fn secrets_of_clients_are_not_shown() {
    for grant in ["client-credentials", "authorization-code"] {
        let settings = |server: &OAuthServer| {
            let client = &server.clients.confidential;
            json!({
                "grant": grant,
                "clientId": client.client_id,
                "clientSecret": client.client_secret,
            })
        };
        let mut watched = Watched::new(OAuthServerOptions::new(), settings).await;
        watched.log_in().await;
        whoami(&watched.host).await;
        watched.call("write").await;
        watched.server.revoke_access_tokens().await;
        watched.call("echo").await;
        let secret = watched.server.clients.confidential.client_secret.clone().unwrap();
        assert!(!watched.shown.contains(&secret), "{}", watched.shown);
        let logged = String::from_utf8_lossy(&log().0.lock().unwrap()).contains(&secret);
        assert!(!logged);
        watched.check(&["authorization", "access_token"]).await;
    }
}

#[tokio::test]
async fn private_key_of_a_client_is_not_shown() {
    let settings = |server: &OAuthServer| {
        let client = &server.clients.key;
        json!({
            "grant": "client-credentials",
            "clientId": client.client_id,
            "privateKey": client.private_key_pem,
        })
    };
    let mut watched = Watched::new(OAuthServerOptions::new(), settings).await;
    watched.call("whoami").await;
    watched.call("write").await;
    let key = watched.server.clients.key.private_key_pem.clone().unwrap();
    let line = key.lines().nth(1).unwrap();
    assert!(!watched.shown.contains(line), "{}", watched.shown);
    assert!(!String::from_utf8_lossy(&log().0.lock().unwrap()).contains(line));
    watched.check(&["client_assertion", "authorization"]).await;
}
