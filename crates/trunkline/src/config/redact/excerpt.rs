//! Which parts of a configuration text may not be quoted in a message.
//!
//! It works on the characters, not on the tree, because the lines most often shown are those that
//! could not be read. It hides every value but those that stand where values are harmless, and
//! look it; and every comment. Keys are shown if they are plain.

use super::{argument, is_plain, is_reference};
use crate::config::secret::MASK;
use crate::config::source::Span;
use crate::config::syntax::scan::{Scanner, starts_word};

/// Keys of objects that hold servers, bundles or agents by name.
const GROUPS: &[&str] = &["mcpServers", "servers", "mcp", "context_servers", "bundles", "agents"];

/// Keys of objects and arrays, inside an entry or at the top, whose values are ours.
const PARTS: &[&str] = &[
    "transport",
    "timeouts",
    "timeout",
    "restart",
    "naming",
    "command",
    "args",
    "allowTools",
    "denyTools",
    "tools",
    "allowed",
    "excluded",
    "disabledTools",
    "includeTools",
    "excludeTools",
    "allowedTools",
    "blockedTools",
    "enabledTools",
];

/// Keys whose values are words, names or paths.
const WORDS: &[&str] = &[
    "type",
    "transportType",
    "transport",
    "trust",
    "access",
    "connect",
    "restart",
    "policy",
    "mode",
    "serverId",
    "separator",
    "prefix",
    "command",
    "path",
    "cwd",
    "authProviderId",
    "agents",
];

/// Keys whose values are addresses.
const ADDRESSES: &[&str] = &["url", "serverUrl", "httpUrl", "baseUrl"];

/// Keys whose values are quantities, mostly bounds.
const QUANTITIES: &[&str] = &[
    "timeout",
    "connect",
    "handshake",
    "list",
    "call",
    "shutdown",
    "grace",
    "startup",
    "request",
    "concurrency",
    "toolsTtlMs",
    "idleTimeout",
    "maxResultBytes",
    "limit",
    "delay",
    "maxDelay",
    "maxLength",
    "enabled",
    "disabled",
    "describeServer",
    "context_server_timeout",
    "args",
    "command",
    "url",
    "type",
    "env",
    "headers",
    "access",
    "trust",
];

/// Longest quantity that is shown.
const LONGEST_QUANTITY: usize = 20;

/// Every part of a configuration text that must not be shown, in order.
pub(crate) fn sensitive_spans(text: &str) -> Vec<Span> {
    let top = Open { place: Place::Entry, ..Open::default() };
    let mut finder = Finder {
        text,
        scanner: Scanner::new(text),
        open: Vec::from([top]),
        found: Vec::new(),
        lost: false,
    };
    finder.run();
    finder.found
}

/// What a bracket holds, as far as can be told.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// Entries by name.
    Group,
    /// An entry, or the top: keys are ours.
    Entry,
    /// Anything: nothing in it is shown.
    #[default]
    Elsewhere,
}

#[derive(Default)]
struct Open {
    place: Place,
    is_array: bool,
    /// The key whose value comes next, or that this array is the value of.
    key: Option<Box<str>>,
}

struct Finder<'a> {
    text: &'a str,
    scanner: Scanner<'a>,
    open: Vec<Open>,
    found: Vec<Span>,
    /// A string was not closed: from there on, what is inside and what is outside of strings can
    /// no longer be told apart.
    lost: bool,
}

impl Finder<'_> {
    fn run(&mut self) {
        while let Some(byte) = self.scanner.peek() {
            match byte {
                b'{' => self.opened(false),
                b'[' => self.opened(true),
                b'}' | b']' => self.closed(),
                b',' => {
                    self.forget_key();
                    self.scanner.advance(1);
                }
                b'"' | b'\'' => self.string(),
                b'/' | b'#' => self.comment(),
                byte if starts_word(byte) || byte.is_ascii_digit() || byte == b'-' => self.word(),
                _ => {
                    self.scanner.advance(1);
                }
            }
        }
    }

    fn innermost(&mut self) -> &mut Open {
        self.open.last_mut().expect("invariant: the outermost bracket is never removed")
    }

    fn forget_key(&mut self) {
        let innermost = self.innermost();
        if !innermost.is_array {
            innermost.key = None;
        }
    }

    fn opened(&mut self, is_array: bool) {
        let outer = self.innermost();
        let key = outer.key.clone();
        let known = |list: &[&str]| key.as_deref().is_some_and(|key| list.contains(&key));
        let place = match outer.place {
            Place::Entry if known(GROUPS) && !is_array => Place::Group,
            Place::Entry if known(GROUPS) || known(PARTS) => Place::Entry,
            Place::Group if key.as_deref() == Some("servers") => Place::Group,
            Place::Group => Place::Entry,
            // The outermost object itself.
            Place::Entry if key.is_none() && !outer.is_array => Place::Entry,
            _ => Place::Elsewhere,
        };
        let key = if is_array { key } else { None };
        self.open.push(Open { place, is_array, key });
        self.scanner.advance(1);
    }

    fn closed(&mut self) {
        if self.open.len() > 1 {
            self.open.pop();
        }
        self.forget_key();
        self.scanner.advance(1);
    }

    /// Hides a comment, and whatever else starts like one.
    fn comment(&mut self) {
        let start = self.scanner.offset();
        let rest = &self.text[start..];
        let end = match rest.strip_prefix("/*") {
            Some(_) => rest.find("*/").unwrap_or(rest.len()),
            None => rest.find('\n').unwrap_or(rest.len()),
        };
        let marker = if rest.starts_with("//") || rest.starts_with("/*") { 2 } else { 1 };
        self.hide(Span::new(start + marker, start + end.max(marker)));
        self.scanner.skip_to(start + end.max(1));
    }

    fn string(&mut self) {
        let token = self.scanner.string();
        let closed = self.text[token.span.range()].len() > 1
            && !token.faults.iter().any(|fault| fault.is_unclosed);
        let end = token.span.end() - usize::from(closed);
        let content = Span::new(token.span.start() + 1, end.max(token.span.start() + 1));
        self.lost |= !closed;
        let is_key = closed && self.before_colon();
        self.token(&token.text, content, is_key);
    }

    fn word(&mut self) {
        let span = self.scanner.word();
        let text = &self.text[span.range()];
        let is_key = !self.lost && self.before_colon();
        self.token(text, span, is_key);
    }

    fn before_colon(&self) -> bool {
        self.text[self.scanner.offset()..].trim_start().starts_with(':')
    }

    fn token(&mut self, text: &str, content: Span, is_key: bool) {
        if is_key {
            self.innermost().key = Some(text.into());
            if !is_plain(text) {
                self.hide(content);
            }
            return;
        }
        let as_written = &self.text[content.range()] == text;
        if self.lost || !as_written || !self.is_shown(text) {
            self.value(text, content, as_written && !self.lost);
        }
        self.forget_key();
    }

    /// Hides a value, or only what of an address is not harmless.
    fn value(&mut self, text: &str, content: Span, as_written: bool) {
        let innermost = self.innermost();
        let is_address = innermost.place == Place::Entry
            && innermost.key.as_deref().is_some_and(|key| ADDRESSES.contains(&key));
        let shown = if as_written && is_address && text.contains("://") {
            argument(text)
        } else {
            String::new()
        };
        // What is left of it is a beginning and an end with masks between: hide from the first
        // mask on.
        let kept = shown.find(MASK).filter(|kept| text.starts_with(&shown[..*kept])).unwrap_or(0);
        self.hide(Span::new(content.start() + kept, content.end()));
    }

    /// Whether a value may be shown as it is.
    fn is_shown(&mut self, text: &str) -> bool {
        if matches!(text, "true" | "false" | "null") || is_reference(text) {
            return true;
        }
        let innermost = self.innermost();
        let Some(key) = innermost.key.as_deref().filter(|_| innermost.place == Place::Entry) else {
            return false;
        };
        let one_word = is_plain(text) && !text.contains(' ');
        let quantity = text.len() <= LONGEST_QUANTITY && is_plain(text);
        if text.contains(":-") {
            return false; // The default of a reference is as secret as what it stands in for.
        }
        if ADDRESSES.contains(&key) {
            return argument(text) == text && (one_word || text.contains("://"));
        }
        (key == "args" && is_flag(text))
            || (WORDS.contains(&key) && one_word)
            || (QUANTITIES.contains(&key)
                && quantity
                && text.starts_with(|it: char| it.is_ascii_digit()))
            || (PARTS.contains(&key) && key != "args" && one_word)
    }

    fn hide(&mut self, span: Span) {
        if span.start() < span.end() {
            self.found.push(span);
        }
    }
}

/// Whether an argument is a flag without a value.
fn is_flag(text: &str) -> bool {
    text.starts_with('-')
        && text.len() <= LONGEST_QUANTITY
        && text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut shown = String::new();
        let mut end = 0;
        for span in sensitive_spans(text) {
            shown.push_str(&text[end..span.start()]);
            shown.push_str(MASK);
            end = span.end();
        }
        shown + &text[end..]
    }

    #[test]
    fn what_says_what_an_entry_is_stays_visible() {
        let text = r#"{"mcpServers": {"my server": {"type": "htpp", "url": "https://example.com/mcp", "timeout": 60, "enabled": true}}}"#;
        assert_eq!(shown(text), text);
        let text = r#"{"servers": {"s": {"command": "npx", "args": ["-y", "srv"], "allowTools": ["read_file"]}}}"#;
        assert_eq!(shown(text), text.replace("srv", "***"));
        let text =
            r#"{"bundles": {"b": {"serverId": "repo", "mode": "direct"}}, "access": "read-only"}"#;
        assert_eq!(shown(text), text);
    }

    #[test]
    fn values_elsewhere_are_hidden_and_references_are_not() {
        let text =
            r#"{"servers": {"s": {"env": {"A": "sesame", "B": "${B}", "C": 17, "url": "x"}}}}"#;
        let expected =
            r#"{"servers": {"s": {"env": {"A": "***", "B": "${B}", "C": ***, "url": "***"}}}}"#;
        assert_eq!(shown(text), expected);
    }

    #[test]
    fn nothing_after_an_unclosed_string_is_trusted() {
        let text = "{\"servers\": {\"s\": {\"env\": {\"K\": \"MIIB\nsesame==\nab//sesame\"}, \"type\": \"x\"}}}";
        assert!(!shown(text).contains("sesame"), "{}", shown(text));
    }
}
