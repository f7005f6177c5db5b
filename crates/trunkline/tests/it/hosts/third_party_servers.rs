//! Third-party servers: a host passes on their results unchanged.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use trunkline::call::{ArtifactDir, CallErrorKind, CallOptions, Completion, CompletionRef};
use trunkline::host::Host;
use trunkline::item::ItemKind;
use trunkline::message::Raw;
use trunkline_testkit::peers;

use super::{Caller, call, call_with, gather, host_of, tools, until_there, view};
use crate::support::file_driven_server::{Folder, within};

/// A server of the npm package `@modelcontextprotocol/server-NAME`.
fn node(name: &str, arguments: &[&str]) -> Value {
    let package = format!("@modelcontextprotocol/server-{name}/dist/index.js");
    let script = peers::node_modules().join(package);
    let mut args = vec![script.to_str().unwrap()];
    args.extend(arguments);
    json!({ "command": "node", "args": args })
}

fn everything() -> Value {
    let mut server = node("everything", &["stdio"]);
    server["access"] = json!("read-write");
    server
}

/// A server of the Python package `mcp_server_NAME`.
fn python(name: &str) -> Value {
    json!({ "command": peers::python(), "args": ["-m", format!("mcp_server_{name}")] })
}

/// The same call without the host.
async fn directly(host: &Host, tool: &str, arguments: &Value) -> Raw {
    let view = view(host);
    let entry = view.route(ItemKind::Tool, tool).unwrap();
    let connection = host.servers().get(entry.server().name.as_str()).unwrap();
    let params = Raw::from_value(&json!({ "name": entry.name(), "arguments": arguments }));
    within(connection.request("tools/call", Some(params))).await.unwrap()
}

/// CALL-4: results equal those of the servers, byte for byte.
#[tokio::test]
async fn results_of_third_party_servers_are_unchanged() {
    let folder = Folder::new();
    let path = folder.path().canonicalize().unwrap();
    let path = path.to_str().unwrap();
    folder.write("a.txt", "one\ntwo é\n");
    let made = Command::new("git").args(["init", "--quiet", path]).status().unwrap();
    assert!(made.success());
    let mut memory = node("memory", &[]);
    memory["env"] = json!({ "MEMORY_FILE_PATH": folder.path().join("graph.jsonl") });
    let host = host_of(&json!({
        "everything": everything(),
        "files": node("filesystem", &[path]),
        "memory": memory,
        "time": python("time"),
        "git": python("git"),
    }));
    // All kinds: a link is qualified with its server while another server's resources are unlisted.
    gather(&host, &ItemKind::ALL).await;
    let noon =
        json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" });
    for (tool, arguments) in [
        ("everything_echo", json!({ "message": "é \u{1f600} \\ \"" })),
        ("everything_get-sum", json!({ "a": 1.5, "b": 2 })),
        ("everything_get-tiny-image", json!({})),
        ("everything_get-structured-content", json!({ "location": "Chicago" })),
        ("everything_get-resource-links", json!({ "count": 4 })),
        ("files_read_text_file", json!({ "path": format!("{path}/a.txt") })),
        ("files_list_directory", json!({ "path": path })),
        ("memory_read_graph", json!({})),
        ("time_convert_time", noon),
        ("git_git_status", json!({ "repo_path": path })),
        // A failed tool also has a result.
        ("files_read_text_file", json!({ "path": "/nowhere" })),
    ] {
        let outcome = call(&host, tool, &arguments).await.unwrap();
        assert_eq!(outcome.result, directly(&host, tool, &arguments).await, "{tool}");
        assert_eq!((outcome.is_error, outcome.missing), (arguments["path"] == "/nowhere", 0));
    }
    within(host.shutdown()).await;
}

/// TOOL-5: under `read-only` writing tools are hidden; if allowed, they do write.
#[tokio::test]
async fn the_filesystem_is_written_only_if_that_is_allowed() {
    let folder = Folder::new();
    let path = folder.path().canonicalize().unwrap();
    let mut server = node("filesystem", &[path.to_str().unwrap()]);
    server["access"] = json!("read-only");
    let mut open = server.clone();
    open["access"] = json!("read-write");
    let host = host_of(&json!({ "files": server, "open": open }));
    gather(&host, &[ItemKind::Tool]).await;
    let file = path.join("new.txt");
    let arguments = json!({ "path": file, "content": "written" });
    let view = view(&host);
    let seen = tools(&view);
    assert!(seen.contains(&"files_read_text_file") && seen.contains(&"open_write_file"));
    assert!(!seen.contains(&"files_write_file") && !seen.contains(&"files_move_file"));
    let (hidden, reason) = view.hidden(ItemKind::Tool).next().unwrap();
    assert_eq!(hidden.server().name.as_str(), "files");
    assert_eq!(reason.to_string(), "it declares that it writes, and access is `read-only`");
    let refused = call(&host, "files_write_file", &arguments).await.unwrap_err();
    assert_eq!(refused.kind(), CallErrorKind::Unknown);
    assert!(!file.exists());
    assert!(!call(&host, "open_write_file", &arguments).await.unwrap().is_error);
    assert_eq!(fs::read_to_string(&file).unwrap(), "written");
    within(host.shutdown()).await;
}

/// CALL-3, CALL-4: every type of block has a text, and the result stays complete.
#[tokio::test]
async fn blocks_of_every_kind_come_through_and_have_a_text() {
    let folder = Folder::new();
    let host = host_of(&json!({ "e": everything() }));
    gather(&host, &[ItemKind::Tool]).await;
    let image = call(&host, "e_get-tiny-image", &json!({})).await.unwrap();
    let text = image.text();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "Here's the image you requested:");
    assert!(lines[1].starts_with("[image: image/png, ") && lines[1].ends_with(" bytes]"));
    assert_eq!(lines[2], "The image above is the MCP logo.");

    let kept = ArtifactDir::new(folder.path().join("artifacts"));
    let options = CallOptions { artifacts: Some(&kept), ..CallOptions::default() };
    let image = call_with(&host, "e_get-tiny-image", &json!({}), options).await.unwrap();
    let files: Vec<_> = fs::read_dir(folder.path().join("artifacts")).unwrap().collect();
    let file = files[0].as_ref().unwrap();
    assert!(fs::read(file.path()).unwrap().starts_with(b"\x89PNG"));
    assert!(image.text().contains(file.file_name().to_str().unwrap()), "{}", image.text());

    let links = call(&host, "e_get-resource-links", &json!({ "count": 2 })).await.unwrap();
    assert!(links.text().contains("\ndemo://resource/dynamic/"), "{}", links.text());

    for (kind, expected) in [("Text", "This is a plaintext resource"), ("Blob", "[resource: demo:")]
    {
        let arguments = json!({ "resourceType": kind, "resourceId": 1 });
        let embedded = call(&host, "e_get-resource-reference", &arguments).await.unwrap();
        assert!(embedded.text().contains(expected), "{}", embedded.text());
    }

    let weather = json!({ "location": "New York" });
    let weather = call(&host, "e_get-structured-content", &weather).await.unwrap();
    let structured = weather.result.get("structuredContent").unwrap();
    assert_eq!(structured.to_value()["temperature"], 33);
    assert_eq!(weather.text(), structured.text());
    within(host.shutdown()).await;
}

/// TOOL-12: resources are read and prompts filled in through the host as well.
#[tokio::test]
async fn resources_are_read_and_prompts_filled_in() {
    let host = host_of(&json!({ "e": everything() }));
    gather(&host, &ItemKind::ALL).await;
    let view = view(&host);
    let resource = view.entries(ItemKind::Resource).next().unwrap().exposed().to_owned();
    let read = within(host.read(&view, &resource, CallOptions::default())).await.unwrap();
    assert!(read.text().len() > 100, "{}", read.text());
    let made = "demo://resource/dynamic/text/7";
    let read = within(host.read(&view, made, CallOptions::default())).await.unwrap();
    assert!(read.text().starts_with("Resource 7"), "{}", read.text());
    let city = Raw::from_value(&json!({ "city": "Ulm" }));
    let prompt = host.prompt(&view, "e_args-prompt", city, CallOptions::default());
    let prompt = within(prompt).await.unwrap().result;
    assert!(prompt.text().contains("What's weather in Ulm?"), "{prompt}");
    // No list contains it, so the only server with resources receives the request, and rejects it.
    let unlisted = host.read(&view, "demo://nothing", CallOptions::default());
    let refused = within(unlisted).await.unwrap_err().kind();
    assert_eq!(refused, CallErrorKind::Refused(-32602));
    let unknown = host.read(&view, "https://nowhere.example/", CallOptions::default());
    assert_eq!(within(unknown).await.unwrap_err().kind(), CallErrorKind::Unknown);
    within(host.shutdown()).await;
}

/// TOOL-12: the server with the prompt or template completes its arguments.
#[tokio::test]
async fn arguments_of_prompts_and_templates_are_completed() {
    let host = host_of(&json!({ "e": everything(), "f": everything() }));
    gather(&host, &ItemKind::ALL).await;
    let view = view(&host);
    let complete = async |of, argument, value, known: Option<&Raw>| {
        let completion = Completion { of, argument, value, known };
        let asked = host.complete(&view, &completion, CallOptions::default());
        within(asked).await.map(|outcome| outcome.text())
    };
    let prompt = CompletionRef::Prompt("e_completable-prompt");
    assert_eq!(complete(prompt, "department", "E", None).await.unwrap(), "Engineering");
    let sales = Raw::from_value(&json!({ "department": "Sales" }));
    assert_eq!(complete(prompt, "name", "D", Some(&sales)).await.unwrap(), "David");
    let template = "trunkline://f/demo://resource/dynamic/text/{resourceId}";
    let template = CompletionRef::Template(template);
    assert_eq!(complete(template, "resourceId", "7", None).await.unwrap(), "7");
    let unknown = complete(CompletionRef::Prompt("e_nothing"), "a", "", None).await.unwrap_err();
    assert_eq!(unknown.kind(), CallErrorKind::Unknown);
    within(host.shutdown()).await;
}

/// TOOL-12: where URIs collide, links in a result can be read as they are.
#[tokio::test]
async fn links_lead_where_they_came_from() {
    let host = host_of(&json!({ "e": everything(), "f": everything() }));
    gather(&host, &ItemKind::ALL).await;
    let view = view(&host);
    let links = call(&host, "f_get-resource-links", &json!({ "count": 1 })).await.unwrap();
    let content = links.result.get("content").unwrap().items();
    let link = content.iter().find_map(|block| block.get("uri")).unwrap();
    let link = link.as_str().unwrap().into_owned();
    assert!(link.starts_with("trunkline://f/demo://resource/dynamic/"), "{link}");
    let read = within(host.read(&view, &link, CallOptions::default())).await.unwrap();
    let contents = read.result.get("contents").unwrap().items();
    assert_eq!(contents[0].get("uri").unwrap().as_str().unwrap(), link);
    assert_eq!(read.server().unwrap().as_str(), "f");
    let bare = link.strip_prefix("trunkline://f/").unwrap();
    let error = within(host.read(&view, bare, CallOptions::default())).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Unknown);
    assert!(error.to_string().contains(&format!("`trunkline://e/{bare}` or `{link}`")), "{error}");
    within(host.shutdown()).await;
}

/// CALL-1: a call reports progress, and ends when its caller drops it.
#[tokio::test]
async fn long_call_reports_progress_and_can_be_cancelled() {
    let host = host_of(&json!({ "e": everything() }));
    gather(&host, &[ItemKind::Tool]).await;
    let tool = "e_trigger-long-running-operation";
    let caller = Caller::default();
    let short = json!({ "duration": 0.3, "steps": 3 });
    let outcome = call_with(&host, tool, &short, caller.options()).await.unwrap();
    assert!(outcome.text().starts_with("Long running operation completed"));
    assert_eq!(caller.heard("notifications/progress"), 3);

    let given_up = Caller::default();
    let long = json!({ "duration": 600, "steps": 6000 });
    tokio::select! {
        ended = call_with(&host, tool, &long, given_up.options()) => panic!("{ended:?}"),
        () = given_up.hears.notified() => {}
    }
    let after = call(&host, "e_echo", &json!({ "message": "still there" })).await.unwrap();
    assert_eq!(after.text(), "Echo: still there");
    let arguments = Raw::from_value(&long);
    let options =
        CallOptions { timeout: Some(std::time::Duration::from_millis(100)), ..Default::default() };
    let late = within(host.call(&view(&host), tool, arguments, options)).await.unwrap_err();
    assert_eq!(late.kind(), CallErrorKind::Failed(trunkline::error::ErrorKind::TimedOut));
    within(host.shutdown()).await;
}

/// Server requests during a call go to its caller.
#[tokio::test]
async fn elicitation_and_sampling_are_answered_by_the_caller() {
    let host = host_of(&json!({ "e": everything() }));
    gather(&host, &[ItemKind::Tool]).await;
    // It lists these tools only after it knows the client's capabilities, and announces them.
    until_there(&host, "e_trigger-elicitation-request").await;
    until_there(&host, "e_trigger-sampling-request").await;
    let sample = json!({ "role": "assistant", "model": "m",
        "content": { "type": "text", "text": "forty-two" } });
    let caller = Caller::answering([
        ("elicitation/create", json!({ "action": "accept", "content": { "name": "Ada" } })),
        ("sampling/createMessage", sample),
    ]);
    let elicited =
        call_with(&host, "e_trigger-elicitation-request", &json!({}), caller.options()).await;
    assert!(elicited.unwrap().text().contains("Ada"));
    let prompt = json!({ "prompt": "How many?" });
    let sampled = call_with(&host, "e_trigger-sampling-request", &prompt, caller.options()).await;
    assert!(sampled.unwrap().text().contains("forty-two"));
    assert_eq!(*caller.asked.lock().unwrap(), ["elicitation/create", "sampling/createMessage"]);
    // Without a handler, the request is rejected and does not hang.
    let refused = call(&host, "e_trigger-sampling-request", &prompt).await.unwrap();
    assert!(refused.is_error && refused.text().contains("does not offer"), "{}", refused.text());
    within(host.shutdown()).await;
}
