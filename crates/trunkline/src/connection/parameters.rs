//! Arguments that a server wants to see beside the body: `x-mcp-header` in the schema of a tool.

use serde_json::{Map, Value};

use crate::message::Raw;

/// The key that marks such an argument.
const MARK: &str = "x-mcp-header";

/// How deep in the arguments they are looked for.
const MAX_DEPTH: usize = 16;

/// An argument that is repeated in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mirrored {
    header: Box<str>,
    /// Where it is in the arguments.
    path: Vec<Box<str>>,
}

/// The arguments a tool wants repeated, or why what it wants cannot be done.
pub(super) fn mirrored(definition: &Raw) -> Result<Vec<Mirrored>, &'static str> {
    // Nearly no schema has any.
    if memchr::memmem::find(definition.bytes(), MARK.as_bytes()).is_none() {
        return Ok(Vec::new());
    }
    let schema = definition.get("inputSchema").map(|schema| schema.to_value());
    let mut search = Search { found: Vec::new(), path: Vec::new() };
    let schema = schema.unwrap_or_default();
    search.object(&schema)?;
    if marks(&schema) > search.found.len() {
        return Err("a header in it is for something that is no named argument");
    }
    Ok(search.found)
}

/// How many marks there are, wherever they are.
fn marks(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| match (key.as_str(), value) {
                // The keys of these are the names of arguments.
                ("properties", Value::Object(named)) => named.values().map(marks).sum(),
                (MARK, _) => 1,
                _ => marks(value),
            };
            members.iter().map(member).sum()
        }
        Value::Array(items) => items.iter().map(marks).sum(),
        _ => 0,
    }
}

/// Whether two definitions of a tool are the same, but for which arguments go into headers: that is
/// between us and the server.
pub(crate) fn are_same_but_for_headers(one: &Raw, other: &Raw) -> bool {
    let is_marked = |it: &Raw| memchr::memmem::find(it.bytes(), MARK.as_bytes()).is_some();
    one == other || ((is_marked(one) || is_marked(other)) && unmarked(one) == unmarked(other))
}

fn unmarked(definition: &Raw) -> Value {
    let mut definition = definition.to_value();
    if let Some(schema) = definition.get_mut("inputSchema") {
        unmark(schema);
    }
    definition
}

/// Takes away every mark, in the places where there can be one.
fn unmark(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.remove(MARK);
            for (key, value) in members {
                match (key.as_str(), value) {
                    // The keys of these are the names of arguments.
                    ("properties", Value::Object(named)) => named.values_mut().for_each(unmark),
                    (_, value) => unmark(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(unmark),
        _ => {}
    }
}

struct Search {
    found: Vec<Mirrored>,
    path: Vec<Box<str>>,
}

impl Search {
    /// Looks through the properties of an object, and those of objects in it.
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
        self.found.push(Mirrored { header: header.into(), path: self.path.clone() });
        Ok(())
    }
}

/// Whether a byte may stand in the name of a header (RFC 9110).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The headers of a call, with the values its arguments have. What is absent or null has none.
pub(super) fn headers(mirrored: &[Mirrored], params: Option<&Raw>) -> Vec<(Box<str>, Box<str>)> {
    if mirrored.is_empty() {
        return Vec::new();
    }
    let arguments = params.and_then(|params| params.get("arguments"));
    let Some(Value::Object(arguments)) = arguments.map(|arguments| arguments.to_value()) else {
        return Vec::new();
    };
    let header = |wanted: &Mirrored| {
        let value = text_of(value_at(&arguments, &wanted.path)?)?;
        Some((wanted.header.clone(), value))
    };
    mirrored.iter().filter_map(header).collect()
}

/// The headers that a call of a tool has to have, after `Mcp-Param-`, with the values its arguments
/// have; nothing for those whose argument is absent.
pub fn header_arguments(definition: &Raw, params: &Raw) -> Vec<(Box<str>, Option<Box<str>>)> {
    let wanted = mirrored(definition).unwrap_or_default();
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut values = headers(&wanted, Some(params));
    let value = |wanted: Mirrored| {
        let found = values.iter().position(|(header, _)| *header == wanted.header);
        (wanted.header, found.map(|at| values.swap_remove(at).1))
    };
    wanted.into_iter().map(value).collect()
}

fn value_at<'v>(arguments: &'v Map<String, Value>, path: &[Box<str>]) -> Option<&'v Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(arguments.get(&**first)?, |value, key| value.get(&**key))
}

fn text_of(value: &Value) -> Option<Box<str>> {
    match value {
        Value::String(text) => Some(text.as_str().into()),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Bool(flag) => Some(flag.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The name or address that a request is about, which some wires say beside it.
pub(super) fn subject(method: &str, params: Option<&Raw>) -> Option<Box<str>> {
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    let value = params?.get(key)?;
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
        let wanted = mirrored(&tool).unwrap();
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
    fn what_goes_into_headers_makes_no_other_tool_and_all_else_does() {
        let marked = json!({ "a": { "type": "string", "x-mcp-header": "A" } });
        let plain = json!({ "a": { "type": "string" } });
        let named_so = json!({ "a": { "type": "string" }, "x-mcp-header": { "type": "string" } });
        let other = json!({ "a": { "type": "integer", "x-mcp-header": "A" } });
        let are_same = |one, other| are_same_but_for_headers(&tool(one), &tool(other));
        assert!(are_same(&marked, &plain) && are_same(&marked, &marked));
        for other in [&named_so, &other] {
            assert!(!are_same(other, &plain) && !are_same(&marked, other), "{other}");
        }
        let destructive = tool(&marked).with("annotations", &Raw::from_text("{}").unwrap());
        assert!(!are_same_but_for_headers(&destructive, &tool(&plain)));
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
            assert!(mirrored(&tool(&json!({ "p": property.clone() }))).is_err(), "{property}");
        }
        let twice =
            json!({ "p": of(json!("MyField"), "string"), "q": of(json!("myfield"), "string") });
        assert!(mirrored(&tool(&twice)).is_err());
        let deep = json!({ "p": { "type": "array", "items": of(json!("A"), "string") } });
        assert!(mirrored(&tool(&deep)).is_err());
        let named_so = json!({ "x-mcp-header": { "type": "string" } });
        assert_eq!(mirrored(&tool(&named_so)), Ok(Vec::new()));
    }
}
