//! A change of a file: shown as a diff without secrets, and written with a backup.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use serde_json::Value;
use trunkline::config::{LoadedConfig, Server, escape_control};
use trunkline_hosts::edit::FileFormat;
use trunkline_hosts::file::{ConfigFile, FileError};

use super::host_text::parse_host_text;
use super::literals::masked_entry;

/// A change that is not written yet.
pub(crate) struct FileChange {
    file: ConfigFile,
    format: FileFormat,
    text: String,
}

impl FileChange {
    pub(crate) fn new(file: ConfigFile, format: FileFormat, text: String) -> Self {
        Self { file, format, text }
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// The text of the file as it was; `None` if there was no file.
    pub(crate) fn old_text(&self) -> Option<&str> {
        self.file.exists().then(|| self.file.text())
    }

    /// The text that is written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the text is the same as before.
    pub(crate) fn is_empty(&self) -> bool {
        self.file.text() == self.text && self.file.exists()
    }

    /// The servers that change, with every secret masked. The text itself is not shown: a file of a host may have any
    /// secret in it.
    pub(crate) fn diff(&self) -> String {
        let name = escape_control(&self.path().to_string_lossy());
        let read = |text: &str| parse_host_text(&name, text, self.format);
        let (before, after) = (read(self.file.text()), read(&self.text));
        let all = before.config.servers().chain(after.config.servers());
        let names: BTreeSet<&str> = all.map(|server| server.name.as_str()).collect();
        let mut shown = format!("{name}\n");
        for server in names {
            let entry = |loaded: &LoadedConfig| loaded.config.server(server).map(Server::to_entry);
            if entry(&before) == entry(&after) {
                continue;
            }
            for (sign, loaded) in [("-", &before), ("+", &after)] {
                let Some(found) = loaded.config.server(server) else { continue };
                let text = format!("{}: {:#}", Value::from(server), masked_entry(found));
                for line in text.lines() {
                    let _ = writeln!(shown, "{sign} {}", escape_control(line));
                }
            }
        }
        shown
    }

    /// Writes the change. Returns the backup of the old file, if there was one.
    pub(crate) fn write(&self) -> Result<Option<PathBuf>> {
        self.file.replace(&self.text).map_err(|error| file_failure(&error))
    }
}

/// The failure of an operation on a file.
pub(crate) fn file_failure(error: &FileError) -> anyhow::Error {
    let message = escape_control(&error.to_string());
    match error.hint() {
        Some(hint) => anyhow!("{message}\n  {hint}"),
        None => anyhow!("{message}"),
    }
}
