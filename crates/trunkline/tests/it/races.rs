//! What overtakes what: calls that are dropped early, changes without end, processes that run away.

use std::path::Path;
use std::time::Instant;

use futures_util::FutureExt as _;
use serde_json::json;
use trunkline::item::Kind;

use crate::lively::{Folder, call, params, within};

/// A server that announces a change with every list is not asked for ever, and nobody waits for ever.
#[tokio::test]
async fn changes_without_end_end() {
    let folder = Folder::new();
    folder.write("noisy", "");
    let connection = folder.connection("legacy", &json!({}));
    let begin = Instant::now();
    for _ in 0..20 {
        within(connection.fresh_list(Kind::Tool)).await.unwrap();
    }
    assert_eq!(call(&connection, "started").await, "1");
    let most = 25 + usize::try_from(begin.elapsed().as_secs()).unwrap();
    assert!(folder.asked("tools/list") <= most, "{} lists", folder.asked("tools/list"));
    within(connection.close()).await;
}

/// CON-13: a call that was dropped before its server was ready is not made.
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

/// CON-13: a call that is dropped as soon as it was made is not made, or is cancelled.
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

/// CON-10: a process that begins a session of its own, and ignores everything, is ended as well.
#[cfg(target_os = "linux")]
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
