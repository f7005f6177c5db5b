//! A directory whose files control test servers, and connections to these servers.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{advance, pause, resume, sleep, timeout};
use trunkline::config::{self, Config, EmptyResolver};
use trunkline::connection::{
    CallHandler, ChildOptions, Connection, ConnectionOptions, HandlerFuture, HttpOptions,
    OutgoingRequest, RequestError, ServerRequest, State, Status,
};
use trunkline::message::{Notification, Raw, RpcError};
use trunkline_testkit::peers;

/// Time limit for all waits, far above their usual duration.
const LONGEST: Duration = Duration::from_secs(60);

/// How long the disk is busy after a connection was told to close. No event can replace this wait:
/// nothing outside of the connection shows that it waits for the disk.
pub(crate) const BUSY_DISK: Duration = Duration::from_millis(200);

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The most steps of [`pass_time_until_state`], and the wait for events after each.
const STEPS: u32 = 120;
const STEP_WAIT: Duration = Duration::from_millis(500);

/// A directory that is removed on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("trunkline-lively-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.0.join(name)).unwrap();
    }

    /// The number of lines of a file.
    pub(crate) fn lines(&self, name: &str) -> usize {
        fs::read_to_string(self.0.join(name)).map_or(0, |text| text.lines().count())
    }

    /// The number of starts of servers in this directory.
    pub(crate) fn starts(&self) -> usize {
        self.lines("starts")
    }

    /// The number of requests with a method.
    pub(crate) fn asked(&self, method: &str) -> usize {
        let text = fs::read_to_string(self.0.join("asked")).unwrap_or_default();
        text.lines().filter(|line| *line == method).count()
    }

    /// The number of calls of a tool.
    pub(crate) fn called(&self, tool: &str) -> usize {
        let text = fs::read_to_string(self.0.join("called")).unwrap_or_default();
        text.lines().filter(|line| *line == tool).count()
    }

    /// The entry of a server of an era, with additional keys.
    pub(crate) fn server(&self, generation: &str, more: &Value) -> Value {
        let mut entry = json!({
            "command": peers::python(),
            "args": ["-I", peers::lively_server(), self.0, generation],
            "timeouts": { "shutdown": "1s" },
        });
        for (key, value) in more.as_object().unwrap() {
            entry[key] = value.clone();
        }
        entry
    }

    /// A connection to such a server.
    pub(crate) fn connection(&self, generation: &str, more: &Value) -> Connection {
        self.connection_with(options(), generation, more)
    }

    pub(crate) fn connection_with(
        &self,
        options: ConnectionOptions,
        generation: &str,
        more: &Value,
    ) -> Connection {
        let config = config(&json!({ "s": self.server(generation, more) }));
        Connection::new(config.server("s").unwrap().clone(), options)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A configuration with these servers.
pub(crate) fn config(servers: &Value) -> Config {
    let loaded = config::parse("test", json!({ "mcpServers": servers }).to_string());
    assert!(!loaded.has_errors(false), "{:?}", loaded.diagnostics);
    loaded.config
}

pub(crate) fn options() -> ConnectionOptions {
    let child = ChildOptions::from_environment(std::env::vars_os());
    let capabilities = Raw::from_value(&json!({ "elicitation": {} }));
    ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default())
        .with_capabilities(capabilities)
}

pub(crate) fn params(tool: &str, arguments: &Value) -> Option<Raw> {
    Some(Raw::from_value(&json!({ "name": tool, "arguments": arguments })))
}

/// Calls a tool and returns the text of its result.
pub(crate) async fn call(connection: &Connection, tool: &str) -> String {
    let answer = connection.request("tools/call", params(tool, &json!({})));
    text_of(&within(answer).await.unwrap())
}

pub(crate) fn text_of(result: &Raw) -> String {
    result.to_value()["content"][0]["text"].as_str().unwrap().to_owned()
}

pub(crate) fn tool_names(connection: &Connection) -> Vec<String> {
    connection.tools().iter().map(|tool| tool.name().to_owned()).collect()
}

/// Waits until the status meets a condition.
pub(crate) async fn until(connection: &Connection, is_so: impl FnMut(&Status) -> bool) -> Status {
    let mut watch = connection.watch();
    within(watch.wait_for(is_so)).await.unwrap().clone()
}

pub(crate) async fn until_state(connection: &Connection, state: State) -> Status {
    until(connection, |status| status.state == state).await
}

/// Awaits a future, with a time limit.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(LONGEST, future).await.expect("it takes too long")
}

/// Lets time pass for connections without waiting for it. Server processes notice nothing.
pub(crate) async fn pass_time(duration: Duration) {
    pause();
    advance(duration).await;
    resume();
}

/// Lets time pass in steps until a connection has this state. One step does not suffice while the
/// server has yet to answer, since its idle time begins with its last answer.
pub(crate) async fn pass_time_until_state(connection: &Connection, step: Duration, state: State) {
    let mut watch = connection.watch();
    for _ in 0..STEPS {
        pass_time(step).await;
        if timeout(STEP_WAIT, watch.wait_for(|status| status.state == state)).await.is_ok() {
            return;
        }
    }
    panic!("still {:?} after {STEPS} steps of {step:?}", connection.status().state);
}

/// Polls until a condition without a signal of its own is met.
pub(crate) async fn poll_until(mut is_so: impl AsyncFnMut() -> bool) {
    let polling = async {
        while !is_so().await {
            sleep(POLL_INTERVAL).await;
        }
    };
    within(polling).await;
}

/// A handler that records notifications, and responds with a prepared value.
#[derive(Default)]
pub(crate) struct Attentive {
    pub(crate) told: std::sync::Mutex<Vec<Notification>>,
    pub(crate) answer: Option<Value>,
}

impl CallHandler for Attentive {
    fn on_notification(&self, notification: &Notification) {
        self.told.lock().unwrap().push(notification.clone());
    }

    fn on_server_request(&self, question: ServerRequest) -> HandlerFuture<'_> {
        assert_eq!(&*question.method, "elicitation/create");
        let answer = self.answer.as_ref().map(Raw::from_value);
        Box::pin(async move { answer.ok_or_else(|| RpcError::new(-1, "I do not say")) })
    }
}

/// Calls a tool with a handler.
pub(crate) async fn converse(
    connection: &Connection,
    tool: &str,
    caller: &dyn CallHandler,
) -> Result<Raw, RequestError> {
    let ask = OutgoingRequest::new("tools/call", params(tool, &json!({})));
    within(connection.request_with(ask, caller)).await
}
