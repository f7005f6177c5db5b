//! The page of the service in a real browser, with hostile servers among others.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use trunkline_testkit::peers;

use crate::support::gateway::request;
use crate::support::processes::{LONGEST_START, wait_until};
use crate::support::program::Folder;
use crate::support::service::{Client, Machine};

/// A browser on a busy machine is slow.
const LONGEST_VISIT: Duration = Duration::from_secs(400);

/// What a hostile server writes where people read it.
const HOSTILE: [&str; 6] = [
    "<img src=x onerror=alert(1)>",
    "\"><script>alert(2)</script>",
    "<div hx-get=/evil hx-trigger=load>evil</div>",
    "\u{202e}gnp.exe \u{2066}hidden\u{2069}",
    "[click](javascript:alert(3)) https://evil.example/x",
    "{{constructor.constructor('alert(4)')()}}",
];

/// A server whose tools are those of a file, and which repeats the arguments of calls.
fn canned(folder: &Folder, name: &str, tools: &Value) -> Value {
    let place = folder.project().with_file_name(format!("canned-{name}"));
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("tools.list.json"), json!({ "tools": tools }).to_string()).unwrap();
    json!({ "command": peers::python(), "args": ["-I", peers::canned_server(), place, "legacy"] })
}

fn tool(name: &str, description: &str) -> Value {
    json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
}

/// Tools whose every text is hostile, and a thousand others.
fn hostile_tools() -> Value {
    let icon = json!([{ "src": "javascript:alert(5)" }, { "src": "https://evil.example/i.png" }]);
    let hostile = HOSTILE.iter().enumerate().map(|(number, text)| {
        json!({
            "name": format!("tool-{number}-{text}"),
            "title": text,
            "description": format!("{text} {}", "long ".repeat(number * 500)),
            "inputSchema": {
                "type": "object",
                "properties": { *text: { "type": "string", "description": text, "enum": [text, "b"] } },
            },
            "annotations": { "title": text, *text: text },
            "icons": icon,
        })
    });
    let others = (0..1000).map(|number| tool(&format!("plain_{number:04}"), "One of many"));
    hostile.chain(others).collect()
}

fn servers(folder: &Folder) -> Value {
    let number = json!({ "type": "integer", "minimum": 1 });
    let schema = json!({
        "type": "object", "required": ["query"],
        "properties": { "query": { "type": "string" }, "limit": number },
    });
    let mut search = tool("search_code", "Searches code");
    search["inputSchema"] = schema;
    let failing = json!({ "command": "sh", "args": ["-c", "echo '<b>no module</b>' >&2; exit 3"] });
    json!({
        "github": canned(folder, "github", &json!([search, tool("create_issue", "Creates")])),
        "slack": canned(folder, "slack", &json!([tool("post", "Posts")])),
        "postgres": canned(folder, "postgres", &json!([tool("query", "Asks"), tool("explain", "Plans")])),
        "<img src=x onerror=alert(6)>": canned(folder, "hostile", &hostile_tools()),
        "broken": failing,
        "asleep": { "command": "true", "enabled": false },
    })
}

/// A service with clients in two projects, one of which waits for trust.
struct OpenPage {
    machine: Machine,
    _clients: [Client; 2],
    address: String,
    token: String,
    project: String,
}

impl OpenPage {
    fn open() -> Self {
        let machine = Machine::new(&json!({}));
        let servers = servers(&machine.folder);
        machine.configure(&json!({ "mcpServers": servers }).to_string());
        let mut client = machine.session();
        client.tools();
        let mut other = machine.folder.bare_command(&["connect"]);
        other.current_dir(untrusted_project(&machine));
        let mut other = Client::start(other);
        other.open();
        let ps = machine.ps();
        let address = ps["page"].as_str().unwrap_or_else(|| panic!("{ps}")).to_owned();
        let token = machine.folder.run(&["page", "--token"]).output.trim().to_owned();
        let page =
            Self { machine, _clients: [client, other], address, token, project: String::new() };
        let projects = page.api("GET", "/projects", None);
        let own = page.machine.folder.project().to_string_lossy().into_owned();
        let items = projects["items"].as_array().unwrap();
        let project = items.iter().find(|it| it["directory"] == *own);
        let project = project.unwrap_or_else(|| panic!("{projects}"))["id"].as_str().unwrap();
        Self { project: project.to_owned(), ..page }
    }

    /// The response of the API.
    fn api(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let authorization = format!("Bearer {}", self.token);
        let url = format!("{}/api/v1{path}", self.address);
        let body = body.map(Value::to_string).unwrap_or_default();
        let (_, answer) = request(method, &url, &[("authorization", &authorization)], &body);
        let (_, text) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(text).unwrap_or_else(|_| panic!("{answer}"))
    }
}

fn untrusted_project(machine: &Machine) -> PathBuf {
    let folder = machine.folder.project().with_file_name("untrusted");
    fs::create_dir_all(&folder).unwrap();
    let entry = json!({ "command": "sh", "args": ["-c", "<script>alert(7)</script>"] });
    let config = json!({ "mcpServers": { "<b>evil</b>": entry } });
    fs::write(folder.join(".mcp.json"), config.to_string()).unwrap();
    folder
}

fn harness() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../trunkline-testkit/browser/page.mjs")
}

#[tokio::test]
async fn the_page_works_in_a_browser_and_hostile_text_does_not() {
    let page = OpenPage::open();
    let project = &page.project;
    page.api("POST", &format!("/projects/{project}/servers/broken/start"), None);
    wait_until("the broken server has failed", LONGEST_START, || {
        let servers = page.api("GET", &format!("/servers?project={project}"), None);
        servers["items"].as_array().unwrap().iter().any(|it| it["state"] == "failed")
    });
    let hostile = page.api("GET", "/tools?search=alert(1)&limit=1", None);
    let hostile = hostile["items"][0]["name"].as_str().unwrap().to_owned();
    let call = format!("/projects/{project}/tools/github_search_code/call");
    let body = json!({ "arguments": { "query": HOSTILE[1] } });
    let called = page.api("POST", &call, Some(&body));
    assert!(called["result"].is_object(), "{called}");
    let shots = std::env::temp_dir().join(format!("trunkline-page-{}", std::process::id()));
    let mut command: Command = peers::node_script(&harness());
    command.args(["--address", &page.address, "--token", &page.token, "--project", project]);
    command.args(["--chromium", "/usr/bin/chromium", "--interact", "--screenshots"]).arg(&shots);
    let tool = format!("/tool?project={project}&name={}", encoded(&hostile));
    let paths = ["/servers", "/tools", &tool, "/calls", "/conversations", "/trust"];
    for path in paths {
        command.args(["--path", path]);
    }
    let printed = peers::run_within(LONGEST_VISIT, command).await;
    let report: Value = serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{printed}"));
    assert_eq!(report["ok"], true, "screenshots in {}\n{report:#}", shots.display());
    fs::remove_dir_all(shots).unwrap();
}

/// Percent-encodes everything but letters and digits.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Tries what the OpenAPI document allows and forbids. The event stream does not end by itself.
#[tokio::test]
async fn the_api_is_as_its_document_says() {
    let page = OpenPage::open();
    let mut command = peers::python_script(&peers::python().with_file_name("schemathesis"));
    command.args(["run", &format!("{}/api/v1/openapi.json", page.address)]);
    command.args(["--header", &format!("Authorization: Bearer {}", page.token)]);
    command.args(["--exclude-path", "/api/v1/events", "--max-examples", "25"]);
    // With several, CPython before 3.11.8 fails now and then: "AST constructor recursion depth mismatch".
    command.args(["--workers", "1"]);
    command.args(["--generation-deterministic", "--no-color"]);
    // It keeps a cache where it runs.
    command.current_dir(page.machine.folder.project());
    let printed = peers::run_within(LONGEST_VISIT, command).await;
    assert!(printed.contains(" generated, ") && !printed.contains('❌'), "{printed}");
}

#[test]
fn trust_is_decided_for_exactly_what_was_shown() {
    let page = OpenPage::open();
    let waiting = page.api("GET", "/trust", None);
    let request = &waiting["items"][0];
    assert_eq!(request["state"], "pending", "{waiting}");
    assert!(request["servers"][0]["runs"].as_str().unwrap().contains("alert(7)"), "{waiting}");
    let id = request["id"].as_str().unwrap().to_owned();
    let file = page.machine.folder.project().with_file_name("untrusted").join(".mcp.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("alert(7)", "alert(8)")).unwrap();
    // Another content is another question.
    let refused = page.api("POST", &format!("/trust/{id}/trust"), None);
    assert_eq!(refused["status"], 404, "{refused}");
    fs::write(&file, &text).unwrap();
    let blocked = page.api("POST", &format!("/trust/{id}/block"), None);
    assert_eq!(blocked["items"][0]["state"], "blocked", "{blocked}");
    let trusted = page.api("POST", &format!("/trust/{id}/trust"), None);
    assert!(trusted["items"].as_array().unwrap().is_empty(), "{trusted}");
    wait_until("the server may start", LONGEST_START, || {
        let servers = page.api("GET", "/servers", None);
        let servers = servers["items"].as_array().unwrap();
        servers.iter().any(|it| it["name"] == "<b>evil</b>" && it["isStartable"] == true)
    });
}
