//! The switches of one conversation as they are kept: which servers it uses (TOOL-9).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::decode::{Decoder, FromNode, Map, written};
use super::diagnostic::{Code, Diagnostic};
use super::discovery::decoded;
use super::source::{Location, Source};
use super::suggest::Suggestions;
use super::syntax::{self, Document};
use crate::name::ServerName;

written! {
    /// The switches of one conversation.
    struct ConversationEntry {
        /// Whether each server is used; one that is not named is used as the configuration says.
        @rule servers: Map<bool> = "servers",
    }
}

/// One switch of a conversation.
#[derive(Clone, Debug)]
pub struct WrittenSwitch {
    /// Whether the server is used.
    pub is_on: bool,
    /// Where that was written.
    pub location: Location,
}

/// The switches of one conversation, and what is wrong with them.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// Every switch, whether or not there is a server of the name.
    pub servers: BTreeMap<ServerName, WrittenSwitch>,
    /// What is wrong with the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the switches of one conversation: `{"servers": {"github": false}}`. `name` is what messages
/// call the text. JSON with comments is read as well.
///
/// ```
/// use trunkline::config;
/// use trunkline::name::ServerName;
/// use trunkline::policy::{Switch, Switches};
///
/// let text = r#"{"servers": {"github": false, "time": true}}"#;
/// let conversation = config::parse_conversation("talk.json", text);
/// assert!(conversation.diagnostics.is_empty());
/// let switches = Switches::from(&conversation);
/// let github = ServerName::new("github").unwrap();
/// assert_eq!(switches.get(&github), Switch::Off);
/// assert_eq!(switches.location(&github).unwrap().to_string(), "talk.json:1:14");
/// assert_eq!(switches.to_json().to_string(), r#"{"servers":{"github":false,"time":true}}"#);
/// ```
pub fn parse_conversation(name: &str, text: impl AsRef<[u8]>) -> Conversation {
    let source = match decoded(name, text.as_ref()) {
        Ok(source) => Arc::new(source),
        Err(found) => return Conversation { diagnostics: vec![*found], ..Conversation::default() },
    };
    let Document { root, mistakes, .. } = syntax::read(&source);
    let mut suggestions = Suggestions::default();
    let mut decoder = Decoder::new(&source, &mut suggestions);
    let entry = root.as_ref().and_then(|root| {
        decoder.about("a conversation".to_owned(), |it| ConversationEntry::from_node(root, it))
    });
    let servers = switches(entry.unwrap_or_default(), &source, &mut decoder);
    let mut diagnostics = decoder.into_diagnostics();
    diagnostics.extend(mistakes);
    Conversation { servers, diagnostics }
}

fn switches(
    entry: ConversationEntry,
    source: &Arc<Source>,
    decoder: &mut Decoder<'_>,
) -> BTreeMap<ServerName, WrittenSwitch> {
    let mut servers = BTreeMap::new();
    for (key, value) in entry.servers.into_iter().flat_map(|servers| servers.value.0) {
        match ServerName::new(&key.text) {
            Ok(name) => {
                let location = Location::new(source, key.span);
                servers.insert(name, WrittenSwitch { is_on: value.value, location });
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
        let found = parse_conversation("talk.json", text).diagnostics;
        let found = &found[0];
        let place = found.location.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
        format!("{}{place}", found.message)
    }

    #[test]
    fn what_cannot_be_read_is_said_with_its_place() {
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
            let conversation = parse_conversation("talk.json", text);
            assert!(conversation.diagnostics.is_empty() && conversation.servers.is_empty());
        }
    }
}
