//! The `trunkline` program: arguments, settings, output, and one file per command.

mod limits;
mod arguments;
mod environment;
mod settings;
mod stdio;
mod terminal;
mod log;
mod report;
mod exit;
mod config_text;
mod load;
mod nested_command;
mod inspection;
mod consent;
mod caller;
mod command_host;
mod resolve;
mod resource_links;
mod unmatched;
mod listing;
mod run_call;
mod tokens;
mod reload;
mod health;
mod client_config;
mod commands;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;

use arguments::Arguments;
use environment::ProcessEnv;
use settings::Settings;
use terminal::Terminal;

fn main() -> ExitCode {
    limits::fail_writes_beyond_file_size();
    terminal::report_panics();
    let environment = Arc::new(ProcessEnv::of_process());
    let arguments = match Arguments::try_parse_from(environment.arguments()) {
        Ok(arguments) => arguments,
        Err(error) => return terminal::usage(&error),
    };
    if let Err(error) = arguments.check() {
        return terminal::usage(&error);
    }
    let log = match log::filter(environment.log_filter().as_deref(), arguments.global.verbose) {
        Ok(filter) => filter.map(log::start),
        Err(problem) => return terminal::usage(&Arguments::usage_error(&problem)),
    };
    let settings = Settings::resolve(&arguments, &environment, log.is_some());
    let mut terminal = Terminal::new(&settings);
    let result = commands::run(arguments.command, &settings, &environment, &mut terminal);
    exit::code(result, settings.format, &mut terminal)
}
