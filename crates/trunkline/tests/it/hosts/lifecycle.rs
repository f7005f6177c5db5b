//! Servers that die, start late or restart, and configuration reloads.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use trunkline::call::{CallErrorKind, CallOptions, ClientContext};
use trunkline::catalog::Availability;
use trunkline::connection::State;
use trunkline::error::ErrorKind;
use trunkline::host::{Host, HostOptions, WaitFor};
use trunkline::item::ItemKind;
use trunkline::message::Raw;
use trunkline::name::ServerName;
use trunkline::principal::Principal;
use trunkline::protocol::meta::RETRY;
use trunkline::registry::ReloadSummary;

use super::{call, configuration, gather, host_of, tools, until_there, view};
use crate::support::file_driven_server::{Folder, options, until_state, within};

/// All names in the catalog, regardless of rules.
fn names(host: &Host) -> Vec<String> {
    host.catalog().entries(ItemKind::Tool).iter().map(|entry| entry.exposed().to_owned()).collect()
}

/// Waits until a server is unavailable in the catalog.
async fn until_down(host: &Host, server: &str) {
    let mut catalog = host.watch_catalog();
    let is_down = |catalog: &Arc<trunkline::catalog::Catalog>| {
        let mut servers = catalog.servers();
        servers.any(|it| it.name.as_str() == server && it.availability != Availability::Available)
    };
    within(catalog.wait_for(is_down)).await.unwrap();
}

async fn reload(host: &Host, value: &Value) -> ReloadSummary {
    let config = configuration(value);
    let agents = config.agents().named.clone();
    within(host.reload(config, agents)).await
}

/// TOOL-8, CALL-2: items of a dead server are unavailable, with an explicit error; nothing else
/// changes, even after a reload.
#[tokio::test]
async fn tools_of_a_dead_server_are_unavailable_and_names_stay() {
    let (dead, alive) = (Folder::new(), Folder::new());
    let servers = json!({
        "dead": dead.server("legacy", &json!({ "restart": "never" })),
        "alive": alive.server("legacy", &json!({})),
    });
    let host = host_of(&servers);
    gather(&host, &[ItemKind::Tool]).await;
    let (before, old_view) = (names(&host), view(&host));
    assert_eq!(before.len(), 12);
    let died = call(&host, "dead_die", &json!({})).await.unwrap_err();
    assert_eq!(died.kind(), CallErrorKind::Failed(ErrorKind::Exited));
    assert!(!died.is_retryable());
    assert!(died.text_for_model().starts_with("MCP server unreachable: server `dead`: "), "{died}");
    until_down(&host, "dead").await;
    for _ in 0..2 {
        let view = view(&host);
        assert_eq!(tools(&view).len(), 6);
        assert_eq!(names(&host), before);
        let gone = call(&host, "dead_started", &json!({})).await.unwrap_err();
        assert_eq!(gone.kind(), CallErrorKind::Unavailable);
        assert!(gone.to_string().starts_with("server `dead` is down: "), "{gone}");
        assert!(gone.hint().is_some() && !gone.is_retryable(), "nothing starts it again");
        // A host can return it to the model as the result of the call.
        let result = gone.to_result().to_value();
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("MCP server unreachable: server `dead` is down: "), "{text}");
        assert!(text.ends_with("Trying again will not help until the cause is fixed."));
        assert_eq!((&result["isError"], &result["_meta"][RETRY]), (&json!(true), &json!(false)));
        assert_eq!(call(&host, "alive_started", &json!({})).await.unwrap().text(), "1");
        let reloaded = reload(&host, &json!({ "mcpServers": servers })).await;
        assert_eq!(reloaded.kept.len(), 2);
    }
    // An older view gets the same error.
    let arguments = Raw::from_value(&json!({}));
    let gone = within(host.call(&old_view, "dead_started", arguments, Default::default())).await;
    assert_eq!(gone.unwrap_err().kind(), CallErrorKind::Unavailable);
    within(host.servers().get("dead").unwrap().connect()).await.unwrap();
    gather(&host, &[ItemKind::Tool]).await;
    assert_eq!(call(&host, "dead_started", &json!({})).await.unwrap().text(), "2");
    within(host.shutdown()).await;
}

/// CON-5: while a server restarts, its tools are not unknown; calls wait for it.
#[tokio::test]
async fn tools_of_a_server_that_comes_back_are_never_unknown() {
    let folder = Folder::new();
    let restart =
        json!({ "policy": "on-failure", "limit": 3, "delay": "10ms", "maxDelay": "20ms" });
    let host = host_of(&json!({ "s": folder.server("legacy", &json!({ "restart": restart })) }));
    gather(&host, &[ItemKind::Tool]).await;
    let before = names(&host);
    folder.write("slow", "");
    let died = call(&host, "s_die", &json!({})).await.unwrap_err();
    assert_eq!(died.kind(), CallErrorKind::Failed(ErrorKind::Exited));
    assert!(died.is_retryable(), "it is started again");
    loop {
        let again = call(&host, "s_started", &json!({})).await;
        assert_eq!(names(&host), before);
        match again {
            Ok(outcome) => {
                assert_eq!(outcome.text(), "2");
                break;
            }
            Err(error) => assert_eq!(error.kind(), CallErrorKind::Unavailable, "{error}"),
        }
        tokio::task::yield_now().await;
    }
    within(host.shutdown()).await;
}

/// CON-5: a call during a restart waits for it and gets its response.
#[tokio::test]
async fn a_call_waits_for_the_next_attempt_of_its_server() {
    let folder = Folder::new();
    let host = host_of(&json!({ "s": folder.server("legacy", &json!({})) }));
    gather(&host, &[ItemKind::Tool]).await;
    call(&host, "s_die", &json!({})).await.unwrap_err();
    until_down(&host, "s").await;
    assert_eq!(call(&host, "s_started", &json!({})).await.unwrap().text(), "2");
    within(host.shutdown()).await;
}

/// CON-10: a host closes one server or all of them, and later calls work as before.
#[tokio::test]
async fn servers_that_a_host_has_closed_connect_again_with_the_next_call() {
    let (one, other) = (Folder::new(), Folder::new());
    let host = host_of(&json!({
        "one": one.server("legacy", &json!({})),
        "other": other.server("modern", &json!({})),
    }));
    gather(&host, &[ItemKind::Tool]).await;
    let shown = view(&host);
    within(host.close("one")).await;
    within(host.close("missing")).await;
    assert_eq!(tools(&view(&host)).len(), tools(&shown).len());
    assert_eq!(call(&host, "one_started", &json!({})).await.unwrap().text(), "2");
    assert_eq!(call(&host, "other_started", &json!({})).await.unwrap().text(), "1");
    within(host.close_all()).await;
    let states = host.servers().connections();
    assert!(states.iter().all(|it| it.status().process_id.is_none()));
    assert_eq!(call(&host, "one_started", &json!({})).await.unwrap().text(), "3");
    assert_eq!(call(&host, "other_started", &json!({})).await.unwrap().text(), "2");
    within(host.shutdown()).await;
    assert!(call(&host, "one_started", &json!({})).await.is_err(), "the end is the end");
}

/// CON-11: every server of the configuration has a status, also disabled and broken ones.
#[tokio::test]
async fn the_status_has_servers_that_are_switched_off_or_broken() {
    let folder = Folder::new();
    let text = json!({ "mcpServers": {
        "on": folder.server("legacy", &json!({})),
        "off": folder.server("legacy", &json!({ "enabled": false })),
        "broken": { "comand": "x" },
    } });
    let config = trunkline::config::parse("test", text.to_string()).config;
    let host = Host::start(config, BTreeMap::new(), HostOptions::new(options()));
    let words = |host: &Host| -> Vec<String> {
        let status = host.status();
        status.iter().map(|it| format!("{} {}", it.server, it.condition.as_str())).collect()
    };
    assert_eq!(words(&host), ["broken failed", "off disabled", "on idle"]);
    within(host.refresh(&[ItemKind::Tool], WaitFor::AllReady)).await;
    assert_eq!(words(&host), ["broken failed", "off disabled", "on ready"]);
    within(host.shutdown()).await;
    assert_eq!(folder.starts(), 1);
}

/// One unavailable server is reported, and the others are usable.
#[tokio::test]
async fn failed_start_is_reported_and_affects_no_other_server() {
    let folder = Folder::new();
    let host = host_of(&json!({
        "good": folder.server("legacy", &json!({})),
        "missing": { "command": "no-such-program" },
    }));
    let failures = within(host.refresh(&[ItemKind::Tool], WaitFor::AllReady)).await;
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].kind(), ErrorKind::CommandNotFound);
    assert_eq!(failures[0].server().unwrap().as_str(), "missing");
    assert_eq!(tools(&view(&host)).len(), 6);
    within(host.shutdown()).await;
}

/// CON-15: a late server is not waited for, and announced when it is ready.
#[tokio::test]
async fn a_server_that_comes_late_is_announced() {
    let (slow, quick) = (Folder::new(), Folder::new());
    slow.write("slow", "");
    let hurried = json!({ "timeouts": { "grace": "10ms", "shutdown": "1s" } });
    let host = host_of(&json!({
        "quick": quick.server("legacy", &json!({ "timeouts": { "grace": "60s", "shutdown": "1s" } })),
        "slow": slow.server("legacy", &hurried),
    }));
    let failures = within(host.refresh(&[ItemKind::Tool], WaitFor::Grace)).await;
    let late: Vec<_> = failures.iter().map(|it| it.server().unwrap().as_str()).collect();
    assert_eq!(late, ["slow"]);
    assert_eq!(failures[0].kind(), ErrorKind::TimedOut);
    assert!(tools(&view(&host)).iter().all(|name| name.starts_with("quick_")));
    until_there(&host, "slow_started").await;
    assert_eq!(tools(&view(&host)).len(), 12);
    assert_eq!(slow.starts(), 1, "it was not started a second time");
    within(host.shutdown()).await;
}

/// CON-9: a changed list reaches the catalog without an explicit refresh.
#[tokio::test]
async fn a_list_that_changed_is_announced() {
    let folder = Folder::new();
    let host = host_of(&json!({ "s": folder.server("legacy", &json!({})) }));
    gather(&host, &[ItemKind::Tool]).await;
    let old_view = view(&host);
    call(&host, "s_change", &json!({ "name": "zebra" })).await.unwrap();
    until_there(&host, "s_zebra").await;
    assert_eq!((tools(&old_view).len(), tools(&view(&host)).len()), (6, 7));
    within(host.shutdown()).await;
}

/// A new configuration changes views, names and call settings, and restarts no unchanged server.
#[tokio::test]
async fn new_rules_apply_at_once_without_restarts() {
    let folder = Folder::new();
    let with = |more: &Value| json!({ "s": folder.server("legacy", more) });
    let host = host_of(&with(&json!({})));
    gather(&host, &[ItemKind::Tool]).await;
    let connection = host.servers().get("s").unwrap();
    // Repeated, because the test is about races that would expose an old catalog.
    for round in 0..20 {
        let separator = if round % 2 == 0 { "__" } else { "_" };
        let rules = json!({ "denyTools": ["die"], "prefix": format!("p{round}") });
        let value = json!({ "mcpServers": with(&rules), "separator": separator });
        let reloaded = reload(&host, &value).await;
        assert_eq!((reloaded.kept.len(), reloaded.changed.len()), (1, 0));
        let view = view(&host);
        assert_eq!(tools(&view).len(), 5);
        let name = format!("p{round}{separator}started");
        assert_eq!(call(&host, &name, &json!({})).await.unwrap().text(), "1", "{name}");
    }
    assert!(Arc::ptr_eq(&connection, &host.servers().get("s").unwrap()));
    reload(&host, &json!({ "mcpServers": { "t": folder.server("legacy", &json!({})) } })).await;
    assert!(names(&host).is_empty());
    until_state(&connection, State::Stopped).await;
    gather(&host, &[ItemKind::Tool]).await;
    assert_eq!(call(&host, "t_started", &json!({})).await.unwrap().text(), "2");
    within(host.shutdown()).await;
}

/// An item of an older view must also be allowed by the current rules.
#[tokio::test]
async fn old_view_loses_items_that_new_rules_hide() {
    let folder = Folder::new();
    let with = |more: &Value| json!({ "s": folder.server("legacy", more) });
    let host = host_of(&with(&json!({})));
    gather(&host, &[ItemKind::Tool]).await;
    let old = view(&host);
    let call = |name: &'static str| {
        let arguments = Raw::from_value(&json!({}));
        host.call(&old, name, arguments, CallOptions::default())
    };
    assert_eq!(within(call("s_started")).await.unwrap().text(), "1");
    reload(&host, &json!({ "mcpServers": with(&json!({ "denyTools": ["started"] })) })).await;
    let error = within(call("s_started")).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no tool `s_started`");
    within(host.shutdown()).await;
}

/// CFG-10: dedicated connections follow the configuration without waiting for slow shutdowns of
/// others.
#[tokio::test]
async fn dedicated_connections_follow_a_reload_without_waiting_for_others() {
    let (stubborn, before, after) = (Folder::new(), Folder::new(), Folder::new());
    stubborn.write("loner", "");
    let own = |folder: &Folder| folder.server("legacy", &json!({ "share": "per-client" }));
    let stays = json!({ "timeouts": { "shutdown": "3s" } });
    let host = host_of(&json!({ "stays": stubborn.server("legacy", &stays), "own": own(&before) }));
    let client = ClientContext {
        id: "ann".into(),
        owner: Principal::Token("ann".into()),
        capabilities: Raw::from_value(&json!({})),
        handler: None,
        log_level: None,
        idle: None,
    };
    let name = ServerName::new("own").unwrap();
    let held = host.connection_for(&name, Some(&client)).unwrap();
    let stays = host.servers().get("stays").unwrap();
    for connection in [&held, &stays] {
        within(connection.connect()).await.unwrap();
    }
    let changed = json!({ "mcpServers": { "own": own(&after) } });
    let watching = async {
        until_state(&held, State::Stopped).await;
        assert_ne!(stays.status().state, State::Stopped, "it was waited for");
    };
    tokio::join!(reload(&host, &changed), watching);
    within(host.shutdown()).await;
}
