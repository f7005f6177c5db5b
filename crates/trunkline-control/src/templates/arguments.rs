//! Arguments of a tool from the fields of its form, exactly as they are sent.

use maud::{Markup, html};
use serde_json::{Map, Number, Value};

use super::schema::{Form, Input, Property};
use super::text::{shown, shown_line};

/// The name of the field with all arguments as JSON; it overrides the others.
pub(super) const JSON_FIELD: &str = "json";

/// The arguments to send, or the mistake in the form.
pub(crate) type ArgumentPreview = Result<Value, String>;

/// Turns submitted form fields into the arguments of a call.
///
/// The name of a field is the JSON Pointer of its value (`/query`, `/options/limit`); the field `json` holds all
/// arguments as one JSON text. Fields whose name starts otherwise belong to the page and are ignored. Empty fields
/// are left out, except for required strings (empty) and required values that may be null (null).
pub(crate) fn form_arguments(schema: &Value, fields: &[(String, String)]) -> ArgumentPreview {
    if let Some((_, text)) = fields.iter().find(|(name, _)| name == JSON_FIELD) {
        return whole_json(text);
    }
    let values = Fields::new(fields)?;
    match Form::from_schema(schema) {
        Form::Json => Err(format!("this tool needs its arguments in the field `{JSON_FIELD}`")),
        Form::Fields(properties) => {
            values.reject_unknown(&properties)?;
            values.object(&properties).map(Value::Object)
        }
    }
}

fn whole_json(text: &str) -> ArgumentPreview {
    let text = if text.trim().is_empty() { "{}" } else { text };
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(Value::Object(object)),
        Ok(_) => Err("arguments must be a JSON object, such as {\"query\": \"rust\"}".to_owned()),
        Err(error) => Err(format!("this is not JSON: {error}")),
    }
}

/// Submitted fields that hold values.
struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    fn new(fields: &'a [(String, String)]) -> Result<Self, String> {
        let mut values: Vec<(&str, &str)> = Vec::new();
        for (name, value) in fields.iter().filter(|(name, _)| name.starts_with('/')) {
            if values.iter().any(|(other, _)| other == name) {
                return Err(format!("the form has two fields {}", shown_line(name)));
            }
            values.push((name, value));
        }
        Ok(Self(values))
    }

    fn get(&self, pointer: &str) -> &'a str {
        self.0.iter().find(|(name, _)| *name == pointer).map_or("", |(_, value)| value)
    }

    /// A form that is older than the schema must not lose typed values.
    fn reject_unknown(&self, properties: &[Property]) -> Result<(), String> {
        let is_known = |pointer: &str| properties.iter().any(|property| has(property, pointer));
        match self.0.iter().find(|(pointer, _)| !is_known(pointer)) {
            None => Ok(()),
            Some((pointer, _)) => Err(format!(
                "the tool has no parameter {} any more; reload the page",
                shown_line(pointer)
            )),
        }
    }

    fn object(&self, properties: &[Property]) -> Result<Map<String, Value>, String> {
        let mut object = Map::new();
        for property in properties {
            if let Some(value) = self.value(property)? {
                object.insert(property.name.clone(), value);
            }
        }
        Ok(object)
    }

    /// The value of a property, or nothing to leave it out.
    fn value(&self, property: &Property) -> Result<Option<Value>, String> {
        if let Input::Group(properties) = &property.input {
            let is_empty = properties.iter().all(|property| self.get(&property.pointer).is_empty());
            if is_empty && !property.is_required {
                return Ok(None);
            }
            return self.object(properties).map(|object| Some(Value::Object(object)));
        }
        let text = self.get(&property.pointer);
        if text.is_empty() {
            return empty_value(property);
        }
        parse(&property.input, text)
            .map(Some)
            .map_err(|problem| format!("{}: {problem}", shown_line(&property.pointer)))
    }
}

fn has(property: &Property, pointer: &str) -> bool {
    match &property.input {
        Input::Group(properties) => properties.iter().any(|inner| inner.pointer == pointer),
        _ => property.pointer == pointer,
    }
}

/// The meaning of an empty field.
fn empty_value(property: &Property) -> Result<Option<Value>, String> {
    match &property.input {
        _ if !property.is_required => Ok(None),
        _ if property.is_nullable => Ok(Some(Value::Null)),
        Input::Text(_) => Ok(Some(Value::String(String::new()))),
        Input::Lines => Ok(Some(Value::Array(Vec::new()))),
        _ => Err(format!("{}: a value is required", shown_line(&property.pointer))),
    }
}

fn parse(input: &Input, text: &str) -> Result<Value, String> {
    let trimmed = text.trim();
    match input {
        // Browsers submit line ends as CRLF if they submit the form themselves, and as LF to scripts.
        Input::Text(_) => Ok(Value::String(text.replace("\r\n", "\n"))),
        Input::Lines => {
            let lines = text.lines().filter(|line| !line.is_empty());
            Ok(Value::Array(lines.map(|line| Value::String(line.to_owned())).collect()))
        }
        Input::Integer => integer(trimmed).ok_or_else(|| format!("`{trimmed}` is not an integer")),
        Input::Number => serde_json::from_str::<Number>(trimmed)
            .map(Value::Number)
            .map_err(|_| format!("`{trimmed}` is not a number")),
        Input::Boolean => match trimmed {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err(format!("`{trimmed}` is neither true nor false")),
        },
        Input::Choice(values) => {
            let value = json(trimmed)?;
            let is_known = values.contains(&value);
            is_known.then_some(value).ok_or_else(|| format!("`{trimmed}` is not one of the values"))
        }
        Input::Json | Input::Group(_) => json(trimmed),
    }
}

fn integer(text: &str) -> Option<Value> {
    let signed = text.parse::<i64>().map(Value::from).ok();
    signed.or_else(|| text.parse::<u64>().map(Value::from).ok())
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("this is not JSON: {error}"))
}

/// The request that "Call" would send. Response of `POST /tool/preview`; replaces the content of `#call-preview`.
pub(crate) fn call_preview(arguments: &ArgumentPreview) -> Markup {
    match arguments {
        Ok(arguments) => html! {
            p.muted { "Will send exactly:" }
            pre tabindex="0" { (shown(&format!("{arguments:#}"))) }
        },
        Err(problem) => html! { p.problem { (shown(problem)) } },
    }
}

#[cfg(test)]
mod tests;
