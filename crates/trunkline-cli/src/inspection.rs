//! Checks a configuration against the process it would run in: values, programs, and whether a server
//! is this program with the same configuration.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use trunkline::config::{
    self, Chain, Diagnostic, DiscoveredFiles, Inspector, LoadOptions, Loaded, Places,
    ResolvedStdio, Resolver, Secret, Surroundings, inspect, unserved_bundles,
};
use trunkline::connection::MAX_MESSAGE_BYTES;

use crate::environment::{Environment, wait};
use crate::loading::UNANSWERED;

/// A configuration with everything that would keep it from working here.
pub(crate) fn inspected(mut loaded: Loaded, environment: &Environment) -> Result<Loaded> {
    let environment = environment.clone();
    let inspected = move || {
        let inspection = Inspection::new(&environment);
        // A process above it does not matter: it is only looked at.
        let _ = inspection.chain.enter(&loaded);
        let found = inspect(&loaded.config, &inspection);
        loaded.diagnostics.extend(found);
        loaded
    };
    wait(inspected).context(UNANSWERED)
}

/// Bundles that are served otherwise than they ask for.
pub(crate) fn unserved(loaded: &Loaded, environment: &Environment) -> Vec<Diagnostic> {
    unserved_bundles(&loaded.config, &Inspection::new(environment))
}

/// The process around a configuration.
struct Inspection<'e> {
    environment: &'e Environment,
    /// This process as if it had started the configuration.
    chain: Chain,
}

impl<'e> Inspection<'e> {
    fn new(environment: &'e Environment) -> Self {
        Self { environment, chain: Chain::default() }
    }

    fn directory(&self, program: &ResolvedStdio) -> PathBuf {
        let directory = program.cwd.as_ref().map(|cwd| PathBuf::from(cwd.expose()));
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

    fn file_within(&self, places: &[PathBuf], path: &Path) -> io::Result<Secret> {
        self.environment.file_within(places, path)
    }

    fn input(&self, id: &str) -> Option<Secret> {
        self.environment.input(id)
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
    fn program_problem(&self, program: &ResolvedStdio) -> Option<String> {
        let directory = self.directory(program);
        if program.cwd.is_some() && !directory.is_dir() {
            return Some("its `cwd` is no folder".to_owned());
        }
        let shown = &program.shown;
        let command = Path::new(program.command.expose());
        if command.components().count() > 1 {
            let is_there = self.environment.is_program(&directory.join(command));
            let problem = || format!("the program `{shown}` is not at its path, or no program");
            return (!is_there).then(problem);
        }
        let (list, whose) = match program.env.get("PATH") {
            Some(list) => {
                (list.as_ref().map(|list| OsString::from(list.expose())), " of its `env`")
            }
            None => (Surroundings::variable(self.environment, "PATH"), ""),
        };
        let folders = self.environment.folders(&list?);
        let is_there = folders.iter().any(|it| self.environment.is_program(&it.join(command)));
        let count = folders.len();
        (!is_there).then(|| {
            format!("the program `{shown}` is in none of the {count} folders of the PATH{whose}")
        })
    }

    fn is_itself(&self, program: &ResolvedStdio) -> bool {
        let command = Path::new(program.command.expose());
        let is_named = command.file_stem().is_some_and(|name| name == "trunkline");
        let is_program = || self.environment.program().is_ok_and(|own| own == command);
        let mut args = program.args.iter().map(Secret::expose);
        if !(is_named || is_program()) || !args.any(|arg| arg == "serve") {
            return false;
        }
        let child = ChildSurroundings { environment: self.environment, program };
        let loaded = config::load(
            &child,
            &LoadOptions {
                places: Places::trunkline(self.environment.user_directory().as_deref()),
                path: config_argument(program),
                overrides: None,
                access: None,
                working_directory: self.directory(program),
                discovered: DiscoveredFiles::Run,
            },
        );
        self.chain.has_any_of(&loaded)
    }

    fn max_message_bytes(&self) -> u64 {
        MAX_MESSAGE_BYTES as u64
    }
}

/// The file that the arguments of the program name.
fn config_argument(program: &ResolvedStdio) -> Option<PathBuf> {
    let mut args = program.args.iter().map(Secret::expose);
    while let Some(arg) = args.next() {
        if let Some(path) = arg.strip_prefix("--config=") {
            return Some(path.into());
        }
        if arg == "--config" {
            return args.next().map(PathBuf::from);
        }
    }
    None
}

/// The variables and files from which a child process would load its configuration.
struct ChildSurroundings<'c> {
    environment: &'c Environment,
    program: &'c ResolvedStdio,
}

impl Surroundings for ChildSurroundings<'_> {
    fn variable(&self, name: &str) -> Option<OsString> {
        self.program.env.get(name)?.as_ref().map(|value| value.expose().into())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.environment.read(path)
    }

    fn is_regular_file(&self, path: &Path) -> bool {
        self.environment.is_regular_file(path)
    }
}
