//! CFG-11: the schema accepts everything that the decoder accepts, and rejects clear mistakes.

use serde_json::{Value, json};
use trunkline::config;
use trunkline_testkit::samples;

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&config::schema()).expect("the schema is a schema")
}

/// A sample as plain JSON, without comments and trailing commas, which the validator does not
/// support.
fn plain_json(text: &str) -> Value {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut pieces = text.split(',');
    let mut plain = pieces.next().unwrap().to_owned();
    for piece in pieces {
        if !piece.trim_start().starts_with(['}', ']']) {
            plain.push(',');
        }
        plain.push_str(piece);
    }
    serde_json::from_str(&plain).expect("the sample is JSON")
}

#[test]
fn it_is_valid_against_its_own_meta_schema() {
    assert!(jsonschema::meta::is_valid(&config::schema()));
}

#[test]
fn every_sample_validates() {
    let validator = validator();
    for sample in samples::ALL {
        let errors: Vec<_> = validator
            .iter_errors(&plain_json(sample.text))
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, Vec::<String>::new(), "{}", sample.file);
    }
}

#[test]
fn plain_mistakes_do_not_validate() {
    let validator = validator();
    let server = |entry: Value| json!({ "mcpServers": { "s": entry } });
    for wrong in [
        json!([]),
        json!({ "mcpServers": [] }),
        server(json!({})),
        server(json!({ "args": [] })),
        server(json!({ "command": 1 })),
        server(json!({ "command": "x", "args": "y" })),
        server(json!({ "command": "x", "env": { "A": [] } })),
        server(json!({ "command": "x", "access": "write" })),
        server(json!({ "command": "x", "timeouts": { "call": "soon" } })),
        server(json!({ "command": "x", "concurrency": 0 })),
        server(json!({ "url": "https://x/", "type": "gopher" })),
        json!({ "bundles": { "b": { "serverId": "s", "mode": "indirect" } } }),
        json!({ "bundles": { "b": { "mode": "direct" } } }),
        server(json!({ "command": "x", "allowTools": [] })),
        server(json!({ "command": "x", "prefix": "a b" })),
        server(json!({ "url": "https://x/", "type": "ws" })),
        json!({ "separator": "::" }),
        json!({ "naming": { "maxLength": 5 } }),
        json!({ "mcpServers": { "": { "command": "x" } } }),
        json!({ "naming": { "describeServer": "yes" } }),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn unknown_keys_validate_as_they_are_only_hinted_at() {
    let text = json!({ "mcpServers": { "s": { "command": "x", "custom": 1 } }, "custom": 2 });
    assert!(validator().is_valid(&text));
}

#[test]
fn every_key_is_described_for_editors() {
    let schema = config::schema();
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        let properties = definition["properties"].as_object();
        for (key, property) in properties.into_iter().flatten() {
            let text = property["description"].as_str().unwrap_or_default();
            assert!(text.ends_with('.'), "{name}.{key}: {text:?}");
        }
    }
}
