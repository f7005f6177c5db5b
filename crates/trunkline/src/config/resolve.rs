//! Resolves the references of a server when it starts (CFG-9).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{io, mem};

use super::env_file::variable_line;
use super::environment::FileRefusal;
use super::model::{FileOrigin, FileReach, Origin, Remote, Server, Stdio, Transport};
use super::oauth::OAuthMode;
use super::redact::{self, quoted};
pub use super::resolved::{ResolvedRemote, ResolvedStdio, ResolvedTransport};
use super::resolver::Resolver;
use super::secret::{MASK, Secret};
use super::template::{Reference, ReferenceSource, SecretPlace, Template, TemplatePart};
use super::validate::usable_url;
use crate::error::{Error, ErrorKind};

/// Hint for a file that a discovered configuration may not read.
const OUTSIDE_HINT: &str = "its configuration was found, not named: `trunkline trust \
                            --outside-files` lets it read files outside of its folder";

/// Resolves all references of a server, or returns an error for each that fails.
///
/// ```
/// use std::{io, path::Path};
/// use trunkline::config::{self, ResolvedTransport, Resolver, Secret};
///
/// struct Vault;
///
/// impl Resolver for Vault {
///     fn variable(&self, name: &str) -> Option<Secret> {
///         (name == "TOKEN").then(|| Secret::new("hunter2"))
///     }
///     fn file(&self, path: &Path) -> io::Result<Secret> {
///         std::fs::read_to_string(path).map(Secret::new)
///     }
/// }
///
/// let loaded = config::parse("mcp.json", r#"{ "mcpServers": {
///     "docs": { "url": "https://example.com/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" } }
/// } }"#);
/// let transport = config::resolve(loaded.config.server("docs").unwrap(), &Vault).unwrap();
/// let ResolvedTransport::Remote(remote) = &transport else { unreachable!() };
/// assert_eq!(remote.headers[0].1.expose(), "Bearer hunter2");
/// assert!(!format!("{transport:?}").contains("hunter2"));
/// ```
pub fn resolve(server: &Server, resolver: &dyn Resolver) -> Result<ResolvedTransport, Vec<Error>> {
    let (transport, errors) = expand_references(server, resolver);
    if errors.is_empty() { Ok(transport) } else { Err(errors) }
}

/// Resolves references, and returns an error for each that fails; failed ones expand to nothing.
pub(super) fn expand_references(
    server: &Server,
    resolver: &dyn Resolver,
) -> (ResolvedTransport, Vec<Error>) {
    let mut filler =
        ReferenceExpander { server, resolver, errors: Vec::new(), filled_in: Vec::new() };
    let transport = match &server.transport {
        Transport::Stdio(stdio) => ResolvedTransport::Stdio(filler.stdio(stdio)),
        Transport::Remote(remote) => ResolvedTransport::Remote(filler.remote(remote)),
    };
    (transport, filler.errors)
}

/// The error of a server whose `authProviderId` names no provider of the host (CON-12).
pub(crate) fn unknown_provider(server: &Server, id: &str) -> Error {
    let message = format!("nothing here provides credentials for `authProviderId` {}", quoted(id));
    let error = Error::new(ErrorKind::MissingSecret, message).of(&server.name);
    error.with_hint("set an `Authorization` header in `headers` instead: `Bearer ${TOKEN}`")
}

/// Returns the arguments that display masks, and the masked values after a name in them.
fn credentials(written: &[Template], filled: &[Secret]) -> Vec<Secret> {
    let judged: Vec<_> = written.iter().map(Template::redaction_input).collect();
    let shown = redact::arguments(&judged);
    let mut found = Vec::new();
    for ((judged, shown), filled) in judged.iter().zip(&shown).zip(filled) {
        if *shown == judged.text {
            continue;
        }
        let name = shown.strip_suffix(MASK);
        found.extend(name.and_then(|name| filled.expose().strip_prefix(name)).map(Secret::new));
        let parts = redact::secret_parts(&judged.text);
        // A script without a credential is not a secret; its words occur in ordinary messages.
        if !parts.is_empty() || !judged.judged.contains(redact::is_composed) {
            found.push(filled.clone());
        }
        found.extend(parts.into_iter().map(Secret::new));
    }
    found
}

struct ReferenceExpander<'f> {
    server: &'f Server,
    resolver: &'f dyn Resolver,
    errors: Vec<Error>,
    filled_in: Vec<Secret>,
}

impl ReferenceExpander<'_> {
    fn stdio(&mut self, stdio: &Stdio) -> ResolvedStdio {
        let mut env = BTreeMap::new();
        if let Some(path) = &stdio.env_file {
            env.extend(self.variables_file(path));
        }
        for (name, value) in &stdio.env {
            let value = value.as_ref().map(|value| self.expand(value));
            if value.as_ref().is_some_and(|value| value.expose().contains('\0')) {
                self.unusable(format!("the variable `{name}` holds a NUL character"));
            }
            env.insert(name.clone(), value);
        }
        let command = self.expand(&stdio.command);
        if command.expose().trim().is_empty() && !self.has_errors() {
            self.unusable("the command is empty once it is filled in".to_owned());
        }
        let args: Vec<_> = stdio.args.iter().map(|arg| self.expand(arg)).collect();
        let credentials = credentials(&stdio.args, &args);
        let cwd = stdio.cwd.as_ref().map(|cwd| {
            let directory = self.expand(cwd);
            let directory = self.workspace().join(directory.expose());
            (shown_path(cwd, &directory), path_text(&directory))
        });
        let (shown_cwd, cwd) = cwd.unzip();
        let path = shown_path(&stdio.command, Path::new(command.expose()));
        let filled_in = mem::take(&mut self.filled_in);
        let shown = shown_program(&stdio.command);
        let inherit_env = self.server.behaviour.inherit_env.clone();
        let identity = self.server.identity.clone();
        ResolvedStdio {
            command,
            shown,
            shown_path: path,
            args,
            cwd,
            shown_cwd,
            env,
            inherit_env,
            filled_in,
            credentials,
            identity,
        }
    }

    fn remote(&mut self, remote: &Remote) -> ResolvedRemote {
        let url = self.expand(&remote.url);
        if usable_url(url.expose()).is_err() && !self.has_errors() {
            self.unusable("the address is not an HTTP address once it is filled in".to_owned());
        }
        let mut headers = Vec::with_capacity(remote.headers.len());
        for (name, value) in &remote.headers {
            let value = self.expand(value);
            if value.expose().chars().any(|c| c.is_control() && c != '\t') {
                self.unusable(format!("the header `{name}` would hold a control character"));
            }
            headers.push((name.clone(), value));
        }
        let oauth = match &remote.oauth {
            OAuthMode::Disabled => None,
            OAuthMode::Enabled(settings) => Some(settings.map(|value| self.expand(value))),
        };
        let command = remote.headers_command.as_ref();
        let headers_command = command.map(|words| words.iter().map(|it| self.expand(it)).collect());
        let filled_in = mem::take(&mut self.filled_in);
        let protocol = remote.protocol;
        ResolvedRemote { url, headers, protocol, oauth, headers_command, filled_in }
    }

    fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    fn fail(&mut self, kind: ErrorKind, message: String, hint: Option<String>) {
        let error = Error::new(kind, message).of(&self.server.name);
        self.errors.push(match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        });
    }

    fn unusable(&mut self, message: String) {
        self.fail(ErrorKind::UnusableValue, message, None);
    }

    fn expand(&mut self, template: &Template) -> Secret {
        let mut text = String::new();
        for part in template.parts() {
            match part {
                TemplatePart::Literal(literal) => text.push_str(literal),
                TemplatePart::Reference(reference) => {
                    let Some(value) = self.look_up(reference) else { continue };
                    text.push_str(value.expose());
                    if may_be_secret(reference.target(), &value) {
                        self.filled_in.push(value);
                    }
                }
            }
        }
        Secret::new(text)
    }

    /// Resolves a reference; `None`, with an error recorded, if it has no value.
    fn look_up(&mut self, reference: &Reference) -> Option<Secret> {
        // As in a shell, the default after `:-` replaces an unset or empty value.
        let default = reference.default().map(Secret::new);
        let value = match reference.target() {
            ReferenceSource::File(path) => match self.read(path) {
                Ok(value) => Some(value),
                Err(_) if default.is_some() => None,
                Err(error) => return self.unreadable(reference, &error),
            },
            ReferenceSource::Variable(name) => self.resolver.variable(name),
            ReferenceSource::Input(id) => {
                self.resolver.input(id).or_else(|| self.declared_default(id))
            }
            // A default must not replace a value that exists and cannot be read.
            ReferenceSource::Secret(place, name) => match self.resolver.secret(*place, name) {
                Ok(value) => value,
                Err(error) => return self.unavailable(reference, &error),
            },
            ReferenceSource::WorkspaceFolder => Some(path_text(&self.workspace())),
            ReferenceSource::WorkspaceFolderName => self
                .workspace()
                .file_name()
                .map(|name| Secret::new(name.to_string_lossy().into_owned())),
            ReferenceSource::UserHome => self.resolver.user_home().map(|home| path_text(&home)),
            ReferenceSource::PathSeparator => Some(Secret::new(std::path::MAIN_SEPARATOR_STR)),
        };
        let value = match (value, default) {
            (Some(value), Some(default)) if value.expose().is_empty() => Some(default),
            (value, default) => value.or(default),
        };
        if value.is_none() {
            self.missing(reference);
        }
        value
    }

    fn declared_default(&self, id: &str) -> Option<Secret> {
        self.server.inputs.get(id).cloned().flatten()
    }

    fn missing(&mut self, reference: &Reference) {
        let (message, hint) = match reference.target() {
            ReferenceSource::Variable(name) => (
                format!("the variable `{name}` is not set"),
                Some(format!("set it, or write `${{{name}:-default}}`")),
            ),
            ReferenceSource::Input(id) => {
                (format!("the input `{id}` has no answer"), self.resolver.input_hint(id))
            }
            ReferenceSource::Secret(place, name) => {
                let of = match place {
                    SecretPlace::Store => "",
                    SecretPlace::Keychain => " in the keychain",
                };
                let message = format!("there is no secret `{name}`{of}");
                (message, self.resolver.secret_hint(*place, name))
            }
            ReferenceSource::UserHome => ("the home directory is not known".to_owned(), None),
            _ => (format!("`{reference}` stands for nothing here"), None),
        };
        self.fail(ErrorKind::MissingSecret, message, hint);
    }

    fn unreadable(&mut self, reference: &Reference, error: &io::Error) -> Option<Secret> {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => ErrorKind::MissingSecret,
            _ => ErrorKind::UnreadableSecret,
        };
        let message = format!("`{reference}` cannot be read: {}", read_failure(error));
        let hint = read_hint(error).unwrap_or("check the path and its permissions");
        self.fail(kind, message, Some(hint.to_owned()));
        None
    }

    /// Reports a secret that cannot be looked up.
    fn unavailable(&mut self, reference: &Reference, error: &Error) -> Option<Secret> {
        let message = format!("`{reference}` cannot be read: {}", error.message());
        self.fail(error.kind(), message, error.hint().map(str::to_owned));
        None
    }

    /// The workspace directory of the configuration.
    fn workspace(&self) -> PathBuf {
        self.under_working_directory(self.server.provenance.origin.workspace())
    }

    fn under_working_directory(&self, folder: &Path) -> PathBuf {
        let directory = self.resolver.working_directory();
        if folder.as_os_str().is_empty() { directory } else { directory.join(folder) }
    }

    /// Reads a file relative to the configuration, under `~`, or at an absolute path.
    fn read(&self, path: &str) -> io::Result<Secret> {
        let home = || self.resolver.user_home().ok_or(io::ErrorKind::NotFound);
        let path = match path.strip_prefix("~/") {
            Some(rest) => home()?.join(rest),
            None => {
                let folder = self.server.provenance.origin.folder();
                self.under_working_directory(folder).join(path)
            }
        };
        let content = match &self.server.provenance.origin {
            Origin::File(FileOrigin { workspace, reach, .. }) => {
                let folder = self.under_working_directory(workspace);
                match reach {
                    FileReach::Anywhere => self.resolver.file(&path)?,
                    FileReach::Workspace => self.resolver.file_within(&folder, &[], &path)?,
                    FileReach::Listed(files) => self.resolver.file_within(&folder, files, &path)?,
                }
            }
            _ => self.resolver.file(&path)?,
        };
        Ok(Secret::new(content.expose().trim_end_matches(['\r', '\n'])))
    }

    /// Reads the variables of an `envFile`.
    fn variables_file(&mut self, path: &Template) -> Vec<(Box<str>, Option<Secret>)> {
        let filled = self.expand(path);
        match self.read(filled.expose()) {
            Ok(content) => content.expose().lines().filter_map(variable_line).collect(),
            Err(error) => {
                let path = shown_path(path, &self.workspace().join(filled.expose()));
                let why = read_failure(&error);
                let message = format!("its `envFile` {path} cannot be read: {why}");
                let hint = read_hint(&error).map(str::to_owned);
                self.fail(ErrorKind::UnreadableSecret, message, hint);
                Vec::new()
            }
        }
    }
}

/// Describes a read failure by its kind, not its text: the text could contain file content.
fn read_failure(error: &io::Error) -> String {
    let refusal = FileRefusal::within(error).map(ToString::to_string);
    refusal.unwrap_or_else(|| match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        kind => kind.to_string(),
    })
}

fn read_hint(error: &io::Error) -> Option<&'static str> {
    (FileRefusal::within(error) == Some(&FileRefusal::Outside)).then_some(OUTSIDE_HINT)
}

/// Variables with directories and user names, which are not secret and occur in stack traces.
const HARMLESS: [&str; 9] =
    ["HOME", "LOGNAME", "PWD", "TEMP", "TMP", "TMPDIR", "USER", "USERNAME", "USERPROFILE"];

/// Whether the value of a reference may be secret. Paths are not.
fn may_be_secret(target: &ReferenceSource, value: &Secret) -> bool {
    match target {
        ReferenceSource::Variable(name) => {
            !HARMLESS.contains(&&**name) && !redact::is_harmless_variable(name, value.expose())
        }
        ReferenceSource::File(_) | ReferenceSource::Input(_) | ReferenceSource::Secret(..) => true,
        _ => false,
    }
}

/// A program for display. A resolved value may be anywhere in it, so no part of the resolved
/// command is harmless.
fn shown_program(command: &Template) -> Box<str> {
    match command.as_literal() {
        Some(path) => Path::new(path).file_name().unwrap_or_default().to_string_lossy().into(),
        None => command.redacted().into(),
    }
}

/// A path that was looked at, as it can be shown. One that refers to something is shown as it was
/// written.
fn shown_path(written: &Template, filled: &Path) -> Box<str> {
    match written.as_literal() {
        Some(_) => {
            redact::argument(&redact::RedactionInput::of_text(&filled.to_string_lossy())).into()
        }
        None => written.redacted().into(),
    }
}

fn path_text(path: &Path) -> Secret {
    Secret::new(path.to_string_lossy().into_owned())
}
