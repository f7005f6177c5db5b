//! The life cycle of a connection: restart, idle stop, list changes, server requests, cache.

use std::time::Duration;

use serde_json::json;
use trunkline::connection::{Connection, State};
use trunkline::error::ErrorKind;
use trunkline::item::ItemKind;
use trunkline_testkit::peers;

use crate::support::file_driven_server::{
    Attentive, BUSY_DISK, Folder, call, config, converse, options, params, pass_time,
    pass_time_until_state, poll_until, text_of, tool_names, until, until_state, within,
};

const QUICK_RESTART: &str =
    r#"{ "policy": "on-failure", "limit": 3, "delay": "10ms", "maxDelay": "20ms" }"#;

fn quick_restart() -> serde_json::Value {
    json!({ "restart": serde_json::from_str::<serde_json::Value>(QUICK_RESTART).unwrap() })
}

/// CON-5: with `restart: never` a process that ended stays down until an explicit connect.
#[tokio::test]
async fn a_process_that_ended_stays_down_if_that_is_wanted() {
    let folder = Folder::new();
    let connection = folder.connection("legacy", &json!({ "restart": "never" }));
    assert_eq!(call(&connection, "started").await, "1");
    let died = within(connection.request("tools/call", params("die", &json!({})))).await;
    assert_eq!(died.unwrap_err().failure().unwrap().kind(), ErrorKind::Exited);
    let status = until_state(&connection, State::Failed).await;
    assert_eq!((status.tools, status.process_id, status.next_attempt), (0, None, None));
    let refused = within(connection.request("tools/list", None)).await.unwrap_err();
    assert_eq!(refused.failure().unwrap().kind(), ErrorKind::Exited);
    assert_eq!(folder.starts(), 1);
    within(connection.connect()).await.unwrap();
    assert_eq!(call(&connection, "started").await, "2");
    within(connection.close()).await;
}

/// CON-11: the status is updated before callers receive the error.
#[tokio::test(flavor = "multi_thread")]
async fn status_is_failed_when_a_failed_call_returns() {
    let folder = Folder::new();
    let connection = folder.connection("legacy", &json!({ "restart": "never" }));
    for _ in 0..10 {
        within(connection.connect()).await.unwrap();
        let died = within(connection.request("tools/call", params("die", &json!({})))).await;
        assert_eq!(died.unwrap_err().failure().unwrap().kind(), ErrorKind::Exited);
        let status = connection.status();
        assert_eq!((status.state, status.tools), (State::Failed, 0));
        assert!(!connection.will_recover());
    }
    within(connection.close()).await;
}

/// CON-5: by default a process that ended is restarted, and calls wait for it.
#[tokio::test]
async fn a_process_that_ended_is_started_again_by_default() {
    let folder = Folder::new();
    let connection = folder.connection("legacy", &json!({}));
    assert_eq!(call(&connection, "started").await, "1");
    let died = within(connection.request("tools/call", params("die", &json!({})))).await;
    assert_eq!(died.unwrap_err().failure().unwrap().kind(), ErrorKind::Exited);
    assert!(connection.will_recover());
    assert_eq!(call(&connection, "started").await, "2");
    within(connection.close()).await;
}

/// CON-5: with `restart: on-failure` it is restarted, and calls wait for it.
#[tokio::test]
async fn a_process_that_ended_is_started_again_if_that_is_wanted() {
    let folder = Folder::new();
    let connection = folder.connection("legacy", &quick_restart());
    within(connection.connect()).await.unwrap();
    for starts in 2..=4 {
        let died = within(connection.request("tools/call", params("die", &json!({})))).await;
        assert_eq!(died.unwrap_err().failure().unwrap().kind(), ErrorKind::Exited);
        assert_eq!(call(&connection, "started").await, starts.to_string());
        until_state(&connection, State::Ready).await;
    }
    within(connection.close()).await;
}

/// CON-5: attempts have a limit; then the server stays down, and its status has the reason.
#[tokio::test]
async fn a_process_that_always_ends_is_not_started_for_ever() {
    let folder = Folder::new();
    folder.write("dying", "");
    let connection = folder.connection("legacy", &quick_restart());
    let error = within(connection.connect()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exited);
    let is_over = |status: &trunkline::connection::Status| {
        status.state == State::Failed && status.next_attempt.is_none()
    };
    let status = until(&connection, is_over).await;
    assert_eq!(status.restarts, 3);
    assert!(status.last_error.unwrap().hint().unwrap().contains("cannot go on"));
    // Each attempt starts it twice: the era probe may have ended the first process.
    assert_eq!(folder.starts(), 8);
    let refused = within(connection.request("tools/list", None)).await.unwrap_err();
    assert_eq!(refused.failure().unwrap().kind(), ErrorKind::Exited);
    folder.remove("dying");
    within(connection.connect()).await.unwrap();
    within(connection.close()).await;
}

/// An error in the configuration is not retried.
#[tokio::test]
async fn a_command_that_is_missing_is_not_tried_again() {
    let config = config(&json!({ "s": { "command": "no-such-program", "restart": "on-failure" } }));
    let server = config.server("s").unwrap().clone();
    let connection = Connection::new(server, options());
    let error = within(connection.connect()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommandNotFound);
    assert_eq!(connection.status().next_attempt, None);
}

/// CON-14: an idle server is stopped, keeps its tools, and is restarted by the next call.
#[tokio::test]
async fn an_idle_server_is_stopped_and_woken() {
    let folder = Folder::new();
    let connection = folder.connection("legacy", &json!({ "idleTimeout": "1m" }));
    assert_eq!(call(&connection, "started").await, "1");
    pass_time(Duration::from_secs(50)).await;
    assert_eq!(call(&connection, "started").await, "1");
    pass_time_until_state(&connection, Duration::from_secs(70), State::Idle).await;
    assert_eq!(connection.status().process_id, None);
    assert_eq!(tool_names(&connection).len(), 6);
    within(connection.list_fresh(ItemKind::Tool)).await.unwrap();
    assert_eq!(folder.starts(), 1, "a list that still holds starts no server");
    assert_eq!(call(&connection, "started").await, "2");
    within(connection.close()).await;
}

/// CON-14: a server with a call in flight is not idle.
#[tokio::test]
async fn a_server_that_works_is_not_idle() {
    let folder = Folder::new();
    let more = json!({ "idleTimeout": "100ms", "timeouts": { "call": "1s", "shutdown": "1s" } });
    let connection = folder.connection("legacy", &more);
    within(connection.connect()).await.unwrap();
    let answer = within(connection.request("tools/call", params("wait", &json!({})))).await;
    assert_eq!(answer.unwrap_err().failure().unwrap().kind(), ErrorKind::TimedOut);
    assert_eq!(folder.starts(), 1);
    until_state(&connection, State::Idle).await;
}

/// CON-9: a changed list is requested again, in both eras.
#[tokio::test]
async fn changed_list_is_refreshed() {
    for generation in ["legacy", "modern"] {
        let folder = Folder::new();
        let connection = folder.connection(generation, &json!({}));
        within(connection.connect()).await.unwrap();
        if generation == "modern" {
            poll_until(async || folder.asked("subscriptions/listen") > 0).await;
        }
        let mut notifications = connection.notifications();
        let arguments = json!({ "name": "zebra" });
        let changed = connection.request("tools/call", params("change", &arguments));
        within(changed).await.unwrap();
        // The list may also be refreshed once because the subscription was acknowledged.
        poll_until(async || tool_names(&connection).contains(&"zebra".to_owned())).await;
        loop {
            let told = &within(notifications.recv()).await.unwrap().notification;
            if &*told.method == "notifications/tools/list_changed" {
                break;
            }
        }
        within(connection.close()).await;
    }
}

/// CON-9: a modern server announces changes to subscribers only. A change between its first list
/// and the subscription is found by listing again once the subscription is acknowledged.
#[tokio::test]
async fn a_change_before_the_subscription_is_found() {
    let folder = Folder::new();
    folder.write("unannounced", "zebra");
    let connection = folder.connection("modern", &json!({}));
    within(connection.connect()).await.unwrap();
    let known = connection.tools();
    if !tool_names(&connection).contains(&"zebra".to_owned()) {
        within(connection.list_changed(ItemKind::Tool, &known)).await;
    }
    assert!(tool_names(&connection).contains(&"zebra".to_owned()));
    within(connection.close()).await;
}

/// CON-9: a list is fresh for the TTL of the server, or else the configured one; concurrent
/// refreshes share one request.
#[tokio::test]
async fn stale_list_is_refreshed() {
    let folder = Folder::new();
    let connection = folder.connection("legacy", &json!({ "toolsTtlMs": 0 }));
    within(connection.connect()).await.unwrap();
    assert_eq!(folder.asked("tools/list"), 1);
    folder.write("tools", "zebra");
    let many = (0..20).map(|_| connection.list_fresh(ItemKind::Tool));
    for tools in within(futures_util::future::join_all(many)).await {
        assert!(tools.unwrap().iter().any(|tool| tool.name() == "zebra"));
    }
    let asked = folder.asked("tools/list");
    assert!(asked <= 4, "{asked} lists for one");
    folder.write("ttl", "3600000");
    within(connection.list_fresh(ItemKind::Tool)).await.unwrap();
    let asked = folder.asked("tools/list");
    within(connection.list_fresh(ItemKind::Tool)).await.unwrap();
    assert_eq!(folder.asked("tools/list"), asked, "the server says that it holds");
    within(connection.close()).await;
}

/// CALL-8: a modern server that sends a server request, which its era does not have, gets a
/// response as in the legacy era; before, its call hung until the deadline.
#[tokio::test]
async fn a_request_of_a_server_of_the_newer_era_is_answered() {
    let folder = Folder::new();
    folder.write("requesting", "");
    let connection = folder.connection("modern", &json!({}));
    let answer = json!({ "action": "accept", "content": { "n": 7 } });
    let caller = Attentive { answer: Some(answer.clone()), ..Attentive::default() };
    let result = converse(&connection, "ask", &caller).await.unwrap();
    let said: serde_json::Value = serde_json::from_str(&text_of(&result)).unwrap();
    assert_eq!(said, answer);
    // A request that the caller rejects, or has no handler for, fails at once.
    let refused = converse(&connection, "ask", &Attentive::default()).await.unwrap();
    assert!(text_of(&refused).contains("I do not say"));
    let unattended = call(&connection, "ask").await;
    assert!(unattended.contains("does not offer `elicitation/create`"), "{unattended}");
    within(connection.close()).await;
}

/// Server requests during a call go to the caller, in both eras, and the response goes back.
#[tokio::test]
async fn a_server_asks_its_caller_and_gets_the_answer() {
    for generation in ["legacy", "modern"] {
        let folder = Folder::new();
        let connection = folder.connection(generation, &json!({}));
        let answer = json!({ "action": "accept", "content": { "n": 7 } });
        let caller = Attentive { answer: Some(answer.clone()), ..Attentive::default() };
        let result = converse(&connection, "ask", &caller).await.unwrap();
        let said: serde_json::Value = serde_json::from_str(&text_of(&result)).unwrap();
        assert_eq!(said, answer, "{generation}");
        // A caller that rejects the request does not cause a hang.
        let refused = converse(&connection, "ask", &Attentive::default()).await;
        match generation {
            "legacy" => assert!(text_of(&refused.unwrap()).contains("I do not say")),
            _ => assert_eq!(refused.unwrap_err().refusal().unwrap().message(), "I do not say"),
        }
        within(connection.close()).await;
    }
}

/// A server request that could belong to any of several calls is rejected with the reason.
#[tokio::test]
async fn ambiguous_server_request_is_refused() {
    let folder = Folder::new();
    let connection = folder.connection("legacy", &json!({}));
    within(connection.connect()).await.unwrap();
    let answer = Some(json!({ "action": "decline" }));
    let caller = Attentive { answer, ..Attentive::default() };
    let other = converse(&connection, "wait", &caller);
    let asking = converse(&connection, "ask", &caller);
    tokio::select! {
        biased;
        _ = other => panic!("nothing answers that"),
        result = asking => {
            let text = text_of(&result.unwrap());
            assert!(text.contains("several requests are in flight"), "{text}");
        }
    }
    within(connection.close()).await;
}

/// Progress and log notifications go to the caller, in order, with the caller's token.
#[tokio::test]
async fn progress_goes_to_the_caller() {
    for generation in ["legacy", "modern"] {
        let folder = Folder::new();
        let connection = folder.connection(generation, &json!({}));
        let caller = Attentive::default();
        let meta = json!({ "name": "work", "arguments": {}, "_meta": { "progressToken": "mine" } });
        let ask = trunkline::connection::OutgoingRequest::new(
            "tools/call",
            Some(trunkline::message::Raw::from_value(&meta)),
        );
        let result = within(connection.request_with(ask, &caller)).await.unwrap();
        assert_eq!(text_of(&result), "worked");
        let told = std::mem::take(&mut *caller.told.lock().unwrap());
        let seen: Vec<_> = told
            .iter()
            .map(|told| (&*told.method, told.params.as_ref().unwrap().to_value()))
            .collect();
        let progress = |done| {
            (
                "notifications/progress",
                json!({ "progressToken": "mine", "progress": done, "total": 3 }),
            )
        };
        let log = ("notifications/message", json!({ "level": "info", "data": "worked" }));
        assert_eq!(seen, [progress(1), progress(2), progress(3), log], "{generation}");
        within(connection.close()).await;
    }
}

/// CON-2: the era of a server is cached, so that it is probed once; `protocol` pins it.
#[tokio::test]
async fn era_is_probed_once() {
    let folder = Folder::new();
    let options = options();
    for _ in 0..3 {
        let connection = folder.connection_with(options.clone(), "legacy", &json!({}));
        within(connection.connect()).await.unwrap();
        within(connection.close()).await;
    }
    assert_eq!((folder.asked("server/discover"), folder.asked("initialize")), (1, 3));
    let pinned = folder.connection("legacy", &json!({ "protocol": "legacy" }));
    within(pinned.connect()).await.unwrap();
    assert_eq!(folder.asked("server/discover"), 1);
    let wrong = folder.connection("legacy", &json!({ "protocol": "2026-07-28" }));
    let error = within(wrong.connect()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProtocolViolation);
    assert_eq!(error.hint(), Some("`protocol` says that it does"));
    let wrong = folder.connection("modern", &json!({ "protocol": "legacy" }));
    assert_eq!(within(wrong.connect()).await.unwrap_err().kind(), ErrorKind::ProtocolViolation);
}

/// CON-9: with a cache, the tools of a server are known before it has been started.
#[tokio::test]
async fn tools_are_known_before_the_server_starts() {
    let folder = Folder::new();
    let memory = || options().with_cache_dir(folder.path().join("memory"));
    let first = folder.connection_with(memory(), "legacy", &json!({}));
    assert!(first.tools().is_empty());
    within(first.connect()).await.unwrap();
    within(first.close()).await;
    let second = folder.connection_with(memory(), "legacy", &json!({}));
    assert_eq!((tool_names(&second).len(), second.status().state), (6, State::Idle));
    assert_eq!(folder.starts(), 1, "the first start was not disturbed by the question");
    folder.write("tools", "zebra");
    assert_eq!(within(second.list_fresh(ItemKind::Tool)).await.unwrap().len(), 7);
    assert_eq!((folder.asked("server/discover"), folder.starts()), (1, 2));
    within(second.close()).await;
}

/// CON-9: closing a connection writes its cache, even if the disk is busy: a program that lists the
/// tools and exits finds them on the next run.
#[test]
fn cache_is_written_before_shutdown() {
    let folder = Folder::new();
    let memory = folder.path().join("memory");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    runtime.block_on(async {
        let connection =
            folder.connection_with(options().with_cache_dir(memory.clone()), "legacy", &json!({}));
        // Blocks the only thread that can write.
        let (done, busy) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || busy.recv());
        within(connection.connect()).await.unwrap();
        let later = async {
            tokio::time::sleep(BUSY_DISK).await;
            done.send(()).unwrap();
        };
        within(async { tokio::join!(connection.close(), later) }).await;
    });
    runtime.shutdown_background();
    assert_eq!(std::fs::read_dir(memory).map(Iterator::count).unwrap(), 1);
}

/// A cache write failure is reported, and has no other effect.
#[tokio::test]
async fn a_memory_that_cannot_be_written_does_no_harm() {
    let folder = Folder::new();
    folder.write("file", "");
    let options = options().with_cache_dir(folder.path().join("file"));
    let connection = folder.connection_with(options, "legacy", &json!({}));
    assert_eq!(call(&connection, "started").await, "1");
    until(&connection, |status| status.not_remembered.is_some()).await;
    within(connection.close()).await;
}

/// CON-10: closing a connection ends its calls.
#[tokio::test]
async fn close_ends_in_flight_requests() {
    let folder = Folder::new();
    let connection = folder.connection("legacy", &json!({}));
    within(connection.connect()).await.unwrap();
    let waiting = connection.request("tools/call", params("wait", &json!({})));
    let (answer, ()) = within(async { tokio::join!(waiting, connection.close()) }).await;
    assert_eq!(answer.unwrap_err().failure().unwrap().kind(), ErrorKind::ShuttingDown);
    assert_eq!(connection.status().state, State::Idle);
}

/// CON-10: a closed server connects again on its next use, regardless of its state when it was
/// closed.
#[tokio::test]
async fn a_closed_server_connects_again_with_its_next_use() {
    for (generation, more) in
        [("legacy", json!({})), ("modern", json!({})), ("legacy", json!({ "restart": "never" }))]
    {
        let folder = Folder::new();
        let connection = folder.connection(generation, &more);
        within(connection.close()).await;
        assert_eq!(folder.starts(), 0, "nothing is started to be closed");
        assert_eq!(call(&connection, "started").await, "1");
        let process = connection.status().process_id.unwrap();
        within(connection.close()).await;
        assert!(!std::path::Path::new(&format!("/proc/{process}")).exists());
        let status = connection.status();
        assert_eq!((status.state, status.process_id), (State::Idle, None));
        assert!(!tool_names(&connection).is_empty(), "what it has is known");
        assert_eq!(call(&connection, "started").await, "2");
        let died = within(connection.request("tools/call", params("die", &json!({})))).await;
        died.unwrap_err();
        within(connection.close()).await;
        let status = connection.status();
        assert_eq!((status.state, status.next_attempt), (State::Idle, None), "{more}");
        assert_eq!(call(&connection, "started").await, "3", "{more}");
        within(connection.close()).await;
    }
}

/// CON-10: a server that hangs at its start is ended as well, and can be started later.
#[tokio::test]
async fn a_server_that_is_closed_at_its_start_connects_again() {
    let config = config(&json!({ "s": { "command": "sleep", "args": ["1000"] } }));
    let server = config.server("s").unwrap().clone();
    let connection = Connection::new(server, options());
    for _ in 0..2 {
        let (started, ()) = within(async {
            let closing = async {
                until_state(&connection, State::Starting).await;
                connection.close().await;
            };
            tokio::join!(connection.connect(), closing)
        })
        .await;
        assert_eq!(started.unwrap_err().kind(), ErrorKind::ShuttingDown);
        assert_eq!(connection.status().state, State::Idle);
    }
}

/// The reference server has items of every kind, and sends elicitations.
#[tokio::test]
async fn the_reference_server_lists_everything_and_elicits() {
    let package = "@modelcontextprotocol/server-everything/dist/index.js";
    let script = peers::node_modules().join(package);
    let config = config(&json!({ "s": { "command": "node", "args": [script, "stdio"] } }));
    let server = config.server("s").unwrap().clone();
    let connection = Connection::new(server, options());
    within(connection.connect()).await.unwrap();
    for (kind, least) in
        [(ItemKind::Resource, 5), (ItemKind::ResourceTemplate, 2), (ItemKind::Prompt, 3)]
    {
        assert!(connection.list(kind).is_empty(), "it was not requested");
        let listed = within(connection.list_fresh(kind)).await.unwrap();
        assert!(listed.len() >= least, "{kind:?}: {}", listed.len());
    }
    let answer = Some(json!({ "action": "decline" }));
    let caller = Attentive { answer, ..Attentive::default() };
    let result = converse(&connection, "trigger-elicitation-request", &caller).await.unwrap();
    assert!(result.text().contains("declined"), "{result}");
    within(connection.close()).await;
}

/// CON-8, CON-6: a process that ignores SIGTERM does not delay its caller beyond the start timeout,
/// and is not left behind.
#[tokio::test]
async fn a_start_that_fails_is_answered_before_its_process_has_ended() {
    for protocol in ["auto", "legacy"] {
        let folder = Folder::new();
        let (pids, release) = (folder.path().join("pids"), folder.path().join("release"));
        let script = format!(
            "trap '' TERM INT HUP; echo $$ >> '{}'; while [ ! -e '{}' ]; do sleep 0.1; done",
            pids.display(),
            release.display()
        );
        let config = config(&json!({ "s": {
            "command": "/bin/sh", "args": ["-c", script], "protocol": protocol, "restart": "never",
            "timeouts": { "handshake": "1s", "shutdown": "10m" },
        } }));
        let connection = Connection::new(config.server("s").unwrap().clone(), options());
        let error = within(connection.connect()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{protocol}: {error}");
        let pids = std::fs::read_to_string(pids).unwrap();
        let is_alive = |pid: &str| std::fs::exists(format!("/proc/{pid}")).unwrap();
        assert!(pids.lines().all(is_alive), "{protocol}: they ignore the signal");
        std::fs::write(release, "").unwrap();
        within(connection.close()).await;
        assert!(!pids.lines().any(is_alive), "{protocol}: they are left behind");
    }
}
