//! Shared parts of the command line clients.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use serde_json::Value;
use tokio::process::Command;

use super::bounded::{ProcessOutput, finish};
use super::report::Report;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A temporary home directory, so that no client reads the user's configuration or leaves files
/// there.
pub(super) struct Home(PathBuf);

impl Home {
    pub(super) fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("trunkline-client-{}-{number}", process::id()));
        fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }

    /// Writes a file and returns its path.
    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a file can be written");
        path
    }

    /// Runs a program with this home directory.
    pub(super) async fn finish(&self, mut command: Command, input: &str) -> ProcessOutput {
        command.env("HOME", &self.0).env("XDG_CONFIG_HOME", &self.0).env("XDG_DATA_HOME", &self.0);
        command.current_dir(&self.0);
        finish(command, input).await
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Extracts a value from the output of a step, or records a failure in the report.
pub(super) fn take<T>(
    report: &mut Report,
    step: &str,
    finished: &ProcessOutput,
    wanted: impl FnOnce(&Value) -> Option<T>,
) -> Option<T> {
    let found = printed(&finished.printed).as_ref().and_then(wanted);
    if found.is_none() {
        report.failures.insert(step.to_owned(), finished.to_string());
    }
    found
}

/// The JSON at the end of the output; some programs print prompts before it.
fn printed(text: &str) -> Option<Value> {
    let starts = text.match_indices(['{', '[']).map(|(start, _)| start);
    starts.filter_map(|start| serde_json::from_str(text.get(start..)?).ok()).next()
}

/// The strings under a key of every object in a list.
pub(super) fn names(list: &Value, key: &str) -> Option<Vec<String>> {
    let name = |object: &Value| object[key].as_str().map(str::to_owned);
    list.as_array()?.iter().map(name).collect()
}

/// The string, if the value is one.
pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
