//! Digests of tool definitions, to compare definitions that are no longer in memory.

use ring::digest::{SHA256, digest};

use crate::message::Raw;

/// The key that marks an argument that is mirrored in a header. Marks concern the host and the
/// server, and callers do not see them.
pub(crate) const HEADER_MARK: &str = "x-mcp-header";

/// Depth of a definition up to which the order of members is ignored and header marks are left out.
/// Deeper parts count byte for byte: arguments in headers are less deep, and each level is parsed
/// again.
const MAX_SORTED_DEPTH: usize = 40;

/// Digest of the definition of a tool. Definitions that differ only in the order of members, in
/// white space between values, and in header marks have the same digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DefinitionDigest([u8; 32]);

impl DefinitionDigest {
    /// The digest of a definition.
    pub fn of(definition: &Raw) -> Self {
        let mut form = Vec::with_capacity(definition.bytes().len() + 64);
        write(definition, DefinitionPart::Tool, 0, &mut form);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, &form).as_ref());
        Self(bytes)
    }
}

/// A part of a tool definition, by whether header marks can occur in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DefinitionPart {
    /// The definition itself.
    Tool,
    /// A schema or a part of one, which may have a mark.
    Schema,
    /// The properties of a schema: their keys are the names of arguments.
    Properties,
    /// Anything else.
    Elsewhere,
}

impl DefinitionPart {
    /// The part under a key of this one.
    fn under(self, key: &str) -> Self {
        match self {
            Self::Tool if key == "inputSchema" => Self::Schema,
            Self::Schema if key == "properties" => Self::Properties,
            Self::Schema | Self::Properties => Self::Schema,
            Self::Tool | Self::Elsewhere => Self::Elsewhere,
        }
    }

    /// The part of the items of an array in this one.
    fn of_items(self) -> Self {
        match self {
            Self::Schema | Self::Properties => Self::Schema,
            Self::Tool | Self::Elsewhere => Self::Elsewhere,
        }
    }
}

/// Writes a value in canonical form. Scalars stay as written: parsing would make different numbers
/// equal, and fails for some definitions.
fn write(value: &Raw, place: DefinitionPart, depth: usize, form: &mut Vec<u8>) {
    let is_array = value.text().starts_with('[');
    if depth >= MAX_SORTED_DEPTH || !(value.is_object() || is_array) {
        form.push(b'=');
        return write_bytes(value.bytes(), form);
    }
    if is_array {
        form.push(b'[');
        value.items().iter().for_each(|item| write(item, place.of_items(), depth + 1, form));
        return form.push(b']');
    }
    let mut members = value.members();
    members.retain(|(key, _)| place != DefinitionPart::Schema || key != HEADER_MARK);
    members.sort_by(|(one, _), (other, _)| one.cmp(other));
    form.push(b'{');
    for (key, value) in &members {
        form.push(b':');
        write_bytes(key.as_bytes(), form);
        write(value, place.under(key), depth + 1, form);
    }
    form.push(b'}');
}

/// Writes bytes with their length, so that bytes that move to the next part change the digest.
fn write_bytes(bytes: &[u8], form: &mut Vec<u8>) {
    form.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    form.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn digest_of(text: &str) -> DefinitionDigest {
        DefinitionDigest::of(&Raw::from_text(text).unwrap())
    }

    #[test]
    fn order_white_space_and_header_marks_make_no_other_definition() {
        let one =
            r#"{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}"#;
        for same in [
            r#"{"inputSchema":{"properties":{"a":{"type":"string"}},"type":"object"},"name":"t"}"#,
            r#"{"name": "t", "inputSchema": {"type":"object","properties":{"a":{ "type":"string" }}}}"#,
            r#"{"name":"t","inputSchema":{"type":"object","properties":{"a":{"x-mcp-header":"A","type":"string"}}}}"#,
        ] {
            assert_eq!(digest_of(one), digest_of(same), "{same}");
        }
    }

    #[test]
    fn everything_else_makes_another_definition() {
        let with = |more: &str| digest_of(&format!(r#"{{"name":"t","inputSchema":{{}}{more}}}"#));
        let nested =
            |end: &str| format!(r#","x":{}{end}{}"#, r#"{"a":"#.repeat(200), "}".repeat(200));
        let different = [
            String::new(),
            r#","description":"good""#.to_owned(),
            r#","description":"evil""#.to_owned(),
            r#","Description":"good""#.to_owned(),
            r#","x":1e999"#.to_owned(),
            r#","x":2e999"#.to_owned(),
            r#","x":9007199254740993"#.to_owned(),
            r#","x":9007199254740992"#.to_owned(),
            r#","x":[1,2]"#.to_owned(),
            r#","x":[2,1]"#.to_owned(),
            r#","x":[[1],2]"#.to_owned(),
            r#","x":"{}""#.to_owned(),
            r#","x":{}"#.to_owned(),
            r#","x":[]"#.to_owned(),
            r#","x-mcp-header":"A""#.to_owned(),
            r#","annotations":{"x-mcp-header":"A"}"#.to_owned(),
            nested("1"),
            nested("2"),
        ];
        let digests: std::collections::HashSet<_> =
            different.iter().map(|more| with(more)).collect();
        assert_eq!(digests.len(), different.len());
        let named_so = |properties: &str| {
            digest_of(&format!(r#"{{"name":"t","inputSchema":{{"properties":{{{properties}}}}}}}"#))
        };
        assert_ne!(named_so(""), named_so(r#""x-mcp-header":{}"#), "it is the name of an argument");
    }

    fn are_same(one: &Raw, other: &Raw) -> bool {
        DefinitionDigest::of(one) == DefinitionDigest::of(other)
    }

    #[test]
    fn digest_ignores_header_annotations_only() {
        let tool = |properties: &Value| {
            let schema = json!({ "type": "object", "properties": properties });
            Raw::from_value(&json!({ "name": "t", "inputSchema": schema }))
        };
        let marked = json!({ "a": { "type": "string", "x-mcp-header": "A" } });
        let plain = json!({ "a": { "type": "string" } });
        let named_so = json!({ "a": { "type": "string" }, "x-mcp-header": { "type": "string" } });
        let other = json!({ "a": { "type": "integer", "x-mcp-header": "A" } });
        assert!(
            are_same(&tool(&marked), &tool(&plain)) && are_same(&tool(&marked), &tool(&marked))
        );
        for other in [&named_so, &other] {
            assert!(!are_same(&tool(other), &tool(&plain)), "{other}");
            assert!(!are_same(&tool(&marked), &tool(other)), "{other}");
        }
        let destructive = tool(&marked).with("annotations", &Raw::from_text("{}").unwrap());
        assert!(!are_same(&destructive, &tool(&plain)));
    }

    /// Definitions that `serde_json::Value` cannot represent, or parses to the same value, differ.
    #[test]
    fn definitions_that_cannot_become_trees_are_compared_as_they_were_written() {
        let with = |description: &str, extra: &str| {
            let schema = format!(
                r#"{{"type":"object","properties":{{"a":{{"type":"string","x-mcp-header":"A"{extra}}}}}}}"#
            );
            let text =
                format!(r#"{{"name":"t","description":"{description}","inputSchema":{schema}}}"#);
            Raw::from_text(&text).unwrap()
        };
        let deep = format!(r#","default":{}1{}"#, "[".repeat(200), "]".repeat(200));
        let deeper = format!(r#","default":{}2{}"#, "[".repeat(200), "]".repeat(200));
        let large = r#","maximum":100000000000000000000000000000001"#;
        let larger = r#","maximum":100000000000000000000000000000002"#;
        let twice = r#","type":"integer","type":"string""#;
        for extra in [r#","maximum":1e999"#, &deep, large, twice] {
            assert!(are_same(&with("a", extra), &with("a", extra)), "{extra}");
            assert!(!are_same(&with("a", extra), &with("b", extra)), "{extra}");
            assert!(!are_same(&with("a", extra), &with("a", "")), "{extra}");
        }
        assert!(!are_same(&with("a", &deep), &with("a", &deeper)));
        assert!(!are_same(&with("a", large), &with("a", larger)));
        let other_order = r#","type":"string","type":"integer""#;
        assert!(!are_same(&with("a", twice), &with("a", other_order)), "which counts is unknown");
    }
}
