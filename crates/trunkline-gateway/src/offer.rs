//! What the gateway says about itself: what it can do, who it is, and what its servers want said.

use serde_json::{Value, json};
use trunkline::config::Trust;
use trunkline::host::Host;
use trunkline::message::Raw;
use trunkline::view::View;

use crate::asked::Client;
use crate::protocol::{TASKS, meta, supported};
use crate::servers::seen;

/// Characters of one server's instructions that are passed on.
const MAX_INSTRUCTIONS: usize = 16 * 1024;

/// Who we are.
pub(crate) fn server_info() -> Value {
    json!({ "name": "trunkline", "title": "Trunkline", "version": env!("CARGO_PKG_VERSION") })
}

/// The answer to `initialize`.
pub(crate) fn initialized(client: &Client, instructions: Option<String>) -> Raw {
    let mut result = json!({
        "protocolVersion": client.version,
        "capabilities": capabilities(),
        "serverInfo": server_info(),
    });
    if let Some(instructions) = instructions {
        result["instructions"] = instructions.into();
    }
    Raw::from_value(&result)
}

/// The answer to `server/discover`.
pub(crate) fn discovered(instructions: Option<String>) -> Raw {
    let mut capabilities = capabilities();
    capabilities["extensions"] = json!({ TASKS: {} });
    let mut result = json!({
        "resultType": "complete",
        "supportedVersions": supported(),
        "capabilities": capabilities,
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { meta::SERVER_INFO: server_info() },
    });
    if let Some(instructions) = instructions {
        result["instructions"] = instructions.into();
    }
    Raw::from_value(&result)
}

/// What can be done here, whoever of the servers is up: they come and go, and clients look at this
/// once.
fn capabilities() -> Value {
    json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "completions": {},
        "logging": {},
    })
}

/// What the servers of a view want their users to know, each under its name. Those that are not
/// trusted have no say in what a model is told.
pub(crate) fn instructions(host: &Host, view: &View) -> Option<String> {
    let mut merged = String::new();
    for connection in seen(host, view) {
        let server = connection.server();
        if server.trust == Trust::Untrusted {
            continue;
        }
        let instructions = connection.watch().borrow().instructions.clone();
        let Some(text) = instructions.as_ref().and_then(Raw::as_str) else { continue };
        let text: String = text.trim().chars().take(MAX_INSTRUCTIONS).collect();
        if !text.is_empty() {
            let gap = if merged.is_empty() { "" } else { "\n\n" };
            merged.push_str(&format!("{gap}## {}\n\n{text}", server.name));
        }
    }
    (!merged.is_empty()).then_some(merged)
}

/// What a gateway declares to the servers behind it: what clients may offer. Whether the client of
/// a call does is known only then; a question it cannot answer is refused with that reason.
pub fn client_capabilities() -> Raw {
    Raw::from_value(&json!({
        "elicitation": { "form": {}, "url": {} },
        "sampling": { "tools": {} },
        "roots": {},
    }))
}
