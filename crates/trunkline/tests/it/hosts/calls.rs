//! Limits, trust and names: the processing of calls by a host.

use futures_util::FutureExt as _;
use serde_json::json;
use trunkline::call::{CallErrorKind, CallOptions, Completion, CompletionRef};
use trunkline::connection::ServerRequest;
use trunkline::error::ErrorKind;
use trunkline::item::ItemKind;
use trunkline::message::Raw;
use trunkline::policy::{CallerSpec, Toggle, Toggles};
use trunkline::protocol::meta::UNTRUSTED;
use trunkline::view::DescriptionStyle;
use trunkline_testkit::peers;

use super::{Caller, call, call_with, gather, host_of, host_with, tools, view};
use crate::support::file_driven_server::{Folder, params, poll_until, within};

/// A directory whose server has another tool, `say`, with this result.
fn saying(result: &str) -> Folder {
    let folder = Folder::new();
    folder.write("tools", "say");
    folder.write("say.json", result);
    folder
}

/// CALL-4: white space, unknown keys and the form of numbers are preserved.
#[tokio::test]
async fn a_result_is_not_written_anew() {
    let result = r#"{ "content" : [ {"type":"audio","data":"AAAA","mimeType":"audio/wav"},
        {"type":"hologram","z":1.0} ], "later":1e2, "_meta":{"k":[ ]}, "isError":false }"#;
    let result = result.replace('\n', " ");
    let folder = saying(&result);
    let host = host_of(&json!({ "s": folder.server("legacy", &json!({})) }));
    gather(&host, &[ItemKind::Tool]).await;
    let outcome = call(&host, "s_say", &json!({})).await.unwrap();
    assert_eq!(outcome.result.text(), result);
    assert_eq!(outcome.text(), "[audio: audio/wav, 3 bytes]\n[hologram]");
    within(host.shutdown()).await;
}

/// CALL-3: a result may have any other key. Seen: with `messages` it was read as a prompt, and
/// printed `(no output)`.
#[tokio::test]
async fn the_text_of_a_tool_result_does_not_depend_on_keys_of_other_methods() {
    for key in ["messages", "completion", "contents", "description"] {
        let folder = saying(&format!(
            r#"{{"{key}":[],"content":[{{"type":"text","text":"called"}}],"resultType":"task"}}"#
        ));
        let host = host_of(&json!({ "s": folder.server("legacy", &json!({})) }));
        gather(&host, &[ItemKind::Tool]).await;
        assert_eq!(call(&host, "s_say", &json!({})).await.unwrap().text(), "called", "{key}");
        within(host.shutdown()).await;
    }
}

/// CALL-5: a response of more than 16 MiB is truncated while it is read, with the usual note. It
/// failed before.
#[tokio::test]
async fn an_answer_that_is_longer_than_a_message_may_be_is_cut() {
    let (long, image) = ("ä".repeat(10_000_000), "A".repeat(1_000_000));
    let block = format!(r#"{{"type":"image","mimeType":"image/png","data":"{image}"}}"#);
    let blocks = vec![block.as_str(); 20].join(",");
    for (content, begin) in [
        (format!(r#"{{"type":"text","text":"{long}"}}"#), "äää"),
        (blocks, "[image: image/png, 750000 bytes]"),
    ] {
        let folder = saying(&format!(r#"{{"content":[{content}],"isError":true,"later":1}}"#));
        let host = host_of(&json!({ "s": folder.server("legacy", &json!({})) }));
        gather(&host, &[ItemKind::Tool]).await;
        let outcome = call(&host, "s_say", &json!({})).await.unwrap();
        assert!(outcome.is_error && outcome.missing > 14_000_000, "{}", outcome.missing);
        assert!(outcome.result.bytes().len() <= 5 * 1024 * 1024);
        assert_eq!(outcome.result.get("later").unwrap().text(), "1");
        let text = outcome.text();
        assert!(text.starts_with(begin));
        let note = text.lines().last().unwrap();
        assert!(
            note.starts_with("[cut at `maxResultBytes`: ") && note.ends_with("missing]"),
            "{note}"
        );
        // The server still runs.
        assert_eq!(call(&host, "s_started", &json!({})).await.unwrap().text(), "1");
        within(host.shutdown()).await;
    }
}

/// CALL-2: an invalid result is a failure of the server, not a success without output.
#[tokio::test]
async fn non_object_result_is_an_error() {
    for nonsense in ["[1,2]", "7", "null"] {
        let folder = saying(nonsense);
        let host = host_of(&json!({ "s": folder.server("legacy", &json!({})) }));
        gather(&host, &[ItemKind::Tool]).await;
        let error = call(&host, "s_say", &json!({})).await.unwrap_err();
        assert_eq!(
            error.kind(),
            CallErrorKind::Failed(ErrorKind::ProtocolViolation),
            "{nonsense}: {error}"
        );
        within(host.shutdown()).await;
    }
}

/// SEC-2: error messages that quote a server mask secrets from its configuration. The original
/// error is available for forwarding.
#[tokio::test]
async fn refusal_does_not_repeat_secrets() {
    let folder = Folder::new();
    folder.write("tools", "tell");
    let env = json!({ "env": { "TOKEN": "sup3rS3cretTOKEN" } });
    let host = host_of(&json!({ "s": folder.server("legacy", &env) }));
    gather(&host, &[ItemKind::Tool]).await;
    let error = call(&host, "s_tell", &json!({})).await.unwrap_err();
    assert_eq!(error.to_string(), "server `s` says: bad token *** (-32000)");
    assert_eq!(error.refusal().unwrap().message(), "bad token sup3rS3cretTOKEN");
    within(host.shutdown()).await;
}

/// TOOL-12: a server without completion gets no request, and that is not an error.
#[tokio::test]
async fn server_without_completions_gets_no_request() {
    let folder = Folder::new();
    folder.write("prompts", "greet");
    let host = host_of(&json!({ "s": folder.server("legacy", &json!({})) }));
    gather(&host, &[ItemKind::Prompt]).await;
    let of = CompletionRef::Prompt("s_greet");
    let completion = Completion { of, argument: "name", value: "A", known: None };
    let outcome = within(host.complete(&view(&host), &completion, CallOptions::default())).await;
    assert_eq!(outcome.unwrap().result.text(), r#"{"completion":{"values":[]}}"#);
    assert_eq!(folder.asked("completion/complete"), 0);
    within(host.shutdown()).await;
}

/// CALL-5: a result above the limit is truncated, with a note.
#[tokio::test]
async fn a_result_is_cut_to_its_bound() {
    let text = "ä".repeat(5_000);
    let folder = saying(&json!({ "content": [{ "type": "text", "text": text }] }).to_string());
    let server = folder.server("legacy", &json!({ "maxResultBytes": 2_000 }));
    let host = host_of(&json!({ "s": server }));
    gather(&host, &[ItemKind::Tool]).await;
    let outcome = call(&host, "s_say", &json!({})).await.unwrap();
    assert!(outcome.result.bytes().len() <= 2_000 && outcome.missing > 8_000);
    assert!(outcome.text().contains("bytes are missing]"), "{}", outcome.text());
    within(host.shutdown()).await;
}

/// CALL-7: with one slot, the second call is made when the first has ended. The first never ends on
/// its own; a request that bypasses the host shows that the second would have arrived.
#[tokio::test]
async fn calls_wait_for_their_slot() {
    let folder = Folder::new();
    let host = host_of(&json!({ "s": folder.server("legacy", &json!({ "concurrency": 1 })) }));
    gather(&host, &[ItemKind::Tool]).await;
    let connection = host.servers().get("s").unwrap();
    let past = || connection.request("tools/call", params("work", &json!({})));
    let nothing = json!({});
    let mut first = Box::pin(call(&host, "s_wait", &nothing));
    assert!(first.as_mut().now_or_never().is_none());
    within(past()).await.unwrap();
    assert_eq!(folder.called("wait"), 1);
    let mut second = Box::pin(call(&host, "s_started", &nothing));
    assert!(second.as_mut().now_or_never().is_none());
    within(past()).await.unwrap();
    assert_eq!(folder.called("started"), 0);
    drop(first);
    assert_eq!(second.await.unwrap().text(), "1");
    // The cancellation may be sent after the other call.
    poll_until(async || folder.asked("notifications/cancelled") > 0).await;
    within(host.shutdown()).await;
}

/// TOOL-10: without an allow-list no tool of an untrusted server is shown; results are marked.
#[tokio::test]
async fn untrusted_server_shows_allowed_tools_with_marks() {
    let hostile = json!({ "content": [{ "type": "text", "text": "do \u{1b}[2Jthis\u{200b}" }] });
    let folder = saying(&hostile.to_string());
    let shy = folder.server("legacy", &json!({ "trust": "untrusted" }));
    let bold = folder.server("legacy", &json!({ "trust": "untrusted", "allowTools": ["say"] }));
    let host = host_of(&json!({ "shy": shy, "bold": bold }));
    gather(&host, &[ItemKind::Tool]).await;
    assert_eq!(tools(&view(&host)), ["bold_say"]);
    let unknown = call(&host, "shy_say", &json!({})).await.unwrap_err();
    assert_eq!(unknown.kind(), CallErrorKind::Unknown);
    let outcome = call(&host, "bold_say", &json!({})).await.unwrap();
    let meta = outcome.result.get("_meta").unwrap();
    assert_eq!(meta.get(UNTRUSTED).unwrap().as_bool(), Some(true));
    let text = outcome.text();
    assert!(text.starts_with("[content of the untrusted server `bold`, up to "));
    assert!(!text.contains(['\u{1b}', '\u{200b}']), "{text:?}");
    within(host.shutdown()).await;
}

/// TOOL-10: notifications and requests of an untrusted server during a call are sanitized as well.
#[tokio::test]
async fn notifications_of_an_untrusted_server_are_sanitized() {
    for (trust, expected) in [("trusted", "a\u{200b}b"), ("untrusted", "ab")] {
        let folder = Folder::new();
        folder.write("word", "a\u{200b}b");
        let more = json!({ "trust": trust, "allowTools": ["work", "ask"] });
        let host = host_of(&json!({ "s": folder.server("legacy", &more) }));
        gather(&host, &[ItemKind::Tool]).await;
        let caller = Caller::answering([("elicitation/create", json!({ "action": "decline" }))]);
        call_with(&host, "s_work", &json!({}), caller.options()).await.unwrap();
        let heard = caller.told.lock().unwrap().last().unwrap().params.clone().unwrap();
        assert_eq!(heard.get("data").unwrap().as_str().unwrap(), expected);
        call_with(&host, "s_ask", &json!({}), caller.options()).await.unwrap();
        let asked = caller.asked.lock().unwrap().concat();
        assert!(asked.contains("elicitation/create"), "{asked}");
        within(host.shutdown()).await;
    }
}

/// A caller can follow the links that a server passes to its model, whatever other servers there
/// are; those of an untrusted server are sanitized as well.
#[tokio::test]
async fn resource_links_in_sampling_requests_have_exposed_uris() {
    let link = |uri: &str| json!({ "type": "resource_link", "uri": uri, "name": "a\u{200b}b" });
    let messages = json!([
        { "role": "user", "content": link("x://notes") },
        { "role": "user", "content": [
            { "type": "text", "text": "x://notes" },
            { "type": "resource", "resource": { "uri": "x://day/7", "text": "seven" } },
        ] },
    ]);
    let request = json!({
        "method": "sampling/createMessage",
        "params": { "messages": messages, "maxTokens": 1 },
    });
    // Another server has the same URIs, so that only the exposed ones say which server is meant.
    let resources =
        ["x://notes", "x://day/7"].map(|uri| json!({ "uri": uri, "name": "of the other" }));
    for (generation, trust, name) in [
        ("legacy", "trusted", "a\u{200b}b"),
        ("modern", "trusted", "a\u{200b}b"),
        ("legacy", "untrusted", "ab"),
        ("modern", "untrusted", "ab"),
    ] {
        let (folder, other) = (Folder::new(), Folder::new());
        folder.write("server-request", &request.to_string());
        other.write("resources.list.json", &json!({ "resources": resources }).to_string());
        let mut other_entry = other.server("legacy", &json!({}));
        other_entry["args"][1] = json!(peers::canned_server());
        let more = json!({ "trust": trust, "allowTools": ["ask"] });
        let host = host_of(&json!({
            "s": folder.server(generation, &more),
            "other": other_entry,
        }));
        gather(&host, &[ItemKind::Tool, ItemKind::Resource]).await;
        let caller = Caller::answering([("sampling/createMessage", json!({}))]);
        call_with(&host, "s_ask", &json!({}), caller.options()).await.unwrap();
        let requests = std::mem::take(&mut *caller.requests.lock().unwrap());
        let [ServerRequest { params: Some(params), .. }] = &*requests else {
            panic!("{requests:?}")
        };
        let seen = params.as_value().unwrap();
        let [first, second] = [&seen["messages"][0]["content"], &seen["messages"][1]["content"]];
        assert_eq!(first["uri"], "trunkline://s/x://notes", "{generation} {trust} {seen}");
        assert_eq!(first["name"], name, "{generation} {trust} {seen}");
        assert_eq!(second[0]["text"], "x://notes", "{generation} {trust} {seen}");
        assert_eq!(second[1]["resource"]["uri"], "trunkline://s/x://day/7", "{seen}");
        within(host.shutdown()).await;
    }
}

/// TOOL-3, TOOL-13: names of the host's native tools are reserved, and nothing else changes.
#[tokio::test]
async fn names_of_the_host_are_not_given_away() {
    let folder = Folder::new();
    let servers = json!({ "mcpServers": { "s": folder.server("legacy", &json!({})) } });
    let host = host_with(&servers, &["s_started"]);
    gather(&host, &[ItemKind::Tool]).await;
    let view = view(&host);
    let names = tools(&view);
    assert_eq!(names.len(), 6);
    assert!(!names.contains(&"s_started") && names.is_sorted());
    let renamed = view.entries(ItemKind::Tool).find(|entry| entry.name() == "started").unwrap();
    assert!(renamed.adjustment().is_some());
    let outcome = call(&host, renamed.exposed(), &json!({})).await.unwrap();
    assert_eq!((outcome.text(), outcome.server().unwrap().as_str()), ("1".to_owned(), "s"));
    let listed = view.list(ItemKind::Tool, host.description_style());
    let ask = r#"{"name": "s_ask", "inputSchema": {"type": "object"},"description":"[s]"}"#;
    assert_eq!(listed[0].text(), ask);
    let plain = view.list(ItemKind::Tool, DescriptionStyle::AsWritten);
    assert_eq!(plain[0].text(), r#"{"name": "s_ask", "inputSchema": {"type": "object"}}"#);
    within(host.shutdown()).await;
}

/// TOOL-6, TOOL-9, BUN-2: agents, bundles and toggles limit calls as they limit the list.
#[tokio::test]
async fn unlisted_tool_cannot_be_called() {
    let (one, two) = (Folder::new(), Folder::new());
    let host = host_with(
        &json!({
            "mcpServers": {
                "one": one.server("legacy", &json!({})),
                "two": two.server("legacy", &json!({})),
            },
            "agents": { "worker": { "tools": ["*", "!*_die"] } },
            "bundles": { "few": { "serverId": "one", "allowTools": ["work", "started"] } },
        }),
        &[],
    );
    gather(&host, &[ItemKind::Tool]).await;
    let worker = CallerSpec { agent: Some("worker"), ..CallerSpec::default() };
    let few = CallerSpec { bundles: &["few"], ..CallerSpec::default() };
    let mut switches = Toggles::default();
    switches.set(&host.config().server("two").unwrap().name, Toggle::Off);
    let alone = CallerSpec { switches, ..CallerSpec::default() };
    for (who, count, missing) in
        [(worker, 10, "one_die"), (few, 2, "one_ask"), (alone, 6, "two_work")]
    {
        let view = host.view(who).unwrap();
        assert_eq!(tools(&view).len(), count);
        let nothing = Raw::from_value(&json!({}));
        let refused = host.call(&view, missing, nothing.clone(), CallOptions::default());
        assert_eq!(within(refused).await.unwrap_err().kind(), CallErrorKind::Unknown);
        let called = host.call(&view, "one_started", nothing, CallOptions::default());
        assert_eq!(within(called).await.unwrap().text(), "1");
    }
    let unknown =
        host.view(CallerSpec { agent: Some("workers"), ..CallerSpec::default() }).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no agent `workers`; did you mean `worker`?");
    assert_eq!((one.called("die"), two.called("work")), (0, 0));
    within(host.shutdown()).await;
}

/// Invalid input is reported at once, and the server receives nothing.
#[tokio::test]
async fn invalid_input_is_reported_before_a_request() {
    let folder = Folder::new();
    let host = host_of(&json!({ "s": folder.server("legacy", &json!({})) }));
    gather(&host, &[ItemKind::Tool]).await;
    let unknown = call(&host, "s_wrok", &json!({})).await.unwrap_err();
    assert_eq!(unknown.to_string(), "there is no tool `s_wrok`; did you mean `s_work`?");
    let list = call(&host, "s_work", &json!([])).await.unwrap_err();
    assert_eq!(list.kind(), CallErrorKind::BadArguments);
    assert_eq!(folder.called("work"), 0);
    within(host.shutdown()).await;
}

/// Notifications and server requests reach the caller, in both eras.
#[tokio::test]
async fn handler_gets_notifications_and_requests_in_both_eras() {
    for generation in ["legacy", "modern"] {
        let folder = Folder::new();
        let host = host_of(&json!({ "s": folder.server(generation, &json!({})) }));
        gather(&host, &[ItemKind::Tool]).await;
        let answer = json!({ "action": "accept", "content": { "n": 7 } });
        let caller = Caller::answering([("elicitation/create", answer.clone())]);
        let asked = call_with(&host, "s_ask", &json!({}), caller.options()).await.unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&asked.text()).unwrap(), answer);
        call_with(&host, "s_work", &json!({}), caller.options()).await.unwrap();
        assert_eq!(caller.heard("notifications/progress"), 3, "{generation}");
        within(host.shutdown()).await;
    }
}
