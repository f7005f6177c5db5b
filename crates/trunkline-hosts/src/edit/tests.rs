//! Edits in the three formats.

mod json;
mod toml;
mod yaml;
mod properties;

use serde_json::{Value, json};

use super::{EditError, FileFormat, KeyPath, contains, insert, remove};

fn entry() -> Value {
    json!({ "command": "trunkline", "args": ["connect"] })
}

/// A file format and a key path.
struct Subject {
    format: FileFormat,
    path: KeyPath,
}

impl Subject {
    fn insert(&self, text: &str) -> Result<String, EditError> {
        insert(text, self.format, &self.path, "trunkline", &entry())
    }

    fn remove(&self, text: &str, name: &str) -> Option<String> {
        remove(text, self.format, &self.path, name).unwrap()
    }

    /// Checks the text after an insertion, and that a removal takes it back.
    #[track_caller]
    fn round_trip(&self, text: &str, expected: &str) {
        let edited = self.insert(text).unwrap();
        assert_eq!(edited, expected);
        assert_eq!(self.remove(&edited, "trunkline").as_deref(), Some(text), "after the removal");
        assert!(contains(&edited, self.format, &self.path, "trunkline").unwrap());
        assert_eq!(self.insert(&edited).unwrap(), edited, "a second insertion changes nothing");
    }

    /// The message of an insertion that is refused.
    #[track_caller]
    fn refusal(&self, text: &str) -> String {
        self.insert(text).unwrap_err().to_string()
    }
}
