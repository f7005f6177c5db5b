//! A server that records the messages it receives.

use std::fs;

use serde_json::{Value, json};
use trunkline_testkit::peers;

use super::gateway::Folder;
use super::wait::until;

/// A server that records the messages it receives.
pub(crate) fn announcing(folder: &Folder) -> Value {
    json!({
        "command": peers::python(),
        "args": ["-I", peers::announcing_server(), folder.path(), "legacy"],
        "prefix": "",
        "access": "read-write",
    })
}

/// The first message of a method that a server receives, or has received.
pub(crate) async fn heard(folder: &Folder, method: &str) -> Value {
    let received = async || {
        let lines = fs::read_to_string(folder.path().join("heard")).unwrap_or_default();
        let whole = lines.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let mut messages = whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        messages.find(|it| it["method"] == method)
    };
    until(&format!("the server receives {method}"), received).await
}
