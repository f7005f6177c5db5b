//! Tools of the demo servers: one table each, for listing and calling.

mod words;
mod numbers;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::DemoServer;

/// A tool: its definition and its implementation, so that the two cannot differ.
pub(super) struct Tool {
    name: &'static str,
    /// Describes the expected arguments, for error messages.
    expects: &'static str,
    /// The definition without its name.
    describe: fn() -> Value,
    run: fn(Arguments) -> Result<Output, String>,
}

/// The output of a successful call.
struct Output {
    text: String,
    structured: Option<Value>,
}

impl Output {
    fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), structured: None }
    }

    /// Includes the value as text too, for clients that show only text.
    fn structured(value: Value) -> Self {
        Self { text: value.to_string(), structured: Some(value) }
    }
}

/// The arguments of a call, not parsed yet.
struct Arguments(Map<String, Value>);

impl Arguments {
    fn read<T: DeserializeOwned>(self) -> Result<T, String> {
        serde_json::from_value(Value::Object(self.0)).map_err(|error| error.to_string())
    }
}

impl Tool {
    pub(super) fn description(&self) -> Value {
        let mut description = (self.describe)();
        description["name"] = self.name.into();
        description
    }

    /// Runs the tool. Invalid arguments become a tool result with `isError`, not a protocol error,
    /// so that a model can correct them.
    pub(super) fn call(&self, arguments: Map<String, Value>) -> Value {
        match (self.run)(Arguments(arguments)) {
            Ok(output) => result(&output),
            Err(problem) => {
                let text = format!("{}: {problem}; expected {}", self.name, self.expects);
                json!({ "content": [{ "type": "text", "text": text }], "isError": true })
            }
        }
    }
}

fn result(output: &Output) -> Value {
    let content = json!([{ "type": "text", "text": output.text }]);
    match &output.structured {
        Some(value) => json!({ "content": content, "structuredContent": value, "isError": false }),
        None => json!({ "content": content, "isError": false }),
    }
}

/// The tools of a server, always in the same order.
pub(super) fn all(server: DemoServer) -> &'static [Tool] {
    match server {
        DemoServer::Words => words::TOOLS,
        DemoServer::Numbers => numbers::TOOLS,
    }
}

pub(super) fn find(server: DemoServer, name: &str) -> Option<&'static Tool> {
    all(server).iter().find(|tool| tool.name == name)
}

/// The schema of an object with these properties and no others.
fn object_schema(required: &[&str], properties: &Value) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
