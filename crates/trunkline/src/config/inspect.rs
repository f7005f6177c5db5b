//! Checks a configuration against its environment: references, programs, and modes that the host
//! supports. Starts nothing.

use super::diagnostic::{Code, Diagnostic, Severity};
use super::model::{Bundle, Config, Remote, Server, ToolMode, Transport};
use super::resolve::{ResolvedStdio, ResolvedTransport, expand_references, unknown_provider};
use super::resolver::Resolver;
use super::secret::Secret;
use super::validate::is_command_line;
use crate::error::Error;
use crate::name::BundleName;

/// Access to the process and the host for [`inspect`].
pub trait Inspector: Resolver {
    /// The reason why a program cannot be started, for the message: "the program `uvx` is in none
    /// of the 7 folders of PATH". `None` if it can, or if that is unknown.
    fn program_problem(&self, program: &ResolvedStdio) -> Option<String>;

    /// The reason why a program cannot be started in its directory, for the message. `None` if it
    /// can.
    fn directory_problem(&self, _program: &ResolvedStdio) -> Option<String> {
        None
    }

    /// Whether a program is this host with the same configuration (CON-16).
    fn is_itself(&self, _program: &ResolvedStdio) -> bool {
        false
    }

    /// Whether the host serves bundles in a mode.
    fn serves(&self, mode: ToolMode) -> bool {
        mode == ToolMode::Direct
    }

    /// The longest message that a server can send, in bytes, which limits every result.
    fn max_message_bytes(&self) -> u64 {
        u64::MAX
    }
}

/// Reports every problem that would prevent a configuration from working here. Problems that
/// another environment may not have are warnings.
pub fn inspect(config: &Config, inspector: &dyn Inspector) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let most = inspector.max_message_bytes();
    let of_all = config.defaults().max_result_bytes;
    if of_all > most {
        let large = large_result("", of_all, most);
        found.push(match &config.max_result_place {
            Some(place) => large.at_location(place.clone()),
            None => large,
        });
    }
    for server in config.servers().filter(|server| server.enabled) {
        let inspection = ServerInspection { server, inspector };
        found.extend(inspection.diagnostics());
        let own = server.behaviour.max_result_bytes;
        if own > most && own != of_all {
            found.push(inspection.located(large_result("its ", own, most)));
        }
    }
    found.extend(unserved_bundles(config, inspector));
    found
}

/// Reports bundles in modes that the host does not serve.
fn unserved_bundles(config: &Config, inspector: &dyn Inspector) -> Vec<Diagnostic> {
    let bundles = config.bundles();
    let unserved = bundles.filter(|(_, bundle)| !inspector.serves(bundle.mode));
    let warning = |(name, bundle): (&BundleName, &Bundle)| {
        let mode = bundle.mode.as_str();
        let message = format!(
            "bundle `{name}` of server `{}`: mode `{mode}` is not served here; its tools are listed \
             directly",
            bundle.server
        );
        Diagnostic::new(Severity::Warning, Code::NotServed, message)
            .at_location(bundle.location.clone())
            .of_server(&bundle.server)
            .help("remove `mode`, or write `\"mode\": \"direct\"`")
    };
    unserved.map(warning).collect()
}

fn large_result(whose: &str, wanted: u64, most: u64) -> Diagnostic {
    let message = format!(
        "{whose}`maxResultBytes` is {wanted}, and a message of a server may have {most} bytes"
    );
    let found = Diagnostic::new(Severity::Error, Code::OutOfRange, message);
    found.help(format!("write at most {most}"))
}

/// Checks one server.
struct ServerInspection<'i> {
    server: &'i Server,
    inspector: &'i dyn Inspector,
}

impl ServerInspection<'_> {
    fn diagnostics(&self) -> Vec<Diagnostic> {
        let (transport, errors) = expand_references(self.server, self.inspector);
        let warning = |error: &Error| {
            let warning = self.warning(Code::UnresolvedReference, error.message().to_owned());
            warning.maybe_help(error.hint().map(str::to_owned))
        };
        let mut found: Vec<_> = errors.iter().map(warning).collect();
        match (&transport, &self.server.transport) {
            (ResolvedTransport::Stdio(program), Transport::Stdio(written)) => {
                // The program and its directory may depend on references that could not be resolved.
                let is_known = written.command.as_literal().is_some() && written.cwd.is_none();
                if errors.is_empty() || is_known {
                    found.extend(self.program(program));
                }
            }
            (ResolvedTransport::Remote(remote), Transport::Remote(written)) => {
                let command = remote.headers_command.as_deref().filter(|_| errors.is_empty());
                found.extend(command.and_then(|words| self.headers_command(words)));
                found.extend(self.provider(written));
            }
            _ => {}
        }
        found
    }

    fn headers_command(&self, words: &[Secret]) -> Option<Diagnostic> {
        let program = ResolvedStdio::of_words(words, self.server);
        let problem = self.inspector.program_problem(&program)?;
        let message = format!("`headersCommand`: {problem}");
        let help = "install it or correct the entry, unless it runs in another environment";
        Some(self.warning(Code::MissingProgram, message).help(help))
    }

    /// Reports an `authProviderId`: the program has no providers, and a header takes precedence.
    fn provider(&self, remote: &Remote) -> Option<Diagnostic> {
        let mut names = remote.headers.iter().map(|(name, _)| name);
        let has_own = names.any(|name| name.eq_ignore_ascii_case("Authorization"));
        let id = self.server.auth_provider.as_deref().filter(|_| !has_own)?;
        let error = unknown_provider(self.server, id);
        let found = Diagnostic::new(Severity::Error, Code::UnknownAuthProvider, error.message());
        Some(self.located(found).maybe_help(error.hint().map(str::to_owned)))
    }

    fn program(&self, program: &ResolvedStdio) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        if self.inspector.is_itself(program) {
            let message = "it runs Trunkline with this configuration, which is refused: it would \
                           start itself without end";
            let error = Diagnostic::new(Severity::Error, Code::StartsItself, message);
            let help = "remove it, or give it a configuration of its own with `--config`";
            found.push(self.located(error).help(help));
        }
        if let Some(problem) = self.inspector.directory_problem(program) {
            let help = "create it or correct `cwd`, unless it runs in another environment";
            found.push(self.warning(Code::MissingDirectory, problem).help(help));
        } else if let Some(problem) = self.inspector.program_problem(program) {
            let (problem, help) = match is_command_line(program.command.expose()) {
                true => (
                    "no program has this name: `command` is a whole command line".to_owned(),
                    "write the program as `command`, and the rest as `args`",
                ),
                false => (
                    problem,
                    "install it or correct the entry, unless it runs in another environment",
                ),
            };
            found.push(self.warning(Code::MissingProgram, problem).help(help));
        }
        found
    }

    fn warning(&self, code: Code, message: String) -> Diagnostic {
        let found = Diagnostic::new(Severity::Warning, code, message);
        self.located(found).label("as seen from the environment of this command")
    }

    fn located(&self, found: Diagnostic) -> Diagnostic {
        let place = self.server.provenance.location.clone();
        found.at_location(place).of_server(&self.server.name)
    }
}
