//! Settings of the program, resolved once from arguments and environment.

use std::ffi::OsString;
use std::path::PathBuf;

use trunkline::config::{
    Access, DiscoveredFiles, Environment as _, LoadOptions, Overrides, SearchPath, ToolMode,
};

use crate::arguments::{
    Arguments, ColorChoice, Command, CommandLineServer, Format, ImagesArgument, quoted,
};
use crate::environment::ProcessEnv;
use crate::roots::RootsSetting;

/// The pager if the user has chosen none. It leaves the text on the terminal, and ends by itself if all of it fits.
const DEFAULT_PAGER: &str = "less -FRX";

/// When to use colours, with the environment taken into account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colors {
    Always,
    OnTerminal,
    Never,
}

/// Which messages are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    Quiet,
    Normal,
    Verbose,
}

/// A protocol by which a terminal shows images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageProtocol {
    /// The graphics protocol of kitty, which Ghostty has too. It takes PNG.
    Kitty,
    /// The inline images of iTerm2, which WezTerm has too.
    Iterm2,
}

/// Settings of the program.
pub(crate) struct Settings {
    pub(crate) config: Option<PathBuf>,
    /// A server on the command line, which is used instead of a configuration.
    pub(crate) server: Option<CommandLineServer>,
    pub(crate) format: Format,
    pub(crate) verbosity: Verbosity,
    pub(crate) colors: Colors,
    /// Directories that servers are told of.
    pub(crate) roots: RootsSetting,
    /// Whether processes that a running background service keeps are used instead of starting them.
    pub(crate) uses_service: bool,
    /// The access rule for all servers in this run.
    pub(crate) access: Option<Access>,
    /// The mode of scopes that have none of their own, in this run.
    pub(crate) mode: Option<ToolMode>,
    /// The command of the pager for long results on a terminal.
    pub(crate) pager: Option<String>,
    /// Whether to show progress if stderr is a terminal.
    pub(crate) progress: bool,
    /// How the terminal shows images, if it can.
    pub(crate) images: Option<ImageProtocol>,
}

impl Settings {
    /// Resolves the settings. A log replaces progress on the terminal.
    pub(crate) fn resolve(arguments: &Arguments, environment: &ProcessEnv, has_log: bool) -> Self {
        let global = &arguments.global;
        Self {
            config: global.config.clone(),
            server: arguments.command.server(),
            roots: roots(&arguments.command, environment),
            uses_service: arguments.command.uses_service(),
            progress: !global.no_progress && !global.quiet && !has_log,
            access: arguments.command.run_arguments().and_then(|run| run.access).map(Access::from),
            mode: arguments.command.mode().map(ToolMode::from),
            pager: pager(environment, global.no_pager),
            images: match arguments.command.images() {
                ImagesArgument::Auto => image_protocol(|name| environment.variable(name)),
                ImagesArgument::Never => None,
            },
            format: global.format,
            verbosity: match (global.quiet, global.verbose) {
                (true, _) => Verbosity::Quiet,
                (false, 0) => Verbosity::Normal,
                (false, _) => Verbosity::Verbose,
            },
            colors: match global.color {
                _ if global.no_color => Colors::Never,
                ColorChoice::Always => Colors::Always,
                ColorChoice::Never => Colors::Never,
                ColorChoice::Auto if environment.is_set("NO_COLOR") => Colors::Never,
                ColorChoice::Auto if environment.is_set("CLICOLOR_FORCE") => Colors::Always,
                ColorChoice::Auto => Colors::OnTerminal,
            },
        }
    }

    /// The `--config` option as it would be written on a command line, after a space.
    pub(crate) fn written_config(&self) -> String {
        let file = self.config.as_ref().map(|file| quoted(&file.to_string_lossy()));
        file.map(|file| format!(" --config {file}")).unwrap_or_default()
    }

    /// The server on the command line as it is written before and after the words of a command, without secrets.
    pub(crate) fn written_server(&self) -> (String, String) {
        let server = self.server.as_ref();
        server.map(|it| (it.written_before(), it.written_after())).unwrap_or_default()
    }

    /// The command that logs in to a server, before its name.
    pub(crate) fn login_command(&self) -> String {
        format!("trunkline{} login", self.written_config())
    }

    /// Options for loading the configuration; `file` takes precedence over `--config`.
    pub(crate) fn load_options(
        &self,
        environment: &ProcessEnv,
        file: Option<PathBuf>,
    ) -> LoadOptions {
        let (places, overrides) = match &self.server {
            Some(server) => (SearchPath::default(), Some(Overrides::Value(server.to_config()))),
            None => (SearchPath::trunkline(environment.user_directory().as_deref()), None),
        };
        LoadOptions {
            places,
            path: file.or_else(|| self.config.clone()),
            overrides,
            access: self.access,
            mode: self.mode,
            working_directory: environment.working_directory().to_owned(),
            discovered: DiscoveredFiles::NeedConsent,
        }
    }
}

/// How the terminal shows images, according to the variables that it sets.
fn image_protocol(variable: impl Fn(&str) -> Option<OsString>) -> Option<ImageProtocol> {
    let text = |name: &str| variable(name).map(|it| it.to_string_lossy().into_owned());
    let (term, program) =
        (text("TERM").unwrap_or_default(), text("TERM_PROGRAM").unwrap_or_default());
    // A multiplexer inherits the variables of the terminal, and does not pass the sequences on.
    let is_multiplexed = ["TMUX", "STY", "ZELLIJ"].iter().any(|name| text(name).is_some())
        || ["screen", "tmux"].iter().any(|start| term.starts_with(start));
    match (term.as_str(), program.as_str()) {
        _ if is_multiplexed || term == "dumb" => None,
        ("xterm-kitty" | "xterm-ghostty", _) | (_, "ghostty") => Some(ImageProtocol::Kitty),
        (_, "iTerm.app" | "WezTerm") => Some(ImageProtocol::Iterm2),
        _ => text("KITTY_WINDOW_ID").map(|_| ImageProtocol::Kitty),
    }
}

/// The directories of `--root`, or the one in which a call is made.
fn roots(command: &Command, environment: &ProcessEnv) -> RootsSetting {
    let Command::Call(arguments) = command else { return RootsSetting::None };
    let directory = environment.working_directory();
    match &arguments.roots[..] {
        [] => RootsSetting::WorkingDirectory(directory.to_owned()),
        given => {
            let directory = |root: &PathBuf| environment.directory(&directory.join(root));
            RootsSetting::Given(given.iter().map(directory).collect())
        }
    }
}

/// The pager: the one of `TRUNKLINE_PAGER`, else `PAGER`, else `less`. An empty value means none.
fn pager(environment: &ProcessEnv, is_off: bool) -> Option<String> {
    let chosen = ["TRUNKLINE_PAGER", "PAGER"].into_iter().find_map(|it| environment.variable(it));
    let chosen = chosen.map(|it| it.to_string_lossy().into_owned());
    let pager = chosen.unwrap_or_else(|| DEFAULT_PAGER.to_owned());
    (!is_off && !pager.trim().is_empty()).then_some(pager)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_that_show_images_are_known() {
        let protocol = |variables: &[(&str, &str)]| {
            image_protocol(|name| {
                let found = variables.iter().find(|(it, _)| *it == name);
                found.map(|(_, value)| OsString::from(value))
            })
        };
        let kitty = Some(ImageProtocol::Kitty);
        let iterm2 = Some(ImageProtocol::Iterm2);
        assert_eq!(protocol(&[("TERM", "xterm-kitty")]), kitty);
        assert_eq!(protocol(&[("TERM", "xterm-256color"), ("KITTY_WINDOW_ID", "1")]), kitty);
        assert_eq!(protocol(&[("TERM", "xterm-ghostty")]), kitty);
        assert_eq!(protocol(&[("TERM_PROGRAM", "iTerm.app")]), iterm2);
        // It may have been started from kitty.
        assert_eq!(protocol(&[("TERM_PROGRAM", "WezTerm"), ("KITTY_WINDOW_ID", "1")]), iterm2);
        assert_eq!(
            protocol(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "Apple_Terminal")]),
            None
        );
        for multiplexer in [("TMUX", "/tmp/x"), ("STY", "1.x"), ("TERM", "screen-256color")] {
            assert_eq!(protocol(&[multiplexer, ("KITTY_WINDOW_ID", "1")]), None, "{multiplexer:?}");
        }
        assert_eq!(protocol(&[]), None);
    }
}
