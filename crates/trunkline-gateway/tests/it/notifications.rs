//! Notifications in both directions, including custom methods.

use std::fs;

use serde_json::{Value, json};
use tokio::time::timeout;
use trunkline::config::Access;
use trunkline_gateway::{GatewayOptions, Scope, Token, Tokens, digest_of};

use crate::support::client::{Era, TestClient, text};
use crate::support::client_notifications::tell;
use crate::support::echoing_server::{Gate, echoing, until_said};
use crate::support::gateway::{Folder, TestGateway};
use crate::support::recording_server::{announcing, heard};
use crate::support::server_requests::message;
use crate::support::stdio_client::StdioTestClient;
use crate::support::wait::LONGEST;

const CUSTOM: &str = "notifications/custom";

/// Whether a server has received a message, once it has received everything before it.
async fn has_heard(client: &mut TestClient, tool: &str, folder: &Folder, method: &str) -> bool {
    client.call(tool, json!({})).await;
    fs::read_to_string(folder.path().join("heard")).unwrap().contains(method)
}

#[tokio::test]
async fn custom_notification_reaches_the_only_server() {
    for era in [Era::Legacy, Era::Modern] {
        for share in ["all", "per-client"] {
            let folder = Folder::new();
            let mut server = announcing(&folder);
            server["access"] = "read-write".into();
            if share == "per-client" {
                server["share"] = share.into();
            }
            let gateway = TestGateway::to(&json!({ "announcing": server })).await;
            let mut client = TestClient::new(era, gateway.address).await.unwrap();
            client.call("watched", json!({})).await;
            tell(&client, CUSTOM).await;
            let message = heard(&folder, CUSTOM).await;
            assert_eq!(message["params"]["n"], 1, "{era:?} {share}");
            // Rules apply to MCP methods: omitting the request ID does not bypass them.
            for method in ["tools/call", "notifications/initialized", "notifications/tasks/x"] {
                tell(&client, method).await;
            }
            client.call("watched", json!({})).await;
            let lines = fs::read_to_string(folder.path().join("heard")).unwrap();
            let mut messages = lines.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
            assert!(messages.all(|it| it["method"] != "tools/call" || it.get("id").is_some()));
            assert!(!lines.contains("tasks/x"), "{lines}");
            gateway.end().await;
        }
    }
}

#[tokio::test]
async fn custom_notification_reaches_none_of_several_servers() {
    let folder = Folder::new();
    let mut server = announcing(&folder);
    server["prefix"] = "a".into();
    let two = json!({ "announcing": server, "gone": { "command": "no-such-program" } });
    let gateway = TestGateway::to(&two).await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    assert!(!has_heard(&mut client, "a_watched", &folder, CUSTOM).await);
    tell(&client, CUSTOM).await;
    assert!(!has_heard(&mut client, "a_watched", &folder, CUSTOM).await);
    gateway.end().await;
}

/// A custom method names no item, so no rule can allow it for a limited caller.
#[tokio::test]
async fn custom_notification_of_a_restricted_client_is_dropped() {
    let folder = Folder::new();
    let scope = Scope { access: Some(Access::ReadOnly), ..Scope::default() };
    let mut tokens = Tokens::default();
    tokens.insert(digest_of("limited"), Token { name: "limited".to_owned(), scope });
    let options = GatewayOptions { tokens, ..GatewayOptions::default() };
    let gateway = TestGateway::with(&json!({ "announcing": announcing(&folder) }), options).await;
    let token = ("Authorization", "Bearer limited");
    let mut client = TestClient::with(Era::Legacy, gateway.address, &[token]).await.unwrap();
    client.call("watched", json!({})).await;
    tell(&client, CUSTOM).await;
    assert!(!has_heard(&mut client, "watched", &folder, CUSTOM).await);
    let answer = client.ask("custom/method", json!({})).await;
    assert_eq!(answer["error"]["code"], -32_601, "{answer}");
    gateway.end().await;
}

#[tokio::test]
async fn roots_list_changed_reaches_dedicated_servers() {
    for (share, is_own) in [("all", false), ("per-client", true)] {
        let folder = Folder::new();
        let mut server = announcing(&folder);
        if is_own {
            server["share"] = share.into();
        }
        let gateway = TestGateway::to(&json!({ "announcing": server })).await;
        let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
        client.call("watched", json!({})).await;
        let roots = "notifications/roots/list_changed";
        tell(&client, roots).await;
        assert_eq!(has_heard(&mut client, "watched", &folder, roots).await, is_own);
        let lines = fs::read_to_string(folder.path().join("heard")).unwrap();
        assert_eq!(
            lines.matches(roots).count(),
            usize::from(is_own),
            "only one process is its own"
        );
        gateway.end().await;
    }
}

#[tokio::test]
async fn custom_notification_over_stdio_reaches_the_only_server() {
    let folder = Folder::new();
    let mut client = StdioTestClient::to(&json!({ "announcing": announcing(&folder) })).await;
    client.open().await;
    client.write(r#"{"jsonrpc":"2.0","method":"notifications/custom","params":{"n":1.0}}"#).await;
    heard(&folder, CUSTOM).await;
    let lines = fs::read_to_string(folder.path().join("heard")).unwrap();
    assert!(lines.contains(r#""params":{"n":1.0}"#), "{lines}");
    client.end().await;
}

/// The methods of the messages before the response to a call of `say`.
async fn said(client: &mut TestClient) -> Vec<String> {
    let call = json!({ "name": "say", "arguments": { "method": CUSTOM } });
    let written = client.write("tools/call", call);
    let (_, messages) = client.exchange(&written).await.unwrap();
    let (answer, before) = messages.split_last().unwrap();
    assert_eq!(text(answer), "said");
    before.iter().map(|it| it["method"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_notification_that_the_protocol_does_not_know_is_for_the_only_caller() {
    for generation in ["legacy", "modern"] {
        for era in [Era::Legacy, Era::Modern] {
            let gateway = TestGateway::to(&json!({ "echoing": echoing(generation) })).await;
            let mut client = TestClient::new(era, gateway.address).await.unwrap();
            for _ in 0..2 {
                assert_eq!(said(&mut client).await, [CUSTOM], "{generation} {era:?}");
            }
            gateway.end().await;
        }
    }
}

/// No client learns about the calls of others.
#[tokio::test]
async fn ambiguous_server_notification_reaches_no_client() {
    for others in [Era::Legacy, Era::Modern] {
        let gateway = TestGateway::to(&json!({ "echoing": echoing("legacy") })).await;
        let mut other = TestClient::new(others, gateway.address).await.unwrap();
        let call = json!({ "name": "hang", "arguments": { "token": "others" } });
        let written = other.write("tools/call", call);
        let hanging = tokio::spawn(async move { other.exchange(&written).await.is_ok() });
        for era in [Era::Modern, Era::Legacy] {
            let mut client = TestClient::new(era, gateway.address).await.unwrap();
            until_said(&mut client, "hung", "others").await;
            let (_, mut standing) = client.request("GET", &[]).await;
            assert!(said(&mut client).await.is_empty(), "{era:?} {others:?}");
            if era == Era::Legacy {
                // A later notification, about an elicitation of this session.
                let gate = Gate::new();
                client.call("visit", json!({ "id": "mark", "wait": gate.path() })).await;
                gate.open();
                let first = message(&mut standing).await;
                assert_eq!(first["method"], "notifications/elicitation/complete", "{others:?}");
            }
        }
        hanging.abort();
        gateway.end().await;
    }
}

/// It is not attributed to a call, but all calls belong to one client.
#[tokio::test]
async fn unattributed_server_notification_reaches_the_only_session() {
    let gateway = TestGateway::to(&json!({ "echoing": echoing("legacy") })).await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let call = json!({ "name": "hang", "arguments": { "token": "own" } });
    let written = client.write("tools/call", call);
    assert!(client.begin(&written).await.unwrap().is_stream());
    let mut again = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    again.session = client.session.clone();
    again.write("ping", json!({}));
    let (_, mut standing) = again.request("GET", &[]).await;
    assert!(said(&mut again).await.is_empty());
    let next = async {
        loop {
            if let Some(message) = standing.event().await.unwrap().expect("an event").message {
                return message;
            }
        }
    };
    assert_eq!(timeout(LONGEST, next).await.unwrap()["method"], CUSTOM);
    gateway.end().await;
}
