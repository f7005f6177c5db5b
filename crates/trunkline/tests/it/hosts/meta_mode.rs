//! BUN-3: meta mode for a host that embeds the library.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use trunkline::call::CallErrorKind;
use trunkline::error::ErrorKind;
use trunkline::item::ItemKind;
use trunkline::meta::MetaTool;
use trunkline::policy::CallerSpec;
use trunkline::{Host, HostCaller};
use trunkline_testkit::peers;

use super::{Caller, configuration, host_with, tools};
use crate::support::file_driven_server::{Folder, poll_until, within};

const META_TOOLS: [&str; 4] =
    ["trunkline_search", "trunkline_describe", "trunkline_call", "trunkline_servers"];

/// A server with a tool that reads and one that writes, both with this end of their description.
fn define(folder: &Folder, end: &str) {
    let tool = |name: &str, is_reading: bool| {
        let description = format!("{}{end}", "Find or delete notes of a user. ".repeat(8));
        json!({
            "name": name, "description": description,
            "inputSchema": { "type": "object", "properties": { "id": { "type": "string" } } },
            "annotations": { "readOnlyHint": is_reading },
        })
    };
    let tools = [tool("find", true), tool("delete", false)];
    folder.write("tools.list.json", &json!({ "tools": tools }).to_string());
}

fn notes(folder: &Folder) -> Value {
    let mut entry = folder.server("legacy", &json!({}));
    entry["args"][1] = json!(peers::canned_server());
    entry
}

/// A host with one server whose tools are listed again with every search.
fn host_of_notes(folder: &Folder, more: &Value) -> Host {
    let mut config = json!({ "toolsTtlMs": 0, "mcpServers": { "notes": notes(folder) } });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    host_with(&config, &[])
}

async fn names(caller: &HostCaller) -> Vec<String> {
    within(caller.tools()).await.iter().map(|tool| tool.name().to_owned()).collect()
}

async fn text(caller: &HostCaller, name: &str, arguments: Value) -> String {
    within(caller.call_tool(name, arguments).into_future()).await.unwrap().text()
}

async fn search(caller: &HostCaller) -> String {
    text(caller, "trunkline_search", json!({ "queries": ["find notes"] })).await
}

fn calls(folder: &Folder) -> usize {
    let heard = std::fs::read_to_string(folder.path().join("heard")).unwrap_or_default();
    heard.matches(r#""tools/call""#).count()
}

#[tokio::test]
async fn caller_in_meta_mode_searches_describes_and_calls() {
    let folder = Folder::new();
    define(&folder, "");
    let host = host_of_notes(&folder, &json!({ "mode": "meta" }));
    for caller in [host.owner(), host.for_caller(CallerSpec::default()).unwrap()] {
        assert_eq!(names(&caller).await, META_TOOLS);
        assert!(search(&caller).await.lines().any(|line| line.starts_with("notes_find(id?")));
        let names = json!({ "names": ["notes_find"] });
        let described = text(&caller, "trunkline_describe", names).await;
        let described: Value = serde_json::from_str(&described).unwrap();
        assert_eq!(described["annotations"]["readOnlyHint"], true);
        let servers = text(&caller, "trunkline_servers", json!({})).await;
        assert!(servers.starts_with("notes: 2 tools"), "{servers}");
        let call = json!({ "name": "notes_find", "arguments": { "id": "x" } });
        let outcome = within(caller.call_tool("trunkline_call", call).into_future()).await;
        assert_eq!(outcome.unwrap().server().unwrap().as_str(), "notes");
        // Everything is still there for a host that shows tools in another way.
        assert_eq!(tools(&caller.view().unwrap()), ["notes_delete", "notes_find"]);
        text(&caller, "notes_find", json!({})).await;
    }
    assert_eq!(calls(&folder), 4);
    within(host.shutdown()).await;
}

/// A host decides on the tool that runs, and not on the wrapper.
#[tokio::test]
async fn target_of_a_call_is_the_tool_that_it_names() {
    let folder = Folder::new();
    define(&folder, "");
    let host = host_of_notes(&folder, &json!({ "mode": "meta" }));
    let caller = host.owner();
    let tools = within(caller.tools()).await;
    let [search, describe, call, servers] = &*tools else { panic!("{tools:?}") };
    for (tool, meta) in tools.iter().zip(MetaTool::ALL) {
        assert_eq!(tool.meta_tool(), Some(meta));
        assert!(tool.server().is_none() && tool.entry().is_none());
        assert_eq!(tool.definition().text(), meta.definition().text());
        assert!(!tool.description().is_empty() && tool.input_schema().get("type").is_some());
    }
    for tool in [search, describe, servers] {
        assert_eq!(tool.annotations().read_only, Some(true));
        let (target, _) = within(tool.target(json!({}))).await.unwrap();
        assert_eq!(target.name(), tool.name());
    }
    assert!(call.annotations().declares_writing());
    for (name, is_reading) in [("notes_find", true), ("notes_delete", false)] {
        let arguments = json!({ "name": name, "arguments": { "id": "7" } });
        let (target, arguments) = within(call.target(arguments)).await.unwrap();
        assert_eq!((target.name(), target.meta_tool()), (name, None));
        assert_eq!(target.annotations().read_only, Some(is_reading));
        assert_eq!(arguments.text(), r#"{"id":"7"}"#);
        within(target.call(arguments).into_future()).await.unwrap();
    }
    let unknown = within(call.target(json!({ "name": "notes_fin" }))).await.unwrap_err();
    assert_eq!(unknown.kind(), CallErrorKind::Unknown);
    let nameless = within(call.call(json!({})).into_future()).await.unwrap_err();
    assert_eq!(nameless.kind(), CallErrorKind::BadArguments);
    let empty = within(search.call(json!({})).into_future()).await.unwrap();
    assert!(empty.is_error && empty.server().is_none());
    assert_eq!(calls(&folder), 2);
    within(host.shutdown()).await;
}

/// A wrapper does not call what the caller may not call.
#[tokio::test]
async fn hidden_tools_stay_hidden_in_meta_mode() {
    let folder = Folder::new();
    define(&folder, "");
    let more = json!({ "mode": "meta", "agents": { "reader": { "access": "read-only" } } });
    let host = host_of_notes(&folder, &more);
    let reader = host.for_agent("reader").unwrap();
    assert!(!search(&reader).await.contains("notes_delete"));
    let [hidden, unknown] = ["notes_delete", "notes_xelete"].map(|name| {
        let call = reader.call_tool("trunkline_call", json!({ "name": name }));
        async move { within(call.into_future()).await.unwrap_err().to_string().replace(name, "") }
    });
    assert_eq!(hidden.await, unknown.await);
    assert_eq!(calls(&folder), 0);
    within(host.shutdown()).await;
}

#[tokio::test]
async fn bundles_and_budget_decide_which_tools_are_direct() {
    let (one, two) = (Folder::new(), Folder::new());
    define(&one, "");
    define(&two, "");
    let config = json!({
        "mcpServers": { "notes": notes(&one), "mail": notes(&two) },
        "bundles": {
            "few": { "serverId": "notes", "allowTools": ["find"] },
            "many": { "serverId": "mail", "mode": "meta" },
        },
        "mode": "auto", "tokenBudget": 100,
    });
    let host = host_with(&config, &[]);
    let spec = CallerSpec { bundles: &["few", "many"], ..CallerSpec::default() };
    let caller = host.for_caller(spec).unwrap();
    assert_eq!(names(&caller).await, [&META_TOOLS[..], &["notes_find"]].concat());
    assert!(search(&caller).await.contains("mail_find"));
    let few = host.for_caller(CallerSpec { bundles: &["few"], ..CallerSpec::default() }).unwrap();
    assert_eq!(names(&few).await, ["notes_find"]);
    assert!(few.tool("trunkline_search").is_err(), "there is none in direct mode");
    assert_eq!(names(&host.owner()).await, META_TOOLS);
    let mut within_budget = config.clone();
    within_budget["tokenBudget"] = json!(100_000);
    within(host.reload(configuration(&within_budget), Default::default())).await;
    assert_eq!(names(&host.owner()).await.len(), 4);
    assert!(names(&host.owner()).await.contains(&"mail_delete".to_owned()));
    within(host.shutdown()).await;
}

/// TOOL-5: a tool of the host itself is checked with every call, as those of servers are.
#[tokio::test]
async fn tool_of_the_host_is_refused_after_a_reload_without_it() {
    let folder = Folder::new();
    define(&folder, "");
    let config = |more: Value| {
        let mut config = json!({ "mcpServers": { "notes": notes(&folder) } });
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        config
    };
    let host = host_with(&config(json!({ "mode": "meta", "resourcesAsTools": true })), &[]);
    let owner = host.owner();
    let held = ["trunkline_search", "trunkline_call", "trunkline_list_resources"];
    let held = held.map(|name| owner.tool(name).unwrap());
    within(host.reload(configuration(&config(json!({}))), Default::default())).await;
    for tool in held {
        let call = tool.call(json!({ "queries": ["find"], "name": "notes_find" }));
        let refused = within(call.into_future()).await.unwrap_err();
        assert_eq!(refused.to_string(), format!("there is no tool `{}`", tool.name()));
    }
    assert_eq!(calls(&folder), 0);
    within(host.shutdown()).await;
}

/// CALL-3: a call is refused if the part of the definition that was shown has changed.
#[tokio::test]
async fn changed_tool_is_not_called_before_it_is_shown_again() {
    let folder = Folder::new();
    define(&folder, "one");
    let host = host_of_notes(&folder, &json!({ "mode": "meta" }));
    let caller = host.for_caller(CallerSpec::default()).unwrap();
    let call = json!({ "name": "notes_find", "arguments": {} });
    let describe = json!({ "names": ["notes_find"] });
    search(&caller).await;
    // Another caller makes the host list the tools again.
    define(&folder, "two");
    search(&host.owner()).await;
    text(&caller, "trunkline_call", call.clone()).await;
    assert!(text(&caller, "trunkline_describe", describe.clone()).await.contains("two"));
    define(&folder, "three");
    search(&host.owner()).await;
    // A clone is the same caller, and a search shows only the beginning of the description.
    let again = caller.clone();
    search(&again).await;
    let errors = [
        again.call_tool("trunkline_call", call.clone()).await.unwrap_err(),
        again.call_tool("notes_find", json!({})).await.unwrap_err(),
        again.tool("notes_find").unwrap_err(),
        within(again.tool("trunkline_call").unwrap().target(call.clone())).await.unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("is not what was shown any more"), "{error}");
    }
    assert_eq!(calls(&folder), 1);
    text(&caller, "trunkline_describe", describe).await;
    text(&caller, "trunkline_call", call).await;
    within(host.shutdown()).await;
}

/// CALL-3: the same for a tool that was listed directly.
#[tokio::test]
async fn tool_that_changed_since_it_was_listed_is_not_called_through_a_meta_tool() {
    let folder = Folder::new();
    define(&folder, "one");
    let host = host_of_notes(&folder, &json!({ "mode": "auto" }));
    let caller = host.for_caller(CallerSpec::default()).unwrap();
    assert_eq!(names(&caller).await, ["notes_delete", "notes_find"]);
    define(&folder, "two");
    search(&caller).await;
    let call = json!({ "name": "notes_find" });
    let error = caller.call_tool("trunkline_call", call.clone()).await.unwrap_err();
    assert!(error.to_string().contains("is not what was shown any more"), "{error}");
    names(&caller).await;
    text(&caller, "trunkline_call", call).await;
    within(host.shutdown()).await;
}

/// Progress, server requests, timeouts and cancellation are those of a direct call.
#[tokio::test]
async fn call_through_a_meta_tool_has_the_options_of_a_direct_call() {
    for generation in ["legacy", "modern"] {
        let folder = Folder::new();
        let server = folder.server(generation, &json!({}));
        let host = host_with(&json!({ "mode": "meta", "mcpServers": { "s": server } }), &[]);
        let caller = host.owner();
        let call = |name: &str| {
            caller.call_tool("trunkline_call", json!({ "name": name, "arguments": {} }))
        };
        let steps = Mutex::new(Vec::new());
        let work = call("s_work").on_progress(|it| steps.lock().unwrap().push(it.progress));
        // The server has not been started: its tools are found by the call.
        assert_eq!(within(work.into_future()).await.unwrap().text(), "worked");
        assert_eq!(*steps.lock().unwrap(), [1.0, 2.0, 3.0]);
        let answer = json!({ "action": "accept", "content": { "n": 7 } });
        let handler = Caller::answering([("elicitation/create", answer)]);
        let asked = within(call("s_ask").handler(&handler).into_future()).await.unwrap();
        assert!(asked.text().contains("accept"), "{}", asked.text());
        let mut dropped = call("s_wait").into_future();
        tokio::select! {
            outcome = &mut dropped => panic!("{outcome:?}"),
            () = poll_until(async || folder.called("wait") == 1) => {}
        }
        drop(dropped);
        poll_until(async || folder.asked("notifications/cancelled") == 1).await;
        let late = call("s_wait").timeout(Duration::from_millis(50));
        let late = within(late.into_future()).await.unwrap_err();
        assert_eq!(late.kind(), CallErrorKind::Failed(ErrorKind::TimedOut));
        let view = caller.view().unwrap();
        assert!(view.entries(ItemKind::Tool).count() > 4);
        within(host.shutdown()).await;
    }
}
