//! A scripted server with a tool for each kind of behaviour.

use serde_json::{Value, json};
use trunkline_testkit::peers;

use super::client::{Asker, text};
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

/// Waits until the list that a tool returns contains a token.
pub(crate) async fn until_said(asker: &mut Asker, tool: &str, token: &str) {
    until(&format!("{tool} returns {token}"), async || {
        text(&asker.call(tool, json!({})).await).contains(token).then_some(())
    })
    .await;
}
