//! Macro for objects: decoding, keys and schema from one definition.

use serde_json::json;

use super::Definitions;

/// Defines an object of a configuration file.
///
/// Every field is optional and has one or more spellings; the documentation uses the first. A field
/// marked `@rule` restricts callers: `null` as its value, or a key close to one of its spellings,
/// is an error, because callers would see more without the rule. The decoder reports and preserves
/// unknown keys of a plain `struct`; an `open struct` stores them in `unknown` and leaves reporting
/// to its user.
macro_rules! written {
    (
        $(#[doc = $doc:literal])*
        struct $name:ident { $($body:tt)* }
    ) => {
        written!(@object [report] [$($doc)*] $name { $($body)* });
    };
    (
        $(#[doc = $doc:literal])*
        open struct $name:ident { $($body:tt)* }
    ) => {
        written!(@object [keep] [$($doc)*] $name { $($body)* });
    };
    (@object [$mode:ident] [$($doc:literal)*] $name:ident {
        $($(#[doc = $field_doc:literal])* $(@$mark:ident)? $field:ident: $type:ty = $key:literal $(| $alias:literal)*),*
        $(,)?
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Default)]
        pub(crate) struct $name {
            $($(#[doc = $field_doc])* pub(crate) $field: Option<crate::config::decode::WithSpan<$type>>,)*
            /// Members with unknown keys.
            pub(crate) unknown: Vec<crate::config::jsonc::ObjectMember>,
        }

        impl crate::config::decode::RawObject for $name {
            const KEYS: &'static [&'static str] = &[$($key $(, $alias)*),*];
            const RULES: &'static [&'static [&'static str]] =
                &[$(written!(@rules [$($mark)?] $key $(, $alias)*)),*];

            fn key_count(&self) -> usize {
                self.unknown.len() $(+ usize::from(self.$field.is_some()))*
            }
        }

        impl crate::config::decode::FromNode for $name {
            fn from_node(
                node: &crate::config::jsonc::Node,
                decoder: &mut crate::config::decode::Decoder<'_>,
            ) -> Option<Self> {
                let mut object = Self::default();
                for member in decoder.members(node, "an object")? {
                    match &*member.key.text {
                        $($key $(| $alias)* => {
                            if !crate::config::decode::left_out::<Self>(member, decoder) {
                                decoder.field(&mut object.$field, member);
                            }
                        })*
                        _ => written!(@unknown [$mode] decoder, member, object),
                    }
                }
                Some(object)
            }

            fn schema(definitions: &mut crate::config::decode::Definitions) -> serde_json::Value {
                crate::config::decode::object_schema(
                    definitions,
                    stringify!($name),
                    concat!($($doc, "\n"),*),
                    |definitions| vec![
                        $((
                            &[$key $(, $alias)*][..],
                            concat!($($field_doc, "\n"),*),
                            <$type as crate::config::decode::FromNode>::schema(definitions),
                        )),*
                    ],
                )
            }
        }
    };
    (@rules [rule] $($key:literal),*) => { &[$($key),*] };
    (@rules [] $($key:literal),*) => { &[] };
    (@unknown [report] $decoder:ident, $member:ident, $object:ident) => {{
        $decoder.unknown_key::<Self>($member);
        $decoder.keep($member);
    }};
    (@unknown [keep] $decoder:ident, $member:ident, $object:ident) => {
        $object.unknown.push($member.clone())
    };
}
pub(crate) use written;

/// All spellings of a key, its documentation and its schema.
type Property = (&'static [&'static str], &'static str, serde_json::Value);

/// Adds the definition of an object once, and returns a reference to it.
pub(crate) fn object_schema(
    definitions: &mut Definitions,
    name: &str,
    documentation: &str,
    properties: impl FnOnce(&mut Definitions) -> Vec<Property>,
) -> serde_json::Value {
    let reference = json!({ "$ref": format!("#/$defs/{name}") });
    if definitions.contains_key(name) {
        return reference;
    }
    // Inserted before its properties are generated, so that an object may contain itself.
    definitions.insert(name.to_owned(), json!({}));
    let mut described = serde_json::Map::new();
    for (keys, documentation, schema) in properties(definitions) {
        for (index, key) in keys.iter().enumerate() {
            let text = match index {
                0 => sentence(documentation),
                _ => format!("Another spelling of `{}`.", keys[0]),
            };
            described.insert((*key).to_owned(), with_description(schema.clone(), &text));
        }
    }
    let object = json!({
        "type": "object",
        "description": sentence(documentation),
        "properties": described,
    });
    definitions.insert(name.to_owned(), object);
    reference
}

fn with_description(schema: serde_json::Value, text: &str) -> serde_json::Value {
    match schema {
        serde_json::Value::Object(mut schema) => {
            schema.insert("description".to_owned(), text.into());
            schema.into()
        }
        other => other,
    }
}

/// Joins documentation lines into one paragraph.
fn sentence(documentation: &str) -> String {
    documentation.split_whitespace().collect::<Vec<_>>().join(" ")
}
