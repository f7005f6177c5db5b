//! Finds the parts of a configuration text that messages must not quote.
//!
//! Works on characters, not on the syntax tree, because the lines most often quoted are those that
//! could not be parsed. Hides every comment, and every value except those that look harmless in a
//! place where values are harmless. Shows plain keys.

use super::{
    RedactionInput, argument, is_like_credential, is_plain, is_reference, is_secret_name,
    precedes_secret,
};
use crate::config::jsonc::scan::{Scanner, starts_word};
use crate::config::secret::MASK;
use crate::config::source::Span;
use crate::config::suggest::Suggestions;

/// Keys of objects that hold servers, bundles or agents by name.
const GROUPS: &[&str] = &["mcpServers", "servers", "mcp", "context_servers", "bundles", "agents"];

/// Keys of objects and arrays, in an entry or at the top level, with known value types.
const PARTS: &[&str] = &[
    "transport",
    "timeouts",
    "timeout",
    "restart",
    "naming",
    "command",
    "args",
    "inheritEnv",
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

/// Those of them whose values are names and patterns of items.
const PATTERNS: &[&str] = &[
    "inheritEnv",
    "allowTools",
    "denyTools",
    "tools",
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
    "protocol",
    "restart",
    "policy",
    "mode",
    "serverId",
    "separator",
    "addresses",
    "prefix",
    "command",
    "path",
    "cwd",
    "envFile",
    "authProviderId",
    "agents",
];

/// Keys whose values are URLs.
const ADDRESSES: &[&str] = &["url", "serverUrl", "httpUrl", "baseUrl"];

/// Keys whose values are quantities, mostly limits.
const QUANTITIES: &[&str] = &[
    "timeout",
    "connect",
    "handshake",
    "list",
    "call",
    "question",
    "shutdown",
    "grace",
    "startup",
    "request",
    "concurrency",
    "share",
    "redact",
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
];

/// Keys whose values are never shown, so that a slip in one of them is none in another.
const HIDDEN: &[&str] = &["env", "environment", "headers", "inputs", "auth", "oauth"];

/// Longest pattern that is shown: two names, or a URI.
const LONGEST_PATTERN: usize = 128;

/// Longest argument that is shown, in bytes: a path or a package, not a script.
const LONGEST_ARGUMENT: usize = 256;

/// Longest quantity that is shown.
const LONGEST_QUANTITY: usize = 20;

/// All parts of a configuration text that must not be shown, in order.
pub(crate) fn sensitive_spans(text: &str) -> Vec<Span> {
    let top = OpenContainer { place: Container::Entry, ..OpenContainer::default() };
    let mut finder = SensitiveSpanFinder {
        text,
        scanner: Scanner::new(text),
        open: Vec::from([top]),
        found: Vec::new(),
        suggestions: Suggestions::default(),
        lost: false,
    };
    finder.run();
    finder.found
}

/// The content of a bracket, as far as it is known.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Container {
    /// Entries by name.
    Group,
    /// An entry, or the top level: keys have known meanings.
    Entry,
    /// Patterns as keys, with booleans as values.
    Patterns,
    /// Unknown content, which is never shown.
    #[default]
    Elsewhere,
}

#[derive(Default)]
struct OpenContainer {
    place: Container,
    is_array: bool,
    /// The key of the next value, or of this array. Stored as a span, so that a long key in deep
    /// brackets costs nothing.
    key: Option<Span>,
    /// Whether the previous argument announces that this one is a credential.
    is_announced: bool,
}

struct SensitiveSpanFinder<'a> {
    text: &'a str,
    scanner: Scanner<'a>,
    open: Vec<OpenContainer>,
    found: Vec<Span>,
    suggestions: Suggestions,
    /// A string was not closed: from there on, the inside and outside of strings cannot be
    /// distinguished.
    lost: bool,
}

impl SensitiveSpanFinder<'_> {
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

    fn innermost(&mut self) -> &mut OpenContainer {
        self.open.last_mut().expect("invariant: the outermost bracket is never removed")
    }

    fn forget_key(&mut self) {
        let innermost = self.innermost();
        if !innermost.is_array {
            innermost.key = None;
        }
    }

    /// The current key of the innermost bracket.
    fn key(&self) -> Option<&str> {
        let key = self.open.last().and_then(|open| open.key)?;
        Some(&self.text[key.range()])
    }

    /// The current key of the innermost bracket, or the known key that it is a misspelling of.
    fn meant_key(&mut self) -> Option<&str> {
        let key = self.open.last().and_then(|open| open.key)?;
        let key = &self.text[key.range()];
        let lists = [WORDS, ADDRESSES, QUANTITIES, PARTS, GROUPS, HIDDEN];
        let known = || lists.into_iter().flatten().copied();
        // A long key is no misspelling, and may have many values.
        if key.len() > LONGEST_PATTERN || known().any(|known| known == key) || is_secret_name(key) {
            return Some(key);
        }
        Some(self.suggestions.nearest(key, known()).unwrap_or(key))
    }

    /// Whether the next value is an argument of a program.
    fn is_argument(&self) -> bool {
        let in_array = self.open.last().is_some_and(|open| open.is_array);
        let key = self.key();
        self.is_ours() && (key == Some("args") || (in_array && key == Some("command")))
    }

    fn opened(&mut self, is_array: bool) {
        let known = |list: &[&str]| self.key().is_some_and(|key| list.contains(&key));
        let outer = self.open.last().map(|open| (open.place, open.is_array, open.key));
        let (outer_place, in_array, key) = outer.unwrap_or_default();
        let place = match outer_place {
            _ if in_array => Container::Elsewhere,
            Container::Entry if known(GROUPS) && !is_array => Container::Group,
            Container::Entry if known(PATTERNS) && !is_array => Container::Patterns,
            Container::Entry if known(GROUPS) || known(PARTS) => Container::Entry,
            Container::Group if known(&["servers"]) => Container::Group,
            Container::Group => Container::Entry,
            // The outermost object.
            Container::Entry if key.is_none() => Container::Entry,
            _ => Container::Elsewhere,
        };
        // An object under `args` is not a list of arguments.
        let place = if known(&["args"]) && !is_array { Container::Elsewhere } else { place };
        let key = if is_array { key } else { None };
        self.open.push(OpenContainer { place, is_array, key, is_announced: false });
        self.scanner.advance(1);
    }

    fn closed(&mut self) {
        if self.open.len() > 1 {
            self.open.pop();
        }
        self.forget_key();
        self.scanner.advance(1);
    }

    /// Hides a comment, or other text that starts like one.
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
            let innermost = self.innermost();
            // A second key in the place of a value is a value with a stray colon after it.
            let is_value = innermost.key.is_some() && !innermost.is_array;
            innermost.key = Some(content);
            // Only user-defined names contain spaces.
            let is_harmless = match innermost.place {
                Container::Patterns => is_pattern(text),
                Container::Elsewhere => is_plain(text) && !text.contains(' '),
                Container::Group | Container::Entry => is_plain(text),
            };
            if is_value || !is_harmless {
                self.hide(content);
            }
            return;
        }
        let as_written = &self.text[content.range()] == text;
        if self.lost || !as_written || !self.is_shown(text) {
            self.value(text, content, as_written && !self.lost);
        }
        let innermost = self.innermost();
        innermost.is_announced =
            innermost.is_array && text.len() <= LONGEST_ARGUMENT && precedes_secret(text);
        self.forget_key();
    }

    /// Hides a value; of a URL or an argument, only the part that may be secret.
    fn value(&mut self, text: &str, content: Span, as_written: bool) {
        let is_address = self.is_ours() && self.key().is_some_and(|key| ADDRESSES.contains(&key));
        let is_announced = self.open.last().is_some_and(|open| open.is_announced);
        let is_argument = self.is_argument() && !is_announced && !text.contains(":-");
        let shown = if as_written && (is_argument || (is_address && text.contains("://"))) {
            argument(&RedactionInput::of_text(text))
        } else {
            String::new()
        };
        // Masks separate the shown parts: hides from the first mask on.
        let kept = shown.find(MASK).filter(|kept| text.starts_with(&shown[..*kept])).unwrap_or(0);
        self.hide(Span::new(content.start() + kept, content.end()));
    }

    /// Whether the keys in the innermost bracket have known meanings.
    fn is_ours(&self) -> bool {
        self.open.last().is_some_and(|open| open.place == Container::Entry)
    }

    /// Whether a value may be shown unchanged.
    fn is_shown(&mut self, text: &str) -> bool {
        if matches!(text, "true" | "false" | "null") || is_reference(text) {
            return true;
        }
        let in_array = self.open.last().is_some_and(|open| open.is_array);
        let is_announced = self.open.last().is_some_and(|open| open.is_announced);
        let is_argument = self.is_argument();
        if text.len() > LONGEST_ARGUMENT || text.contains(":-") {
            return false; // The default of a reference is as secret as its value.
        }
        let is_harmless = || argument(&RedactionInput::of_text(text)) == text;
        if is_argument {
            return !is_announced && is_harmless();
        }
        if !self.is_ours() {
            return false;
        }
        let Some(key) = self.meant_key() else { return false };
        if key == "command" && !in_array {
            return is_harmless() && !text.contains("://");
        }
        if PATTERNS.contains(&key) {
            return is_pattern(text);
        }
        let one_word = is_plain(text) && !text.contains(' ');
        if ADDRESSES.contains(&key) {
            let whole = argument(&RedactionInput::of_text(text)) == text;
            return whole && (one_word || text.contains("://"));
        }
        (WORDS.contains(&key) && one_word)
            || (QUANTITIES.contains(&key) && is_quantity(text))
            || (PARTS.contains(&key) && in_array && one_word)
    }

    fn hide(&mut self, span: Span) {
        if span.start() < span.end() {
            self.found.push(span);
        }
    }
}

/// Whether a text is a number with an optional unit.
pub(super) fn is_quantity(text: &str) -> bool {
    let number = text.trim_start_matches('-').trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let unit = text.len() - text.trim_end_matches(|it: char| it.is_ascii_alphabetic()).len();
    let digits = number.trim_end();
    !digits.is_empty()
        && text.len() <= LONGEST_QUANTITY
        && unit <= 3
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Whether a text can be a pattern, or several with commas, and not a credential.
fn is_pattern(text: &str) -> bool {
    let fits = |it: char| it.is_alphanumeric() || "_-.$@/ *!?,:{}+".contains(it);
    !text.is_empty()
        && text.len() <= LONGEST_PATTERN
        && text.chars().all(fits)
        && !is_like_credential(text)
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
    fn identifying_keys_are_not_masked() {
        let text = r#"{"mcpServers": {"my server": {"type": "htpp", "url": "https://example.com/mcp", "timeout": 60, "enabled": true}}}"#;
        assert_eq!(shown(text), text);
        let text = r#"{"servers": {"s": {"command": "npx", "args": ["-y", "@scope/srv", "/data", "--port=80"], "allowTools": ["read_file"]}}}"#;
        assert_eq!(shown(text), text);
        let text =
            r#"{"servers": {"s": {"comand": "npx", "agrs": ["-y"], "command": "npx -y srv"}}}"#;
        assert_eq!(shown(text), text.replace("-y\"]", "***\"]"));
        let text =
            r#"{"bundles": {"b": {"serverId": "repo", "mode": "direct"}}, "access": "read-only"}"#;
        assert_eq!(shown(text), text);
    }

    #[test]
    fn credentials_among_arguments_are_hidden() {
        let text = r#"{"servers": {"s": {"command": "API_KEY=abc npx", "args": ["--token", "abc", "--key=abc", "srv", "ghp_abc"]}}}"#;
        let expected = r#"{"servers": {"s": {"command": "***", "args": ["--token", "***", "--key=***", "srv", "***"]}}}"#;
        assert_eq!(shown(text), expected);
    }

    /// A message about an invalid pattern shows the pattern.
    #[test]
    fn patterns_are_shown_unless_they_look_like_credentials() {
        let text = r#"{"servers": {"s": {"allowTools": ["a.b", "x://{n}"], "denyTools": ["*", "!w_?"]}},
            "bundles": {"b": {"allowTools": ["**"]}},
            "agents": {"a": {"tools": ["docs_*", "!x"]}, "b": {"tools": "a_*, !b"}, "c": {"tools": {"a_*": true}}}}"#;
        assert_eq!(shown(text), text);
        let text = r#"{"agents": {"a": {"tools": ["sk-abcdef", "a"]}, "b": {"tools": {"a_*": "sesame", "ghp_abc": true}}}}"#;
        let expected = r#"{"agents": {"a": {"tools": ["***", "a"]}, "b": {"tools": {"a_*": "***", "***": true}}}}"#;
        assert_eq!(shown(text), expected);
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
