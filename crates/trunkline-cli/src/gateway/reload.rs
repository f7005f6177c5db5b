//! Watches configuration and token files, and applies changes while a gateway runs (CFG-10).

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use trunkline::config::{
    Config, Consent, ConsentHoldReason, LoadOptions, LoadedConfig, escape_control,
};
use trunkline::host::Host;
use trunkline::name::ServerName;
use trunkline::registry::ReloadSummary;
use trunkline_gateway::Tokens;
use trunkline_state::{FileVersion, StateFile};

use super::tokens::{self, TokenFile};
use crate::config::consent;
use crate::config::load::{Agents, UNANSWERED, load_through};
use crate::environment::{PrivateFile, ProcessEnv, WatchedFiles, answered, wait};
use crate::host::state;
use crate::output::report::{self, plural};
use crate::output::terminal::Terminal;
use crate::settings::{Settings, Verbosity};

/// Interval of checking the files.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a file has to be unchanged before it is read: a write may be in progress.
const SETTLED: Duration = Duration::from_millis(100);

/// Most such delays for a file that is written continuously.
const MAX_WAITS: usize = 20;

/// The files of a configuration, in their state when it was loaded.
pub(crate) struct ConfigReloader {
    verbosity: Verbosity,
    environment: ProcessEnv,
    options: LoadOptions,
    seen: WatchedFiles,
    in_use: ActiveFile,
    tokens: Option<(PathBuf, Tokens, WatchedFiles)>,
    /// Changed files that could not be applied because the file system did not respond.
    unread: Vec<PathBuf>,
    /// Applied to every configuration before it is used.
    prepare: Option<PrepareConfig>,
    status: ReloadStatus,
    state: Option<(StateFile, FileVersion)>,
}

/// Changes a configuration before it is used.
pub(crate) type PrepareConfig = Box<dyn Fn(Config) -> Config + Send + Sync>;

/// The state of the files, for those who ask later. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct ReloadStatus {
    shared: Arc<Mutex<ReloadMessages>>,
}

/// Messages about the files that were loaded last.
#[derive(Clone, Default)]
pub(crate) struct ReloadMessages {
    /// Mistakes in them, and whether they have not replaced the configuration in use.
    pub(crate) problem: Option<String>,
    /// Why there are no servers, or why they are not started.
    #[cfg_attr(not(unix), expect(dead_code, reason = "only the service tells its clients"))]
    pub(crate) notice: Option<String>,
}

impl ReloadStatus {
    pub(crate) fn messages(&self) -> ReloadMessages {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Mistakes in the files of a host, and why its toggles cannot be read.
    pub(crate) fn problem(&self, host: &Host) -> Option<String> {
        let conversations = host.conversations();
        let toggles =
            conversations.problem().map(|error| match conversations.toggles().is_unreadable() {
                true => format!("{error}\nevery server is switched off until they can be read"),
                false => format!("{error}\nthe toggles stay as they were"),
            });
        let problems: Vec<_> = self.messages().problem.into_iter().chain(toggles).collect();
        (!problems.is_empty()).then(|| problems.join("\n"))
    }

    /// Records that the files are not followed any more.
    #[cfg(unix)]
    pub(crate) fn on_defect(&self) {
        let problem = "changes of the configuration, of trust and of toggles are not applied any more because of a \
                       defect; `trunkline restart` begins anew";
        self.set_problem(Some(problem.to_owned()));
    }

    fn set_problem(&self, problem: Option<String>) {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).problem = problem;
    }

    /// Records a configuration that is used from now on.
    pub(crate) fn on_loaded(&self, loaded: &LoadedConfig, directory: &Path, problems: String) {
        let no_server = || {
            let why = report::why_no_server(loaded, "")?;
            let directory = escape_control(&directory.to_string_lossy());
            Some(format!("there are no servers in {directory}: {why}"))
        };
        let notice = consent::held_message(loaded).or_else(no_server);
        let problem = loaded.has_errors(false).then_some(problems);
        let messages = ReloadMessages { problem, notice };
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = messages;
    }
}

/// The origin of the configuration in use.
#[derive(Debug, PartialEq, Eq)]
enum ActiveFile {
    /// No configuration that may run.
    Nothing,
    /// A discovered file with consent.
    Discovered(PathBuf),
    /// Files and variables that need no consent.
    Named,
}

impl ActiveFile {
    fn of(loaded: &LoadedConfig) -> Self {
        match &loaded.discovered {
            Some((file, Consent::Given(_))) => Self::Discovered(file.path.clone()),
            Some((_, Consent::Withheld(_))) => Self::Nothing,
            None if loaded.origins.is_empty() => Self::Nothing,
            None => Self::Named,
        }
    }

    /// How the given configuration would replace this one.
    fn replaced_by(&self, loaded: &LoadedConfig) -> Replacement {
        let Some((file, reason)) = loaded.consent_holds() else { return Replacement::Normal };
        match self {
            Self::Nothing => Replacement::Normal,
            Self::Discovered(path)
                if *path == file.path && *reason == ConsentHoldReason::NotTrusted =>
            {
                Replacement::Revoked
            }
            // Editing a file, or adding one here, must not stop servers that the user consented to.
            Self::Discovered(_) | Self::Named => Replacement::Withheld,
        }
    }
}

/// The effect of a loaded configuration on the one in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replacement {
    /// It replaces the one in use, unless it has errors.
    Normal,
    /// The user has revoked the consent: the one in use ends.
    Revoked,
    /// It has no consent yet, so the one in use stays.
    Withheld,
}

impl ConfigReloader {
    /// Loads the current configuration, and records which files were accessed.
    pub(crate) fn load(
        settings: &Settings,
        environment: &ProcessEnv,
    ) -> Result<(Self, (LoadedConfig, Agents))> {
        let options = settings.load_options(environment, None);
        let (seen, loaded) = wait(loading_of(environment, &options)).context(UNANSWERED)?;
        let (in_use, tokens, unread) = (ActiveFile::of(&loaded.0), None, Vec::new());
        let (prepare, status) = (None, ReloadStatus::default());
        let (verbosity, environment) = (settings.verbosity, environment.clone());
        // Before the host reads it, so that no change is missed.
        let state = state::file(&environment).map(|file| (file.clone(), file.version()));
        let following = Self {
            verbosity,
            environment,
            options,
            seen,
            in_use,
            tokens,
            unread,
            prepare,
            status,
            state,
        };
        Ok((following, loaded))
    }

    /// Changes every configuration before it is used.
    #[cfg(unix)]
    pub(crate) fn preparing(self, prepare: PrepareConfig) -> Self {
        Self { prepare: Some(prepare), ..self }
    }

    /// Records the state of the files here.
    pub(crate) fn reporting_to(self, status: ReloadStatus) -> Self {
        Self { status, ..self }
    }

    /// Reads the tokens for serving, and watches their file too.
    pub(crate) fn read_tokens(&mut self, named: Option<&Path>) -> Result<(TokenFile, Tokens)> {
        let (environment, named) = (self.environment.clone(), named.map(Path::to_owned));
        let read = move || -> Result<_> {
            let place = TokenFile::place(named.as_deref(), &environment)?;
            let (path, seen) =
                (place.path().to_owned(), WatchedFiles::with_environment(&environment));
            seen.note(&path);
            Ok((path, seen, tokens::for_serving(place, named.as_deref())?))
        };
        let (path, seen, (file, tokens)) = wait(read).context("the tokens cannot be read")??;
        self.tokens = Some((path, tokens.clone(), seen));
        Ok((file, tokens))
    }

    /// Applies changes, forever.
    pub(crate) async fn run(mut self, host: &Host, terminal: &Terminal) -> Infallible {
        loop {
            tokio::time::sleep(PAUSE).await;
            let changed = wait_for_change(&self.seen).await;
            if !changed.is_empty() || !self.unread.is_empty() {
                self.apply(host, changed, terminal).await;
            }
            if let Some((path, tokens, seen)) = &self.tokens
                && !wait_for_change(seen).await.is_empty()
            {
                apply_tokens(path, tokens, host, terminal).await;
            }
            if let Some((file, version)) = &mut self.state {
                apply_toggles(file, version, host, terminal).await;
            }
        }
    }

    /// Applies a changed configuration, unless it has errors.
    async fn apply(&mut self, host: &Host, mut changed: Vec<PathBuf>, terminal: &Terminal) {
        let is_said = !self.unread.is_empty();
        changed.append(&mut self.unread);
        let (loaded, agents) = match answered(loading_of(&self.environment, &self.options)).await {
            Ok((seen, loaded)) => {
                self.seen = seen;
                loaded
            }
            Err(error) => {
                if !is_said {
                    terminal.say(&format!("error: {UNANSWERED}: {error}; it is tried again\n"));
                }
                self.unread = changed;
                return;
            }
        };
        let problems = report::problems(&loaded, self.verbosity, terminal.message_style());
        terminal.say(&problems);
        let files = self.named(&changed);
        consent::say_held(&loaded, terminal);
        let is_revoked = self.is_revoked().await;
        if let Some(refusal) = self.refusal(&loaded, is_revoked) {
            terminal.say(&format!("{}{files} changed: {}\n", refusal.prefix, refusal.message));
            let message = format!("{files} changed: {}\n{problems}", refusal.message);
            self.status.set_problem(Some(message));
            return;
        }
        // A revoked file ends, even if its replacement has errors.
        let loaded = match is_revoked && loaded.has_errors(false) {
            true => LoadedConfig::default(),
            false => loaded,
        };
        if let Err(error) = host.chain().check(&loaded.config) {
            let kept = "what was loaded before stays in use";
            terminal.say(&format!("error: {files} changed: {error}; {kept}\n  {}\n", error.hint()));
            self.status.set_problem(Some(format!("{files} changed: {error}; {kept}")));
            return;
        }
        self.in_use = ActiveFile::of(&loaded);
        self.status.on_loaded(&loaded, &self.options.working_directory, problems);
        let reloaded = host.reload(self.prepared(loaded.config), agents).await;
        terminal.tell(&format!("{files} changed: {}\n", described(&reloaded)));
        // A token file that cannot be read now is reported when its own change is applied.
        if let Some((path, ..)) = &self.tokens
            && let Ok(file) = read_tokens(path).await
        {
            file.warn_of_useless(host, terminal);
        }
    }
}

/// Why a changed configuration does not replace the one in use.
struct ReloadRefusal {
    prefix: &'static str,
    message: &'static str,
}

impl ConfigReloader {
    fn refusal(&self, loaded: &LoadedConfig, is_revoked: bool) -> Option<ReloadRefusal> {
        match self.in_use.replaced_by(loaded) {
            _ if is_revoked => None,
            Replacement::Withheld => Some(ReloadRefusal {
                prefix: "  ",
                message: "what was trusted before stays in use until then",
            }),
            Replacement::Normal if loaded.has_errors(false) => Some(ReloadRefusal {
                prefix: "error: ",
                message: "the configuration has errors; what was loaded before stays in use",
            }),
            Replacement::Normal | Replacement::Revoked => None,
        }
    }

    fn prepared(&self, config: Config) -> Config {
        match &self.prepare {
            Some(prepare) => prepare(config),
            None => config,
        }
    }

    /// Whether the user has revoked the consent to the file in use, even while another file is
    /// found in its place.
    async fn is_revoked(&self) -> bool {
        let ActiveFile::Discovered(path) = &self.in_use else { return false };
        let (environment, path) = (self.environment.clone(), path.clone());
        let looked = answered(move || environment.trust_store().map(|it| it.get(&path).is_none()));
        matches!(looked.await, Ok(Ok(true)))
    }

    /// The names of files for a message, with a description for the trust store.
    fn named(&self, files: &[PathBuf]) -> String {
        let store = self.environment.trust_file();
        let name = |path: &PathBuf| match Some(path) == store.as_ref() {
            true => "what is trusted".to_owned(),
            false => escape_control(&path.to_string_lossy()),
        };
        files.iter().map(name).collect::<Vec<_>>().join(", ")
    }
}

/// Loads a configuration on another thread, and records which files were accessed.
fn loading_of(
    environment: &ProcessEnv,
    options: &LoadOptions,
) -> impl FnOnce() -> (WatchedFiles, (LoadedConfig, Agents)) + Send + 'static {
    let (seen, options) = (WatchedFiles::with_environment(environment), options.clone());
    let store = environment.trust_file();
    move || {
        // Consent can be revoked even if this load does not read the store.
        if let Some(store) = &store {
            seen.note(store);
        }
        let loaded = load_through(&seen, &options);
        (seen, loaded)
    }
}

/// The changed files, once they have stopped changing. Empty if the file system does not respond:
/// the next check repeats it.
async fn wait_for_change(seen: &WatchedFiles) -> Vec<PathBuf> {
    let changed = seen.changed().await.unwrap_or_default();
    if changed.is_empty() {
        return changed;
    }
    for _ in 0..MAX_WAITS {
        tokio::time::sleep(SETTLED).await;
        if seen.changed().await.is_ok_and(|more| more.is_empty()) {
            break;
        }
    }
    changed
}

async fn read_tokens(path: &Path) -> Result<TokenFile> {
    let path = path.to_owned();
    answered(move || TokenFile::read(PrivateFile::at(path))).await?
}

/// Applies toggles that another process has stored.
async fn apply_toggles(
    file: &StateFile,
    version: &mut FileVersion,
    host: &Host,
    terminal: &Terminal,
) {
    let (now, before) = (file.version(), host.conversations().problem());
    // A file that could not be read is tried again: another process may have had it, or it was repaired.
    if now == *version && before.is_none() {
        return;
    }
    *version = now;
    match host.conversations().reload().await {
        Ok(()) if before.is_some() => terminal.tell("the toggles can be read again\n"),
        Ok(()) => {}
        Err(error) if before.as_ref() == Some(&error) => {}
        Err(error) => terminal.warn(&format!("{error}\n  the toggles stay as they were")),
    }
}

async fn apply_tokens(path: &Path, tokens: &Tokens, host: &Host, terminal: &Terminal) {
    match read_tokens(path).await {
        Ok(file) => {
            file.warn_if_open(terminal);
            tokens.replace(&file.tokens());
            let count = match file.kept.len() {
                0 => "there are no tokens, so every request is rejected".to_owned(),
                1 => "1 token is accepted".to_owned(),
                count => format!("{count} tokens are accepted"),
            };
            terminal.tell(&format!("{} changed: {count}\n", file.shown()));
            file.warn_of_useless(host, terminal);
        }
        Err(error) => {
            let what = "the tokens that were there before are still accepted";
            terminal.say(&format!("error: {error:#}\n  {what}\n"));
        }
    }
}

/// The changes of a reload in one line.
fn described(reloaded: &ReloadSummary) -> String {
    let lists = [
        ("added", &reloaded.added),
        ("changed", &reloaded.changed),
        ("removed", &reloaded.removed),
    ];
    let named = |names: &[ServerName]| {
        names.iter().map(|name| escape_control(name.as_str())).collect::<Vec<_>>().join(", ")
    };
    let mut parts: Vec<_> = lists
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what} {}", named(names)))
        .collect();
    let kept = plural(reloaded.kept.len(), "server");
    match (parts.is_empty(), reloaded.kept.len()) {
        (true, _) => {
            return "the servers are the same; rules and settings are in effect".to_owned();
        }
        (false, 0) => {}
        (false, 1) => parts.push(format!("{kept} goes on")),
        (false, _) => parts.push(format!("{kept} go on")),
    }
    parts.join("; ")
}
