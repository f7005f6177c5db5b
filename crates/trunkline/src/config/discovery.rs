//! Selects the configuration file: a named one, one discovered from the working directory, or the
//! user's own (CFG-4, CFG-5).

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::diagnostic::{Code, Diagnostic, Severity};
use super::environment::{Environment, FileRefusal};
use super::jsonc;
use super::model::{FileOrigin, FileReach, FoundBy};
use super::source::{MAX_SOURCE_BYTES, Source, Span};

/// The search path for the configuration. All of it is data, so that an embedding host can use its
/// own names.
#[derive(Clone, Debug, Default)]
pub struct SearchPath {
    /// Variables that hold configuration text. The first that is set wins.
    pub inline_variables: Vec<String>,
    /// Variables that hold the path of a file. The first that is set wins.
    pub path_variables: Vec<String>,
    /// Files searched for in the working directory and, depending on `walk`, its ancestors.
    pub candidates: Vec<SearchFile>,
    /// The directories to search.
    pub walk: SearchScope,
    /// Files used when no other is found; the first that exists wins.
    pub fallbacks: Vec<PathBuf>,
}

impl SearchPath {
    /// Trunkline's own search path. `user_directory` holds the user's file, for example
    /// `~/.config/trunkline`.
    pub fn trunkline(user_directory: Option<&Path>) -> Self {
        Self {
            inline_variables: Vec::from(["TRUNKLINE_CONFIG_JSON".to_owned()]),
            path_variables: Vec::from(["TRUNKLINE_CONFIG".into(), "MCP_CONFIG_PATH".into()]),
            candidates: Vec::from([
                SearchFile::file("trunkline.json"),
                SearchFile::file("trunkline.jsonc"),
                SearchFile::file(".trunkline/mcp.json"),
                SearchFile::file(".mcp.json"),
                SearchFile::file(".dispatch/mcp.json"),
                SearchFile::with_key("opencode.json", "mcp"),
                SearchFile::with_key("opencode.jsonc", "mcp"),
            ]),
            walk: SearchScope::Up,
            fallbacks: user_directory.map(|user| user.join("mcp.json")).into_iter().collect(),
        }
    }
}

/// A file that may hold configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchFile {
    /// Its path, relative to the searched directory.
    pub path: PathBuf,
    /// Top-level key that the file must contain.
    pub needs_key: Option<String>,
}

impl SearchFile {
    /// Matches any existing file at the path.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), needs_key: None }
    }

    /// Matches an existing file that has a top-level key.
    pub fn with_key(path: impl Into<PathBuf>, key: impl Into<String>) -> Self {
        Self { path: path.into(), needs_key: Some(key.into()) }
    }
}

/// The directories that discovery searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchScope {
    /// The working directory, then each of its ancestors.
    #[default]
    Up,
    /// The working directory only.
    Stay,
}

/// Searches a directory and its ancestors for a configuration file.
///
/// Returns its path, or `None` without an error if there is none. Reports files that exist and are
/// not used.
pub fn discover(
    surroundings: &dyn Environment,
    places: &SearchPath,
    working_directory: &Path,
) -> (Option<PathBuf>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let path = match discovered(surroundings, places, working_directory, &mut diagnostics) {
        DiscoveryOutcome::File(file) => Some(file.origin.path),
        DiscoveryOutcome::Unreadable | DiscoveryOutcome::Nothing => None,
    };
    (path, diagnostics)
}

/// Decodes bytes as UTF-8, or reports why they are not.
pub(crate) fn decoded(name: &str, bytes: &[u8]) -> Result<Source, Box<Diagnostic>> {
    if bytes.len() > MAX_SOURCE_BYTES {
        let megabytes = MAX_SOURCE_BYTES / 1024 / 1024;
        let message = format!("{name} is larger than {megabytes} MiB, which no configuration is");
        return Err(Box::new(Diagnostic::new(Severity::Error, Code::TooLarge, message)));
    }
    let marked = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let zeros = bytes.iter().take(64).filter(|byte| **byte == 0).count();
    if marked || zeros >= bytes.len().clamp(8, 64) / 4 {
        let message = format!("{name} is UTF-16, not UTF-8");
        let found = Diagnostic::new(Severity::Error, Code::NotUtf8, message);
        return Err(Box::new(found.help("it has to be UTF-8")));
    }
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return Ok(Source::new(name, text)),
        Err(error) => error.valid_up_to(),
    };
    // Everything before the first invalid byte is text, which is enough to show its position.
    let before = String::from_utf8_lossy(&bytes[..error]).into_owned();
    let source = Arc::new(Source::new(name, before + "\u{fffd}"));
    let message = format!("{name} is not UTF-8");
    let found = Diagnostic::new(Severity::Error, Code::NotUtf8, message)
        .at(&source, Span::new(error, error + '\u{fffd}'.len_utf8()))
        .label("the first byte that is not");
    Err(Box::new(found.help("it has to be UTF-8")))
}

/// A configuration file with its content.
pub(crate) struct FoundFile {
    /// Its name in messages.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) origin: FileOrigin,
}

/// Selects and reads the configuration file, if there is one.
pub(crate) fn find_file(
    surroundings: &dyn Environment,
    places: &SearchPath,
    path: Option<&Path>,
    working_directory: &Path,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<FoundFile> {
    if let Some(path) = path {
        return named(surroundings, working_directory, path, FoundBy::Asked, diagnostics);
    }
    if let Some((variable, path)) = first_set(surroundings, &places.path_variables) {
        let found = FoundBy::Variable(variable.into());
        return named(surroundings, working_directory, Path::new(&path), found, diagnostics);
    }
    match discovered(surroundings, places, working_directory, diagnostics) {
        DiscoveryOutcome::File(file) => Some(file),
        DiscoveryOutcome::Unreadable => None,
        DiscoveryOutcome::Nothing => fallback(surroundings, places, diagnostics),
    }
}

/// Returns the first variable with a non-empty value.
pub(crate) fn first_set<'n>(
    surroundings: &dyn Environment,
    names: &'n [String],
) -> Option<(&'n str, OsString)> {
    names.iter().find_map(|name| {
        let value = surroundings.variable(name).filter(|value| !value.is_empty())?;
        Some((name.as_str(), value))
    })
}

/// Reads a file that was named explicitly, and must exist.
fn named(
    surroundings: &dyn Environment,
    working_directory: &Path,
    path: &Path,
    found: FoundBy,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<FoundFile> {
    let full = working_directory.join(path);
    match surroundings.read(&full) {
        Ok(bytes) => {
            let workspace = workspace_of(&full);
            let name = display_path(path);
            let origin = FileOrigin { path: full, found, workspace, reach: FileReach::Anywhere };
            Some(FoundFile { name, bytes, origin })
        }
        Err(error) => {
            diagnostics.push(unreadable(path, &found, &error));
            None
        }
    }
}

/// Formats a path for messages; hides a value that looks like configuration text instead.
fn display_path(path: &Path) -> String {
    let shown = path.display().to_string();
    if shown.contains(['{', '"', '\n']) { "(a text that is no path)".to_owned() } else { shown }
}

/// The workspace of a file: its directory, or the parent of a hidden directory such as `.vscode` or
/// `.trunkline`.
fn workspace_of(path: &Path) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new(""));
    let is_hidden =
        folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    folder.parent().filter(|_| is_hidden).unwrap_or(folder).to_owned()
}

fn unreadable(path: &Path, found: &FoundBy, error: &io::Error) -> Diagnostic {
    let path = display_path(path);
    let by = match found {
        FoundBy::Variable(name) => format!(", which the variable {name} names,"),
        _ => String::new(),
    };
    if let Some(FileRefusal::Unsafe(reason)) = FileRefusal::within(error) {
        let message = format!("the configuration file {path} is not used: {reason}");
        return Diagnostic::new(Severity::Error, Code::UnsafeFile, message).help(
            "a file that was only found has to be yours, in folders that only you can change; \
             mend its owner or permissions, or name it with `--config`",
        );
    }
    let (code, message, help) = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => (
            Code::FileMissing,
            format!("the configuration file {path}{by} does not exist"),
            "correct the path, or name no file to use the one found from the working directory",
        ),
        io::ErrorKind::IsADirectory => (
            Code::FileIsDirectory,
            format!("{path}{by} is a directory, not a configuration file"),
            "give the path of the file inside it",
        ),
        io::ErrorKind::PermissionDenied => (
            Code::FileUnreadable,
            format!("there is no permission to read the configuration file {path}{by}"),
            "change its permissions, or give another file",
        ),
        _ => (
            Code::FileUnreadable,
            format!("the configuration file {path}{by} cannot be read: {error}"),
            "give another file",
        ),
    };
    Diagnostic::new(Severity::Error, code, message).help(help)
}

/// Result of the search.
enum DiscoveryOutcome {
    File(FoundFile),
    /// The file meant here exists and cannot be read; no other replaces it.
    Unreadable,
    Nothing,
}

fn discovered(
    surroundings: &dyn Environment,
    places: &SearchPath,
    working_directory: &Path,
    diagnostics: &mut Vec<Diagnostic>,
) -> DiscoveryOutcome {
    let levels = match places.walk {
        SearchScope::Up => usize::MAX,
        SearchScope::Stay => 1,
    };
    for directory in working_directory.ancestors().take(levels) {
        let mut present = Vec::new();
        for candidate in &places.candidates {
            let path = directory.join(&candidate.path);
            match candidate_bytes(surroundings, candidate, &path) {
                Ok(bytes) => present.extend(bytes.map(|bytes| (path, bytes))),
                Err(error) => {
                    let mut found = unreadable(&path, &FoundBy::Discovered, &error);
                    // The first candidate in the working directory is intended; one above may
                    // belong to another user.
                    let is_meant = directory == working_directory && present.is_empty();
                    if is_meant && !is_irregular(&error) {
                        diagnostics.push(found);
                        return DiscoveryOutcome::Unreadable;
                    }
                    found.severity = Severity::Warning;
                    diagnostics.push(found.help("it is passed over"));
                }
            }
        }
        let mut present = present.into_iter();
        let Some((path, bytes)) = present.next() else { continue };
        let shown = |path: &Path| {
            path.strip_prefix(working_directory).unwrap_or(path).display().to_string()
        };
        for (other, _) in present {
            let message = format!("{} is ignored: {} is used", shown(&other), shown(&path));
            let found = Diagnostic::new(Severity::Warning, Code::ShadowedFile, message);
            diagnostics.push(found.help("move its servers over, or ask for it by name"));
        }
        let workspace = directory.to_owned();
        let name = shown(&path);
        let reach = FileReach::Workspace;
        let origin = FileOrigin { path, found: FoundBy::Discovered, workspace, reach };
        return DiscoveryOutcome::File(FoundFile { name, bytes, origin });
    }
    DiscoveryOutcome::Nothing
}

/// The content of a candidate, if it exists and has the required key.
fn candidate_bytes(
    surroundings: &dyn Environment,
    candidate: &SearchFile,
    path: &Path,
) -> io::Result<Option<Vec<u8>>> {
    if !surroundings.is_regular_file(path) {
        return Err(FileRefusal::NotRegular.into());
    }
    let bytes = match surroundings.read_discovered(path) {
        Ok(bytes) => bytes,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let counts = candidate.needs_key.as_ref().is_none_or(|key| has_key(&bytes, key));
    Ok(counts.then_some(bytes))
}

/// Whether a path is a pipe or a device, which holds no configuration.
fn is_irregular(error: &io::Error) -> bool {
    let refusal = error.get_ref().and_then(|inner| inner.downcast_ref::<FileRefusal>());
    matches!(refusal, Some(FileRefusal::NotRegular))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn has_key(bytes: &[u8], key: &str) -> bool {
    // Undecodable content counts as a match, so that the later read reports the problem.
    let Ok(source) = decoded("candidate", bytes) else { return true };
    let document = jsonc::read(&Arc::new(source));
    document.root.is_some_and(|root| root.get(key).is_some())
}

fn fallback(
    surroundings: &dyn Environment,
    places: &SearchPath,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<FoundFile> {
    for path in &places.fallbacks {
        match surroundings.read(path) {
            Ok(bytes) => {
                let workspace = workspace_of(path);
                let name = path.display().to_string();
                let path = path.clone();
                let reach = FileReach::Anywhere;
                let origin = FileOrigin { path, found: FoundBy::Fallback, workspace, reach };
                return Some(FoundFile { name, bytes, origin });
            }
            Err(error) if is_absent(&error) => {}
            Err(error) => {
                diagnostics.push(unreadable(path, &FoundBy::Fallback, &error));
                return None;
            }
        }
    }
    None
}
