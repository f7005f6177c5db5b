//! Checks the JSON output of every run against the schema that the program prints for its command.

use std::process::{Command, Output};

use serde_json::Value;

/// Checks the output of a command that was run with `--format json`. A field that the schema does not have is a mistake
/// too, although readers have to accept it.
pub(crate) fn check(command: &Command, output: &Output) {
    let arguments: Vec<_> = command.get_args().map(|it| it.to_string_lossy()).collect();
    let arguments = arguments.split(|it| it == "--").next().unwrap_or_default();
    let is_json = arguments.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json");
    if !is_json || output.stdout.is_empty() {
        return;
    }
    let Some(name) = arguments.iter().find(|it| is_command(it)) else { return };
    let name = if matches!(&**name, "ls" | "list") { "tools" } else { name };
    let stream = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let documents: Vec<Value> = stream.map(|it| it.expect("the output is JSON")).collect();
    let Some(schema) = schema(name) else { return };
    let validator = jsonschema::validator_for(&schema).unwrap();
    for document in &documents {
        let errors: Vec<_> = validator.iter_errors(document).map(|it| it.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}\n{document:#}");
    }
}

fn is_command(word: &str) -> bool {
    let is_word = word.chars().all(|it| it.is_ascii_lowercase() || it == '-');
    is_word && !word.starts_with('-') && word != "json"
}

/// The schema of the output of a command, without unknown fields.
fn schema(command: &str) -> Option<Value> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    let output = program.args(["schema", "--output", command]).output().unwrap();
    let mut schema =
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())?;
    refuse_unknown_fields(&mut schema);
    Some(schema)
}

fn refuse_unknown_fields(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(refuse_unknown_fields);
            let has_fields = members.get("properties").is_some_and(Value::is_object);
            if has_fields && members.get("type").is_some_and(|it| it == "object") {
                members.entry("additionalProperties").or_insert(false.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(refuse_unknown_fields),
        _ => {}
    }
}
