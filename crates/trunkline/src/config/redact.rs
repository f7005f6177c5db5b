//! Redacts texts that may contain a literal credential.
//!
//! Quoted lines and messages show only text that is known to be harmless. Command lines and URLs,
//! which people need to recognize, show all but possible credentials.

#![expect(
    clippy::string_slice,
    reason = "a parser of its own text: every offset comes from this text, and fuzzing covers it"
)]

mod credential;
mod url;
mod spans;
mod lines;

pub(crate) use credential::{is_like_credential, is_secret_name};

/// Whether the literal value of a variable or header is a credential, by its name or its form.
pub fn is_credential(name: &str, value: &str) -> bool {
    is_secret_name(name) || is_like_credential(value)
}
pub(crate) use lines::sensitive_lines;
pub(crate) use spans::sensitive_spans;

use super::secret::MASK;

/// Longest text that is plain enough to be shown anywhere.
const LONGEST_PLAIN: usize = 64;

/// Longest word that is shown as the value of a flag.
const LONGEST_WORD: usize = 16;

/// Longest command line that is shown, in bytes: longer ones are scripts.
const LONGEST_LINE: usize = 1024;

/// Placeholder for every byte of a reference while a text is checked.
pub(crate) const REFERENCE: u8 = b'0';

/// Whether a text is a short name, word or path, as keys, tools and programs have.
pub(crate) fn is_plain(text: &str) -> bool {
    let plain = |character: char| character.is_alphanumeric() || "_-.$@/ ".contains(character);
    !text.is_empty()
        && text.len() <= LONGEST_PLAIN
        && text.chars().all(plain)
        && !is_like_credential(text)
}

/// A name for display; masked unless harmless.
pub(crate) fn name(text: &str) -> &str {
    if is_plain(text) { text } else { MASK }
}

/// A text in backticks for a message; masked unless harmless.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", name(text))
}

/// The name of a server in backticks for a message. Other messages show it as well, so that only a credential in the
/// place of a name is masked.
pub(crate) fn quoted_server(server: &str) -> String {
    match is_like_credential(server) {
        true => format!("`{MASK}`"),
        false => format!("`{}`", escape_control(server)),
    }
}

/// Replaces characters that a terminal would interpret: line breaks and other control characters,
/// and characters that change the direction or visibility of others.
pub fn escape_control(text: &str) -> String {
    text.chars().map(|it| if is_hidden(it) { char::REPLACEMENT_CHARACTER } else { it }).collect()
}

/// Whether a character is invisible, or changes how others are displayed.
pub fn is_hidden(character: char) -> bool {
    match character {
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => {
            true
        }
        // Line and paragraph separators, and blanks that look like nothing or like a space.
        '\u{2028}' | '\u{2029}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => true,
        // Zero width, direction and shaping characters.
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        // Variation selectors, which can encode arbitrary bytes; U+FE0F, which selects the emoji
        // form, is excepted.
        '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0e}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        // Tags, and more variation selectors.
        '\u{e0000}'..='\u{e0fff}' => true,
        other => other.is_control(),
    }
}

/// A text and the copy that is checked in its place, in which every byte of a reference is replaced
/// by a harmless one: references are names, and not secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RedactionInput {
    pub(crate) text: String,
    pub(crate) judged: String,
}

impl RedactionInput {
    /// Treats everything in the form of a reference as one.
    pub(crate) fn of_text(text: &str) -> Self {
        let mut judged = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let length = rest[start..].find('}').map(|at| at + 1);
            let is_escaped = rest[..start].ends_with('$');
            let fits = |it: &usize| !is_escaped && is_reference(&rest[start..start + it]);
            let Some(length) = length.filter(fits) else { break };
            judged.push_str(&rest[..start]);
            judged.extend(std::iter::repeat_n(char::from(REFERENCE), length));
            rest = &rest[start + length..];
        }
        judged.push_str(rest);
        Self { text: text.to_owned(), judged }
    }

    fn is_reference(&self) -> bool {
        !self.judged.is_empty()
            && self.judged.bytes().all(|byte| byte == REFERENCE)
            && self.text.starts_with('$')
    }
}

/// The arguments of a program for display. Masks the value after a flag such as `--token`, and
/// everything that [`argument`] masks.
pub(crate) fn arguments(arguments: &[RedactionInput]) -> Vec<String> {
    let mut after_secret_flag = false;
    let mut shown = |it: &RedactionInput| {
        let hidden = std::mem::replace(&mut after_secret_flag, precedes_secret(&it.judged));
        if hidden && !it.is_reference() { MASK.to_owned() } else { argument(it) }
    };
    arguments.iter().map(&mut shown).collect()
}

/// Whether the next argument is a credential: this is a flag, a header name, or an auth scheme.
fn precedes_secret(text: &str) -> bool {
    let name = text.trim_start_matches(['-', '–', '—', '/']).trim_end_matches(['=', ':']);
    let is_one_word = name.chars().all(|it| it.is_alphanumeric() || "-_.".contains(it));
    is_one_word && is_secret_name(name)
}

/// A program, an argument or a URL for display.
pub(crate) fn argument(it: &RedactionInput) -> String {
    let RedactionInput { text, judged } = it;
    if it.is_reference() || is_path(judged) {
        return text.clone();
    }
    if judged.contains(is_composed) {
        return if is_harmless_line(judged) { text.clone() } else { MASK.to_owned() };
    }
    if judged.contains("://") {
        return url::shown(text, judged);
    }
    if is_like_credential(judged) {
        return MASK.to_owned();
    }
    match judged.split_once(['=', ':']) {
        Some((name, value)) if !is_harmless_value(name, value, judged) => {
            format!("{}{MASK}", &text[..=name.len()])
        }
        _ => text.clone(),
    }
}

/// Whether a text is a list of arguments separated by spaces, such as a command line, without one
/// that is masked.
fn is_harmless_line(judged: &str) -> bool {
    let is_sign = |it: char| is_composed(it) && it != ' ';
    let words: Vec<_> =
        judged.split(' ').filter(|it| !it.is_empty()).map(RedactionInput::of_text).collect();
    let are_shown = || arguments(&words).iter().zip(&words).all(|(shown, it)| *shown == it.text);
    judged.len() <= LONGEST_LINE && !judged.contains(is_sign) && are_shown()
}

/// Returns the literal parts of an argument that are credentials by name or form. The rest of a
/// script or command line is not secret: messages contain it.
pub(crate) fn secret_parts(argument: &str) -> Vec<&str> {
    let is_edge = |it: char| is_composed(it) || "()[],".contains(it);
    let mut parts = Vec::new();
    let mut is_announced = false;
    for word in argument.split(is_edge).filter(|word| !word.is_empty()) {
        let is_sign = !word.contains(char::is_alphanumeric);
        if is_announced && !is_sign {
            parts.push(word);
        }
        // A colon may separate a name and its value, with quotes around each.
        is_announced = (is_announced && is_sign) || precedes_secret(word);
        if word.contains("://") {
            parts.extend(url::secret_parts(word));
        } else if is_like_credential(word) {
            parts.push(word);
        }
        if let Some((name, value)) = word.split_once(['=', ':'])
            && is_secret_name(name)
            && !value.is_empty()
        {
            parts.push(value);
        }
    }
    parts
}

/// Whether a character indicates a composite text: a command line, JSON, a connection string.
pub(crate) fn is_composed(character: char) -> bool {
    character.is_whitespace() || "{}\"'`;|<>".contains(character)
}

/// Whether a text is an absolute path, which may contain spaces.
pub(crate) fn is_path(text: &str) -> bool {
    let rest = match text.as_bytes() {
        [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic() => &text[2..],
        [b'/' | b'~', ..] => text,
        _ => return false,
    };
    let plain = |it: char| it.is_alphanumeric() || "_-.@/\\ ~()+".contains(it);
    rest.chars().all(plain)
        && !rest.contains("//")
        && !rest.contains(" -")
        && !is_like_credential(rest)
}

/// Whether the value after `=` or `:` is a number, a path, a version, or a plain word after a flag.
fn is_harmless_value(name: &str, value: &str, whole: &str) -> bool {
    if is_secret_name(name) {
        return false;
    }
    let number = value.bytes().all(|byte| byte.is_ascii_digit());
    let path = value.starts_with(['/', '.', '~', '\\']) && is_plain(value);
    let word =
        value.len() <= LONGEST_WORD && value.chars().all(|it| it.is_ascii_lowercase() || it == ',');
    let tag = |it: &str| {
        let start =
            it.trim_start_matches(['v', '=']).starts_with(|first: char| first.is_ascii_digit());
        it.len() <= LONGEST_WORD && (start || it.bytes().all(|byte| byte.is_ascii_lowercase()))
    };
    let is_image = whole.contains(':') && name.contains('/');
    let is_package = matches!(name, "npm" | "jsr" | "node") || value.starts_with('=');
    number
        || path
        || matches!(value, "true" | "false")
        || (name.starts_with('-') && word)
        || (is_image && tag(value))
        || (is_package && is_plain(value.trim_start_matches('=')))
}

/// Last words of the names of variables that hold settings, which messages are about.
const SETTINGS: &[&str] = &[
    "branch",
    "dir",
    "directory",
    "endpoint",
    "env",
    "environment",
    "file",
    "folder",
    "host",
    "lang",
    "level",
    "locale",
    "mode",
    "package",
    "path",
    "port",
    "region",
    "repo",
    "repository",
    "uri",
    "url",
    "version",
    "zone",
];

/// Whether a variable is no secret by its name and its value: a path, or a setting that is called one
/// and does not look like a credential. Any other value under `env` may be one (SEC-2).
pub(crate) fn is_harmless_variable(name: &str, value: &str) -> bool {
    !is_secret_name(name) && (is_path(value) || (has_setting_name(name) && is_setting(value)))
}

fn has_setting_name(name: &str) -> bool {
    credential::words(name).last().is_some_and(|word| SETTINGS.contains(&word.as_str()))
}

/// Whether a value is a plain word, or an address without anything that is hidden in one.
fn is_setting(value: &str) -> bool {
    is_plain(value) || (value.contains("://") && url::shown(value, value) == value)
}

/// Whether a text is exactly one reference, without a default that could be a secret.
pub(crate) fn is_reference(text: &str) -> bool {
    let Some(inner) = text.strip_suffix('}') else { return false };
    let (inner, braces_only) = match (inner.strip_prefix("${"), inner.strip_prefix('{')) {
        (Some(inner), _) => (inner, false),
        (None, Some(inner)) => (inner, true),
        (None, None) => return false,
    };
    let inner = inner.strip_suffix(":-***").unwrap_or(inner);
    let word = |it: &str| it.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let (name, fits) = match inner.split_once(':') {
        Some(("env", name)) => (name, word(name)),
        Some(("file", path)) => (path, is_plain(path.trim_start_matches('~'))),
        Some(("input", id)) => (id, is_plain(id) && !braces_only),
        Some(_) => return false,
        None => (inner, (word(inner) || inner == "/") && !braces_only),
    };
    !name.is_empty() && fits && !is_like_credential(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        argument(&RedactionInput::of_text(text))
    }

    fn all_shown(texts: &[&str]) -> Vec<String> {
        arguments(&texts.iter().map(|text| RedactionInput::of_text(text)).collect::<Vec<_>>())
    }

    #[test]
    fn ordinary_command_lines_are_shown_whole() {
        for text in [
            "-y",
            "@modelcontextprotocol/server-filesystem",
            "package-7@1.2.3",
            "/home/me/My Documents",
            "C:\\Program Files\\nodejs\\npx.cmd",
            "--port=8080",
            "--directory=/srv/data",
            "--transport=stdio",
            "mcp/postgres:latest",
            "ghcr.io/x/y:v1.2.3",
            "pkg==1.2.3",
            "npm:@scope/x",
            "run",
            "${workspaceFolder}/server.js",
            "localhost:8080",
            "git+https://github.com/oraios/serena@main",
            "exec node server.js --port=80",
        ] {
            assert_eq!(shown(text), text);
        }
        let texts = ["--author", "me", "--keyspace", "users", "--key-file", "/home/me/key.pem"];
        assert_eq!(all_shown(&texts), texts);
    }

    #[test]
    fn credentials_in_arguments_are_hidden() {
        for (text, expected) in [
            ("Authorization: Bearer abc", "***"),
            ("X-Api-Key:abc", "X-Api-Key:***"),
            ("MYSQL_PASS=abc", "MYSQL_PASS=***"),
            ("MODE=abc", "MODE=***"),
            ("PIN=4711", "PIN=***"),
            ("--token=${A}abc", "--token=***"),
            ("{\"apiKey\":\"abc\"}", "***"),
            ("Server=h;Password=abc;", "***"),
            ("API_KEY=abc npx mcp-remote https://example.com/mcp", "***"),
            ("jdbc:sqlserver://localhost;password=abc;", "***"),
            ("ghp_abc", "***"),
            ("x/ghp_abc", "***"),
            ("0123456789abcdef0123", "***"),
            ("3f2b8c1e-5d4a-4e6f-9b7a-0c1d2e3f4a5b", "***"),
            ("${TOKEN-abc}", "***"),
            ("$${abc}", "***"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        assert_eq!(
            all_shown(&["-y", "--password", "x", "--key", "${K}"]),
            ["-y", "--password", "***", "--key", "${K}"]
        );
        for flag in [
            "--token=",
            "API_KEY=",
            "X-Api-Key:",
            "––token",
            "/token",
            "apiKey",
            "--pat",
            "--jwt",
            "Bearer",
        ] {
            assert_eq!(all_shown(&[flag, "abc"])[1], "***", "{flag}");
        }
    }

    #[test]
    fn secret_parts_are_found_by_name_and_form() {
        for (text, parts) in [
            ("import some_module", &[][..]),
            ("require('no-such-module')", &[]),
            ("API_KEY=hunter2 npx srv", &["hunter2"]),
            ("{\"apiKey\": \"hunter2\"}", &["hunter2"]),
            ("Authorization: Bearer hunter2", &["Bearer", "hunter2"]),
            ("Server=h;Password=hunter2;", &["hunter2"]),
            ("curl -H 'X-Key: hunter2' x", &["hunter2"]),
            ("postgres://me:hunter2@host/db?a=b", &["me:hunter2", "hunter2", "b"]),
            ("echo ghp_abc", &["ghp_abc"]),
        ] {
            assert_eq!(secret_parts(text), parts, "{text}");
        }
    }

    #[test]
    fn variables_are_harmless_by_name_and_value() {
        assert!(is_harmless_variable("DATA", "/srv/my data"));
        for (name, value) in [
            ("NODE_ENV", "production"),
            ("AWS_REGION", "us-east-1"),
            ("LOG_LEVEL", "verbose"),
            ("API_URL", "https://api.example.com/v1"),
            ("REPO", "acme/widgets"),
            ("PACKAGE", "@scope/server"),
            ("PORT", "18080"),
            ("CONFIG_FILE", "data/files.json"),
        ] {
            assert!(is_harmless_variable(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("DATABASE_URL", "postgres://me:hunter2@db.example/x"),
            ("CALLBACK_URL", "https://a.example/?key=hunter2"),
            ("LOG_LEVEL", "ghp_0123456789abcdef0123456789abcdef0123"),
            ("SECRET_REGION_KEY", "production"),
            ("MODE", "Bearer hunter2"),
            ("API_TOKEN", "/srv/data"),
            ("LOGIN", "swordfish"),
            ("NUMBER", "4711471147"),
            ("DATA", "/srv/ghp_0123456789abcdef0123456789abcdef0123"),
        ] {
            assert!(!is_harmless_variable(name, value), "{name}={value}");
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
        for text in [
            "${A}",
            "${env:A_B}",
            "${file:~/t.txt}",
            "${input:gh}",
            "{env:A}",
            "{file:x}",
            "${A:-***}",
        ] {
            assert!(is_reference(text), "{text}");
        }
        for text in
            ["{A}", "${A:-b}", "x${A}", "${A b}", "${}", "{\"a\":1}", "${A-b}", "${ghp_0123}"]
        {
            assert!(!is_reference(text), "{text}");
        }
    }
}
