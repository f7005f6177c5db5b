//! Edits of one server entry in the text of a configuration file: text in, text out.
//!
//! An edit keeps comments, order, indentation, line breaks, a byte order mark and trailing commas: it replaces the
//! bytes of the entry and no others. The result is parsed again, and refused if any other value has changed.
//!
//! ```
//! use serde_json::json;
//! use trunkline_hosts::edit::{self, FileFormat, KeyPath};
//!
//! let text = "{\n    // mine\n    \"mcpServers\": {}\n}\n";
//! let path = KeyPath::map(["mcpServers"]);
//! let entry = json!({ "command": "trunkline", "args": ["connect"] });
//! let edited = edit::insert(text, FileFormat::Json, &path, "trunkline", &entry)?;
//! assert!(edited.contains("// mine"));
//! assert_eq!(edit::remove(&edited, FileFormat::Json, &path, "trunkline")?.as_deref(), Some(text));
//! # Ok::<(), edit::EditError>(())
//! ```

mod text;
mod error;
mod fields;
mod json_tree;
mod json_edit;
mod toml_tree;
mod toml_text;
mod yaml_tree;
mod yaml_write;
mod expected;
mod yaml_edit;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;

pub use error::{EditError, EditErrorKind, TextLocation};

/// The format of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// JSON; comments and trailing commas are read and kept.
    Json,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

/// The way in which a file holds its servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryLayout {
    /// An object with one key per server.
    Map,
    /// A list of objects, each with the key `name`. Only YAML files have it.
    List,
}

/// The keys that lead to the servers of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyPath {
    keys: Vec<String>,
    layout: EntryLayout,
}

impl KeyPath {
    /// A path to an object with one key per server.
    pub fn map(keys: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { keys: keys.into_iter().map(Into::into).collect(), layout: EntryLayout::Map }
    }

    /// A path to a list of servers.
    pub fn list(keys: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { keys: keys.into_iter().map(Into::into).collect(), layout: EntryLayout::List }
    }

    /// The keys, outermost first.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(String::as_str)
    }

    /// Whether the servers are an object or a list.
    pub fn layout(&self) -> EntryLayout {
        self.layout
    }
}

/// The keys with dots between them, for messages.
impl fmt::Display for KeyPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.keys.join("."))
    }
}

/// Adds or replaces one server entry. Missing objects are added; an empty text becomes a file.
pub fn insert(
    text: &str,
    format: FileFormat,
    key_path: &KeyPath,
    name: &str,
    entry: &Value,
) -> Result<String, EditError> {
    let (mark, body) = split_mark(text);
    let target = Target { format, key_path, name };
    target.check()?;
    let entry = target.item(entry)?;
    let before = parse(body, format)?;
    if expected::find(&before, key_path, name) == Some(&entry) {
        return Ok(text.to_owned());
    }
    let path = target.full_path();
    let edited = match format {
        FileFormat::Json => json_edit::insert(body, &path, &entry)?,
        FileFormat::Toml => toml_text::insert(body, &path, &entry)?,
        FileFormat::Yaml => yaml_edit::insert(body, key_path, name, &entry)?,
    };
    let expected = expected::with_entry(before, key_path, name, entry);
    target.verify(&edited, expected)?;
    Ok(format!("{mark}{edited}"))
}

/// Removes one server entry. `None` if the text has none of this name.
pub fn remove(
    text: &str,
    format: FileFormat,
    key_path: &KeyPath,
    name: &str,
) -> Result<Option<String>, EditError> {
    let (mark, body) = split_mark(text);
    let target = Target { format, key_path, name };
    target.check()?;
    let before = parse(body, format)?;
    if expected::find(&before, key_path, name).is_none() {
        return Ok(None);
    }
    let path = target.full_path();
    let edited = match format {
        FileFormat::Json => json_edit::remove(body, &path)?,
        FileFormat::Toml => toml_text::remove(body, &path)?,
        FileFormat::Yaml => yaml_edit::remove(body, key_path, name)?,
    };
    let Some(edited) = edited else { return Ok(None) };
    target.verify(&edited, expected::without_entry(before, key_path, name))?;
    Ok(Some(format!("{mark}{edited}")))
}

/// Removes the object of the servers from a JSON text, if it is empty, has no comments, and other values are beside it. A
/// file for servers alone keeps it, because its host may require it. Returns the text without change otherwise.
pub fn remove_empty(text: &str, key_path: &KeyPath) -> Result<String, EditError> {
    let (mark, body) = split_mark(text);
    let keys: Vec<&str> = key_path.keys().collect();
    let before = parse(body, FileFormat::Json)?;
    let Some(edited) = json_edit::remove_empty(body, &keys)? else { return Ok(text.to_owned()) };
    let is_safe = parse(&edited, FileFormat::Json)
        .is_ok_and(|after| after == expected::without_value(before, &keys));
    Ok(if is_safe { format!("{mark}{edited}") } else { text.to_owned() })
}

/// Whether a text has an entry of this name.
pub fn contains(
    text: &str,
    format: FileFormat,
    key_path: &KeyPath,
    name: &str,
) -> Result<bool, EditError> {
    let (_, body) = split_mark(text);
    Target { format, key_path, name }.check()?;
    Ok(expected::find(&parse(body, format)?, key_path, name).is_some())
}

/// Whether a text has a value at a path of keys.
pub fn has_value(text: &str, format: FileFormat, keys: &[&str]) -> Result<bool, EditError> {
    Ok(value_at(text, format, keys)?.is_some())
}

/// The value at a path of keys, with YAML tags and aliases in a form of their own.
pub fn value_at(text: &str, format: FileFormat, keys: &[&str]) -> Result<Option<Value>, EditError> {
    let (_, body) = split_mark(text);
    let root = parse(body, format)?;
    Ok(keys.iter().try_fold(&root, |value, key| value.get(*key)).cloned())
}

/// One entry in a file of one format.
struct Target<'a> {
    format: FileFormat,
    key_path: &'a KeyPath,
    name: &'a str,
}

impl<'a> Target<'a> {
    fn check(&self) -> Result<(), EditError> {
        if self.key_path.keys.is_empty() {
            return Err(EditError::new(EditErrorKind::Unsupported, "the key path has no keys"));
        }
        if self.key_path.layout == EntryLayout::List && self.format != FileFormat::Yaml {
            let message = "lists of servers are supported in YAML files only";
            return Err(EditError::new(EditErrorKind::Unsupported, message));
        }
        Ok(())
    }

    /// The entry as it is in the file: a list has the name inside.
    fn item(&self, entry: &Value) -> Result<Value, EditError> {
        let mut entry = entry.clone();
        let Value::Object(object) = &mut entry else {
            let message = "an entry has to be an object";
            return Err(EditError::new(EditErrorKind::InvalidEntry, message));
        };
        if self.key_path.layout == EntryLayout::List {
            object.insert(expected::NAME_KEY.to_owned(), Value::from(self.name));
        }
        Ok(entry)
    }

    /// Refuses a text that is broken or has other values than expected.
    fn verify(&self, edited: &str, expected: Option<Value>) -> Result<(), EditError> {
        let same_form = |value: Value| match self.format {
            // The table of the servers disappears with the header of the last one.
            FileFormat::Toml => expected::without_empty_parents(value, self.key_path),
            FileFormat::Json | FileFormat::Yaml => value,
        };
        let after = parse(edited, self.format).ok().map(same_form);
        if after.is_some() && after == expected.map(same_form) {
            return Ok(());
        }
        let message = "this file is written in a way that cannot be edited safely; edit it by hand";
        Err(EditError::new(EditErrorKind::Verification, message))
    }

    fn full_path(&self) -> Vec<&'a str> {
        self.key_path.keys().chain([self.name]).collect()
    }
}

fn split_mark(text: &str) -> (&str, &str) {
    match text.strip_prefix(text::BYTE_ORDER_MARK) {
        Some(body) => (text::BYTE_ORDER_MARK, body),
        None => ("", text),
    }
}

/// The value of a whole text; null if it has none.
fn parse(text: &str, format: FileFormat) -> Result<Value, EditError> {
    match format {
        FileFormat::Json => Ok(json_tree::parse(text)?.map_or(Value::Null, |root| root.to_value())),
        FileFormat::Toml => toml_tree::parse(text),
        FileFormat::Yaml => Ok(yaml_tree::parse(text)?.map_or(Value::Null, |root| root.to_value())),
    }
}
