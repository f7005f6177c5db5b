//! Where configuration comes from: overrides, a variable, a file (CFG-4), and whether what was found
//! may run (SEC-1).
//!
//! Nothing here touches the system: files and variables are asked for through [`Environment`].

use std::path::PathBuf;
use std::sync::Arc;

use super::diagnostic::Diagnostic;
use super::discovery::{FoundFile, SearchPath, decoded, find_file, first_set};
use super::environment::{Consent, ContentDigest, DiscoveredFile, Environment};
use super::identity::LayerIdentity;
use super::merge::{MergeResult, merge};
use super::model::{Access, Config, ConsentHold, ConsentHoldReason, FileReach, FoundBy, Origin};
use super::suggest::Suggestions;
use super::validate::{Layer, read_layer};

/// What to load.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Where to look.
    pub places: SearchPath,
    /// The file to use, whatever else there is.
    pub path: Option<PathBuf>,
    /// Configuration that goes over everything else.
    pub overrides: Option<Overrides>,
    /// The access rule of every server for this run, whatever is written (TOOL-5).
    pub access: Option<Access>,
    /// The directory that relative paths and discovery start from.
    pub working_directory: PathBuf,
    /// Whether a file that was only found has to be consented to.
    pub discovered: DiscoveredFiles,
}

/// Whether a file that was only found has to be consented to before anything of it runs (SEC-1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiscoveredFiles {
    /// [`Environment::consent`] is asked. Without consent, the servers of the file are in the
    /// configuration with a [`ConsentHold`], switched off, and nothing else of it counts.
    #[default]
    NeedConsent,
    /// They run: the embedding host has its own way to decide that, or only looks at them.
    Run,
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
pub struct LoadedConfig {
    /// What can be used.
    pub config: Config,
    /// Every problem, in the order of the layers and the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The layers there were, the highest first.
    pub origins: Vec<Origin>,
    /// The file that was only found, if that is the one that is used, and whether it may run.
    pub discovered: Option<(DiscoveredFile, Consent)>,
}

impl LoadedConfig {
    /// Whether anything is wrong that must be mended; under `strict` also hints and warnings.
    pub fn has_errors(&self, strict: bool) -> bool {
        self.diagnostics.iter().any(|found| found.is_error(strict))
    }

    /// The discovered file whose servers may not be started, and why.
    pub fn consent_holds(&self) -> Option<(&DiscoveredFile, &ConsentHoldReason)> {
        match &self.discovered {
            Some((file, Consent::Withheld(reason))) => Some((file, reason)),
            _ => None,
        }
    }
}

/// Reads one configuration text. `name` is what messages call it.
pub fn parse(name: &str, text: impl AsRef<[u8]>) -> LoadedConfig {
    let mut loader = Loader::default();
    loader.add_text(name, text.as_ref(), Origin::Text);
    loader.finish()
}

/// Loads and merges every layer there is.
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
        // A file that was meant and cannot be read may have rules for all servers.
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
    loaded
}

/// The layers read so far, the lowest first.
#[derive(Default)]
struct Loader {
    layers: Vec<Layer>,
    /// Those of the layers that were read.
    origins: Vec<Origin>,
    identities: Vec<LayerIdentity>,
    suggestions: Suggestions,
    diagnostics: Vec<Diagnostic>,
    discovered: Option<(DiscoveredFile, Consent)>,
}

impl Loader {
    /// Adds a file. One that was only found is held back without consent.
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
        self.add(&name, &bytes, origin, identity);
    }

    fn add_text(&mut self, name: &str, bytes: &[u8], origin: Origin) {
        let identity = LayerIdentity::of_text(&origin, bytes);
        self.add(name, bytes, origin, identity);
    }

    /// Why nothing of a layer may run.
    fn consent_hold(&self, origin: &Origin) -> Option<Arc<ConsentHold>> {
        match (origin, &self.discovered) {
            (Origin::File(file), Some((_, Consent::Withheld(reason)))) => {
                Some(Arc::new(ConsentHold { file: file.path.clone(), reason: reason.clone() }))
            }
            _ => None,
        }
    }

    fn add(&mut self, name: &str, bytes: &[u8], origin: Origin, identity: LayerIdentity) {
        let source = match decoded(name, bytes) {
            Ok(source) => Arc::new(source),
            Err(found) => {
                self.diagnostics.push(*found);
                self.layers.push(Layer::unreadable(origin));
                return;
            }
        };
        let hold = self.consent_hold(&origin);
        let (mut layer, diagnostics) = read_layer(&source, origin, &mut self.suggestions);
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
