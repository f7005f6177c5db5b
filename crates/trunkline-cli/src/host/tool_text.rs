//! One tool as text: description, arguments with their types and limits, annotations, and an example call.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::Value;
use trunkline::catalog::Entry;
use trunkline::config::escape_control;
use trunkline::message::Raw;
use trunkline::meta::{parameter_list, parameter_type};

use crate::arguments::quoted;
use crate::output::report;
use crate::output::text_layout::{Emphasis, TextLayout};
use crate::typed::ArgumentSchema;

/// Arguments that are described; a schema can have thousands.
const MAX_ARGUMENTS: usize = 100;

/// Depth of nested arguments that are described.
const MAX_DEPTH: usize = 3;

/// Characters of a description, of a value, and values of a list.
const MAX_TEXT: usize = 4_000;
const MAX_VALUE: usize = 60;
const MAX_VALUES: usize = 20;

/// Keywords of a schema that limit a value, as they are written.
const LIMITS: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
];

/// Describes a tool. `options` and `server` are added to the example call.
pub(crate) fn render(entry: &Entry, layout: TextLayout, (options, server): (&str, &str)) -> String {
    let definition = entry.definition();
    let mut text = String::new();
    let name = escape_control(entry.exposed());
    text += &layout.wrap_named(&name, &parameter_list(definition), 0, 4);
    let of = format!("of server {}", escape_control(entry.server().name.as_str()));
    let of = match definition
        .get("title")
        .and_then(|title| title.as_str().map(|it| escape_control(&it)))
    {
        Some(title) => format!("{title}, {of}"),
        None => of,
    };
    let _ = writeln!(text, "{}", layout.paint(Emphasis::Detail, &of));
    if let Some(description) =
        definition.get("description").and_then(|it| it.as_str().map(Cow::into_owned))
    {
        text.push('\n');
        text += &paragraphs(&description, layout, 0);
    }
    text += &arguments(definition.get("inputSchema").as_ref(), layout);
    text += &annotations(definition, layout);
    text += &output(definition, layout);
    let example = example(&ArgumentSchema::of(definition));
    text += &section("Example", layout);
    let call = format!("trunkline call{options} {}{example}{server}", quoted(entry.exposed()));
    let _ = writeln!(text, "  {}", escape_control(&call));
    text
}

fn section(title: &str, layout: TextLayout) -> String {
    format!("\n{}\n", layout.paint(Emphasis::Heading, title))
}

/// A text with its line breaks, wrapped and cut.
fn paragraphs(text: &str, layout: TextLayout, indent: usize) -> String {
    let cut: String = text.chars().take(MAX_TEXT).collect();
    let mut shown = String::new();
    for line in cut.trim().lines() {
        // Lists in descriptions are indented.
        let own = line.len() - line.trim_start().len();
        let own = indent + own.min(16);
        shown += &layout.wrap(&escape_control(line.trim()), own, own);
    }
    if text.chars().count() > MAX_TEXT {
        let _ = writeln!(shown, "{}… (`--format json` prints all of it)", " ".repeat(indent));
    }
    shown
}

fn arguments(schema: Option<&Raw>, layout: TextLayout) -> String {
    let mut text = section("Arguments", layout);
    let mut count = 0;
    let described = schema.map(|schema| members(schema, layout, 2, &mut count));
    match described.filter(|text| !text.is_empty()) {
        None => text += "  none\n",
        Some(described) => text += &described,
    }
    text
}

/// The properties of an object, required ones first, else in the order of the schema.
fn members(schema: &Raw, layout: TextLayout, indent: usize, count: &mut usize) -> String {
    let [required, properties] = schema.get_all(["required", "properties"]);
    let required: HashSet<String> = required
        .iter()
        .flat_map(Raw::items)
        .filter_map(|name| name.as_str().map(Cow::into_owned))
        .collect();
    let all = properties.map(|it| it.members()).unwrap_or_default();
    let (mut sorted, optional): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(name, _)| required.contains(name));
    sorted.extend(optional);
    let mut text = String::new();
    for (at, (name, argument)) in sorted.iter().enumerate() {
        if *count >= MAX_ARGUMENTS {
            let rest = report::plural(sorted.len() - at, "argument");
            let place = " ".repeat(indent);
            let _ = writeln!(text, "{place}… {rest} more (`--format json` prints all)");
            break;
        }
        *count += 1;
        let is_required = required.contains(name);
        text += &argument_lines(name, &argument.to_value(), is_required, layout, indent);
        if indent < 2 + 4 * MAX_DEPTH {
            text += &members(argument, layout, indent + 4, count);
            let items = argument.get("items");
            text += &items.map(|it| members(&it, layout, indent + 4, count)).unwrap_or_default();
        }
    }
    text
}

/// One argument: name, type, whether it is required, default and limits; then its description.
fn argument_lines(
    name: &str,
    schema: &Value,
    is_required: bool,
    layout: TextLayout,
    indent: usize,
) -> String {
    let mark = if is_required { "" } else { "?" };
    let kind = type_text(schema);
    let mut details = vec![kind];
    if let Some(value) = schema.get("default") {
        details.push(format!("default {}", cut(&value.to_string())));
    }
    for keyword in LIMITS {
        if let Some(limit) = schema.get(*keyword) {
            details.push(format!("{keyword} {}", cut(&limit.to_string())));
        }
    }
    let name = escape_control(name);
    let rest = format!("{mark}: {}", details.join(", "));
    let mut text = layout.wrap_named(&name, &rest, indent, indent + 4);
    if let Some(description) = schema.get("description").and_then(Value::as_str) {
        text += &paragraphs(description, layout, indent + 4);
    }
    text
}

/// The type of a value, with the values of an enumeration.
fn type_text(schema: &Value) -> String {
    let values = schema.get("enum").and_then(Value::as_array);
    if let Some(values) = values {
        let shown: Vec<_> = values.iter().take(MAX_VALUES).map(|it| cut(&it.to_string())).collect();
        let more = if values.len() > MAX_VALUES { " or …" } else { "" };
        return format!("{}{more}", shown.join(" or "));
    }
    let kind = parameter_type(&Raw::from_value(schema));
    match (
        kind.as_str(),
        schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array),
    ) {
        ("any", Some(choices)) => {
            let kinds: Vec<_> = choices.iter().take(MAX_VALUES).map(type_text).collect();
            kinds.join(" or ")
        }
        _ => kind,
    }
}

fn cut(text: &str) -> String {
    let short: String = text.chars().take(MAX_VALUE).collect();
    let mark = if text.chars().count() > MAX_VALUE { "…" } else { "" };
    escape_control(&format!("{short}{mark}"))
}

/// The hints of a tool about itself. They are claims of its server.
fn annotations(definition: &Raw, layout: TextLayout) -> String {
    let Some(annotations) = definition.get("annotations") else { return String::new() };
    let is = |key: &str| annotations.get(key).and_then(|it| it.as_bool());
    let mut hints = Vec::new();
    match (is("readOnlyHint"), is("destructiveHint")) {
        (Some(true), _) => hints.push("only reads"),
        (_, Some(false)) => hints.push("writes, and destroys nothing"),
        (_, Some(true)) => hints.push("may destroy data"),
        (Some(false), None) => hints.push("writes"),
        (None, None) => {}
    }
    if is("idempotentHint") == Some(true) {
        hints.push("has the same effect when it is repeated");
    }
    match is("openWorldHint") {
        Some(true) => hints.push("reaches the world outside of the server"),
        Some(false) => hints.push("stays within its server"),
        None => {}
    }
    match hints.is_empty() {
        true => String::new(),
        false => section("The server says that it", layout) + &layout.wrap(&hints.join("; "), 2, 2),
    }
}

/// The fields of structured results.
fn output(definition: &Raw, layout: TextLayout) -> String {
    let Some(schema) = definition.get("outputSchema") else { return String::new() };
    let mut count = 0;
    let described = members(&schema, layout, 2, &mut count);
    match described.is_empty() {
        true => String::new(),
        false => section("Result", layout) + &described,
    }
}

/// Arguments of an example: the required ones, each after a space.
fn example(schema: &ArgumentSchema) -> String {
    let mut words = String::new();
    for name in schema.required() {
        let argument = schema.argument(name).unwrap_or(&Value::Null);
        let word = match sample(argument) {
            Value::String(text) => format!("{name}={text}"),
            value @ (Value::Array(_) | Value::Object(_)) => format!("{name}:={value}"),
            value => format!("{name}={value}"),
        };
        let _ = write!(words, " {}", quoted(&word));
    }
    words
}

/// A value that fits a schema, as far as that is simple.
fn sample(schema: &Value) -> Value {
    let first = |key: &str| schema.get(key).and_then(Value::as_array).and_then(|all| all.first());
    let given = schema.get("default").filter(|value| !value.is_null());
    if let Some(value) = given
        .or_else(|| first("examples"))
        .or_else(|| first("enum"))
        .or_else(|| schema.get("const"))
    {
        return value.clone();
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        Some(kind) => kind.as_str(),
        None => None,
    };
    match kind {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        Some("boolean") => true.into(),
        Some("array") => Value::Array(schema.get("items").map(sample).into_iter().collect()),
        Some("object") => {
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            let names = required.filter_map(Value::as_str);
            let properties = schema.get("properties");
            let member = |name: &str| Some((name.to_owned(), sample(properties?.get(name)?)));
            Value::Object(names.filter_map(member).collect())
        }
        _ => "TEXT".into(),
    }
}
