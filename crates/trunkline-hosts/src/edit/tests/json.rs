//! Edits of JSON with comments.

use serde_json::{Value, json};

use super::super::{
    EditErrorKind, FileFormat, KeyPath, contains, insert, json_tree, remove, remove_empty,
};
use super::{Subject, entry};

fn json() -> Subject {
    Subject { format: FileFormat::Json, path: KeyPath::map(["mcpServers"]) }
}

#[test]
fn a_new_file_is_complete() {
    let expected = "{\n  \"mcpServers\": {\n    \"trunkline\": {\n      \"command\": \"trunkline\",\n      \
                    \"args\": [\"connect\"]\n    }\n  }\n}\n";
    assert_eq!(json().insert("").unwrap(), expected);
    assert_eq!(json().insert("// mine").unwrap(), format!("// mine\n{expected}"));
    assert_eq!(json().insert("// mine\n\n").unwrap(), format!("// mine\n\n{expected}"));
    assert_eq!(json().remove("", "trunkline"), None);
}

#[test]
fn empty_objects_keep_their_form() {
    let entry = "{\n      \"command\": \"trunkline\",\n      \"args\": [\"connect\"]\n    }";
    for (empty, filled) in [
        ("{}", format!("{{\n    \"trunkline\": {entry}\n  }}")),
        ("{\n  }", format!("{{\n    \"trunkline\": {entry}\n\n  }}")),
        ("{\n    // none\n  }", format!("{{\n    // none\n    \"trunkline\": {entry}\n  }}")),
        ("{ // none\n  }", format!("{{ // none\n    \"trunkline\": {entry}\n  }}")),
        (
            "{ /* none */ }",
            "{ /* none */ \"trunkline\": { \"command\": \"trunkline\", \"args\": [\"connect\"] } }"
                .to_owned(),
        ),
        (
            "{ }",
            "{ \"trunkline\": { \"command\": \"trunkline\", \"args\": [\"connect\"] } }".to_owned(),
        ),
    ] {
        let document =
            |servers: &str| format!("{{\n  \"a\": 1,\n  \"mcpServers\": {servers}\n}}\n");
        json().round_trip(&document(empty), &document(&filled));
    }
}

#[test]
fn comments_and_commas_around_the_last_entry_stay() {
    let entry =
        "\"trunkline\": {\n    \"command\": \"trunkline\",\n    \"args\": [\"connect\"]\n  }";
    for (before, after) in [
        ("  \"a\": {}\n", format!("  \"a\": {{}},\n  {entry}\n")),
        ("  \"a\": {},\n", format!("  \"a\": {{}},\n  {entry},\n")),
        ("  \"a\": {} // one\n", format!("  \"a\": {{}}, // one\n  {entry}\n")),
        ("  \"a\": {}, // one\n", format!("  \"a\": {{}}, // one\n  {entry},\n")),
        ("  \"a\": {}  \n", format!("  \"a\": {{}},  \n  {entry}\n")),
        ("  \"a\": {}\n  // end\n", format!("  \"a\": {{}},\n  {entry}\n  // end\n")),
        ("  \"a\": {} /* b */, /* c */\n", format!("  \"a\": {{}} /* b */, /* c */\n  {entry},\n")),
        (
            "  /* one */ \"a\": {}\n",
            "  /* one */ \"a\": {}, \"trunkline\": { \"command\": \"trunkline\", \"args\": [\"connect\"] }\n".to_owned(),
        ),
    ] {
        let document = |servers: &str| format!("{{\"mcpServers\": {{\n{servers}}}}}");
        json().round_trip(&document(before), &document(&after));
    }
}

#[test]
fn a_file_on_one_line_stays_on_one_line() {
    let inline = "{ \"command\": \"trunkline\", \"args\": [\"connect\"] }";
    json().round_trip(
        "{\"mcpServers\":{\"a\":{\"command\":\"x\"}}}",
        &format!("{{\"mcpServers\":{{\"a\":{{\"command\":\"x\"}}, \"trunkline\": {inline}}}}}"),
    );
    json().round_trip(
        "{ \"mcpServers\": { \"a\": 1, } }",
        &format!("{{ \"mcpServers\": {{ \"a\": 1, \"trunkline\": {inline}, }} }}"),
    );
}

#[test]
fn tabs_line_breaks_and_the_byte_order_mark_stay() {
    let text = "\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {}\r\n\t}\r\n}\r\n";
    let expected = "\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {},\r\n\t\t\"trunkline\": {\r\n\t\t\t\"command\": \
                    \"trunkline\",\r\n\t\t\t\"args\": [\"connect\"]\r\n\t\t}\r\n\t}\r\n}\r\n";
    json().round_trip(text, expected);
    let four = "{\n    \"mcpServers\": {}\n}";
    assert!(
        json()
            .insert(four)
            .unwrap()
            .contains("\n        \"trunkline\": {\n            \"command\"")
    );
}

#[test]
fn missing_objects_and_null_are_created() {
    let expected = json!({ "mcpServers": { "trunkline": entry() }, "x": 1 });
    for text in ["{\"x\": 1}", "{\"x\": 1, \"mcpServers\": null}", "{\n \"x\": 1 // c\n}"] {
        let edited = json().insert(text).unwrap();
        assert_eq!(json_tree::parse(&edited).unwrap().unwrap().to_value(), expected, "{edited}");
    }
    let path = KeyPath::map(["projects", "/home/me/a.b", "mcpServers"]);
    let edited = insert("{}", FileFormat::Json, &path, "t", &entry()).unwrap();
    let value: Value = serde_json::from_str(&edited).unwrap();
    assert_eq!(value["projects"]["/home/me/a.b"]["mcpServers"]["t"], entry());
}

#[test]
fn any_entry_can_be_removed() {
    let text = "{\n  \"mcpServers\": {\n    // first\n    \"a\": 1,\n    \"b\": { // in b\n    }, // about b\n    \"c\": 3\n  }\n}";
    let remove = |name| json().remove(text, name).unwrap();
    assert_eq!(remove("a"), text.replace("\n    \"a\": 1,", ""));
    assert_eq!(remove("b"), text.replace("\"b\": { // in b\n    }, // about b", "// about b"));
    assert_eq!(remove("c"), text.replace(", // about b\n    \"c\": 3", " // about b"));
    assert_eq!(
        json().remove("{ \"mcpServers\": { \"a\": 1, \"b\": 2 } }", "a").unwrap(),
        "{ \"mcpServers\": { \"b\": 2 } }"
    );
    assert_eq!(json().remove(text, "d"), None);
    assert_eq!(json().remove("{ \"mcpServers\": 1 }", "d"), None);
}

#[test]
fn an_existing_entry_is_replaced_in_its_place() {
    let text = "{\"mcpServers\": {\n  // t\n  \"trunkline\": {\"command\": \"old\"}, // after\n  \"z\": 1\n}}";
    let expected = text.replace(
        "{\"command\": \"old\"}",
        "{\n    \"command\": \"trunkline\",\n    \"args\": [\"connect\"]\n  }",
    );
    assert_eq!(json().insert(text).unwrap(), expected);
    let inline = json().insert("{\"mcpServers\": {\"trunkline\": 1}}").unwrap();
    assert!(!inline.contains('\n'), "{inline}");
}

#[test]
fn unusual_names_are_quoted() {
    for name in ["a.b", "say \"hi\"", "\\", "ünï 😀", "", "a\nb", "//", "\u{7f}"] {
        let text = "{\n  \"mcpServers\": {}\n}";
        let edited = insert(text, FileFormat::Json, &json().path, name, &entry()).unwrap();
        assert!(contains(&edited, FileFormat::Json, &json().path, name).unwrap());
        assert_eq!(json().remove(&edited, name).as_deref(), Some(text));
    }
}

#[test]
fn broken_files_are_refused_with_their_place() {
    for (text, message) in [
        ("{\n  \"a\": tru\n}", "line 2, column 8: `tru` is not a value of JSON"),
        ("{ \"ä\": 1 \"b\": 2 }", "line 1, column 10: expected `,` or `}`, found '\"'"),
        ("{ \"a\": [1 2] }", "line 1, column 11: expected `,` or `]`, found '2'"),
        ("{ \"a\": 1", "line 1, column 9: expected `,` or `}`, found the end of the file"),
        ("{ \"a\" 1 }", "line 1, column 7: expected `:`, found '1'"),
        ("{} x", "line 1, column 4: there is more text after the end of the value"),
        ("{ /* }", "line 1, column 3: this is not a complete comment"),
        ("{ \"a }", "line 1, column 3: this text has no closing quote"),
        ("{ \"a\\q\": 1 }", "line 1, column 6: this text is not valid in JSON"),
        ("{ a: 1 }", "line 1, column 3: expected a key in double quotes or `}`, found 'a'"),
        (
            "{ \"a\": 1,\n \"a\": 2 }",
            "line 2, column 2: the key \"a\" is there twice; remove one of the two",
        ),
        ("{ \"mcpServers\": [] }", "line 1, column 17: \"mcpServers\" is not an object"),
        ("[]", "line 1, column 1: the file is not an object"),
        ("{ \"a\": , }", "line 1, column 8: expected a value, found ','"),
    ] {
        assert_eq!(json().refusal(text), message, "{text}");
    }
    let deep = "[".repeat(100_000);
    assert!(json().refusal(&deep).contains("deeper than"));
}

#[test]
fn lists_and_entries_that_are_no_objects_are_refused() {
    let list = KeyPath::list(["mcpServers"]);
    let error = insert("{}", FileFormat::Json, &list, "a", &entry()).unwrap_err();
    assert_eq!(error.kind(), EditErrorKind::Unsupported);
    let error = insert("{}", FileFormat::Json, &json().path, "a", &json!("x")).unwrap_err();
    assert_eq!(error.kind(), EditErrorKind::InvalidEntry);
    let none = KeyPath::map(Vec::<String>::new());
    assert!(remove("{}", FileFormat::Json, &none, "a").is_err());
}

#[test]
fn many_servers_are_no_problem() {
    let servers: Vec<_> =
        (0..500).map(|it| format!("    \"server-{it}\": {{ \"command\": \"x\" }}")).collect();
    let text = format!("{{\n  \"mcpServers\": {{\n{}\n  }}\n}}\n", servers.join(",\n"));
    let edited = json().insert(&text).unwrap();
    assert!(edited.len() > text.len());
    assert_eq!(json().remove(&edited, "trunkline"), Some(text));
    for name in ["server-0", "server-250", "server-499"] {
        let shorter = json().remove(&edited, name).unwrap();
        assert!(!contains(&shorter, json().format, &json().path, name).unwrap());
    }
}

#[test]
fn long_arrays_are_written_on_several_lines() {
    let long = json!({ "command": "x", "args": vec!["an argument that is long"; 5] });
    let edited = insert("", FileFormat::Json, &json().path, "a", &long).unwrap();
    assert_eq!(edited.matches("\n        \"an argument").count(), 5, "{edited}");
}

#[test]
fn an_empty_object_is_removed_beside_other_values() {
    let path = KeyPath::map(["mcpServers"]);
    for (text, expected) in [
        ("{\n  \"a\": 1,\n  \"mcpServers\": {}\n}\n", "{\n  \"a\": 1\n}\n"),
        ("{ \"mcpServers\": { }, \"a\": 1 }", "{ \"a\": 1 }"),
        ("\u{feff}{ \"a\": 1, \"mcpServers\": {} }", "\u{feff}{ \"a\": 1 }"),
    ] {
        assert_eq!(remove_empty(text, &path).unwrap(), expected);
    }
    for text in [
        "{ \"mcpServers\": {} }",
        "{ \"a\": 1, \"mcpServers\": { /* mine */ } }",
        "{ \"a\": 1, \"mcpServers\": { \"b\": {} } }",
        "{ \"a\": 1, \"mcpServers\": [] }",
        "{ \"a\": 1 }",
        "",
    ] {
        assert_eq!(remove_empty(text, &path).unwrap(), text);
    }
    assert!(remove_empty("{", &path).is_err());
}
