//! Recognizes credentials by their form, and the names that usually hold them.

/// Shortest run of mixed letters and digits that counts as a credential.
const SHORTEST_TOKEN: usize = 16;

/// Shortest run of hexadecimal digits and hyphens that counts as one: in many URLs, an identifier
/// such as a UUID is the whole secret.
const SHORTEST_HEX: usize = 20;

/// Endings of words in names that hold a credential: `API_KEY`, `clientSecret`, `--accesstoken`.
const SECRET_ENDINGS: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "pass",
    "passphrase",
    "pwd",
    "key",
    "auth",
    "authorization",
    "credential",
    "credentials",
    "bearer",
    "cookie",
    "signature",
    "session",
    "jwt",
    "dsn",
];

/// Whole words in such names.
const SECRET_WORDS: &[&str] = &["pat", "pw", "pin", "sig", "basic"];

/// Last words of names that describe a credential without containing it.
const HARMLESS_LAST_WORDS: &[&str] = &["file", "path", "dir", "name", "id", "url", "type"];

/// Prefixes of the credentials of well-known services.
const SECRET_PREFIXES: &[&str] = &[
    "sk-",
    "sk_",
    "pk_",
    "pat-",
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
    "Bearer ",
    "bearer ",
    "Basic ",
];

/// Whether a key, header, flag or variable of this name usually holds a credential.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    let is_secret = |word: &String| {
        SECRET_ENDINGS.iter().any(|ending| word.ends_with(ending))
            || SECRET_WORDS.contains(&word.as_str())
    };
    let is_harmless = |word: &String| HARMLESS_LAST_WORDS.contains(&word.as_str());
    words.iter().any(is_secret) && !words.last().is_some_and(is_harmless)
}

/// The words of a name, in small letters: `API_KEY`, `api-key` and `apiKey` have the same.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_is_small = false;
    for character in name.chars() {
        let starts_word = character.is_uppercase() && before_is_small;
        if starts_word || !character.is_alphanumeric() {
            words.push(String::new());
        }
        before_is_small = character.is_lowercase();
        if character.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(character.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a text looks like a credential: it has a known prefix, a long run of mixed letters and
/// digits, or one of hexadecimal digits and hyphens.
pub(crate) fn is_like_credential(text: &str) -> bool {
    let starts_one = |word: &str| SECRET_PREFIXES.iter().any(|prefix| word.starts_with(prefix));
    let boundaries = text.char_indices().filter(|(_, character)| !character.is_alphanumeric());
    let words = boundaries.filter_map(|(at, character)| text.get(at + character.len_utf8()..));
    std::iter::once(text).chain(words).any(starts_one)
        || text.split(|character: char| !character.is_alphanumeric()).any(is_token)
        || text.split(|it: char| !it.is_ascii_hexdigit() && it != '-').any(is_identifier)
}

fn is_token(run: &str) -> bool {
    let digits = run.bytes().any(|byte| byte.is_ascii_digit());
    let letters = run.bytes().any(|byte| byte.is_ascii_alphabetic());
    run.len() >= SHORTEST_TOKEN && digits && letters
}

fn is_identifier(run: &str) -> bool {
    let digits = run.bytes().filter(u8::is_ascii_hexdigit).count();
    let numbers = run.bytes().filter(u8::is_ascii_digit).count();
    digits >= SHORTEST_HEX && numbers >= 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credential_names_are_recognized_by_words() {
        for name in
            ["API_KEY", "clientSecret", "--auth-token", "--accesstoken", "DB_PASS", "apiKey", "pat"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["PORT", "--directory", "max_lines", "-y", "--author", "keyspace", "key-file"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
