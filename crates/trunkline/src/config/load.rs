//! Where configuration comes from: overrides, a variable, a file; and which file (CFG-4, CFG-5).
//!
//! Nothing here touches the system: files and variables are asked for through [`Surroundings`].

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::diagnostic::{Code, Diagnostic, Severity};
use super::meaning::{Layer, read_layer};
use super::merge::{Merged, merge};
use super::model::{Config, FileOrigin, Found, Origin};
use super::source::{MAX_SOURCE_BYTES, Source, Span};
use super::suggest::Suggestions;
use super::syntax;

/// What loading needs of the world. An embedding host answers from wherever it likes.
pub trait Surroundings {
    /// The value of an environment variable.
    fn variable(&self, name: &str) -> Option<OsString>;

    /// The content of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Whether a path that nobody named may be read: a pipe in its place would never end.
    fn is_regular_file(&self, _path: &Path) -> bool {
        true
    }

    /// The files in a folder, for agents that are kept one to a file.
    fn files_in(&self, _folder: &Path) -> io::Result<Vec<PathBuf>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Where a host looks for its configuration. All of it is data, so that an embedding host can have
/// its own names.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Variables that hold configuration text. The first that is set counts.
    pub inline_variables: Vec<String>,
    /// Variables that hold the path of a file. The first that is set counts.
    pub path_variables: Vec<String>,
    /// Files looked for in the working directory and, if `walk` says so, above it.
    pub candidates: Vec<Candidate>,
    /// How far files are looked for.
    pub walk: Walk,
    /// Files used when nothing else is there; the first that exists counts.
    pub fallbacks: Vec<PathBuf>,
}

impl Places {
    /// Where Trunkline itself looks. `user_directory` is where the user's own file is, such as
    /// `~/.config/trunkline`.
    pub fn trunkline(user_directory: Option<&Path>) -> Self {
        Self {
            inline_variables: Vec::from(["TRUNKLINE_CONFIG_JSON".to_owned()]),
            path_variables: Vec::from(["TRUNKLINE_CONFIG".into(), "MCP_CONFIG_PATH".into()]),
            candidates: Vec::from([
                Candidate::file("trunkline.json"),
                Candidate::file("trunkline.jsonc"),
                Candidate::file(".trunkline/mcp.json"),
                Candidate::file(".mcp.json"),
                Candidate::file(".dispatch/mcp.json"),
                Candidate::with_key("opencode.json", "mcp"),
                Candidate::with_key("opencode.jsonc", "mcp"),
            ]),
            walk: Walk::Up,
            fallbacks: user_directory.map(|user| user.join("mcp.json")).into_iter().collect(),
        }
    }
}

/// A file that may hold configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its path, relative to the directory looked in.
    pub path: PathBuf,
    /// It counts only if it has this key at the top.
    pub needs_key: Option<String>,
}

impl Candidate {
    /// A file that counts when it exists.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), needs_key: None }
    }

    /// A file that counts when it exists and has a key at the top.
    pub fn with_key(path: impl Into<PathBuf>, key: impl Into<String>) -> Self {
        Self { path: path.into(), needs_key: Some(key.into()) }
    }
}

/// How far files are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Walk {
    /// In the working directory, then in each directory above it.
    #[default]
    Up,
    /// In the working directory only.
    Stay,
}

/// What to load.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Where to look.
    pub places: Places,
    /// The file to use, whatever else there is.
    pub path: Option<PathBuf>,
    /// Configuration that goes over everything else.
    pub overrides: Option<Overrides>,
    /// The directory that relative paths and discovery start from.
    pub working_directory: PathBuf,
}

/// Configuration given by the caller at run time: a whole one, or only what differs.
#[derive(Clone)]
pub enum Overrides {
    /// As text, in any spelling a file may have.
    Text(String),
    /// As a value.
    Value(serde_json::Value),
}

impl std::fmt::Debug for Overrides {
    /// Prints the kind only: the content may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "Text(***)",
            Self::Value(_) => "Value(***)",
        })
    }
}

/// A configuration and everything found on the way to it.
#[derive(Debug, Default)]
pub struct Loaded {
    /// What can be used.
    pub config: Config,
    /// Every problem, in the order of the layers and the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The layers there were, the highest first.
    pub origins: Vec<Origin>,
}

impl Loaded {
    /// Whether anything is wrong that must be mended; under `strict` also hints and warnings.
    pub fn fails(&self, strict: bool) -> bool {
        self.diagnostics.iter().any(|found| found.fails(strict))
    }
}

/// Reads one configuration text. `name` is what messages call it.
pub fn parse(name: &str, text: impl AsRef<[u8]>) -> Loaded {
    let mut loader = Loader::default();
    loader.add(name, text.as_ref(), Origin::Text);
    loader.finish()
}

/// Loads and merges every layer there is.
///
/// ```
/// use std::{ffi::OsString, io, path::Path};
/// use trunkline::config::{self, LoadOptions, Overrides, Places, Surroundings};
///
/// struct Process;
///
/// impl Surroundings for Process {
///     fn variable(&self, name: &str) -> Option<OsString> {
///         std::env::var_os(name)
///     }
///     fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
///         std::fs::read(path)
///     }
/// }
///
/// let options = LoadOptions {
///     places: Places { fallbacks: vec!["/data/mcp.json".into()], ..Places::default() },
///     overrides: Some(Overrides::Text(
///         r#"{ "mcpServers": { "time": { "command": "uvx", "args": ["mcp-server-time"] } } }"#.into(),
///     )),
///     ..LoadOptions::default()
/// };
/// let loaded = config::load(&Process, &options);
/// assert_eq!(loaded.config.server("time").unwrap().endpoint(), "uvx mcp-server-time");
/// ```
pub fn load(surroundings: &dyn Surroundings, options: &LoadOptions) -> Loaded {
    let mut loader = Loader::default();
    if let Some(file) = find_file(surroundings, options, &mut loader.diagnostics) {
        loader.add(&file.name, &file.bytes, Origin::File(file.origin));
    }
    if let Some((variable, text)) = first_set(surroundings, &options.places.inline_variables) {
        let origin = Origin::Variable(variable.into());
        loader.add(variable, text.as_encoded_bytes(), origin);
    }
    if let Some(overrides) = &options.overrides {
        let text = match overrides {
            Overrides::Text(text) => text.clone(),
            Overrides::Value(value) => format!("{value:#}"),
        };
        loader.add("overrides", text.as_bytes(), Origin::Overrides);
    }
    loader.finish()
}

/// Looks for a configuration file in and above a directory.
///
/// Returns its path; that nothing is found is no error. Reports what is there and not used.
pub fn discover(
    surroundings: &dyn Surroundings,
    places: &Places,
    working_directory: &Path,
) -> (Option<PathBuf>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let path = match discovered(surroundings, places, working_directory, &mut diagnostics) {
        Discovered::File(file) => Some(file.origin.path),
        Discovered::Unreadable | Discovered::Nothing => None,
    };
    (path, diagnostics)
}

/// The layers read so far, the lowest first.
#[derive(Default)]
struct Loader {
    layers: Vec<Layer>,
    suggestions: Suggestions,
    diagnostics: Vec<Diagnostic>,
}

impl Loader {
    fn add(&mut self, name: &str, bytes: &[u8], origin: Origin) {
        let source = match decoded(name, bytes) {
            Ok(source) => Arc::new(source),
            Err(found) => return self.diagnostics.push(*found),
        };
        let (layer, diagnostics) = read_layer(&source, origin, &mut self.suggestions);
        self.diagnostics.extend(diagnostics);
        self.layers.push(layer);
    }

    fn finish(mut self) -> Loaded {
        let origins = self.layers.iter().rev().map(|layer| layer.origin.clone()).collect();
        let Merged { config, diagnostics } = merge(self.layers, &mut self.suggestions);
        self.diagnostics.extend(diagnostics);
        Loaded { config, diagnostics: self.diagnostics, origins }
    }
}

/// Bytes as text, or the reason why they are none.
pub(super) fn decoded(name: &str, bytes: &[u8]) -> Result<Source, Box<Diagnostic>> {
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
    // Everything before the first bad byte is text, which is enough to show where it is.
    let before = String::from_utf8_lossy(&bytes[..error]).into_owned();
    let source = Arc::new(Source::new(name, before + "\u{fffd}"));
    let message = format!("{name} is not UTF-8");
    let found = Diagnostic::new(Severity::Error, Code::NotUtf8, message)
        .at(&source, Span::new(error, error + '\u{fffd}'.len_utf8()))
        .label("the first byte that is not");
    Err(Box::new(found.help("it has to be UTF-8")))
}

/// A file that was read.
struct FoundFile {
    name: String,
    bytes: Vec<u8>,
    origin: FileOrigin,
}

/// The one file to use, if there is one.
fn find_file(
    surroundings: &dyn Surroundings,
    options: &LoadOptions,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<FoundFile> {
    let LoadOptions { places, working_directory, .. } = options;
    if let Some(path) = &options.path {
        return named(surroundings, working_directory, path, Found::Asked, diagnostics);
    }
    if let Some((variable, path)) = first_set(surroundings, &places.path_variables) {
        let found = Found::Variable(variable.into());
        return named(surroundings, working_directory, Path::new(&path), found, diagnostics);
    }
    match discovered(surroundings, places, working_directory, diagnostics) {
        Discovered::File(file) => Some(file),
        Discovered::Unreadable => None,
        Discovered::Nothing => fallback(surroundings, places, diagnostics),
    }
}

/// The first variable that is set to something.
fn first_set<'n>(
    surroundings: &dyn Surroundings,
    names: &'n [String],
) -> Option<(&'n str, OsString)> {
    names.iter().find_map(|name| {
        let value = surroundings.variable(name).filter(|value| !value.is_empty())?;
        Some((name.as_str(), value))
    })
}

/// A file that was asked for: it must be there.
fn named(
    surroundings: &dyn Surroundings,
    working_directory: &Path,
    path: &Path,
    found: Found,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<FoundFile> {
    let full = working_directory.join(path);
    match surroundings.read(&full) {
        Ok(bytes) => {
            let workspace = workspace_of(&full);
            let name = shown_path(path);
            Some(FoundFile { name, bytes, origin: FileOrigin { path: full, found, workspace } })
        }
        Err(error) => {
            diagnostics.push(unreadable(path, &found, &error));
            None
        }
    }
}

/// A path for messages, unless it is no path: configuration itself given in the place of one.
fn shown_path(path: &Path) -> String {
    let shown = path.display().to_string();
    if shown.contains(['{', '"', '\n']) { "(a text that is no path)".to_owned() } else { shown }
}

/// The folder a file belongs to: its own, or the one around `.vscode`, `.trunkline` and the like.
fn workspace_of(path: &Path) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new(""));
    let is_hidden =
        folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    folder.parent().filter(|_| is_hidden).unwrap_or(folder).to_owned()
}

fn unreadable(path: &Path, found: &Found, error: &io::Error) -> Diagnostic {
    let path = shown_path(path);
    let by = match found {
        Found::Variable(name) => format!(", which the variable {name} names,"),
        _ => String::new(),
    };
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

/// What looking around came to.
enum Discovered {
    File(FoundFile),
    /// The file meant here is there and cannot be read; no other takes its place.
    Unreadable,
    Nothing,
}

fn discovered(
    surroundings: &dyn Surroundings,
    places: &Places,
    working_directory: &Path,
    diagnostics: &mut Vec<Diagnostic>,
) -> Discovered {
    let levels = match places.walk {
        Walk::Up => usize::MAX,
        Walk::Stay => 1,
    };
    for directory in working_directory.ancestors().take(levels) {
        let mut present = Vec::new();
        for candidate in &places.candidates {
            let path = directory.join(&candidate.path);
            match candidate_bytes(surroundings, candidate, &path) {
                Ok(bytes) => present.extend(bytes.map(|bytes| (path, bytes))),
                Err(error) => {
                    let mut found = unreadable(&path, &Found::Discovered, &error);
                    // Here it is meant, if nothing goes before it; above it may be somebody else's.
                    if directory == working_directory && present.is_empty() {
                        diagnostics.push(found);
                        return Discovered::Unreadable;
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
        let origin = FileOrigin { path, found: Found::Discovered, workspace };
        return Discovered::File(FoundFile { name, bytes, origin });
    }
    Discovered::Nothing
}

/// The content of a candidate, if it is there and counts.
fn candidate_bytes(
    surroundings: &dyn Surroundings,
    candidate: &Candidate,
    path: &Path,
) -> io::Result<Option<Vec<u8>>> {
    if !surroundings.is_regular_file(path) {
        return Ok(None);
    }
    let bytes = match surroundings.read(path) {
        Ok(bytes) => bytes,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let counts = candidate.needs_key.as_ref().is_none_or(|key| has_key(&bytes, key));
    Ok(counts.then_some(bytes))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn has_key(bytes: &[u8], key: &str) -> bool {
    // What cannot be read as text is for the reader to complain about.
    let Ok(source) = decoded("candidate", bytes) else { return true };
    let document = syntax::read(&Arc::new(source));
    document.root.is_some_and(|root| root.get(key).is_some())
}

fn fallback(
    surroundings: &dyn Surroundings,
    places: &Places,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<FoundFile> {
    for path in &places.fallbacks {
        match surroundings.read(path) {
            Ok(bytes) => {
                let workspace = workspace_of(path);
                let name = path.display().to_string();
                let path = path.clone();
                let origin = FileOrigin { path, found: Found::Fallback, workspace };
                return Some(FoundFile { name, bytes, origin });
            }
            Err(error) if is_absent(&error) => {}
            Err(error) => {
                diagnostics.push(unreadable(path, &Found::Fallback, &error));
                return None;
            }
        }
    }
    None
}
