//! Lists of servers: the age of those that are cached, the time limit for others, and items that cannot be used.

use std::fs;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use trunkline_testkit::peers;

use crate::support::program::{Folder, Run};

/// Longer than any command here takes, and shorter than the server that hangs.
const LIMIT: Duration = Duration::from_secs(40);

fn demo(name: &str) -> Value {
    json!({ "command": env!("CARGO_BIN_EXE_trunkline"), "args": ["demo-server", name] })
}

fn with_servers(servers: &Value) -> Folder {
    Folder::new().file("trunkline.json", json!({ "mcpServers": servers }).to_string())
}

/// Makes the cached list of a tool so many seconds old.
fn age(folder: &Folder, tool: &str, seconds: u64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let cache = folder.project().join("../home/.cache/trunkline/servers");
    for file in fs::read_dir(cache).unwrap() {
        let path = file.unwrap().path();
        let mut content: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let tools = content["tools"].as_array().unwrap();
        if tools.iter().any(|it| it["name"] == tool) {
            content["savedAt"] = json!(now - seconds);
            fs::write(&path, content.to_string()).unwrap();
        }
    }
}

#[test]
fn the_age_of_cached_lists_is_printed() {
    let folder = with_servers(&json!({ "words": demo("words"), "numbers": demo("numbers") }));
    assert!(!folder.run(&["tools"]).messages.contains("ago"));
    age(&folder, "shout", 3 * 3600 + 5);
    age(&folder, "add", 3 * 3600 + 50);
    let both = "2 servers were not started: the tools are those of the last run, 3 hours ago; \
                `--refresh` asks again\n";
    for command in [&["tools"][..], &["search", "count"], &["types"], &["tokens"]] {
        let run = folder.run(command);
        assert!(run.code == 0 && run.messages.contains(both), "{command:?}: {run}");
        let run = folder.run(&[command, &["--quiet"]].concat());
        assert_eq!(run.messages, "", "{command:?}");
    }
    age(&folder, "add", 120);
    let run = folder.run(&["tools"]);
    assert!(run.messages.contains("those of earlier runs, 2 minutes to 3 hours ago"), "{run}");
    let run = folder.run(&["tool", "words_shout"]);
    let one = "1 server was not started: the tools are those of the last run, 3 hours ago";
    assert!(run.code == 0 && run.messages.contains(one), "{run}");
    for command in [&["tools"][..], &["search", "count"], &["types"], &["tokens"]] {
        let json = folder.run(&[command, &["--format", "json"]].concat()).json();
        let times = json["rememberedAt"].as_object().unwrap();
        let names: Vec<_> = times.keys().map(String::as_str).collect();
        assert_eq!(names, ["numbers", "words"], "{json:#}");
        assert!(times["words"].as_str().unwrap() < times["numbers"].as_str().unwrap(), "{json:#}");
        assert!(times["words"].as_str().unwrap().ends_with('Z'), "{json:#}");
    }
    for command in [&["search", "count"][..], &["types"], &["tokens"], &["tool", "words_shout"]] {
        let run = folder.run(&[command, &["--refresh"]].concat());
        assert!(run.code == 0 && !run.messages.contains("ago"), "{command:?}: {run}");
    }
}

#[test]
fn a_timeout_prints_the_lists_that_are_there_in_time() {
    let hangs = json!({ "command": "/bin/sh", "args": ["-c", "exec /bin/sleep 300"] });
    let folder = with_servers(&json!({ "words": demo("words"), "late": hangs }));
    let said = "server `late` was not ready within 3s (`--timeout`)";
    let run = |command: &[&str]| -> Run {
        let begun = Instant::now();
        let run = folder.run(&[command, &["--timeout", "3s"]].concat());
        assert!(begun.elapsed() < LIMIT && run.messages.contains(said), "{command:?}: {run}");
        run
    };
    for command in [&["tools", "--refresh"][..], &["search", "shout"], &["types"], &["tokens"]] {
        let run = run(command);
        assert!(run.code == 1 && run.output.contains("words"), "{command:?}: {run}");
    }
    for command in [&["prompts"][..], &["resources"]] {
        assert_eq!(run(command).code, 1, "{command:?}");
    }
    let json = run(&["tools", "--format", "json"]).json();
    assert_eq!(json["failures"][0]["kind"], "no-answer", "{json:#}");
    assert_eq!(json["failures"][0]["server"], "late", "{json:#}");
    // Also if the server is named by a word of its own.
    for command in [&["tool", "late", "x"][..], &["call", "late", "x"], &["prompt", "late", "x"]] {
        assert_eq!(run(command).code, 8, "{command:?}");
    }
}

/// A server with one tool that can be used, and some that cannot.
const SERVER: &str = r#"
import json, sys
tools = [{"name": "good", "inputSchema": {"type": "object"}}] + [{"name": f"bad{n}"} for n in range(int(sys.argv[1]))]
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
        "tools/list": {"tools": tools},
    }.get(request["method"], {})
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;

#[test]
fn tools_that_cannot_be_used_are_named() {
    for (count, said) in [
        ("1", "warning: server `s`: 1 tool is not used: `bad0` ("),
        ("5", "), `bad2` ("),
        ("5", " and 2 more, which `trunkline status` names\n"),
    ] {
        let folder = Folder::new().file("server.py", SERVER);
        let script = folder.project().join("server.py");
        let entry = json!({ "command": peers::python(), "args": [script, count] });
        let config = json!({ "mcpServers": { "s": entry } }).to_string();
        let folder = folder.file("trunkline.json", config);
        // The second run uses the cache.
        for is_cached in [false, true] {
            let run = folder.run(&["tools"]);
            assert!(run.code == 0 && run.messages.contains(said), "{run}");
            assert_eq!(run.messages.contains("not started"), is_cached, "{run}");
            assert_eq!(folder.run(&["tools", "-q"]).messages, "");
        }
        let json = folder.run(&["tools", "--format", "json"]).json();
        assert_eq!(json["setAside"][0]["name"], "bad0", "{json:#}");
        assert_eq!(json["setAside"].as_array().unwrap().len().to_string(), count, "{json:#}");
    }
}

/// CON-9: `status` waits until it is known whether lists can be remembered.
#[test]
fn status_reports_lists_that_cannot_be_remembered() {
    let folder = Folder::new().file("server.py", SERVER).file("file", "");
    let script = folder.project().join("server.py");
    let entry = json!({ "command": peers::python(), "args": [script, "0"] });
    let folder = folder.file("trunkline.json", json!({ "mcpServers": { "s": entry } }).to_string());
    let cache = folder.project().join("file").join("sub");
    let run = folder.finish(folder.command(&["status"]).env("TRUNKLINE_CACHE", cache));
    assert!(run.output.contains("server `s`: its lists cannot be remembered: "), "{run}");
}

/// CON-6: a program that is started with SIGCHLD ignored, as some job runners do, still starts servers.
#[cfg(target_os = "linux")]
#[test]
fn servers_start_where_the_signal_of_ended_children_is_ignored() {
    let folder = Folder::new().file("server.py", SERVER);
    let script = folder.project().join("server.py");
    let entry = json!({ "command": peers::python(), "args": [script, "0"] });
    let none = json!({ "command": "no-such-program" });
    let config = json!({ "mcpServers": { "s": entry, "none": none } }).to_string();
    let folder = folder.file("trunkline.json", config);
    let program = folder.command(&["tools"]);
    let mut ignoring = std::process::Command::new("env");
    ignoring.arg("--ignore-signal=CHLD").arg(program.get_program()).args(program.get_args());
    ignoring.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = ignoring.current_dir(folder.project()).output().unwrap();
    let run = folder.ended(output);
    assert!(run.output.contains("s_good"), "{run}");
    assert!(run.messages.contains("the program `no-such-program`"), "{run}");
    assert!(!run.messages.contains("defect"), "{run}");
}
