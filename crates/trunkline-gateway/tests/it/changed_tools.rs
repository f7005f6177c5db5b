//! Tools that change after a client has listed them are not called before the client lists them
//! again.

use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::timeout;
use trunkline::catalog::Catalog;
use trunkline::item::ItemKind;

use crate::support::client::{Era, TestClient, text};
use crate::support::demo_server::{legacy, modern};
use crate::support::file_driven_server::{canned, heard_of};
use crate::support::gateway::{Folder, TestGateway};
use crate::support::stdio_client::StdioTestClient;
use crate::support::wait::{LONGEST, until};

const GOOD: &str = r#"{"name":"t","description":"good","inputSchema":{"type":"object","x":1}}"#;
const REORDERED: &str =
    r#"{"inputSchema":{"x":1,"type":"object"},"description":"good","name":"t"}"#;
const EVIL: &str = r#"{"name":"t","description":"evil","inputSchema":{"type":"object","x":1}}"#;

/// Makes a server list another definition of its tool from now on.
fn define(folder: &Folder, tool: &str) {
    folder.write("tools.list.json", &format!(r#"{{"tools":[{tool}]}}"#));
}

/// Makes a server announce that its tools have changed, and waits until the change is known.
async fn announce(gateway: &TestGateway, folder: &Folder, tool: &str) {
    define(folder, tool);
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    folder.write("ping.before", &told.to_string());
    let connection = gateway.host.servers().get("only").unwrap();
    connection.request("ping", None).await.unwrap();
    let mut catalog = gateway.host.watch_catalog();
    let is_known = |catalog: &Arc<Catalog>| {
        let listed = catalog.get(ItemKind::Tool, "only_t");
        listed.is_some_and(|it| it.definition().text() == tool)
    };
    let known = timeout(LONGEST, catalog.wait_for(is_known)).await;
    assert!(known.is_ok(), "{tool} is not known");
}

fn assert_changed(answer: &Value) {
    let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(message.contains("is not what was shown any more; look again"), "{message}");
}

async fn lists(client: &mut TestClient) -> Value {
    let answer = client.ask("tools/list", json!({})).await;
    answer["result"]["tools"][0]["description"].clone()
}

/// Regression: the newest definition was called, whichever the client had been shown.
#[tokio::test]
async fn changed_tool_is_not_called_before_it_is_listed_again() {
    for era in [Era::Legacy, Era::Modern] {
        let folder = Folder::new();
        define(&folder, GOOD);
        let gateway = TestGateway::to(&json!({ "only": canned(&folder, "legacy") })).await;
        let mut client = TestClient::new(era, gateway.address).await.unwrap();
        assert_eq!(lists(&mut client).await, "[only] good");
        announce(&gateway, &folder, REORDERED).await;
        text(&client.call("only_t", json!({})).await);
        let calls = heard_of(&folder, "tools/call").len();
        announce(&gateway, &folder, EVIL).await;
        // The same client, whatever capabilities it declares with its next request.
        client.capabilities = json!({});
        for _ in 0..3 {
            assert_changed(&client.call("only_t", json!({})).await);
        }
        assert_eq!(heard_of(&folder, "tools/call").len(), calls);
        // A client that has not listed the tools may call it.
        let mut other = TestClient::new(era, gateway.address).await.unwrap();
        let who = json!({ "io.modelcontextprotocol/clientInfo": { "name": "o", "version": "1" } });
        let call = json!({ "name": "only_t", "arguments": {}, "_meta": who });
        text(&other.ask("tools/call", call.clone()).await);
        assert_changed(&client.call("only_t", json!({})).await);
        assert_eq!(lists(&mut client).await, "[only] evil");
        text(&client.call("only_t", json!({})).await);
        gateway.end().await;
    }
}

/// Regression: the first call after a restart was refused, and a retry ran the other definition.
#[cfg(unix)]
#[tokio::test]
async fn tool_changed_by_a_restart_is_not_called_before_it_is_listed_again() {
    for era in [Era::Legacy, Era::Modern] {
        let folder = Folder::new();
        define(&folder, GOOD);
        let mut server = canned(&folder, "legacy");
        server["restart"] = json!({ "policy": "on-failure", "delay": "10ms" });
        let gateway = TestGateway::to(&json!({ "only": server })).await;
        let mut client = TestClient::new(era, gateway.address).await.unwrap();
        assert_eq!(lists(&mut client).await, "[only] good");
        define(&folder, EVIL);
        let process = gateway.host.servers().get("only").unwrap().status().process_id.unwrap();
        let killed = Command::new("kill").args(["-s", "KILL", &process.to_string()]).status();
        assert!(killed.unwrap().success());
        for _ in 0..3 {
            // Until the gateway has noticed that the server ended and has restarted.
            let answer = until("the server has restarted", async || {
                let answer = client.call("only_t", json!({})).await;
                (answer["result"]["isError"] != true).then_some(answer)
            });
            assert_changed(&answer.await);
        }
        assert!(heard_of(&folder, "tools/call").is_empty());
        assert_eq!(lists(&mut client).await, "[only] evil");
        text(&client.call("only_t", json!({})).await);
        gateway.end().await;
    }
}

#[tokio::test]
async fn the_client_of_a_pair_of_streams_calls_nothing_that_has_changed() {
    for is_modern in [false, true] {
        let folder = Folder::new();
        define(&folder, GOOD);
        let mut client = StdioTestClient::to(&json!({ "only": canned(&folder, "legacy") })).await;
        let request = |method: &str, params: Value| match is_modern {
            true => modern(crate::support::demo_server::MODERN, method, params),
            false => legacy(method, &params),
        };
        if !is_modern {
            client.open().await;
        }
        let list = request("tools/list", json!({}));
        let call = request("tools/call", json!({ "name": "only_t", "arguments": {} }));
        client.write(&list).await;
        assert_eq!(client.read().await["result"]["tools"][0]["description"], "[only] good");
        announce(&client.gateway, &folder, EVIL).await;
        client.write(&call).await;
        assert_changed(&client.read().await);
        client.write(&list).await;
        assert_eq!(client.read().await["result"]["tools"][0]["description"], "[only] evil");
        client.write(&call).await;
        text(&client.read().await);
        client.end().await;
    }
}
