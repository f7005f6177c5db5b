//! Views older than the current state: a call runs the tool that was shown, or fails.

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use trunkline::call::{CallErrorKind, CallOptions, ClientContext};
use trunkline::connection::{CallHandler, HandlerFuture, ServerRequest, State};
use trunkline::host::{Host, HostOptions};
use trunkline::item::ItemKind;
use trunkline::message::Raw;
use trunkline::policy::CallerSpec;
use trunkline::principal::Principal;
use trunkline::registry::Registry;
use trunkline::view::View;

use super::{call, call_with, configuration, gather, host_of, host_with, tools, until_there, view};
use crate::support::file_driven_server::{Folder, options, poll_until, within};

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

/// TOOL-5: a tool shown as read-only does not run after it has become a writing one.
#[tokio::test]
async fn a_tool_that_has_changed_since_it_was_shown_does_not_run() {
    let folder = Folder::new();
    let reading = json!({ "access": "read-only" });
    let host = host_of(&json!({ "s": folder.server("legacy", &reading) }));
    gather(&host, &[ItemKind::Tool]).await;
    let shown = view(&host);
    assert_eq!(call_in(&host, &shown, "s_started").await.unwrap(), "1");
    folder.write("writing", "started");
    call(&host, "s_change", &json!({ "name": "other" })).await.unwrap();
    until_there(&host, "s_other").await;
    assert!(!tools(&view(&host)).contains(&"s_started"));
    let refused = call_in(&host, &shown, "s_started").await.unwrap_err();
    assert_eq!(refused, "the tool `s_started` is not what was shown any more; look again");
    // Unchanged tools still run.
    assert_eq!(call_in(&host, &shown, "s_work").await.unwrap(), "worked");
    within(host.shutdown()).await;
}

/// TOOL-5: the same for a stopped server that the call starts. The known list is the one from
/// before the stop.
#[tokio::test]
async fn a_tool_that_has_changed_when_its_server_starts_again_does_not_run() {
    let folder = Folder::new();
    let idle = json!({ "idleTimeout": "200ms" });
    let host = host_of(&json!({ "s": folder.server("legacy", &idle) }));
    gather(&host, &[ItemKind::Tool]).await;
    let shown = view(&host);
    let connection = host.servers().get("s").unwrap();
    within(connection.watch().wait_for(|status| status.state == State::Idle)).await.unwrap();
    folder.write("writing", "started");
    let refused = call_in(&host, &shown, "s_started").await.unwrap_err();
    assert_eq!(refused, "the tool `s_started` is not what was shown any more; look again");
    assert_eq!((folder.starts(), folder.called("started")), (2, 0));
    within(connection.watch().wait_for(|status| status.state == State::Idle)).await.unwrap();
    assert_eq!(call_in(&host, &shown, "s_work").await.unwrap(), "worked");
    assert_eq!(folder.starts(), 3);
    within(host.shutdown()).await;
}

/// TOOL-5: the same for a dedicated process. Lists come from another process.
#[tokio::test]
async fn a_tool_that_is_another_in_a_clients_own_process_does_not_run() {
    let folder = Folder::new();
    let host = host_of(&json!({ "s": folder.server("legacy", &json!({ "share": "per-client" })) }));
    gather(&host, &[ItemKind::Tool]).await;
    let shown = view(&host);
    folder.write("writing", "started");
    let client = ClientContext {
        id: "ann".into(),
        owner: Principal::Anonymous,
        capabilities: Raw::empty_object(),
        handler: None,
        log_level: None,
        idle: None,
    };
    let options = CallOptions { client: Some(&client), ..CallOptions::default() };
    let call = |tool| within(host.call(&shown, tool, Raw::empty_object(), options));
    let refused = call("s_started").await.unwrap_err();
    assert!(refused.to_string().contains("is not what was shown any more"), "{refused}");
    assert_eq!(folder.called("started"), 0);
    assert_eq!(call("s_work").await.unwrap().text(), "worked");
    within(host.shutdown()).await;
}

/// TOOL-5: a call that the server rejected because of its headers is retried once with current
/// headers, unless the tool has changed as well.
#[tokio::test]
async fn a_tool_that_has_changed_before_a_call_is_made_again_does_not_run() {
    let folder = Folder::new();
    let host = host_of(&json!({ "s": folder.server("modern", &json!({})) }));
    gather(&host, &[ItemKind::Tool]).await;
    let shown = view(&host);
    folder.write("mismatched", "work");
    assert_eq!(call_in(&host, &shown, "s_work").await.unwrap(), "worked");
    assert_eq!(folder.called("work"), 2);
    folder.write("mismatched", "started");
    folder.write("writing", "started");
    let refused = call_in(&host, &shown, "s_started").await.unwrap_err();
    assert_eq!(refused, "the tool `s_started` is not what was shown any more; look again");
    assert_eq!(folder.called("started"), 1);
    within(host.shutdown()).await;
}

/// A handler that responds after the requesting tool has changed.
struct Slow<'h> {
    host: &'h Host,
    folder: &'h Folder,
}

impl CallHandler for Slow<'_> {
    fn on_server_request(&self, _: ServerRequest) -> HandlerFuture<'_> {
        Box::pin(async {
            self.folder.write("writing", "ask");
            call(self.host, "s_change", &json!({ "name": "other" })).await.unwrap();
            until_there(self.host, "s_other").await;
            Ok(Raw::from_value(&json!({ "action": "accept", "content": { "n": 7 } })))
        })
    }
}

/// TOOL-5: the same for a tool that changes while its input request is pending.
#[tokio::test]
async fn a_tool_that_has_changed_between_two_rounds_does_not_run() {
    let folder = Folder::new();
    let host = host_of(&json!({ "s": folder.server("modern", &json!({})) }));
    gather(&host, &[ItemKind::Tool]).await;
    // Changes are announced to subscribers only.
    poll_until(async || folder.asked("subscriptions/listen") > 0).await;
    let slow = Slow { host: &host, folder: &folder };
    let options = CallOptions { handler: &slow, ..CallOptions::default() };
    let refused = call_with(&host, "s_ask", &json!({}), options).await.unwrap_err();
    assert!(refused.to_string().contains("is not what was shown any more"), "{refused}");
    assert_eq!(folder.called("ask"), 1);
    within(host.shutdown()).await;
}

/// CALL-7: current rules apply to a call that has waited for its slot.
#[tokio::test]
async fn a_tool_that_was_denied_while_a_call_waited_does_not_run() {
    let folder = Folder::new();
    let with = |denied: &[&str]| {
        let more = json!({ "concurrency": 1, "denyTools": denied });
        json!({ "mcpServers": { "s": folder.server("legacy", &more) } })
    };
    let host = host_with(&with(&[]), &[]);
    gather(&host, &[ItemKind::Tool]).await;
    let shown = view(&host);
    let nothing = json!({});
    let mut first = Box::pin(call(&host, "s_wait", &nothing));
    assert!(first.as_mut().now_or_never().is_none());
    let mut second = Box::pin(call_in(&host, &shown, "s_started"));
    assert!(second.as_mut().now_or_never().is_none());
    reload(&host, &with(&["started"])).await;
    drop(first);
    assert_eq!(second.await.unwrap_err(), "there is no tool `s_started`");
    assert_eq!(folder.called("started"), 0);
    within(host.shutdown()).await;
}

#[tokio::test]
async fn another_server_under_the_same_name_is_not_called_for_the_first() {
    let (one, two) = (Folder::new(), Folder::new());
    let host = host_of(&json!({ "s": one.server("legacy", &json!({})) }));
    gather(&host, &[ItemKind::Tool]).await;
    let shown = view(&host);
    reload(&host, &json!({ "mcpServers": { "s": two.server("legacy", &json!({})) } })).await;
    let refused = call_in(&host, &shown, "s_started").await.unwrap_err();
    assert_eq!(refused, "the tool `s_started` is not there any more; look again");
    assert_eq!(two.starts(), 0);
    within(host.shutdown()).await;
}

/// TOOL-6, BUN-2: an agent or bundle that was restricted or removed is so for existing views.
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
    gather(&host, &[ItemKind::Tool]).await;
    let agent = host.view(CallerSpec { agent: Some("g"), ..CallerSpec::default() }).unwrap();
    let bundle = host.view(CallerSpec { bundles: &["b"], ..CallerSpec::default() }).unwrap();
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

/// CFG-12: hosts of several directories share equal servers.
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
        gather(host, &[ItemKind::Tool]).await;
        assert_eq!(call(host, "s_started", &json!({})).await.unwrap().text(), "1");
    }
    within(one.shutdown()).await;
    assert_eq!(call(&two, "s_started", &json!({})).await.unwrap().text(), "1");
    within(two.shutdown()).await;
    assert_eq!(folder.starts(), 1);
}
