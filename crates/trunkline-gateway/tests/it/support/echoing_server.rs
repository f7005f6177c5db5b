//! A scripted server with a tool for each kind of behaviour.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use trunkline_testkit::peers;

use super::client::{TestClient, text};
use super::gateway::Folder;
use super::wait::until;

/// A server with tools for all kinds of behaviour.
pub(crate) fn echoing(generation: &str) -> Value {
    json!({
        "command": peers::python(),
        "args": ["-I", peers::echoing_server(), generation],
        "prefix": "",
        "timeouts": { "call": "10m", "shutdown": "1s" },
    })
}

/// A file that an echoing server waits for, in place of a time: its path is the `wait` of a call.
pub(crate) struct Gate(Folder);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Folder::new())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("open")
    }

    /// Lets the server go on.
    pub(crate) fn open(&self) {
        self.0.write("open", "");
    }
}

/// Waits until the list that a tool returns contains a token.
pub(crate) async fn until_said(client: &mut TestClient, tool: &str, token: &str) {
    until(&format!("{tool} returns {token}"), async || {
        text(&client.call(tool, json!({})).await).contains(token).then_some(())
    })
    .await;
}

/// The responses that an echoing server has received to its own requests. A test that waits for one
/// here makes no call, which could become the recipient of the request.
pub(crate) struct AnswerLog(Folder);

impl AnswerLog {
    pub(crate) fn new() -> Self {
        Self(Folder::new())
    }

    /// The entry of a legacy server that writes this log.
    pub(crate) fn server(&self) -> Value {
        let mut entry = echoing("legacy");
        entry["env"] = json!({ "ANSWERED": self.path() });
        entry
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("answered")
    }

    /// Waits until the server has received this many responses.
    pub(crate) async fn until_answered(&self, count: usize) {
        until(&format!("the server has {count} responses"), async || {
            let lines = fs::read_to_string(self.path()).unwrap_or_default();
            (lines.matches('\n').count() >= count).then_some(())
        })
        .await;
    }
}
