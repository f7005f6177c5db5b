//! What may be shown of a text that may hold a credential written by hand.
//!
//! Quoted lines and messages show only what is known to be harmless. Command lines and addresses,
//! which people need to recognise, show all but what looks like a credential.

mod excerpt;

pub(crate) use excerpt::sensitive_spans;

use super::secret::MASK;

/// Longest text that is plain enough to be shown anywhere.
const LONGEST_PLAIN: usize = 64;

/// Shortest run of mixed letters and digits that is taken for a credential.
const SHORTEST_TOKEN: usize = 16;

/// Parts of names that hold a credential: `API_KEY`, `clientSecret`, `--accesstoken`, `DB_PASS`.
const SECRET_PARTS: &[&str] = &[
    "token",
    "secret",
    "pass",
    "pwd",
    "key",
    "auth",
    "credential",
    "bearer",
    "cookie",
    "signature",
    "session",
];

/// How the credentials of well-known services begin.
const SECRET_PREFIXES: &[&str] = &[
    "sk-",
    "sk_",
    "pk_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "AIza",
    "eyJ",
    "npm_",
    "hf_",
    "Bearer",
    "bearer",
    "Basic",
];

/// Whether a key, header, flag or variable of this name usually holds a credential.
fn is_secret_name(name: &str) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphabetic);
    let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    SECRET_PARTS.iter().any(|part| letters.contains(part))
}

/// Whether a text is like a credential: it has the beginning of one, or a long run of mixed letters
/// and digits.
fn is_like_credential(text: &str) -> bool {
    let starts_one = |word: &str| SECRET_PREFIXES.iter().any(|prefix| word.starts_with(prefix));
    let boundaries = text.char_indices().filter(|(_, character)| !character.is_alphanumeric());
    let words = boundaries.map(|(at, character)| &text[at + character.len_utf8()..]);
    std::iter::once(text).chain(words).any(starts_one)
        || text.split(|character: char| !character.is_alphanumeric()).any(is_token)
}

fn is_token(run: &str) -> bool {
    let digits = run.bytes().any(|byte| byte.is_ascii_digit());
    let letters = run.bytes().any(|byte| byte.is_ascii_alphabetic());
    run.len() >= SHORTEST_TOKEN && digits && letters
}

/// Whether a text is a short name, word or path, as keys, tools and programs are called.
pub(crate) fn is_plain(text: &str) -> bool {
    let plain = |character: char| character.is_alphanumeric() || "_-.$@/ ".contains(character);
    !text.is_empty()
        && text.len() <= LONGEST_PLAIN
        && text.chars().all(plain)
        && !is_like_credential(text)
}

/// A text in backticks for a message, if it is harmless.
pub(crate) fn quoted(text: &str) -> String {
    if is_plain(text) { format!("`{text}`") } else { format!("`{MASK}`") }
}

/// A text without anything a terminal would act on: line breaks and other control characters, and
/// characters that change the direction or presence of others.
pub fn printable(text: &str) -> String {
    text.chars().map(|it| if is_hidden(it) { char::REPLACEMENT_CHARACTER } else { it }).collect()
}

/// Whether a character cannot be seen, or changes how others are seen.
pub(crate) fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The arguments of a program for showing, with what looks like a credential hidden: what follows
/// a flag such as `--token`, values after `=`, and everything [`argument`] hides.
pub(crate) fn arguments<'a>(arguments: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut after_secret_flag = false;
    let shown = |text: &str| {
        let hidden = std::mem::replace(&mut after_secret_flag, is_secret_flag(text));
        if hidden && !is_reference(text) { MASK.to_owned() } else { argument(text) }
    };
    arguments.map(shown).collect()
}

fn is_secret_flag(text: &str) -> bool {
    text.starts_with('-') && !text.contains('=') && is_secret_name(text)
}

/// A program, an argument or an address for showing.
pub(crate) fn argument(text: &str) -> String {
    if is_reference(text) {
        return text.to_owned();
    }
    // References are names, whatever they look like; in their place something harmless is judged.
    let judged = without_references(text);
    if judged.contains("://") {
        return address(text, &judged);
    }
    if is_like_credential(&judged) || judged.contains(is_composed) {
        return MASK.to_owned();
    }
    match judged.split_once(['=', ':']) {
        Some((name, value)) if !is_harmless_value(name, value) => {
            format!("{}{MASK}", &text[..=name.len()])
        }
        _ => text.to_owned(),
    }
}

/// Characters of texts that hold other texts: command lines, JSON, connection strings.
fn is_composed(character: char) -> bool {
    character.is_whitespace() || "{}\"';&?@#%".contains(character) && character != '@'
}

/// Whether what stands after `=` or `:` is a number, a switch or a path.
fn is_harmless_value(name: &str, value: &str) -> bool {
    let number = value.bytes().all(|byte| byte.is_ascii_digit());
    let path = value.starts_with(['/', '.', '~', '\\']) && !value.contains(['=', ':']);
    !is_secret_name(name) && (number || path || matches!(value, "true" | "false"))
}

/// An address for showing: who signs in, the query's values, the fragment and long mixed runs are
/// hidden. `judged` is the text with references replaced, as long as the text.
fn address(text: &str, judged: &str) -> String {
    let start = judged.find("://").map_or(0, |at| at + 3);
    let user_end = judged.rfind('@').filter(|at| *at >= start).map_or(start, |at| at + 1);
    let rest_start = judged[user_end..].find(['?', '#']).map_or(judged.len(), |at| user_end + at);
    let user = if user_end > start { "***@" } else { "" };
    let place = shown_place(&text[user_end..rest_start], &judged[user_end..rest_start]);
    format!("{}{user}{place}{}", &text[..start], shown_query(&judged[rest_start..]))
}

/// Host and path, without what cannot be a port and what is like a credential.
fn shown_place(text: &str, judged: &str) -> String {
    let authority = judged.find('/').unwrap_or(judged.len());
    let port = judged[..authority].rsplit_once(':').filter(|_| !judged.starts_with('['));
    if let Some((host, port)) = port
        && !port.bytes().all(|byte| byte.is_ascii_digit() || byte == REFERENCE)
    {
        // The password of an address that was cut short.
        return format!("{}:{MASK}", &text[..host.len()]);
    }
    let mut shown = String::new();
    let mut start = 0;
    for segment in judged.split_inclusive('/') {
        let name = segment.trim_end_matches('/');
        let part = &text[start..start + segment.len()];
        if is_like_credential(name) {
            shown += MASK;
            shown += &segment[name.len()..];
        } else {
            shown += part;
        }
        start += segment.len();
    }
    shown
}

/// A query with its names and without its values, and no fragment.
fn shown_query(text: &str) -> String {
    let (query, fragment) = text.split_once('#').map_or((text, None), |(q, f)| (q, Some(f)));
    let pairs = query.trim_start_matches('?').split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) if is_plain(name) && !value.is_empty() => format!("{name}={MASK}"),
        _ if is_plain(pair.trim_end_matches('=')) => pair.to_owned(),
        _ => MASK.to_owned(),
    });
    let pairs = pairs.collect::<Vec<_>>().join("&");
    let query = if query.is_empty() { String::new() } else { format!("?{pairs}") };
    let fragment = if fragment.is_some() { format!("#{MASK}") } else { String::new() };
    query + &fragment
}

/// What stands in for every byte of a reference while a text is judged.
const REFERENCE: u8 = b'0';

/// A text with references replaced by as many harmless characters.
fn without_references(text: &str) -> String {
    let mut judged = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}').map(|at| at + 1) else { break };
        judged.push_str(&rest[..start]);
        judged.extend(std::iter::repeat_n(char::from(REFERENCE), length));
        rest = &rest[start + length..];
    }
    judged.push_str(rest);
    judged
}

/// Whether a text is one reference without a default, and nothing else.
pub(crate) fn is_reference(text: &str) -> bool {
    fn named(inner: &str) -> Option<&str> {
        inner.strip_prefix("env:").or_else(|| inner.strip_prefix("file:"))
    }
    let inner = match text.strip_suffix('}').map(|text| (text.strip_prefix("${"), text)) {
        Some((Some(inner), _)) => named(inner).or(inner.strip_prefix("input:")).unwrap_or(inner),
        Some((None, text)) => match text.strip_prefix('{').and_then(named) {
            Some(inner) => inner,
            None => return false,
        },
        None => return false,
    };
    inner.chars().all(|it| it.is_ascii_alphanumeric() || "_-./~".contains(it)) && !inner.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_hold_credentials_are_told_by_their_parts() {
        for name in ["API_KEY", "clientSecret", "--auth-token", "--accesstoken", "DB_PASS"] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["PORT", "--directory", "max_lines", "-y"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn ordinary_command_lines_are_shown_whole() {
        for text in [
            "-y",
            "@modelcontextprotocol/server-filesystem",
            "package-7@1.2.3",
            "/home/me/Desktop",
            "--port=8080",
            "--directory=/srv/data",
            "run",
            "C:\\tools\\server.exe",
            "${workspaceFolder}/server.js",
            "localhost:8080",
        ] {
            assert_eq!(argument(text), text);
        }
    }

    #[test]
    fn credentials_in_arguments_are_hidden() {
        for (text, shown) in [
            ("Authorization: Bearer abc", "***"),
            ("X-Api-Key:abc", "X-Api-Key:***"),
            ("MYSQL_PASS=abc", "MYSQL_PASS=***"),
            ("MODE=abc", "MODE=***"),
            ("--token=${A}abc", "--token=***"),
            ("{\"apiKey\":\"abc\"}", "***"),
            ("Server=h;Password=abc;", "***"),
            ("ghp_abc", "***"),
            ("x/ghp_abc", "***"),
            ("0123456789abcdef0123", "***"),
        ] {
            assert_eq!(argument(text), shown, "{text}");
        }
        let shown = arguments(["-y", "srv", "--password", "x", "--key", "${K}"].into_iter());
        assert_eq!(shown, ["-y", "srv", "--password", "***", "--key", "${K}"]);
    }

    #[test]
    fn addresses_keep_what_says_where_they_lead() {
        for (text, shown) in [
            ("https://example.com/mcp", "https://example.com/mcp"),
            ("http://[::1]:80/mcp", "http://[::1]:80/mcp"),
            ("http://h:${PORT}/x", "http://h:${PORT}/x"),
            ("https://me:pw@host/p?a=1&api_key=abc", "https://***@host/p?a=***&api_key=***"),
            ("https://${U}:pw@host/p", "https://***@host/p"),
            ("https://host/p#access_token=abc", "https://host/p#***"),
            ("https://host/s/abcdefgh12345678/mcp", "https://host/s/***/mcp"),
            ("postgres://u:a/b@host/db", "postgres://***@host/db"),
            ("http://me:pass", "http://me:***"),
            ("${BASE}/mcp", "${BASE}/mcp"),
        ] {
            assert_eq!(argument(text), shown, "{text}");
        }
    }

    #[test]
    fn only_plain_texts_are_quoted() {
        for text in ["command", "my server", "read-only", "@scope/name"] {
            assert_eq!(quoted(text), format!("`{text}`"));
        }
        for text in ["TOKEN=abc", "Authorization: Bearer abc", "sk-abc", "", "a\u{1b}[2J"] {
            assert_eq!(quoted(text), "`***`", "{text}");
        }
    }

    #[test]
    fn references_are_recognised_exactly() {
        for text in ["${A}", "${env:A_B}", "${file:~/t.txt}", "${input:gh}", "{env:A}", "{file:x}"]
        {
            assert!(is_reference(text), "{text}");
        }
        for text in ["{A}", "${A:-b}", "x${A}", "${A b}", "${}", "{\"a\":1}"] {
            assert!(!is_reference(text), "{text}");
        }
    }
}
