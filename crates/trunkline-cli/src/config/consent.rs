//! Consent to a discovered configuration file: its review, the prompt, and the message without a
//! terminal (SEC-1).

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, bail, ensure};
use trunkline::config::{
    ColorStyle, Consent, ConsentHold, ConsentHoldReason, ContentDigest, DiscoveredFile,
    DiscoveredFiles, Environment as _, FileOrigin, FileReach, FoundBy, LoadOptions, LoadedConfig,
    Origin, Resolver as _, SearchPath, SearchScope, Use, UsedFile, env_file_names, escape_control,
};
use trunkline::name::ServerName;

use super::load::{self, Agents, load_waiting};
use crate::arguments::quoted;
use crate::environment::{OutsideFile, ProcessEnv, TrustedFile, TrustedUse, wait};
use crate::output::exit::Failure;
use crate::output::report::plural;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

/// Limit of variable names of an `envFile` that are shown; the rest is counted.
const MAX_VARIABLE_NAMES: usize = 20;

/// A discovered file, with everything it would run and use.
pub(crate) struct Review {
    pub(crate) file: DiscoveredFile,
    pub(crate) loaded: LoadedConfig,
    pub(crate) consent: Consent,
    /// The previous consent.
    before: Option<TrustedFile>,
    lines: Vec<ReviewLine>,
}

/// One thing that a server would run or use.
struct ReviewLine {
    server: String,
    verb: &'static str,
    exact: String,
    /// The stored form: redacted, with a digest for comparison.
    used: TrustedUse,
    /// The file it reads, if that is outside of the directory of the configuration.
    outside: Option<OutsideFile>,
}

impl ReviewLine {
    fn new(server: &str, used: Use, outside: Option<OutsideFile>, names: &str) -> Self {
        let Use { verb, exact, redacted, .. } = used;
        let exact = exact + names;
        let used = TrustedUse {
            text: format!("{server}: {verb} {redacted}"),
            digest: ContentDigest::of(format!("{server}: {verb} {exact}").as_bytes()).to_string(),
        };
        Self { server: server.to_owned(), verb, exact, used, outside }
    }
}

impl Review {
    /// Reviews the discovered file for these options; `None` if there is none.
    pub(crate) fn of(options: &LoadOptions, environment: &ProcessEnv) -> Result<Option<Self>> {
        let mut options = LoadOptions { discovered: DiscoveredFiles::Run, ..options.clone() };
        // Only this file: a server that another layer replaces now may run another time.
        options.places.inline_variables.clear();
        options.overrides = None;
        let (loaded, _) = load_waiting(environment, options)?;
        let Some((file, _)) = loaded.discovered.clone() else {
            // A rejected file is an error, not a missing file.
            let style = ColorStyle::Plain;
            let problems: String = loaded.diagnostics.iter().map(|it| it.render(style)).collect();
            ensure!(problems.is_empty(), "no file here can be trusted\n{}", problems.trim_end());
            return Ok(None);
        };
        let before = environment.trust_store()?.get(&file.path).cloned();
        let consent = environment.consent(&file);
        let lines = lines(&loaded, &file, environment);
        Ok(Some(Self { file, loaded, consent, before, lines }))
    }

    /// The reach of a consent to the shown files outside of its directory, by their current paths.
    /// A path with a variable can be any file; a directory is never included.
    pub(crate) fn outside_reach(&self) -> FileReach {
        let outside = || self.lines.iter().filter_map(|line| line.outside.as_ref());
        let path = |file: &OutsideFile| match file {
            OutsideFile::At(path) => Some(Some(path.clone())),
            OutsideFile::Folder => Some(None),
            OutsideFile::Anywhere => None,
        };
        let paths = outside().map(path).collect::<Option<Vec<_>>>();
        match paths.map(|paths| paths.into_iter().flatten().collect::<Vec<_>>()) {
            None => FileReach::Anywhere,
            Some(paths) if paths.is_empty() => FileReach::Workspace,
            Some(paths) => FileReach::Listed(paths.into()),
        }
    }

    /// Rejects a file that cannot be reviewed completely: one without a usable server, and one with
    /// a setting that disables servers now, which would run once another layer replaces the
    /// setting.
    pub(crate) fn require_usable(&self) -> Result<()> {
        let config = &self.loaded.config;
        let path = escape_control(&self.file.path.to_string_lossy());
        let settings = config.unreadable_settings().iter();
        let settings: Vec<_> = settings.map(|key| format!("`{}`", escape_control(key))).collect();
        ensure!(
            settings.is_empty(),
            "{path} has settings that cannot be read: {}\n  \
             correct them first: the servers they disable are not shown, and it is not trusted",
            settings.join(", ")
        );
        ensure!(
            config.servers().len() > 0 || !self.loaded.has_errors(false),
            "{path} has errors and no server that can be used: it is not trusted"
        );
        Ok(())
    }

    /// Everything it would use, for the user. Marks additions since the last consent, and lists
    /// removals at the end.
    pub(crate) fn as_text(&self) -> String {
        let empty = Vec::new();
        let before = self.before.as_ref().map_or(&empty, |before| &before.uses);
        let is_new = |line: &ReviewLine| self.before.is_some() && !before.contains(&line.used);
        let mut text = String::new();
        let mut server = "";
        for line in &self.lines {
            if line.server != server {
                server = &line.server;
                let _ = writeln!(text, "  {server}");
            }
            let mark = if is_new(line) { '+' } else { ' ' };
            let outside = match line.outside {
                Some(OutsideFile::Folder) => "  (a folder outside of its own, which is not read)",
                Some(_) => "  (outside of its folder)",
                None => "",
            };
            let _ = writeln!(text, "{mark}   {:<7} {}{outside}", line.verb, line.exact);
        }
        if self.lines.is_empty() {
            text.push_str("  nothing: it has no servers that can be used\n");
        }
        let is_gone = |used: &&TrustedUse| self.lines.iter().all(|line| line.used != **used);
        for gone in before.iter().filter(is_gone) {
            let _ = writeln!(text, "-   {}", escape_control(&gone.text));
        }
        if self.before.is_some() && !text.lines().any(|line| line.starts_with(['+', '-'])) {
            text.push_str("  (it uses the same as before: settings or comments have changed)\n");
        }
        text
    }

    /// What each server would run and use, exactly, one thing per line.
    pub(crate) fn by_server(&self) -> Vec<(String, String)> {
        let mut servers: Vec<(String, String)> = Vec::new();
        for line in &self.lines {
            let text = format!("{} {}", line.verb, line.exact);
            match servers.last_mut() {
                Some((server, uses)) if *server == line.server => {
                    uses.push('\n');
                    uses.push_str(&text);
                }
                _ => servers.push((line.server.clone(), text)),
            }
        }
        servers
    }

    /// The same for JSON output.
    pub(crate) fn used(&self) -> Vec<&str> {
        self.lines.iter().map(|line| line.used.text.as_str()).collect()
    }

    /// The reason for the prompt, on one line.
    fn reason(&self) -> String {
        let path = escape_control(&self.file.path.to_string_lossy());
        match (&self.before, &self.consent) {
            (_, Consent::Given(_)) => format!("{path} is trusted."),
            (Some(before), _) => {
                let since = escape_control(&before.since);
                format!("{path} has changed since it was trusted on {since}.")
            }
            (None, _) => format!("{path} was found here and is not trusted yet."),
        }
    }

    /// The text before the prompt.
    pub(crate) fn introduction(&self) -> String {
        format!("{} Its servers use:\n\n{}\n", self.reason(), self.as_text())
    }

    /// Prompts the user for consent on a terminal. Returns whether the file may run.
    pub(crate) fn ask(&self, environment: &ProcessEnv, terminal: &Terminal) -> Result<bool> {
        terminal.say_verbatim(&self.introduction());
        let question = "Start them, now and whenever this file has exactly this content?";
        if !terminal.ask(question)? {
            return Ok(false);
        }
        let question = "May they be given the files outside of its folder as well?";
        let reach = match self.outside_reach() {
            reach if reach != FileReach::Workspace && terminal.ask(question)? => reach,
            _ => FileReach::Workspace,
        };
        self.remember(reach, environment)?;
        Ok(true)
    }

    /// Stores the consent to exactly the reviewed content.
    pub(crate) fn remember(&self, reach: FileReach, environment: &ProcessEnv) -> Result<()> {
        let mut store = environment.trust_store()?;
        store.insert(&self.file.path, self.trusted(reach))?;
        Ok(())
    }

    /// Stores the consent to exactly the reviewed content in place of an earlier one, with the same reach. Returns
    /// whether the earlier one was still there.
    pub(crate) fn renew(&self, before: &TrustedFile, environment: &ProcessEnv) -> Result<bool> {
        let mut store = environment.trust_store()?;
        let trusted = self.trusted(before.reach.clone());
        Ok(store.renew(&self.file.path, before, trusted)?)
    }

    fn trusted(&self, reach: FileReach) -> TrustedFile {
        TrustedFile {
            digest: self.file.digest.to_string(),
            reach,
            uses: self.lines.iter().map(|line| line.used.clone()).collect(),
            since: ProcessEnv::today(),
        }
    }

    /// Stores that exactly this content is not to be asked about again.
    pub(crate) fn block(&self, environment: &ProcessEnv) -> Result<()> {
        Ok(environment.trust_store()?.block(&self.file)?)
    }
}

/// Options that discover only the file at a path; `None` if it has no name that is ever found.
pub(crate) fn file_options(path: &Path) -> Option<LoadOptions> {
    let mut places = SearchPath { walk: SearchScope::Stay, ..SearchPath::trunkline(None) };
    places.inline_variables.clear();
    places.path_variables.clear();
    let candidate = places.candidates.iter().find(|it| path.ends_with(&it.path))?.clone();
    let levels = candidate.path.components().count();
    let working_directory = path.ancestors().nth(levels)?.to_owned();
    places.candidates = vec![candidate];
    let discovered = DiscoveredFiles::Run;
    Some(LoadOptions { places, working_directory, discovered, ..LoadOptions::default() })
}

/// Everything that the servers of a discovered file would use, and the paths of its agents.
fn lines(
    loaded: &LoadedConfig,
    file: &DiscoveredFile,
    environment: &ProcessEnv,
) -> Vec<ReviewLine> {
    let mut lines = Vec::new();
    let found = loaded.config.servers();
    for server in found.filter(|server| server.provenance.origin.workspace() == file.workspace) {
        let off = if server.enabled { "" } else { ", switched off" };
        // A name must not look like other output.
        let name = escape_control(server.name.as_str()).replace('`', "\\`");
        let name = format!("server `{name}` ({}{off})", server.transport_word());
        for used in server.uses() {
            let read = used.file.as_ref();
            let outside = read.and_then(|it| environment.outside(&file.workspace, it));
            let names = variable_names(&used, environment);
            lines.push(ReviewLine::new(&name, used, outside, &names));
        }
    }
    let agents = loaded.config.agents();
    for path in &agents.files {
        let exact = format!("{:?}", agents.folder.join(&**path));
        let used = Use { verb: "reads", redacted: exact.clone(), exact, file: None };
        lines.push(ReviewLine::new("agents", used, None, ""));
    }
    lines
}

/// The names of the variables in an `envFile`, since some change the behaviour of programs.
fn variable_names(used: &Use, environment: &ProcessEnv) -> String {
    let Some(UsedFile::At(path)) = used.file.as_ref().filter(|_| used.exact.contains("variables"))
    else {
        return String::new();
    };
    let Ok(text) = environment.file(path) else { return String::new() };
    let names = env_file_names(text.expose());
    let shown: Vec<_> =
        names.iter().take(MAX_VARIABLE_NAMES).map(|it| escape_control(it)).collect();
    let more = match names.len() - shown.len() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    format!(": {}{more}", shown.join(", "))
}

/// Loads the configuration. Prompts for consent to an untrusted discovered file, if there is a
/// terminal.
pub(crate) fn load(
    settings: &Settings,
    environment: &ProcessEnv,
    terminal: &Terminal,
) -> Result<(LoadedConfig, Agents)> {
    let loaded = load::load(settings, environment, None)?;
    warn_of_unsafe(&loaded.0, environment, terminal);
    match loaded.0.consent_holds().is_some() && terminal.can_ask() {
        true if ask(&settings.load_options(environment, None), environment, terminal)? => {
            load::load(settings, environment, None)
        }
        _ => Ok(loaded),
    }
}

/// Prompts for consent to the discovered file for these options. Returns whether it may run.
pub(crate) fn ask(
    options: &LoadOptions,
    environment: &ProcessEnv,
    terminal: &Terminal,
) -> Result<bool> {
    // A store that cannot be read cannot be written either, and the hold contains the reason.
    // Errors of the file are reported with the configuration.
    match Review::of(options, environment) {
        Ok(Some(review)) if review.require_usable().is_ok() => review.ask(environment, terminal),
        Ok(_) | Err(_) => Ok(false),
    }
}

/// Reports the servers that are not started because their file is not trusted.
pub(crate) fn say_held(loaded: &LoadedConfig, terminal: &Terminal) {
    HeldServers::of(loaded).say(terminal);
}

/// The servers that are not started because their file is not trusted.
pub(crate) struct HeldServers {
    names: Vec<ServerName>,
    message: Option<String>,
}

impl HeldServers {
    pub(crate) fn of(loaded: &LoadedConfig) -> Self {
        let held = loaded.config.servers().filter(|server| server.hold.is_some());
        let names = held.map(|server| server.name.clone()).collect();
        Self { names, message: held_message(loaded) }
    }

    pub(crate) fn say(&self, terminal: &Terminal) {
        if let Some(message) = &self.message {
            terminal.say(&format!("error: {message}\n"));
        }
    }

    /// Whether a command failed because of one of them, which its error says.
    pub(crate) fn explain<T>(&self, result: &Result<T>) -> bool {
        let failure = result.as_ref().err().and_then(|error| error.downcast_ref::<Failure>());
        failure.and_then(Failure::server).is_some_and(|server| self.names.contains(server))
    }
}

/// Why servers are not started, if their file is not trusted, and how to run them.
pub(crate) fn held_message(loaded: &LoadedConfig) -> Option<String> {
    let held = loaded.config.servers().filter(|server| server.hold.is_some());
    let names: Vec<_> = held.map(|server| escape_control(server.name.as_str())).collect();
    let (file, reason) = loaded.consent_holds().filter(|_| !names.is_empty())?;
    let hold = ConsentHold { file: file.path.clone(), reason: reason.clone() };
    let servers = plural(names.len(), "server");
    let verb = if names.len() == 1 { "is" } else { "are" };
    Some(format!(
        "{}: its {servers} ({}) {verb} not started\n  {}",
        escape_control(&hold.to_string()),
        names.join(", "),
        remedy(&hold)
    ))
}

/// A hint on how to run an untrusted file.
pub(crate) fn remedy(hold: &ConsentHold) -> String {
    let path = escape_control(&quoted(&hold.file.to_string_lossy()));
    if matches!(hold.reason, ConsentHoldReason::Unknown(_)) {
        return format!("correct that, or run it without trust: `--config {path}`");
    }
    format!(
        "`trunkline trust {path}` shows what it would run and asks; `--config {path}` runs it without"
    )
}

/// Warns of files that other users can change and that need no consent, because an option or a
/// variable names them, or because they are the user's own.
pub(crate) fn warn_of_unsafe(loaded: &LoadedConfig, environment: &ProcessEnv, terminal: &Terminal) {
    for origin in &loaded.origins {
        let Origin::File(FileOrigin { path, found, .. }) = origin else { continue };
        if *found == FoundBy::Discovered {
            continue;
        }
        let (environment, path) = (environment.clone(), path.clone());
        if let Ok(Some(reason)) = wait(move || environment.unsafety(&path)) {
            terminal.warn(&format!("{}, and with it what is run here", escape_control(&reason)));
        }
    }
}

/// The discovered file, or the error that there is none.
pub(crate) fn required(review: Option<Review>, place: &str) -> Result<Review> {
    match review {
        Some(review) => Ok(review),
        None => bail!(
            "no configuration file was found {place}\n  only files that are found need to be \
             trusted; `--config FILE` and your own file run without"
        ),
    }
}
