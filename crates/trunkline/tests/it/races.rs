//! Races: calls dropped early, endless changes, processes that escape.

use std::path::Path;
use std::time::Instant;

use futures_util::FutureExt as _;
use serde_json::json;
use trunkline::connection::{OutgoingRequest, State};
use trunkline::error::ErrorKind;
use trunkline::item::ItemKind;
use trunkline::registry::Registry;

use crate::support::file_driven_server::{
    Attentive, Folder, call, config, converse, options, params, poll_until, until_state, within,
};

/// A server that announces a change with every list is not listed for ever, and no caller waits for
/// ever.
#[tokio::test]
async fn changes_without_end_end() {
    let folder = Folder::new();
    folder.write("noisy", "");
    let connection = folder.connection("legacy", &json!({}));
    let begin = Instant::now();
    for _ in 0..20 {
        within(connection.list_fresh(ItemKind::Tool)).await.unwrap();
    }
    assert_eq!(call(&connection, "started").await, "1");
    let most = 25 + usize::try_from(begin.elapsed().as_secs()).unwrap();
    assert!(folder.asked("tools/list") <= most, "{} lists", folder.asked("tools/list"));
    within(connection.close()).await;
}

/// CON-13: a call that is dropped before its server is ready is not sent.
#[tokio::test]
async fn a_call_that_is_dropped_during_the_start_is_not_made() {
    let folder = Folder::new();
    folder.write("slow", "");
    let connection = folder.connection("legacy", &json!({}));
    let waiting = connection.request("tools/call", params("wait", &json!({})));
    assert!(waiting.now_or_never().is_none());
    assert_eq!(call(&connection, "started").await, "1");
    assert_eq!(folder.called("wait"), 0);
    within(connection.close()).await;
}

/// CON-13: a call that is dropped at once is either not sent or cancelled.
#[tokio::test]
async fn a_call_that_is_dropped_at_once_is_cancelled() {
    let folder = Folder::new();
    let connection = folder.connection("legacy", &json!({}));
    within(connection.connect()).await.unwrap();
    for _ in 0..100 {
        let waiting = connection.request("tools/call", params("wait", &json!({})));
        assert!(waiting.now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    assert_eq!(call(&connection, "started").await, "1");
    assert_eq!(folder.asked("notifications/cancelled"), folder.called("wait"));
    within(connection.close()).await;
}

/// CON-10: a process that starts its own session and ignores signals is ended as well.
#[cfg_attr(not(target_os = "linux"), ignore = "needs /proc")]
#[tokio::test]
async fn a_process_that_leaves_its_group_is_ended() {
    let folder = Folder::new();
    folder.write("loner", "");
    let connection = folder.connection("legacy", &json!({}));
    within(connection.connect()).await.unwrap();
    let process = format!("/proc/{}", connection.status().process_id.unwrap());
    assert!(Path::new(&process).exists());
    within(connection.close()).await;
    assert!(!Path::new(&process).exists());
}

/// A server that closes its stdin counts as ended: calls do not wait.
#[tokio::test]
async fn server_with_closed_stdin_is_distinguished_from_a_slow_one() {
    let folder = Folder::new();
    let connection = folder.connection("legacy", &json!({}));
    within(connection.connect()).await.unwrap();
    let deaf = connection.request("tools/call", params("deaf", &json!({})));
    let (first, second) = within(async {
        tokio::join!(deaf, async {
            poll_until(async || folder.lines("deafened") > 0).await;
            connection.request("tools/call", params("started", &json!({}))).await
        })
    })
    .await;
    for answer in [first, second] {
        let error = answer.unwrap_err();
        assert!(error.to_string().contains("it closed its input"), "{error}");
    }
    within(connection.close()).await;
}

/// CON-6: a process can log and save its state during shutdown.
#[tokio::test]
async fn output_during_shutdown_is_read() {
    let folder = Folder::new();
    folder.write("polite", "");
    let connection = folder.connection("legacy", &json!({ "timeouts": { "shutdown": "20s" } }));
    within(connection.connect()).await.unwrap();
    within(connection.close()).await;
    assert_eq!(folder.lines("saved"), 1);
    assert_eq!(connection.status().stderr, ["saving"]);
}

/// SEC-2: error messages of a server are shown shortened, on one line, and without its secrets.
#[tokio::test]
async fn errors_of_servers_do_not_tell_secrets() {
    let folder = Folder::new();
    folder.write("telling", "");
    let connection = folder.connection("legacy", &json!({ "env": { "TOKEN": "sk-very-secret" } }));
    let error = within(connection.connect()).await.unwrap_err().to_string();
    assert!(error.contains("it refused to be initialised: bad token"), "{error}");
    assert!(!error.contains("secret") && !error.contains(['\n', '\u{1b}']), "{error}");
    assert!(error.len() < 600, "{error}");
}

/// CON-4: the status of a server that failed to start has the reason, with its stderr.
#[tokio::test]
async fn failed_pinned_server_reports_the_reason() {
    let folder = Folder::new();
    folder.write("dying", "");
    let connection = folder.connection("modern", &json!({ "protocol": "2026-07-28" }));
    let error = within(connection.connect()).await.unwrap_err();
    assert_eq!((error.kind(), error.hint()), (ErrorKind::Exited, Some("it said: cannot go on")));
    assert_eq!(connection.status().stderr, ["cannot go on"]);
}

/// A per-request timeout covers the whole call: start, pauses and rounds included.
#[tokio::test]
async fn an_own_timeout_includes_the_start() {
    let folder = Folder::new();
    folder.write("slow", "");
    let connection = folder.connection("legacy", &json!({}));
    let timeout = Some(std::time::Duration::from_millis(50));
    let ask = OutgoingRequest {
        timeout,
        ..OutgoingRequest::new("tools/call", params("started", &json!({})))
    };
    let caller = Attentive::default();
    let error = within(connection.request_with(ask, &caller)).await.unwrap_err();
    assert_eq!(error.failure().unwrap().kind(), ErrorKind::TimedOut);
    assert_ne!(connection.status().state, State::Ready, "it did not wait for the start");
    within(connection.close()).await;
}

/// A list request in flight does not make a server request ambiguous.
#[tokio::test]
async fn a_server_may_ask_while_it_is_listed() {
    let folder = Folder::new();
    let connection = folder.connection("legacy", &json!({ "toolsTtlMs": 0 }));
    within(connection.connect()).await.unwrap();
    let answer = Some(json!({ "action": "decline" }));
    let caller = Attentive { answer, ..Attentive::default() };
    let waiting = connection.request("tools/call", params("wait", &json!({})));
    tokio::select! {
        biased;
        _ = waiting => panic!("nothing answers that"),
        result = converse(&connection, "ask", &caller) => {
            assert!(result.unwrap().text().contains("decline"));
        }
    }
    within(connection.close()).await;
}

/// A closed registry can be used again, and old sets do not affect new ones.
#[tokio::test]
async fn sets_of_before_do_not_harm_those_of_after() {
    let folder = Folder::new();
    let config = config(&json!({ "s": folder.server("legacy", &json!({})) }));
    let registry = Registry::new(options());
    let old = registry.open(&config);
    within(old.connect_all()).await;
    within(registry.close_all()).await;
    let new = registry.open(&config);
    assert_eq!(call(&new.get("s").unwrap(), "started").await, "2");
    within(old.close()).await;
    assert_eq!(call(&new.get("s").unwrap(), "started").await, "2");
    within(new.get("s").unwrap().close()).await;
    let reloaded = within(new.reload(&config)).await;
    assert_eq!(reloaded.kept.len(), 1, "what was closed is started again by its next use");
    assert_eq!(call(&new.get("s").unwrap(), "started").await, "3");
    until_state(&new.get("s").unwrap(), State::Ready).await;
    within(new.close()).await;
}
