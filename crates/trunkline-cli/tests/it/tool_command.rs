//! `trunkline tool`: everything that a user needs to call one.

use serde_json::json;
use trunkline_testkit::peers;

use crate::support::program::Folder;

#[test]
fn a_tool_is_described_with_its_arguments() {
    let package = "@modelcontextprotocol/server-everything/dist/index.js";
    let script = peers::node_modules().join(package);
    let entry = json!({ "command": "node", "args": [script, "stdio"] });
    let config = json!({ "mcpServers": { "everything": entry } }).to_string();
    let folder = Folder::new().file("trunkline.json", config);
    let run = folder.run(&["tool", "everything", "get-structured-content"]);
    assert_eq!(run.code, 0, "{run}");
    for text in [
        "everything_get-structured-content(location: ",
        r#""New York" or "Chicago" or "Los Angeles""#,
        "Result\n",
        "temperature: number",
        "trunkline call everything_get-structured-content 'location=New York'",
    ] {
        assert!(run.output.contains(text), "{text}: {run}");
    }
    let run = folder.run(&["tool", "echo", "--format", "json"]);
    assert_eq!(run.json()["name"], "everything_echo", "{run}");
    let run = folder.run(&["call", "everything", "get-structured-content", "location=Chicago"]);
    assert_eq!(run.code, 0, "{run}");
    let run = folder.run(&["call", "everything", "get-structured-content", "location=Rome"]);
    assert_eq!(run.code, 6, "{run}");
    let run = folder.run(&["tool", "everything_ehco"]);
    assert!(run.code == 4 && run.messages.contains("did you mean `everything_echo`"), "{run}");
}

/// A server with one tool, whose schema is in the file `schema.json`.
const SERVER: &str = r#"
import json, pathlib, sys
schema = json.loads(pathlib.Path(sys.argv[1]).read_text())
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
        "tools/list": {"tools": [{"name": "wide", "inputSchema": schema}]},
        "tools/call": {"content": [{"type": "text", "text": json.dumps(request.get("params", {}).get("arguments"))}]},
    }.get(request["method"], {})
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;

/// A schema may have any size.
#[test]
fn a_tool_with_a_thousand_arguments_is_described_in_part() {
    let properties: serde_json::Map<_, _> =
        (0..1000).map(|it| (format!("p{it}"), json!({ "type": "string" }))).collect();
    let schema = json!({ "type": "object", "properties": properties });
    let folder = Folder::new().file("server.py", SERVER).file("schema.json", schema.to_string());
    let directory = folder.project();
    let arguments = [directory.join("server.py"), directory.join("schema.json")];
    let entry = json!({ "command": peers::python(), "args": arguments });
    let folder = folder.file("trunkline.json", json!({ "mcpServers": { "s": entry } }).to_string());
    let run = folder.run(&["tool", "s", "wide"]);
    assert_eq!(run.code, 0, "{run}");
    let is_short = run.output.lines().count() < 250;
    assert!(run.output.contains("… 900 arguments more") && is_short, "{run}");
    let run = folder.run(&["call", "s", "wide", "p998=7", "p1=y"]);
    assert_eq!((run.code, run.output.trim()), (0, r#"{"p998": "7", "p1": "y"}"#), "{run}");
    let run = folder.run(&["call", "s", "wide", "p1001=x"]);
    assert!(run.code == 6 && run.messages.contains("no argument `p1001`"), "{run}");
}

/// A server on the command line may be under development: no command uses its lists of the last run.
#[test]
fn lists_of_a_server_on_the_command_line_are_not_kept() {
    let schema = |name: &str| {
        json!({ "type": "object", "properties": { name: { "type": "string" } } }).to_string()
    };
    let folder = Folder::new().file("server.py", SERVER);
    let python = peers::python();
    let server = ["--", python.to_str().unwrap(), "server.py", "schema.json"];
    for command in [&["tools"][..], &["types"], &["search", "wide"], &["tool", "wide"]] {
        for name in ["before", "after"] {
            std::fs::write(folder.project().join("schema.json"), schema(name)).unwrap();
            let run = folder.run(&[command, &server].concat());
            assert!(run.code == 0 && run.output.contains(name), "{command:?}: {run}");
        }
    }
}

#[test]
fn texts_are_checked_against_formats_and_patterns() {
    let schema = json!({
        "type": "object",
        "$defs": { "Id": { "type": "string", "pattern": "^[A-Z]{2}-[0-9]+$" } },
        "properties": {
            "id": { "$ref": "#/$defs/Id" },
            "day": { "anyOf": [{ "type": "string", "format": "date" }, { "type": "null" }] },
            "at": { "type": "string", "format": "date-time" },
            "to": { "type": "array", "items": { "type": "string", "format": "email" } },
            "odd": { "type": "string", "pattern": "^(?!x)" },
        },
    });
    let folder = Folder::new().file("server.py", SERVER).file("schema.json", schema.to_string());
    let directory = folder.project();
    let arguments = [directory.join("server.py"), directory.join("schema.json")];
    let entry = json!({ "command": peers::python(), "args": arguments });
    let folder = folder.file("trunkline.json", json!({ "mcpServers": { "s": entry } }).to_string());
    for (words, said) in [
        (&["id=ab"][..], "`id` must match the pattern `^[A-Z]{2}-[0-9]+$`, not be `ab`"),
        (
            &["at=tomorrow"],
            "`at` must be a date and time such as 2026-07-28T14:30:00Z, not `tomorrow`",
        ),
        (&["to[]=ann@example.com", "to[]=bob"], "`to[1]` must be an email address"),
        (&["--json", r#"{"id":"ab"}"#], "`id` must match the pattern"),
    ] {
        let run = folder.run(&[&["call", "s", "wide"], words].concat());
        assert!(run.code == 6 && run.messages.contains(said), "{run}");
        assert!(run.messages.contains("`--no-check` sends them anyway"), "{run}");
        let run = folder.run(&[&["call", "s", "wide", "--no-check"], words].concat());
        assert_eq!(run.code, 0, "{run}");
    }
    // What only the server can decide is sent.
    for word in ["id=AB-1", "at=2026-07-28 14:30", "odd=x", "day=someday", "to[]=ann@example.com"] {
        let run = folder.run(&["call", "s", "wide", word]);
        assert_eq!(run.code, 0, "{word}: {run}");
    }
}
