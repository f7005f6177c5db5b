//! The types of the control API. Field names are `camelCase` in JSON.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Names of conversations: neither blank nor with control characters, and no step in a path.
pub(crate) const CONVERSATION_PATTERN: &str =
    r"^(?!\.{1,2}$)(?=.*\S)[^\u0000-\u001f\u007f-\u009f]+$";

/// A configuration with its servers. `serve` has one; the service has one per directory of its clients.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// Names the project in addresses.
    pub id: String,
    /// Its directory.
    pub directory: String,
    /// Connected MCP clients, where connections are counted.
    pub clients: Option<usize>,
    /// Why the files on disk are not in force, if so.
    pub problem: Option<String>,
}

/// A server with its state (CON-11).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    /// Its project.
    pub project: String,
    /// Its name.
    pub name: String,
    /// `ready`, `starting`, `idle`, `failed`, `needs-login`, `disabled`, `not-trusted`, `stopped` ...
    pub state: String,
    /// `stdio`, `http`, `sse`; unknown if the entry has errors.
    pub transport: Option<String>,
    /// The negotiated protocol version.
    pub protocol: Option<String>,
    /// `shared`, `per-project` or `per-client`.
    pub share: Option<String>,
    /// Number of its tools; from the cache if it was not started.
    pub tools: Option<usize>,
    /// The last error.
    pub error: Option<String>,
    /// Advice.
    pub hint: Option<String>,
    /// The last lines on standard error.
    pub stderr: Vec<String>,
    /// Its process.
    pub pid: Option<u32>,
    /// How long it has been ready.
    pub uptime_ms: Option<u64>,
    /// Calls since the program started.
    pub calls: u64,
    /// Calls without a response.
    pub failures: u64,
    /// Consecutive restarts.
    pub restarts: u32,
    /// When it is started again.
    pub next_attempt_ms: Option<u64>,
    /// Whether it can be started, stopped and restarted.
    pub is_startable: bool,
}

/// A tool of a server, also one that is hidden.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Its project.
    pub project: String,
    /// Its server.
    pub server: String,
    /// The name that clients see.
    pub name: String,
    /// Its title.
    pub title: Option<String>,
    /// Its description, as the server wrote it.
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The claims of the server about it; not verified.
    pub annotations: Option<Value>,
    /// Names this definition. A call that has it fails if the tool is another by then.
    pub definition: String,
    /// Tokens of its definition in the context of a model.
    pub tokens: Option<usize>,
    /// Whether callers see it.
    pub is_visible: bool,
    /// Why it is hidden: one line per rule, with the change that shows it.
    pub reasons: Vec<HiddenReason>,
}

/// Why a tool is hidden.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HiddenReason {
    /// The rule: `trust`, `access`, `conversation`, ...
    pub rule: String,
    /// Why it is hidden.
    pub reason: String,
    /// The change that shows the tool.
    pub remedy: Option<String>,
}

/// A finished request of a client.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// Its number.
    pub id: u64,
    /// RFC 3339, UTC.
    pub time: String,
    /// Its project.
    pub project: String,
    /// Name and version of the client.
    pub client: Option<String>,
    /// The token it used.
    pub principal: Option<String>,
    /// The conversation of the client.
    pub conversation: Option<String>,
    /// `tools/call`, `prompts/get`, `resources/read`, ...
    pub method: String,
    /// The tool, prompt or resource.
    pub name: Option<String>,
    /// Its server.
    pub server: Option<String>,
    /// From request to response.
    pub duration_ms: f64,
    /// `ok`, `tool_error`, `rpc_error`, `timeout`, `cancelled`, `unavailable`, `denied`
    pub outcome: String,
    /// The code of a JSON-RPC error.
    pub code: Option<i64>,
    /// Only with `audit.payloads`.
    pub arguments: Option<Value>,
    /// The result.
    pub result: Option<Value>,
}

/// The result of a tool call that was made through the API.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallResult {
    /// The arguments exactly as they were sent.
    pub sent: Value,
    /// The `tools/call` result as MCP defines it: `content` blocks (text, image, audio, resource_link,
    /// resource), `structuredContent`, `isError`.
    pub result: Option<Value>,
    /// Why there is no result.
    pub error: Option<String>,
    /// From request to response.
    pub duration_ms: f64,
}

/// The toggles of a conversation; `true` and missing are on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    /// Its project.
    pub project: String,
    /// The name that clients give it. Empty for the toggles of the whole project.
    pub name: String,
    /// Servers by name.
    pub servers: BTreeMap<String, bool>,
    /// Tools by the names that clients see.
    pub tools: BTreeMap<String, bool>,
    /// Prompts by the names that clients see.
    pub prompts: BTreeMap<String, bool>,
}

/// A configuration file whose servers are not started before the user decides.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustRequest {
    /// Names the file with its content in addresses: a changed file has another one.
    pub id: String,
    /// Its project.
    pub project: String,
    /// Its path.
    pub file: String,
    /// `pending` or `blocked`
    pub state: String,
    /// The exact command or URL of each server.
    pub servers: Vec<TrustedServer>,
    /// The command that decides the same on the command line.
    pub command: String,
}

/// A server of a file that waits for a decision.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustedServer {
    /// Its name.
    pub name: String,
    /// The command line, or the URL.
    pub runs: String,
}

/// One page of a list.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// The `cursor` of the next page; missing on the last one.
    pub next: Option<String>,
}

/// The running program.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Program {
    /// Its version.
    pub version: String,
    /// Its process ID.
    pub pid: u32,
    /// How long it has been running.
    pub uptime_ms: u64,
    /// The newest event, to continue the event stream from.
    pub last_event: u64,
}

/// Arguments of a tool call.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallRequest {
    /// The arguments: an object.
    #[serde(default)]
    pub arguments: serde_json::Map<String, Value>,
    /// The `definition` of the tool that was shown: another one is not called.
    #[serde(default)]
    pub definition: Option<String>,
    /// The conversation in which the call is made.
    #[serde(default)]
    #[schemars(extend("pattern" = CONVERSATION_PATTERN))]
    pub conversation: Option<String>,
}

/// Changes of toggles: `true` is on, `false` is off, and `null` forgets the toggle.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToggleChanges {
    /// Servers by name.
    #[serde(default)]
    pub servers: BTreeMap<String, Option<bool>>,
    /// Tools by the names that clients see.
    #[serde(default)]
    pub tools: BTreeMap<String, Option<bool>>,
    /// Prompts by the names that clients see.
    #[serde(default)]
    pub prompts: BTreeMap<String, Option<bool>>,
}

/// Lines of a log, the oldest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogLines {
    /// The lines.
    pub lines: Vec<String>,
}

/// An error, as RFC 9457 defines it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// The kind of error.
    pub title: String,
    /// The reason, and advice.
    pub detail: String,
}

/// A change, as the event stream reports it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The number of the event.
    pub id: u64,
    /// `servers`, `tools`, `calls`, `conversations` or `trust`
    pub kind: String,
    /// The servers or calls that changed; empty for other kinds, and if there are too many.
    pub items: Vec<Value>,
}

/// A link that opens the page once.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoginLink {
    /// The link.
    pub url: String,
    /// How long it can be used.
    pub expires_in_seconds: u64,
}
