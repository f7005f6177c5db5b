//! Several configurations, shared servers, and reloads.

use std::sync::Arc;

use futures_util::FutureExt as _;
use serde_json::json;
use trunkline::config::Config;
use trunkline::connection::State;
use trunkline::error::ErrorKind;
use trunkline::message::Raw;
use trunkline::name::ServerName;
use trunkline::registry::{Registry, ReloadSummary};

use crate::support::file_driven_server::{Folder, call, config, options, until_state, within};

/// A configuration of one server with these rules.
fn one_server(folder: &Folder, rules: &serde_json::Value) -> Config {
    config(&json!({ "s": folder.server("legacy", rules) }))
}

fn names(names: &[&str]) -> Vec<ServerName> {
    names.iter().map(|name| ServerName::new(name).unwrap()).collect()
}

/// `reload` affects only changes.
#[tokio::test]
async fn reload_restarts_only_changed_servers() {
    let (kept, changed, removed) = (Folder::new(), Folder::new(), Folder::new());
    let servers = |folder: &Folder| folder.server("legacy", &json!({}));
    let before = config(&json!({
        "kept": servers(&kept), "changed": servers(&changed), "removed": servers(&removed),
    }));
    let set = Registry::new(options()).open(&before);
    assert!(within(set.connect_all()).await.is_empty());
    let (kept_before, removed_before) = (set.get("kept").unwrap(), set.get("removed").unwrap());
    // Changed rules and timeouts do not restart a server; changed connection settings do.
    let rules = json!({ "access": "read-write", "denyTools": ["x"], "timeouts": { "call": "7s" } });
    let after = config(&json!({
        "kept": kept.server("legacy", &rules),
        "changed": changed.server("legacy", &json!({ "protocol": "legacy" })),
        "added": servers(&removed),
    }));
    let reloaded = within(set.reload(&after)).await;
    let expected = ReloadSummary {
        added: names(&["added"]),
        changed: names(&["changed"]),
        removed: names(&["removed"]),
        kept: names(&["kept"]),
    };
    assert_eq!(reloaded, expected);
    assert!(Arc::ptr_eq(&kept_before, &set.get("kept").unwrap()));
    assert_eq!(kept_before.status().state, State::Ready);
    assert_eq!(removed_before.status().state, State::Stopped);
    assert!(set.get("removed").is_none());
    assert_eq!(call(&set.get("kept").unwrap(), "started").await, "1");
    assert_eq!(call(&set.get("changed").unwrap(), "started").await, "2");
    within(set.close()).await;
    assert_eq!(kept_before.status().state, State::Stopped);
}

/// CFG-12: equal servers of several configurations are shared, and live until the last one is
/// closed.
#[tokio::test]
async fn equal_servers_are_shared_between_configurations() {
    let folder = Folder::new();
    let entry = folder.server("legacy", &json!({}));
    let registry = Registry::new(options());
    let one = registry.open(&config(&json!({ "s": entry, "t": entry })));
    let two = registry.open(&config(&json!({ "s": entry })));
    let (first, second) = (one.get("s").unwrap(), two.get("s").unwrap());
    assert!(Arc::ptr_eq(&first, &second));
    assert!(!Arc::ptr_eq(&first, &one.get("t").unwrap()), "it has another name");
    assert_eq!(call(&first, "started").await, "1");
    within(one.close()).await;
    assert_eq!(second.status().state, State::Ready);
    drop(two);
    drop(first);
    // It ends although no owner is left to close it.
    let watch = second.watch();
    drop(second);
    within(async {
        let mut watch = watch;
        while watch.borrow_and_update().state != State::Stopped {
            if watch.changed().await.is_err() {
                break;
            }
        }
    })
    .await;
}

/// CON-3: eager servers start on their own, lazy ones do not.
#[tokio::test]
async fn eager_servers_start_by_themselves() {
    let (eager, lazy) = (Folder::new(), Folder::new());
    let registry = Registry::new(options());
    let set = registry.open(&config(&json!({
        "eager": eager.server("legacy", &json!({ "connect": "eager" })),
        "lazy": lazy.server("legacy", &json!({})),
    })));
    until_state(&set.get("eager").unwrap(), State::Ready).await;
    assert_eq!((lazy.starts(), set.get("lazy").unwrap().status().state), (0, State::Idle));
    within(registry.close_all()).await;
    assert_eq!(set.get("eager").unwrap().status().state, State::Stopped);
}

/// CON-11: every change is reported, including added and removed servers.
#[tokio::test]
async fn changes_of_all_servers_are_watched() {
    let folder = Folder::new();
    let entry = folder.server("legacy", &json!({}));
    let set = Registry::new(options()).open(&config(&json!({ "a": entry, "b": entry })));
    let mut watch = set.watch();
    for name in ["a", "b"] {
        let change = within(watch.next()).await.unwrap();
        assert_eq!((change.server.as_str(), change.status.unwrap().state), (name, State::Idle));
    }
    set.get("b").unwrap().start();
    let mut states = Vec::new();
    while states.last() != Some(&State::Ready) {
        let change = within(watch.next()).await.unwrap();
        assert_eq!(change.server.as_str(), "b");
        states.push(change.status.unwrap().state);
    }
    within(set.reload(&config(&json!({ "b": entry })))).await;
    let change = within(watch.next()).await.unwrap();
    assert_eq!((change.server.as_str(), change.status.is_none()), ("a", true));
    within(set.close()).await;
    drop(set);
    while within(watch.next()).await.is_some() {}
}

/// CON-10: a shutdown started by a dropped reload is completed by close.
#[tokio::test]
async fn close_completes_the_shutdown_of_a_dropped_reload() {
    let folder = Folder::new();
    folder.write("loner", "");
    let registry = Registry::new(options());
    for is_all_closed in [false, true] {
        let set = registry.open(&config(&json!({ "s": folder.server("legacy", &json!({})) })));
        assert!(within(set.connect_all()).await.is_empty());
        let stubborn = set.get("s").unwrap();
        let nothing = config(&json!({}));
        // Starts the shutdown, which takes a second.
        assert!(set.reload(&nothing).now_or_never().is_none());
        assert_ne!(stubborn.status().state, State::Stopped);
        match is_all_closed {
            true => within(registry.close_all()).await,
            false => within(set.close()).await,
        }
        assert_eq!(stubborn.status().state, State::Stopped);
    }
}

/// TOOL-10: a connection sanitizes the output of an untrusted server, so a change of trust replaces
/// it.
#[tokio::test]
async fn a_server_that_is_not_trusted_any_more_gets_another_connection() {
    let folder = Folder::new();
    let entry =
        |trust: &str| folder.server("legacy", &json!({ "trust": trust, "allowTools": ["a"] }));
    let registry = Registry::new(options());
    let set = registry.open(&config(&json!({ "s": entry("trusted") })));
    let shared = registry.open(&config(&json!({ "s": entry("untrusted") })));
    let before = set.get("s").unwrap();
    assert!(!Arc::ptr_eq(&before, &shared.get("s").unwrap()));
    let reloaded = within(set.reload(&config(&json!({ "s": entry("untrusted") })))).await;
    assert_eq!(reloaded.changed, names(&["s"]));
    assert!(Arc::ptr_eq(&shared.get("s").unwrap(), &set.get("s").unwrap()));
    within(set.close()).await;
    within(shared.close()).await;
}

/// Seen before: a changed default restarted every server.
#[tokio::test]
async fn other_bounds_and_rules_are_followed_without_a_new_start() {
    let folder = Folder::new();
    let set = Registry::new(options()).open(&one_server(&folder, &json!({})));
    assert!(within(set.connect_all()).await.is_empty());
    let connection = set.get("s").unwrap();
    for rules in [
        json!({ "timeouts": { "call": "100ms", "list": "9s" } }),
        json!({ "restart": "on-failure", "toolsTtlMs": 7 }),
        json!({ "idleTimeout": "1h", "connect": "eager" }),
    ] {
        let reloaded = within(set.reload(&one_server(&folder, &rules))).await;
        assert_eq!(
            reloaded,
            ReloadSummary { kept: names(&["s"]), ..ReloadSummary::default() },
            "{rules}"
        );
        assert!(Arc::ptr_eq(&connection, &set.get("s").unwrap()));
        if rules.get("timeouts").is_some() {
            let params = json!({ "name": "wait", "arguments": {} });
            let params = Raw::from_value(&params);
            let error = connection.request("tools/call", Some(params)).await.unwrap_err();
            assert_eq!(error.failure().unwrap().kind(), ErrorKind::TimedOut, "the new bound holds");
        }
    }
    assert_eq!(call(&connection, "started").await, "1");
    within(set.close()).await;
    assert_eq!(connection.status().state, State::Stopped);
}

/// An unused server applies a new `idleTimeout` without any other event.
#[tokio::test]
async fn a_new_idle_timeout_stops_a_server_that_is_idle_already() {
    let folder = Folder::new();
    let set = Registry::new(options()).open(&one_server(&folder, &json!({})));
    assert!(within(set.connect_all()).await.is_empty());
    let connection = set.get("s").unwrap();
    let reloaded =
        within(set.reload(&one_server(&folder, &json!({ "idleTimeout": "200ms" })))).await;
    assert_eq!(reloaded.kept, names(&["s"]));
    until_state(&connection, State::Idle).await;
    within(set.close()).await;
}

/// A server that waits for its next attempt does not wait by outdated rules.
#[tokio::test]
async fn a_server_that_has_failed_begins_anew_with_other_rules() {
    let server = |restart: &str| {
        config(&json!({ "s": { "command": "false", "restart": restart, "connect": "lazy" } }))
    };
    let set = Registry::new(options()).open(&server("on-failure"));
    let failed = set.get("s").unwrap();
    assert_eq!(within(set.connect_all()).await.len(), 1);
    assert_eq!(failed.status().state, State::Failed);
    let reloaded = within(set.reload(&server("never"))).await;
    assert_eq!(reloaded.changed, names(&["s"]));
    assert_eq!(failed.status().state, State::Stopped);
    within(set.close()).await;
}

/// A connection shared with another configuration keeps that configuration's rules.
#[tokio::test]
async fn rules_of_one_configuration_do_not_reach_another() {
    let folder = Folder::new();
    let registry = Registry::new(options());
    let (one, two) = (
        registry.open(&one_server(&folder, &json!({}))),
        registry.open(&one_server(&folder, &json!({}))),
    );
    let reloaded =
        within(one.reload(&one_server(&folder, &json!({ "timeouts": { "call": "7s" } })))).await;
    assert_eq!(reloaded.changed, names(&["s"]));
    assert!(!Arc::ptr_eq(&one.get("s").unwrap(), &two.get("s").unwrap()));
    within(one.close()).await;
    within(two.close()).await;
}
