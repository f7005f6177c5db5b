//! The reference servers by exposed names: hidden items, and every kind of result.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::program::{Folder, Run};
use crate::third_party_servers::{npm, python};

/// Runs the program with interpreters on PATH.
fn run(folder: &Folder, arguments: &[&str]) -> Run {
    let mut command = folder.command(arguments);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    folder.finish(&mut command)
}

fn good(folder: &Folder, arguments: &[&str]) -> String {
    let run = run(folder, arguments);
    assert_eq!((run.code, run.messages.as_str()), (0, ""), "{run}");
    run.output
}

/// A directory with one server.
fn with(name: &str, server: &Value) -> Folder {
    let content = json!({ "mcpServers": { name: server }, "timeouts": { "handshake": "90s" } });
    Folder::new().file("trunkline.json", content.to_string())
}

fn everything() -> Folder {
    with("everything", &npm("server-everything", &["stdio"]))
}

/// The reference server for files, in the directory `files`, with additional keys.
fn filesystem(more: &Value) -> Folder {
    let folder = Folder::new().file("files/hello.txt", "hello");
    let path = folder.project().join("files");
    let mut server = npm("server-filesystem", &[path.to_str().unwrap()]);
    server.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    folder.file("trunkline.json", json!({ "mcpServers": { "files": server } }).to_string())
}

#[test]
fn files_are_not_written_unless_that_is_allowed() {
    let folder = filesystem(&json!({ "access": "read-only" }));
    let path = format!("path={}", folder.project().join("files/new.txt").display());
    let write = ["call", "files_write_file", "--arg", &path, "--arg", "content=new"];
    let listed = run(&folder, &["tools"]);
    assert!(!listed.output.contains("files_write_file"), "{listed}");
    assert!(listed.messages.contains("4 tools are hidden (4 of files)"), "{listed}");
    let refused = run(&folder, &write);
    assert_eq!(refused.code, 4, "{refused}");
    assert!(refused.messages.contains("the tool `files_write_file` is hidden"), "{refused}");
    let explained = good(&folder, &["explain", "files_write_file", "--refresh"]);
    assert!(explained.contains("it declares that it writes, and access is `read-only`"));
    assert!(!folder.project().join("files/new.txt").exists());
}

#[test]
fn files_are_written_when_that_is_allowed() {
    let folder = filesystem(&json!({ "access": "read-write" }));
    let file = folder.project().join("files/new.txt");
    assert!(good(&folder, &["tools"]).contains("files_write_file"));
    let path = format!("path={}", file.display());
    good(&folder, &["call", "files_write_file", "--arg", &path, "--arg", "content=really new"]);
    assert_eq!(fs::read_to_string(file).unwrap(), "really new");
}

#[test]
fn denied_path_is_an_error_result_with_a_reason() {
    let folder = filesystem(&json!({}));
    let run = run(&folder, &["call", "files_read_text_file", "--arg", "path=/etc/passwd"]);
    assert_eq!((run.code, run.messages.as_str()), (3, ""), "{run}");
    assert!(run.output.contains("Access denied"), "{run}");
}

#[test]
fn agent_file_and_bundle_restrict_lists_and_calls() {
    let agents = "---\nname: Reader\ntools: [files_read_*, !files_read_file]\n---\nRead.\n";
    let folder = filesystem(&json!({})).file("AGENTS.md", agents);
    let path = folder.project().join("trunkline.json");
    let mut content: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    content["agents"] = json!("AGENTS.md");
    content["bundles"] = json!({
        "text": { "serverId": "files", "mode": "direct", "allowTools": ["read_text_file", "read_file"] },
    });
    fs::write(path, content.to_string()).unwrap();
    let who = ["--agent", "Reader", "--bundle", "text", "--quiet"];
    let listed = good(&folder, &[&["tools"], &who[..]].concat());
    assert!(listed.contains("\n  files_read_text_file(path: string, "), "{listed}");
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let path = format!("path={}", folder.project().join("files/hello.txt").display());
    let called =
        good(&folder, &[&["call", "files_read_text_file", "--arg", &path], &who[..]].concat());
    assert_eq!(called, "hello\n");
    let call = [&["call", "files_read_file", "--arg", &path], &who[..]].concat();
    let refused = run(&folder, &call);
    assert_eq!(refused.code, 4, "{refused}");
    let explained = good(&folder, &[&["explain", "files_read_file"], &who[..]].concat());
    assert!(explained.contains("> hide  agent"), "{explained}");
    assert!(explained.contains("AGENTS.md:3:"), "{explained}");
}

#[test]
fn an_image_is_a_line_of_text_or_a_file() {
    let folder = everything();
    let run = folder.run(&["call", "everything_get-tiny-image"]);
    assert!(run.code == 0 && run.output.contains("[image: image/png, "), "{run}");
    assert!(run.messages.contains("`--artifacts DIRECTORY` saves it as a file"), "{run}");
    let text = good(&folder, &["call", "everything_get-tiny-image", "--artifacts", "pictures"]);
    assert!(text.contains("file://[folder]/project/pictures/image-"), "{text}");
    let mut files = fs::read_dir(folder.project().join("pictures")).unwrap();
    let bytes = fs::read(files.next().unwrap().unwrap().path()).unwrap();
    assert!(bytes.starts_with(b"\x89PNG") && files.next().is_none());
    let lost = folder.run(&["call", "everything_get-tiny-image", "--artifacts", "/proc/none"]);
    assert!(lost.code == 1 && lost.messages.contains("could not be written"), "{lost}");
}

#[test]
fn a_server_that_asks_for_roots_as_it_starts_is_told() {
    let folder = filesystem(&json!({})).file("other/x.txt", "x");
    let allowed = ["call", "files_list_allowed_directories"];
    assert!(good(&folder, &allowed).contains("project/files"));
    let listed = good(&folder, &[&allowed[..], &["--root", "other"]].concat());
    assert!(listed.contains("project/other"), "{listed}");
}

#[test]
fn structured_content_is_there_beside_the_text() {
    let call = ["call", "everything_get-structured-content", "--arg", "location=Chicago"];
    let json = good(&everything(), &[&call[..], &["--format", "json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["structuredContent"]["temperature"].is_number(), "{json}");
    assert_eq!(json["content"][0]["type"], "text", "{json}");
}

#[test]
fn embedded_resources_and_links_have_a_text() {
    let folder = everything();
    let arguments = r#"{"resourceType":"Text","resourceId":1}"#;
    let text = good(&folder, &["call", "everything_get-resource-reference", "--json", arguments]);
    assert!(text.contains("Resource 1"), "{text}");
    let text = good(&folder, &["call", "everything_get-resource-links", "--arg", "count=2"]);
    assert!(text.contains("\ndemo://resource/dynamic/"), "{text}");
}

#[test]
fn long_call_with_progress_completes() {
    let arguments = r#"{"duration":1,"steps":4}"#;
    let call = ["call", "everything_trigger-long-running-operation", "--json", arguments];
    let text = good(&everything(), &call);
    assert!(text.contains("completed"), "{text}");
}

#[test]
fn resources_are_listed_and_read() {
    let folder = everything();
    let listed = good(&folder, &["resources"]);
    let address = "demo://resource/static/document/architecture.md";
    assert!(listed.contains(&format!("  {address}  architecture.md: ")), "{listed}");
    assert!(listed.contains("demo://resource/dynamic/text/{resourceId}"), "{listed}");
    assert!(good(&folder, &["read", address]).contains("# Everything Server"));
    let text = good(&folder, &["read", "demo://resource/dynamic/text/7", "--server", "everything"]);
    assert!(text.starts_with("Resource 7: "), "{text}");
    // No list contains it, but the only server is tried: it may have more than it lists (TOOL-14).
    let unknown = run(&folder, &["read", "demo://resource/static/document/architectur.md"]);
    assert_eq!(unknown.code, 7, "{unknown}");
    assert!(unknown.messages.contains("server `everything` says: "), "{unknown}");
    let explained = good(&folder, &["explain", address]);
    assert!(explained.contains("can be seen and read"), "{explained}");
}

#[test]
fn an_address_of_several_servers_is_explained_for_each() {
    let server = npm("server-everything", &["stdio"]);
    let mut other = server.clone();
    other["allowTools"] = json!(["echo"]);
    let content = json!({ "mcpServers": { "one": server, "two": other } });
    let folder = Folder::new().file("trunkline.json", content.to_string());
    let address = "demo://resource/static/document/architecture.md";
    let explained = good(&folder, &["explain", address]);
    assert!(explained.starts_with(&format!("`{address}` may mean 2 things.")), "{explained}");
    // Allow and deny lists apply to resources too, so one of them is hidden.
    for (server, fate) in [("one", "can be seen and read"), ("two", "is hidden")] {
        let line = format!("The resource trunkline://{server}/{address} {fate}.");
        assert!(explained.contains(&line), "{explained}");
    }
    let json = good(&folder, &["explain", address, "--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["several"][1]["server"], "two", "{json}");
    let explained = good(&folder, &["explain", address, "--server", "two"]);
    assert!(explained.contains(&format!("It is {address} of server two.")), "{explained}");
}

#[test]
fn resource_contents_can_be_saved_to_a_file() {
    let folder = everything();
    let read = ["read", "demo://resource/dynamic/blob/3", "--artifacts", "kept"];
    let run = run(&folder, &read);
    assert_eq!((run.code, run.output.trim()), (0, "[resource: demo://resource/dynamic/blob/3]"));
    let path = run.messages.trim().strip_prefix("kept ").unwrap();
    let text = fs::read_to_string(folder.project().join(path)).unwrap();
    assert!(text.starts_with("Resource 3: "), "{text}");
}

#[test]
fn prompts_are_listed_and_filled_in() {
    let folder = everything();
    let listed = good(&folder, &["prompts"]);
    assert!(listed.contains("  everything_args-prompt(city, state?)  A prompt"), "{listed}");
    let text = good(&folder, &["prompt", "everything_args-prompt", "--arg", "city=5"]);
    assert_eq!(text, "user: What's weather in 5?\n");
    let wrong = run(&folder, &["prompt", "everything_args-promt"]);
    assert_eq!(wrong.code, 4, "{wrong}");
    assert!(wrong.messages.contains("did you mean `everything_args-prompt`"), "{wrong}");
    let missing = run(&folder, &["prompt", "everything_args-prompt"]);
    assert_eq!(missing.code, 6, "{missing}");
    let unchecked = run(&folder, &["prompt", "everything_args-prompt", "--no-check"]);
    assert_eq!(unchecked.code, 7, "{unchecked}");
}

/// Asserts that the raw result of a call is byte for byte the server's.
fn assert_verbatim(server: &Value, tool: &str, arguments: &Value) {
    let mut args =
        vec![json!("-c"), json!("\"$0\" \"$@\" | tee -a sent"), server["command"].clone()];
    args.extend(server["args"].as_array().unwrap().iter().cloned());
    let mut entry = server.clone();
    entry["command"] = json!("/bin/sh");
    entry["args"] = args.into();
    let folder = with("server", &entry);
    let name = format!("server_{tool}");
    let call = ["call", &name, "--json", &arguments.to_string(), "--format", "raw"];
    let mut command = folder.command(&call);
    let output = command.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool}: {messages}");
    let raw = String::from_utf8(output.stdout).unwrap();
    let sent = fs::read_to_string(folder.project().join("sent")).unwrap();
    let expected = format!("\"result\":{}", raw.trim_end_matches('\n'));
    assert!(sent.contains(&expected), "{raw} is not in {sent}");
    assert_eq!(raw.lines().count(), 1);
}

#[test]
fn raw_results_equal_the_upstream_bytes() {
    let everything = npm("server-everything", &["stdio"]);
    assert_verbatim(&everything, "get-tiny-image", &json!({}));
    assert_verbatim(&everything, "get-structured-content", &json!({ "location": "Chicago" }));
    assert_verbatim(
        &python("mcp_server_time", &[]),
        "get_current_time",
        &json!({ "timezone": "UTC" }),
    );
    let mut memory = npm("server-memory", &[]);
    let place = Folder::new();
    memory["env"] = json!({ "MEMORY_FILE_PATH": place.project().join("memory.json") });
    assert_verbatim(&memory, "read_graph", &json!({}));
    let repository = place.project().join("repository");
    fs::create_dir(&repository).unwrap();
    let initialised = Command::new("git").args(["init", "--quiet"]).arg(&repository).status();
    assert!(initialised.unwrap().success());
    let git = python("mcp_server_git", &["--repository", repository.to_str().unwrap()]);
    assert_verbatim(&git, "git_status", &json!({ "repo_path": repository }));
}
