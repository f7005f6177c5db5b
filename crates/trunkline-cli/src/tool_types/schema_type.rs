//! A JSON Schema as a type, as far as types of programming languages can say it.

use serde_json::Value;

/// Depth of nested types; below, a type is anything.
const MAX_DEPTH: usize = 8;

/// Alternatives and values of one type.
const MAX_ALTERNATIVES: usize = 100;

/// A type of values.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SchemaType {
    Any,
    String,
    Number,
    Integer,
    Boolean,
    Null,
    /// One of these values: strings, numbers, booleans or null.
    Literal(Vec<Value>),
    List(Box<SchemaType>),
    Object(ObjectType),
    Union(Vec<SchemaType>),
}

/// An object with named members.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ObjectType {
    pub(super) members: Vec<ObjectField>,
    /// The type of members without a name of their own, if the schema describes them.
    pub(super) others: Option<Box<SchemaType>>,
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ObjectField {
    pub(super) name: String,
    pub(super) kind: SchemaType,
    pub(super) is_required: bool,
    pub(super) description: String,
}

impl SchemaType {
    /// The type of a schema. `$ref` is followed within it.
    pub(super) fn of_schema(schema: &Value) -> Self {
        Self::read(schema, schema, 0)
    }

    fn read(schema: &Value, root: &Value, depth: usize) -> Self {
        if depth > MAX_DEPTH {
            return Self::Any;
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let found = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            return found.map_or(Self::Any, |found| Self::read(found, root, depth + 1));
        }
        if let Some(value) = schema.get("const") {
            return literal(std::slice::from_ref(value));
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return literal(values);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(choices) = schema.get(key).and_then(Value::as_array) {
                let choices = choices.iter().take(MAX_ALTERNATIVES);
                return union(choices.map(|it| Self::read(it, root, depth + 1)).collect());
            }
        }
        match schema.get("type") {
            Some(Value::String(kind)) => Self::of_kind(kind, schema, root, depth),
            Some(Value::Array(kinds)) => {
                let kinds = kinds.iter().filter_map(Value::as_str).take(MAX_ALTERNATIVES);
                union(kinds.map(|kind| Self::of_kind(kind, schema, root, depth)).collect())
            }
            _ if schema.get("properties").is_some() => Self::of_kind("object", schema, root, depth),
            _ => Self::Any,
        }
    }

    fn of_kind(kind: &str, schema: &Value, root: &Value, depth: usize) -> Self {
        match kind {
            "string" => Self::String,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "boolean" => Self::Boolean,
            "null" => Self::Null,
            "array" => {
                let items =
                    schema.get("items").map_or(Self::Any, |it| Self::read(it, root, depth + 1));
                Self::List(Box::new(items))
            }
            "object" => Self::Object(object(schema, root, depth)),
            _ => Self::Any,
        }
    }
}

fn object(schema: &Value, root: &Value, depth: usize) -> ObjectType {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let field = |(name, kind): (&String, &Value)| ObjectField {
        name: name.clone(),
        kind: SchemaType::read(kind, root, depth + 1),
        is_required: required.contains(&name.as_str()),
        description: kind.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
    };
    let others = schema.get("additionalProperties").filter(|it| it.is_object());
    ObjectType {
        members: properties.into_iter().flatten().map(field).collect(),
        others: others.map(|it| Box::new(SchemaType::read(it, root, depth + 1))),
    }
}

fn literal(values: &[Value]) -> SchemaType {
    let is_plain = |value: &&Value| !value.is_array() && !value.is_object();
    match values.iter().all(|value| is_plain(&value))
        && values.len() <= MAX_ALTERNATIVES
        && !values.is_empty()
    {
        true => SchemaType::Literal(values.to_vec()),
        false => SchemaType::Any,
    }
}

fn union(kinds: Vec<SchemaType>) -> SchemaType {
    let mut distinct: Vec<SchemaType> = Vec::new();
    for kind in kinds {
        if !distinct.contains(&kind) {
            distinct.push(kind);
        }
    }
    match distinct.len() {
        0 => SchemaType::Any,
        1 => distinct.remove(0),
        _ if distinct.contains(&SchemaType::Any) => SchemaType::Any,
        _ => SchemaType::Union(distinct),
    }
}
