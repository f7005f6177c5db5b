//! JSON Schemas of the documents that commands print with `--format json`, one per command.

mod keywords;
mod definitions;
mod lists;
mod results;
mod configuration;
mod files;
mod access;
mod service;

use serde_json::{Map, Value, json};

/// The version of all documents. Within a version fields are added, and never removed or changed.
pub(crate) const SCHEMA_VERSION: u64 = 1;

/// The key of the version in a document.
pub(crate) const SCHEMA_VERSION_KEY: &str = "schemaVersion";

/// Documents of a command, any of which it may print.
type Documents = fn() -> Vec<Value>;

/// The commands that print JSON, with the documents of each.
const COMMANDS: &[(&str, Documents)] = &[
    ("add", files::change),
    ("call", results::call),
    ("check", configuration::check),
    ("complete", results::complete),
    ("config", configuration::config),
    ("demo", results::demo),
    ("disable", access::toggles),
    ("down", service::down),
    ("enable", access::toggles),
    ("explain", lists::explain),
    ("import", files::import),
    ("init", files::change),
    ("install", files::install),
    ("login", access::login),
    ("logout", access::logout),
    ("logs", service::logs),
    ("man", files::man),
    ("page", service::page),
    ("prompt", results::prompt),
    ("prompts", lists::prompts),
    ("ps", service::ps),
    ("read", results::read),
    ("remove", files::change),
    ("resources", lists::resources),
    ("restart", service::restart),
    ("search", lists::search),
    ("secret", access::secret),
    ("serve", service::serve),
    ("skill", lists::skill),
    ("status", configuration::status),
    ("token", access::token),
    ("tokens", lists::tokens),
    ("tool", results::tool),
    ("tools", lists::tools),
    ("trust", access::trust),
    ("types", lists::types),
    ("uninstall", files::install),
    ("up", service::up),
];

/// The names of the commands that print JSON.
pub(crate) fn commands() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|(name, _)| *name)
}

/// The schema of the JSON output of a command.
pub(crate) fn of_command(command: &str) -> Option<Value> {
    let (_, documents) = COMMANDS.iter().find(|(name, _)| *name == command)?;
    let mut documents = documents();
    documents.push(keywords::reference("error"));
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("trunkline {command} --format json"),
        "anyOf": documents,
    });
    let mut used = Map::new();
    add_definitions(&schema, &mut used);
    schema["$defs"] = used.into();
    Some(schema)
}

/// Adds the definitions that a schema refers to, also indirectly.
fn add_definitions(schema: &Value, used: &mut Map<String, Value>) {
    match schema {
        Value::Object(members) => {
            let name = members.get("$ref").and_then(Value::as_str);
            let name = name.and_then(|it| it.strip_prefix(keywords::DEFINITIONS));
            if let Some(name) = name.filter(|name| !used.contains_key(*name)) {
                let definition = definitions::named(name);
                used.insert(name.to_owned(), definition.clone());
                add_definitions(&definition, used);
            }
            members.values().for_each(|member| add_definitions(member, used));
        }
        Value::Array(items) => items.iter().for_each(|item| add_definitions(item, used)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_valid_and_names_its_definitions() {
        for command in commands() {
            let schema = of_command(command).unwrap();
            assert!(jsonschema::validator_for(&schema).is_ok(), "{command}: {schema:#}");
            for (name, definition) in schema["$defs"].as_object().unwrap() {
                assert!(definition.is_object(), "{command}: {name} is not defined");
            }
        }
    }

    #[test]
    fn a_document_of_another_version_is_refused() {
        let validator = jsonschema::validator_for(&of_command("down").unwrap()).unwrap();
        assert!(validator.is_valid(&json!({ "schemaVersion": 1, "ended": null })));
        assert!(validator.is_valid(&json!({ "schemaVersion": 1, "ended": null, "later": 1 })));
        assert!(!validator.is_valid(&json!({ "schemaVersion": 2, "ended": null })));
        assert!(!validator.is_valid(&json!({ "ended": null })));
    }
}
