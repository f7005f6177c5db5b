//! Results of servers, which have the schema of MCP and no version of ours.

use serde_json::Value;

use super::keywords::{
    any_object, boolean, count, document, list, map, mcp_result, object, reference, text,
};

pub(super) fn call() -> Vec<Value> {
    vec![mcp_result(
        "CallToolResult",
        &[
            ("content?", list(any_object()), ""),
            ("structuredContent?", Value::Object(serde_json::Map::new()), ""),
            ("isError?", boolean(), "Whether the tool failed; the exit code is 3 then."),
        ],
    )]
}

pub(super) fn read() -> Vec<Value> {
    vec![mcp_result("ReadResourceResult", &[("contents", list(any_object()), "")])]
}

pub(super) fn prompt() -> Vec<Value> {
    vec![mcp_result("GetPromptResult", &[("messages", list(any_object()), "")])]
}

pub(super) fn complete() -> Vec<Value> {
    let values = mcp_result("Completion", &[("values", list(text()), ""), ("total?", count(), "")]);
    vec![mcp_result("CompleteResult", &[("completion", values, "")])]
}

pub(super) fn tool() -> Vec<Value> {
    let schema = any_object();
    vec![mcp_result("Tool", &[("name", text(), ""), ("inputSchema", schema, "")])]
}

pub(super) fn demo() -> Vec<Value> {
    let status = object(&[("servers", list(reference("server")), "")]);
    let tools = object(&[
        ("tools", list(any_object()), ""),
        ("hiddenCount", count(), ""),
        ("hidden?", list(reference("hidden")), ""),
        ("renamed?", list(reference("renamed")), ""),
    ]);
    let gateway = object(&[
        ("url", text(), ""),
        ("client", any_object(), "An entry for the configuration of a client."),
        ("result", any_object(), "The result of the same call through the gateway."),
    ]);
    vec![document(&[
        ("configuration", map(Value::Object(serde_json::Map::new())), ""),
        ("status", status, "As `status` prints it."),
        ("tools", tools, "As `tools` prints it."),
        ("result", any_object(), "`CallToolResult` of MCP."),
        ("gateway", gateway, ""),
    ])]
}
