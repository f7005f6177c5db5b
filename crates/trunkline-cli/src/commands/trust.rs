//! `trunkline trust`: gives, lists and revokes consent to discovered configuration files.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use trunkline::config::{
    Consent, DiscoveredFiles, FileReach, LoadOptions, SearchPath, SearchScope, escape_control,
};

use crate::arguments::{Format, TrustArguments, quoted};
use crate::config::consent::{Review, file_options, required};
use crate::environment::{ProcessEnv, TrustedFile, outside_files};
use crate::output::exit::Outcome;
use crate::output::report::{self, plural};
use crate::output::terminal::Terminal;
use crate::settings::{Settings, Verbosity};

pub(crate) fn run(
    arguments: &TrustArguments,
    settings: &Settings,
    environment: &ProcessEnv,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let command = TrustCommand { arguments, settings, environment };
    match (arguments.list, arguments.revoke) {
        (true, _) => command.list(terminal),
        (false, true) => command.revoke(terminal),
        (false, false) => command.trust(terminal),
    }
}

struct TrustCommand<'a> {
    arguments: &'a TrustArguments,
    settings: &'a Settings,
    environment: &'a ProcessEnv,
}

impl TrustCommand<'_> {
    fn trust(&self, terminal: &mut Terminal) -> Result<Outcome> {
        let (options, place) = self.options()?;
        let review = required(Review::of(&options, self.environment)?, &place)?;
        terminal.say(&report::problems(
            &review.loaded,
            self.settings.verbosity,
            terminal.message_style(),
        ));
        let is_trusted = match (self.arguments.yes, &review.consent) {
            (true, _) => {
                review.require_usable()?;
                let reach = match self.arguments.outside_files {
                    true => review.outside_reach(),
                    false => FileReach::Workspace,
                };
                review.remember(reach, self.environment)?;
                true
            }
            (false, Consent::Given(reach)) if self.is_enough(reach, &review) => true,
            (false, _) if terminal.can_ask() => {
                review.require_usable()?;
                review.ask(self.environment, terminal)?
            }
            (false, _) => {
                terminal.print(&self.shown(&review, false))?;
                let path = quoted(&review.file.path.to_string_lossy());
                bail!(
                    "consent cannot be asked for: this is not a terminal\n  \
                     `trunkline trust {path} --yes` trusts it without asking"
                );
            }
        };
        if self.settings.format != Format::Text || (is_trusted && self.says_more()) {
            terminal.print(&self.shown(&review, is_trusted))?;
        }
        Ok(if is_trusted { Outcome::Good } else { Outcome::Bad })
    }

    /// Whether the existing consent covers the requested one.
    fn is_enough(&self, reach: &FileReach, review: &Review) -> bool {
        !self.arguments.outside_files || *reach == review.outside_reach()
    }

    fn says_more(&self) -> bool {
        self.settings.verbosity > Verbosity::Quiet
    }

    fn shown(&self, review: &Review, is_trusted: bool) -> String {
        let path = review.file.path.to_string_lossy();
        match self.settings.format {
            Format::Text if is_trusted => {
                let servers = plural(review.loaded.config.servers().len(), "server");
                format!("{} is trusted, with {servers}\n", escape_control(&path))
            }
            Format::Text => review.introduction(),
            Format::Json | Format::Raw => report::document(
                &json!({
                    "path": path,
                    "sha256": review.file.digest.to_string(),
                    "trusted": is_trusted,
                    "uses": review.used(),
                }),
                self.settings.format,
            ),
        }
    }

    fn list(&self, terminal: &mut Terminal) -> Result<Outcome> {
        let store = self.environment.trust_store()?;
        let text = match self.settings.format {
            Format::Text if store.files.is_empty() => "No file is trusted.\n".to_owned(),
            Format::Text => {
                let line = |(path, file): (&String, &TrustedFile)| {
                    let outside = match &file.reach {
                        FileReach::Anywhere => "any".to_owned(),
                        FileReach::Listed(files) => files.len().to_string(),
                        FileReach::Workspace => "none".to_owned(),
                    };
                    let digest: String = file.digest.chars().take(12).collect();
                    let since = escape_control(&file.since);
                    [escape_control(path), escape_control(&digest), since, outside]
                };
                let head = ["file", "digest", "since", "files outside"].map(str::to_owned);
                let rows: Vec<_> =
                    std::iter::once(head).chain(store.files.iter().map(line)).collect();
                report::table_with_head(&rows, terminal.layout())
            }
            Format::Json | Format::Raw => {
                let json = store.files.iter().map(|(path, file)| file_json(path, file));
                let json = json!({ "files": json.collect::<Vec<_>>() });
                report::document(&json, self.settings.format)
            }
        };
        terminal.print(&text)?;
        Ok(Outcome::Good)
    }

    fn revoke(&self, terminal: &mut Terminal) -> Result<Outcome> {
        let mut store = self.environment.trust_store()?;
        let mut removed = Vec::new();
        for path in self.named_files() {
            if store.remove(&path)? {
                removed.push(path);
            }
        }
        if removed.is_empty() {
            let place = self.arguments.path.as_deref().unwrap_or(Path::new("."));
            bail!(
                "{} is not trusted, nor is a file in it\n  `trunkline trust --list` shows which are",
                escape_control(&place.to_string_lossy())
            );
        }
        for path in &removed {
            let path = escape_control(&path.to_string_lossy());
            terminal.tell(&format!("{path} is not trusted any more\n"));
        }
        if self.settings.format != Format::Text {
            let json = json!({ "revoked": removed });
            terminal.print(&report::document(&json, self.settings.format))?;
        }
        Ok(Outcome::Good)
    }

    /// The candidates for the given path: the file itself, and the files that would be discovered
    /// there.
    fn named_files(&self) -> Vec<PathBuf> {
        let here = self.environment.working_directory();
        let named = self.arguments.path.as_ref().map(|path| here.join(path));
        let folder = named.as_deref().unwrap_or(here);
        let levels = if named.is_some() { 1 } else { usize::MAX };
        let folders = folder.ancestors().take(levels);
        let places = SearchPath::trunkline(None);
        let found =
            folders.flat_map(|folder| places.candidates.iter().map(|it| folder.join(&it.path)));
        named.clone().into_iter().chain(found).collect()
    }

    /// Options that discover only the given file, and the description of its location.
    fn options(&self) -> Result<(LoadOptions, String)> {
        let here = self.environment.working_directory();
        let (working_directory, place) = match &self.arguments.path {
            None => (here.to_owned(), "here".to_owned()),
            Some(named) => {
                let path = here.join(named);
                let shown = escape_control(&named.to_string_lossy());
                if self.environment.has_file(&path) {
                    let options = file_options(&path);
                    let options = options
                        .with_context(|| format!("{shown} has no name that is ever found"))?;
                    return Ok((options, format!("at {shown}")));
                }
                (path, format!("in {shown}"))
            }
        };
        let mut places = SearchPath { walk: SearchScope::Up, ..SearchPath::trunkline(None) };
        places.inline_variables.clear();
        places.path_variables.clear();
        let discovered = DiscoveredFiles::Run;
        let options =
            LoadOptions { places, working_directory, discovered, ..LoadOptions::default() };
        Ok((options, place))
    }
}

fn file_json(path: &str, file: &TrustedFile) -> Value {
    json!({
        "path": path,
        "sha256": file.digest,
        "outsideFiles": outside_files(&file.reach),
        "since": file.since,
        "uses": file.uses.iter().map(|used| used.text.as_str()).collect::<Vec<_>>(),
    })
}
