//! The commands, one file each.

mod check;
mod config;
mod schema;
mod completions;
mod complete_line;
mod man;
mod status;
mod tools;
mod tool;
mod search;
mod tokens;
mod types;
mod skill;
mod call;
mod resources;
mod read;
mod prompts;
mod prompt;
mod complete;
mod explain;
mod demo_server;
mod serve;
mod login;
mod logout;
mod token;
mod secret;
mod trust;
mod import;
mod install;
mod add;
mod page;
mod toggle;
mod demo;
#[cfg(unix)]
mod connect;
#[cfg(unix)]
mod up;
#[cfg(unix)]
mod down;
#[cfg(unix)]
mod restart;
#[cfg(unix)]
mod logs;
#[cfg(unix)]
mod ps;

use std::sync::Arc;

use anyhow::Result;

use crate::arguments::Command;
use crate::environment::ProcessEnv;
use crate::output::exit::Outcome;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

/// Runs a command.
pub(crate) fn run(
    command: Command,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    match command {
        Command::Check(arguments) => check::run(arguments.0, settings, environment, terminal),
        Command::Config => config::run(settings, environment, terminal),
        Command::Status(arguments) => status::run(&arguments, settings, environment, terminal),
        Command::Tools(arguments) => tools::run(&arguments, settings, environment, terminal),
        Command::Tool(arguments) => tool::run(&arguments, settings, environment, terminal),
        Command::Search(arguments) => search::run(&arguments, settings, environment, terminal),
        Command::Tokens(arguments) => tokens::run(&arguments, settings, environment, terminal),
        Command::Types(arguments) => types::run(&arguments, settings, environment, terminal),
        Command::Skill(arguments) => skill::run(&arguments, settings, environment, terminal),
        Command::Call(arguments) => call::run(&arguments, settings, environment, terminal),
        Command::Resources(arguments) => {
            resources::run(&arguments, settings, environment, terminal)
        }
        Command::Read(arguments) => read::run(&arguments, settings, environment, terminal),
        Command::Prompts(arguments) => prompts::run(&arguments, settings, environment, terminal),
        Command::Prompt(arguments) => prompt::run(&arguments, settings, environment, terminal),
        Command::Complete(arguments) => complete::run(&arguments, settings, environment, terminal),
        Command::Explain(arguments) => explain::run(&arguments, settings, environment, terminal),
        Command::Serve(arguments) => serve::run(&arguments, settings, environment, terminal),
        Command::Login(arguments) => login::run(&arguments, settings, environment, terminal),
        Command::Logout(arguments) => logout::run(&arguments, settings, environment, terminal),
        Command::Token { command } => token::run(&command, settings, environment, terminal),
        Command::Secret { command } => secret::run(&command, settings, environment, terminal),
        Command::Trust(arguments) => trust::run(&arguments, settings, environment, terminal),
        Command::Import(arguments) => import::run(&arguments, settings, environment, terminal),
        Command::Install(arguments) => install::run(&arguments, settings, environment, terminal),
        Command::Uninstall(arguments) => install::undo(&arguments, settings, environment, terminal),
        Command::Add(arguments) => add::run(&arguments, settings, environment, terminal),
        Command::Remove(arguments) => add::remove(&arguments, settings, environment, terminal),
        Command::Init => add::init(settings, environment, terminal),
        Command::Disable(arguments) => toggle::disable(&arguments, settings, environment, terminal),
        Command::Enable(arguments) => toggle::enable(&arguments, settings, environment, terminal),
        Command::Page(arguments) => page::run(&arguments, settings, environment, terminal),
        Command::Demo(arguments) => demo::run(&arguments, settings, environment, terminal),
        Command::DemoServer(arguments) => demo_server::run(&arguments, terminal),
        #[cfg(unix)]
        Command::Up(arguments) => up::run(&arguments, settings, environment, terminal),
        #[cfg(unix)]
        Command::Down => down::run(settings, environment, terminal),
        #[cfg(unix)]
        Command::Restart(arguments) => restart::run(&arguments, settings, environment, terminal),
        #[cfg(unix)]
        Command::Ps => ps::run(settings, environment, terminal),
        #[cfg(unix)]
        Command::Logs(arguments) => logs::run(&arguments, settings, environment, terminal),
        #[cfg(unix)]
        Command::Connect(arguments) => connect::run(&arguments, settings, environment, terminal),
        Command::Schema(arguments) => schema::run(&arguments, terminal),
        Command::Completions(arguments) => completions::run(&arguments, terminal),
        Command::Man(arguments) => man::run(&arguments, settings, environment, terminal),
        Command::CompleteLine(line) => complete_line::run(&line, settings, environment, terminal),
    }
}
