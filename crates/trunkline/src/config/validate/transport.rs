//! Validates the transport of a server, in the spellings of all hosts.

mod oauth;
mod values;

use url::Url;

use crate::config::decode::{Decoder, WithSpan};
use crate::config::diagnostic::Code;
use crate::config::dialect::Dialect;
use crate::config::keywords::TransportKeyword;
use crate::config::model::{Inputs, Remote, RemoteTransport, Stdio, Transport};
use crate::config::raw::{CommandEntry, OAuthEntry, ServerEntry, TransportEntry};
use crate::config::redact::{self, RedactionInput};
use crate::config::source::Span;
use crate::config::template::Template;

/// Decodes the transport of one entry.
pub(super) struct TransportReader<'r, 'd> {
    pub(super) decoder: &'r mut Decoder<'d>,
    pub(super) dialect: Dialect,
    pub(super) inputs: &'r Inputs,
    /// The span of the entry's name, for messages about missing keys.
    pub(super) key: Span,
}

/// A URL, and the transport that its key implies.
struct UrlEntry<'e> {
    url: &'e WithSpan<Box<str>>,
    streamable: bool,
}

/// A program, with arguments and variables inside of `command`.
struct CommandParts {
    program: Template,
    args: Vec<Template>,
    env: Vec<(Box<str>, Option<Template>)>,
}

impl TransportReader<'_, '_> {
    pub(super) fn transport(&mut self, entry: &ServerEntry) -> Option<Transport> {
        let (keys, word) = self.keys(entry)?;
        if let Some(tcp) = &keys.tcp {
            let message = "plain TCP servers are not supported";
            let found = self.decoder.error(Code::UnsupportedTransport, tcp.key, message);
            self.decoder.push(found.help("use `command`, or an HTTP address under `url`"));
            return None;
        }
        let address = self.address(keys)?;
        // Some user interfaces write an empty command for remote servers.
        let is_empty = |command: &WithSpan<CommandEntry>| match &command.value {
            CommandEntry::Program(program) => program.trim().is_empty(),
            CommandEntry::Line(line) => line.is_empty(),
            CommandEntry::Object(_) => false,
        };
        let command = keys.command.as_ref().filter(|it| address.is_none() || !is_empty(it));
        match (command, address) {
            (Some(command), None) => self.local(keys, command, word),
            (None, Some(address)) => self.remote(keys, &address, word),
            (Some(command), Some(address)) => {
                let message = "a server has either a command or an address, not both";
                let found = self
                    .decoder
                    .error(Code::CommandAndUrl, address.url.key, message)
                    .label("the address")
                    .related(self.decoder.location(command.key), "the command");
                self.decoder.push(found.help("remove one of them"));
                None
            }
            (None, None) => self.no_transport(word),
        }
    }

    /// The entry that contains the transport's keys, and the keyword of the transport.
    fn keys<'e>(
        &mut self,
        entry: &'e ServerEntry,
    ) -> Option<(&'e ServerEntry, Option<WithSpan<TransportKeyword>>)> {
        let Some(transport) = &entry.transport else {
            return Some((entry, entry.kind.clone()));
        };
        match &transport.value {
            TransportEntry::Word(word) => {
                let word = WithSpan { value: *word, span: transport.span, key: transport.key };
                if let Some(kind) = entry.kind.as_ref().filter(|kind| kind.value != word.value) {
                    self.contradiction(kind.key, word.key, "`type` and `transport` disagree");
                    return None;
                }
                Some((entry, Some(word)))
            }
            TransportEntry::Keys(nested) => {
                for key in transport_keys(entry) {
                    let message = "this belongs inside `transport`, which is there as well";
                    self.contradiction(key, transport.key, message);
                }
                for key in entry_keys(nested) {
                    let message = "this belongs beside `transport`, not inside it";
                    self.contradiction(key, transport.key, message);
                }
                Some((nested, nested.kind.clone()))
            }
        }
    }

    fn contradiction(&mut self, here: Span, there: Span, message: &str) {
        let found = self.decoder.error(Code::Contradiction, here, message);
        let found = found.related(self.decoder.location(there), "the other one");
        self.decoder.push(found);
    }

    fn address<'e>(&mut self, keys: &'e ServerEntry) -> Option<Option<UrlEntry<'e>>> {
        match (&keys.url, &keys.http_url) {
            (Some(url), Some(http)) => {
                self.contradiction(http.key, url.key, "a server has one address, not two");
                None
            }
            (Some(url), None) => Some(Some(UrlEntry { url, streamable: false })),
            (None, Some(url)) => Some(Some(UrlEntry { url, streamable: true })),
            (None, None) => Some(None),
        }
    }

    fn no_transport(&mut self, word: Option<WithSpan<TransportKeyword>>) -> Option<Transport> {
        let (message, help) = match word {
            Some(word) if word.value.is_remote() => {
                ("this server has a type and no address", "add `\"url\": \"https://…\"`")
            }
            Some(_) => ("this server has a type and no command", "add `\"command\": \"…\"`"),
            None if self.dialect == Dialect::Zed => (
                "this server has neither a command nor an address",
                "servers of Zed extensions run only inside Zed: write the extension's command",
            ),
            None => (
                "this server has neither a command nor an address",
                "add `\"command\"` for a program, or `\"url\"` for a remote server",
            ),
        };
        let found = self.decoder.error(Code::NoCommandOrUrl, self.key, message);
        self.decoder.push(found.help(help));
        None
    }

    fn local(
        &mut self,
        keys: &ServerEntry,
        command: &WithSpan<CommandEntry>,
        word: Option<WithSpan<TransportKeyword>>,
    ) -> Option<Transport> {
        if let Some(word) = word.filter(|word| word.value.is_remote()) {
            return self.mismatch(&word, command.key, "a command");
        }
        if let Some(headers) = &keys.headers {
            let message = "`headers` has no effect on a program";
            let found = self.decoder.warning(Code::TypeMismatch, headers.key, message);
            self.decoder.push(found.help("use `env` to pass credentials to it"));
        }
        let credentials = [
            ("authProviderId", key_of(&keys.auth_provider)),
            ("oauth", key_of(&keys.oauth).filter(|_| !is_off(keys))),
            ("headersCommand", key_of(&keys.headers_command)),
            ("headersHelper", key_of(&keys.headers_helper)),
        ];
        for (name, key) in credentials {
            let Some(key) = key else { continue };
            let message = format!("`{name}` has no effect on a program");
            let found = self.decoder.warning(Code::TypeMismatch, key, message);
            self.decoder.push(found.help("use `env` to pass credentials to it"));
        }
        let CommandParts { program, mut args, mut env } = self.program(command)?;
        args.extend(self.templates(keys.args.as_ref()));
        env.extend(self.variables(keys.env.as_ref()));
        Some(Transport::Stdio(Stdio {
            command: program,
            args,
            cwd: self.optional(keys.cwd.as_ref()),
            env,
            env_file: self.optional(keys.env_file.as_ref()),
        }))
    }

    /// The program, with arguments and variables inside of `command`.
    fn program(&mut self, command: &WithSpan<CommandEntry>) -> Option<CommandParts> {
        match &command.value {
            CommandEntry::Program(program) => {
                let program = self.checked_program(program, command.span)?;
                Some(CommandParts { program, args: Vec::new(), env: Vec::new() })
            }
            CommandEntry::Line(line) => {
                let Some((program, args)) = line.split_first() else {
                    return self.no_program(command.span);
                };
                let program = self.checked_program(&program.value, program.span)?;
                let args = args.iter().filter_map(|arg| self.template(&arg.value, arg.span));
                Some(CommandParts { program, args: args.collect(), env: Vec::new() })
            }
            CommandEntry::Object(object) => {
                let Some(path) = &object.path else { return self.no_program(command.span) };
                let program = self.checked_program(&path.value, path.span)?;
                let args = self.templates(object.args.as_ref());
                Some(CommandParts { program, args, env: self.variables(object.env.as_ref()) })
            }
        }
    }

    fn no_program<T>(&mut self, span: Span) -> Option<T> {
        let found = self.decoder.error(Code::NoCommandOrUrl, span, "the command is empty");
        self.decoder.push(found.label("expected a program"));
        None
    }

    fn checked_program(&mut self, program: &str, span: Span) -> Option<Template> {
        if program.trim().is_empty() {
            return self.no_program(span);
        }
        if is_command_line(program) {
            let message = "the command looks like a whole command line; it is taken as one program";
            let found = self.decoder.warning(Code::CommandLine, span, message);
            self.decoder.push(found.help(split_command(program)));
        }
        self.template(program, span)
    }

    fn remote(
        &mut self,
        keys: &ServerEntry,
        address: &UrlEntry<'_>,
        word: Option<WithSpan<TransportKeyword>>,
    ) -> Option<Transport> {
        let protocol = match word.as_ref().map(|word| word.value) {
            Some(TransportKeyword::Stdio) => {
                return self.mismatch(&word?, address.url.key, "an address");
            }
            Some(TransportKeyword::WebSocket) => {
                let message = "WebSocket servers are not supported";
                let found = self.decoder.error(Code::UnsupportedTransport, word?.span, message);
                self.decoder.push(found.help("use the server's HTTP address, if it has one"));
                return None;
            }
            Some(TransportKeyword::Http) => RemoteTransport::Streamable,
            Some(TransportKeyword::Sse) => RemoteTransport::Sse,
            None if address.streamable => RemoteTransport::Streamable,
            None => self.dialect.untyped_remote(),
            Some(TransportKeyword::Remote) => RemoteTransport::Detect,
        };
        let local =
            [key_of(&keys.args), key_of(&keys.env), key_of(&keys.cwd), key_of(&keys.env_file)];
        for key in local.into_iter().flatten() {
            let message = "this has no effect on a remote server";
            self.decoder.push(self.decoder.warning(Code::TypeMismatch, key, message));
        }
        let url = self.template(&address.url.value, address.url.span)?;
        match url.as_literal() {
            Some(text) => self.check_url(text, address.url.span)?,
            None => self.check_scheme(&address.url.value, address.url.span)?,
        }
        let headers = self.headers(keys.headers.as_ref());
        let (oauth, headers_command) = (self.oauth(keys)?, self.headers_command(keys)?);
        Some(Transport::Remote(Remote { url, headers, protocol, oauth, headers_command }))
    }

    fn mismatch(
        &mut self,
        word: &WithSpan<TransportKeyword>,
        other: Span,
        has: &str,
    ) -> Option<Transport> {
        let kind = word.value.as_str();
        let message = format!("a server of type `{kind}` cannot have {has}");
        let found = self
            .decoder
            .error(Code::TypeMismatch, word.span, message)
            .related(self.decoder.location(other), has);
        self.decoder.push(found.help("change the type, or leave it out"));
        None
    }

    /// Checks the start of a URL whose rest contains references.
    fn check_scheme(&mut self, text: &str, span: Span) -> Option<()> {
        match text.split_once("://") {
            Some((scheme, _)) if !scheme.contains('$') && !matches!(scheme, "http" | "https") => {
                self.check_url(&format!("{scheme}://x"), span)
            }
            _ => Some(()),
        }
    }

    fn check_url(&mut self, text: &str, span: Span) -> Option<()> {
        let (message, help) = match usable_url(text) {
            Ok(_) => return Some(()),
            Err(UrlProblem::Scheme) if text.starts_with("unix:") || text.starts_with("pipe:") => {
                ("sockets and pipes as addresses are not supported", "use an HTTP address")
            }
            Err(UrlProblem::Scheme) if text.starts_with("ws:") || text.starts_with("wss:") => (
                "WebSocket servers are not supported",
                "use the server's HTTP address, if it has one",
            ),
            Err(UrlProblem::Scheme) => (
                "the address must start with `http://` or `https://`",
                "write the whole address, such as `https://example.com/mcp`",
            ),
            Err(UrlProblem::Invalid) => {
                ("this is not an address", "expected something like `https://example.com/mcp`")
            }
        };
        let found = self.decoder.error(Code::BadUrl, span, message);
        self.decoder.push(found.help(help));
        None
    }
}

/// The spans of the transport's keys in an entry.
fn transport_keys(entry: &ServerEntry) -> impl Iterator<Item = Span> {
    let keys = [
        key_of(&entry.kind),
        key_of(&entry.command),
        key_of(&entry.args),
        key_of(&entry.cwd),
        key_of(&entry.env),
        key_of(&entry.env_file),
        key_of(&entry.url),
        key_of(&entry.http_url),
        key_of(&entry.headers),
        key_of(&entry.oauth),
        key_of(&entry.headers_command),
        key_of(&entry.headers_helper),
    ];
    keys.into_iter().flatten()
}

/// The spans of keys that an entry has and its transport does not.
fn entry_keys(entry: &ServerEntry) -> impl Iterator<Item = Span> {
    let keys = [
        key_of(&entry.transport),
        key_of(&entry.enabled),
        key_of(&entry.disabled),
        key_of(&entry.trust),
        key_of(&entry.prefix),
        key_of(&entry.access),
        key_of(&entry.connect),
        key_of(&entry.protocol),
        key_of(&entry.restart),
        key_of(&entry.inherit_env),
        key_of(&entry.timeout),
        key_of(&entry.timeouts),
        key_of(&entry.request_timeout_ms),
        key_of(&entry.init_timeout),
        key_of(&entry.concurrency),
        key_of(&entry.share),
        key_of(&entry.redact),
        key_of(&entry.tools_ttl),
        key_of(&entry.idle_timeout),
        key_of(&entry.max_result),
        key_of(&entry.allow_tools),
        key_of(&entry.deny_tools),
    ];
    keys.into_iter().flatten()
}

/// Whether an entry has `"oauth": false`, as some hosts write for every server.
fn is_off(entry: &ServerEntry) -> bool {
    matches!(entry.oauth, Some(WithSpan { value: OAuthEntry::Switch(false), .. }))
}

fn key_of<T>(field: &Option<WithSpan<T>>) -> Option<Span> {
    field.as_ref().map(|field| field.key)
}

/// The reason why a string is not the URL of a server.
pub(crate) enum UrlProblem {
    /// It is a URL with another scheme, or without one.
    Scheme,
    /// It is not a URL.
    Invalid,
}

/// Checks that a string is the URL of a server.
pub(crate) fn usable_url(text: &str) -> Result<Url, UrlProblem> {
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(url::ParseError::RelativeUrlWithoutBase) => return Err(UrlProblem::Scheme),
        Err(_) => return Err(UrlProblem::Invalid),
    };
    if !matches!(url.scheme(), "http" | "https") {
        return Err(UrlProblem::Scheme);
    }
    // The parser repairs some strings, so that users would see another URL than the one that is
    // used.
    let after_scheme = text.get(url.scheme().len()..);
    let is_whole = text.trim() == text && after_scheme.is_some_and(|it| it.starts_with("://"));
    if is_whole { Ok(url) } else { Err(UrlProblem::Invalid) }
}

/// Whether a command looks like a program with its arguments. `C:\Program Files\x.exe` and `/opt/my tools/x` are
/// programs with a space in their path.
pub(crate) fn is_command_line(program: &str) -> bool {
    let mut words = program.split_whitespace();
    let is_separator = |it: char| matches!(it, '/' | '\\' | '$');
    let is_bare = words.next().is_some_and(|first| !first.contains(is_separator));
    let rest: Vec<_> = words.collect();
    let is_argument = |word: &&str| word.starts_with(['/', '.', '~', '@']);
    let has_argument = is_bare && rest.iter().any(is_argument);
    let is_path = program.contains(is_separator) && !program.contains(" -");
    !rest.is_empty() && (!is_path || has_argument)
}

/// The advice for a command line under `command`: the entry as it should be, with secrets masked.
fn split_command(line: &str) -> String {
    // Quotes and escapes would have to be read as a shell does.
    if line.contains(['"', '\'', '\\']) {
        return "write the program under `command` and the rest under `args`".to_owned();
    }
    let words: Vec<_> = line.split_whitespace().map(RedactionInput::of_text).collect();
    let shown = redact::arguments(&words);
    let (command, args) = shown.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
    let args = serde_json::Value::from(args.to_vec());
    let command = serde_json::Value::from(command);
    format!("write it as `\"command\": {command}, \"args\": {args}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_a_space_in_its_path_is_no_command_line() {
        for line in ["npx -y srv", "python3 /srv/s.py", "node ./s.js", "/bin/x --port 3", "uvx a@1"]
        {
            assert!(is_command_line(line), "{line}");
        }
        for path in [r"C:\Program Files\x.exe", "/opt/my tools/x", "$HOME/my tools/x", "npx", ""] {
            assert!(!is_command_line(path), "{path}");
        }
    }
}
