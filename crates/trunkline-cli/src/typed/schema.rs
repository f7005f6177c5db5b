//! The arguments of a tool, a prompt or a resource template, and the types that a value may have.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use trunkline::catalog::ItemKind;
use trunkline::config::escape_control;
use trunkline::content::json_type;
use trunkline::message::Raw;

use super::text_format;
use super::word::KeyPath;

/// Schemas that are followed by `$ref`, `anyOf` and the like for one type.
const MAX_SCHEMAS: usize = 64;

/// Depth and number of texts that are checked, and problems that are reported. Each text may need a regular expression.
const MAX_DEPTH: usize = 32;
const MAX_TEXTS: usize = 500;
const MAX_PROBLEMS: usize = 5;

/// The arguments of an item: the input schema of a tool, or one for the strings of a prompt or a template.
pub(crate) struct ArgumentSchema {
    /// The kind of the item, for messages.
    owner: ItemKind,
    /// Its name, where messages say it.
    name: Option<String>,
    root: Value,
    /// The names of its arguments, in the order of the schema.
    names: Vec<String>,
}

/// Characters at the beginning of an expression in a URI template that are not part of a name (RFC 6570).
const TEMPLATE_OPERATORS: &str = "+#./;?&=,!@|";

/// The values that a schema allows.
pub(super) struct ValueTypes {
    /// The names of types; empty if it does not say.
    types: BTreeSet<String>,
    /// The values of enumerations.
    listed: Vec<Value>,
    /// The schemas that allow strings, each with its own `format` or `pattern`.
    of_strings: Vec<Value>,
}

impl ArgumentSchema {
    fn new(owner: ItemKind, root: Value, names: Vec<String>) -> Self {
        Self { owner, name: None, root, names }
    }

    /// Adds the name of the item, for messages.
    #[must_use]
    pub(crate) fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// The item for messages: ``prompt `greet` ``.
    pub(super) fn owner(&self) -> String {
        match &self.name {
            Some(name) => format!("{} `{}`", self.owner.as_str(), escape_control(name)),
            None => self.owner.as_str().to_owned(),
        }
    }

    /// The input schema of a definition as in `tools/list`.
    pub(crate) fn of(definition: &Raw) -> Self {
        let Some(schema) = definition.get("inputSchema") else {
            return Self::new(ItemKind::Tool, Value::Null, Vec::new());
        };
        let members = schema.get("properties").map(|it| it.members()).unwrap_or_default();
        let names = members.into_iter().map(|(name, _)| name).collect();
        Self::new(ItemKind::Tool, schema.to_value(), names)
    }

    /// The arguments of a definition as in `prompts/list`, which are strings.
    pub(crate) fn of_prompt(definition: &Raw) -> Self {
        let items = definition.get("arguments").map(|it| it.items()).unwrap_or_default();
        let (mut properties, mut required, mut names) = (Map::new(), Vec::new(), Vec::new());
        for argument in items {
            let [name, description, is_required] =
                argument.get_all(["name", "description", "required"]);
            let text = |raw: &Option<Raw>| raw.as_ref().and_then(Raw::as_str).map(Cow::into_owned);
            let Some(name) = text(&name) else { continue };
            properties.insert(
                name.clone(),
                json!({ "type": "string", "description": text(&description) }),
            );
            if is_required.and_then(|it| it.as_bool()) == Some(true) {
                required.push(name.clone());
            }
            names.push(name);
        }
        let root = json!({ "properties": properties, "required": required, "additionalProperties": false });
        Self::new(ItemKind::Prompt, root, names)
    }

    /// The variables of a URI template, such as `x://{+path}{?sort,order*}`.
    pub(crate) fn of_template(template: &str) -> Self {
        let expressions = template.split('{').skip(1).filter_map(|part| part.split('}').next());
        let variables = expressions.flat_map(|expression| {
            let list = expression.strip_prefix(|it| TEMPLATE_OPERATORS.contains(it));
            list.unwrap_or(expression).split(',')
        });
        let names = variables.filter_map(|variable| variable.split([':', '*']).next());
        let names: Vec<_> = names.filter(|it| !it.is_empty()).map(str::to_owned).collect();
        let property = |name: &String| (name.clone(), json!({ "type": "string" }));
        let properties: Map<_, _> = names.iter().map(property).collect();
        let root = json!({ "properties": properties, "additionalProperties": false });
        Self::new(ItemKind::ResourceTemplate, root, names)
    }

    /// The names of all arguments, required ones first.
    pub(crate) fn names(&self) -> Vec<&str> {
        let required = self.required();
        let all = self.names.iter().map(String::as_str);
        let optional = all.filter(|name| !required.contains(name));
        required.iter().copied().chain(optional).collect()
    }

    /// The names of the arguments that a call needs.
    pub(crate) fn required(&self) -> Vec<&str> {
        let names = self.root.get("required").and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The schema of one argument.
    pub(crate) fn argument(&self, name: &str) -> Option<&Value> {
        self.root.get("properties")?.get(name)
    }

    /// The types of an argument.
    pub(crate) fn type_names(&self, name: &str) -> Vec<String> {
        self.types(&[name.to_owned()], false).types.into_iter().collect()
    }

    /// A text as the value of an argument.
    pub(crate) fn typed(&self, name: &str, text: &str) -> Raw {
        self.types(&[name.to_owned()], false).typed(text)
    }

    /// Whether the item may have this argument. One that is not described is allowed if the schema says so, or
    /// describes none.
    pub(super) fn allows(&self, name: &str) -> bool {
        let is_open = match self.root.get("additionalProperties") {
            Some(Value::Bool(is_open)) => *is_open,
            Some(_) => true,
            None => self.names.is_empty(),
        };
        let is_complex = ["anyOf", "oneOf", "allOf", "$ref", "patternProperties"]
            .iter()
            .any(|key| self.root.get(key).is_some());
        is_open || is_complex || self.root.is_null() || self.argument(name).is_some()
    }

    /// The keys of a path. A dot is part of a name if the schema has such a name.
    pub(super) fn split(&self, path: &KeyPath) -> Vec<String> {
        let whole = path.to_string();
        match self.argument(&whole).is_some() {
            true => vec![whole],
            false => path.keys.clone(),
        }
    }

    /// The types of the value at a path, or of the items of the list there.
    pub(super) fn types(&self, path: &[String], is_item: bool) -> ValueTypes {
        let mut schemas = vec![&self.root];
        for key in path {
            schemas = self.below(&schemas, |schema| schema.get("properties")?.get(key));
        }
        if is_item {
            schemas = self.below(&schemas, |schema| schema.get("items"));
        }
        let (mut types, mut listed, mut of_strings) = (BTreeSet::new(), Vec::new(), Vec::new());
        for schema in self.alternatives(&schemas) {
            let own_types = own_types(schema);
            if own_types.iter().any(|it| it == "string") {
                of_strings.push(schema.clone());
            }
            types.extend(own_types);
            let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
            listed.extend(values.chain(schema.get("const")).cloned());
        }
        ValueTypes { types, listed, of_strings }
    }

    /// Texts of the arguments that do not fit `format` or `pattern` where they certainly apply, each with its name.
    pub(crate) fn text_problems(&self, arguments: &Value) -> Vec<String> {
        let mut check =
            TextCheck { schema: self, path: Vec::new(), texts: 0, problems: Vec::new() };
        check.value(&[&self.root], arguments);
        check.problems
    }

    /// The schemas that all have to hold: these, and those of their `$ref` and `allOf`.
    pub(crate) fn conjunction<'s>(&'s self, schemas: &[&'s Value]) -> Vec<&'s Value> {
        let mut found: Vec<&Value> = Vec::new();
        let mut open = schemas.to_vec();
        while let Some(schema) = open.pop() {
            // A schema may refer to itself.
            if found.len() >= MAX_SCHEMAS || found.iter().any(|it| std::ptr::eq(*it, schema)) {
                continue;
            }
            found.push(schema);
            let reference = schema.get("$ref").and_then(Value::as_str);
            open.extend(reference.and_then(|it| self.root.pointer(it.strip_prefix('#')?)));
            open.extend(schema.get("allOf").and_then(Value::as_array).into_iter().flatten());
        }
        found
    }

    fn below<'s>(
        &'s self,
        schemas: &[&'s Value],
        step: impl Fn(&'s Value) -> Option<&'s Value>,
    ) -> Vec<&'s Value> {
        self.alternatives(schemas).into_iter().filter_map(step).collect()
    }

    /// The schemas with those that they refer to or combine.
    fn alternatives<'s>(&'s self, schemas: &[&'s Value]) -> Vec<&'s Value> {
        let mut found: Vec<&Value> = schemas.to_vec();
        let mut next = 0;
        while let Some(schema) = found.get(next).copied() {
            next += 1;
            if found.len() >= MAX_SCHEMAS {
                break;
            }
            let reference = schema.get("$ref").and_then(Value::as_str);
            found.extend(reference.and_then(|it| self.root.pointer(it.strip_prefix('#')?)));
            for key in ["anyOf", "oneOf", "allOf"] {
                found.extend(schema.get(key).and_then(Value::as_array).into_iter().flatten());
            }
        }
        found
    }
}

/// The check of the texts in a value.
struct TextCheck<'s> {
    schema: &'s ArgumentSchema,
    /// The steps to the value: `.key` or `[index]`.
    path: Vec<String>,
    /// The number of texts so far.
    texts: usize,
    problems: Vec<String>,
}

impl<'s> TextCheck<'s> {
    fn value(&mut self, schemas: &[&'s Value], value: &Value) {
        let is_over = self.problems.len() >= MAX_PROBLEMS || self.texts >= MAX_TEXTS;
        if is_over || self.path.len() > MAX_DEPTH || schemas.is_empty() {
            return;
        }
        let schemas = self.schema.conjunction(schemas);
        match value {
            Value::String(text) => {
                self.texts += 1;
                let problem = schemas.iter().find_map(|schema| text_format::problem(schema, text));
                let path = self.path.concat();
                let name = escape_control(path.strip_prefix('.').unwrap_or(&path));
                self.problems.extend(problem.map(|it| format!("`{name}` {it}")));
            }
            Value::Object(members) => {
                for (key, member) in members {
                    let below = |it: &&'s Value| it.get("properties")?.get(key);
                    self.member(
                        format!(".{key}"),
                        &schemas.iter().filter_map(below).collect::<Vec<_>>(),
                        member,
                    );
                }
            }
            Value::Array(items) => {
                // With `prefixItems`, `items` is not for the first ones.
                let is_for_all = |it: &&&'s Value| it.get("prefixItems").is_none();
                let below = schemas.iter().filter(is_for_all).filter_map(|it| it.get("items"));
                let below: Vec<_> = below.collect();
                for (at, item) in items.iter().enumerate() {
                    self.member(format!("[{at}]"), &below, item);
                }
            }
            _ => {}
        }
    }

    fn member(&mut self, step: String, schemas: &[&'s Value], value: &Value) {
        self.path.push(step);
        self.value(schemas, value);
        self.path.pop();
    }
}

/// The types that a schema itself names.
fn own_types(schema: &Value) -> Vec<String> {
    let named = match schema.get("type") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(several)) => {
            several.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    if !named.is_empty() {
        return named;
    }
    let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    values.chain(schema.get("const")).map(|value| json_type(value).to_owned()).collect()
}

impl ValueTypes {
    fn has(&self, name: &str) -> bool {
        self.types.contains(name) || name == "number" && self.types.contains("integer")
    }

    /// Whether a value is of no type that is named, and a text would be of one.
    pub(super) fn wants_text(&self, value: &Raw) -> bool {
        self.has("string") && !self.has(json_type(&value.to_value()))
    }

    /// Whether a text fits no schema that allows strings, by its format or pattern.
    fn refuses(&self, text: &str) -> bool {
        let is_refused = |schema: &Value| text_format::problem(schema, text).is_some();
        self.of_strings.iter().all(is_refused)
    }

    /// A text as a value: a string stays one where the schema allows strings, and everything else is JSON.
    pub(super) fn typed(&self, text: &str) -> Raw {
        let as_text = || Raw::from_string(text);
        let Ok(json) = Raw::from_text(text.trim()) else { return as_text() };
        let kind = json_type(&json.to_value());
        let is_container = matches!(kind, "array" | "object");
        let is_listed = |value: &Value| self.listed.contains(value);
        if is_listed(&Value::from(text)) != is_listed(&json.to_value()) {
            return if is_listed(&json.to_value()) { json } else { as_text() };
        }
        let is_meant = match self.types.is_empty() {
            true => true,
            false if self.has("string") => {
                let is_other = is_container || kind == "null" && self.refuses(text);
                is_other && self.has(kind)
            }
            false => self.has(kind),
        };
        if is_meant { json } else { as_text() }
    }
}
