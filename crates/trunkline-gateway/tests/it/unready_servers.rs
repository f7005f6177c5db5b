//! Answers of the gateway's own tools while servers are starting or down: a server that is not known
//! yet is not one that has nothing.

use serde_json::{Value, json};
use trunkline::config;
use trunkline_testkit::peers;

use crate::support::client::{Era, TestClient, text};
use crate::support::file_driven_server::canned;
use crate::support::gateway::{Folder, TestGateway};

/// A server that never responds to `initialize`.
fn starting() -> Value {
    json!({ "command": peers::python(), "args": ["-I", "-c", "import sys; sys.stdin.read()"],
            "timeouts": { "grace": "10ms", "shutdown": "1s" } })
}

/// A gateway with a server that is ready, one that is starting and one that is down. The agent `few`
/// may see only the first.
async fn gateway(folder: &Folder) -> TestGateway {
    let find = json!({ "name": "find", "description": "Find notes",
        "inputSchema": { "type": "object" } });
    folder.write("tools.list.json", &json!({ "tools": [find] }).to_string());
    folder.write("resources.list.json", &json!({ "resources": [] }).to_string());
    folder.write("resources.templates.list.json", &json!({ "resourceTemplates": [] }).to_string());
    folder.write("prompts.list.json", &json!({ "prompts": [] }).to_string());
    let down = json!({ "command": "no-such-program" });
    let servers = json!({ "notes": canned(folder, "legacy"), "slow": starting(), "down": down });
    let text = json!({ "mode": "meta", "resourcesAsTools": true, "promptsAsTools": true,
        "mcpServers": servers, "agents": {
            "few": { "tools": ["notes_*"] },
            "some": { "tools": ["notes_*", "down_*"] },
        } });
    let loaded = config::parse("test", text.to_string());
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    TestGateway::of(loaded.config).await
}

/// The text of an answer, and whether it is an error.
async fn answer(client: &mut TestClient, tool: &str, arguments: Value) -> (String, bool) {
    let answer = client.call(tool, arguments).await;
    (text(&answer).to_owned(), answer["result"]["isError"] == true)
}

const NOTE: &str = "unavailable servers: down (the program `no-such-program` was not found), \
                    slow (not ready yet); call again later to find more";

/// Regression: they reported that there was nothing.
#[tokio::test]
async fn meta_tools_name_servers_that_are_not_ready() {
    let folder = Folder::new();
    let gateway = gateway(&folder).await;
    for era in [Era::Legacy, Era::Modern] {
        let mut client = TestClient::new(era, gateway.address).await.unwrap();
        let found = answer(&mut client, "trunkline_search", json!({ "queries": ["find notes"] }));
        let (found, is_error) = found.await;
        assert_eq!(found, format!("notes_find(): Find notes\n{NOTE}\n"));
        assert!(!is_error);
        let none = answer(&mut client, "trunkline_search", json!({ "queries": ["zzzz"] })).await;
        assert_eq!(none.0, format!("no tool fits; try other words, or fewer\n{NOTE}\n"));
        for (server, part) in [("down", "is unavailable now (the program"), ("slow", "not ready")] {
            let arguments = json!({ "queries": ["find"], "server": server });
            let (text, is_error) = answer(&mut client, "trunkline_search", arguments).await;
            assert!(is_error && text.contains(part) && text.contains("call again later"), "{text}");
            let names = json!({ "names": [format!("{server}_find")] });
            let (text, is_error) = answer(&mut client, "trunkline_describe", names).await;
            assert!(is_error && text.contains(part) && text.contains("call again later"), "{text}");
            assert!(!text.contains("did you mean"), "{text}");
        }
        let known = json!({ "queries": ["zzzz"], "server": "notes" });
        let (text, is_error) = answer(&mut client, "trunkline_search", known).await;
        assert!(!is_error && !text.contains("later"), "{text}");
        let (listed, _) = answer(&mut client, "trunkline_servers", json!({})).await;
        let lines: Vec<_> = listed.lines().collect();
        assert!(lines[0].starts_with("down: unavailable now (the program `no-such"), "{listed}");
        assert!(lines[1].starts_with("notes: 1 tool"), "{listed}");
        assert_eq!(lines[2], "slow: not ready yet; call again later");
    }
    gateway.end().await;
}

/// A server that the caller may not see does not exist, and the reason is only for callers that may
/// know it.
#[tokio::test]
async fn hidden_servers_are_not_named() {
    let folder = Folder::new();
    let gateway = gateway(&folder).await;
    for (agent, note) in [("few", ""), ("some", "unavailable servers: down; call again")] {
        let path = format!("/mcp/agents/{agent}");
        let at = (gateway.address, &*path);
        let mut client = TestClient::at(at, Era::Modern, &[]).await.unwrap();
        for (tool, arguments) in [
            ("trunkline_search", json!({ "queries": ["find"] })),
            ("trunkline_describe", json!({ "names": ["slow_find", "notes_find"] })),
            ("trunkline_list_resources", json!({})),
            ("trunkline_list_prompts", json!({})),
        ] {
            let (text, _) = answer(&mut client, tool, arguments).await;
            assert!(!text.contains("not ready") && !text.contains("no-such"), "{agent}: {text}");
            assert!(tool == "trunkline_describe" || text.contains(note), "{agent}: {text}");
            assert!(agent == "some" || !text.contains("unavailable"), "{agent}: {text}");
        }
        let (text, _) = answer(&mut client, "trunkline_servers", json!({})).await;
        assert_eq!(text.lines().count(), if agent == "some" { 2 } else { 1 }, "{text}");
    }
    gateway.end().await;
}

/// Regression: a server that is down was said to have no resources.
#[tokio::test]
async fn lists_of_resources_and_prompts_name_servers_that_are_not_ready() {
    let folder = Folder::new();
    let gateway = gateway(&folder).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    for (tool, items) in
        [("trunkline_list_resources", "resources"), ("trunkline_list_prompts", "prompts")]
    {
        let (text, is_error) = answer(&mut client, tool, json!({})).await;
        assert_eq!((text, is_error), (format!("no {items} are known yet\n{NOTE}\n"), false));
        let (text, is_error) = answer(&mut client, tool, json!({ "server": "notes" })).await;
        assert_eq!((text, is_error), (format!("server `notes` has no {items}\n"), false));
        for server in ["down", "slow"] {
            let (text, is_error) = answer(&mut client, tool, json!({ "server": server })).await;
            assert!(is_error && !text.contains("has no"), "{text}");
            assert!(
                text.contains(&format!("{items} cannot be listed; call again later")),
                "{text}"
            );
        }
    }
    gateway.end().await;
}
