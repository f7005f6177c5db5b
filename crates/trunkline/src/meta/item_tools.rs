//! Tools for resources and prompts, for models that can only call tools (TOOL-14).

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::item_arguments::{DEFAULT_ITEMS, MAX_LISTED_ITEMS};
use crate::catalog::ItemKind;
use crate::message::Raw;

/// A tool that lists or reads resources, or lists or gets prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemTool {
    /// Lists resources and resource templates.
    ListResources,
    /// Reads a resource.
    ReadResource,
    /// Lists prompts.
    ListPrompts,
    /// Gets a prompt.
    GetPrompt,
}

impl ItemTool {
    /// All of them, in the order of lists.
    pub const ALL: [Self; 4] =
        [Self::ListResources, Self::ReadResource, Self::ListPrompts, Self::GetPrompt];

    /// The name. No tool of a server has it: see [`HOST_TOOL_NAMES`](crate::name::HOST_TOOL_NAMES).
    pub fn name(self) -> &'static str {
        match self {
            Self::ListResources => "trunkline_list_resources",
            Self::ReadResource => "trunkline_read_resource",
            Self::ListPrompts => "trunkline_list_prompts",
            Self::GetPrompt => "trunkline_get_prompt",
        }
    }

    /// The tool of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// The kinds of the items that it lists, reads or gets.
    pub fn kinds(self) -> &'static [ItemKind] {
        match self {
            Self::ListResources | Self::ReadResource => {
                &[ItemKind::Resource, ItemKind::ResourceTemplate]
            }
            Self::ListPrompts | Self::GetPrompt => &[ItemKind::Prompt],
        }
    }

    /// The definition, as in `tools/list`.
    pub fn definition(self) -> &'static Raw {
        static DEFINITIONS: LazyLock<[Raw; 4]> =
            LazyLock::new(|| ItemTool::ALL.map(|tool| Raw::from_value(&tool.define())));
        &DEFINITIONS[self as usize]
    }

    fn define(self) -> Value {
        let (description, schema) = match self {
            Self::ListResources => (
                "List resources: documents and data that servers offer for reading. One line \
                 each: URI, name, media type, description. In a [template], fill in the parts in \
                 braces.",
                list_schema(),
            ),
            Self::ReadResource => {
                ("Read a resource by a URI that trunkline_list_resources returned.", read_schema())
            }
            Self::ListPrompts => (
                "List prompts: instructions that servers offer for common tasks. One line each: \
                 name, arguments (? marks optional ones), description.",
                list_schema(),
            ),
            Self::GetPrompt => (
                "Get the messages of a prompt by a name that trunkline_list_prompts returned.",
                prompt_schema(),
            ),
        };
        json!({
            "name": self.name(),
            "description": description,
            "inputSchema": schema,
            // A server may fetch what it returns from anywhere; lists are of this configuration.
            "annotations": {
                "readOnlyHint": true,
                "openWorldHint": matches!(self, Self::ReadResource | Self::GetPrompt),
            },
        })
    }
}

fn list_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "server": { "type": "string", "description": "List only this server" },
            "query": { "type": "string", "description": "List only items that contain this text" },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_LISTED_ITEMS,
                "description": format!("Number of items; default {DEFAULT_ITEMS}"),
            },
            "cursor": { "type": "string", "description": "Continue a list where it ended" },
        },
    })
}

fn read_schema() -> Value {
    json!({ "type": "object", "properties": { "uri": { "type": "string" } }, "required": ["uri"] })
}

fn prompt_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "arguments": { "type": "object", "additionalProperties": { "type": "string" } },
        },
        "required": ["name"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_short_tools_with_their_names() {
        for tool in ItemTool::ALL {
            let definition = tool.definition();
            assert_eq!(definition.get("name").unwrap().as_str().unwrap(), tool.name());
            assert_eq!(ItemTool::from_name(tool.name()), Some(tool));
            let annotations = definition.get("annotations").unwrap();
            assert_eq!(annotations.get("readOnlyHint").unwrap().text(), "true");
        }
        assert_eq!(ItemTool::from_name("trunkline_search"), None);
        let bytes: usize = ItemTool::ALL.iter().map(|it| it.definition().bytes().len()).sum();
        assert!(bytes < 2_500, "{bytes}");
    }
}
