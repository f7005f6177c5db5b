//! Trunkline's own configuration file that a command changes.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use trunkline::config::{self, LoadedConfig, SearchPath, escape_control};
use trunkline_hosts::edit::{self, FileFormat, KeyPath};
use trunkline_hosts::file::ConfigFile;

use super::change::{FileChange, file_failure};
use crate::environment::ProcessEnv;
use crate::settings::Settings;

/// Names of files that are Trunkline's own. Others belong to a host, which may not understand our keys.
const OWN_FILES: &[&str] = &["trunkline.json", "trunkline.jsonc"];

/// The file that a project gets.
const PROJECT_FILE: &str = "trunkline.json";

/// Which file to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetChoice {
    /// The file of the project, in the working directory.
    Project,
    /// The file of the user.
    User,
    /// The one that is in use here, or else the file of the user.
    InUse,
}

/// Trunkline's own file, as it was when it was read.
pub(crate) struct TargetFile {
    file: ConfigFile,
    pub(crate) loaded: LoadedConfig,
    text: String,
}

impl TargetFile {
    /// Reads the file that is chosen, or the one of `--config`.
    pub(crate) fn read(
        choice: TargetChoice,
        settings: &Settings,
        environment: &ProcessEnv,
    ) -> Result<Self> {
        let path = match &settings.config {
            Some(path) => environment.working_directory().join(path),
            None => chosen_path(choice, environment)?,
        };
        let file = ConfigFile::read(path).map_err(|error| file_failure(&error))?;
        let name = escape_control(&file.path().to_string_lossy());
        let text = file.text().to_owned();
        require_own_format(&name, &text)?;
        let loaded = match text.trim().is_empty() {
            true => LoadedConfig::default(),
            false => config::parse(&name, &text),
        };
        Ok(Self { file, loaded, text })
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn exists(&self) -> bool {
        self.file.exists()
    }

    /// The text with all changes.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The same file with another text.
    pub(crate) fn with_text(self, text: &str) -> Self {
        Self { text: text.to_owned(), ..self }
    }

    /// Adds or replaces a server.
    pub(crate) fn insert(&mut self, name: &str, entry: &serde_json::Value) -> Result<()> {
        let edited = edit::insert(&self.text, FileFormat::Json, &self.key_path(), name, entry);
        self.text = edited.map_err(|error| self.edit_failure(&error))?;
        Ok(())
    }

    /// Removes a server; `false` if there is none of that name.
    pub(crate) fn remove(&mut self, name: &str) -> Result<bool> {
        let edited = edit::remove(&self.text, FileFormat::Json, &self.key_path(), name);
        match edited.map_err(|error| self.edit_failure(&error))? {
            Some(text) => {
                self.text = text;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// The change from the file to the edited text.
    pub(crate) fn change(self) -> FileChange {
        FileChange::new(self.file, FileFormat::Json, self.text)
    }

    /// The key of the servers: the one that the file has.
    fn key_path(&self) -> KeyPath {
        let has =
            |key: &str| edit::has_value(&self.text, FileFormat::Json, &[key]).unwrap_or(false);
        let is_vscode = has("servers") && !has("mcpServers");
        KeyPath::map([if is_vscode { "servers" } else { "mcpServers" }])
    }

    fn edit_failure(&self, error: &edit::EditError) -> anyhow::Error {
        let path = escape_control(&self.path().to_string_lossy());
        anyhow!(
            "{path} is not changed: {error}\n  `trunkline check {path}` shows every problem in it"
        )
    }
}

/// Refuses a file of a host with keys or a format of its own: an entry of ours would not be read by that host.
fn require_own_format(name: &str, text: &str) -> Result<()> {
    let is_json = text.trim().is_empty() || text.trim_start().starts_with(['{', '/', '\u{feff}']);
    let has = |key: &&str| edit::has_value(text, FileFormat::Json, &[key]).unwrap_or(false);
    if is_json && !["mcp", "context_servers"].iter().any(has) {
        return Ok(());
    }
    bail!(
        "{name} is not changed: it is in the form of another host\n  files with `mcpServers` or `servers` in JSON can be \
         changed; `--user` changes your own file"
    );
}

fn chosen_path(choice: TargetChoice, environment: &ProcessEnv) -> Result<PathBuf> {
    let directory = environment.user_directory();
    let own = directory.as_ref().map(|directory| directory.join("mcp.json"));
    let own = own.context("there is no home directory; name a file with `--config FILE`");
    let project = || environment.working_directory().join(PROJECT_FILE);
    match choice {
        TargetChoice::Project => Ok(project()),
        TargetChoice::User => own,
        TargetChoice::InUse => {
            let places = SearchPath::trunkline(directory.as_deref());
            let found = config::discover(environment, &places, environment.working_directory()).0;
            match found {
                None => own,
                Some(path) if is_own(&path) => Ok(path),
                Some(path) => {
                    let shown = escape_control(&path.to_string_lossy());
                    Err(anyhow!(
                        "the configuration in use here, {shown}, is the file of another host\n  \
                         `--project` changes trunkline.json in this directory, which is then used \
                         instead; `--user` changes your own file"
                    ))
                }
            }
        }
    }
}

fn is_own(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    OWN_FILES.contains(&name) || path.parent().is_some_and(|folder| folder.ends_with(".trunkline"))
}
