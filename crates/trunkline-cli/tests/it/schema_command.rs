//! `trunkline schema`, checked with third-party validators.

use std::path::Path;

use serde_json::json;
use tokio::process::Command;
use trunkline_testkit::{peers, samples};

use crate::support::program::Folder;

#[test]
fn it_is_a_schema_that_accepts_a_configuration_and_refuses_a_wrong_one() {
    let schema = Folder::new().run(&["schema"]).json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let good: serde_json::Value = serde_json::from_str(samples::TOOLLOOP.text).unwrap();
    assert!(validator.is_valid(&good));
    assert!(!validator.is_valid(&json!({ "mcpServers": { "s": { "command": 1 } } })));
}

/// Whether a validator in another language accepts a document.
async fn accepts(mut validator: Command, schema: &Path, document: &Path) -> bool {
    validator.arg(schema).arg(document);
    peers::run(validator).await.trim() == "valid"
}

#[tokio::test]
async fn validators_of_other_languages_agree() {
    let schema = Folder::new().run(&["schema"]).output;
    let folder = Folder::new()
        .file("schema.json", schema)
        .file("good.json", samples::TOOLLOOP.text)
        .file("bad.json", r#"{ "mcpServers": { "s": { "command": 1 } } }"#);
    let path = |name: &str| folder.project().join(name);
    for (document, expected) in [("good.json", true), ("bad.json", false)] {
        let (schema, document) = (path("schema.json"), path(document));
        let ajv = peers::node_client("validate.mjs");
        assert_eq!(accepts(ajv, &schema, &document).await, expected, "ajv");
        let jsonschema = peers::python_client("validate.py");
        assert_eq!(accepts(jsonschema, &schema, &document).await, expected, "jsonschema");
    }
}
