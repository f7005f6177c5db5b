//! Request handling of the demo servers, without a transport.

use serde_json::{Value, json};
use trunkline_gateway::demo::DemoServer::{self, Numbers, Words};

use crate::support::demo_server::{MODERN, ask, legacy, modern};

#[test]
fn servers_are_found_by_the_names_they_have() {
    for server in DemoServer::ALL {
        assert_eq!(DemoServer::from_name(server.name()), Some(server));
    }
    assert_eq!(DemoServer::from_name("Words"), None);
}

#[test]
fn initialize_returns_server_info() {
    let asked = legacy("initialize", &json!({ "protocolVersion": "2025-06-18" }));
    assert_eq!(
        ask(Words, &asked),
        json!({ "jsonrpc": "2.0", "id": 1, "result": {
            "protocolVersion": "2025-06-18",
            "capabilities": { "tools": {} },
            "serverInfo": {
                "name": "trunkline-demo-words",
                "title": "Trunkline demo: words",
                "version": env!("CARGO_PKG_VERSION"),
            },
            "instructions": "Count the words of a text, shout it, or keep it for later.",
        } })
    );
}

#[test]
fn initialize_accepts_legacy_versions_and_offers_the_newest_otherwise() {
    let agreed = |version: &str| {
        let answer = ask(Numbers, &legacy("initialize", &json!({ "protocolVersion": version })));
        answer["result"]["protocolVersion"].as_str().unwrap().to_owned()
    };
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(agreed(version), version);
    }
    for version in [MODERN, "1999-01-01", ""] {
        assert_eq!(agreed(version), "2025-11-25");
    }
}

#[test]
fn notifications_and_stray_responses_get_no_answer() {
    for message in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#,
    ] {
        assert_eq!(Words.answer(message), None, "{message}");
    }
}

#[test]
fn ids_come_back_to_the_letter() {
    // More than any integer type holds.
    let huge = "1".repeat(100);
    for id in ["0", "-7", "9007199254740993", &huge, r#""\u0061 b""#] {
        let message = format!(r#"{{"jsonrpc":"2.0","id": {id} ,"method":"ping"}}"#);
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        assert_eq!(Words.answer(&message), Some(expected));
    }
}

fn error(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    (error["code"].as_i64().expect("an error"), error["message"].as_str().unwrap())
}

#[test]
fn invalid_json_is_a_parse_error_without_an_id() {
    for message in ["", "{", "hello", r#"{"jsonrpc":"2.0","id":1,"#, "[1,"] {
        let answer = ask(Words, message);
        assert_eq!(error(&answer).0, -32_700, "{message}");
        assert!(answer["id"].is_null());
    }
}

#[test]
fn invalid_json_rpc_is_an_invalid_request_with_a_reason() {
    for (message, mistake) in [
        ("1", "a JSON object"),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "batches"),
        ("[]", "batches"),
        (r#"{"id":1,"method":"ping"}"#, "`jsonrpc`"),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, "`jsonrpc`"),
        (r#"{"jsonrpc":"2.0","id":1}"#, "`method` is missing"),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "`method` must be"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "`id`"),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, "`id`"),
        (r#"{"jsonrpc":"2.0","id":[],"method":"ping"}"#, "`id`"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, "duplicate"),
    ] {
        let answer = ask(Words, message);
        let (code, text) = error(&answer);
        assert_eq!(code, -32_600, "{message}");
        assert!(text.contains(mistake), "{message}: {text}");
    }
}

#[test]
fn an_invalid_request_keeps_an_id_that_could_be_read() {
    assert_eq!(ask(Words, r#"{"jsonrpc":"2.0","id":"x","method":7}"#)["id"], "x");
    assert!(ask(Words, r#"{"jsonrpc":"2.0","id":{},"method":7}"#)["id"].is_null());
}

#[test]
fn parameters_that_are_no_object_are_invalid() {
    assert_eq!(error(&ask(Words, &legacy("tools/list", &json!([])))).0, -32_602);
}

#[test]
fn methods_of_the_other_generation_are_unknown() {
    for message in [
        legacy("resources/list", &json!({})),
        modern(MODERN, "initialize", json!({})),
        modern(MODERN, "ping", json!({})),
        modern(MODERN, "subscriptions/listen", json!({})),
    ] {
        assert_eq!(error(&ask(Words, &message)).0, -32_601, "{message}");
    }
}

#[test]
fn discover_returns_versions_and_a_ttl() {
    let answer = ask(Numbers, &modern(MODERN, "server/discover", json!({})));
    assert_eq!(
        answer["result"],
        json!({
            "resultType": "complete",
            "supportedVersions":
                ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
            "capabilities": { "tools": {} },
            "instructions": "Add numbers, roll a die, or convert a temperature.",
            "ttlMs": 60_000,
            "cacheScope": "public",
            "_meta": { "io.modelcontextprotocol/serverInfo": {
                "name": "trunkline-demo-numbers",
                "title": "Trunkline demo: numbers",
                "version": env!("CARGO_PKG_VERSION"),
            } },
        })
    );
}

#[test]
fn results_have_the_form_of_the_client_era() {
    let listed = &ask(Words, &modern(MODERN, "tools/list", json!({})))["result"];
    assert_eq!(listed["resultType"], "complete");
    assert_eq!((&listed["ttlMs"], &listed["cacheScope"]), (&json!(60_000), &json!("public")));
    let called = &ask(
        Words,
        &modern(MODERN, "tools/call", json!({ "name": "shout", "arguments": { "text": "a" } })),
    )["result"];
    assert_eq!(called["resultType"], "complete");
    assert_eq!(called["ttlMs"], Value::Null);
    let legacy = &ask(Words, &legacy("tools/list", &json!({})))["result"];
    assert_eq!(legacy.as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"]);
}

#[test]
fn a_modern_request_must_declare_version_and_capabilities() {
    let version = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": MODERN } });
    let capabilities = json!({ "_meta": { "io.modelcontextprotocol/clientCapabilities": {} } });
    for (method, params, missing) in [
        ("server/discover", json!({}), "protocolVersion"),
        ("tools/list", version, "clientCapabilities"),
        ("tools/list", capabilities, "protocolVersion"),
    ] {
        let answer = ask(Words, &legacy(method, &params));
        let (code, text) = error(&answer);
        assert_eq!(code, -32_602);
        assert!(text.contains(missing), "{text}");
    }
}

#[test]
fn a_version_that_is_not_spoken_is_refused_with_those_that_are() {
    for version in ["2099-01-01", "2025-11-25"] {
        let answer = ask(Words, &modern(version, "tools/list", json!({})));
        assert_eq!(error(&answer).0, -32_022);
        assert_eq!(answer["error"]["data"]["requested"], version);
        assert_eq!(answer["error"]["data"]["supported"][0], MODERN);
    }
}

#[test]
fn other_metadata_does_not_make_a_request_modern() {
    let answer = ask(Words, &legacy("ping", &json!({ "_meta": { "progressToken": 1 } })));
    assert_eq!(answer["result"], json!({}));
}
