//! Checks call arguments against the input schema of a tool before they are sent (CALL-6).
//!
//! The server decides in the end. The check covers frequent mistakes of models: missing or invented
//! keys, values of the wrong type, values outside an enum. Unsupported parts of a schema are
//! ignored, so that no call is rejected that the server might accept. The crate `jsonschema` would add
//! thirty dependencies, and its messages name schema paths in place of the keys that a model has to
//! change; property tests compare the two.

use std::fmt;

use serde_json::{Map, Value};

use crate::config::Suggestions;
use crate::message::Raw;

/// Maximum number of problems reported at once; a model can fix no more in one step.
const MAX_PROBLEMS: usize = 8;

/// Maximum depth of a value that is checked. It also ends circular references.
const MAX_DEPTH: usize = 32;

/// Maximum number of characters of a value or a list that a message repeats.
const SHOWN: usize = 120;

/// Problems in the arguments of a call, as messages that a model can act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidArguments {
    problems: Vec<String>,
}

impl InvalidArguments {
    /// All problems, in the order of the schema.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for InvalidArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the arguments do not fit the tool: {}", self.problems.join("; "))
    }
}

impl std::error::Error for InvalidArguments {}

/// Checks arguments against an input schema.
///
/// ```
/// use trunkline::content::validate_arguments;
/// use trunkline::message::Raw;
///
/// let schema = r#"{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"}},
///                  "required":["path"],"additionalProperties":false}"#;
/// let check = |arguments: &str| {
///     validate_arguments(&Raw::from_text(schema).unwrap(), &Raw::from_text(arguments).unwrap())
/// };
/// assert!(check(r#"{"path":"/tmp","limit":5}"#).is_ok());
/// assert_eq!(
///     check(r#"{"pth":"/tmp","limit":"5"}"#).unwrap_err().to_string(),
///     "the arguments do not fit the tool: `path` is missing; `limit` must be an integer, not a \
///      string; `pth` is not known, did you mean `path`?"
/// );
/// ```
pub fn validate_arguments(schema: &Raw, arguments: &Raw) -> Result<(), InvalidArguments> {
    // A value that nests too deep to be parsed is left to the server.
    let (Some(root), Some(arguments)) = (tree(schema), tree(arguments)) else { return Ok(()) };
    let mut check = ArgumentCheck::new(&root);
    check.value(&root, &arguments, &ArgumentPath::default());
    if check.has_more {
        check.problems.push("there are more".to_owned());
    }
    match check.problems.is_empty() {
        true => Ok(()),
        false => Err(InvalidArguments { problems: check.problems }),
    }
}

fn tree(value: &Raw) -> Option<Value> {
    serde_json::from_str(value.text()).ok()
}

/// The path of a value, for messages.
#[derive(Clone, Default)]
struct ArgumentPath {
    path: String,
    depth: usize,
}

impl ArgumentPath {
    fn key(&self, key: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self { path: format!("{}{dot}{key}", self.path), depth: self.depth + 1 }
    }

    fn item(&self, index: usize) -> Self {
        Self { path: format!("{}[{index}]", self.path), depth: self.depth + 1 }
    }

    fn again(&self) -> Self {
        Self { path: self.path.clone(), depth: self.depth + 1 }
    }
}

impl fmt::Display for ArgumentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.path {
            "" => f.write_str("the whole"),
            path => write!(f, "`{}`", shortened(path)),
        }
    }
}

struct ArgumentCheck<'s> {
    root: &'s Value,
    problems: Vec<String>,
    /// Whether there are problems that are not reported.
    has_more: bool,
}

impl<'s> ArgumentCheck<'s> {
    fn new(root: &'s Value) -> Self {
        Self { root, problems: Vec::new(), has_more: false }
    }

    fn value(&mut self, schema: &Value, value: &Value, place: &ArgumentPath) {
        let Value::Object(schema) = schema else { return };
        if place.depth > MAX_DEPTH || self.has_more {
            return;
        }
        if let Some(Value::String(reference)) = schema.get("$ref") {
            if let Some(target) = referred(self.root, reference) {
                self.value(target, value, &place.again());
            }
            return;
        }
        if schema.get("nullable") == Some(&Value::Bool(true)) && value.is_null() {
            return;
        }
        if self.has_type(schema, value, place) {
            self.choices(schema, value, place);
            self.bounds(schema, value, place);
            self.members(schema, value, place);
            self.items(schema, value, place);
            self.combined(schema, value, place);
        }
    }

    fn has_type(
        &mut self,
        schema: &Map<String, Value>,
        value: &Value,
        place: &ArgumentPath,
    ) -> bool {
        let allowed: Vec<&str> = match schema.get("type") {
            Some(Value::String(word)) => Vec::from([word.as_str()]),
            Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
            _ => return true,
        };
        if allowed.is_empty() || allowed.iter().any(|word| is_of_type(value, word)) {
            return true;
        }
        let allowed: Vec<_> = allowed.iter().map(|word| with_article(word)).collect();
        let found = with_article(json_type(value));
        self.report(format!("{place} must be {}, not {found}", allowed.join(" or ")));
        false
    }

    fn choices(&mut self, schema: &Map<String, Value>, value: &Value, place: &ArgumentPath) {
        let single = schema.get("const").map(std::slice::from_ref);
        let list = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice);
        let Some(allowed) = single.or(list) else { return };
        if !allowed.iter().any(|it| is_same(it, value)) {
            self.report(format!("{place} must be one of {}", listed(allowed)));
        }
    }

    fn bounds(&mut self, schema: &Map<String, Value>, value: &Value, place: &ArgumentPath) {
        let (size, [least, most], unit) = match value {
            Value::Number(number) => (number.as_f64(), ["minimum", "maximum"], ""),
            Value::String(text) => {
                (count(text.chars().count()), ["minLength", "maxLength"], " characters")
            }
            Value::Array(items) => (count(items.len()), ["minItems", "maxItems"], " items"),
            _ => return,
        };
        let Some(size) = size else { return };
        let bound = |key| schema.get(key).and_then(Value::as_f64);
        if let Some(least) = bound(least).filter(|least| size < *least) {
            self.report(format!("{place} must be at least {least}{unit}"));
        }
        if let Some(most) = bound(most).filter(|most| size > *most) {
            self.report(format!("{place} must be at most {most}{unit}"));
        }
    }

    fn members(&mut self, schema: &Map<String, Value>, value: &Value, place: &ArgumentPath) {
        let Value::Object(members) = value else { return };
        let required = schema.get("required").and_then(Value::as_array);
        for key in required.into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(key) {
                self.report(format!("{} is missing", place.key(key)));
            }
        }
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        for (key, schema) in properties {
            if let Some(value) = members.get(key) {
                self.value(schema, value, &place.key(key));
            }
        }
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
            && !schema.contains_key("patternProperties");
        if is_closed {
            self.unknown_keys(properties, members, place);
        }
    }

    fn unknown_keys(
        &mut self,
        properties: &Map<String, Value>,
        members: &Map<String, Value>,
        place: &ArgumentPath,
    ) {
        let mut suggestions = Suggestions::default();
        for key in members.keys().filter(|key| !properties.contains_key(*key)) {
            let near = suggestions.nearest(key, properties.keys().map(String::as_str));
            let near = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            self.report(format!("{} is not known{near}", place.key(key)));
        }
    }

    fn items(&mut self, schema: &Map<String, Value>, value: &Value, place: &ArgumentPath) {
        // Before JSON Schema 2020-12, `items` could be a list with one schema per item.
        let is_tuple = schema.contains_key("prefixItems");
        let (Value::Array(items), Some(schema)) = (value, schema.get("items")) else { return };
        if schema.is_object() && !is_tuple {
            for (index, item) in items.iter().enumerate() {
                self.value(schema, item, &place.item(index));
            }
        }
    }

    fn combined(&mut self, schema: &Map<String, Value>, value: &Value, place: &ArgumentPath) {
        let list = |key| schema.get(key).and_then(Value::as_array);
        for part in list("allOf").into_iter().flatten() {
            self.value(part, value, &place.again());
        }
        for alternatives in [list("anyOf"), list("oneOf")].into_iter().flatten() {
            let problems = alternatives.iter().map(|schema| {
                let mut check = ArgumentCheck::new(self.root);
                check.value(schema, value, &place.again());
                check.problems
            });
            let problems: Vec<_> = problems.collect();
            if problems.is_empty() || problems.iter().any(Vec::is_empty) {
                continue;
            }
            let each: Vec<_> = problems.iter().filter_map(|it| it.first()).cloned().collect();
            self.report(format!(
                "{place} fits none of its forms ({})",
                shortened(&each.join(" / "))
            ));
        }
    }

    fn report(&mut self, problem: String) {
        if self.problems.contains(&problem) {
            return;
        }
        match self.problems.len() < MAX_PROBLEMS {
            true => self.problems.push(problem),
            false => self.has_more = true,
        }
    }
}

/// Resolves a reference to a part of the schema.
fn referred<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    root.pointer(reference.strip_prefix('#')?)
}

fn count(number: usize) -> Option<f64> {
    u32::try_from(number).ok().map(f64::from)
}

fn is_of_type(value: &Value, word: &str) -> bool {
    match word {
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" | "string" | "boolean" | "null" | "array" | "object" => json_type(value) == word,
        _ => true,
    }
}

/// The type of a value, in the words of JSON Schema.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn with_article(word: &str) -> String {
    match word {
        "null" => "null".to_owned(),
        word if word.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {word}"),
        word => format!("a {word}"),
    }
}

/// Whether two values are equal; 1 and 1.0 are.
fn is_same(a: &Value, b: &Value) -> bool {
    a == b || (a.is_number() && a.as_f64() == b.as_f64())
}

/// The first values of a list, as many as are shown, and the number of the others.
fn listed(values: &[Value]) -> String {
    let (mut text, mut length) = (String::new(), 0);
    for (at, value) in values.iter().enumerate() {
        let value = value.to_string();
        length += value.chars().count() + 2;
        if at > 0 && length > SHOWN {
            return format!("{text} and {} more", values.len() - at);
        }
        let separator = if at > 0 { ", " } else { "" };
        text += &format!("{separator}{}", shortened(&value));
    }
    text
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN).and_then(|(end, _)| text.get(..end)) {
        Some(head) => format!("{head}…"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn problems(schema: &Value, arguments: &Value) -> Vec<String> {
        let [schema, arguments] = [schema, arguments].map(Raw::from_value);
        validate_arguments(&schema, &arguments).map_or_else(|bad| bad.problems, |()| Vec::new())
    }

    #[test]
    fn common_argument_mistakes_are_reported() {
        let schema = json!({ "type": "object", "required": ["mode"], "properties": {
            "mode": { "enum": ["fast", "slow"] },
            "count": { "type": "integer", "minimum": 1, "maximum": 9 },
            "names": { "type": "array", "items": { "$ref": "#/$defs/name" }, "maxItems": 2 },
            "either": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
        }, "$defs": { "name": { "type": "string", "minLength": 1 } } });
        assert_eq!(problems(&schema, &json!({})), ["`mode` is missing"]);
        assert_eq!(problems(&schema, &json!([])), ["the whole must be an object, not an array"]);
        let wrong = json!({ "mode": "quick", "count": 10.5, "names": ["", 1, "c"], "either": 1 });
        assert_eq!(
            problems(&schema, &wrong),
            [
                "`count` must be an integer, not a number",
                "`either` fits none of its forms (`either` must be a string, not a number / `either` must be null, not a number)",
                "`mode` must be one of \"fast\", \"slow\"",
                "`names` must be at most 2 items",
                "`names[0]` must be at least 1 characters",
                "`names[1]` must be a string, not a number",
            ]
        );
        let right =
            json!({ "mode": "fast", "count": 9.0, "names": ["a"], "either": null, "more": 1 });
        assert!(problems(&schema, &right).is_empty());
    }

    /// Seen: the list ended inside of a quoted value.
    #[test]
    fn a_long_list_of_values_is_cut_between_them() {
        let values: Vec<_> = (10..50).map(|at| format!("value {at}")).collect();
        let schema = json!({ "properties": { "mode": { "enum": values } } });
        let [problem] = &problems(&schema, &json!({ "mode": "x" }))[..] else { panic!() };
        assert!(
            problem.starts_with("`mode` must be one of \"value 10\", \"value 11\", "),
            "{problem}"
        );
        let (shown, more) = problem.rsplit_once(" and ").unwrap();
        assert_eq!(more, format!("{} more", 40 - shown.matches("value").count()));
        assert!(shown.ends_with('"') && problem.chars().count() < 200, "{problem}");
        let long = json!({ "properties": { "mode": { "enum": ["y".repeat(500), "z"] } } });
        let [problem] = &problems(&long, &json!({ "mode": "x" }))[..] else { panic!() };
        assert!(problem.ends_with("yyy… and 1 more"), "{problem}");
    }

    #[test]
    fn unknown_keywords_pass_and_cycles_end() {
        let round = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/a" } } });
        for schema in [
            json!(true),
            json!({ "type": "thing" }),
            json!({ "$ref": "https://x/y" }),
            json!({ "type": 7, "enum": "x", "required": "y", "items": [1] }),
            round,
        ] {
            assert!(problems(&schema, &json!({ "a": [1] })).is_empty(), "{schema}");
        }
    }

    #[test]
    fn too_deep_arguments_pass() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(1000), "]".repeat(1000));
        let schema = Raw::from_text(r#"{"type":"object"}"#).unwrap();
        assert!(validate_arguments(&schema, &Raw::from_text(&deep).unwrap()).is_ok());
    }

    /// Generates schemas from supported and some unsupported keywords.
    fn schemas() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!({})),
            Just(json!({ "type": "string", "minLength": 1 })),
            Just(json!({ "type": ["integer", "null"] })),
            Just(json!({ "enum": [1, "a", null] })),
            Just(json!({ "const": 1.0 })),
            Just(json!({ "type": "number", "maximum": 1 })),
            Just(json!({ "not": { "type": "string" } })),
            Just(json!({ "type": "array", "items": { "type": "string" }, "maxItems": 1 })),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(|it| json!({ "type": "object", "properties": { "a": it },
                    "required": ["a"], "additionalProperties": false })),
                inner.clone().prop_map(|it| json!({ "properties": { "a": it } })),
                proptest::collection::vec(inner.clone(), 1..3)
                    .prop_map(|it| json!({ "anyOf": it })),
                proptest::collection::vec(inner.clone(), 1..3)
                    .prop_map(|it| json!({ "oneOf": it })),
                proptest::collection::vec(inner, 1..3).prop_map(|it| json!({ "allOf": it })),
            ]
        })
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            Just(json!(1)),
            Just(json!(1.0)),
            Just(json!(1.5)),
            Just(json!("")),
            Just(json!("a")),
            Just(json!(true)),
            Just(json!(["a"])),
            Just(json!([1, "a"])),
        ];
        leaf.prop_recursive(3, 8, 2, |inner| {
            prop_oneof![
                inner.clone().prop_map(|it| json!({ "a": it })),
                inner.prop_map(|it| json!({ "b": it })),
            ]
        })
    }

    proptest! {
        /// Compares with a complete validator: no valid arguments are rejected.
        #[test]
        fn nothing_is_refused_that_fits(schema in schemas(), value in values()) {
            if jsonschema::is_valid(&schema, &value) {
                prop_assert_eq!(problems(&schema, &value), Vec::<String>::new());
            }
        }
    }
}
