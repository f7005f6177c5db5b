//! The token file: digests of tokens and their scopes. No error message about it contains a value
//! that may be a secret.

mod unique_keys;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::error::Category;
use serde_json::{Map, Value, json};
use trunkline::config::{Access, closest_match, escape_control};
use trunkline::host::Host;
use trunkline_gateway::{Scope, Token, Tokens};

use crate::arguments::quoted;
use crate::environment::{PrivateFile, ProcessEnv};
use crate::output::terminal::Terminal;
use unique_keys::UniqueKeys;

/// All values of `access`.
const ACCESS: [Access; 3] = [Access::ReadOnly, Access::ReadOnlyStrict, Access::ReadWrite];

/// The prefix of a digest, and the number of characters after it.
const DIGEST: (&str, usize) = ("sha256:", 43);

/// Characters of a digest that are enough to distinguish it.
const SHOWN_OF_DIGEST: usize = 8;

/// Limit on the characters of a token name, which has to fit on a line.
const MAX_NAME: usize = 64;

/// The keys of one token.
const KEYS: [&str; 5] = ["digest", "agent", "bundles", "access", "created"];

/// The stored part of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredToken {
    pub(crate) digest: String,
    pub(crate) scope: Scope,
    /// The date of its creation.
    pub(crate) created: Option<String>,
}

/// A token file and its content.
pub(crate) struct TokenFile {
    pub(crate) file: PrivateFile,
    pub(crate) kept: BTreeMap<String, StoredToken>,
}

impl TokenFile {
    /// The token file: the given one, or the default.
    pub(crate) fn place(named: Option<&Path>, environment: &ProcessEnv) -> Result<PrivateFile> {
        let path = match named {
            Some(path) => environment.working_directory().join(path),
            None => environment
                .tokens_file()
                .context("there is no folder for tokens here; name a file for them")?,
        };
        Ok(PrivateFile::at(path))
    }

    /// Reads the file. A missing file has no tokens.
    pub(crate) fn read(file: PrivateFile) -> Result<Self> {
        let shown = shown(file.path());
        let bytes = file.read().with_context(|| format!("{shown} cannot be read"))?;
        let kept = match bytes {
            Some(bytes) => parse(&bytes).map_err(|problems| unusable(&shown, &problems))?,
            None => BTreeMap::new(),
        };
        Ok(Self { file, kept })
    }

    pub(crate) fn shown(&self) -> String {
        shown(self.file.path())
    }

    /// The option that selects this file in other commands, if it was given.
    pub(crate) fn option(&self, named: Option<&Path>) -> String {
        named.map(|_| format!(" --file {}", quoted(&self.shown()))).unwrap_or_default()
    }

    /// Warns of tokens that give no access, with the reason.
    pub(crate) fn warn_of_useless(&self, host: &Host, terminal: &Terminal) {
        for (name, kept) in &self.kept {
            if let Err(none) = kept.scope.check(host) {
                terminal
                    .warn(&format!("the token `{}` is of no use: {none}", escape_control(name)));
            }
        }
    }

    /// Warns if other users can read or change the file.
    pub(crate) fn warn_if_open(&self, terminal: &Terminal) {
        if self.file.is_open_to_others() {
            let shown = self.shown();
            let advice = format!("`chmod 600 {shown}` makes it yours alone");
            terminal.warn(&format!("others can read or change {shown}; {advice}"));
        }
    }

    /// The tokens for a gateway.
    pub(crate) fn tokens(&self) -> Tokens {
        let mut tokens = Tokens::default();
        for (name, kept) in &self.kept {
            let token = Token { name: name.clone(), scope: kept.scope.clone() };
            tokens.insert(kept.digest.clone(), token);
        }
        tokens
    }

    /// The content of the file, as JSON.
    pub(crate) fn as_text(&self) -> String {
        let tokens = self.kept.iter().map(|(name, kept)| (name.clone(), kept.as_written()));
        format!("{:#}\n", json!({ "tokens": Map::from_iter(tokens) }))
    }
}

/// Reads the tokens for `serve`; fails if there are none.
pub(crate) fn for_serving(place: PrivateFile, named: Option<&Path>) -> Result<(TokenFile, Tokens)> {
    let file = TokenFile::read(place)?;
    if file.kept.is_empty() {
        let option = file.option(named);
        bail!(
            "there are no tokens in {}, so every request would be rejected\n  \
             `trunkline token add NAME{option}` makes one",
            file.shown()
        );
    }
    let tokens = file.tokens();
    Ok((file, tokens))
}

/// Rejects an invalid token name.
pub(crate) fn check_name(name: &str) -> Result<()> {
    match name.trim() {
        "" => bail!("a token needs a name, such as that of who will bear it"),
        _ if name.chars().count() > MAX_NAME => {
            bail!("the name of a token has at most {MAX_NAME} characters")
        }
        trimmed if trimmed != name || escape_control(name) != name => {
            bail!("the name of a token has no characters that cannot be seen")
        }
        _ => Ok(()),
    }
}

impl StoredToken {
    /// The part of the digest that may be shown.
    pub(crate) fn shown_digest(&self) -> String {
        let start: String = self.digest.chars().take(DIGEST.0.len() + SHOWN_OF_DIGEST).collect();
        format!("{start}…")
    }

    /// The scope, as text.
    pub(crate) fn shown_scope(&self) -> String {
        let agent = self.scope.agent.iter().map(|it| format!("agent {}", escape_control(it)));
        let bundles = self.scope.bundles.iter().map(|it| format!("bundle {}", escape_control(it)));
        let access = self.scope.access.iter().map(|it| it.as_str().to_owned());
        let parts: Vec<_> = agent.chain(bundles).chain(access).collect();
        if parts.is_empty() { "everything".to_owned() } else { parts.join(", ") }
    }

    fn as_written(&self) -> Value {
        let mut written = json!({ "digest": self.digest });
        if let Some(agent) = &self.scope.agent {
            written["agent"] = agent.as_str().into();
        }
        if !self.scope.bundles.is_empty() {
            written["bundles"] = self.scope.bundles.clone().into();
        }
        if let Some(access) = self.scope.access {
            written["access"] = access.as_str().into();
        }
        if let Some(created) = &self.created {
            written["created"] = created.as_str().into();
        }
        written
    }
}

fn shown(path: &Path) -> String {
    escape_control(&path.to_string_lossy())
}

fn unusable(shown: &str, problems: &[String]) -> anyhow::Error {
    anyhow!("{shown} is no file of tokens\n  {}", problems.join("\n  "))
}

/// Parses a file, or returns all of its problems.
fn parse(bytes: &[u8]) -> Result<BTreeMap<String, StoredToken>, Vec<String>> {
    let UniqueKeys(value) = serde_json::from_slice(bytes).map_err(|error| {
        let problem = match error.classify() {
            Category::Data => "a key is written twice in one object",
            Category::Io | Category::Syntax | Category::Eof => "it is not JSON",
        };
        vec![format!("{problem}: line {}, column {}", error.line(), error.column())]
    })?;
    let form = || vec!["it has to be an object such as {\"tokens\": {}}".to_owned()];
    let members = value.as_object().ok_or_else(form)?;
    let mut problems = unknown_keys("", members, &["tokens"]);
    let listed = match members.get("tokens") {
        Some(Value::Object(listed)) => listed.clone(),
        Some(_) => {
            problems.push("`tokens` has to be an object".to_owned());
            Map::new()
        }
        None => {
            problems.push("there is no `tokens` in it".to_owned());
            Map::new()
        }
    };
    let mut kept: BTreeMap<String, StoredToken> = BTreeMap::new();
    for (name, entry) in &listed {
        let shown = escape_control(name);
        let read = parse_one(&shown, entry, &mut problems);
        let same = kept.iter().find(|(_, other)| other.digest == read.digest);
        if let Some((other, _)) = same.filter(|_| !read.digest.is_empty()) {
            problems.push(format!("`{shown}` has the digest of `{}`", escape_control(other)));
        }
        kept.insert(name.clone(), read);
    }
    if problems.is_empty() { Ok(kept) } else { Err(problems) }
}

fn parse_one(name: &str, entry: &Value, problems: &mut Vec<String>) -> StoredToken {
    let empty = Map::new();
    let members = entry.as_object().unwrap_or_else(|| {
        problems.push(format!("`{name}` has to be an object with a `digest`"));
        &empty
    });
    problems.extend(unknown_keys(&format!("`{name}`: "), members, &KEYS));
    let mut wrong = |what: &str| problems.push(format!("`{name}`: {what}"));
    let text = |key: &str| match members.get(key) {
        None => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => {
            wrong(&format!("`{key}` has to be a text"));
            None
        }
    };
    let [digest, agent, access, created] = ["digest", "agent", "access", "created"].map(text);
    let is_written = members.contains_key("digest");
    match &digest {
        Some(digest) if !is_digest(digest) => wrong(
            "`digest` is not what `trunkline token add` writes: sha256: and 43 characters. A token \
             itself does not belong here",
        ),
        None if !is_written && entry.is_object() => wrong("there is no `digest`"),
        _ => {}
    }
    let bundles = bundles(members.get("bundles")).unwrap_or_else(|problem| {
        wrong(problem);
        Vec::new()
    });
    let access = access.and_then(|word| {
        let found = ACCESS.into_iter().find(|it| it.as_str() == word);
        if found.is_none() {
            wrong(&unknown_access(&word));
        }
        found
    });
    let scope = Scope { agent, bundles, access, conversation: None };
    StoredToken { digest: digest.unwrap_or_default(), scope, created }
}

/// The bundles of a token. A scope without bundles is unlimited, so an empty list is rejected.
fn bundles(written: Option<&Value>) -> Result<Vec<String>, &'static str> {
    let Some(written) = written else { return Ok(Vec::new()) };
    let no_names = "`bundles` has to be a list of names";
    let items = written.as_array().ok_or(no_names)?;
    if items.is_empty() {
        return Err("`bundles` is empty; leave it out, or name a bundle");
    }
    let names = items.iter().map(|item| item.as_str().map(str::to_owned));
    names.collect::<Option<_>>().ok_or(no_names)
}

fn is_digest(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.strip_prefix(DIGEST.0)
        .is_some_and(|rest| rest.len() == DIGEST.1 && rest.chars().all(is_part))
}

fn unknown_access(word: &str) -> String {
    match closest_match(word, ACCESS.iter().map(|it| it.as_str())) {
        Some(near) => format!("`{}` is no access; did you mean `{near}`?", escape_control(word)),
        None => {
            let known = ACCESS.map(|it| format!("`{}`", it.as_str())).join(", ");
            format!("`access` has to be one of {known}")
        }
    }
}

/// Reports unknown keys: a misspelt limit would be no limit, so none is ignored.
fn unknown_keys(place: &str, members: &Map<String, Value>, known: &[&str]) -> Vec<String> {
    let unknown = members.keys().filter(|key| !known.contains(&key.as_str()));
    let problem = |key: &String| match closest_match(key, known.iter().copied()) {
        Some(near) => format!("{place}`{}` is no key; did you mean `{near}`?", escape_control(key)),
        None => format!("{place}there is a key that is none: there are {}", known.join(", ")),
    };
    unknown.map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST_OF_ANN: &str = "sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

    fn problems(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err().join("\n")
    }

    #[test]
    fn written_tokens_are_read_back() {
        let scope = Scope {
            agent: Some("reader".to_owned()),
            bundles: vec!["b".to_owned()],
            access: Some(Access::ReadOnlyStrict),
            conversation: None,
        };
        let created = Some("2026-07-28".to_owned());
        let full = StoredToken { digest: DIGEST_OF_ANN.to_owned(), scope, created };
        let kept = BTreeMap::from([("ann".to_owned(), full)]);
        let file = TokenFile { file: PrivateFile::at("tokens.json".into()), kept: kept.clone() };
        assert_eq!(parse(file.as_text().as_bytes()).unwrap(), kept);
    }

    /// A limit that is empty, or that other parsers read differently, must not give full access.
    #[test]
    fn limits_that_are_empty_or_written_twice_are_refused() {
        let token = |limits: &str| format!(r#""ann":{{"digest":"{DIGEST_OF_ANN}"{limits}}}"#);
        let file = |tokens: &str| format!(r#"{{"tokens":{{{tokens}}}}}"#);
        let (limited, open) = (token(r#","access":"read-only""#), token(""));
        assert!(parse(file(&limited).as_bytes()).is_ok());
        let said = problems(&file(&token(r#","bundles":[]"#)));
        assert_eq!(said, "`ann`: `bundles` is empty; leave it out, or name a bundle");
        let twice = [
            file(&token(r#","access":"read-only-strict","access":"read-write""#)),
            file(&token(r#","bundles":["b"],"bundles":["c"]"#)),
            file(&format!("{limited},{open}")),
            format!(r#"{{"tokens":{{{limited}}},"tokens":{{{open}}}}}"#),
        ];
        for text in twice {
            let said = problems(&text);
            assert!(said.starts_with("a key is written twice in one object: line 1"), "{said}");
        }
    }

    #[test]
    fn all_mistakes_are_reported_without_secrets() {
        let wrong = json!({ "tokens": {
            "a": { "digest": "trunkline_secret" },
            "b": { "digets": DIGEST_OF_ANN, "access": "readonly" },
            "c": { "digest": DIGEST_OF_ANN, "bundles": "x", "agent": 5 },
            "d": { "digest": DIGEST_OF_ANN, "access": "trunkline_secret", "trunkline_secret": 1 },
            "e": 1,
        }});
        let said = problems(&wrong.to_string());
        for part in [
            "`a`: `digest` is not what",
            "`b`: `digets` is no key; did you mean `digest`?",
            "`b`: there is no `digest`",
            "did you mean `read-only`?",
            "`c`: `bundles` has to be a list of names",
            "`c`: `agent` has to be a text",
            "`d`: `access` has to be one of",
            "`d`: there is a key that is none",
            "`d` has the digest of `c`",
            "`e` has to be an object",
        ] {
            assert!(said.contains(part), "{part} is missing in {said}");
        }
        assert!(!said.contains("trunkline_secret") && !said.contains(DIGEST_OF_ANN), "{said}");
        assert!(problems("{").contains("not JSON: line 1"));
        assert!(problems("[]").contains("has to be an object"));
        assert!(problems(r#"{"token":{}}"#).contains("did you mean `tokens`?"));
    }
}
