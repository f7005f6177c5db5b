//! Edits of YAML.

use serde_json::{Value, json};

use super::super::{EditErrorKind, FileFormat, KeyPath, contains, insert, remove, yaml_tree};
use super::{Subject, entry};

fn yaml() -> Subject {
    Subject { format: FileFormat::Yaml, path: KeyPath::map(["extensions"]) }
}

fn list() -> Subject {
    Subject { format: FileFormat::Yaml, path: KeyPath::list(["mcpServers"]) }
}

fn value(text: &str) -> Value {
    yaml_tree::parse(text).unwrap().unwrap().to_value()
}

const BLOCK: &str = "  trunkline:\n    command: trunkline\n    args: [\"connect\"]";
const ITEM: &str = "  - name: trunkline\n    command: trunkline\n    args: [\"connect\"]";

#[test]
fn a_new_file_is_complete() {
    assert_eq!(yaml().insert("").unwrap(), format!("extensions:\n{BLOCK}\n"));
    assert_eq!(yaml().insert("# mine").unwrap(), format!("# mine\nextensions:\n{BLOCK}\n"));
    assert_eq!(yaml().insert("---\n").unwrap(), format!("---\nextensions:\n{BLOCK}\n"));
    assert_eq!(list().insert("").unwrap(), format!("mcpServers:\n{ITEM}\n"));
    assert_eq!(yaml().remove("", "trunkline"), None);
}

#[test]
fn an_entry_goes_after_the_last_one() {
    for text in [
        "extensions:\n  a:\n    cmd: x\n",
        "extensions:\n  a:\n    cmd: x",
        "# top\nextensions: # all\n  a: # one\n    cmd: x # two\n",
        "extensions:\n  a: {cmd: x, args: [1, 2]}\n",
        "extensions:\n  a:\n    text: |\n      one\n      # two\n",
        "extensions:\n  a: 'it''s'\n",
        "extensions:\n  a: >-\n      folded\n      text",
        "\u{feff}extensions:\n  a: \"two\n    lines\"\n",
    ] {
        let line_break = if text.ends_with('\n') { "\n" } else { "" };
        let expected = format!("{}\n{BLOCK}{line_break}", text.trim_end());
        yaml().round_trip(text, &expected);
    }
    let middle = "extensions:\n  a:\n    cmd: x\n\n# other\nother: 1\n";
    let expected = format!("extensions:\n  a:\n    cmd: x\n{BLOCK}\n\n# other\nother: 1\n");
    yaml().round_trip(middle, &expected);
}

#[test]
fn empty_values_are_filled() {
    yaml().round_trip("extensions: {}\nb: 1\n", &format!("extensions:\n{BLOCK}\nb: 1\n"));
    yaml().round_trip("extensions: {} # none\n", &format!("extensions: # none\n{BLOCK}\n"));
    list().round_trip("mcpServers: []", &format!("mcpServers:\n{ITEM}"));
    for text in ["extensions:\nb: 1\n", "extensions: null\nb: 1\n", "extensions: ~\nb: 1\n"] {
        assert_eq!(yaml().insert(text).unwrap(), format!("extensions:\n{BLOCK}\nb: 1\n"));
    }
    assert_eq!(yaml().insert("b: 1\n").unwrap(), format!("b: 1\nextensions:\n{BLOCK}\n"));
    let deep = KeyPath::map(["a", "b"]);
    let edited =
        insert("a:\n    x: 1\n", FileFormat::Yaml, &deep, "c", &json!({ "d": 1 })).unwrap();
    assert_eq!(edited, "a:\n    x: 1\n    b:\n        c:\n            d: 1\n");
}

#[test]
fn line_breaks_and_indentation_stay() {
    let text = "extensions:\r\n    a:\r\n        cmd: x\r\n";
    let added = "    trunkline:\r\n        command: trunkline\r\n        args: [\"connect\"]\r\n";
    yaml().round_trip(text, &format!("{text}{added}"));
}

#[test]
fn entries_are_replaced_and_removed() {
    let text = "extensions:\n  # a\n  a:\n    cmd: x # x\n  # t\n  trunkline:\n    cmd: old # old\n\n  # b\n  b: 1\n";
    let replaced = text.replace(
        "trunkline:\n    cmd: old",
        "trunkline:\n    command: trunkline\n    args: [\"connect\"]",
    );
    assert_eq!(yaml().insert(text).unwrap(), replaced);
    let without = |part: &str| Some(text.replace(part, ""));
    assert_eq!(yaml().remove(text, "trunkline"), without("\n  trunkline:\n    cmd: old # old"));
    assert_eq!(yaml().remove(text, "a"), without("\n  a:\n    cmd: x # x"));
    assert_eq!(yaml().remove(text, "b"), without("\n  b: 1"));
    assert_eq!(yaml().remove(text, "c"), None);
}

#[test]
fn lists_are_edited_by_name() {
    let text = "name: x\nmcpServers:\n  # one\n  - name: a\n    command: b # b\n  -\n    command: d\n    name: c\nz: 1\n";
    let expected = text.replace("\nz: 1", &format!("\n{ITEM}\nz: 1"));
    list().round_trip(text, &expected);
    let same_column = "mcpServers:\n- name: a\n  command: b\n";
    let item = "- name: trunkline\n  command: trunkline\n  args: [\"connect\"]\n";
    list().round_trip(same_column, &format!("{same_column}{item}"));
    assert_eq!(
        list().remove(text, "a"),
        Some(text.replace("\n  - name: a\n    command: b # b", ""))
    );
    assert_eq!(
        list().remove(text, "c"),
        Some(text.replace("\n  -\n    command: d\n    name: c", ""))
    );
    assert_eq!(list().remove(text, "x"), None);
    let old = "mcpServers:\n  - name: trunkline\n    command: old\n  - name: z\n";
    let new = old.replace("command: old", "command: trunkline\n    args: [\"connect\"]");
    assert_eq!(list().insert(old).unwrap(), new);
}

#[test]
fn unusual_names_are_quoted() {
    for name in
        ["a.b", "say \"hi\"", "\\", "ünï 😀", "", "a\nb", "yes", "1", "- x", "a: b", "#", "*a"]
    {
        let text = "extensions:\n  z: 1\n";
        let edited = insert(text, FileFormat::Yaml, &yaml().path, name, &entry()).unwrap();
        assert!(contains(&edited, FileFormat::Yaml, &yaml().path, name).unwrap());
        assert_eq!(yaml().remove(&edited, name).as_deref(), Some(text));
    }
}

#[test]
fn unsafe_files_are_refused() {
    for (text, message) in [
        ("a: [1\nb: 2\n", "line "),
        ("a: 1\na: 2\n", "line 2, column 1: the key \"a\" is there twice"),
        ("extensions: {a: 1}\n", "line 1, column 13: this is a flow mapping"),
        ("extensions: 1\n", "line 1, column 13: \"extensions\" is not a mapping"),
        ("extensions: &x\n  a: 1\nb: *x\n", "line 2, column 3: values with a tag or an anchor"),
        ("extensions: !!map {}\n", "line 1, column "),
        ("extensions:\n  {}\n", "line 2, column 3: this empty value"),
        ("- a\n", "line 1, column 3: the file is not a mapping"),
        ("a: 1\n---\nb: 1\n", "line 2, column 1: files with more than one"),
        ("? extensions\n: a: 1\n", "line 2, column 3: this line starts"),
        ("{extensions: {}}", "line 1, column 1: this is a flow mapping"),
    ] {
        let found = yaml().refusal(text);
        assert!(found.starts_with(message), "{text:?}: {found}");
    }
    // The blank lines are part of the text, so that an entry cannot go before them.
    let keep = yaml().insert("extensions:\n  a: |+\n    x\n\n\nb: 1\n").unwrap_err();
    assert_eq!(keep.kind(), EditErrorKind::Verification);
    assert!(list().refusal("mcpServers: [{name: a}]").contains("flow sequence"));
    assert!(list().refusal("mcpServers:\n  a: 1\n").contains("is not a list"));
    let flow = remove("extensions: {a: 1}", FileFormat::Yaml, &yaml().path, "a");
    assert_eq!(flow.unwrap_err().kind(), EditErrorKind::Unsupported);
    assert!(yaml().refusal(&"[".repeat(10_000)).starts_with("line 1"));
}

#[test]
fn anchors_and_tags_elsewhere_stay() {
    let text = "base: &b\n  x: !!str 1\nextensions:\n  a:\n    <<: *b\n";
    yaml().round_trip(text, &format!("{text}{BLOCK}\n"));
}

#[test]
fn all_kinds_of_values_are_written() {
    let entry = json!({
        "enabled": true, "name": "no", "description": "", "cmd": "/usr/bin/x", "timeout": 300,
        "args": ["a b", 1, null], "envs": {}, "env_keys": [], "more": { "a b": { "c": -1.5 } },
    });
    let edited = insert("", FileFormat::Yaml, &yaml().path, "x", &entry).unwrap();
    assert_eq!(value(&edited)["extensions"]["x"], entry);
    assert!(
        edited.starts_with("extensions:\n  x:\n    enabled: true\n    name: \"no\"\n"),
        "{edited}"
    );
}

#[test]
fn many_servers_are_no_problem() {
    let servers: Vec<_> = (0..500).map(|it| format!("  server-{it}:\n    cmd: x\n")).collect();
    let text = format!("extensions:\n{}", servers.concat());
    let edited = yaml().insert(&text).unwrap();
    assert!(edited.len() > text.len());
    assert_eq!(yaml().remove(&edited, "trunkline"), Some(text));
    for name in ["server-0", "server-250", "server-499"] {
        let shorter = yaml().remove(&edited, name).unwrap();
        assert!(!contains(&shorter, yaml().format, &yaml().path, name).unwrap());
    }
}
