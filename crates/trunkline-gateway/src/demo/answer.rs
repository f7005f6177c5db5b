//! The servers without a wire: one message in, at most one answer out.

use serde_json::{Map, Value, json};

use super::DemoServer;
use super::message::{self, Code, Failure, Message, Request};
use super::protocol::{self, Era};
use super::tools;

/// How long a client may keep what it was told, in milliseconds: nothing of it changes while the
/// server runs, but the next one to run may be another version.
const FRESH_FOR: u64 = 60_000;

pub(super) fn answer(server: DemoServer, message: &str) -> Option<String> {
    answer_bytes(server, message.as_bytes())
}

pub(super) fn answer_bytes(server: DemoServer, message: &[u8]) -> Option<String> {
    match message::parse(message) {
        Ok(Message::Request(request)) => {
            let outcome = protocol::admit(&request).and_then(|era| dispatch(server, era, &request));
            Some(message::reply(Some(&request.id), outcome))
        }
        Ok(Message::Silent) => None,
        Err(refusal) => Some(message::reply(refusal.id.as_ref(), Err(refusal.failure))),
    }
}

/// Answers a request whose generation was decided.
pub(super) fn dispatch(server: DemoServer, era: Era, request: &Request) -> Result<Value, Failure> {
    match era {
        Era::Legacy => dispatch_legacy(server, request),
        Era::Modern => dispatch_modern(server, request).map(|result| complete(server, result)),
    }
}

fn dispatch_legacy(server: DemoServer, request: &Request) -> Result<Value, Failure> {
    match &*request.method {
        "initialize" => Ok(initialize(server, request)),
        "ping" => Ok(json!({})),
        "tools/list" => list_tools(server, request),
        "tools/call" => call_tool(server, request),
        _ => Err(unknown_method(request)),
    }
}

fn dispatch_modern(server: DemoServer, request: &Request) -> Result<Value, Failure> {
    match &*request.method {
        "server/discover" => Ok(cacheable(discover(server))),
        "tools/list" => list_tools(server, request).map(cacheable),
        "tools/call" => call_tool(server, request),
        _ => Err(unknown_method(request)),
    }
}

fn unknown_method(request: &Request) -> Failure {
    Failure::new(Code::MethodNotFound, format!("unknown method {:?}", request.method))
}

fn initialize(server: DemoServer, request: &Request) -> Value {
    let requested = request.params.get("protocolVersion").and_then(Value::as_str);
    json!({
        "protocolVersion": protocol::negotiate(requested),
        "capabilities": { "tools": {} },
        "serverInfo": server_info(server),
        "instructions": instructions(server),
    })
}

fn discover(server: DemoServer) -> Value {
    json!({
        "supportedVersions": protocol::supported(),
        "capabilities": { "tools": {} },
        "instructions": instructions(server),
    })
}

fn list_tools(server: DemoServer, request: &Request) -> Result<Value, Failure> {
    // The list has one page and names no other, so no cursor can be one of ours.
    if let Some(cursor) = request.params.get("cursor").filter(|cursor| !cursor.is_null()) {
        return Err(Failure::new(Code::InvalidParams, format!("unknown cursor {cursor}")));
    }
    let tools: Vec<Value> = tools::all(server).iter().map(tools::Tool::description).collect();
    Ok(json!({ "tools": tools }))
}

fn call_tool(server: DemoServer, request: &Request) -> Result<Value, Failure> {
    let invalid = |problem: String| Failure::new(Code::InvalidParams, problem);
    let name = tool_name(request).ok_or_else(|| invalid("`name` must be a string".to_owned()))?;
    let tool =
        tools::find(server, name).ok_or_else(|| invalid(format!("unknown tool {name:?}")))?;
    let arguments = match request.params.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return Err(invalid("`arguments` must be an object".to_owned())),
    };
    Ok(tool.call(arguments))
}

/// The name of the tool that a `tools/call` is about.
pub(super) fn tool_name(request: &Request) -> Option<&str> {
    request.params.get("name").and_then(Value::as_str)
}

/// What every modern result carries.
fn complete(server: DemoServer, mut result: Value) -> Value {
    result["resultType"] = "complete".into();
    result["_meta"] = json!({ protocol::SERVER_INFO: server_info(server) });
    result
}

/// What modern results carry that are the same for everyone and for a while.
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
