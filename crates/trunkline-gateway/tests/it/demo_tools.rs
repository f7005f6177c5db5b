//! The tools of the demo servers, without a transport: definitions and results.

use serde_json::{Value, json};
use trunkline_gateway::demo::DemoServer::{self, Numbers, Words};

use crate::support::demo_server::{ask, legacy};

fn call(server: DemoServer, name: &str, arguments: &Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    ask(server, &legacy("tools/call", &params))
}

fn text(server: DemoServer, name: &str, arguments: &Value) -> String {
    let answer = call(server, name, arguments);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

fn list(server: DemoServer) -> Vec<Value> {
    let answer = ask(server, &legacy("tools/list", &json!({})));
    answer["result"]["tools"].as_array().unwrap().clone()
}

#[test]
fn tools_are_listed_in_one_order() {
    let names = |server| -> Vec<String> {
        list(server).iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(Words), ["count_words", "shout", "remember"]);
    assert_eq!(names(Numbers), ["add", "roll", "convert"]);
}

#[test]
fn every_tool_has_a_title_a_description_and_a_closed_schema() {
    for tool in DemoServer::ALL.into_iter().flat_map(list) {
        assert!(tool["title"].is_string(), "{tool}");
        assert!(tool["description"].as_str().unwrap().ends_with('.'), "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
        for property in tool["inputSchema"]["properties"].as_object().unwrap().values() {
            assert!(property["description"].is_string(), "{tool}");
        }
    }
}

#[test]
fn a_tool_is_described_whole() {
    assert_eq!(
        list(Words)[0],
        json!({
            "name": "count_words",
            "title": "Count words",
            "description": "Count the words and the characters of a text.",
            "inputSchema": {
                "type": "object",
                "properties":
                    { "text": { "type": "string", "description": "The text to count in." } },
                "required": ["text"],
                "additionalProperties": false,
            },
            "outputSchema": {
                "type": "object",
                "properties": {
                    "words": { "type": "integer", "minimum": 0 },
                    "characters": { "type": "integer", "minimum": 0 },
                },
                "required": ["words", "characters"],
                "additionalProperties": false,
            },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        })
    );
}

#[test]
fn annotations_say_which_tools_only_read() {
    let hint = |tool: &Value| tool["annotations"]["readOnlyHint"].clone();
    let hints = |server| list(server).iter().map(hint).collect::<Vec<_>>();
    assert_eq!(hints(Words), [json!(true), Value::Null, json!(false)]);
    assert_eq!(hints(Numbers), [true, true, true]);
}

#[test]
fn words_and_characters_are_counted() {
    let answer = call(Words, "count_words", &json!({ "text": " one  two\nthrée " }));
    let counted = json!({ "words": 3, "characters": 16 });
    assert_eq!(answer["result"]["structuredContent"], counted);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), counted);
}

#[test]
fn shouting_is_in_capital_letters() {
    assert_eq!(text(Words, "shout", &json!({ "text": "hello, straße" })), "HELLO, STRASSE");
}

#[test]
fn remembering_counts_and_forgets_the_oldest_at_last() {
    let remember = || text(Words, "remember", &json!({ "text": "a" })).parse::<u32>().unwrap();
    let first = remember();
    assert_eq!(remember(), first + 1);
    for _ in 0..100 {
        remember();
    }
    assert_eq!(remember(), 100);
}

#[test]
fn numbers_are_added_whole_or_not() {
    let add = |a, b| text(Numbers, "add", &json!({ "a": a, "b": b }));
    assert_eq!(add(json!(9_007_199_254_740_993_u64), json!(1)), "9007199254740994");
    assert_eq!(add(json!(u64::MAX), json!(u64::MAX)), "36893488147419103230");
    assert_eq!(add(json!(1.5), json!(-2)), "-0.5");
}

#[test]
fn dice_show_one_of_their_sides() {
    for _ in 0..100 {
        let usual: u32 = text(Numbers, "roll", &json!({})).parse().unwrap();
        assert!((1..=6).contains(&usual));
        let coin: u32 = text(Numbers, "roll", &json!({ "sides": 2 })).parse().unwrap();
        assert!((1..=2).contains(&coin));
    }
}

#[test]
fn temperatures_are_converted() {
    let answer = call(Numbers, "convert", &json!({ "celsius": 100 }));
    assert_eq!(answer["result"]["structuredContent"], json!({ "fahrenheit": 212.0 }));
}

#[test]
fn invalid_arguments_return_an_error_result_with_the_expected_type() {
    for (server, name, arguments, expected) in [
        (Words, "count_words", json!({}), "missing field `text`; expected `text`, a string"),
        (Words, "shout", json!({ "text": 1 }), "expected `text`, a string"),
        (Words, "shout", json!({ "text": "", "loud": 1 }), "unknown field `loud`"),
        (Words, "remember", json!({ "text": "a".repeat(1001) }), "at most 1000 characters"),
        (Numbers, "add", json!({ "a": 1, "b": "2" }), "both numbers"),
        (Numbers, "add", json!({ "a": f64::MAX, "b": f64::MAX }), "the sum is too large"),
        (Numbers, "roll", json!({ "sides": 1 }), "an integer from 2 to 1000"),
        (Numbers, "roll", json!({ "sides": 2.5 }), "an integer from 2 to 1000"),
        (Numbers, "convert", json!({ "celsius": -300 }), "below absolute zero"),
        (Numbers, "convert", json!({ "celsius": f64::MAX }), "too large"),
    ] {
        let answer = call(server, name, &arguments);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_call_that_names_no_tool_of_the_server_is_invalid() {
    for params in [
        json!({ "name": "add", "arguments": {} }),
        json!({ "name": 1 }),
        json!({}),
        json!({ "name": "shout", "arguments": ["text"] }),
    ] {
        let answer = ask(Words, &legacy("tools/call", &params));
        assert_eq!(answer["error"]["code"], -32_602, "{answer}");
    }
}

#[test]
fn a_cursor_that_was_never_given_is_invalid() {
    let answer = ask(Words, &legacy("tools/list", &json!({ "cursor": "2" })));
    assert_eq!(answer["error"]["code"], -32_602);
}
