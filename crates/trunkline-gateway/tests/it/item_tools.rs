//! Resources and prompts as tools, for models that can only call tools (TOOL-14).

use serde_json::{Value, json};
use trunkline::content::ResultKind;
use trunkline::meta::ItemTool;
use trunkline::{Tool, config};
use trunkline_gateway::{GatewayOptions, Scope, Token, Tokens, digest_of, serve_stream};
use trunkline_testkit::peers;

use crate::support::client::{Era, TestClient, text};
use crate::support::file_driven_server::{canned, heard_of};
use crate::support::gateway::{Folder, TestGateway};

const RESOURCE_TOOLS: [&str; 2] = ["trunkline_list_resources", "trunkline_read_resource"];
const PROMPT_TOOLS: [&str; 2] = ["trunkline_list_prompts", "trunkline_get_prompt"];

/// A server with two resources, a template, a prompt and a tool.
fn library() -> Folder {
    let folder = Folder::new();
    let lists = [
        (
            "tools.list",
            json!({ "tools": [{ "name": "find", "inputSchema": { "type": "object" } }] }),
        ),
        (
            "resources.list",
            json!({ "resources": [
                { "uri": "lib://a", "name": "Alpha", "mimeType": "text/plain",
                  "description": "The first\nbook" },
                { "uri": "lib://b", "name": "Beta" },
            ] }),
        ),
        (
            "resources.templates.list",
            json!({ "resourceTemplates": [{ "uriTemplate": "lib://page/{n}", "name": "Page" }] }),
        ),
        (
            "prompts.list",
            json!({ "prompts": [{ "name": "greet", "description": "Greets a reader", "arguments": [
                { "name": "who", "description": "The reader", "required": true },
                { "name": "tone" },
            ] }] }),
        ),
        ("resources.read", json!({ "contents": read("Once upon a time")["contents"], "extra": 7 })),
        (
            "prompts.get",
            json!({ "description": "Greets", "messages": [
                { "role": "user", "content": { "type": "text", "text": "Greet Ann" } },
                { "role": "assistant", "content": { "type": "text", "text": "Hello Ann" } },
            ] }),
        ),
    ];
    for (name, list) in lists {
        folder.write(&format!("{name}.json"), &list.to_string());
    }
    folder
}

fn read(text: &str) -> Value {
    json!({ "contents": [{ "uri": "lib://a", "mimeType": "text/plain", "text": text }] })
}

fn config(folder: &Folder, more: &Value) -> config::Config {
    let mut text = json!({ "mcpServers": { "lib": canned(folder, "legacy") } });
    text.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let loaded = config::parse("test", text.to_string());
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    loaded.config
}

async fn gateway(folder: &Folder, more: Value) -> TestGateway {
    TestGateway::of(config(folder, &more)).await
}

fn both() -> Value {
    json!({ "resourcesAsTools": true, "promptsAsTools": true })
}

async fn names(client: &mut TestClient) -> Vec<String> {
    let listed = client.ask("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn resources_and_prompts_are_listed_and_read_with_tools_in_both_eras() {
    for era in [Era::Legacy, Era::Modern] {
        let folder = library();
        let gateway = gateway(&folder, both()).await;
        let mut client = TestClient::new(era, gateway.address).await.unwrap();
        let expected = [&RESOURCE_TOOLS[..], &PROMPT_TOOLS[..], &["lib_find"]].concat();
        assert_eq!(names(&mut client).await, expected);
        let listed = client.call("trunkline_list_resources", json!({})).await;
        assert_eq!(
            text(&listed),
            "lib://a | Alpha | text/plain | The first book\nlib://b | Beta\n\
             [template] lib://page/{n} | Page\n"
        );
        let read = client.call("trunkline_read_resource", json!({ "uri": "lib://a" })).await;
        assert_eq!(text(&read), "Once upon a time");
        assert_eq!(read["result"]["isError"], Value::Null, "{read}");
        assert!(read["result"].get("contents").is_none() && read["result"].get("ttlMs").is_none());
        assert_eq!(read["result"]["_meta"]["io.trunkline/result"], json!({ "extra": 7 }));
        let listed = client.call("trunkline_list_prompts", json!({})).await;
        assert_eq!(text(&listed), "lib_greet(who: The reader, tone?): Greets a reader\n");
        let arguments = json!({ "name": "lib_greet", "arguments": { "who": "Ann" } });
        let got = client.call("trunkline_get_prompt", arguments).await;
        let blocks = got["result"]["content"].as_array().unwrap();
        let texts: Vec<_> = blocks.iter().map(|block| block["text"].as_str().unwrap()).collect();
        let expected =
            ["[prompt: Greets]", "[role: user]", "Greet Ann", "[role: assistant]", "Hello Ann"];
        assert_eq!(texts, expected);
        // The server receives the requests of a client with resources and prompts.
        let heard = |method| heard_of(&folder, method).pop().unwrap()["params"].clone();
        let (read, got) = (heard("resources/read"), heard("prompts/get"));
        assert_eq!(
            (&read["uri"], &read["name"], &read["arguments"]),
            (&json!("lib://a"), &Value::Null, &Value::Null)
        );
        assert_eq!((&got["name"], &got["arguments"]), (&json!("greet"), &json!({ "who": "Ann" })));
        assert!(heard_of(&folder, "tools/call").is_empty());
        gateway.end().await;
    }
}

/// Beside the meta tools the list is constant, and the tools still work.
#[tokio::test]
async fn they_are_beside_the_meta_tools() {
    let folder = library();
    let mut more = both();
    more["mode"] = "meta".into();
    let gateway = gateway(&folder, more).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let listed = names(&mut client).await;
    assert_eq!(listed.len(), 8);
    assert_eq!(listed[4..], [&RESOURCE_TOOLS[..], &PROMPT_TOOLS[..]].concat());
    let read = client.call("trunkline_read_resource", json!({ "uri": "lib://a" })).await;
    assert_eq!(text(&read), "Once upon a time");
    gateway.end().await;
}

/// An agent or a bundle decides for its scope; where it says nothing, the setting of all applies.
#[tokio::test]
async fn each_scope_has_its_own_setting() {
    let folder = library();
    let more = json!({
        "resourcesAsTools": true,
        "agents": {
            "plain": { "resourcesAsTools": false },
            "rich": { "promptsAsTools": true, "mode": "meta" },
            "usual": {},
        },
        "bundles": {
            "texts": { "serverId": "lib", "promptsAsTools": true, "resourcesAsTools": false },
            "rest": { "serverId": "lib" },
        },
    });
    let gateway = gateway(&folder, more).await;
    let [search, describe, call, servers] =
        ["trunkline_search", "trunkline_describe", "trunkline_call", "trunkline_servers"];
    let [list_resources, read] = RESOURCE_TOOLS;
    let [list_prompts, get] = PROMPT_TOOLS;
    let meta = [search, describe, call, servers, list_resources, read, list_prompts, get];
    for (path, expected) in [
        ("/mcp", &[list_resources, read, "lib_find"][..]),
        ("/mcp/agents/plain", &["lib_find"]),
        ("/mcp/agents/rich", &meta),
        ("/mcp/agents/usual", &[list_resources, read, "lib_find"]),
        ("/mcp/bundles/texts", &[list_prompts, get, "lib_find"]),
        ("/mcp/bundles/rest", &[list_resources, read, "lib_find"]),
    ] {
        let mut client = TestClient::at((gateway.address, path), Era::Modern, &[]).await.unwrap();
        assert_eq!(names(&mut client).await, expected, "{path}");
        for tool in ItemTool::ALL {
            let answer = client.call(tool.name(), json!({})).await;
            let is_known = answer["error"].is_null();
            assert_eq!(is_known, expected.contains(&tool.name()), "{path}: {answer}");
        }
    }
    gateway.end().await;
}

/// The error is the same for an item that is hidden and for one that does not exist.
#[tokio::test]
async fn hidden_items_are_neither_listed_nor_read() {
    let folder = library();
    let mut servers = json!({ "lib": canned(&folder, "legacy") });
    servers["lib"]["denyTools"] = json!(["lib://b", "greet"]);
    let mut more = both();
    more["mcpServers"] = servers;
    let config = config(&folder, &more);
    let mut tokens = Tokens::default();
    let token = Token { name: "ci".to_owned(), scope: Scope::default() };
    tokens.insert(digest_of("secret"), token);
    let options = GatewayOptions { tokens, ..GatewayOptions::default() };
    let gateway = TestGateway::start(config, options).await;
    for era in [Era::Legacy, Era::Modern] {
        let headers = [("Authorization", "Bearer secret")];
        let mut client = TestClient::with(era, gateway.address, &headers).await.unwrap();
        let listed = client.call("trunkline_list_resources", json!({})).await;
        assert!(!text(&listed).contains("lib://b"), "{listed}");
        let listed = client.call("trunkline_list_prompts", json!({})).await;
        assert_eq!(text(&listed), "there are no prompts\n");
        for (tool, key, hidden, unknown) in [
            ("trunkline_read_resource", "uri", "lib://b", "http://b"),
            ("trunkline_get_prompt", "name", "lib_greet", "lib_grxet"),
        ] {
            let one = client.call(tool, json!({ key: hidden })).await;
            let other = client.call(tool, json!({ key: unknown })).await;
            assert_eq!(one["result"]["isError"], true, "{one}");
            // Similar names are suggested, which depends on the name that was written.
            let message = |answer: &Value, name: &str| {
                text(answer).replace(name, "").split(';').next().unwrap().to_owned()
            };
            assert_eq!(message(&one, hidden), message(&other, unknown));
        }
    }
    assert!(heard_of(&folder, "resources/read").is_empty());
    assert!(heard_of(&folder, "prompts/get").is_empty());
    gateway.end().await;
}

#[tokio::test]
async fn bad_arguments_and_failures_are_results_that_a_model_can_read() {
    let folder = library();
    let gateway = gateway(&folder, both()).await;
    std::fs::remove_file(folder.path().join("resources.read.json")).unwrap();
    std::fs::remove_file(folder.path().join("prompts.get.json")).unwrap();
    let [list_resources, read] = RESOURCE_TOOLS;
    let [list_prompts, get] = PROMPT_TOOLS;
    for era in [Era::Legacy, Era::Modern] {
        let mut client = TestClient::new(era, gateway.address).await.unwrap();
        for (tool, arguments, part) in [
            (read, json!({ "uri": "lib://a" }), "unknown method"),
            (get, json!({ "name": "lib_greet" }), "unknown method"),
            (read, json!({ "uri": "http://elsewhere" }), "there is no resource"),
            (read, json!({ "uri": "" }), "there is no resource"),
            (read, json!({ "uri": "lib://\u{1}\u{202e}" }), "there is no resource"),
            (read, json!({ "uri": "x".repeat(100_000) }), "longer"),
            (read, json!({}), "`uri` must be a string"),
            (read, json!({ "uri": ["lib://a"] }), "`uri` must be a string"),
            (get, json!({}), "`name` must be a string"),
            (get, json!({ "name": "nothing" }), "there is no prompt"),
            (get, json!({ "name": "lib_greet", "arguments": { "who": 3 } }), "must be a string"),
            (list_resources, json!({ "limit": 0 }), "`limit` must be 1 to 200"),
            (list_resources, json!({ "limit": 1e99 }), "`limit` must be 1 to 200"),
            (list_resources, json!({ "server": "lig" }), "did you mean `lib`?"),
            (list_prompts, json!({ "server": "zzzz\n" }), "leave out `server`"),
            (list_resources, json!({ "cursor": "zzz" }), "list without it"),
        ] {
            let answer = client.call(tool, arguments.clone()).await;
            assert_eq!(answer["result"]["isError"], true, "{tool} {arguments}: {answer}");
            let text = text(&answer);
            assert!(text.contains(part), "{tool} {arguments}: {answer}");
            assert!(!text.contains(['\u{1}', '\u{202e}']) && text.len() < 2_000, "{text}");
        }
        // The name of the tool itself may not be ambiguous.
        let mut written = client.write("tools/call", json!({ "name": "trunkline_read_resource" }));
        let (once, twice) = (r#""name":"trunkline_read_resource""#, r#""name":"lib_find","#);
        written.body = written.body.replace(once, &format!("{twice}{once}"));
        let (_, messages) = client.exchange(&written).await.unwrap();
        assert!(messages.last().unwrap()["error"].is_object(), "{messages:?}");
    }
    gateway.end().await;
}

#[tokio::test]
async fn lists_are_filtered_and_continued() {
    let folder = library();
    let resource = |number: usize| json!({ "uri": format!("lib://n{number:03}"), "name": "N" });
    let resources: Vec<_> = (0..120).map(resource).collect();
    folder.write("resources.list.json", &json!({ "resources": resources }).to_string());
    let gateway = gateway(&folder, both()).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    let (mut found, mut arguments) = (Vec::new(), json!({ "limit": 50 }));
    loop {
        let listed = client.call("trunkline_list_resources", arguments.clone()).await;
        let listed = text(&listed).to_owned();
        found.extend(listed.lines().filter(|line| line.contains("lib://")).map(str::to_owned));
        let Some(more) = listed.lines().find(|line| line.contains("\"cursor\"")) else { break };
        arguments["cursor"] = more.rsplit('"').nth(1).unwrap().into();
    }
    assert_eq!(found.len(), 121);
    let distinct: std::collections::BTreeSet<_> = found.iter().collect();
    assert_eq!(distinct.len(), 121);
    for (arguments, count) in [
        (json!({ "query": "N11" }), 10),
        (json!({ "query": "PAGE", "server": "lib" }), 1),
        (json!({ "query": "x".repeat(100_000) }), 0),
        (json!({ "limit": 200 }), 121),
    ] {
        let listed = client.call("trunkline_list_resources", arguments.clone()).await;
        assert_eq!(text(&listed).matches("lib://").count(), count, "{arguments}: {listed}");
    }
    gateway.end().await;
}

/// A long result is cut as that of a direct read, and other media are kept.
#[tokio::test]
async fn results_are_bounded_and_binary_contents_are_kept() {
    let folder = library();
    let gateway =
        gateway(&folder, json!({ "resourcesAsTools": true, "maxResultBytes": 10_000 })).await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let image = json!({ "uri": "lib://a", "mimeType": "image/png", "blob": "AAAA" });
    let other = json!({ "uri": "lib://b", "mimeType": "application/pdf", "blob": "BBBB" });
    folder.write("resources.read.json", &json!({ "contents": [image, other] }).to_string());
    let answer = client.call("trunkline_read_resource", json!({ "uri": "lib://a" })).await;
    let content = &answer["result"]["content"];
    assert_eq!((&content[1]["type"], &content[1]["data"]), (&json!("image"), &json!("AAAA")));
    assert_eq!(content[3]["resource"]["blob"], "BBBB", "{answer}");
    let many: Vec<_> = (0..300).map(|_| json!({ "uri": "", "text": "" })).collect();
    for contents in [json!(many), json!([{ "uri": "lib://a", "text": "x".repeat(50_000) }])] {
        folder.write("resources.read.json", &json!({ "contents": contents }).to_string());
        let answer = client.call("trunkline_read_resource", json!({ "uri": "lib://a" })).await;
        let bytes = answer["result"].to_string().len();
        assert!((1_000..=10_000).contains(&bytes), "{bytes}");
        assert!(answer.to_string().contains("bytes are missing"), "{answer}");
    }
    gateway.end().await;
}

/// A modern server that needs input is answered by the client, as in a direct read.
#[tokio::test]
async fn input_requests_pass_through_the_tool() {
    let folder = library();
    let required = json!({ "resultType": "input_required", "requestState": "s", "inputRequests": {
        "who": { "method": "elicitation/create", "params": { "message": "Who?", "mode": "form",
            "requestedSchema": { "type": "object", "properties": {} } } } } });
    folder.write("resources.read.json", &required.to_string());
    let mut more = both();
    more["mcpServers"] = json!({ "lib": canned(&folder, "modern") });
    let gateway = gateway(&folder, more).await;
    let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
    client.capabilities = json!({ "elicitation": { "form": {} } });
    let arguments = json!({ "uri": "lib://a" });
    let asked = client.call("trunkline_read_resource", arguments.clone()).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let mut complete = read("Ann's book");
    complete["resultType"] = "complete".into();
    folder.write("resources.read.json", &complete.to_string());
    let again = json!({ "name": "trunkline_read_resource", "arguments": arguments,
        "inputResponses": { "who": { "action": "accept", "content": {} } },
        "requestState": asked["result"]["requestState"] });
    let answer = client.ask("tools/call", again).await;
    assert_eq!(text(&answer), "Ann's book");
    let heard = heard_of(&folder, "resources/read").pop().unwrap();
    assert_eq!(heard["params"]["requestState"], "s", "{heard}");
    assert_eq!(heard["params"]["inputResponses"]["who"]["action"], "accept", "{heard}");
    gateway.end().await;
}

/// Regression: a tool of a server took the place of the tool for resources. It has another name,
/// the same in all modes, also where resources are no tools.
#[tokio::test]
async fn tool_of_a_server_with_the_same_name_gets_another() {
    let folder = library();
    let tool = json!({ "name": "read_resource", "inputSchema": { "type": "object" } });
    folder.write("tools.list.json", &json!({ "tools": [tool] }).to_string());
    let servers = json!({ "trunkline": canned(&folder, "legacy") });
    let mut other = None;
    for (mode, are_tools) in [("direct", false), ("direct", true), ("meta", true)] {
        let more = json!({ "mode": mode, "resourcesAsTools": are_tools, "mcpServers": servers });
        let gateway = gateway(&folder, more).await;
        let mut client = TestClient::new(Era::Modern, gateway.address).await.unwrap();
        let listed = names(&mut client).await;
        let other = other.get_or_insert_with(|| listed[0].clone());
        assert!(other.starts_with("trunkline_read_resource_"), "{other}");
        assert_eq!(listed.contains(other), mode == "direct", "{listed:?}");
        let before = heard_of(&folder, "tools/call").len();
        let answer = client.call("trunkline_read_resource", json!({ "uri": "lib://a" })).await;
        assert_eq!(answer["error"].is_null(), are_tools, "{answer}");
        assert_eq!(heard_of(&folder, "tools/call").len(), before);
        match mode {
            "direct" => client.call(other, json!({})).await,
            _ => client.call("trunkline_call", json!({ "name": other })).await,
        };
        assert_eq!(heard_of(&folder, "tools/call").len(), before + 1);
        gateway.end().await;
    }
}

/// Text of an untrusted server is between notices, also its role and URI.
#[tokio::test]
async fn contents_of_untrusted_servers_are_marked() {
    let folder = library();
    let mut server = canned(&folder, "legacy");
    server["trust"] = "untrusted".into();
    server["allowTools"] = json!(["find", "lib://a", "greet"]);
    let mut more = both();
    more["mcpServers"] = json!({ "lib": server });
    let gateway = gateway(&folder, more).await;
    let mut client = TestClient::new(Era::Legacy, gateway.address).await.unwrap();
    let listed = client.call("trunkline_list_resources", json!({})).await;
    assert!(text(&listed).starts_with("[untrusted] lib://a | "), "{listed}");
    for (tool, arguments) in [
        ("trunkline_read_resource", json!({ "uri": "lib://a" })),
        ("trunkline_get_prompt", json!({ "name": "lib_greet" })),
    ] {
        let answer = client.call(tool, arguments).await;
        let content = answer["result"]["content"].as_array().unwrap();
        let first = content[0]["text"].as_str().unwrap();
        assert!(first.starts_with("[content of the untrusted server `lib`"), "{answer}");
        let sign = content.last().unwrap()["text"].as_str().unwrap().trim_matches(['[', ']']);
        assert!(first.contains(sign), "{answer}");
        assert_eq!(answer["result"]["_meta"]["io.trunkline/untrusted"], true, "{answer}");
    }
    gateway.end().await;
}

/// Regression: clients did not hear of a reload that changed which tools are listed.
#[tokio::test]
async fn reload_that_switches_them_on_changes_the_list() {
    let folder = library();
    let gateway = gateway(&folder, json!({})).await;
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    let serving =
        tokio::spawn(serve_stream(gateway.host.clone(), Scope::default(), reader, writer));
    let mut client = tokio::io::BufReader::new(near);
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" } } });
    tell(&mut client, &initialize).await;
    until(&mut client, |message| message["id"] == 1).await;
    tell(&mut client, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    let list = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" });
    tell(&mut client, &list(2)).await;
    until(&mut client, |message| message["id"] == 2).await;
    let config = config(&folder, &both());
    gateway.host.reload(config, Default::default()).await;
    let changed = "notifications/tools/list_changed";
    until(&mut client, |message| message["method"] == changed).await;
    tell(&mut client, &list(3)).await;
    let listed = until(&mut client, |message| message["id"] == 3).await;
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 5, "{listed}");
    // The tools work over stdio, too.
    let params = json!({ "name": "trunkline_read_resource", "arguments": { "uri": "lib://a" } });
    let call = json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": params });
    tell(&mut client, &call).await;
    let answer = until(&mut client, |message| message["id"] == 4).await;
    assert_eq!(text(&answer), "Once upon a time");
    drop(client);
    serving.await.unwrap().unwrap();
    gateway.end().await;
}

type Client = tokio::io::BufReader<tokio::io::DuplexStream>;

async fn tell(client: &mut Client, message: &Value) {
    use tokio::io::AsyncWriteExt as _;
    client.write_all(format!("{message}\n").as_bytes()).await.unwrap();
}

async fn until(client: &mut Client, is_it: impl Fn(&Value) -> bool) -> Value {
    use tokio::io::AsyncBufReadExt as _;
    let next = async {
        loop {
            let mut line = String::new();
            assert!(client.read_line(&mut line).await.unwrap() > 0, "the stream ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if is_it(&message) {
                return message;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), next).await.expect("a message in time")
}

/// A host without the gateway calls the same tools.
#[tokio::test]
async fn embedding_host_calls_the_tools() {
    let folder = library();
    let gateway = gateway(&folder, json!({ "resourcesAsTools": true })).await;
    let owner = gateway.host.owner();
    let tools = owner.tools().await;
    let item_tools: Vec<_> = tools.iter().filter_map(Tool::item_tool).collect();
    assert_eq!(item_tools, [ItemTool::ListResources, ItemTool::ReadResource]);
    assert_eq!(tools[1].annotations().read_only, Some(true));
    let call = async |tool: ItemTool, arguments: Value| {
        owner.call_tool(tool.name(), arguments).await.map(|outcome| outcome.text())
    };
    let listed = call(ItemTool::ListResources, json!({})).await.unwrap();
    assert!(listed.starts_with("lib://a | Alpha"), "{listed}");
    let read = tools[1].call(json!({ "uri": "lib://a" })).await.unwrap();
    assert_eq!((read.text().as_str(), read.kind()), ("Once upon a time", ResultKind::ToolCall));
    for (tool, arguments, error) in [
        (ItemTool::ReadResource, json!({ "uri": "http://x" }), "http://x"),
        (ItemTool::ReadResource, json!({}), "uri"),
        (ItemTool::ListPrompts, json!({}), "there is no tool `trunkline_list_prompts`"),
    ] {
        let refused = call(tool, arguments).await.unwrap_err();
        assert!(refused.to_string().contains(error), "{refused}");
    }
    gateway.end().await;
}

/// The reference server behind the gateway, with clients of both eras and the official SDKs.
#[tokio::test]
async fn third_party_server_is_read_with_tools() {
    let script = "@modelcontextprotocol/server-everything/dist/index.js";
    let script = peers::node_modules().join(script);
    let everything = json!({ "command": "node", "args": [script, "stdio"],
        "timeouts": { "handshake": "90s", "grace": "60s" } });
    let mut more = both();
    more["mcpServers"] = json!({ "everything": everything });
    let gateway = TestGateway::of(config::parse("test", more.to_string()).config).await;
    let address = "demo://resource/static/document/architecture.md";
    for era in [Era::Legacy, Era::Modern] {
        let mut client = TestClient::new(era, gateway.address).await.unwrap();
        let listed =
            client.call("trunkline_list_resources", json!({ "query": "architecture" })).await;
        let line = text(&listed).lines().next().unwrap();
        assert!(
            line.starts_with(&format!("{address} | architecture.md | text/markdown")),
            "{line}"
        );
        let listed = client.call("trunkline_list_resources", json!({ "limit": 200 })).await;
        let template = "[template] demo://resource/dynamic/text/{resourceId}";
        assert!(text(&listed).contains(template), "{listed}");
        let read = client.call("trunkline_read_resource", json!({ "uri": address })).await;
        assert!(text(&read).contains("# Everything Server"), "{read}");
        let blob = json!({ "uri": "demo://resource/dynamic/blob/3" });
        let blob = client.call("trunkline_read_resource", blob).await;
        assert_eq!(blob["result"]["content"][0]["type"], "resource", "{blob}");
        let wrong = json!({ "uri": "demo://resource/static/document/architectur.md" });
        let wrong = client.call("trunkline_read_resource", wrong).await;
        assert_eq!(wrong["result"]["isError"], true, "{wrong}");
        let listed = client.call("trunkline_list_prompts", json!({ "query": "args" })).await;
        assert!(text(&listed).starts_with("everything_args-prompt(city: "), "{listed}");
        let arguments =
            json!({ "name": "everything_args-prompt", "arguments": { "city": "Rome" } });
        let got = client.call("trunkline_get_prompt", arguments).await;
        assert_eq!(got["result"]["content"][1]["text"], "What's weather in Rome?", "{got}");
    }
    let uri = json!({ "uri": address }).to_string();
    for (mut client, era) in [
        (peers::node_client("list_and_call.mjs"), None),
        (peers::python_client("list_and_call.py"), None),
        (peers::python_client("list_and_call.py"), Some("legacy")),
    ] {
        client.arg(gateway.url()).args(["trunkline_read_resource", &uri]).args(era);
        let report: Value = serde_json::from_str(&peers::run(client).await).unwrap();
        let text = report["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("# Everything Server"), "{report}");
    }
    gateway.end().await;
}
