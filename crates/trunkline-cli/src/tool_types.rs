//! Types of tools for programs: arguments and structured results in TypeScript or Python.

mod schema_type;
mod python;
mod typescript;

use serde_json::Value;

use crate::arguments::LanguageArgument;
use schema_type::SchemaType;

/// A tool to write types for.
pub(crate) struct TypedTool {
    /// The name that callers use.
    pub(crate) name: String,
    pub(crate) description: String,
    arguments: SchemaType,
    result: SchemaType,
}

/// A language of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeLanguage {
    TypeScript,
    Python,
}

impl From<LanguageArgument> for TypeLanguage {
    fn from(argument: LanguageArgument) -> Self {
        match argument {
            LanguageArgument::Ts => Self::TypeScript,
            LanguageArgument::Py => Self::Python,
        }
    }
}

impl TypedTool {
    /// A tool by its definition as in `tools/list`.
    pub(crate) fn new(name: &str, definition: &Value) -> Self {
        let text = definition.get("description").and_then(Value::as_str).unwrap_or_default();
        let schema = |key: &str| definition.get(key).map_or(SchemaType::Any, SchemaType::of_schema);
        Self {
            name: name.to_owned(),
            description: text.to_owned(),
            arguments: schema("inputSchema"),
            result: schema("outputSchema"),
        }
    }
}

/// A module with the types of tools.
pub(crate) fn render(tools: &[TypedTool], language: TypeLanguage) -> String {
    match language {
        TypeLanguage::TypeScript => typescript::render(tools),
        TypeLanguage::Python => python::render(tools),
    }
}

/// The name of a type for a tool: `everything_get-sum` → `EverythingGetSum`. The number keeps names apart that differ only
/// in other characters.
fn type_name(tools: &[TypedTool], index: usize) -> String {
    let camel = |name: &str| {
        let words = name.split(|it: char| !it.is_ascii_alphanumeric()).filter(|it| !it.is_empty());
        let word = |word: &str| {
            let mut letters = word.chars();
            letters.next().map_or_else(String::new, |first| {
                first.to_ascii_uppercase().to_string() + letters.as_str()
            })
        };
        let joined: String = words.map(word).collect();
        match joined.starts_with(|it: char| it.is_ascii_alphabetic()) {
            true => joined,
            false => format!("Tool{joined}"),
        }
    };
    let Some(tool) = tools.get(index) else { return String::new() };
    let own = camel(&tool.name);
    let earlier = tools.iter().take(index).filter(|it| camel(&it.name) == own).count();
    if earlier == 0 { own } else { format!("{own}{}", earlier + 1) }
}

#[cfg(test)]
mod tests;
