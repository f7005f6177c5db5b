//! The names and definitions of the meta tools.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::arguments::{MAX_LIMIT, MAX_NAMES, MAX_QUERIES};
use crate::message::Raw;

/// A tool of meta mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetaTool {
    /// Finds tools by what they do.
    Search,
    /// Returns the definitions of tools.
    Describe,
    /// Calls a tool.
    Call,
    /// Lists the servers.
    Servers,
}

impl MetaTool {
    /// All of them, in the order of lists.
    pub const ALL: [Self; 4] = [Self::Search, Self::Describe, Self::Call, Self::Servers];

    /// The name. No tool of a server has it: see [`HOST_TOOL_NAMES`](crate::name::HOST_TOOL_NAMES).
    pub fn name(self) -> &'static str {
        match self {
            Self::Search => "trunkline_search",
            Self::Describe => "trunkline_describe",
            Self::Call => "trunkline_call",
            Self::Servers => "trunkline_servers",
        }
    }

    /// The meta tool of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// The definition, as in `tools/list`.
    pub fn definition(self) -> &'static Raw {
        static DEFINITIONS: LazyLock<[Raw; 4]> =
            LazyLock::new(|| MetaTool::ALL.map(|tool| Raw::from_value(&tool.define())));
        &DEFINITIONS[self as usize]
    }

    fn define(self) -> Value {
        let (description, schema) = match self {
            Self::Search => (
                "Find tools by what they do. Most tools are not in your list: search before you \
                 conclude that there is none. Each result is one line: name, parameters and a \
                 short description. Several short queries, one per step of the task, find more \
                 than one long one.",
                search_schema(),
            ),
            Self::Describe => (
                "Get the full definitions of tools, with the schema of their arguments, by the \
                 names that trunkline_search returned.",
                describe_schema(),
            ),
            Self::Call => (
                "Call a tool by the name that trunkline_search returned. The result is that of \
                 the tool. Use trunkline_describe first unless the parameters are obvious.",
                call_schema(),
            ),
            Self::Servers => (
                "List the servers with their number of tools, one per line.",
                json!({ "type": "object", "properties": {} }),
            ),
        };
        json!({
            "name": self.name(),
            "description": description,
            "inputSchema": schema,
            "annotations": self.annotations(),
        })
    }

    /// The annotations. A call may do whatever the called tool does, which is checked by the rules
    /// for that tool.
    fn annotations(self) -> Value {
        match self {
            Self::Call => {
                json!({ "readOnlyHint": false, "destructiveHint": true, "openWorldHint": true })
            }
            Self::Search | Self::Describe | Self::Servers => {
                json!({ "readOnlyHint": true, "openWorldHint": false })
            }
        }
    }
}

fn search_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "queries": {
                "type": "array",
                "items": { "type": "string" },
                "minItems": 1,
                "maxItems": MAX_QUERIES,
                "description": "What the tools should do, such as \"create github issue\"",
            },
            "server": { "type": "string", "description": "Search only this server" },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_LIMIT,
                "description": "Number of results; default 5",
            },
        },
        "required": ["queries"],
    })
}

fn describe_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "names": {
                "type": "array",
                "items": { "type": "string" },
                "minItems": 1,
                "maxItems": MAX_NAMES,
            },
        },
        "required": ["names"],
    })
}

fn call_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "arguments": { "type": "object", "description": "The arguments of the tool" },
        },
        "required": ["name"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_tools_with_their_names() {
        for tool in MetaTool::ALL {
            let definition = tool.definition();
            assert_eq!(definition.get("name").unwrap().as_str().unwrap(), tool.name());
            assert_eq!(MetaTool::from_name(tool.name()), Some(tool));
            assert!(definition.get("inputSchema").unwrap().is_object());
        }
        assert_eq!(MetaTool::from_name("trunkline_other"), None);
    }

    /// The set costs a model less than a handful of ordinary tools.
    #[test]
    fn definitions_are_short() {
        let bytes: usize = MetaTool::ALL.iter().map(|it| it.definition().bytes().len()).sum();
        assert!(bytes < 3_000, "{bytes}");
    }
}
