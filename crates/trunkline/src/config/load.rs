//! Loads configuration layers: overrides, a variable, a file (CFG-4), and checks consent to a
//! discovered file (SEC-1).
//!
//! No direct system access: files and variables are read through [`Environment`].

use std::path::PathBuf;
use std::sync::Arc;

use super::diagnostic::Diagnostic;
use super::discovery::{FoundFile, SearchPath, decoded, find_file, first_set};
use super::environment::{Consent, ContentDigest, DiscoveredFile, Environment};
use super::foreign::{self, SourcePart};
use super::identity::LayerIdentity;
use super::merge::{MergeResult, merge};
use super::model::{
    Access, Config, ConsentHold, ConsentHoldReason, FileReach, FoundBy, Origin, ToolMode,
};
use super::suggest::Suggestions;
use super::validate::{Layer, read_layer};

/// Options for [`load()`].
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// The search path.
    pub places: SearchPath,
    /// The file to use, regardless of the search path.
    pub path: Option<PathBuf>,
    /// Configuration that overrides all other layers.
    pub overrides: Option<Overrides>,
    /// The access rule of every server for this run, regardless of configuration (TOOL-5).
    pub access: Option<Access>,
    /// The mode of scopes that have none of their own for this run, regardless of configuration
    /// (BUN-3).
    pub mode: Option<ToolMode>,
    /// The directory that relative paths and discovery start from.
    pub working_directory: PathBuf,
    /// Whether a discovered file needs consent.
    pub discovered: DiscoveredFiles,
}

/// Whether a discovered file needs consent before any of its servers is started (SEC-1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiscoveredFiles {
    /// [`Environment::consent`] decides. Without consent, the servers of the file are in the
    /// configuration with a [`ConsentHold`], disabled, and the rest of the file is ignored.
    #[default]
    NeedConsent,
    /// Its servers may be started: the embedding host decides in another way, or only inspects
    /// them.
    Run,
}

/// Configuration given by the caller at run time: complete, or only the differences.
#[derive(Clone)]
pub enum Overrides {
    /// As text, in any supported dialect.
    Text(String),
    /// As a JSON value.
    Value(serde_json::Value),
}

impl std::fmt::Debug for Overrides {
    /// Prints the variant only: the content may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "Text(***)",
            Self::Value(_) => "Value(***)",
        })
    }
}

/// A configuration, with the problems and layers found while loading it.
#[derive(Clone, Debug, Default)]
pub struct LoadedConfig {
    /// The usable part of the configuration.
    pub config: Config,
    /// Every problem, in the order of the layers and the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The layers that were read, the highest first.
    pub origins: Vec<Origin>,
    /// The discovered file, if one is used, and whether its servers may be started.
    pub discovered: Option<(DiscoveredFile, Consent)>,
}

impl LoadedConfig {
    /// Returns whether there are errors; under `strict` also hints and warnings.
    pub fn has_errors(&self, strict: bool) -> bool {
        self.diagnostics.iter().any(|found| found.is_error(strict))
    }

    /// The discovered file whose servers may not be started, and the reason.
    pub fn consent_holds(&self) -> Option<(&DiscoveredFile, &ConsentHoldReason)> {
        match &self.discovered {
            Some((file, Consent::Withheld(reason))) => Some((file, reason)),
            _ => None,
        }
    }
}

/// Parses one configuration text. Messages refer to it by `name`.
pub fn parse(name: &str, text: impl AsRef<[u8]>) -> LoadedConfig {
    let mut loader = Loader::default();
    loader.add_text(name, text.as_ref(), Origin::Text);
    loader.finish()
}

/// Parses the servers of one section of a text, the object at a path of keys, as if it were the file. All
/// other keys of the section are ignored, so that a host's file of state and settings gives no hints; an empty
/// path is the whole file. Servers that `disabledMcpServers` of the section names are disabled.
///
/// ```
/// let state = r#"{ "numStartups": 7, "projects": { "/home/ann/app": {
///     "mcpServers": { "time": { "command": "uvx", "args": ["mcp-server-time"] } },
///     "disabledMcpServers": ["time"] } } }"#;
/// let path = ["projects", "/home/ann/app"];
/// let loaded = trunkline::config::parse_section(".claude.json", state, &path);
/// assert!(loaded.diagnostics.is_empty());
/// assert!(!loaded.config.server("time").unwrap().enabled);
/// ```
pub fn parse_section(name: &str, text: impl AsRef<[u8]>, path: &[&str]) -> LoadedConfig {
    let mut loader = Loader::default();
    let bytes = text.as_ref();
    let identity = LayerIdentity::of_text(&Origin::Text, bytes);
    let text = LayerText { name, bytes, part: SourcePart::Section(path) };
    loader.add(text, Origin::Text, identity);
    loader.finish()
}

/// The keys of the object under a key at the top of a text, for [`parse_section`]. Empty if there is none.
pub fn section_names(text: impl AsRef<[u8]>, key: &str) -> Vec<String> {
    match decoded("", text.as_ref()) {
        Ok(source) => foreign::section_names(&Arc::new(source), key),
        Err(_) => Vec::new(),
    }
}

/// Loads and merges all layers.
///
/// ```
/// use std::{ffi::OsString, io, path::Path};
/// use trunkline::config::{self, LoadOptions, Overrides, SearchPath, Environment};
///
/// struct Process;
///
/// impl Environment for Process {
///     fn variable(&self, name: &str) -> Option<OsString> {
///         std::env::var_os(name)
///     }
///     fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
///         std::fs::read(path)
///     }
/// }
///
/// let options = LoadOptions {
///     places: SearchPath { fallbacks: vec!["/data/mcp.json".into()], ..SearchPath::default() },
///     overrides: Some(Overrides::Text(
///         r#"{ "mcpServers": { "time": { "command": "uvx", "args": ["mcp-server-time"] } } }"#.into(),
///     )),
///     ..LoadOptions::default()
/// };
/// let loaded = config::load(&Process, &options);
/// assert_eq!(loaded.config.server("time").unwrap().endpoint(), "uvx mcp-server-time");
/// ```
pub fn load(surroundings: &dyn Environment, options: &LoadOptions) -> LoadedConfig {
    let mut loader = Loader::default();
    let LoadOptions { places, path, working_directory, .. } = options;
    let diagnostics = &mut loader.diagnostics;
    let file = find_file(surroundings, places, path.as_deref(), working_directory, diagnostics);
    match file {
        Some(file) => loader.add_file(file, surroundings, options.discovered),
        // An unreadable file may have contained rules for all servers.
        None if loader.diagnostics.iter().any(|found| found.is_error(false)) => {
            loader.layers.push(Layer::unreadable(Origin::Text));
        }
        None => {}
    }
    if let Some((variable, text)) = first_set(surroundings, &options.places.inline_variables) {
        let origin = Origin::Variable(variable.into());
        loader.add_text(variable, text.as_encoded_bytes(), origin);
    }
    if let Some(overrides) = &options.overrides {
        let text = match overrides {
            Overrides::Text(text) => text.clone(),
            Overrides::Value(value) => format!("{value:#}"),
        };
        loader.add_text("overrides", text.as_bytes(), Origin::Overrides);
    }
    let mut loaded = loader.finish();
    if let Some(access) = options.access {
        loaded.config.override_access(access);
    }
    if let Some(mode) = options.mode {
        loaded.config.override_mode(mode);
    }
    loaded
}

/// The layers read so far, the lowest first.
#[derive(Default)]
struct Loader {
    layers: Vec<Layer>,
    /// Origins of the readable layers.
    origins: Vec<Origin>,
    identities: Vec<LayerIdentity>,
    suggestions: Suggestions,
    diagnostics: Vec<Diagnostic>,
    discovered: Option<(DiscoveredFile, Consent)>,
}

/// The text of a layer, with its name in messages.
#[derive(Clone, Copy)]
struct LayerText<'t> {
    name: &'t str,
    bytes: &'t [u8],
    part: SourcePart<'t>,
}

impl<'t> LayerText<'t> {
    fn whole(name: &'t str, bytes: &'t [u8]) -> Self {
        Self { name, bytes, part: SourcePart::Whole }
    }
}

impl Loader {
    /// Adds a file. The servers of a discovered one are held without consent.
    fn add_file(
        &mut self,
        file: FoundFile,
        surroundings: &dyn Environment,
        discovered: DiscoveredFiles,
    ) {
        let FoundFile { name, bytes, mut origin } = file;
        if origin.found == FoundBy::Discovered {
            let (path, workspace) = (origin.path.clone(), origin.workspace.clone());
            let digest = ContentDigest::of(&bytes);
            let file = DiscoveredFile { path, workspace, digest };
            let consent = match discovered {
                DiscoveredFiles::Run => Consent::Given(FileReach::Anywhere),
                DiscoveredFiles::NeedConsent => surroundings.consent(&file),
            };
            if let Consent::Given(reach) = &consent {
                origin.reach = reach.clone();
            }
            self.discovered = Some((file, consent));
        }
        let (path, file) = (origin.path.clone(), surroundings.file_identity(&origin.path));
        let origin = Origin::File(origin);
        let identity = LayerIdentity::of_file(&origin, &path, file.as_ref());
        self.add(LayerText::whole(&name, &bytes), origin, identity);
    }

    fn add_text(&mut self, name: &str, bytes: &[u8], origin: Origin) {
        let identity = LayerIdentity::of_text(&origin, bytes);
        self.add(LayerText::whole(name, bytes), origin, identity);
    }

    /// The reason why servers of a layer may not be started.
    fn consent_hold(&self, origin: &Origin) -> Option<Arc<ConsentHold>> {
        match (origin, &self.discovered) {
            (Origin::File(file), Some((_, Consent::Withheld(reason)))) => {
                Some(Arc::new(ConsentHold { file: file.path.clone(), reason: reason.clone() }))
            }
            _ => None,
        }
    }

    fn add(&mut self, text: LayerText<'_>, origin: Origin, identity: LayerIdentity) {
        let LayerText { name, bytes, part } = text;
        let source = match decoded(name, bytes) {
            Ok(source) => Arc::new(source),
            Err(found) => {
                self.diagnostics.push(*found);
                self.layers.push(Layer::unreadable(origin));
                return;
            }
        };
        let hold = self.consent_hold(&origin);
        let (mut layer, diagnostics) = read_layer(&source, part, origin, &mut self.suggestions);
        layer.hold = hold;
        self.diagnostics.extend(diagnostics);
        self.origins.push(layer.origin.clone());
        self.identities.push(identity);
        self.layers.push(layer);
    }

    fn finish(mut self) -> LoadedConfig {
        let layers = std::mem::take(&mut self.layers);
        let MergeResult { mut config, diagnostics } = merge(layers, &mut self.suggestions);
        self.diagnostics.extend(diagnostics);
        let Self { origins, identities, diagnostics, discovered, .. } = self;
        config.identify(identities.into_iter().rev().collect());
        let origins = origins.into_iter().rev().collect();
        LoadedConfig { config, diagnostics, origins, discovered }
    }
}
