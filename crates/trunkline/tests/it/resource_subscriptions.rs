//! Resource subscriptions in both eras: subscribed once, cancelled, and renewed.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use trunkline::connection::{
    Connection, ConnectionOptions, LogLevel, ResourceSubscription, ServerNotification, State,
};
use trunkline::error::ErrorKind;
use trunkline::message::Raw;
use trunkline::principal::Requester;
use trunkline_testkit::peers;

use crate::support::file_driven_server::{
    Folder, call, config, options, params, pass_time, pass_time_until_state, poll_until, within,
};

/// Connects to a server that announces changes of its resources.
pub(crate) fn announcing(
    folder: &Folder,
    options: ConnectionOptions,
    generation: &str,
    more: &Value,
) -> Connection {
    let mut entry = json!({
        "command": peers::python(),
        "args": ["-I", peers::announcing_server(), folder.path(), generation],
        "timeouts": { "shutdown": "1s" },
    });
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    let config = config(&json!({ "s": entry }));
    Connection::new(config.server("s").unwrap().clone(), options)
}

/// The parameters of all messages with a method that the server received, in order.
pub(crate) fn heard(folder: &Folder, method: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.path().join("heard")).unwrap_or_default();
    let messages = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages
        .filter(|message| message["method"] == method)
        .map(|message| message["params"].clone())
        .collect()
}

async fn held(connection: &Connection, uri: &str) -> ResourceSubscription {
    within(connection.subscribe(uri)).await.unwrap()
}

/// Waits until the server reports these subscriptions.
async fn until_watched(connection: &Connection, expected: &str) {
    poll_until(async || call(connection, "watched").await == expected).await;
}

async fn touch(connection: &Connection, uri: &str) {
    let touching = connection.request("tools/call", params("touch", &json!({ "uri": uri })));
    within(touching).await.unwrap();
}

/// The URI of the next resource update notification.
async fn updated(notifications: &mut broadcast::Receiver<Arc<ServerNotification>>) -> String {
    loop {
        let told = &within(notifications.recv()).await.unwrap().notification;
        if &*told.method == "notifications/resources/updated" {
            return told
                .params
                .as_ref()
                .unwrap()
                .get("uri")
                .unwrap()
                .as_str()
                .unwrap()
                .into_owned();
        }
    }
}

#[tokio::test]
async fn resource_is_subscribed_while_a_handle_exists() {
    for generation in ["legacy", "modern"] {
        let folder = Folder::new();
        let connection = announcing(&folder, options(), generation, &json!({}));
        let mut notifications = connection.notifications();
        let (first, second) = (held(&connection, "a:1").await, held(&connection, "a:1").await);
        let other = held(&connection, "a:2").await;
        assert_eq!((first.uri(), other.uri()), ("a:1", "a:2"));
        for uri in ["a:1", "a:3", "a:2"] {
            touch(&connection, uri).await;
        }
        assert_eq!(updated(&mut notifications).await, "a:1");
        assert_eq!(updated(&mut notifications).await, "a:2", "{generation}");
        drop((first, other));
        until_watched(&connection, "a:1").await;
        drop(second);
        until_watched(&connection, "").await;
        if generation == "legacy" {
            let asked = |method| heard(&folder, method).len();
            assert_eq!((asked("resources/subscribe"), asked("resources/unsubscribe")), (2, 2));
        }
        assert_eq!(connection.status().noise, 0);
        within(connection.close()).await;
    }
}

#[tokio::test]
async fn many_wishes_become_few_requests_of_a_modern_server() {
    let folder = Folder::new();
    let connection = announcing(&folder, options(), "modern", &json!({}));
    within(connection.connect()).await.unwrap();
    let uris: Vec<_> = (0..100).map(|number| format!("a:{number:02}")).collect();
    let all = join_all(uris.iter().map(|uri| connection.subscribe(uri)));
    let mut all: Vec<_> = within(all).await.into_iter().map(|it| it.unwrap()).collect();
    let listens = heard(&folder, "subscriptions/listen").len();
    assert!(listens <= 4, "{listens}");
    let last = all.pop().unwrap();
    drop(all);
    until_watched(&connection, last.uri()).await;
    let listens = heard(&folder, "subscriptions/listen").len();
    assert!(listens <= 8, "{listens}");
    within(connection.close()).await;
}

#[tokio::test]
async fn refused_subscription_returns_the_error() {
    for (generation, file) in [("legacy", "x"), ("modern", "x"), ("modern", "strict")] {
        let folder = Folder::new();
        folder.write(file, "");
        let connection = announcing(&folder, options(), generation, &json!({}));
        let good = held(&connection, "a:1").await;
        let error = within(connection.subscribe("bad:1")).await.unwrap_err();
        assert_eq!(error.refusal().unwrap().code(), -32602, "{generation} {file}");
        let other = held(&connection, "a:2").await;
        until_watched(&connection, "a:1 a:2").await;
        drop((good, other));
        until_watched(&connection, "").await;
        within(connection.close()).await;
    }
}

/// Methods without a declared capability are not requested.
#[tokio::test]
async fn legacy_server_without_subscribe_gets_no_request() {
    let folder = Folder::new();
    folder.write("plain", "");
    let connection = announcing(&folder, options(), "legacy", &json!({}));
    connection.set_log_level(LogLevel::Debug);
    let error = within(connection.subscribe("a:1")).await.unwrap_err();
    let error = error.refusal().unwrap();
    assert_eq!(error.code(), -32601);
    assert!(error.message().contains("resources.subscribe"), "{}", error.message());
    assert!(heard(&folder, "resources/subscribe").is_empty());
    assert!(heard(&folder, "logging/setLevel").is_empty());
    within(connection.close()).await;
}

#[tokio::test]
async fn subscriptions_are_renewed_after_a_restart() {
    let restart = json!({ "restart": { "policy": "on-failure", "delay": "10ms" } });
    for generation in ["legacy", "modern"] {
        let folder = Folder::new();
        let connection = announcing(&folder, options(), generation, &restart);
        let (_one, _two) = (held(&connection, "a:1").await, held(&connection, "a:2").await);
        let died = within(connection.request("tools/call", params("die", &json!({})))).await;
        assert_eq!(died.unwrap_err().failure().unwrap().kind(), ErrorKind::Exited);
        until_watched(&connection, "a:1 a:2").await;
        let mut notifications = connection.notifications();
        touch(&connection, "a:2").await;
        assert_eq!(updated(&mut notifications).await, "a:2");
        within(connection.close()).await;
    }
}

#[tokio::test]
async fn a_subscription_that_the_server_ends_is_made_again() {
    let folder = Folder::new();
    let connection = announcing(&folder, options(), "modern", &json!({}));
    let _one = held(&connection, "a:1").await;
    assert_eq!(call(&connection, "break").await, "broken");
    until_watched(&connection, "a:1").await;
    within(connection.close()).await;
}

#[tokio::test]
async fn missing_acknowledgement_blocks_no_subscriber() {
    let folder = Folder::new();
    folder.write("silent", "");
    let connection = announcing(&folder, options(), "modern", &json!({}));
    let error = within(connection.subscribe("a:1")).await.unwrap_err();
    let error = error.refusal().unwrap();
    assert!(error.message().contains("acknowledge"), "{}", error.message());
    folder.remove("silent");
    held(&connection, "a:1").await;
    within(connection.close()).await;
}

/// CON-14: a server with subscriptions is in use.
#[tokio::test]
async fn a_server_that_is_watched_is_not_idle() {
    for generation in ["legacy", "modern"] {
        let folder = Folder::new();
        let idle = json!({ "idleTimeout": "10m" });
        let connection = announcing(&folder, options(), generation, &idle);
        let watching = held(&connection, "a:1").await;
        let process = connection.status().process_id;
        pass_time(Duration::from_secs(11 * 60)).await;
        // An answer of any kind shows that all earlier events were handled.
        let _ = within(connection.request("ping", None)).await;
        assert_eq!(connection.status().process_id, process, "{generation}");
        drop(watching);
        until_watched(&connection, "").await;
        pass_time_until_state(&connection, Duration::from_secs(11 * 60), State::Idle).await;
        within(connection.close()).await;
    }
}

/// A dropped request leaves no subscription.
#[tokio::test]
async fn a_wish_that_is_given_up_is_taken_back() {
    let folder = Folder::new();
    let connection = announcing(&folder, options(), "legacy", &json!({}));
    within(connection.connect()).await.unwrap();
    tokio::select! {
        biased;
        _ = connection.subscribe("a:1") => panic!("nothing is that fast"),
        () = tokio::task::yield_now() => {}
    }
    until_watched(&connection, "").await;
    let asked = |method| heard(&folder, method).len();
    assert_eq!(asked("resources/subscribe"), asked("resources/unsubscribe"));
    within(connection.close()).await;
}

#[tokio::test]
async fn log_level_is_the_most_verbose_requested() {
    let folder = Folder::new();
    let restart = json!({ "restart": { "policy": "on-failure", "delay": "10ms" } });
    let connection = announcing(&folder, options(), "legacy", &restart);
    connection.set_log_level(LogLevel::Warning);
    assert_eq!(connection.status().state, State::Idle, "it is not needed for that");
    call(&connection, "watched").await;
    for level in [LogLevel::Error, LogLevel::Info, LogLevel::Notice] {
        connection.set_log_level(level);
        call(&connection, "watched").await;
        call(&connection, "watched").await;
    }
    let levels = || -> Vec<_> {
        let heard = heard(&folder, "logging/setLevel");
        heard.iter().map(|params| params["level"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(levels(), ["warning", "info"]);
    let _ = within(connection.request("tools/call", params("die", &json!({})))).await;
    call(&connection, "watched").await;
    assert_eq!(levels(), ["warning", "info", "info"]);
    within(connection.close()).await;
    let modern = announcing(&folder, options(), "modern", &json!({}));
    modern.set_log_level(LogLevel::Debug);
    call(&modern, "watched").await;
    assert_eq!(levels().len(), 3);
    within(modern.close()).await;
}

/// The reference server announces changes of subscribed resources.
#[tokio::test]
async fn the_reference_server_is_subscribed_to() {
    let package = "@modelcontextprotocol/server-everything/dist/index.js";
    let script = peers::node_modules().join(package);
    let config = config(&json!({ "s": { "command": "node", "args": [script, "stdio"] } }));
    let connection = Connection::new(config.server("s").unwrap().clone(), options());
    let mut notifications = connection.notifications();
    let uri = "demo://resource/dynamic/text/1";
    let watching = held(&connection, uri).await;
    let toggle =
        Some(Raw::from_value(&json!({ "name": "toggle-subscriber-updates", "arguments": {} })));
    within(connection.request("tools/call", toggle)).await.unwrap();
    assert_eq!(updated(&mut notifications).await, uri);
    drop(watching);
    within(connection.close()).await;
}

/// Makes the server send the status of a task.
async fn advance(connection: &Connection, task: &str, status: &str) {
    let arguments = json!({ "task": task, "status": status });
    within(connection.request("tools/call", params("advance", &arguments))).await.unwrap();
}

#[tokio::test]
async fn task_is_subscribed_while_a_handle_exists() {
    let folder = Folder::new();
    let connection = announcing(&folder, options(), "modern", &json!({}));
    let mut notifications = connection.notifications();
    let resource = held(&connection, "a:1").await;
    let task = within(connection.subscribe_to_task(&Requester::default(), "task-1")).await.unwrap();
    assert_eq!(task.id(), "task-1");
    let unknown =
        within(connection.subscribe_to_task(&Requester::default(), "other")).await.unwrap_err();
    assert!(unknown.refusal().is_some());
    advance(&connection, "task-1", "working").await;
    advance(&connection, "task-2", "working").await;
    touch(&connection, "a:1").await;
    let told = &within(notifications.recv()).await.unwrap().notification;
    assert_eq!(&*told.method, "notifications/tasks");
    let said = told.params.as_ref().unwrap().to_value();
    assert_eq!((&said["taskId"], &said["status"]), (&json!("task-1"), &json!("working")));
    assert_eq!(updated(&mut notifications).await, "a:1", "both are heard of at the same time");
    let asked = heard(&folder, "subscriptions/listen");
    let with_task = asked.iter().find(|it| it["notifications"].get("taskIds").is_some()).unwrap();
    assert_eq!(with_task["notifications"]["resourceSubscriptions"], json!(["a:1"]));
    let declared = &with_task["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert!(declared["elicitation"].is_object(), "what else is declared stays: {declared}");
    drop(task);
    let has_task = |it: &Value| it["notifications"].get("taskIds").is_some();
    poll_until(async || {
        heard(&folder, "subscriptions/listen").last().is_some_and(|it| !has_task(it))
    })
    .await;
    drop(resource);
    within(connection.close()).await;
}

#[tokio::test]
async fn a_legacy_server_does_not_speak_of_tasks() {
    let folder = Folder::new();
    let connection = announcing(&folder, options(), "legacy", &json!({}));
    let refused =
        within(connection.subscribe_to_task(&Requester::default(), "task-1")).await.unwrap_err();
    assert_eq!(refused.refusal().unwrap().code(), -32601);
    within(connection.close()).await;
}
