//! A test server with results from files.

use std::fs;

use serde_json::{Value, json};
use trunkline_testkit::peers;

use crate::support::gateway::Folder;

/// The entry of a server that responds with the files of a directory.
pub(crate) fn canned(folder: &Folder, generation: &str) -> Value {
    json!({
        "command": peers::python(),
        "args": ["-I", peers::canned_server(), folder.text(), generation],
        "timeouts": { "shutdown": "1s" },
    })
}

/// All messages that the server of a directory has received.
pub(crate) fn heard(folder: &Folder) -> Vec<Value> {
    let lines = fs::read_to_string(folder.path().join("heard")).unwrap_or_default();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The messages of one method that the server of a directory has received.
pub(crate) fn heard_of(folder: &Folder, method: &str) -> Vec<Value> {
    heard(folder).into_iter().filter(|message| message["method"] == method).collect()
}
