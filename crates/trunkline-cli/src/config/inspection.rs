//! Checks a configuration against the process it would run in: values, programs, and whether a
//! server is this program with the same configuration.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use trunkline::config::{
    self, Config, DiscoveredFiles, Environment, Inspector, LoadOptions, LoadedConfig,
    ResolvedStdio, Resolver, SearchPath, Secret, SecretPlace, ToolMode, inspect,
};
use trunkline::connection::MAX_MESSAGE_BYTES;
use trunkline::error::{Error, ErrorKind};

use super::load::UNANSWERED;
use super::nested_command::{config_argument, project_argument, trunkline_arguments};
use crate::environment::{ProcessEnv, wait};

/// Time for one secret. A check does not wait until the user has unlocked a keychain.
const SECRET_CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// Adds all problems of a configuration in this environment to its diagnostics.
pub(crate) fn inspected(
    mut loaded: LoadedConfig,
    environment: &ProcessEnv,
) -> Result<LoadedConfig> {
    let environment = environment.clone();
    let inspected = move || {
        let config = &loaded.config;
        let inspection = Inspection { environment: &environment, config, planned: None };
        let found = inspect(config, &inspection);
        loaded.diagnostics.extend(found);
        loaded
    };
    wait(inspected).context(UNANSWERED)
}

/// A text that is to be written to a file.
pub(crate) struct PlannedFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl PlannedFile {
    /// Loads the text as if it were written, with all its problems in this environment.
    pub(crate) fn inspected(self, environment: &ProcessEnv) -> Result<LoadedConfig> {
        let environment = environment.clone();
        let inspected = move || {
            let options = LoadOptions {
                path: Some(self.path.clone()),
                working_directory: environment.working_directory().to_owned(),
                discovered: DiscoveredFiles::Run,
                ..LoadOptions::default()
            };
            let files = PlannedFiles { environment: &environment, planned: Some(&self) };
            let mut loaded = config::load(&files, &options);
            let (config, planned) = (&loaded.config, Some(&self));
            let inspection = Inspection { environment: &environment, config, planned };
            let found = inspect(config, &inspection);
            loaded.diagnostics.extend(found);
            loaded
        };
        wait(inspected).context(UNANSWERED)
    }
}

/// The files of this process, with one that is to be written.
#[derive(Clone, Copy)]
struct PlannedFiles<'e> {
    environment: &'e ProcessEnv,
    planned: Option<&'e PlannedFile>,
}

impl PlannedFiles<'_> {
    fn planned(&self, path: &Path) -> Option<&PlannedFile> {
        self.planned.filter(|file| file.path == path)
    }
}

impl Environment for PlannedFiles<'_> {
    fn variable(&self, name: &str) -> Option<OsString> {
        Environment::variable(self.environment, name)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.planned(path) {
            Some(file) => Ok(file.text.clone().into_bytes()),
            None => self.environment.read(path),
        }
    }

    fn is_regular_file(&self, path: &Path) -> bool {
        self.planned(path).is_some() || self.environment.is_regular_file(path)
    }
}

/// Inspects a configuration in this process.
struct Inspection<'e> {
    environment: &'e ProcessEnv,
    config: &'e Config,
    planned: Option<&'e PlannedFile>,
}

impl Inspection<'_> {
    fn directory(&self, program: &ResolvedStdio) -> PathBuf {
        let directory = program.cwd.as_ref().map(|cwd| PathBuf::from(cwd.expose()));
        directory.unwrap_or_else(|| self.environment.working_directory().to_owned())
    }

    /// The same directory, with secrets redacted.
    fn shown_directory(&self, program: &ResolvedStdio) -> PathBuf {
        let directory = program.shown_cwd.as_deref().map(PathBuf::from);
        directory.unwrap_or_else(|| self.environment.working_directory().to_owned())
    }
}

impl Resolver for Inspection<'_> {
    fn variable(&self, name: &str) -> Option<Secret> {
        Resolver::variable(self.environment, name)
    }

    fn file(&self, path: &Path) -> io::Result<Secret> {
        self.environment.file(path)
    }

    fn file_within(&self, folder: &Path, listed: &[PathBuf], path: &Path) -> io::Result<Secret> {
        self.environment.file_within(folder, listed, path)
    }

    fn input(&self, id: &str) -> Option<Secret> {
        self.environment.input(id)
    }

    fn secret(&self, place: SecretPlace, name: &str) -> Result<Option<Secret>, Error> {
        let (environment, name) = (self.environment.clone(), name.to_owned());
        let (sender, result) = mpsc::sync_channel(1);
        thread::spawn(move || sender.try_send(environment.secret(place, &name)));
        result.recv_timeout(SECRET_CHECK_TIMEOUT).unwrap_or_else(|_| {
            let message =
                "the store for secrets does not answer, and may be waiting for a password";
            Err(Error::new(ErrorKind::UnreadableSecret, message))
        })
    }

    fn secret_hint(&self, place: SecretPlace, name: &str) -> Option<String> {
        self.environment.secret_hint(place, name)
    }

    fn user_home(&self) -> Option<PathBuf> {
        self.environment.user_home()
    }

    fn working_directory(&self) -> PathBuf {
        Resolver::working_directory(self.environment)
    }

    fn input_hint(&self, id: &str) -> Option<String> {
        self.environment.input_hint(id)
    }
}

impl Inspector for Inspection<'_> {
    /// `serve` serves all modes.
    fn serves(&self, _: ToolMode) -> bool {
        true
    }

    fn program_problem(&self, program: &ResolvedStdio) -> Option<String> {
        let directory = self.directory(program);
        let shown = &program.shown;
        let command = Path::new(program.command.expose());
        if command.components().count() > 1 {
            let is_there = self.environment.is_program(&directory.join(command));
            let path = self.shown_directory(program).join(&*program.shown_path);
            let path = path.display();
            let problem =
                || format!("the program `{shown}` is not at its path {path}, or no program");
            return (!is_there).then(problem);
        }
        let (list, whose) = match program.env.get("PATH") {
            Some(list) => {
                (list.as_ref().map(|list| OsString::from(list.expose())), " of its `env`")
            }
            None => (Environment::variable(self.environment, "PATH"), ""),
        };
        let folders = self.environment.folders(&list?);
        let is_there = folders.iter().any(|it| self.environment.is_program(&it.join(command)));
        let count = folders.len();
        (!is_there).then(|| {
            format!("the program `{shown}` is in none of the {count} folders of the PATH{whose}")
        })
    }

    fn directory_problem(&self, program: &ResolvedStdio) -> Option<String> {
        let is_missing = program.cwd.is_some() && !self.directory(program).is_dir();
        let shown = self.shown_directory(program);
        is_missing.then(|| format!("its working directory {} does not exist", shown.display()))
    }

    fn is_itself(&self, program: &ResolvedStdio) -> bool {
        let args: Vec<_> = program.args.iter().map(Secret::expose).collect();
        let own = self.environment.program().ok();
        let args = trunkline_arguments(program.command.expose(), &args, own.as_deref());
        let serves = |arg: &String| arg == "serve" || arg == "connect";
        let Some(args) = args.filter(|args| args.iter().any(serves)) else {
            return false;
        };
        let directory = self.directory(program);
        let directory = match project_argument(&args) {
            Some(project) => directory.join(project),
            None => directory,
        };
        let files = PlannedFiles { environment: self.environment, planned: self.planned };
        let child = ChildEnvironment { files, program };
        let loaded = config::load(
            &child,
            &LoadOptions {
                places: SearchPath::trunkline(self.environment.user_directory().as_deref()),
                path: config_argument(&args),
                overrides: None,
                access: None,
                mode: None,
                working_directory: directory,
                discovered: DiscoveredFiles::Run,
            },
        );
        self.config.shares_layer_with(&loaded.config)
    }

    fn max_message_bytes(&self) -> u64 {
        MAX_MESSAGE_BYTES as u64
    }
}

/// The variables and files from which a child process would load its configuration.
struct ChildEnvironment<'c> {
    files: PlannedFiles<'c>,
    program: &'c ResolvedStdio,
}

impl Environment for ChildEnvironment<'_> {
    fn variable(&self, name: &str) -> Option<OsString> {
        self.program.env.get(name)?.as_ref().map(|value| value.expose().into())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.read(path)
    }

    fn is_regular_file(&self, path: &Path) -> bool {
        self.files.is_regular_file(path)
    }
}
