//! CON-12: headers that a program prints (`headersCommand`).

use std::fs;
use std::time::Duration;

use serde_json::json;
use trunkline::Host;
use trunkline::error::{Error, ErrorKind};
use trunkline::secrets::MemoryStore;
use trunkline_testkit::oauth_server::{OAuthServer, OAuthServerOptions};

use crate::support::file_driven_server::{Folder, pass_time, poll_until, within};
use crate::support::oauth_host::{
    builder, call, host, last_error, log_in, oauth, successful_calls, whoami,
};
use crate::support::secret_stores::credential;

/// A value in the output of programs that no message may contain.
const CANARY: &str = "hunter2-canary";

/// A host whose server has the headers that a shell script prints. The script runs in the folder.
async fn host_of(server: &OAuthServer, folder: &Folder, script: &str) -> Host {
    let path = folder.path().display();
    let script = format!("cd {path}; echo run >> runs; {script}");
    let entry = json!({ "headersCommand": ["/bin/sh", "-c", script] });
    builder(&server.mcp_url, &entry).start().await.unwrap()
}

/// Writes a token that the server accepts into the folder.
async fn write_headers(server: &OAuthServer, folder: &Folder) {
    let store = MemoryStore::default();
    let other = host(server, oauth(store.clone())).await;
    log_in(&other).await.unwrap();
    within(other.shutdown()).await;
    let token = credential(&store)["accessToken"].as_str().unwrap().to_owned();
    let headers = json!({ "Authorization": format!("Bearer {token}"), "X-Tenant": "a" });
    folder.write("headers", &headers.to_string());
}

/// The error of a host whose program does not print headers.
async fn failure(host: &Host) -> Error {
    call(host, "echo").await.unwrap_err();
    let error = last_error(host).unwrap();
    assert!(!format!("{error:?}").contains(CANARY), "{error:?}");
    assert!(error.to_string().contains("`headersCommand`"), "{error}");
    assert!(error.hint().is_some(), "{error}");
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn program_runs_once_and_again_when_its_headers_are_refused() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let folder = Folder::new();
    write_headers(&server, &folder).await;
    let host = host_of(&server, &folder, "cat headers").await;
    successful_calls(&host, 50).await;
    assert_eq!(folder.lines("runs"), 1);
    let first = whoami(&host).await;

    server.revoke_access_tokens().await;
    write_headers(&server, &folder).await;
    // A request of the host itself may have been refused, and have run it, before.
    let before = folder.lines("runs");
    successful_calls(&host, 50).await;
    assert!(folder.lines("runs") - before <= 1);
    assert_ne!(whoami(&host).await["token_id"], first["token_id"]);
    let error = log_in(&host).await.unwrap_err();
    assert!(error.message().contains("`headersCommand`"), "{error}");
    within(host.shutdown()).await;
}

#[tokio::test]
async fn refused_headers_that_stay_the_same_are_an_error() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let folder = Folder::new();
    let script = format!(r#"echo '{{"Authorization": "Bearer {CANARY}"}}'"#);
    let host = host_of(&server, &folder, &script).await;
    call(&host, "echo").await.unwrap_err();
    let error = last_error(&host).unwrap();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert!(!format!("{error:?}").contains(CANARY), "{error:?}");
    assert_eq!(folder.lines("runs"), 2);
    within(host.shutdown()).await;
}

#[tokio::test]
async fn output_that_is_no_headers_is_an_error_that_does_not_quote_it() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    for (script, message) in [
        (format!("echo {CANARY}"), "not a JSON object of headers"),
        (format!("echo '[\"{CANARY}\"]'"), "not a JSON object of headers"),
        (format!(r#"echo '{{"Authorization": ["{CANARY}"]}}'"#), "not a JSON object of headers"),
        (format!(r#"echo '{{"bad name": "{CANARY}"}}'"#), "not a JSON object of headers"),
        (format!(r#"echo '{{"host": "{CANARY}"}}'"#), "prints the header `host`"),
        (format!("echo {CANARY}; echo {CANARY} >&2; exit 1"), "exit status: 1"),
        (
            format!("while :; do echo {CANARY}; done | head -c 1000000"),
            "printed more than 65536 bytes",
        ),
        ("true".to_owned(), "not a JSON object of headers"),
    ] {
        let folder = Folder::new();
        let host = host_of(&server, &folder, &script).await;
        let error = failure(&host).await;
        assert!(error.message().contains(message), "{script}: {error}");
        within(host.shutdown()).await;
    }
    assert_eq!(server.statistics().await.count("mcp"), 0);
}

/// The value of a header cannot be sent, and is not shown.
#[tokio::test]
async fn value_that_cannot_be_sent_is_not_shown() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let folder = Folder::new();
    folder.write("headers", &json!({ "X-Key": format!("{CANARY}\n") }).to_string());
    let host = host_of(&server, &folder, "cat headers").await;
    call(&host, "echo").await.unwrap_err();
    let error = last_error(&host).unwrap();
    assert!(error.message().contains("`x-key`"), "{error}");
    assert!(!format!("{error:?}").contains(CANARY), "{error:?}");
    within(host.shutdown()).await;
}

#[cfg_attr(not(target_os = "linux"), ignore = "looks into /proc")]
#[tokio::test]
async fn program_that_hangs_is_ended_with_its_children() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let folder = Folder::new();
    // A shell that waits for a child, as scripts do.
    let host =
        host_of(&server, &folder, "sleep 600 & echo $! > child; echo $$ > shell; wait").await;
    let pass = async {
        poll_until(async || folder.lines("shell") == 1).await;
        pass_time(Duration::from_secs(11)).await;
    };
    let (error, ()) = tokio::join!(failure(&host), pass);
    assert!(error.message().contains("did not end within 10 s"), "{error}");
    for name in ["child", "shell"] {
        let process = fs::read_to_string(folder.path().join(name)).unwrap();
        let directory = format!("/proc/{}", process.trim());
        poll_until(async || !fs::exists(&directory).unwrap()).await;
    }
    within(host.shutdown()).await;
}
