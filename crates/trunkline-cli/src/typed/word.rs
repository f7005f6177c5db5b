//! Parses one word of a command line into a key and a value, without knowledge of the tool.

use std::fmt;

use anyhow::Result;
use trunkline::config::escape_control;
use trunkline::message::Raw;

use crate::output::exit::{Failure, FailureKind};

/// One argument as it is typed.
#[derive(Clone, Debug)]
pub(crate) struct ArgumentWord {
    /// The key; `None` for a value without a name.
    pub(super) path: Option<KeyPath>,
    pub(super) value: WordValue,
    /// The word itself.
    pub(super) text: String,
}

/// The key of an argument: `a.b` or `list[]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyPath {
    /// The key as it is typed, split at dots.
    pub(super) keys: Vec<String>,
    /// Whether the value is one item of a list.
    pub(super) is_item: bool,
}

/// The value of an argument.
#[derive(Clone, Debug)]
pub(super) enum WordValue {
    /// Text, whose type the schema decides.
    Text(String),
    /// The content of this file.
    File(String),
    /// JSON, as it is.
    Json(Raw),
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.keys.join("."))
    }
}

impl ArgumentWord {
    /// The key for messages, as in `text=…`.
    pub(super) fn shown(&self) -> String {
        match &self.path {
            Some(path) => format!("{}=…", escape_control(&path.to_string())),
            None => escape_control(&self.text),
        }
    }
}

/// Parses a word: `key=value`, `key:=JSON`, `key=@file`, or a value without a name.
pub(crate) fn parse_word(word: &str) -> Result<ArgumentWord> {
    match pair(word)? {
        Some(argument) => Ok(argument),
        None => {
            let value = WordValue::Text(word.to_owned());
            Ok(ArgumentWord { path: None, value, text: word.to_owned() })
        }
    }
}

/// Parses the value of `--arg`, which always has a name.
pub(crate) fn parse_pair(word: &str) -> Result<ArgumentWord> {
    if let Some(argument) = pair(word)? {
        return Ok(argument);
    }
    // Names that are no keys on a command line can be given here.
    let Some((name, value)) = word.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        let shown = escape_control(word);
        let message = "`--arg` needs a name and a value, as in `--arg name=value`";
        let failure = Failure::new(FailureKind::Usage, format!("{message}, and not `{shown}`"));
        return Err(failure.into());
    };
    let path = Some(KeyPath { keys: vec![name.to_owned()], is_item: false });
    Ok(ArgumentWord { path, value: WordValue::Text(value.to_owned()), text: word.to_owned() })
}

fn pair(word: &str) -> Result<Option<ArgumentWord>> {
    let Some((key, value)) = word.split_once('=') else { return Ok(None) };
    let (key, is_json) = match key.strip_suffix(':') {
        Some(key) => (key, true),
        None => (key, false),
    };
    if let Some(list) = list_of_part(key) {
        let (shown, list) = (escape_control(key), escape_control(list));
        let message = format!("`{shown}` names a part of one item of a list");
        let hint = format!("write each item as a whole: `{list}[]:='{{…}}'`, or `{list}:='[…]'`");
        return Err(Failure::new(FailureKind::BadArguments, message).with_hint(hint).into());
    }
    if !is_key(key) {
        return Ok(None);
    }
    let (key, is_item) = match key.strip_suffix("[]") {
        Some(key) => (key, true),
        None => (key, false),
    };
    let path = KeyPath { keys: key.split('.').map(str::to_owned).collect(), is_item };
    let value = match (is_json, value.strip_prefix('@')) {
        (true, _) => WordValue::Json(json(key, value)?),
        (false, Some(file)) => WordValue::File(file.to_owned()),
        (false, None) => WordValue::Text(value.to_owned()),
    };
    Ok(Some(ArgumentWord { path: Some(path), value, text: word.to_owned() }))
}

fn json(key: &str, text: &str) -> Result<Raw> {
    let parsed = Raw::from_text(text);
    Ok(parsed.map_err(|error| {
        let shown = escape_control(key);
        let message = format!("`{shown}:=…` is {error}");
        let hint = format!("`:=` takes JSON; `{shown}=…` takes text");
        Failure::new(FailureKind::BadArguments, message).with_hint(hint)
    })?)
}

/// The list of a key such as `list[0]` or `list[].name`, which says a part of an item.
fn list_of_part(text: &str) -> Option<&str> {
    let (list, rest) = text.split_once('[')?;
    let (number, part) = rest.split_once(']')?;
    let is_number = number.chars().all(|it| it.is_ascii_digit());
    let is_part = !number.is_empty() || part.starts_with(['.', '[']);
    let fits = |it: char| it.is_alphanumeric() || "_-$.[]".contains(it);
    (is_key(list) && is_number && is_part && part.chars().all(fits)).then_some(list)
}

/// Whether a text before `=` is a key. Others, such as `x + 1 == 2`, are values with an equals sign.
fn is_key(text: &str) -> bool {
    let name = text.strip_suffix("[]").unwrap_or(text);
    let fits = |it: char| it.is_alphanumeric() || matches!(it, '_' | '-' | '$' | '.');
    let is_begin = |it: char| it.is_alphanumeric() || matches!(it, '_' | '$');
    name.starts_with(is_begin)
        && name.chars().all(fits)
        && name.split('.').all(|part| !part.is_empty())
}
