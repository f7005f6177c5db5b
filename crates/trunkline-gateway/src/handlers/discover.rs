//! Results of `initialize` and `server/discover`: capabilities, server info and merged
//! instructions.

use serde_json::{Value, json};
use trunkline::config::Trust;
use trunkline::host::{Host, WaitFor};
use trunkline::item::ItemKind;
use trunkline::message::{Raw, RpcError};
use trunkline::protocol::meta;
use trunkline::view::View;

use super::availability::visible_servers;
use super::gateway::Gateway;
use crate::client::caller::Caller;
use crate::request::errors::supported_versions;
use crate::request::incoming::ClientProfile;
use crate::request::translate::server_info;

/// Characters of one server's instructions that are included.
const MAX_INSTRUCTIONS: usize = 16 * 1024;

/// Limit in bytes on the instructions of all servers: clients put them into every conversation.
const MAX_INSTRUCTIONS_BYTES_OF_ALL: usize = 256 * 1024;

impl Gateway {
    /// The instructions of the servers that a caller sees, as far as they are known. Starts servers
    /// that do not run, without waiting for them (CON-15).
    pub(crate) async fn instructions(&self, caller: &Caller) -> Result<Option<String>, RpcError> {
        self.refresh_lists_with(&[ItemKind::Tool], WaitFor::NoWait).await;
        let view = self.view(caller)?;
        Ok(instructions(&self.host, &view))
    }
}

/// The result of `initialize`.
pub(crate) fn initialize_result(client: &ClientProfile, instructions: Option<String>) -> Raw {
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

/// The result of `server/discover`.
pub(crate) fn discover_result(instructions: Option<String>) -> Raw {
    let mut capabilities = capabilities();
    capabilities["extensions"] = json!({ meta::TASKS_EXTENSION: {} });
    let mut result = json!({
        "resultType": "complete",
        "supportedVersions": supported_versions(),
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

/// Capabilities of the gateway. They do not depend on the state of servers, because clients read
/// them only once.
fn capabilities() -> Value {
    json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "completions": {},
        "logging": {},
    })
}

/// Instructions of the servers in a view, each under the server's name. Those of untrusted servers
/// are left out, because a model would follow them.
fn instructions(host: &Host, view: &View) -> Option<String> {
    let (mut merged, mut left_out) = (String::new(), 0_usize);
    for connection in visible_servers(host, view) {
        let server = connection.server();
        if server.trust == Trust::Untrusted {
            continue;
        }
        let instructions = connection.watch().borrow().instructions.clone();
        let Some(text) = instructions.as_ref().and_then(Raw::as_str) else { continue };
        let Some(text) = truncated(text.trim()) else { continue };
        if merged.len() + text.len() > MAX_INSTRUCTIONS_BYTES_OF_ALL {
            left_out += 1;
            continue;
        }
        let gap = if merged.is_empty() { "" } else { "\n\n" };
        merged.push_str(&format!("{gap}## {}\n\n{text}", server.name));
    }
    if left_out > 0 {
        merged.push_str(&format!("\n\n[instructions of {left_out} more servers are left out]"));
    }
    (!merged.is_empty()).then_some(merged)
}

/// Truncates instructions to their limit, with a note on the rest; `None` if there are none.
fn truncated(text: &str) -> Option<String> {
    let mut rest = text.chars();
    let mut kept: String = rest.by_ref().take(MAX_INSTRUCTIONS).collect();
    let missing = rest.count();
    if missing > 0 {
        kept.push_str(&format!("\n[{missing} more characters of instructions are left out]"));
    }
    (!kept.is_empty()).then_some(kept)
}
