//! Invariants for arbitrary configuration texts and messages.

use trunkline::config::{self, ColorStyle, LoadedConfig, Resolver, Secret, resolve};
use trunkline::message::{Message, ParseError, Raw};

/// The resolved value of every reference. No output may contain it.
pub const RESOLVED: &str = "resolved-secret-value-7f3a";

/// A resolver with the same value for every reference.
pub struct Omniscient;

impl Resolver for Omniscient {
    fn variable(&self, _: &str) -> Option<Secret> {
        Some(Secret::new(RESOLVED))
    }

    fn file(&self, _: &std::path::Path) -> std::io::Result<Secret> {
        Ok(Secret::new(format!("NAME={RESOLVED}\n")))
    }

    fn input(&self, _: &str) -> Option<Secret> {
        Some(Secret::new(RESOLVED))
    }
}

/// Parses arbitrary bytes as a configuration and does everything with them that a program does.
///
/// # Panics
///
/// When an invariant is violated: a diagnostic without a message, a location outside the text, a
/// server both usable and broken, or a resolved secret in any output.
pub fn check(bytes: &[u8]) -> LoadedConfig {
    let loaded = config::parse("fuzz.json", bytes);
    let shown = everything_shown(&loaded);
    assert!(!shown.contains(RESOLVED), "a resolved secret is shown");
    for found in &loaded.diagnostics {
        assert!(!found.message.is_empty());
        if let Some(location) = &found.location {
            let text = location.source().text();
            let span = location.span();
            assert!(span.start() <= span.end() && span.end() <= text.len(), "{span:?}");
            assert!(text.is_char_boundary(span.start()) && text.is_char_boundary(span.end()));
            assert!(location.start() <= location.end());
        }
    }
    for broken in loaded.config.broken() {
        assert!(loaded.config.server(broken.as_str()).is_none(), "{broken} is broken and used");
        assert!(loaded.has_errors(false), "{broken} is broken without an error");
    }
    loaded
}

/// Everything that a program could print about a configuration: reports, the effective
/// configuration, debug output, and the result of resolving its secrets.
pub fn everything_shown(loaded: &LoadedConfig) -> String {
    let mut shown = String::new();
    for found in &loaded.diagnostics {
        shown += &found.render(ColorStyle::Plain);
        shown += &found.render(ColorStyle::Colored);
        shown += &format!("{found:?}");
    }
    shown += &format!("{loaded:?}");
    shown += &loaded.config.to_json().to_string();
    for server in loaded.config.servers() {
        shown += &server.endpoint();
        match resolve(server, &Omniscient) {
            Ok(transport) => shown += &format!("{transport:?}"),
            Err(errors) => {
                for error in errors {
                    shown += &format!("{error} {error:?} {:?}", error.hint());
                }
            }
        }
    }
    shown
}

/// Parses arbitrary bytes as a message, serializes it again, and edits its payload.
///
/// # Panics
///
/// When a payload changes in the process, or an edit changes unrelated bytes.
pub fn check_message(bytes: &[u8]) {
    let bytes = bytes::Bytes::copy_from_slice(bytes);
    let is_text = std::str::from_utf8(&bytes).is_ok();
    let is_json = is_text && serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok();
    assert_eq!(Message::read(&bytes) != Err(ParseError::NotJson), is_json, "{bytes:?}");
    if let Ok(message) = Message::read(&bytes) {
        let payload = match &message {
            Message::Request(request) => request.params.as_ref(),
            Message::Notification(notification) => notification.params.as_ref(),
            Message::Response(response) => response.outcome.as_ref().ok(),
        };
        payload.inspect(|payload| check_outline(payload));
        let again = Message::read(&message.write()).expect("what was written can be read");
        assert_eq!(without_breaks(&again), without_breaks(&message));
    }
    if let Ok(raw) = Raw::read(&bytes) {
        check_edits(&raw);
    }
}

/// Formats a message, with line breaks outside of strings as the spaces they are serialized as.
fn without_breaks(message: &Message) -> String {
    format!("{message:?}").replace(['\n', '\r'], " ")
}

/// Checks that the member index of a payload equals the result of a scan, also after edits.
fn check_outline(payload: &Raw) {
    let value = Raw::from_string("edited");
    check_noted(payload);
    for (key, member) in payload.members() {
        check_noted(&payload.replace_slices(&[(member.clone(), value.clone())]));
        for (_, inner) in member.members() {
            let edited = payload.replace_slices(&[(inner.clone(), value.clone())]);
            check_noted(&edited);
            edited.get(&key).iter().for_each(check_noted);
        }
    }
    check_edits(payload);
}

fn check_noted(noted: &Raw) {
    let unread = Raw::read(noted.bytes()).expect("what was read or edited is JSON");
    assert_eq!(noted.members(), unread.members(), "{noted}");
    let said = |raw: &Raw| raw.get("_meta").map(|said| said.members());
    assert_eq!(said(noted), said(&unread), "{noted}");
}

/// Checks that edits of an object do not change other members.
fn check_edits(raw: &Raw) {
    let value = Raw::from_string("edited");
    for (key, _) in raw.members() {
        let edited = raw.with(&key, &value);
        assert_eq!(edited.get(&key), Some(value.clone()), "{raw}");
        let shorter = raw.without(&key);
        assert_eq!(shorter.get(&key), None, "{raw}");
        let others = |raw: &Raw| -> Vec<_> {
            raw.members().into_iter().filter(|(name, _)| *name != key).collect()
        };
        assert_eq!(others(&edited), others(raw), "{raw}");
        assert_eq!(others(&shorter), others(raw), "{raw}");
        assert!(Raw::read(shorter.bytes()).is_ok() && Raw::read(edited.bytes()).is_ok());
    }
    if raw.is_object() && raw.get("added").is_none() {
        assert_eq!(raw.with("added", &value).without("added"), *raw, "{raw}");
    }
}
