//! The `trunkline` program: arguments, settings, output, and one file per command.

mod output_schema;
mod arguments;
mod environment;
mod roots;
mod settings;
mod output;
mod config;
mod typed;
mod tool_types;
mod host_files;
#[cfg(unix)]
mod socket;
mod host;
mod gateway;
mod control;
#[cfg(unix)]
mod service;
mod commands;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;

use arguments::Arguments;
use environment::{ProcessEnv, limits};
use output::terminal::Terminal;
use output::{exit, log, terminal};
use settings::Settings;

/// A usage error without the advice to write `--` before a word: the program of a server follows it here.
fn without_wrong_tip(mut error: clap::Error) -> clap::Error {
    if error.kind() == clap::error::ErrorKind::UnknownArgument {
        error.remove(clap::error::ContextKind::Suggested);
    }
    error
}

fn main() -> ExitCode {
    limits::fail_writes_beyond_file_size();
    terminal::report_panics();
    let environment = Arc::new(ProcessEnv::of_process());
    let arguments = match Arguments::try_parse_from(environment.arguments()) {
        Ok(arguments) => arguments,
        Err(error) => return terminal::usage(&without_wrong_tip(error)),
    };
    if environment.arguments().next_back().is_some_and(|last| last == "--") {
        return terminal::usage(&Arguments::usage_error(
            "`--` needs the program of a server after it",
        ));
    }
    if let Err(error) = arguments.check() {
        return terminal::usage(&error);
    }
    let log_file = arguments.command.log_file();
    let mut file_log = None;
    let log = match log::filter(environment.log_filter().as_deref(), arguments.global.verbose) {
        Ok(Some(filter)) if log_file.is_some() => {
            // A service without a log is better than none.
            file_log = log_file.and_then(|path| log::start_file(filter, path).ok());
            None
        }
        Ok(filter) => filter.map(log::start),
        Err(problem) => return terminal::usage(&Arguments::usage_error(&problem)),
    };
    let settings = Settings::resolve(&arguments, &environment, log.is_some());
    config::secrets::install(&settings, &environment);
    let mut terminal = Terminal::new(&settings);
    let result = commands::run(arguments.command, &settings, &environment, &mut terminal);
    let shown = terminal.show_paged();
    let result = result.and_then(|outcome| shown.map(|()| outcome).map_err(Into::into));
    let code = exit::code(result, settings.format, &mut terminal);
    drop(file_log);
    code
}
