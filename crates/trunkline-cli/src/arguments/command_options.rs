//! Options that several commands have, whatever the command is.

use std::path::Path;

use super::call::{CallerArguments, ImagesArgument, RunArguments};
use super::command::Command;
use super::command_line_server::{CommandLineServer, is_url};
use super::serve::ModeArgument;

impl Command {
    /// The `RunArguments` of commands that list, call or serve.
    pub(crate) fn run_arguments(&self) -> Option<&RunArguments> {
        match self {
            Self::Status(arguments) => Some(&arguments.run),
            Self::Serve(arguments) => Some(&arguments.run),
            _ => self.caller_arguments().map(|caller| &caller.run),
        }
    }

    /// Whether the command uses processes that a running background service keeps. A server on the command line may
    /// be under development: it is started again.
    pub(crate) fn uses_service(&self) -> bool {
        self.caller_arguments().is_some_and(|caller| !caller.no_service) && self.server().is_none()
    }

    /// The caller of commands that list or call.
    fn caller_arguments(&self) -> Option<&CallerArguments> {
        Some(match self {
            Self::Tools(arguments) | Self::Resources(arguments) | Self::Prompts(arguments) => {
                &arguments.who
            }
            Self::Tool(arguments) => &arguments.who,
            Self::Search(arguments) => &arguments.who,
            Self::Tokens(arguments) => &arguments.who,
            Self::Types(arguments) => &arguments.who,
            Self::Skill(arguments) => &arguments.who,
            Self::Call(arguments) => &arguments.who,
            Self::Read(arguments) => &arguments.who,
            Self::Prompt(arguments) => &arguments.who,
            Self::Complete(arguments) => &arguments.who,
            Self::Explain(arguments) => &arguments.who,
            #[cfg(unix)]
            Self::Connect(_)
            | Self::Up(_)
            | Self::Down
            | Self::Ps
            | Self::Restart(_)
            | Self::Logs(_) => {
                return None;
            }
            Self::Status(_)
            | Self::Serve(_)
            | Self::Check(_)
            | Self::Config
            | Self::Login(_)
            | Self::Logout(_)
            | Self::Token { .. }
            | Self::Secret { .. }
            | Self::Trust(_)
            | Self::Page(_)
            | Self::Import(_)
            | Self::Install(_)
            | Self::Uninstall(_)
            | Self::Add(_)
            | Self::Remove(_)
            | Self::Init
            | Self::Enable(_)
            | Self::Disable(_)
            | Self::Demo(_)
            | Self::Schema(_)
            | Self::Completions(_)
            | Self::CompleteLine(_)
            | Self::Man(_)
            | Self::DemoServer(_) => return None,
        })
    }

    /// The server that is named on the command line, instead of a configuration.
    pub(crate) fn server(&self) -> Option<CommandLineServer> {
        let program = self.run_arguments().map(|run| run.program.clone()).unwrap_or_default();
        match self.url() {
            _ if !program.is_empty() => Some(CommandLineServer::Program(program)),
            Some(url) => Some(CommandLineServer::Url(url.to_owned())),
            None => None,
        }
    }

    /// Whether both a program and a URL are given.
    pub(crate) fn has_two_servers(&self) -> bool {
        self.url().is_some() && self.run_arguments().is_some_and(|run| !run.program.is_empty())
    }

    /// The URL of a server on the command line.
    fn url(&self) -> Option<&str> {
        match self {
            Self::Status(arguments) => arguments.url.as_deref(),
            Self::Serve(arguments) => arguments.url.as_deref(),
            Self::Tools(list) | Self::Resources(list) | Self::Prompts(list) => {
                list.target.as_deref().filter(|it| is_url(it))
            }
            Self::Skill(arguments) => arguments.target.as_deref().filter(|it| is_url(it)),
            Self::Call(arguments) => arguments.split_url().0,
            Self::Tool(arguments) => arguments.split_url().0,
            Self::Read(arguments) => arguments.url(),
            Self::Prompt(arguments) => arguments.split_url().0,
            _ => None,
        }
    }

    /// The file to log to, instead of standard error.
    pub(crate) fn log_file(&self) -> Option<&Path> {
        match self {
            #[cfg(unix)]
            Self::Up(arguments) => arguments.log.as_deref(),
            _ => None,
        }
    }

    /// When to show images of results.
    pub(crate) fn images(&self) -> ImagesArgument {
        match self {
            Self::Call(arguments) => arguments.bounds.images,
            Self::Read(arguments) => arguments.bounds.images,
            Self::Prompt(arguments) => arguments.bounds.images,
            _ => ImagesArgument::Never,
        }
    }

    /// The mode of this run, for commands that serve models.
    pub(crate) fn mode(&self) -> Option<ModeArgument> {
        match self {
            Self::Serve(arguments) => arguments.mode,
            _ => None,
        }
    }
}
