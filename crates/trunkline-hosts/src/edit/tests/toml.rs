//! Edits of TOML.

use serde_json::{Value, json};

use super::super::{EditErrorKind, FileFormat, KeyPath, contains, insert, toml_tree};
use super::{Subject, entry};

fn toml() -> Subject {
    Subject { format: FileFormat::Toml, path: KeyPath::map(["mcp_servers"]) }
}

const TABLE: &str = "[mcp_servers.trunkline]\ncommand = \"trunkline\"\nargs = [\"connect\"]";

fn value(text: &str) -> Value {
    toml_tree::parse(text).unwrap()
}

#[test]
fn a_table_goes_to_the_end() {
    toml().round_trip("", &format!("{TABLE}\n"));
    toml().round_trip("\n", &format!("\n\n{TABLE}\n"));
    toml().round_trip("# mine", &format!("# mine\n\n{TABLE}"));
    toml().round_trip("model = 'x'\n", &format!("model = 'x'\n\n{TABLE}\n"));
    let codex = "model = \"o3\" # mine\n\n[mcp_servers.docs]\ncommand = \"npx\"\nenv = { A = \"1\" }\n\n[mcp_servers.docs.tools.x]\nmode = \"a\"\n\n[[profiles]]\nname = \"p\"\n# end\n";
    toml().round_trip(codex, &format!("{codex}\n{TABLE}\n"));
    let dotted = "mcp_servers.a.command = \"x\"\n";
    toml().round_trip(dotted, &format!("{dotted}\n{TABLE}\n"));
    let parent = "[mcp_servers]\na = { command = \"x\" }\n";
    toml().round_trip(parent, &format!("{parent}\n{TABLE}\n"));
}

#[test]
fn line_breaks_and_the_byte_order_mark_stay() {
    let text = "\u{feff}a = 1\r\n\r\n[b]\r\nc = \"\"\"x\ny\"\"\"\r\n";
    toml().round_trip(text, &format!("{text}\r\n{}\r\n", TABLE.replace('\n', "\r\n")));
}

#[test]
fn inline_tables_stay_inline() {
    let inline = "{ command = \"trunkline\", args = [\"connect\"] }";
    for (before, after) in [
        ("{}", format!("{{ trunkline = {inline} }}")),
        (
            "{ a = { command = 'x' } }",
            format!("{{ a = {{ command = 'x' }}, trunkline = {inline} }}"),
        ),
        ("{a = {}}", format!("{{a = {{}}, trunkline = {inline}}}")),
    ] {
        let document = |servers: &str| format!("x = 1\nmcp_servers = {servers} # servers\ny = 2\n");
        toml().round_trip(&document(before), &document(&after));
    }
    let text = "mcp_servers = { trunkline = { command = 'old' }, b = {} }";
    let replaced = text.replace("{ command = 'old' }", inline);
    assert_eq!(toml().insert(text).unwrap(), replaced);
    assert_eq!(toml().remove(text, "trunkline").unwrap(), "mcp_servers = { b = {} }");
    let deep = KeyPath::map(["a", "b", "c"]);
    let edited = insert("a = { b = { x = 1 } }", FileFormat::Toml, &deep, "d", &json!({})).unwrap();
    assert_eq!(edited, "a = { b = { x = 1, c.d = {} } }");
    let dotted = "mcp_servers = { trunkline.command = 'x', b = {} }";
    assert!(toml().refusal(dotted).contains("dotted keys in an inline table"));
    assert_eq!(toml().remove(dotted, "trunkline").unwrap(), "mcp_servers = { b = {} }");
}

#[test]
fn an_existing_table_is_replaced_in_its_place() {
    let text = "# a\n[mcp_servers.trunkline] # t\ncommand = 'old'\n\n# env\n[mcp_servers.trunkline.env]\nA = 'b'\n# z\n\n[z]\n[mcp_servers.trunkline.tools]\n";
    assert_eq!(toml().insert(text).unwrap(), format!("# a\n{TABLE}\n# z\n\n[z]\n"));
    let dotted = "mcp_servers.trunkline.command = 'old'\nx = 1\n[y]\n";
    assert_eq!(toml().insert(dotted).unwrap(), format!("x = 1\n[y]\n\n{TABLE}\n"));
    let inline = "[mcp_servers]\ntrunkline = { command = 'old' } # c\n";
    assert_eq!(
        value(&toml().insert(inline).unwrap()),
        json!({ "mcp_servers": { "trunkline": entry() } })
    );
}

#[test]
fn all_parts_of_a_table_are_removed() {
    let text = "[mcp_servers.a]\ncommand = 'x'\n[mcp_servers.a.env]\nK = 'v' # k\n# kept\n[other]\nx = [\n  1, # one\n]\n\n[mcp_servers.a.tools]\nx = 1\n\n[mcp_servers.b]\n";
    let rest = "# kept\n[other]\nx = [\n  1, # one\n]\n\n[mcp_servers.b]\n";
    assert_eq!(toml().remove(text, "a").unwrap(), rest);
    let dotted = "[mcp_servers]\na.command = 'x'\na.args = [\n]\nb.command = 'y'\n";
    assert_eq!(toml().remove(dotted, "a").unwrap(), "[mcp_servers]\nb.command = 'y'\n");
    assert_eq!(toml().remove(text, "c"), None);
    assert_eq!(toml().remove("mcp_servers = 1", "c"), None);
}

#[test]
fn unusual_names_are_quoted() {
    for name in ["a.b", "say \"hi\"", "\\", "ünï 😀", "", "a\nb", "it's", "\u{7f}", "1"] {
        let edited = insert("x = 1\n", FileFormat::Toml, &toml().path, name, &entry()).unwrap();
        assert!(contains(&edited, FileFormat::Toml, &toml().path, name).unwrap());
        assert_eq!(toml().remove(&edited, name).unwrap(), "x = 1\n");
    }
    let quoted = "[ mcp_servers . \"a.b\" ]\ncommand = 'x'\n[\"mcp_servers\".'c d']\n";
    assert_eq!(toml().remove(quoted, "a.b").unwrap(), "[\"mcp_servers\".'c d']\n");
    assert_eq!(toml().remove(quoted, "c d").unwrap(), "[ mcp_servers . \"a.b\" ]\ncommand = 'x'\n");
}

#[test]
fn broken_files_are_refused_with_their_place() {
    assert!(toml().refusal("a = 1\nb = = 2\n").starts_with("line 2, column 5: "));
    let duplicate = toml().refusal("a = 1\na = 2\n");
    assert!(duplicate.starts_with("line 2, column 1: duplicate key"), "{duplicate}");
    let table = toml().refusal("[x]\n[x]\n");
    assert!(table.starts_with("line 2, column "), "{table}");
    assert_eq!(
        toml().refusal("x = 1\nmcp_servers = 'a'"),
        "line 2, column 1: \"mcp_servers\" is not a table"
    );
    assert!(toml().refusal("[[mcp_servers]]").contains("is not a table"));
}

#[test]
fn null_cannot_be_written() {
    let entry = json!({ "command": null });
    let error = insert("", FileFormat::Toml, &toml().path, "a", &entry).unwrap_err();
    assert_eq!(error.kind(), EditErrorKind::InvalidEntry);
}

#[test]
fn all_kinds_of_values_are_written() {
    let entry = json!({
        "command": "a\tb\u{7f}", "n": 1, "f": 1.5, "b": true, "list": [1, "x", [], {}],
        "env": { "A.B": "1", "C": { "d": false } },
    });
    let edited = insert("t = 1979-05-27\n", FileFormat::Toml, &toml().path, "a", &entry).unwrap();
    assert_eq!(value(&edited)["mcp_servers"]["a"], entry);
}

#[test]
fn many_servers_are_no_problem() {
    let servers: Vec<_> =
        (0..500).map(|it| format!("[mcp_servers.server-{it}]\ncommand = 'x'\n")).collect();
    let text = servers.join("\n");
    let edited = toml().insert(&text).unwrap();
    assert!(edited.len() > text.len());
    assert_eq!(toml().remove(&edited, "trunkline"), Some(text));
    for name in ["server-0", "server-250", "server-499"] {
        let shorter = toml().remove(&edited, name).unwrap();
        assert!(!contains(&shorter, toml().format, &toml().path, name).unwrap());
    }
}
