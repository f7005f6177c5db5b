//! `trunkline demo` and its servers, with third-party clients.

use serde_json::{Value, json};
use trunkline_testkit::peers;

use crate::support::listening_server;
use crate::support::program::Folder;

#[test]
fn the_demonstration_needs_no_configuration_and_really_calls_a_tool() {
    let run = Folder::new().run(&["demo"]);
    assert_eq!(run.code, 0, "{run}");
    for part in
        ["http://127.0.0.1:", "did you mean `command`?", "numbers_add", "\"words\":6", "ready"]
    {
        assert!(run.output.contains(part), "{part} is missing in {run}");
    }
    assert_eq!(run.output.matches("\"words\":6").count(), 2, "{run}");
    assert!(run.output.contains("both servers are being stopped"), "{run}");
    assert_eq!(run.messages, "");
}

/// Seen: it failed behind a proxy, because the servers on this machine were asked of the proxy.
#[test]
fn the_demonstration_needs_no_exception_from_a_proxy() {
    let folder = Folder::new();
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let run = folder.finish(folder.command(&["demo"]).env(variable, "http://127.0.0.1:1"));
        assert_eq!(run.code, 0, "{variable}: {run}");
        assert_eq!(run.output.matches("\"words\":6").count(), 2, "{variable}: {run}");
    }
}

/// Seen: all that was said was that there is no tool.
#[cfg(unix)]
#[test]
fn demo_without_its_server_reports_the_reason() {
    let folder = Folder::new();
    let program = folder.command(&["demo"]);
    let mut limited = std::process::Command::new("/bin/sh");
    limited.arg("-c").arg("ulimit -n 20; exec \"$0\" demo").arg(program.get_program());
    let variables = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
    limited.env_clear().envs(variables).current_dir(folder.project());
    let run = folder.finish(&mut limited);
    assert_ne!(run.code, 0, "{run}");
    assert!(run.messages.contains("open files"), "{run}");
}

#[test]
fn the_demonstration_is_json_for_machines() {
    let json = Folder::new().run(&["demo", "--format", "json"]).json();
    let configuration = &json["configuration"]["mcpServers"];
    assert_eq!(configuration["words"]["args"], json!(["demo-server", "words"]));
    let states: Vec<_> = json["status"]["servers"].as_array().unwrap().iter().collect();
    assert!(states.len() == 2 && states.iter().all(|status| status["state"] == "ready"));
    assert_eq!(json["result"]["structuredContent"]["words"], 6);
    let gateway = &json["gateway"];
    assert_eq!(gateway["result"]["structuredContent"]["words"], 6);
    let entry = &gateway["client"]["mcpServers"]["trunkline"];
    assert_eq!((&entry["type"], &entry["url"]), (&json!("http"), &gateway["url"]));
}

#[cfg(target_os = "linux")]
#[test]
fn the_demonstration_can_go_on_for_a_client() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    use crate::support::processes::{LONGEST_END, Process, children, send, wait_until};

    let folder = Folder::new();
    let mut command = folder.command(&["demo", "--stay"]);
    let mut demo = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut shown = Vec::new();
    shown.extend(lines.by_ref().take_while(|line| !line.contains("until Ctrl-C")));
    let served = shown.iter().find(|line| line.starts_with("Both are served as one at ")).unwrap();
    let url = served.split_whitespace().nth(6).unwrap();
    let entry = json!({ "mcpServers": { "trunkline": { "type": "http", "url": url } } });
    let folder = folder.file("client.json", entry.to_string());
    let call = ["call", "trunkline_words_shout", "--arg", "text=hello", "--config", "client.json"];
    let run = folder.run(&call);
    assert_eq!((run.code, run.output.as_str()), (0, "HELLO\n"), "{run}");
    let servers = children(demo.id());
    assert!(!servers.is_empty());
    send("INT", demo.id());
    assert_eq!(demo.wait().unwrap().code(), Some(0));
    wait_until("its servers end", LONGEST_END, || !servers.iter().any(Process::runs));
}

/// The command line of the program as a stdio server, for a client.
fn command_line(server: &str) -> String {
    json!([env!("CARGO_BIN_EXE_trunkline"), "demo-server", server]).to_string()
}

#[tokio::test]
async fn the_typescript_sdk_runs_the_program_as_a_server() {
    let mut client = peers::node_client("list_and_call.mjs");
    client.args([&command_line("words"), "shout", r#"{"text":"hello"}"#]);
    let report: Value = serde_json::from_str(&peers::run(client).await).unwrap();
    assert_eq!(report["tools"], json!(["count_words", "shout", "remember"]));
    assert_eq!(report["result"]["content"][0]["text"], "HELLO");
}

#[tokio::test]
async fn the_python_sdk_runs_the_program_as_a_server() {
    let mut client = peers::python_client("list_and_call.py");
    client.args([&command_line("numbers"), "add", r#"{"a":2,"b":40}"#]);
    let report: Value = serde_json::from_str(&peers::run(client).await).unwrap();
    assert_eq!(report["protocolVersion"], "2026-07-28");
    assert_eq!(report["result"]["content"][0]["text"], "42");
}

#[tokio::test]
async fn the_program_listens_on_http() {
    let folder = Folder::new();
    let server = listening_server::demo(&folder, "numbers");
    let mut client = peers::python_client("list_and_call.py");
    client.args([&server.url, "add", r#"{"a":1,"b":1}"#]);
    let report: Value = serde_json::from_str(&peers::run(client).await).unwrap();
    assert_eq!(report["result"]["content"][0]["text"], "2");
}

#[test]
fn the_demo_servers_do_not_listen_to_the_world() {
    let run = Folder::new().run(&["demo-server", "words", "--listen", "0.0.0.0:0"]);
    assert_eq!(run.code, 1);
    assert!(run.messages.contains("loopback"), "{run}");
}
