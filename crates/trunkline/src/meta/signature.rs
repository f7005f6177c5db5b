//! One line for a tool: name, parameters and the beginning of its description.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;

use crate::catalog::Entry;
use crate::config::{Trust, escape_control};
use crate::message::Raw;
use crate::view::{DescriptionStyle, View};

/// Parameters that are written; the others are counted.
const MAX_PARAMETERS: usize = 8;

/// Names of required parameters that are read.
const MAX_REQUIRED: usize = 1_000;

/// Characters of a type.
const MAX_TYPE_CHARS: usize = 60;

/// Values of an enumeration that are written.
const MAX_VALUES: usize = 6;

/// Characters of a name of a parameter or of a value.
const MAX_NAME_CHARS: usize = 40;

/// Characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 140;

/// The line of a tool, from a definition as in `tools/list`.
///
/// ```
/// use trunkline::message::Raw;
/// use trunkline::meta::signature;
///
/// let tool = r#"{"name":"fs_read","description":"Read a file.\nMore text.","inputSchema":{
///     "type":"object","properties":{"path":{"type":"string"},"head":{"type":"number"}},
///     "required":["path"]}}"#;
/// let line = signature(&Raw::from_text(tool).unwrap());
/// assert_eq!(line, "fs_read(path: string, head?: number): Read a file. More text.");
/// ```
pub fn signature(definition: &Raw) -> String {
    let [name, description] = definition.get_all(["name", "description"]);
    let name = name.as_ref().and_then(Raw::as_str).unwrap_or_default();
    let mut line = format!("{name}{}", parameter_list(definition));
    let description = description.as_ref().and_then(Raw::as_str).unwrap_or_default();
    let description = beginning(&description, MAX_DESCRIPTION_CHARS);
    if !description.is_empty() {
        let _ = write!(line, ": {description}");
    }
    escape_control(&line)
}

/// The parameters of a tool as in [`signature`]: `(path: string, head?: number)`.
pub fn parameter_list(definition: &Raw) -> String {
    let schema = definition.get("inputSchema");
    escape_control(&format!("({})", schema.as_ref().map(parameters).unwrap_or_default()))
}

/// The type of a parameter as in [`signature`]: `string[]`.
pub fn parameter_type(schema: &Raw) -> String {
    escape_control(&beginning(&type_name(schema, 0), MAX_TYPE_CHARS))
}

/// The line of a tool in the answer to a search, with a mark if its server is untrusted.
pub fn search_line(view: &View, entry: &Entry) -> String {
    let mark = match view.rules().trust(&entry.server().name) {
        Trust::Trusted => "",
        Trust::Untrusted => "[untrusted] ",
    };
    format!("{mark}{}", signature(&view.definition(entry, DescriptionStyle::AsWritten)))
}

/// The parameters of a schema, required ones first.
fn parameters(schema: &Raw) -> String {
    let [properties, required] = schema.get_all(["properties", "required"]);
    let required = required.iter().flat_map(Raw::items).take(MAX_REQUIRED);
    let required: HashSet<_> = required.filter_map(|it| it.as_str().map(Cow::into_owned)).collect();
    let members = properties.map(|it| it.members()).unwrap_or_default();
    let is_required = |(name, _): &&(String, Raw)| required.contains(name);
    let optional = members.iter().filter(|it| !is_required(it));
    let sorted = members.iter().filter(is_required).chain(optional);
    let written = sorted.take(MAX_PARAMETERS).map(|(name, schema)| {
        let mark = if required.contains(name) { "" } else { "?" };
        let kind = type_name(schema, 0);
        format!("{}{mark}: {}", beginning(name, MAX_NAME_CHARS), beginning(&kind, MAX_TYPE_CHARS))
    });
    let mut written: Vec<_> = written.collect();
    if members.len() > MAX_PARAMETERS {
        written.push(format!("… {} more", members.len() - MAX_PARAMETERS));
    }
    written.join(", ")
}

/// The type of a parameter, in the notation of TypeScript.
fn type_name(schema: &Raw, depth: u32) -> String {
    let [kind, values, items, constant] = schema.get_all(["type", "enum", "items", "const"]);
    if let Some(values) = values {
        return enumeration(&values.items());
    }
    if let Some(constant) = constant {
        return enumeration(&[constant]);
    }
    let kinds = kind.map(|kind| match kind.as_str() {
        Some(kind) => vec![kind.into_owned()],
        None => kind.items().iter().filter_map(Raw::as_str).map(Cow::into_owned).collect(),
    });
    let name = |kind: &String| match (&**kind, &items) {
        ("array", Some(items)) if depth < 2 => format!("{}[]", type_name(items, depth + 1)),
        ("array", _) => "array".to_owned(),
        (kind, _) => beginning(kind, MAX_NAME_CHARS).into_owned(),
    };
    let kinds: Vec<_> = kinds.iter().flatten().take(MAX_VALUES).map(name).collect();
    if kinds.is_empty() { "any".to_owned() } else { kinds.join("|") }
}

fn enumeration(values: &[Raw]) -> String {
    let shown = values.iter().take(MAX_VALUES).map(|value| beginning(value.text(), MAX_NAME_CHARS));
    let mut shown: Vec<_> = shown.map(Cow::into_owned).collect();
    if values.len() > MAX_VALUES {
        shown.push("…".to_owned());
    }
    shown.join("|")
}

/// The beginning of a text on one line, cut after a word.
pub(super) fn beginning(text: &str, characters: usize) -> Cow<'_, str> {
    let mut line = String::new();
    let mut length = 0;
    // A long text is not read to its end.
    for word in text.split_whitespace() {
        let word_length = word.chars().take(characters + 1).count();
        let space = usize::from(!line.is_empty());
        if length + space + word_length > characters {
            if line.is_empty() {
                line.extend(word.chars().take(characters));
            }
            line.push('…');
            return line.into();
        }
        if space > 0 {
            line.push(' ');
        }
        line.push_str(word);
        length += space + word_length;
    }
    line.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(schema: &str, description: &str) -> String {
        let text = Raw::from_string(description);
        let schema = Raw::from_text(schema).unwrap();
        let tool = Raw::from_text(r#"{"name":"t"}"#).unwrap();
        signature(&tool.with("description", &text).with("inputSchema", &schema))
    }

    #[test]
    fn types_are_short_and_required_parameters_come_first() {
        let schema = r#"{"properties":{
            "a":{"type":["string","null"]},"b":{"enum":["x",1]},"c":{"type":"array","items":{"type":"integer"}},
            "d":{}, "e":{"type":"object"}},"required":["e"]}"#;
        assert_eq!(
            line(schema, ""),
            r#"t(e: object, a?: string|null, b?: "x"|1, c?: integer[], d?: any)"#
        );
    }

    #[test]
    fn everything_is_bounded() {
        let many: Vec<_> = (0..1000).map(|it| format!(r#""p{it}":{{"type":"string"}}"#)).collect();
        let shown =
            line(&format!(r#"{{"properties":{{{}}}}}"#, many.join(",")), &"word ".repeat(100_000));
        assert!(shown.contains("… 992 more") && shown.chars().count() < 400, "{shown}");
        let long = line(
            r#"{"properties":{"a":{"enum":["x","y","z","1","2","3","4","5"]}}}"#,
            &"x".repeat(5000),
        );
        assert!(long.contains("|…") && long.chars().count() < 250, "{long}");
    }

    /// Regression: a nested type had 70,000 characters.
    #[test]
    fn nested_types_are_bounded() {
        let kinds = r#""type":["array","array","array","array","array","array"]"#;
        let inner = format!(r#"{{{kinds},"items":{{{kinds},"items":{{"type":"string"}}}}}}"#);
        let members: Vec<_> = (0..8).map(|it| format!(r#""p{it}":{inner}"#)).collect();
        let shown = line(&format!(r#"{{"properties":{{{}}}}}"#, members.join(",")), "x");
        assert!(shown.chars().count() < 8 * 80, "{shown}");
    }

    /// Regression: this took time in the square of the number of parameters.
    #[test]
    fn many_required_parameters_are_read_once() {
        let names: Vec<_> = (0..60_000).map(|it| format!("p{it}")).collect();
        let members: Vec<_> = names.iter().map(|it| format!(r#""{it}":{{}}"#)).collect();
        let required: Vec<_> = names.iter().step_by(2).map(|it| format!(r#""{it}""#)).collect();
        let schema = format!(
            r#"{{"properties":{{{}}},"required":[{}]}}"#,
            members.join(","),
            required.join(",")
        );
        assert!(line(&schema, "").starts_with("t(p0: any, p2: any, "));
    }

    #[test]
    fn hostile_schemas_do_no_harm() {
        for schema in [
            "{}",
            "[]",
            "1",
            "null",
            r#"{"properties":[],"required":{}}"#,
            r#"{"properties":{"a":1}}"#,
        ] {
            assert!(line(schema, "a\u{202e}b\nc").starts_with("t("), "{schema}");
        }
        assert!(!line("{}", "a\u{202e}b").contains('\u{202e}'));
    }
}
