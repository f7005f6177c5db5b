//! Tests of truncated messages.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn shortened(message: &str, budget: usize) -> Option<(Value, usize)> {
    let mut truncator = MessageTruncator::new(budget);
    for part in message.as_bytes().chunks(7) {
        truncator.push(part);
    }
    let short = truncator.finish()?;
    let text = std::str::from_utf8(&short.line).unwrap();
    assert_eq!(text.len() + short.missing, message.len());
    Some((serde_json::from_str(text).unwrap_or_else(|it| panic!("{it}: {text}")), short.missing))
}

fn answer(result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 7, "result": result }).to_string()
}

#[test]
fn long_text_is_truncated_and_the_rest_is_kept() {
    let result = json!({ "content": [{ "text": "ä".repeat(5000), "type": "text", "annotations": { "priority": 1 } }],
        "isError": true, "structuredContent": { "a": "y".repeat(9000) } });
    let (short, missing) = shortened(&answer(&result), 1000).unwrap();
    let block = &short["result"]["content"][0];
    assert!(block["text"].as_str().unwrap().chars().all(|it| it == 'ä'));
    assert_eq!((&block["type"], &block["annotations"]["priority"]), (&json!("text"), &json!(1)));
    assert_eq!((&short["id"], &short["result"]["isError"]), (&json!(7), &json!(true)));
    assert!(short["result"].get("structuredContent").is_none() && missing > 17_000);
}

/// Seen: a large image made a tool unusable, because all content after it was lost.
#[test]
fn blobs_beyond_the_budget_are_emptied_and_the_rest_is_kept() {
    let image =
        |size: usize| json!({ "type": "image", "mimeType": "image/png", "data": "A".repeat(size) });
    let later = json!({ "type": "text", "text": "later" });
    let result = json!({ "content": [image(300), image(5000), image(10), later] });
    let (short, _) = shortened(&answer(&result), 1000).unwrap();
    let kept = json!([image(300), image(0), image(10), later]);
    assert_eq!(short["result"]["content"], kept);
    let resource =
        json!({ "type": "resource", "resource": { "blob": "A".repeat(5000), "uri": "x:a" } });
    let (short, _) = shortened(&answer(&json!({ "content": [resource, later] })), 1000).unwrap();
    let kept = json!([{ "type": "resource", "resource": { "blob": "", "uri": "x:a" } }, later]);
    assert_eq!(short["result"]["content"], kept);
    // The `id` is at the end as well.
    let message = format!(r#"{{"result":{result},"jsonrpc":"2.0","id":7}}"#);
    assert_eq!(shortened(&message, 1000).unwrap().0["id"], json!(7));
}

#[test]
fn other_members_take_no_room_of_content() {
    let content = json!([{ "type": "text", "text": "x".repeat(90_000) }]);
    for (key, size) in
        [("_meta", 20_000), ("_meta", 900_000), ("structuredContent", 900_000), ("z", 900_000)]
    {
        let member = json!({ "a": "y".repeat(size) });
        let message = format!(r#"{{"id":7,"result":{{"{key}":{member},"content":{content}}}}}"#);
        let (short, _) = shortened(&message, 100_000).unwrap();
        assert_eq!(short["result"], json!({ "content": content }), "{key} {size}");
    }
    let many: Vec<_> = (0..20_000).map(|number| json!({ "n": number.to_string() })).collect();
    let message = format!(
        r#"{{"id":7,"result":{{"structuredContent":{{"data":{}}},"content":{content}}}}}"#,
        json!(many)
    );
    assert_eq!(shortened(&message, 100_000).unwrap().0["result"], json!({ "content": content }));
}

#[test]
fn white_space_between_tokens_is_not_missing() {
    let space = " \t\r\n".repeat(1000);
    let block = format!(r#"{{{space}"type"{space}:{space}"text",{space}"text":"a  b"{space}}}"#);
    let message = format!(
        r#"{space}{{{space}"id":{space}1{space},{space}"result":{space}{{"content":{space}[{block}{space}]}}}}{space}"#
    );
    let mut truncator = MessageTruncator::new(1000);
    truncator.push(message.as_bytes());
    let short = truncator.finish().unwrap();
    assert_eq!(short.missing, 0);
    let kept: Value = serde_json::from_slice(&short.line).unwrap();
    assert_eq!(kept, serde_json::from_str::<Value>(&message).unwrap());
    let mut truncator = MessageTruncator::new(1000);
    truncator.push(br#"{"id":1,"result":{"a":[[1 2]]}}"#);
    let short = truncator.finish().unwrap();
    assert!(serde_json::from_slice::<Value>(&short.line).is_err(), "{short:?}");
}

#[test]
fn other_results_keep_their_lists_too() {
    let read = json!({ "contents": [{ "text": "x".repeat(3000), "uri": "x://a" }, { "uri": "x://b", "text": "b" }] });
    let (short, _) = shortened(&answer(&read), 500).unwrap();
    assert_eq!(short["result"]["contents"].as_array().unwrap().len(), 1);
    assert_eq!(short["result"]["contents"][0]["uri"], "x://a");
    let said = json!({ "messages": [{ "content": { "text": "x".repeat(3000), "type": "text" }, "role": "user" }] });
    let (short, _) = shortened(&answer(&said), 500).unwrap();
    assert_eq!(short["result"]["messages"][0]["role"], "user");
}

#[test]
fn invalid_message_is_not_truncated() {
    for text in ["[{}]", "hello", "{]", r#"{"a":[}"#, r#"{"a":{"b":1}"#, r#"{"a":1} x"#, "7", ""] {
        assert_eq!(shortened(text, 1), None, "{text}");
    }
    let deep = format!(r#"{{"a":{{"b":{}1{}}}}}"#, "[".repeat(5000), "]".repeat(5000));
    assert_eq!(shortened(&deep, 10), None);
}

/// A server may send without end; the kept part is limited.
#[test]
fn truncated_message_is_bounded() {
    let mut truncator = MessageTruncator::new(10_000);
    truncator.push(br#"{"id":1,"result":{"content":["#);
    for number in 0..100_000 {
        truncator.push(format!(r#"{{"type":"text","text":"{number}"}},"#).as_bytes());
    }
    truncator.push(br#"{}],"#);
    for number in 0..100_000 {
        truncator.push(format!(r#""{number}":"{number}","#).as_bytes());
        assert!(truncator.kept.len() < 10_000 + 2 * MAX_LATE_BYTES);
    }
    truncator.push(br#""z":0}}"#);
    let short = truncator.finish().unwrap();
    serde_json::from_slice::<Value>(&short.line).unwrap();
    assert!(short.missing > 1_000_000);
}

/// Any JSON value.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,40}".prop_map(Value::from),
        "[\u{0}-\u{20}\"\\\\😀ä]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("text|type|[a-c\"\\\\]{0,3}", inner, 0..6)
                .prop_map(Value::from_iter),
        ]
    })
}

proptest! {
    /// With any budget, the output is valid JSON, and complete if the budget suffices.
    #[test]
    fn truncated_message_is_json(result in value(), budget in 0_usize..400, ascii in any::<bool>()) {
        let mut message = json!({ "id": 1, "result": result }).to_string();
        if ascii {
            // Like programs that escape all characters outside of ASCII.
            message = message.chars().fold(String::new(), |mut text, it| {
                if it.is_ascii() { text.push(it); } else {
                    it.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
                }
                text
            });
        }
        let (short, _) = shortened(&message, budget).unwrap();
        prop_assert_eq!(&short["id"], &json!(1));
        let (whole, missing) = shortened(&message, message.len()).unwrap();
        prop_assert_eq!(whole, serde_json::from_str::<Value>(&message).unwrap());
        prop_assert_eq!(missing, 0);
    }
}
