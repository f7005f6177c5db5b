//! Which parts of a configuration text are secrets written by hand, so that no message shows them.
//!
//! It works on the characters, not on the tree, because the lines most often shown are those that
//! could not be read.

use std::ops::Range;

use super::secret::MASK;
use super::source::Span;
use super::syntax::scan::{Scanner, starts_word};

/// Objects whose values are credentials more often than not.
const SENSITIVE_OBJECTS: &[&str] = &["env", "environment", "headers", "http_headers", "envs"];

/// Last words of names that hold a credential: `API_KEY`, `clientSecret`, `--auth-token`.
const SECRET_WORDS: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "key",
    "apikey",
    "auth",
    "authorization",
    "credential",
    "credentials",
    "bearer",
    "pat",
    "cookie",
    "signature",
    "sig",
];

/// How the credentials of well-known services begin.
const SECRET_PREFIXES: &[&str] = &[
    "sk-",
    "sk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "AIza",
    "eyJ",
    "Bearer ",
    "bearer ",
    "Basic ",
];

/// Whether a key, header, flag or variable of this name usually holds a credential.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.trim_start_matches('-');
    let last_word_start = name
        .char_indices()
        .rev()
        .scan(None, |after: &mut Option<char>, (at, character)| {
            let boundary = !character.is_alphanumeric();
            let camel = character.is_lowercase() && after.is_some_and(char::is_uppercase);
            *after = Some(character);
            Some((at + character.len_utf8(), boundary || camel))
        })
        .find_map(|(after, boundary)| boundary.then_some(after));
    let last_word = name[last_word_start.unwrap_or(0)..].to_ascii_lowercase();
    SECRET_WORDS.contains(&last_word.as_str())
}

/// A text with the credentials in it replaced, for showing a command line or an address.
pub(crate) fn redacted(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut end = 0;
    for range in credentials(text) {
        shown.push_str(&text[end..range.start]);
        shown.push_str(MASK);
        end = range.end;
    }
    shown.push_str(&text[end..]);
    shown
}

/// Arguments with their credentials replaced; what follows a flag such as `--token` is one.
pub(crate) fn redacted_arguments<'a>(arguments: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut shown = Vec::new();
    let mut after_flag = false;
    for argument in arguments {
        shown.push(if after_flag { MASK.to_owned() } else { redacted(argument) });
        after_flag = is_secret_flag(argument);
    }
    shown
}

fn is_secret_flag(argument: &str) -> bool {
    argument.starts_with('-') && !argument.contains('=') && is_secret_name(argument)
}

/// The credentials inside one text, in order: user information and query values of an address,
/// the value of `--token=…`, or the whole when it begins like a known kind of credential.
fn credentials(text: &str) -> Vec<Range<usize>> {
    if SECRET_PREFIXES.iter().any(|prefix| text.starts_with(prefix)) {
        return std::iter::once(0..text.len()).collect();
    }
    if let Some(scheme) = text.find("://") {
        return address_credentials(text, scheme + 3);
    }
    match text.split_once('=') {
        Some((name, value)) if !value.is_empty() && is_secret_name(name) => {
            std::iter::once(name.len() + 1..text.len()).collect()
        }
        _ => Vec::new(),
    }
}

/// Who signs in, in the part of an address between `//` and the path.
fn user_information(authority: &str) -> Option<Range<usize>> {
    if let Some(at) = authority.rfind('@') {
        return Some(0..at);
    }
    // What cannot be a port is the password of an address that was cut short.
    let (host, port) = authority.rsplit_once(':').filter(|_| !authority.starts_with('['))?;
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) || port.contains(['$', '{']);
    (!is_port).then(|| host.len() + 1..authority.len())
}

fn address_credentials(text: &str, authority: usize) -> Vec<Range<usize>> {
    let rest = &text[authority..];
    let authority_end = authority + rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let mut found: Vec<_> = user_information(&text[authority..authority_end])
        .map(|range| authority + range.start..authority + range.end)
        .into_iter()
        .collect();
    let Some(query) = text[authority_end..].find('?').map(|at| authority_end + at + 1) else {
        return found;
    };
    let mut start = query;
    for pair in text[query..].split(['&', '#']) {
        if let Some((name, value)) = pair.split_once('=')
            && !value.is_empty()
            && is_secret_name(name)
        {
            found.push(start + name.len() + 1..start + pair.len());
        }
        start += pair.len() + 1;
    }
    found
}

/// Every part of a configuration text that must not be shown, in order.
pub(crate) fn sensitive_spans(text: &str) -> Vec<Span> {
    let mut finder = Finder {
        scanner: Scanner::new(text),
        open: Vec::from([Open::default()]),
        found: Vec::new(),
    };
    finder.run();
    finder.found
}

/// A bracket that is open, as far as the finder can tell in a text that may be broken.
#[derive(Default)]
struct Open {
    is_array: bool,
    /// Everything inside is sensitive.
    sensitive: bool,
    /// The key whose value comes next.
    key: Option<Box<str>>,
    /// The item before was a flag such as `--token`.
    after_flag: bool,
}

struct Finder<'a> {
    scanner: Scanner<'a>,
    open: Vec<Open>,
    found: Vec<Span>,
}

impl Finder<'_> {
    fn run(&mut self) {
        loop {
            self.skip_trivia();
            match self.scanner.peek() {
                None => return,
                Some(b'{') => self.opened(false),
                Some(b'[') => self.opened(true),
                Some(b'}' | b']') => self.closed(),
                Some(b',') => {
                    self.innermost().key = None;
                    self.scanner.advance(1);
                }
                Some(b'"' | b'\'') => {
                    let token = self.scanner.string();
                    let closed =
                        self.scanner.slice(token.span).len() > 1 && token.faults.is_empty();
                    let end = token.span.end() - usize::from(closed);
                    self.token(&token.text, Span::new(token.span.start() + 1, end));
                }
                Some(byte) if starts_word(byte) || byte.is_ascii_digit() => {
                    let span = self.scanner.word();
                    let text = self.scanner.slice(span);
                    self.token(text, span);
                }
                Some(_) => {
                    self.scanner.advance(1);
                }
            }
        }
    }

    fn skip_trivia(&mut self) {
        while self.scanner.trivia().is_some() {}
    }

    fn innermost(&mut self) -> &mut Open {
        self.open.last_mut().expect("invariant: the outermost bracket is never removed")
    }

    fn opened(&mut self, is_array: bool) {
        let outer = self.innermost();
        let named = |key: &str| SENSITIVE_OBJECTS.contains(&key) || is_secret_name(key);
        let sensitive = outer.sensitive || outer.key.take().is_some_and(|key| named(&key));
        self.open.push(Open { is_array, sensitive, ..Open::default() });
        self.scanner.advance(1);
    }

    fn closed(&mut self) {
        if self.open.len() > 1 {
            self.open.pop();
        }
        self.innermost().key = None;
        self.scanner.advance(1);
    }

    /// A string or word: a key, or a value that may have to be hidden.
    fn token(&mut self, text: &str, content: Span) {
        self.skip_trivia();
        let before_colon = matches!(self.scanner.peek(), Some(b':' | b'='));
        let innermost = self.innermost();
        let expects_key = !innermost.is_array && innermost.key.is_none() && !innermost.sensitive;
        if before_colon || expects_key {
            innermost.key = Some(text.into());
            return;
        }
        let key = innermost.key.take();
        let whole = innermost.sensitive
            || innermost.after_flag
            || key.is_some_and(|key| is_secret_name(&key));
        innermost.after_flag = innermost.is_array && is_secret_flag(text);
        self.value(text, content, whole);
    }

    fn value(&mut self, text: &str, content: Span, whole: bool) {
        if whole {
            if !is_plain_reference(text) {
                self.found.push(content);
            }
            return;
        }
        let as_written = self.scanner.slice(content) == text;
        for range in credentials(text) {
            // With escapes in it, offsets in the meaning are not offsets in the text.
            let span = if as_written {
                Span::new(content.start() + range.start, content.start() + range.end)
            } else {
                content
            };
            self.found.push(span);
        }
    }
}

/// Whether a value is one reference and nothing else, and so shows nothing secret.
fn is_plain_reference(text: &str) -> bool {
    let inner = text
        .strip_prefix("${")
        .or_else(|| text.strip_prefix('{'))
        .and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|inner| !inner.contains(['{', '}']) && !inner.contains(":-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &str) -> String {
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
    fn values_of_env_and_headers_are_hidden_and_references_are_not() {
        let text = r#"{"env": {"A": "sesame", "B": "${B}", "C": 17}, "cwd": "/x"}"#;
        assert_eq!(masked(text), r#"{"env": {"A": "***", "B": "${B}", "C": ***}, "cwd": "/x"}"#);
    }

    #[test]
    fn broken_text_hides_what_it_can() {
        for (text, shown) in [
            (r#"{"env" {"TOKEN" "abc"}}"#, r#"{"env" {"***" "***"}}"#),
            ("{env: {TOKEN: abc def}, x: 1}", "{env: {TOKEN: *** ***}, x: 1}"),
            ("{\"apiKey\": \"abc\n}", "{\"apiKey\": \"***\n}"),
        ] {
            assert_eq!(masked(text), shown);
        }
    }

    #[test]
    fn credentials_in_arguments_and_addresses_are_hidden() {
        let text = r#"{"args": ["--token", "abc", "--api-key=def", "x", "sk-123"]}"#;
        assert_eq!(masked(text), r#"{"args": ["--token", "***", "--api-key=***", "x", "***"]}"#);
        let text = r#"{"url": "https://me:pw@host/p?a=1&api_key=abc&b=2"}"#;
        assert_eq!(masked(text), r#"{"url": "https://***@host/p?a=1&api_key=***&b=2"}"#);
        let text = r#"{"url": "http://[::1]:80/${X}", "baseUrl": "http://h:${PORT}/", "url": "http://me:pass"#;
        assert_eq!(masked(text), text.replace("me:pass", "me:***"));
    }

    #[test]
    fn names_are_judged_by_their_last_word() {
        for name in ["API_KEY", "clientSecret", "--auth-token", "Authorization", "X-Api-Key"] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["authProviderId", "max_tokens", "keyboard", "monkey", "tokenUrl"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn arguments_after_a_secret_flag_are_hidden() {
        let shown = redacted_arguments(["-y", "srv", "--password", "x", "--port", "1"].into_iter());
        assert_eq!(shown, ["-y", "srv", "--password", "***", "--port", "1"]);
    }
}
