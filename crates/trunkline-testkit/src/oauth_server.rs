//! Runs an OAuth authorization server and an MCP server that it protects, controlled by tests.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use trunkline_testkit::browser;
//! use trunkline_testkit::oauth_server::{Fault, OAuthServer, OAuthServerOptions};
//!
//! # async fn test(authorization_url: &str) {
//! let options = OAuthServerOptions::new().with_access_token_lifetime(Duration::from_secs(60));
//! let server = OAuthServer::start(options).await;
//! // Connect to `server.mcp_url`; it answers with a challenge. Then log in:
//! let callback = browser::open(authorization_url).await;
//! // Let the tokens expire, and the next refresh fail:
//! server.set_clock_offset(61).await;
//! server.add_fault(Fault::status(500).for_grant_type("refresh_token")).await;
//! assert_eq!(server.statistics().await.grants("refresh_token"), 1);
//! # }
//! ```

mod misbehaviour;
mod options;
mod fault;
mod statistics;

use std::process::Stdio;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::{browser, peers};
pub use fault::Fault;
pub use misbehaviour::Misbehaviour;
pub use options::{DpopMode, OAuthServerOptions};
pub use statistics::{OAuthStatistics, RecordedRequest};

/// Time limit for the start: Node.js starts slowly during a build.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Size limit of responses of the control API.
const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// A running authorization server and MCP server, killed on drop.
///
/// The MCP server has the tools `whoami`, `echo` and `write`. All need the scope `read`, except
/// `write`, which needs the scope `write`. The user approves everything at once.
pub struct OAuthServer {
    /// The address of the MCP server, which is also the resource indicator.
    pub mcp_url: String,
    /// The issuer of the authorization server.
    pub issuer: String,
    /// The clients that need no registration.
    pub clients: RegisteredClients,
    control_url: String,
    process: Child,
}

/// The clients that need no registration. They accept the redirect paths `/`, `/callback` and
/// `/oauth/callback` on `127.0.0.1`, `localhost` and `[::1]`, with any port.
#[derive(Debug, Clone, Deserialize)]
pub struct RegisteredClients {
    /// A public client, also for the device flow.
    pub public: ClientCredential,
    /// A client with a secret in the header, also for client credentials.
    pub confidential: ClientCredential,
    /// A client with a secret in the body, also for client credentials.
    pub post: ClientCredential,
    /// A client for client credentials that signs assertions.
    pub key: ClientCredential,
    /// A client whose identifier is the address of a metadata document.
    pub metadata_document: ClientCredential,
}

/// The credential of a registered client.
#[derive(Debug, Clone, Deserialize)]
pub struct ClientCredential {
    /// The client identifier.
    pub client_id: String,
    /// The secret, if it has one.
    pub client_secret: Option<String>,
    /// The private key in PKCS#8, if it has one.
    pub private_key_pem: Option<String>,
    /// The algorithm of the key, such as `ES256`.
    pub signing_algorithm: Option<String>,
}

/// The line that the script prints when it is ready.
#[derive(Deserialize)]
struct ReadyLine {
    mcp_url: String,
    issuer: String,
    control_url: String,
    clients: RegisteredClients,
}

impl OAuthServer {
    /// Starts both servers on free loopback ports.
    ///
    /// # Panics
    ///
    /// When the peers are not installed, or the servers do not start.
    pub async fn start(options: OAuthServerOptions) -> Self {
        let mut command = Command::new(peers::conformance_node());
        command.arg(peers::oauth_server()).args(options.flags());
        command.env("NODE_PATH", peers::node_modules()).kill_on_drop(true);
        // The script ends with its input, even if this process is killed.
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("Node.js can be run");
        let output = process.stdout.take().expect("invariant: its output is a pipe");
        let mut line = String::new();
        let mut reader = BufReader::new(output);
        let read = timeout(START_TIMEOUT, reader.read_line(&mut line)).await;
        read.expect("the OAuth server starts in time").expect("its output can be read");
        let ready: ReadyLine = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("the OAuth server printed {line:?}: {error}"));
        let ReadyLine { mcp_url, issuer, control_url, clients } = ready;
        Self { mcp_url, issuer, clients, control_url, process }
    }

    /// The requests since the start, or since [`Self::reset`].
    pub async fn statistics(&self) -> OAuthStatistics {
        let statistics = self.control(Method::GET, "/stats", &Value::Null).await;
        serde_json::from_value(statistics).expect("the statistics have the expected form")
    }

    /// Changes the lifetime of access tokens issued from now on.
    pub async fn set_access_token_lifetime(&self, lifetime: Duration) {
        self.change_settings(json!({ "access_token_lifetime": lifetime.as_secs() })).await;
    }

    /// Changes the lifetime that token responses state, without changing the lifetime itself.
    /// `None` leaves it out.
    pub async fn set_stated_lifetime(&self, lifetime: Option<Duration>) {
        let stated = lifetime.map_or(json!("omit"), |lifetime| json!(lifetime.as_secs()));
        self.change_settings(json!({ "stated_lifetime": stated })).await;
    }

    /// Lets the user deny authorization requests from now on.
    pub async fn deny_authorization(&self) {
        self.change_settings(json!({ "user": "deny" })).await;
    }

    /// Replaces the misbehaviours.
    pub async fn set_misbehaviours(&self, misbehaviours: &[Misbehaviour]) {
        self.change_settings(json!({ "misbehaviours": misbehaviours })).await;
    }

    async fn change_settings(&self, changes: Value) {
        self.post("/settings", changes).await;
    }

    /// Lets requests fail.
    pub async fn add_fault(&self, fault: Fault) {
        let fault = serde_json::to_value(fault).expect("invariant: a fault is JSON");
        self.post("/faults", fault).await;
    }

    /// Revokes all access tokens. Refresh tokens stay valid.
    pub async fn revoke_access_tokens(&self) {
        self.post("/revoke", json!({ "tokens": "access" })).await;
    }

    /// Revokes all refresh tokens. Access tokens stay valid.
    pub async fn revoke_refresh_tokens(&self) {
        self.post("/revoke", json!({ "tokens": "refresh" })).await;
    }

    /// Revokes all tokens and grants.
    pub async fn revoke_all_tokens(&self) {
        self.post("/revoke", json!({ "tokens": "all" })).await;
    }

    /// Marks all refresh tokens as used, as if another process had refreshed: the next refresh with
    /// one of them counts as reuse and ends the login.
    pub async fn use_up_refresh_tokens(&self) {
        self.post("/rotate", json!({})).await;
    }

    /// Forgets all clients that registered themselves.
    pub async fn forget_clients(&self) {
        self.post("/forget-clients", json!({})).await;
    }

    /// Sets the clock of both servers ahead of that of the machine, or behind it.
    pub async fn set_clock_offset(&self, seconds: i64) {
        self.post("/clock", json!({ "offset_seconds": seconds })).await;
    }

    /// Changes the DPoP nonce that the MCP server asks for.
    pub async fn change_dpop_nonce(&self) {
        self.post("/nonce", json!({})).await;
    }

    /// Adds a client metadata document. Its member `client_id` is its address.
    pub async fn add_client_metadata(&self, document: Value) {
        self.post("/client-metadata", document).await;
    }

    /// Approves the device code with this user code.
    pub async fn approve_device(&self, user_code: &str) {
        self.post("/device", json!({ "user_code": user_code, "answer": "approve" })).await;
    }

    /// Denies the device code with this user code.
    pub async fn deny_device(&self, user_code: &str) {
        self.post("/device", json!({ "user_code": user_code, "answer": "deny" })).await;
    }

    /// Approves all pending device codes, and returns their number.
    pub async fn approve_pending_devices(&self) -> u64 {
        let answer = self.post("/device", json!({ "answer": "approve" })).await;
        answer["answered"].as_u64().unwrap_or_default()
    }

    /// Puts another authorization server in charge of the MCP server, which refuses all tokens of
    /// the previous one. Returns its issuer; [`Self::issuer`] stays as it is.
    pub async fn migrate(&self) -> String {
        let answer = self.post("/migrate", json!({})).await;
        answer["issuer"].as_str().expect("the answer names an issuer").to_owned()
    }

    /// Restores the state after the start: settings, clock, statistics, faults, and no tokens or
    /// registered clients.
    pub async fn reset(&self) {
        self.post("/reset", json!({})).await;
    }

    /// Stops both servers, so that connections to them are refused.
    pub async fn stop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill().await;
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.control(Method::POST, path, &body).await
    }

    async fn control(&self, method: Method, path: &str, body: &Value) -> Value {
        let url = format!("{}{path}", self.control_url);
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let response = browser::request(method, &url, body).await;
        let status = response.status();
        let read = to_bytes(response.into_body(), MAX_RESPONSE_BYTES).await;
        let bytes = read.expect("the control API answers");
        let text = String::from_utf8_lossy(&bytes);
        assert!(status.is_success(), "{path}: {text}");
        serde_json::from_str(&text).expect("the control API answers with JSON")
    }
}
