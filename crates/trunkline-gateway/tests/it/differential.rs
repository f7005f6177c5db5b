//! Third-party servers behave the same through the gateway and without it.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};
use trunkline_testkit::peers;

use crate::support::comparison::{Asked, Pair, Sameness, call, prompt, read};
use crate::support::gateway::Folder;
use crate::support::wait::until;

/// The script of the npm package `@modelcontextprotocol/server-NAME`.
fn script(name: &str) -> String {
    let package = format!("@modelcontextprotocol/server-{name}/dist/index.js");
    peers::node_modules().join(package).to_str().unwrap().to_owned()
}

fn node(name: &str, arguments: &[&str]) -> Value {
    let script = script(name);
    let arguments = [&[&*script], arguments].concat();
    json!({ "command": "node", "args": arguments })
}

/// A server of the Python package `mcp_server_NAME`.
fn python(name: &str) -> Value {
    json!({ "command": peers::python(), "args": ["-m", format!("mcp_server_{name}")] })
}

/// A server process that listens, and ends with the test.
struct Listening {
    process: Child,
    port: u16,
}

impl Listening {
    /// Starts a server with a port as argument.
    async fn new(command: impl FnOnce(u16) -> Command) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = command(port);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let listening = Self { process: command.spawn().unwrap(), port };
        until(&format!("port {port} has a listener"), async || {
            TcpStream::connect(("127.0.0.1", port)).ok()
        })
        .await;
        listening
    }

    async fn everything(mode: &str) -> Self {
        Self::new(|port| {
            let mut command = Command::new("node");
            command.arg(script("everything")).arg(mode).env("PORT", port.to_string());
            command
        })
        .await
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Compares two instances of a server.
async fn compare(server: &Value, asked: &[Asked]) -> usize {
    Pair::of(server, server).await.compare(asked).await
}

fn completion(reference: &Value, argument: &str, value: &str) -> Asked {
    let argument = json!({ "name": argument, "value": value });
    let params = json!({ "ref": reference, "argument": argument });
    Asked { method: "completion/complete", params, sameness: Sameness::Exact }
}

fn asked_of_everything() -> Vec<Asked> {
    let reference = json!({ "type": "ref/prompt", "name": "completable-prompt" });
    let template =
        json!({ "type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}" });
    let annotated = json!({ "messageType": "error", "includeImage": true });
    let referred = json!({ "resourceType": "Text", "resourceId": 1 });
    let reading = json!({ "resourceType": "Text", "resourceId": "3" });
    vec![
        call("echo", &json!({ "message": "é \u{1f600} \\ \" \u{7f} \u{2028}" })),
        call("echo", &json!({})),
        call("get-sum", &json!({ "a": 1.5, "b": 2 })),
        call("get-tiny-image", &json!({})),
        call("get-structured-content", &json!({ "location": "Chicago" })),
        call("get-annotated-message", &annotated),
        call("get-resource-links", &json!({ "count": 4 })),
        call("get-resource-reference", &referred).but_digits(),
        call("trigger-long-running-operation", &json!({ "duration": 0.2, "steps": 2 })),
        prompt("simple-prompt", &json!({})),
        prompt("args-prompt", &json!({ "city": "Köln", "state": "NRW" })),
        prompt("args-prompt", &json!({})),
        prompt("resource-prompt", &reading).but_digits(),
        read("demo://resource/static/document/architecture.md"),
        read("demo://resource/dynamic/text/7").but_digits(),
        read("demo://resource/dynamic/text/none"),
        completion(&reference, "department", "E"),
        completion(&template, "resourceId", "7"),
    ]
}

#[tokio::test]
async fn everything_is_the_same_over_stdio() {
    let listed = compare(&node("everything", &["stdio"]), &asked_of_everything()).await;
    assert!(listed > 40, "{listed}");
}

#[tokio::test]
async fn everything_is_the_same_over_streamable_http() {
    let listening = Listening::everything("streamableHttp").await;
    let server = json!({ "url": listening.url("/mcp") });
    let listed = compare(&server, &asked_of_everything()).await;
    assert!(listed > 40, "{listed}");
}

#[tokio::test]
async fn everything_is_the_same_over_the_older_http() {
    let listening = Listening::everything("sse").await;
    let server = json!({ "url": listening.url("/sse"), "type": "sse" });
    let listed = compare(&server, &asked_of_everything()).await;
    assert!(listed > 40, "{listed}");
}

#[tokio::test]
async fn the_filesystem_is_the_same() {
    let folder = Folder::new();
    folder.write("a.txt", "one\ntwo é\n");
    folder.write("b.bin", "\0\u{1}\u{2}");
    let path = folder.text();
    let written = json!({ "path": format!("{path}/c.txt"), "content": "new\r\n\t\u{1f600}" });
    let edits = json!([{ "oldText": "new", "newText": "old" }]);
    let edited = json!({ "path": format!("{path}/c.txt"), "edits": edits, "dryRun": true });
    let both = json!({ "paths": [format!("{path}/a.txt"), format!("{path}/none")] });
    let asked = [
        call("list_allowed_directories", &json!({})),
        call("read_text_file", &json!({ "path": format!("{path}/a.txt") })),
        call("read_media_file", &json!({ "path": format!("{path}/b.bin") })),
        call("read_multiple_files", &both),
        call("write_file", &written),
        call("edit_file", &edited),
        call("list_directory", &json!({ "path": path })),
        call("directory_tree", &json!({ "path": path })),
        call("search_files", &json!({ "path": path, "pattern": "*.txt" })),
        call("get_file_info", &json!({ "path": format!("{path}/a.txt") })).but_digits(),
        call("read_text_file", &json!({ "path": "/nowhere" })),
        call("read_text_file", &json!({ "path": 7 })),
    ];
    assert_eq!(compare(&node("filesystem", &[path]), &asked).await, 2 * 14);
}

#[tokio::test]
async fn memory_is_the_same() {
    let folder = Folder::new();
    let remembering = |file: &str| {
        let mut server = node("memory", &[]);
        server["env"] = json!({ "MEMORY_FILE_PATH": folder.path().join(file) });
        server
    };
    let ada = json!({ "name": "Ada", "entityType": "person", "observations": ["counts é"] });
    let asked = [
        call("create_entities", &json!({ "entities": [ada] })),
        call("search_nodes", &json!({ "query": "é" })),
        call("open_nodes", &json!({ "names": ["Ada", "Bob"] })),
        call("read_graph", &json!({})),
        call("create_entities", &json!({ "entities": "none" })),
    ];
    let pair = Pair::of(&remembering("direct.jsonl"), &remembering("behind.jsonl")).await;
    assert_eq!(pair.compare(&asked).await, 2 * (9 + 1));
}

#[tokio::test]
async fn sequential_thinking_is_the_same() {
    let thought = |number: u64| {
        json!({ "thought": "Why not?", "nextThoughtNeeded": number < 2, "thoughtNumber": number,
            "totalThoughts": 2 })
    };
    let asked = [
        call("sequentialthinking", &thought(1)),
        call("sequentialthinking", &thought(2)),
        call("sequentialthinking", &json!({})),
    ];
    assert_eq!(compare(&node("sequential-thinking", &[]), &asked).await, 2);
}

#[tokio::test]
async fn time_is_the_same() {
    let noon =
        json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" });
    let asked = [
        // The result contains today's date.
        call("convert_time", &noon).but_digits(),
        call("get_current_time", &json!({ "timezone": "UTC" })),
        call("get_current_time", &json!({ "timezone": "Nowhere/Never" })),
        call("convert_time", &json!({})),
    ];
    let asked: Vec<_> = asked.into_iter().map(Asked::but_digits).collect();
    assert_eq!(compare(&python("time"), &asked).await, 2 * 2);
}

#[tokio::test]
async fn fetch_is_the_same() {
    let page = get(async || "A page of words, é included.\n");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/page", page)).await });
    let mut server = python("fetch");
    server["env"] = json!({ "NO_PROXY": "*", "no_proxy": "*" });
    let asked = [
        call("fetch", &json!({ "url": format!("{here}/page") })),
        call("fetch", &json!({ "url": format!("{here}/page"), "max_length": 6, "raw": true })),
        call("fetch", &json!({ "url": format!("{here}/none") })),
        call("fetch", &json!({})),
        prompt("fetch", &json!({ "url": format!("{here}/page") })),
    ];
    assert_eq!(compare(&server, &asked).await, 2 * 2);
}

#[tokio::test]
async fn git_is_the_same() {
    let folder = Folder::new();
    let path = folder.text();
    let git = |arguments: &[&str]| {
        let person = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
        let mut command = Command::new("git");
        command.args(["-C", path]).args(person).args(arguments);
        let ended = command.stdout(Stdio::null()).status().unwrap();
        assert!(ended.success(), "{arguments:?}");
    };
    git(&["init", "--quiet", "--initial-branch", "main"]);
    folder.write("a.txt", "one é\n");
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "A first one"]);
    folder.write("a.txt", "two\n");
    let here = json!({ "repo_path": path });
    let asked = [
        call("git_status", &here),
        call("git_diff_unstaged", &here),
        call("git_log", &here),
        call("git_show", &json!({ "repo_path": path, "revision": "HEAD" })),
        call("git_branch", &json!({ "repo_path": path, "branch_type": "local" })),
        call("git_show", &json!({ "repo_path": path, "revision": "none" })),
        call("git_status", &json!({ "repo_path": "/nowhere" })),
    ];
    assert_eq!(compare(&python("git"), &asked).await, 2 * 12);
}

fn asked_of_fastmcp() -> [Asked; 4] {
    [
        call("add", &json!({ "a": 2, "b": 3 })),
        call("add", &json!({ "a": 2, "b": "x" })),
        call("add", &json!({})),
        call("count", &json!({ "to": 3 })),
    ]
}

#[tokio::test]
async fn fastmcp_is_the_same_over_stdio() {
    let server = json!({ "command": peers::python(), "args": [peers::fastmcp_server()] });
    assert_eq!(compare(&server, &asked_of_fastmcp()).await, 2 * 2);
}

#[tokio::test]
async fn fastmcp_is_the_same_over_http() {
    let listening = Listening::new(|port| {
        let mut command = Command::new(peers::python());
        command.arg("-I").arg(peers::fastmcp_server()).arg(port.to_string());
        command
    })
    .await;
    let server = json!({ "url": listening.url("/mcp") });
    assert_eq!(compare(&server, &asked_of_fastmcp()).await, 2 * 2);
}

/// The control: shows that the comparison detects differences.
#[tokio::test]
async fn differences_are_noticed() {
    let folders = [Folder::new(), Folder::new()];
    let servers = folders.each_ref().map(|folder| node("filesystem", &[folder.text()]));
    let adding = json!({ "command": peers::python(), "args": [peers::fastmcp_server()] });
    // The same tools with other results, and as many tools with other names.
    for (direct, behind) in [(&servers[0], &servers[1]), (&adding, &python("time"))] {
        let pair = Pair::of(direct, behind).await;
        let asked = [call("list_allowed_directories", &json!({}))];
        let compared = tokio::spawn(async move { pair.compare(&asked).await });
        assert!(compared.await.is_err_and(|error| error.is_panic()), "{direct} {behind}");
    }
}
