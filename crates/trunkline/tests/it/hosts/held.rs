//! Views that somebody has kept, while what they are of has changed: what was shown is what runs.

use serde_json::{Value, json};
use trunkline::call::CallErrorKind;
use trunkline::host::{Host, HostOptions};
use trunkline::item::Kind;
use trunkline::message::Raw;
use trunkline::policy::Who;
use trunkline::registry::Registry;
use trunkline::view::View;

use super::{call, configuration, gather, host_of, host_with, tools, until_there, view};
use crate::lively::{Folder, options, within};

async fn call_in(host: &Host, view: &View, tool: &str) -> Result<String, String> {
    let arguments = Raw::from_value(&json!({}));
    match within(host.call(view, tool, arguments, Default::default())).await {
        Ok(outcome) => Ok(outcome.text()),
        Err(error) => {
            assert_eq!(error.kind(), CallErrorKind::Unknown, "{error}");
            Err(error.to_string())
        }
    }
}

async fn reload(host: &Host, value: &Value) {
    let config = configuration(value);
    let agents = config.agents().named.clone();
    within(host.reload(config, agents)).await;
}

/// TOOL-5: a tool that has been shown as one that reads does not run as one that writes.
#[tokio::test]
async fn a_tool_that_has_changed_since_it_was_shown_does_not_run() {
    let folder = Folder::new();
    let host = host_of(&json!({ "s": folder.server("legacy", &json!({})) }));
    gather(&host, &[Kind::Tool]).await;
    let shown = view(&host);
    assert_eq!(call_in(&host, &shown, "s_started").await.unwrap(), "1");
    folder.write("writing", "started");
    call(&host, "s_change", &json!({ "name": "other" })).await.unwrap();
    until_there(&host, "s_other").await;
    assert!(!tools(&view(&host)).contains(&"s_started"));
    let refused = call_in(&host, &shown, "s_started").await.unwrap_err();
    assert_eq!(refused, "the tool `s_started` is not what was shown any more; look again");
    // What is the same still runs.
    assert_eq!(call_in(&host, &shown, "s_work").await.unwrap(), "worked");
    within(host.shutdown()).await;
}

#[tokio::test]
async fn another_server_under_the_same_name_is_not_called_for_the_first() {
    let (one, two) = (Folder::new(), Folder::new());
    let host = host_of(&json!({ "s": one.server("legacy", &json!({})) }));
    gather(&host, &[Kind::Tool]).await;
    let shown = view(&host);
    reload(&host, &json!({ "mcpServers": { "s": two.server("legacy", &json!({})) } })).await;
    let refused = call_in(&host, &shown, "s_started").await.unwrap_err();
    assert_eq!(refused, "the tool `s_started` is not there any more; look again");
    assert_eq!(two.starts(), 0);
    within(host.shutdown()).await;
}

/// TOOL-6, BUN-2: an agent or a bundle that has become narrower, or is gone, is so for everybody.
#[tokio::test]
async fn agents_and_bundles_of_now_hold_for_views_of_before() {
    let folder = Folder::new();
    let servers = json!({ "s": folder.server("legacy", &json!({})) });
    let with = |agent: &Value, denied: &Value| {
        let bundle = json!({ "serverId": "s", "mode": "direct", "denyTools": denied });
        json!({ "mcpServers": servers, "agents": agent, "bundles": { "b": bundle } })
    };
    let all = json!({ "g": { "tools": ["*"] } });
    let host = host_with(&with(&all, &json!(["die"])), &[]);
    gather(&host, &[Kind::Tool]).await;
    let agent = host.view(Who { agent: Some("g"), ..Who::default() }).unwrap();
    let bundle = host.view(Who { bundles: &["b"], ..Who::default() }).unwrap();
    for shown in [&agent, &bundle] {
        assert_eq!(call_in(&host, shown, "s_started").await.unwrap(), "1");
    }
    let fewer = json!({ "g": { "tools": ["*", "!s_started"] } });
    reload(&host, &with(&fewer, &json!(["die", "started"]))).await;
    for shown in [&agent, &bundle] {
        let refused = call_in(&host, shown, "s_started").await.unwrap_err();
        assert_eq!(refused, "there is no tool `s_started`");
        assert_eq!(call_in(&host, shown, "s_work").await.unwrap(), "worked");
    }
    reload(&host, &json!({ "mcpServers": servers })).await;
    let refused = call_in(&host, &agent, "s_work").await.unwrap_err();
    assert_eq!(refused, "there is no agent `g`");
    within(host.shutdown()).await;
}

/// CFG-12: hosts of several folders share servers that are the same.
#[tokio::test]
async fn hosts_with_one_registry_share_equal_servers() {
    let folder = Folder::new();
    let registry = Registry::new(options());
    let value = json!({ "mcpServers": { "s": folder.server("legacy", &json!({})) } });
    let start = || {
        let options =
            HostOptions { registry: Some(registry.clone()), ..HostOptions::new(options()) };
        Host::start(configuration(&value), Default::default(), options)
    };
    let (one, two) = (start(), start());
    for host in [&one, &two] {
        gather(host, &[Kind::Tool]).await;
        assert_eq!(call(host, "s_started", &json!({})).await.unwrap().text(), "1");
    }
    within(one.shutdown()).await;
    assert_eq!(call(&two, "s_started", &json!({})).await.unwrap().text(), "1");
    within(two.shutdown()).await;
    assert_eq!(folder.starts(), 1);
}
