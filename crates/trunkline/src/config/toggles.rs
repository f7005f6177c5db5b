//! The toggle file of a conversation: servers, tools and prompts it enables or disables (TOOL-9).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::decode::{Decoder, FromNode, NamedValues, WithSpan, written};
use super::diagnostic::{Code, Diagnostic};
use super::discovery::decoded;
use super::jsonc::{self, Document, ObjectKey};
use super::source::{Location, Source};
use super::suggest::Suggestions;
use crate::name::ServerName;

written! {
    /// The toggles of one conversation.
    struct ToggleFile {
        /// Whether each server is enabled; the configuration decides for those not listed.
        @rule servers: NamedValues<bool> = "servers",
        /// Whether each tool is enabled, by its exposed name; the configuration decides for those not listed.
        @rule tools: NamedValues<bool> = "tools",
        /// The same for prompts.
        @rule prompts: NamedValues<bool> = "prompts",
    }
}

/// One toggle of a conversation.
#[derive(Clone, Debug)]
pub struct ToggleEntry {
    /// Whether the server is enabled.
    pub is_on: bool,
    /// The location of the toggle.
    pub location: Location,
}

/// The toggles of one conversation, with their problems.
#[derive(Clone, Debug, Default)]
pub struct ConversationToggles {
    /// All toggles of servers, also those of unknown ones.
    pub servers: BTreeMap<ServerName, ToggleEntry>,
    /// The toggles of tools, by exposed name.
    pub tools: BTreeMap<Box<str>, ToggleEntry>,
    /// The toggles of prompts, by exposed name.
    pub prompts: BTreeMap<Box<str>, ToggleEntry>,
    /// Problems in the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses the toggles of one conversation: `{"servers": {"github": false}, "tools": {"time_now": false}}`.
/// Messages refer to the text by `name`. Accepts JSON with comments.
///
/// ```
/// use trunkline::config;
/// use trunkline::name::ServerName;
/// use trunkline::policy::{Toggle, Toggles};
///
/// let text = r#"{"servers": {"github": false, "time": true}}"#;
/// let conversation = config::parse_toggles("talk.json", text);
/// assert!(conversation.diagnostics.is_empty());
/// let switches = Toggles::from(&conversation);
/// let github = ServerName::new("github").unwrap();
/// assert_eq!(switches.get(&github), Toggle::Off);
/// assert_eq!(switches.location(&github).unwrap().to_string(), "talk.json:1:14");
/// assert_eq!(switches.to_json().to_string(), r#"{"servers":{"github":false,"time":true}}"#);
/// ```
pub fn parse_toggles(name: &str, text: impl AsRef<[u8]>) -> ConversationToggles {
    let source = match decoded(name, text.as_ref()) {
        Ok(source) => Arc::new(source),
        Err(found) => {
            return ConversationToggles {
                diagnostics: vec![*found],
                ..ConversationToggles::default()
            };
        }
    };
    let Document { root, mistakes, .. } = jsonc::read(&source);
    let mut suggestions = Suggestions::default();
    let mut decoder = Decoder::new(&source, &mut suggestions);
    let entry = root.as_ref().and_then(|root| {
        decoder.about("a conversation".to_owned(), |it| ToggleFile::from_node(root, it))
    });
    let ToggleFile { servers, tools, prompts, .. } = entry.unwrap_or_default();
    let (tools, prompts) = (item_toggles(tools, &source), item_toggles(prompts, &source));
    let servers = server_toggles(servers, &source, &mut decoder);
    let mut diagnostics = decoder.into_diagnostics();
    diagnostics.extend(mistakes);
    ConversationToggles { servers, tools, prompts, diagnostics }
}

fn item_toggles(
    written: Option<WithSpan<NamedValues<bool>>>,
    source: &Arc<Source>,
) -> BTreeMap<Box<str>, ToggleEntry> {
    let written = written.into_iter().flat_map(|items| items.value.0);
    let toggle = |(key, value): (ObjectKey, WithSpan<bool>)| {
        let location = Location::new(source, key.span);
        (key.text, ToggleEntry { is_on: value.value, location })
    };
    written.map(toggle).collect()
}

fn server_toggles(
    written: Option<WithSpan<NamedValues<bool>>>,
    source: &Arc<Source>,
    decoder: &mut Decoder<'_>,
) -> BTreeMap<ServerName, ToggleEntry> {
    let mut servers = BTreeMap::new();
    for (key, value) in written.into_iter().flat_map(|servers| servers.value.0) {
        match ServerName::new(&key.text) {
            Ok(name) => {
                let location = Location::new(source, key.span);
                servers.insert(name, ToggleEntry { is_on: value.value, location });
            }
            Err(error) => {
                let found = decoder.error(Code::BadName, key.span, error.to_string());
                decoder.push(found);
            }
        }
    }
    servers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        let found = parse_toggles("talk.json", text).diagnostics;
        let found = &found[0];
        let place = found.location.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
        format!("{}{place}", found.message)
    }

    #[test]
    fn invalid_toggle_is_reported_with_its_location() {
        let wrong = |text, message| assert_eq!(problem(text), message, "{text}");
        wrong("", "there is nothing here (talk.json:1:1)");
        wrong("[]", "a conversation must be an object, not an array (talk.json:1:1)");
        wrong(r#"{"servers": []}"#, "`servers` must be an object, not an array (talk.json:1:13)");
        wrong(
            r#"{"servers": {"a": "off"}}"#,
            "`a` in `servers` must be true or false, not a string (talk.json:1:19)",
        );
        wrong(r#"{"servers": {"a": true, "a": false}}"#, "`a` is written twice (talk.json:1:25)");
        wrong(r#"{"sevrers": {}}"#, "`sevrers` is not a known key here (talk.json:1:2)");
        assert!(problem("{ servers").contains("talk.json:1:"));
    }

    #[test]
    fn nothing_switched_is_fine() {
        for text in ["{}", r#"{"servers": {}}"#] {
            let conversation = parse_toggles("talk.json", text);
            assert!(conversation.diagnostics.is_empty() && conversation.servers.is_empty());
        }
    }
}
