//! A tool: its parameters, and a form to call it.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::address::element_id;
use super::arguments::{JSON_FIELD, call_preview, form_arguments};
use super::format::counted;
use super::layout::Nonce;
use super::result::call_result;
use super::schema::{Form, Input, Property, TextKind, required_names};
use super::text::{full_name, label, name, prose, shown, shown_line, with_code};
use super::tools::hidden;
use crate::types::{CallResult, Tool};

/// Rows of the table of parameters.
const MAX_PARAMETERS: usize = 200;

/// A tool with its form, and the result of a call that a browser without scripts made.
pub(crate) fn tool(nonce: Nonce<'_>, tool: &Tool, result: Option<&CallResult>) -> Markup {
    html! {
        p.crumbs { a href="/tools" { "Tools" } " / " (name(&tool.server)) }
        div.head {
            h1 { (full_name(&tool.name)) }
            @if let Some(title) = &tool.title { p.muted { (name(title)) } }
        }
        @if !tool.is_visible { (hidden(&tool.reasons)) }
        @if let Some(text) = &tool.description { div.lead { (description(text)) } }
        @if let Some(tokens) = tool.tokens {
            p.muted { (counted(tokens, "token")) " in the context of a model" }
        }
        (annotations(tool.annotations.as_ref()))
        (parameters(&tool.input_schema))
        (call_form(nonce, tool))
        section #call-result aria-live="polite" { @if let Some(result) = result { (call_result(result)) } }
    }
}

/// The whole description, because models read the whole description; only an absurd one is collapsed.
fn description(text: &str) -> Markup {
    const READABLE_CHARS: usize = 2_000;
    if text.chars().count() > READABLE_CHARS {
        return prose(text, 400);
    }
    html! { p.text { (with_code(text.trim())) } }
}

fn annotations(annotations: Option<&Value>) -> Markup {
    let Some(Value::Object(hints)) = annotations else { return html! {} };
    html! {
        section.group {
            header.bar { h2 { "Annotations" } span.muted { "reported by the server, not verified" } }
            ul.chips {
                @for (key, value) in hints.iter().take(MAX_PARAMETERS) {
                    li { code { (name(key)) } " " (name(&inline(value))) }
                }
            }
        }
    }
}

/// A value on one line: strings without quotes.
fn inline(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn parameters(schema: &Value) -> Markup {
    let empty = Map::new();
    let object = schema.as_object().unwrap_or(&empty);
    let properties = object.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required = required_names(object);
    let is_optional = |(name, _): &(&String, &Value)| !required.contains(&name.as_str());
    let mut rows: Vec<_> = properties.iter().collect();
    rows.sort_by_key(is_optional);
    html! {
        section.group {
            header.bar { h2 { "Parameters" } span.muted { (counted(properties.len(), "parameter")) } }
            @if !properties.is_empty() {
                table {
                    thead { tr { @for column in ["Name", "Type", "Required", "Description"] { th scope="col" { (column) } } } }
                    tbody {
                        @for (key, schema) in rows.into_iter().take(MAX_PARAMETERS) {
                            (parameter(key, schema, required.contains(&key.as_str())))
                        }
                    }
                }
            }
            details #input-schema { summary { "JSON Schema" } pre tabindex="0" { (shown(&format!("{schema:#}"))) } }
        }
    }
}

fn parameter(key: &str, schema: &Value, is_required: bool) -> Markup {
    html! {
        tr {
            th scope="row" { code { (name(key)) } }
            td data-label="Type" { (name(&type_name(schema))) }
            td data-label="Required" { @if is_required { "Required" } @else { span.muted { "Optional" } } }
            td data-label="Description" {
                @if let Some(text) = schema.get("description").and_then(Value::as_str) { (prose(text, 300)) }
                @let constraints = constraints(schema);
                @if !constraints.is_empty() { span.sub { (name(&constraints.join(" · "))) } }
            }
        }
    }
}

/// The type of a value in words.
fn type_name(schema: &Value) -> String {
    let items = schema.pointer("/items/type").and_then(Value::as_str);
    match (schema.get("type"), items) {
        (Some(Value::String(kind)), Some(items)) if kind == "array" => format!("array of {items}"),
        (Some(Value::String(kind)), _) => kind.clone(),
        (Some(Value::Array(kinds)), _) => {
            kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ if schema.get("enum").is_some() => "enum".to_owned(),
        _ => "see the JSON Schema".to_owned(),
    }
}

/// Keywords that restrict a value, as they are in its schema.
fn constraints(schema: &Value) -> Vec<String> {
    const KEYWORDS: &[&str] = &[
        "default",
        "enum",
        "const",
        "format",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "uniqueItems",
    ];
    let text = |keyword: &&str| schema.get(*keyword).map(|value| format!("{keyword}: {value}"));
    KEYWORDS.iter().filter_map(text).collect()
}

/// The form. `POST /call` replaces the content of `#call-result`; `POST /tool/preview`, on each input, that of
/// `#call-preview`.
fn call_form(nonce: Nonce<'_>, tool: &Tool) -> Markup {
    let form = Form::from_schema(&tool.input_schema);
    let untouched = match form {
        Form::Fields(_) => form_arguments(&tool.input_schema, &[]),
        Form::Json => Ok(skeleton(&tool.input_schema)),
    };
    html! {
        section.group {
            header.bar { h2 { "Call" } span.muted { "runs on the server, as a client would" } }
            form #call-form method="post" action="/call" hx-post="/call" hx-target="#call-result" hx-swap="innerHTML"
                hx-config="timeout:3600s" hx-sync="this:drop" hx-nonce=(nonce) autocomplete="off"
            {
                div {
                    (identity(tool))
                    (fields(tool, &form))
                    button.primary { "Call " (label(&tool.name)) }
                }
                div #call-preview.preview hx-post="/tool/preview"
                    hx-trigger="input delay:250ms from:#call-form, change from:#call-form" hx-sync="replace" hx-nonce=(nonce)
                { (call_preview(&untouched)) }
            }
            @if matches!(form, Form::Fields(_)) { (raw_form(nonce, tool)) }
        }
    }
}

fn fields(tool: &Tool, form: &Form) -> Markup {
    match form {
        Form::Fields(properties) => html! {
            @if properties.is_empty() { p.field.muted { "This tool takes no parameters." } }
            @for property in properties { (field(property)) }
        },
        Form::Json => html! {
            p.field.muted { "The schema of this tool has parts that a form cannot express." }
            div.field { (json_field("arguments-json", &skeleton(&tool.input_schema))) }
        },
    }
}

/// Which tool a form calls.
fn identity(tool: &Tool) -> Markup {
    html! {
        input type="hidden" name="project" value=(tool.project);
        input type="hidden" name="server" value=(tool.server);
        input type="hidden" name="name" value=(tool.name);
        input type="hidden" name="definition" value=(tool.definition);
    }
}

/// Sends arguments that the form cannot express: empty optional strings, values against the schema.
fn raw_form(nonce: Nonce<'_>, tool: &Tool) -> Markup {
    html! {
        details #raw-arguments {
            summary { "Send JSON instead" }
            form method="post" action="/call" hx-post="/call" hx-target="#call-result" hx-swap="innerHTML"
                hx-config="timeout:3600s" hx-sync="this:drop" hx-nonce=(nonce)
            {
                (identity(tool))
                div.field { (json_field("raw-json", &skeleton(&tool.input_schema))) }
                button { "Call with this JSON" }
            }
        }
    }
}

/// Arguments to start from: the required properties, empty.
fn skeleton(schema: &Value) -> Value {
    let Some(object) = schema.as_object() else { return Value::Object(Map::new()) };
    let value = |name: &str| {
        let schema = object.get("properties").and_then(|properties| properties.get(name));
        let kind = schema.and_then(|schema| schema.get("type")).and_then(Value::as_str);
        match kind {
            Some("string") => Value::from(""),
            Some("array") => Value::Array(Vec::new()),
            Some("object") => Value::Object(Map::new()),
            _ => Value::Null,
        }
    };
    let names = required_names(object).into_iter().take(MAX_PARAMETERS);
    Value::Object(names.map(|name| (name.to_owned(), value(name))).collect())
}

fn json_field(id: &str, arguments: &Value) -> Markup {
    html! {
        label for=(id) { span.strong { "Arguments as JSON" } }
        // A line feed right after the tag is dropped by the HTML parser; maud adds none.
        textarea.code id=(id) name=(JSON_FIELD) rows="6" spellcheck="false" { (format!("{arguments:#}")) }
    }
}

fn field(property: &Property) -> Markup {
    if let Input::Group(properties) = &property.input {
        return html! {
            fieldset {
                legend { (name(&property.name)) (requirement(property)) }
                @for property in properties { (field(property)) }
            }
        };
    }
    let id = element_id("field", &[&property.pointer]);
    let help = format!("{id}-help");
    html! {
        div.field {
            label for=(id) { (name(&property.name)) (requirement(property)) }
            (control(property, &id, &help))
            div.help id=(help) { (help_text(property)) }
        }
    }
}

fn requirement(property: &Property) -> Markup {
    html! { @if property.is_required { span.required { " required" } } }
}

fn help_text(property: &Property) -> Markup {
    let description = property.schema.get("description").and_then(Value::as_str);
    let constraints = constraints(&property.schema);
    let how = match property.input {
        Input::Lines => Some("One per line."),
        Input::Json => Some("JSON."),
        _ => None,
    };
    html! {
        @if let Some(how) = how { (how) " " }
        @if let Some(text) = description { (prose(text, 200)) }
        @if !constraints.is_empty() { span.sub { (name(&constraints.join(" · "))) } }
    }
}

fn control(property: &Property, id: &str, help: &str) -> Markup {
    let pointer = property.pointer.as_str();
    let hint = placeholder(property);
    let attributes = |kind: &str, step: &str| {
        let bound = |keyword: &str| {
            property.schema.get(keyword).filter(|value| value.is_number()).map(Value::to_string)
        };
        html! {
            input id=(id) name=(pointer) type=(kind) step=(step) min=[bound("minimum")] max=[bound("maximum")]
                placeholder=(hint) aria-describedby=(help) required[property.is_demanded];
        }
    };
    match &property.input {
        Input::Text(TextKind::Line) => html! {
            input id=(id) name=(pointer) type="text" placeholder=(hint) aria-describedby=(help);
        },
        Input::Text(TextKind::Secret) => html! {
            input id=(id) name=(pointer) type="password" autocomplete="off" aria-describedby=(help);
        },
        Input::Text(TextKind::Lines) => html! {
            textarea id=(id) name=(pointer) rows="1" placeholder=(hint) aria-describedby=(help) {}
        },
        Input::Integer => attributes("number", "1"),
        Input::Number => attributes("number", "any"),
        Input::Boolean => {
            let options =
                [("true".to_owned(), "true".to_owned()), ("false".to_owned(), "false".to_owned())];
            select(property, id, &options)
        }
        Input::Choice(values) => {
            let option = |value: &Value| (value.to_string(), label(&inline(value)));
            select(property, id, &values.iter().map(option).collect::<Vec<_>>())
        }
        Input::Lines | Input::Json | Input::Group(_) => html! {
            textarea.code id=(id) name=(pointer) rows="2" placeholder=(hint) spellcheck="false" aria-describedby=(help) {}
        },
    }
}

/// The default, as an example. It is not filled in: servers apply their own defaults.
fn placeholder(property: &Property) -> String {
    let default = property.schema.get("default").filter(|value| !value.is_null());
    default.map_or_else(String::new, |value| format!("default: {}", label(&inline(value))))
}

fn select(property: &Property, id: &str, options: &[(String, String)]) -> Markup {
    let default = placeholder(property);
    let nothing = match default.as_str() {
        _ if property.is_required => "Choose…",
        "" => "Not sent",
        default => default,
    };
    html! {
        select id=(id) name=(property.pointer) aria-describedby={ (id) "-help" } required[property.is_demanded] {
            option value="" { (nothing) }
            @for (value, text) in options { option value=(value) { (shown_line(text)) } }
        }
    }
}
