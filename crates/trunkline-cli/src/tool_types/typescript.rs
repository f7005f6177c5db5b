//! Writes types of tools in TypeScript.

use std::fmt::Write as _;

use serde_json::Value;

use super::schema_type::{ObjectType, SchemaType};
use super::{TypedTool, type_name};

pub(super) fn render(tools: &[TypedTool]) -> String {
    let mut text =
        "// Written by `trunkline types --lang ts`. The keys of `Tools` are the names of tools.\n"
            .to_owned();
    let mut map = String::new();
    for (index, tool) in tools.iter().enumerate() {
        let name = type_name(tools, index);
        let (arguments, result) = (kind(&arguments(tool), 0), kind(&tool.result, 0));
        let _ = write!(text, "\nexport type {name}Arguments = {arguments};\n");
        let _ = writeln!(text, "\nexport type {name}Result = {result};");
        let _ = writeln!(
            map,
            "{}  {}: {{ arguments: {name}Arguments; structuredContent: {name}Result }};",
            comment(&tool.description, 1),
            quoted(&tool.name)
        );
    }
    let _ = write!(
        text,
        "\nexport interface Tools {{\n{map}}}\n\nexport type ToolName = keyof Tools;\n"
    );
    text
}

/// Arguments are always an object.
fn arguments(tool: &TypedTool) -> SchemaType {
    match &tool.arguments {
        SchemaType::Any => SchemaType::Object(ObjectType {
            members: Vec::new(),
            others: Some(Box::new(SchemaType::Any)),
        }),
        other => other.clone(),
    }
}

fn kind(schema: &SchemaType, depth: usize) -> String {
    match schema {
        SchemaType::Any => "unknown".to_owned(),
        SchemaType::String => "string".to_owned(),
        SchemaType::Number | SchemaType::Integer => "number".to_owned(),
        SchemaType::Boolean => "boolean".to_owned(),
        SchemaType::Null => "null".to_owned(),
        SchemaType::Literal(values) => values.iter().map(literal).collect::<Vec<_>>().join(" | "),
        SchemaType::List(items) => format!("Array<{}>", kind(items, depth)),
        SchemaType::Union(kinds) => {
            kinds.iter().map(|it| kind(it, depth)).collect::<Vec<_>>().join(" | ")
        }
        SchemaType::Object(object) => object_type(object, depth),
    }
}

fn object_type(object: &ObjectType, depth: usize) -> String {
    let others =
        object.others.as_ref().map(|others| format!("Record<string, {}>", kind(others, depth)));
    if object.members.is_empty() {
        return others.unwrap_or_else(|| "Record<string, unknown>".to_owned());
    }
    let indent = "  ".repeat(depth + 1);
    let mut text = "{\n".to_owned();
    for member in &object.members {
        let mark = if member.is_required { "" } else { "?" };
        text += &comment(&member.description, depth + 1);
        let _ = writeln!(
            text,
            "{indent}{}{mark}: {};",
            quoted(&member.name),
            kind(&member.kind, depth + 1)
        );
    }
    text + &"  ".repeat(depth) + "}"
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// A string literal. Line separators are escaped, because older versions end a line at them.
fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    json.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// A comment, which a text cannot end.
fn comment(text: &str, depth: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|it| !it.is_control()).take(300).collect();
    match line.is_empty() {
        true => String::new(),
        false => format!("{}/** {} */\n", "  ".repeat(depth), line.replace("*/", "* /")),
    }
}
