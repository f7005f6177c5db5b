//! Request handling of the demo servers, without a transport: one message in, at most one response
//! out.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use trunkline::message::{Id, Message, Raw, RpcError};
use trunkline::protocol::{Era, meta};

use super::{DemoServer, tools};
use crate::request::errors::{
    error_message, invalid, not_rpc, require_modern, response, supported_versions, unknown_method,
};
use crate::request::incoming::{ClientProfile, IncomingRequest, claims_modern};
use crate::request::malformed;

/// `ttlMs` of lists and of `server/discover`: neither changes while the server runs, but the next
/// process may be another version.
const FRESH_FOR: u64 = 60_000;

/// Parses one message from a line or a body. The error has the request ID if it could be read.
/// `None` is a notification, or a response to a request we never sent: neither gets a response.
pub(super) fn read(bytes: &Bytes) -> Result<Option<Box<IncomingRequest>>, (Option<Id>, RpcError)> {
    let read = Message::read(bytes);
    let read = read.map_err(|problem| malformed::parse_error(bytes, problem))?;
    let request = match read {
        Message::Request(request) => Some(request),
        Message::Notification(_) | Message::Response(_) => None,
    };
    let version = Raw::read(bytes).ok().and_then(|raw| raw.get("jsonrpc"));
    if version.as_ref().and_then(Raw::as_str).as_deref() != Some("2.0") {
        let id = request.map(|request| request.id);
        return Err((id, not_rpc("`jsonrpc` must be \"2.0\"")));
    }
    let Some(request) = request else { return Ok(None) };
    let incoming = IncomingRequest::of(request);
    match incoming.params.is_object() {
        true => Ok(Some(incoming)),
        false => Err((Some(incoming.id), invalid("`params` must be an object"))),
    }
}

pub(super) fn answer(server: DemoServer, bytes: &Bytes) -> Option<Bytes> {
    match read(bytes) {
        Ok(Some(incoming)) => {
            let outcome = era(&incoming).and_then(|era| dispatch(server, era, &incoming));
            Some(response(&incoming.id, outcome))
        }
        Ok(None) => None,
        Err((id, error)) => Some(error_message(id.as_ref(), &error)),
    }
}

/// The era of a request, by its body.
fn era(incoming: &IncomingRequest) -> Result<Era, RpcError> {
    if !claims_modern(incoming) {
        return Ok(Era::Legacy);
    }
    require_modern(&ClientProfile::of_request(&incoming.meta)?.version)?;
    Ok(Era::Modern)
}

/// Handles a request of the given era.
pub(super) fn dispatch(
    server: DemoServer,
    era: Era,
    incoming: &IncomingRequest,
) -> Result<Raw, RpcError> {
    let result = match era {
        Era::Legacy => dispatch_legacy(server, incoming)?,
        Era::Modern => complete(server, dispatch_modern(server, incoming)?),
    };
    Ok(Raw::from_value(&result))
}

fn dispatch_legacy(server: DemoServer, incoming: &IncomingRequest) -> Result<Value, RpcError> {
    match &*incoming.method {
        "initialize" => initialize(server, incoming),
        "ping" => Ok(json!({})),
        "tools/list" => list_tools(server, incoming),
        "tools/call" => call_tool(server, incoming),
        _ => Err(unknown_method(&incoming.method)),
    }
}

fn dispatch_modern(server: DemoServer, incoming: &IncomingRequest) -> Result<Value, RpcError> {
    match &*incoming.method {
        "server/discover" => Ok(cacheable(discover(server))),
        "tools/list" => list_tools(server, incoming).map(cacheable),
        "tools/call" => call_tool(server, incoming),
        _ => Err(unknown_method(&incoming.method)),
    }
}

fn initialize(server: DemoServer, incoming: &IncomingRequest) -> Result<Value, RpcError> {
    Ok(json!({
        "protocolVersion": ClientProfile::of_initialize(&incoming.params)?.version,
        "capabilities": { "tools": {} },
        "serverInfo": server_info(server),
        "instructions": instructions(server),
    }))
}

fn discover(server: DemoServer) -> Value {
    json!({
        "supportedVersions": supported_versions(),
        "capabilities": { "tools": {} },
        "instructions": instructions(server),
    })
}

fn list_tools(server: DemoServer, incoming: &IncomingRequest) -> Result<Value, RpcError> {
    // The list has one page, so no cursor is valid.
    if let Some(cursor) = incoming.params.get("cursor").filter(|cursor| !cursor.is_null()) {
        return Err(invalid(&format!("unknown cursor {cursor}")));
    }
    let tools: Vec<Value> = tools::all(server).iter().map(tools::Tool::description).collect();
    Ok(json!({ "tools": tools }))
}

fn call_tool(server: DemoServer, incoming: &IncomingRequest) -> Result<Value, RpcError> {
    let name = incoming.subject().ok_or_else(|| invalid("`name` must be a string"))?;
    let tool = tools::find(server, &name);
    let tool = tool.ok_or_else(|| invalid(&format!("unknown tool {name:?}")))?;
    let arguments = match incoming.params.get("arguments").map(|arguments| arguments.to_value()) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(invalid("`arguments` must be an object")),
    };
    Ok(tool.call(arguments))
}

/// Adds the members that every modern result has.
fn complete(server: DemoServer, mut result: Value) -> Value {
    result["resultType"] = "complete".into();
    result["_meta"] = json!({ meta::SERVER_INFO: server_info(server) });
    result
}

/// Adds the members of modern results that all clients may cache.
fn cacheable(mut result: Value) -> Value {
    result["ttlMs"] = FRESH_FOR.into();
    result["cacheScope"] = "public".into();
    result
}

fn server_info(server: DemoServer) -> Value {
    let (name, title) = match server {
        DemoServer::Words => ("trunkline-demo-words", "Trunkline demo: words"),
        DemoServer::Numbers => ("trunkline-demo-numbers", "Trunkline demo: numbers"),
    };
    json!({ "name": name, "title": title, "version": env!("CARGO_PKG_VERSION") })
}

fn instructions(server: DemoServer) -> &'static str {
    match server {
        DemoServer::Words => "Count the words of a text, shout it, or keep it for later.",
        DemoServer::Numbers => "Add numbers, roll a die, or convert a temperature.",
    }
}
