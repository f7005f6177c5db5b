//! Plan of a form for a JSON Schema: the same plan draws the form and reads it.

use serde_json::{Map, Value};

/// Properties of a form. Longer ones are edited as JSON.
const MAX_PROPERTIES: usize = 60;

/// Values of a choice.
const MAX_CHOICES: usize = 500;

/// Keywords whose meaning a list of fields cannot show.
const INEXPRESSIBLE: &[&str] = &[
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "oneOf",
    "anyOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "propertyNames",
    "dependencies",
    "dependentSchemas",
    "dependentRequired",
    "minProperties",
    "unevaluatedProperties",
    "prefixItems",
    "contains",
];

/// How the arguments of a tool are entered.
#[derive(Debug, PartialEq)]
pub(super) enum Form {
    /// One field per property.
    Fields(Vec<Property>),
    /// All of them as one JSON text.
    Json,
}

/// A property of an object.
#[derive(Debug, PartialEq)]
pub(super) struct Property {
    pub(crate) name: String,
    /// The JSON Pointer of its value in the arguments; also the name of its form field.
    pub(crate) pointer: String,
    pub(crate) input: Input,
    pub(crate) is_required: bool,
    /// Whether the form cannot be sent without it: a required property of an optional object is not needed if the
    /// object is left out.
    pub(crate) is_demanded: bool,
    pub(crate) is_nullable: bool,
    /// Its schema, for the texts beside the field.
    pub(crate) schema: Value,
}

/// How a value is entered.
#[derive(Debug, PartialEq)]
pub(super) enum Input {
    Text(TextKind),
    Integer,
    Number,
    Boolean,
    /// One of these values.
    Choice(Vec<Value>),
    /// An array of strings, one per line.
    Lines,
    /// An object with fields of its own.
    Group(Vec<Property>),
    /// Any value, as JSON text.
    Json,
}

/// Kinds of text fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Line,
    Lines,
    Secret,
}

impl Form {
    pub(super) fn from_schema(schema: &Value) -> Self {
        match object_properties(schema, "", Depth::Top) {
            Some(properties) => Self::Fields(properties),
            None => Self::Json,
        }
    }
}

/// Where an object is in the arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Top,
    /// Inside of the arguments, in a property that is required or not.
    Required,
    Optional,
}

/// The properties of an object schema, or nothing if fields cannot express it.
fn object_properties(schema: &Value, pointer: &str, depth: Depth) -> Option<Vec<Property>> {
    let schema = schema.as_object()?;
    let is_object = schema.get("type").is_none_or(|kind| kind == "object");
    if !is_object || !is_expressible(schema) {
        return None;
    }
    let empty = Map::new();
    let properties = match schema.get("properties") {
        Some(Value::Object(properties)) => properties,
        Some(_) => return None,
        None => &empty,
    };
    if properties.len() > MAX_PROPERTIES || has_only_free_properties(schema, properties) {
        return None;
    }
    let required = required_names(schema);
    // A required property without a schema has no field.
    if !required.iter().all(|name| properties.contains_key(*name)) {
        return None;
    }
    let property = |(name, schema): (&String, &Value)| {
        property(name, schema, pointer, (required.contains(&name.as_str()), depth))
    };
    let mut properties: Vec<Property> = properties.iter().map(property).collect();
    properties.sort_by_key(|property| !property.is_required);
    Some(properties)
}

fn property(
    name: &str,
    schema: &Value,
    parent: &str,
    (is_required, depth): (bool, Depth),
) -> Property {
    let pointer = format!("{parent}/{}", name.replace('~', "~0").replace('/', "~1"));
    let (schema, is_nullable) = without_null(schema);
    let inside = match depth {
        Depth::Top if is_required => Some(Depth::Required),
        Depth::Top => Some(Depth::Optional),
        Depth::Required | Depth::Optional => None,
    };
    let input = input(&schema, &pointer, inside);
    let is_demanded = is_required && !is_nullable && depth != Depth::Optional;
    Property {
        name: name.to_owned(),
        pointer,
        input,
        is_required,
        is_demanded,
        is_nullable,
        schema,
    }
}

/// Whether an object consists only of properties whose names the caller makes up.
fn has_only_free_properties(schema: &Map<String, Value>, properties: &Map<String, Value>) -> bool {
    let additional = schema.get("additionalProperties");
    properties.is_empty() && additional.is_some_and(|value| *value != Value::Bool(false))
}

pub(super) fn required_names(schema: &Map<String, Value>) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn is_expressible(schema: &Map<String, Value>) -> bool {
    !INEXPRESSIBLE.iter().any(|keyword| schema.contains_key(*keyword))
}

/// A schema without its alternative `null`, and whether it had one. Code generators write optional values as
/// `"type": ["string", "null"]` or as `"anyOf": [{…}, {"type": "null"}]`.
fn without_null(schema: &Value) -> (Value, bool) {
    let Some(object) = schema.as_object() else { return (schema.clone(), false) };
    if let Some(Value::Array(kinds)) = object.get("type") {
        let others: Vec<&Value> = kinds.iter().filter(|kind| *kind != "null").collect();
        if let ([kind], 2) = (others.as_slice(), kinds.len()) {
            let mut object = object.clone();
            object.insert("type".to_owned(), (*kind).clone());
            return (Value::Object(object), true);
        }
    }
    if let Some(Value::Array(alternatives)) = object.get("anyOf") {
        let is_null = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "null");
        let other = alternatives.iter().find(|schema| !is_null(schema)).and_then(Value::as_object);
        if let (2, Some(other), true) =
            (alternatives.len(), other, alternatives.iter().any(is_null))
        {
            let mut merged = object.clone();
            merged.remove("anyOf");
            merged.extend(other.clone());
            return (Value::Object(merged), true);
        }
    }
    (schema.clone(), false)
}

/// How a value is entered. `inside` is the place of its properties; deeper ones have no fields.
fn input(schema: &Value, pointer: &str, inside: Option<Depth>) -> Input {
    let Some(object) = schema.as_object() else { return Input::Json };
    if !is_expressible(object) {
        return Input::Json;
    }
    if let Some(value) = object.get("const") {
        return Input::Choice(vec![value.clone()]);
    }
    if let Some(Value::Array(values)) = object.get("enum") {
        let is_short = (1..=MAX_CHOICES).contains(&values.len());
        return if is_short { Input::Choice(values.clone()) } else { Input::Json };
    }
    match object.get("type").and_then(Value::as_str) {
        Some("string") => Input::Text(text_kind(object)),
        Some("integer") => Input::Integer,
        Some("number") => Input::Number,
        Some("boolean") => Input::Boolean,
        Some("array") if is_string_array(object) => Input::Lines,
        Some("object") if object.contains_key("properties") => {
            let properties = inside.and_then(|depth| object_properties(schema, pointer, depth));
            properties.map_or(Input::Json, Input::Group)
        }
        _ => Input::Json,
    }
}

fn text_kind(schema: &Map<String, Value>) -> TextKind {
    /// Strings up to this length fit on a line.
    const LINE_CHARS: u64 = 100;
    let format = schema.get("format").and_then(Value::as_str);
    let is_write_only = schema.get("writeOnly") == Some(&Value::Bool(true));
    let is_short = schema.get("maxLength").and_then(Value::as_u64).is_some_and(|n| n <= LINE_CHARS);
    match format {
        Some("password") => TextKind::Secret,
        _ if is_write_only => TextKind::Secret,
        Some(_) => TextKind::Line,
        None if is_short => TextKind::Line,
        None => TextKind::Lines,
    }
}

fn is_string_array(schema: &Map<String, Value>) -> bool {
    let Some(Value::Object(items)) = schema.get("items") else { return false };
    is_expressible(items) && items.get("type").is_some_and(|kind| kind == "string")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Form, Input};

    fn inputs(schema: &serde_json::Value) -> Vec<(String, Input)> {
        match Form::from_schema(schema) {
            Form::Fields(properties) => {
                properties.into_iter().map(|property| (property.pointer, property.input)).collect()
            }
            Form::Json => panic!("expected fields for {schema}"),
        }
    }

    #[test]
    fn references_and_alternatives_are_edited_as_json() {
        for keyword in ["$ref", "oneOf", "anyOf", "allOf", "not", "patternProperties", "if"] {
            let whole = json!({"type": "object", "properties": {}, keyword: {}});
            assert_eq!(Form::from_schema(&whole), Form::Json, "{keyword}");
            let one = json!({"type": "object", "properties": {"a/b": {keyword: {}}}});
            assert_eq!(inputs(&one), [("/a~1b".to_owned(), Input::Json)], "{keyword}");
        }
    }

    #[test]
    fn schemas_that_are_no_objects_are_edited_as_json() {
        let free = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let missing = json!({"type": "object", "required": ["x"]});
        for schema in [json!(true), json!(null), json!({"type": "array"}), free, missing] {
            assert_eq!(Form::from_schema(&schema), Form::Json, "{schema}");
        }
        assert_eq!(Form::from_schema(&json!({"type": "object"})), Form::Fields(Vec::new()));
    }

    #[test]
    fn objects_are_nested_one_level() {
        let leaf = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
        let inner = json!({"type": "object", "properties": {"leaf": leaf}});
        let schema = json!({"type": "object", "properties": {"inner": inner}});
        let [(_, Input::Group(properties))] = &inputs(&schema)[..] else { panic!("no group") };
        assert_eq!(properties[0].pointer, "/inner/leaf");
        assert_eq!(properties[0].input, Input::Json);
    }

    #[test]
    fn null_as_an_alternative_keeps_the_field() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": ["integer", "null"]},
            "b": {"anyOf": [{"type": "null"}, {"type": "boolean"}], "default": null},
            "c": {"type": ["integer", "string"]},
        }});
        let inputs: Vec<Input> = inputs(&schema).into_iter().map(|(_, input)| input).collect();
        assert_eq!(inputs, [Input::Integer, Input::Boolean, Input::Json]);
    }
}
