//! Writes types of tools in Python, for version 3.11 and later.

use std::fmt::Write as _;

use serde_json::Value;

use super::schema_type::{ObjectType, SchemaType};
use super::{TypedTool, type_name};

pub(super) fn render(tools: &[TypedTool]) -> String {
    let mut module = Module::default();
    let mut map = String::new();
    for (index, tool) in tools.iter().enumerate() {
        let name = type_name(tools, index);
        let arguments = module.kind(&tool.arguments, &format!("{name}Arguments"));
        let result = module.kind(&tool.result, &format!("{name}Result"));
        let text = tool.description.split_whitespace().collect::<Vec<_>>().join(" ");
        let text: String = text.chars().filter(|it| !it.is_control()).take(300).collect();
        if !text.is_empty() {
            let _ = writeln!(map, "    # {text}");
        }
        let _ = writeln!(map, "    {}: ({}, {}),", quoted(&tool.name), arguments, result);
    }
    let names: Vec<_> = tools.iter().map(|tool| quoted(&tool.name)).collect();
    let names = match names.is_empty() {
        true => "str".to_owned(),
        false => format!("Literal[{}]", names.join(", ")),
    };
    format!(
        "# Written by `trunkline types --lang py`. The keys of `TOOLS` are the names of tools, with the types of their\n\
         # arguments and structured results.\n\
         from typing import Any, Literal, NotRequired, TypedDict\n{}\nToolName = {names}\n\nTOOLS: dict[str, tuple[Any, Any]] = {{\n{map}}}\n",
        module.text
    )
}

/// The definitions of a module: an object needs one, and a nested one comes first.
#[derive(Default)]
struct Module {
    text: String,
}

impl Module {
    /// A type as an expression. `name` is for an object.
    fn kind(&mut self, schema: &SchemaType, name: &str) -> String {
        match schema {
            SchemaType::Any => "Any".to_owned(),
            SchemaType::String => "str".to_owned(),
            SchemaType::Number => "float".to_owned(),
            SchemaType::Integer => "int".to_owned(),
            SchemaType::Boolean => "bool".to_owned(),
            SchemaType::Null => "None".to_owned(),
            SchemaType::Literal(values) => literal(values),
            SchemaType::List(items) => {
                format!("list[{}]", self.kind(items, &format!("{name}Item")))
            }
            SchemaType::Union(kinds) => {
                let kinds = kinds.iter().enumerate();
                let kinds: Vec<_> = kinds
                    .map(|(at, it)| self.kind(it, &format!("{name}Option{}", at + 1)))
                    .collect();
                format!("({})", kinds.join(" | "))
            }
            SchemaType::Object(object) => self.object(object, name),
        }
    }

    /// Defines a dictionary with these keys. The functional form allows any key.
    fn object(&mut self, object: &ObjectType, name: &str) -> String {
        if object.members.is_empty() {
            let others = object.others.as_ref().map(|it| self.kind(it, &format!("{name}Value")));
            return format!("dict[str, {}]", others.unwrap_or_else(|| "Any".to_owned()));
        }
        let mut members = String::new();
        for (at, member) in object.members.iter().enumerate() {
            let kind = self.kind(&member.kind, &format!("{name}Field{}", at + 1));
            let kind = if member.is_required { kind } else { format!("NotRequired[{kind}]") };
            let _ = writeln!(members, "    {}: {kind},", quoted(&member.name));
        }
        let _ = write!(self.text, "\n{name} = TypedDict({}, {{\n{members}}})\n", quoted(name));
        name.to_owned()
    }
}

/// One of some values. Numbers with a fraction cannot be literals.
fn literal(values: &[Value]) -> String {
    if values.iter().any(Value::is_f64) {
        return "Any".to_owned();
    }
    let shown = values.iter().map(|value| match value {
        Value::String(text) => quoted(text),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Null => "None".to_owned(),
        other => other.to_string(),
    });
    format!("Literal[{}]", shown.collect::<Vec<_>>().join(", "))
}

/// A string literal. JSON escapes are valid in Python, except for pairs of surrogates, which are not used here.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
