//! CON-12: tokens are renewed once, however many calls, hosts and processes need them.

use std::env;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use trunkline::Host;
use trunkline::secrets::MemoryStore;
use trunkline_testkit::oauth_server::{Fault, OAuthServer, OAuthServerOptions};

use crate::support::file_driven_server::{Folder, within};
use crate::support::oauth_host::{
    builder, call, calls, host, log_in, oauth, refreshes, successful_calls, whoami,
};
use crate::support::secret_stores::{FileStore, ObservedStore, change_credential, credential};

const HOUR: Duration = Duration::from_secs(3600);

/// Brings a connected host to the moment at which its token is due for renewal, without waiting: the
/// tokens that it receives meanwhile state a lifetime of ten seconds.
async fn let_token_expire(server: &OAuthServer, host: &Host) {
    server.set_stated_lifetime(Some(Duration::from_secs(10))).await;
    server.revoke_access_tokens().await;
    call(host, "echo").await.unwrap();
    server.set_stated_lifetime(Some(HOUR)).await;
}

#[tokio::test]
async fn valid_token_is_used_without_reading_the_store() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let store = ObservedStore::default();
    let host = host(&server, oauth(store.clone())).await;
    log_in(&host).await.unwrap();
    call(&host, "echo").await.unwrap();
    let reads = store.reads();
    successful_calls(&host, 50).await;
    assert_eq!(store.reads(), reads);
    assert_eq!(refreshes(&server).await, 0);
    within(host.shutdown()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_calls_at_expiry_refresh_once() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let host = host(&server, oauth(MemoryStore::default())).await;
    log_in(&host).await.unwrap();
    let_token_expire(&server, &host).await;
    let before = refreshes(&server).await;
    successful_calls(&host, 50).await;
    assert_eq!(refreshes(&server).await, before + 1);
    assert_eq!(server.statistics().await.refresh_token_reuses, 0);
    within(host.shutdown()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_calls_with_a_revoked_token_refresh_once() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let host = host(&server, oauth(MemoryStore::default())).await;
    log_in(&host).await.unwrap();
    let first = whoami(&host).await;
    server.revoke_access_tokens().await;
    successful_calls(&host, 50).await;
    assert_eq!(refreshes(&server).await, 1);
    assert_ne!(whoami(&host).await["token_id"], first["token_id"]);
    assert_eq!(server.statistics().await.refresh_token_reuses, 0);
    within(host.shutdown()).await;
}

/// A failure is that of all calls that waited for it: each would otherwise try for itself, one after
/// the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_calls_share_a_refresh_that_fails() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let host = host(&server, oauth(MemoryStore::default())).await;
    log_in(&host).await.unwrap();
    call(&host, "echo").await.unwrap();
    server.revoke_access_tokens().await;
    // Slow, so that all of them have been refused when the refresh ends.
    let seconds = Duration::from_secs(2);
    server.add_fault(Fault::slow(seconds).for_grant_type("refresh_token")).await;
    server.use_up_refresh_tokens().await;
    for result in calls(&host, 50).await {
        result.unwrap_err();
    }
    assert_eq!(refreshes(&server).await, 1);
    within(host.shutdown()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hosts_with_one_store_refresh_once() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let store = MemoryStore::default();
    let one = host(&server, oauth(store.clone())).await;
    log_in(&one).await.unwrap();
    let other = host(&server, oauth(store.clone())).await;
    call(&one, "echo").await.unwrap();
    call(&other, "echo").await.unwrap();

    server.revoke_access_tokens().await;
    tokio::join!(successful_calls(&one, 25), successful_calls(&other, 25));
    assert_eq!(refreshes(&server).await, 1);

    // The token in the memory of one has expired, and that of the other is revoked.
    let_token_expire(&server, &one).await;
    let before = refreshes(&server).await;
    tokio::join!(successful_calls(&one, 25), successful_calls(&other, 25));
    assert_eq!(refreshes(&server).await, before + 1);
    assert_eq!(whoami(&one).await["token_id"], whoami(&other).await["token_id"]);
    assert_eq!(server.statistics().await.refresh_token_reuses, 0);
    within(one.shutdown()).await;
    within(other.shutdown()).await;
}

/// A login is seen by hosts that have already found that there is none.
#[tokio::test]
async fn login_of_another_host_is_adopted() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let store = MemoryStore::default();
    let one = host(&server, oauth(store.clone())).await;
    let other = host(&server, oauth(store.clone())).await;
    call(&other, "whoami").await.unwrap_err();
    log_in(&one).await.unwrap();
    assert_eq!(whoami(&one).await["token_id"], whoami(&other).await["token_id"]);
    within(one.shutdown()).await;
    within(other.shutdown()).await;
}

/// The variables of the process that [`calls_of_a_process`] runs in.
const URL_VARIABLE: &str = "TRUNKLINE_TEST_OAUTH_URL";
const STORE_VARIABLE: &str = "TRUNKLINE_TEST_OAUTH_STORE";

/// A process with a host of its own, which calls on command.
struct CallingProcess {
    _process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl CallingProcess {
    fn start(server: &OAuthServer, folder: &Folder) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "--nocapture", "oauth_refresh::calls_of_a_process"]);
        command.env(URL_VARIABLE, &server.mcp_url).env(STORE_VARIABLE, folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { _process: process, input, output }
    }

    /// Lets it make its calls, and returns the number of those that succeeded.
    async fn successes(&mut self) -> usize {
        self.input.write_all(b"call\n").await.unwrap();
        loop {
            let line = within(self.output.next_line()).await.unwrap().unwrap();
            if let Some((_, count)) = line.split_once("successes: ") {
                return count.parse().unwrap();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "part of `two_processes_refresh_once`, which runs it in processes of their own"]
async fn calls_of_a_process() {
    let url = env::var(URL_VARIABLE).unwrap();
    let store = FileStore::new(env::var_os(STORE_VARIABLE).unwrap());
    let host = builder(&url, &json!({})).oauth(oauth(store)).start().await.unwrap();
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    while commands.next_line().await.unwrap().is_some() {
        let results = calls(&host, 25).await;
        println!("successes: {}", results.iter().filter(|result| result.is_ok()).count());
    }
    within(host.shutdown()).await;
}

#[tokio::test]
async fn two_processes_refresh_once() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let folder = Folder::new();
    let host = host(&server, oauth(FileStore::new(folder.path()))).await;
    log_in(&host).await.unwrap();
    let store = FileStore::new(folder.path());
    change_credential(&store, |credential| credential["expiresAt"] = 1.into());

    let (mut one, mut other) =
        (CallingProcess::start(&server, &folder), CallingProcess::start(&server, &folder));
    // The stored token has expired.
    assert_eq!(tokio::join!(one.successes(), other.successes()), (25, 25));
    assert_eq!(refreshes(&server).await, 1);
    // The token in the memory of both is revoked.
    server.revoke_access_tokens().await;
    assert_eq!(tokio::join!(one.successes(), other.successes()), (25, 25));
    let statistics = server.statistics().await;
    assert_eq!((refreshes(&server).await, statistics.refresh_token_reuses), (2, 0));

    // This process has the token of the login in memory, and adopts that of the others.
    call(&host, "echo").await.unwrap();
    assert_eq!(refreshes(&server).await, 2);
    assert!(credential(&store)["refreshToken"].is_string());
    within(host.shutdown()).await;
}

/// The tokens of a server are those of all its connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_with_one_address_share_their_login() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let store = Arc::new(ObservedStore::default());
    let entry = json!({ "type": "http", "url": server.mcp_url });
    let text = json!({ "mcpServers": { "docs": entry, "copy": entry } }).to_string();
    let builder = Host::builder().config_text("mcp.json", text);
    let host = builder.oauth(oauth(ObservedStore::clone(&store))).start().await.unwrap();
    log_in(&host).await.unwrap();
    let copy = async || {
        let call = host.call_tool("copy_echo", json!({ "text": "x" }));
        within(call.into_future()).await.unwrap()
    };
    copy().await;
    call(&host, "echo").await.unwrap();
    server.revoke_access_tokens().await;
    let copies = futures_util::future::join_all((0..25).map(|_| copy()));
    tokio::join!(successful_calls(&host, 25), copies);
    assert_eq!(refreshes(&server).await, 1);
    within(host.shutdown()).await;
}
