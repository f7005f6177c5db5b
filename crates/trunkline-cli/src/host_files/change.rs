//! A change of a file: shown as a diff without secrets, and written with a backup.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use trunkline::config::escape_control;
use trunkline_hosts::file::{ConfigFile, FileError};

use super::literals::mask;

/// A change that is not written yet.
pub(crate) struct FileChange {
    file: ConfigFile,
    text: String,
}

impl FileChange {
    pub(crate) fn new(file: ConfigFile, text: String) -> Self {
        Self { file, text }
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Whether the text is the same as before.
    pub(crate) fn is_empty(&self) -> bool {
        self.file.text() == self.text && self.file.exists()
    }

    /// The part of the text that changes, and where. Nothing around it is shown, since a file of a host may have any
    /// secret in it.
    pub(crate) fn diff(&self, secrets: &[&str]) -> String {
        let (before, after) = (self.file.text(), self.text.as_str());
        let (start, removed, added) = changed_part(before, after);
        let line = before.get(..start).unwrap_or_default().lines().count().max(1);
        let mut shown = format!("{} line {line}\n", self.path().display());
        for (sign, part) in [("-", removed), ("+", added)] {
            for line in part.lines().filter(|line| !line.trim().is_empty()) {
                let _ = writeln!(shown, "{sign}{line}");
            }
        }
        mask(&shown, secrets.iter().copied())
    }

    /// Writes the change. Returns the backup of the old file, if there was one.
    pub(crate) fn write(&self) -> Result<Option<PathBuf>> {
        self.file.replace(&self.text).map_err(|error| file_failure(&error))
    }
}

/// The part in which two texts differ: where it begins, and its text in both. It begins at the start of its line, if
/// there is only white space before it.
fn changed_part<'t>(before: &'t str, after: &'t str) -> (usize, &'t str, &'t str) {
    let same = |(a, b): (char, char)| (a == b).then(|| a.len_utf8());
    let start: usize = before.chars().zip(after.chars()).map_while(same).sum();
    let rest = |text: &'t str| text.get(start..).unwrap_or_default();
    let (rest_before, rest_after) = (rest(before), rest(after));
    let end: usize = rest_before.chars().rev().zip(rest_after.chars().rev()).map_while(same).sum();
    let line = after.get(..start).and_then(|it| it.rfind('\n')).map_or(0, |at| at + 1);
    let is_space = after.get(line..start).is_some_and(|it| it.trim().is_empty());
    let start_shown = if is_space { line } else { start };
    let part = |text: &'t str| text.get(start_shown..text.len() - end).unwrap_or_default();
    (start, part(before), part(after))
}

/// The failure of an operation on a file.
pub(super) fn file_failure(error: &FileError) -> anyhow::Error {
    let message = escape_control(&error.to_string());
    match error.hint() {
        Some(hint) => anyhow!("{message}\n  {hint}"),
        None => anyhow!("{message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_changed_part_is_shown() {
        let before = r#"{"token":"secret","mcpServers":{"a":{}}}"#;
        let after = r#"{"token":"secret","mcpServers":{"a":{},"b":{"command":"x"}}}"#;
        assert_eq!(changed_part(before, after).2, r#","b":{"command":"x"}"#);
        assert_eq!(changed_part(after, before).1, r#","b":{"command":"x"}"#);
        let (_, removed, added) = changed_part("{\n  \"é\": 1\n}", "{\n  \"é\": 2\n}");
        assert_eq!((removed, added), ("1", "2"));
        assert_eq!(changed_part("", "new\n").2, "new\n");
        assert_eq!(changed_part("a\n", "a\n").2, "");
        assert_eq!(changed_part("a: 1\n", "a: 1\n  b: 2\n").2, "  b: 2\n");
    }
}
