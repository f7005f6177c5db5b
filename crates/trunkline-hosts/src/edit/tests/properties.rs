//! Properties of edits over generated documents.

use proptest::prelude::*;
use serde_json::Value;

use super::super::{FileFormat, parse};
use super::{Subject, entry};
use crate::edit::KeyPath;

/// Whitespace and comments between two tokens of JSON.
fn json_trivia() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => Just(String::new()),
        3 => Just(" ".to_owned()),
        2 => Just("\n".to_owned()),
        2 => Just("\n    ".to_owned()),
        1 => Just("\r\n\t".to_owned()),
        1 => Just("  ".to_owned()),
        1 => Just(" /* \"{,}\" */".to_owned()),
        1 => Just("/* two\n lines */ ".to_owned()),
        1 => Just(" // } comment\n".to_owned()),
    ];
    (part.clone(), part).prop_map(|(one, two)| one + &two)
}

fn json_scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("1".to_owned()),
        Just("null".to_owned()),
        Just("-2.5e3".to_owned()),
        Just("true".to_owned()),
        "[a-z\"\\\\/{},ü]{0,4}".prop_map(|text| Value::from(text).to_string()),
    ]
}

/// An object from its members, with a trailing comma or without.
fn json_object(
    members: impl Strategy<Value = Vec<(String, String)>>,
) -> impl Strategy<Value = String> {
    let trivia = proptest::collection::vec(json_trivia(), 24);
    (members, trivia, any::<bool>()).prop_map(|(members, trivia, has_trailing_comma)| {
        let mut trivia = trivia.into_iter();
        let mut next = || trivia.next().unwrap_or_default();
        let mut text = format!("{{{}", next());
        let count = members.len();
        for (index, (key, value)) in members.into_iter().enumerate() {
            text += &format!("{}{}:{}{value}{}", Value::from(key), next(), next(), next());
            if index + 1 < count || has_trailing_comma {
                text += &format!(",{}", next());
            }
        }
        text + "}"
    })
}

/// Different keys, each with a value.
fn json_members(
    value: impl Strategy<Value = String>,
    count: usize,
) -> impl Strategy<Value = Vec<(String, String)>> {
    let members = proptest::collection::btree_map("[a-z\"\\\\ ./ü]{1,4}", value, 0..count);
    members.prop_map(|members| members.into_iter().collect())
}

fn json_value() -> impl Strategy<Value = String> {
    json_scalar().prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            json_object(json_members(inner.clone(), 3)),
            proptest::collection::vec(inner, 0..3).prop_map(|it| format!("[{}]", it.join(", "))),
        ]
    })
}

/// A document with an object at `mcpServers`.
fn json_document() -> impl Strategy<Value = String> {
    let servers = json_object(json_members(json_value(), 4));
    let members = (json_members(json_value(), 3), servers, any::<prop::sample::Index>());
    let members = members.prop_map(|(mut members, servers, index)| {
        let at = index.index(members.len() + 1);
        members.insert(at, ("mcpServers".to_owned(), servers));
        members
    });
    (json_trivia(), json_object(members), json_trivia())
        .prop_map(|(before, object, after)| format!("{before}{object}{after}"))
}

/// Lines of TOML before, between and after tables of servers.
fn toml_document() -> impl Strategy<Value = String> {
    let root = prop_oneof![
        Just("# comment\n".to_owned()),
        Just("\n".to_owned()),
        Just("root = [\n  1, # one\n]\n".to_owned()),
    ];
    let table = prop_oneof![
        Just("[mcp_servers.NAME]\ncommand = 'x' # y\n".to_owned()),
        Just("[mcp_servers.\"a NAME\"]\nargs = [\n\n]\n\n".to_owned()),
        Just("\n# before\n[other-NAME]\nx = { y = \"#\" }\n# after\n".to_owned()),
        Just("[[list]]\nx = '''\n[mcp_servers.no]\n'''\n".to_owned()),
        Just(
            "[mcp_servers.s-NAME.env]\nA = \"\\u00e9\"\n  [mcp_servers.s-NAME.tools]\n".to_owned()
        ),
    ];
    let tables = proptest::collection::vec(table, 0..5);
    let line_end = prop_oneof![Just("\n"), Just("\r\n")];
    let root = proptest::option::of(root);
    (root, tables, line_end, any::<bool>()).prop_map(|(root, tables, line_end, ends)| {
        let numbered =
            |(index, table): (usize, String)| table.replace("NAME", &format!("n{index}"));
        let tables: String = tables.into_iter().enumerate().map(numbered).collect();
        let text = root.unwrap_or_default() + &tables;
        let text = if ends { text.as_str() } else { text.trim_end_matches('\n') };
        text.replace('\n', line_end)
    })
}

/// Lines of YAML with at least one server in a block mapping.
fn yaml_document() -> impl Strategy<Value = String> {
    let server = prop_oneof![
        Just("  NAME:\n    cmd: x # y\n".to_owned()),
        Just("  'a NAME': {x: [1, 2]} # flow\n".to_owned()),
        Just("  # before\n  NAME: |\n    text\n    # no comment\n  # after\n".to_owned()),
        Just("  \"NAME\":\n    - a: 1\n      b: 2\n    - c\n\n".to_owned()),
        Just("  NAME:\n".to_owned()),
        Just("  NAME: >-\n    folded\n\n    text\n".to_owned()),
    ];
    let around = prop_oneof![
        Just(String::new()),
        Just("# comment\n\n".to_owned()),
        Just("other_NAME:\n- 1\n- x: 2\n".to_owned()),
        Just("text_NAME: 'a\n\n  b'\n".to_owned()),
    ];
    let servers = proptest::collection::vec(server, 1..5);
    let line_end = prop_oneof![Just("\n"), Just("\r\n")];
    (around.clone(), servers, around, line_end, any::<bool>()).prop_map(
        |(before, servers, after, line_end, ends)| {
            let numbered = |(index, it): (usize, String)| it.replace("NAME", &format!("n{index}"));
            let servers: String = servers.into_iter().enumerate().map(numbered).collect();
            let (before, after) = (before.replace("NAME", "a"), after.replace("NAME", "b"));
            let text = format!("{before}extensions:\n{servers}{after}");
            let text = if ends { text.as_str() } else { text.trim_end_matches('\n') };
            text.replace('\n', line_end)
        },
    )
}

/// Inserts, compares all other values, and removes.
fn check(subject: &Subject, text: &str) -> Result<(), TestCaseError> {
    let servers: Vec<&str> = subject.path.keys().collect();
    let edited = subject.insert(text);
    let edited = edited.map_err(|error| TestCaseError::fail(format!("{error} in {text:?}")))?;
    let mut after = parse(&edited, subject.format).unwrap();
    let before = parse(text, subject.format).unwrap();
    let object = after.get_mut(servers[0]).and_then(Value::as_object_mut).unwrap();
    prop_assert_eq!(object.remove("trunkline"), Some(entry()));
    if before.get(servers[0]).is_some() || !object.is_empty() {
        prop_assert_eq!(&after, &before);
    }
    prop_assert_eq!(subject.remove(&edited, "trunkline"), Some(text.to_owned()), "{}", edited);
    Ok(())
}

/// Removes each server, with nothing else changed. The edit itself compares the values.
fn check_removals(subject: &Subject, text: &str) -> Result<(), TestCaseError> {
    let keys: Vec<&str> = subject.path.keys().collect();
    let before = parse(text, subject.format).unwrap();
    let servers = before.get(keys[0]).and_then(Value::as_object).cloned().unwrap_or_default();
    for name in servers.keys() {
        let removed = super::remove(text, subject.format, &subject.path, name);
        let removed =
            removed.map_err(|it| TestCaseError::fail(format!("{it} for {name:?} in {text:?}")))?;
        prop_assert!(removed.is_some_and(|it| it.len() < text.len()), "{} in {}", name, text);
        let replaced = super::insert(text, subject.format, &subject.path, name, &entry());
        replaced.map_err(|it| TestCaseError::fail(format!("{it} for {name:?} in {text:?}")))?;
    }
    Ok(())
}

proptest! {
    #[test]
    fn json_is_the_same_after_an_insertion_and_a_removal(text in json_document()) {
        let subject = Subject { format: FileFormat::Json, path: KeyPath::map(["mcpServers"]) };
        check(&subject, &text)?;
        check_removals(&subject, &text)?;
    }

    #[test]
    fn toml_is_the_same_after_an_insertion_and_a_removal(text in toml_document()) {
        let subject = Subject { format: FileFormat::Toml, path: KeyPath::map(["mcp_servers"]) };
        check(&subject, &text)?;
        check_removals(&subject, &text)?;
    }

    #[test]
    fn yaml_is_the_same_after_an_insertion_and_a_removal(text in yaml_document()) {
        let subject = Subject { format: FileFormat::Yaml, path: KeyPath::map(["extensions"]) };
        check(&subject, &text)?;
        check_removals(&subject, &text)?;
    }

    #[test]
    fn any_text_is_edited_or_refused(text in "[\\[\\]{}\"':,#/*\\\\\n\r =.a-c1&!|>?-]{0,40}") {
        for format in [FileFormat::Json, FileFormat::Toml, FileFormat::Yaml] {
            let subject = Subject { format, path: KeyPath::map(["a"]) };
            if let Ok(edited) = subject.insert(&text) {
                prop_assert!(subject.remove(&edited, "trunkline").is_some());
            }
        }
    }
}
