//! Arguments that a server requires in headers: `x-mcp-header` in the schema of a tool.

use serde_json::Value;

use crate::item::HEADER_MARK as MARK;
use crate::message::Raw;
use crate::protocol::subject_key;

/// Depth to which the arguments are searched.
const MAX_DEPTH: usize = 16;

/// An argument that is repeated in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParamHeader {
    header: Box<str>,
    /// Its path in the arguments.
    path: Vec<Box<str>>,
}

/// The arguments that a tool requires in headers, or the reason why its schema is invalid.
pub(super) fn param_headers(definition: &Raw) -> Result<Vec<ParamHeader>, &'static str> {
    // Nearly no schema has any.
    if memchr::memmem::find(definition.bytes(), MARK.as_bytes()).is_none() {
        return Ok(Vec::new());
    }
    let Some(schema) = definition.get("inputSchema") else { return Ok(Vec::new()) };
    let schema = schema.as_value().ok_or("its input schema cannot be read")?;
    let mut search = ParamHeaderSearch { found: Vec::new(), path: Vec::new() };
    search.object(&schema)?;
    if count_marks(&schema) > search.found.len() {
        return Err("a header in it is for something that is no named argument");
    }
    Ok(search.found)
}

/// Number of marks anywhere in the schema.
fn count_marks(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| match (key.as_str(), value) {
                // The keys of `properties` are names of arguments.
                ("properties", Value::Object(named)) => named.values().map(count_marks).sum(),
                (MARK, _) => 1,
                _ => count_marks(value),
            };
            members.iter().map(member).sum()
        }
        Value::Array(items) => items.iter().map(count_marks).sum(),
        _ => 0,
    }
}

struct ParamHeaderSearch {
    found: Vec<ParamHeader>,
    path: Vec<Box<str>>,
}

impl ParamHeaderSearch {
    /// Searches the properties of an object, recursively.
    fn object(&mut self, schema: &Value) -> Result<(), &'static str> {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Ok(());
        };
        if self.path.len() >= MAX_DEPTH {
            return Ok(());
        }
        for (name, property) in properties {
            self.path.push(name.as_str().into());
            if let Some(mark) = property.get(MARK) {
                self.take(mark, property)?;
            }
            self.object(property)?;
            self.path.pop();
        }
        Ok(())
    }

    fn take(&mut self, mark: &Value, property: &Value) -> Result<(), &'static str> {
        let header = mark.as_str().ok_or("the name of a header in it is not a text")?;
        if header.is_empty() || !header.bytes().all(is_token) {
            return Err("the name of a header in it cannot be one");
        }
        if !matches!(property["type"].as_str(), Some("string" | "integer" | "boolean")) {
            return Err("a header in it would hold neither a text, an integer nor a truth value");
        }
        if self.found.iter().any(|other| other.header.eq_ignore_ascii_case(header)) {
            return Err("two headers in it have the same name");
        }
        self.found.push(ParamHeader { header: header.into(), path: self.path.clone() });
        Ok(())
    }
}

/// Whether a byte is allowed in a header name (RFC 9110).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The headers of a call, with the values of its arguments. Absent and null arguments have none.
pub(super) fn headers(mirrored: &[ParamHeader], params: Option<&Raw>) -> Vec<(Box<str>, Box<str>)> {
    if mirrored.is_empty() {
        return Vec::new();
    }
    let arguments = params.and_then(|params| params.get("arguments"));
    let Some(arguments) = arguments else { return Vec::new() };
    let header = |wanted: &ParamHeader| {
        let value = text_of(&value_at(&arguments, &wanted.path)?)?;
        Some((wanted.header.clone(), value))
    };
    mirrored.iter().filter_map(header).collect()
}

/// The headers that a call of a tool requires, without `Mcp-Param-`, with the values of its
/// arguments; `None` for absent arguments.
pub fn header_arguments(definition: &Raw, params: &Raw) -> Vec<(Box<str>, Option<Box<str>>)> {
    // Headers of an invalid schema cannot be sent.
    let Ok(wanted) = param_headers(definition) else { return Vec::new() };
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut values = headers(&wanted, Some(params));
    let value = |wanted: ParamHeader| {
        let found = values.iter().position(|(header, _)| *header == wanted.header);
        (wanted.header, found.map(|at| values.swap_remove(at).1))
    };
    wanted.into_iter().map(value).collect()
}

fn value_at(arguments: &Raw, path: &[Box<str>]) -> Option<Raw> {
    path.iter().try_fold(arguments.clone(), |value, key| value.get(key))
}

/// A string, number or boolean as text. A number that `serde_json` cannot represent stays as it was
/// written.
fn text_of(value: &Raw) -> Option<Box<str>> {
    match value.as_value() {
        Some(Value::String(text)) => Some(text.into()),
        Some(Value::Number(number)) => Some(number.to_string().into()),
        Some(Value::Bool(flag)) => Some(flag.to_string().into()),
        Some(Value::Null | Value::Array(_) | Value::Object(_)) => None,
        None if value.text().starts_with(['{', '[', '"']) => None,
        None => Some(value.text().into()),
    }
}

/// The name or URI that a request is about, for transports that repeat it in a header.
pub(super) fn subject(method: &str, params: Option<&Raw>) -> Option<Box<str>> {
    let value = params?.get(subject_key(method)?)?;
    value.as_str().map(Into::into)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(properties: &Value) -> Raw {
        let schema = json!({ "type": "object", "properties": properties });
        Raw::from_value(&json!({ "name": "t", "inputSchema": schema }))
    }

    #[test]
    fn marked_arguments_become_headers_with_the_values_they_have() {
        let tool = tool(&json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "count": { "type": "integer", "x-mcp-header": "Count" },
            "dry": { "type": "boolean", "x-mcp-header": "Dry" },
            "gone": { "type": "string", "x-mcp-header": "Gone" },
            "none": { "type": "string", "x-mcp-header": "None" },
            "plain": { "type": "string" },
            "in": { "type": "object", "properties": {
                "side": { "type": "string", "x-mcp-header": "Inside" } } },
        }));
        let wanted = param_headers(&tool).unwrap();
        let params = Raw::from_value(&json!({ "name": "t", "arguments": {
            "region": "", "count": 42, "dry": false, "none": null, "plain": "x",
            "in": { "side": "é" } } }));
        let mut found = headers(&wanted, Some(&params));
        found.sort();
        let found: Vec<_> = found.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(found, [("Count", "42"), ("Dry", "false"), ("Inside", "é"), ("Region", "")]);
        assert!(headers(&wanted, None).is_empty());
    }

    #[test]
    fn no_arguments_are_taken_of_a_schema_that_cannot_become_a_tree() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        for value in ["1e999", &deep] {
            let text = format!(
                r#"{{"name":"t","inputSchema":{{"type":"object","properties":{{"a":{{"type":"string","x-mcp-header":"A","default":{value}}}}}}}}}"#
            );
            assert!(param_headers(&Raw::from_text(&text).unwrap()).is_err(), "{value}");
        }
    }

    #[test]
    fn arguments_that_cannot_become_a_tree_are_repeated_all_the_same() {
        let tool = tool(&json!({ "region": { "type": "string", "x-mcp-header": "Region" } }));
        let params = r#"{"name":"t","arguments":{"region":"eu","other":1e999}}"#;
        let found = headers(&param_headers(&tool).unwrap(), Raw::from_text(params).ok().as_ref());
        assert_eq!(found, [("Region".into(), "eu".into())]);
    }

    #[test]
    fn tools_that_want_impossible_headers_are_refused() {
        let of = |name: Value, kind: &str| json!({ "type": kind, "x-mcp-header": name });
        for property in [
            of(json!(""), "string"),
            of(json!("My Region"), "string"),
            of(json!("Region:Primary"), "string"),
            of(json!("Région"), "string"),
            of(json!("Region\t1"), "string"),
            of(json!(7), "string"),
            of(json!("A"), "object"),
            of(json!("A"), "array"),
            of(json!("A"), "null"),
            of(json!("A"), "number"),
        ] {
            assert!(param_headers(&tool(&json!({ "p": property.clone() }))).is_err(), "{property}");
        }
        let twice =
            json!({ "p": of(json!("MyField"), "string"), "q": of(json!("myfield"), "string") });
        assert!(param_headers(&tool(&twice)).is_err());
        let deep = json!({ "p": { "type": "array", "items": of(json!("A"), "string") } });
        assert!(param_headers(&tool(&deep)).is_err());
        let named_so = json!({ "x-mcp-header": { "type": "string" } });
        assert_eq!(param_headers(&tool(&named_so)), Ok(Vec::new()));
    }
}
