//! Arguments of the tools for resources and prompts, which come from models.

use super::ItemTool;
use super::arguments::{ArgumentError, ArgumentReader, cut};
use crate::message::Raw;

/// Most items of one list.
pub(super) const MAX_LISTED_ITEMS: usize = 200;

/// Items of a list that names no limit.
pub(super) const DEFAULT_ITEMS: usize = 50;

/// The request that a call of an [`ItemTool`] makes.
#[derive(Clone, Debug)]
pub enum ItemRequest {
    /// A list of items.
    List(ItemListArguments),
    /// `resources/read`.
    Read {
        /// The URI, as it is written.
        uri: Raw,
    },
    /// `prompts/get`.
    Prompt {
        /// The name, as it is written.
        name: Raw,
        /// The arguments of the prompt, unchanged: an object of strings.
        arguments: Option<Raw>,
    },
}

/// Selects items of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemListArguments {
    /// List only this server.
    pub server: Option<String>,
    /// List only items that contain this text, in any case.
    pub query: Option<String>,
    /// Number of items.
    pub limit: usize,
    /// The end of an earlier list.
    pub cursor: Option<String>,
}

impl ItemRequest {
    /// Reads the arguments of a tool.
    ///
    /// # Errors
    ///
    /// If an argument is missing, unknown or written twice, or has another type: a server could
    /// otherwise receive another request than the one that a rule was checked for.
    pub fn read(tool: ItemTool, arguments: &Raw) -> Result<Self, ArgumentError> {
        let reader = ArgumentReader { tool: tool.name(), arguments };
        match tool {
            ItemTool::ListResources | ItemTool::ListPrompts => reader.list().map(Self::List),
            ItemTool::ReadResource => {
                reader.require_known(&["uri"])?;
                Ok(Self::Read { uri: reader.required("uri")? })
            }
            ItemTool::GetPrompt => {
                reader.require_known(&["name", "arguments"])?;
                let (name, arguments) = (reader.required("name")?, reader.optional("arguments")?);
                if let Some(arguments) = &arguments {
                    reader.require_strings(arguments)?;
                }
                Ok(Self::Prompt { name, arguments })
            }
        }
    }
}

impl ArgumentReader<'_> {
    fn list(&self) -> Result<ItemListArguments, ArgumentError> {
        self.require_known(&["server", "query", "limit", "cursor"])?;
        let limit = self.number("limit", MAX_LISTED_ITEMS)?.unwrap_or(DEFAULT_ITEMS);
        let (server, query) = (self.string("server")?, self.string("query")?);
        let cursor = self.string("cursor")?;
        let query = query.filter(|query| !query.trim().is_empty());
        Ok(ItemListArguments { server, query, limit, cursor })
    }

    fn required(&self, key: &str) -> Result<Raw, ArgumentError> {
        let found = self.optional(key)?.filter(|value| value.as_str().is_some());
        found.ok_or_else(|| self.not_a_string(key))
    }

    /// The protocol has only strings as arguments of prompts.
    fn require_strings(&self, arguments: &Raw) -> Result<(), ArgumentError> {
        if !arguments.is_object() {
            return Err(self.error("`arguments` must be an object of strings"));
        }
        let members = arguments.members();
        match members.iter().find(|(_, value)| value.as_str().is_none()) {
            Some((key, _)) => Err(self.not_a_string(&format!("arguments.{}", cut(key)))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tool: ItemTool, text: &str) -> Result<ItemRequest, String> {
        ItemRequest::read(tool, &Raw::from_text(text).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn list_arguments_have_defaults_and_limits() {
        let Ok(ItemRequest::List(list)) = read(ItemTool::ListPrompts, r#"{"query":" "}"#) else {
            panic!()
        };
        let none = ItemListArguments { server: None, query: None, limit: 50, cursor: None };
        assert_eq!(list, none);
        let all = r#"{"server":"s","query":"q","limit":200,"cursor":"c"}"#;
        assert!(read(ItemTool::ListResources, all).is_ok());
        for (wrong, part) in [
            (r#"{"limit":0}"#, "`limit` must be 1 to 200"),
            (r#"{"limit":201}"#, "`limit` must be 1 to 200"),
            (r#"{"limit":-1}"#, "`limit` must be 1 to 200"),
            (r#"{"limit":99999999999999999999}"#, "`limit` must be 1 to 200"),
            (r#"{"limit":"5"}"#, "`limit` must be 1 to 200"),
            (r#"{"server":1}"#, "`server` must be a string"),
            (r#"{"query":["a"]}"#, "`query` must be a string"),
            (r#"{"cursor":{}}"#, "`cursor` must be a string"),
            (r#"{"cursor":"a","cursor":"b"}"#, "`cursor` is written twice"),
            (r#"{"uri":"x"}"#, "unknown `uri`"),
            ("[]", "must be an object"),
        ] {
            let error = read(ItemTool::ListResources, wrong).unwrap_err();
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }

    #[test]
    fn one_resource_and_one_prompt_are_named() {
        assert!(matches!(
            read(ItemTool::ReadResource, r#"{"uri":"x://a"}"#),
            Ok(ItemRequest::Read { uri }) if uri.text() == r#""x://a""#
        ));
        assert!(matches!(
            read(ItemTool::GetPrompt, r#"{"name":"p","arguments":{"a":"1"}}"#),
            Ok(ItemRequest::Prompt { arguments: Some(it), .. }) if it.text() == r#"{"a":"1"}"#
        ));
        for (tool, wrong, part) in [
            (ItemTool::ReadResource, "{}", "`uri` must be a string"),
            (ItemTool::ReadResource, r#"{"uri":7}"#, "`uri` must be a string"),
            (ItemTool::ReadResource, r#"{"uri":"a","uri":"b"}"#, "`uri` is written twice"),
            (ItemTool::ReadResource, r#"{"uri":"a","range":1}"#, "unknown `range`"),
            (ItemTool::GetPrompt, r#"{"arguments":{}}"#, "`name` must be a string"),
            (ItemTool::GetPrompt, r#"{"name":"p","topic":"x"}"#, "unknown `topic`"),
            (ItemTool::GetPrompt, r#"{"name":"p","arguments":[]}"#, "must be an object of strings"),
            (ItemTool::GetPrompt, r#"{"name":"p","arguments":{"n":3}}"#, "`arguments.n` must be"),
        ] {
            let error = read(tool, wrong).unwrap_err();
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }
}
