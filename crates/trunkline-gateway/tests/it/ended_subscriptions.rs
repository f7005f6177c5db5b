//! Subscriptions that the gateway ends, because it shuts down or their client loses access: the
//! client gets a response.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::time::timeout;
use trunkline::config;
use trunkline_gateway::{GatewayOptions, Scope, Token, Tokens, digest_of};

use crate::support::client::{Era, TestClient, borrowed, text};
use crate::support::echoing_server::echoing;
use crate::support::gateway::TestGateway;
use crate::support::http_connection::{Channel, Sent};
use crate::support::subscription::Subscribed;
use crate::support::wait::{LONGEST, until};

const ANN: (&str, &str) = ("Authorization", "Bearer token-of-ann");
const BOB: (&str, &str) = ("Authorization", "Bearer token-of-bob");

fn tokens(names: &[&str]) -> Tokens {
    let mut tokens = Tokens::default();
    for name in names {
        let known = Token { name: (*name).to_owned(), scope: Scope::default() };
        tokens.insert(digest_of(&format!("token-of-{name}")), known);
    }
    tokens
}

/// A subscription that a server does not confirm is not acknowledged, and does not delay others.
#[tokio::test]
async fn a_server_that_never_agrees_is_not_in_the_way_of_a_subscription() {
    let [watched, deaf] = ["watched", "deaf"].map(|extra| {
        let mut server = echoing("legacy");
        server["args"].as_array_mut().unwrap().push(extra.into());
        server["prefix"] = extra.into();
        // So that its own timeout does not end the wait.
        server["timeouts"]["list"] = "10m".into();
        server
    });
    let gateway = TestGateway::to(&json!({ "watched": watched, "deaf": deaf })).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let uris: Vec<_> = (0..5).map(|number| format!("x://deaf-{number}")).collect();
    let uris = [uris, vec!["x://note".to_owned()]].concat();
    let wanted = json!({ "notifications": { "resourceSubscriptions": uris } });
    let written = client.write("subscriptions/listen", wanted);
    assert!(client.begin(&written).await.unwrap().is_stream());
    let first = timeout(LONGEST, client.channel.event()).await.expect("an event in time");
    let first = first.unwrap().unwrap().message.unwrap();
    let honoured = &first["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(*honoured, json!(["x://note"]), "{first}");
    gateway.end().await;
}

/// A server with a changed entry is restarted, and the subscriptions are made again.
#[tokio::test]
async fn a_subscription_goes_on_with_a_server_that_was_changed() {
    let configuration = |extra: &str| {
        let mut server = echoing("legacy");
        let arguments = server["args"].as_array_mut().unwrap();
        arguments.extend(["watched".into(), extra.into()]);
        let text = json!({ "mcpServers": { "watched": server } });
        config::parse("test", text.to_string()).config
    };
    let gateway = TestGateway::of(configuration("first")).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let wanted = json!({ "notifications": { "resourceSubscriptions": ["x://note"] } });
    let written = client.write("subscriptions/listen", wanted);
    let mut stream = Channel::to(client.address).await.unwrap();
    let headers = borrowed(&written.headers);
    let sent = Sent { method: "POST", path: "/mcp", headers: &headers, body: &written.body };
    assert!(stream.send(&sent).await.unwrap().is_stream());
    let mut subscribed = Subscribed { id: written.id, stream };
    let first = subscribed.next().await.unwrap();
    assert_eq!(first["params"]["notifications"]["resourceSubscriptions"][0], "x://note");
    for extra in ["first", "second"] {
        gateway.host.reload(configuration(extra), BTreeMap::new()).await;
        until(&format!("the server has the subscription ({extra})"), async || {
            (text(&client.call("touch", json!({})).await) == r#"["x://note"]"#).then_some(())
        })
        .await;
        let told = subscribed.next().await.unwrap();
        assert_eq!(told["method"], "notifications/resources/updated", "{told}");
    }
    gateway.end().await;
}

#[tokio::test]
async fn a_subscription_ends_with_the_gateway() {
    let gateway = TestGateway::to(&json!({ "echoing": echoing("modern") })).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let subscribed = Subscribed::at("/mcp", &mut client).await;
    gateway.host.shutdown().await;
    subscribed.ends().await;
    gateway.end().await;
}

#[tokio::test]
async fn a_subscription_ends_with_the_token_of_its_client() {
    let accepted = tokens(&["ann", "bob"]);
    let options = GatewayOptions { tokens: accepted.clone(), ..GatewayOptions::default() };
    let gateway = TestGateway::with(&json!({ "echoing": echoing("modern") }), options).await;
    let mut ann = TestClient::with(Era::Modern, gateway.address, &[ANN]).await.unwrap();
    let mut bob = TestClient::with(Era::Modern, gateway.address, &[BOB]).await.unwrap();
    let mut of_ann = Subscribed::at("/mcp", &mut ann).await;
    let of_bob = Subscribed::at("/mcp", &mut bob).await;
    accepted.replace(&tokens(&["ann"]));
    of_bob.ends().await;
    assert_eq!(text(&ann.call("announce", json!({})).await), "announced");
    let told = of_ann.next().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed", "hers goes on: {told}");
    gateway.end().await;
}

/// A session and its stream depend on the access that its token had when it was opened.
#[tokio::test]
async fn the_stream_of_a_session_ends_when_its_token_changes_or_is_removed() {
    let narrowed = Token { name: "bob".to_owned(), scope: Scope::of_bundle("one") };
    for changed in [Some(narrowed), None] {
        let accepted = tokens(&["ann", "bob"]);
        let options = GatewayOptions { tokens: accepted.clone(), ..GatewayOptions::default() };
        let gateway = TestGateway::with(&json!({ "echoing": echoing("legacy") }), options).await;
        let mut ann = TestClient::with(Era::Legacy, gateway.address, &[ANN]).await.unwrap();
        let bob = TestClient::with(Era::Legacy, gateway.address, &[BOB]).await.unwrap();
        ann.ask("tools/list", json!({})).await;
        let [mut of_ann, mut of_bob] = [
            Subscribed { id: 0, stream: ann.request("GET", &[]).await.1 },
            Subscribed { id: 0, stream: bob.request("GET", &[]).await.1 },
        ];
        let mut others = tokens(&["ann"]);
        if let Some(changed) = changed {
            others.insert(digest_of("token-of-bob"), changed);
        }
        accepted.replace(&others);
        assert_eq!(of_bob.next().await, None);
        assert_eq!(text(&ann.call("announce", json!({})).await), "announced");
        let told = of_ann.next().await.unwrap();
        assert_eq!(told["method"], "notifications/tools/list_changed", "hers goes on: {told}");
        gateway.end().await;
    }
}

#[tokio::test]
async fn subscription_ends_when_its_agent_is_removed() {
    let configuration = |agents: Value| {
        let text = json!({ "mcpServers": { "echoing": echoing("modern") }, "agents": agents });
        config::parse("test", text.to_string()).config
    };
    let gateway = TestGateway::of(configuration(json!({ "reader": { "tools": ["*"] } }))).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let of_agent = Subscribed::at("/mcp/agents/reader", &mut client).await;
    let mut of_all = Subscribed::at("/mcp", &mut client).await;
    let without = configuration(json!({}));
    let agents = without.agents().named.clone();
    gateway.host.reload(without, agents).await;
    of_agent.ends().await;
    assert_eq!(text(&client.call("announce", json!({})).await), "announced");
    let told = of_all.next().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed", "the others go on: {told}");
    gateway.end().await;
}

/// Each change is notified once, and only to clients whose list it changes.
#[tokio::test]
async fn list_change_is_sent_once_to_affected_clients_only() {
    let bundles =
        json!({ "one": { "serverId": "echoing", "mode": "direct", "allowTools": ["echo"] } });
    let text_of = json!({ "mcpServers": { "echoing": echoing("legacy") }, "bundles": bundles });
    let gateway = TestGateway::of(config::parse("test", text_of.to_string()).config).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    client.ask("tools/list", json!({})).await;
    let mut of_all = Subscribed::at("/mcp", &mut client).await;
    let of_bundle = Subscribed::at("/mcp/bundles/one", &mut client).await;
    for _ in 0..2 {
        assert_eq!(text(&client.call("announce", json!({})).await), "announced");
        let told = of_all.next().await.unwrap();
        assert_eq!(told["method"], "notifications/tools/list_changed");
    }
    gateway.host.shutdown().await;
    assert_eq!(of_all.ends().await, Vec::<Value>::new());
    assert_eq!(of_bundle.ends().await, Vec::<Value>::new());
    gateway.end().await;
}
