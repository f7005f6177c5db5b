//! Servers of `LibreChat`: `mcpServers` in YAML, by name. Also a configuration of Trunkline in YAML, which has
//! the same keys.

use super::nodes::{map_strings, variable};
use super::{SERVERS, Translator};
use crate::config::jsonc::{Node, ObjectMember, Value};

/// Settings of `LibreChat` beside its servers. All other keys at the top are read as Trunkline's own.
const SETTINGS: &[&str] = &[
    "actions",
    "balance",
    "cache",
    "endpoints",
    "fileConfig",
    "fileStrategy",
    "filteredTools",
    "imageOutputType",
    "includedTools",
    "interface",
    "mcpSettings",
    "memory",
    "modelSpecs",
    "ocr",
    "rateLimits",
    "registration",
    "secureImageLinks",
    "speech",
    "temporaryChatRetentionHours",
    "transactions",
    "turnstile",
    "version",
    "webSearch",
];

impl Translator<'_> {
    pub(super) fn librechat(&mut self, root: Node) -> Node {
        let Value::Object(members) = root.value else { return root };
        let kept = members.into_iter().filter(|it| !SETTINGS.contains(&&*it.key.text));
        let translate = |it: ObjectMember| match &*it.key.text {
            SERVERS => {
                let value = self.entries(it.value, Self::librechat_entry);
                ObjectMember { key: it.key, value }
            }
            _ => it,
        };
        Node { span: root.span, value: Value::Object(kept.map(translate).collect()) }
    }

    fn librechat_entry(&mut self, entry: Vec<ObjectMember>) -> Vec<ObjectMember> {
        let declared = entry.iter().find(|it| &*it.key.text == "customUserVars");
        let names = match declared.map(|it| &it.value.value) {
            Some(Value::Object(members)) => {
                members.iter().map(|it| it.key.text.to_string()).collect()
            }
            _ => Vec::new(),
        };
        let filled = |it: ObjectMember| match &*it.key.text {
            "command" | "args" | "env" | "url" | "headers" => {
                let value = map_strings(it.value, &|text| with_user_variables(text, &names));
                ObjectMember { key: it.key, value }
            }
            _ => it,
        };
        entry.into_iter().map(filled).collect()
    }
}

/// Replaces `{{NAME}}` of a declared variable, which each user of `LibreChat` enters, by a reference.
fn with_user_variables(text: &str, names: &[String]) -> String {
    let replace =
        |text: String, name: &String| text.replace(&format!("{{{{{name}}}}}"), &variable(name));
    names.iter().fold(text.to_owned(), replace)
}
