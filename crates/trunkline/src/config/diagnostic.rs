//! Configuration problems as values: message, location and help.

use std::fmt;
use std::sync::Arc;

use super::source::{Location, Source, Span};
use crate::name::ServerName;

/// Severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Informational: the setting is valid and has no effect here.
    Note,
    /// Probably a mistake, such as an unknown key. Fails only under `--strict`.
    Hint,
    /// Works, perhaps not as intended. Fails only under `--strict`.
    Warning,
    /// The affected entry cannot be used.
    Error,
}

impl Severity {
    /// The label that messages show.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Hint => "hint",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal),* $(,)?) => {
        /// The kind of problem. The text form is stable: scripts and documentation use it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code { $($(#[doc = $doc])* $name),* }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The stable text form.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }
        }
    };
}

codes! {
    /// The text is not JSON with comments.
    Syntax = "syntax",
    /// The text nests deeper than any configuration needs.
    TooDeep = "too-deep",
    /// The text is larger than any configuration needs.
    TooLarge = "too-large",
    /// The bytes are not UTF-8.
    NotUtf8 = "not-utf8",
    /// The text is empty.
    EmptyFile = "empty-file",
    /// The top level of the text is not an object.
    NotAnObject = "not-an-object",
    /// A requested file does not exist.
    FileMissing = "file-missing",
    /// A path names a directory instead of a file.
    FileIsDirectory = "file-is-directory",
    /// A file exists but cannot be read.
    FileUnreadable = "file-unreadable",
    /// A discovered file can be changed by other users.
    UnsafeFile = "unsafe-file",
    /// A second configuration file beside the one in use is ignored.
    ShadowedFile = "shadowed-file",
    /// A server of a lower layer is replaced by one of a higher layer.
    ShadowedServer = "shadowed-server",
    /// Servers are at the top level of a file instead of under a key for servers.
    NoServers = "no-servers",
    /// An object has a key twice, or two spellings of one key.
    DuplicateKey = "duplicate-key",
    /// Two servers have the same name.
    DuplicateServer = "duplicate-server",
    /// An unknown key.
    UnknownKey = "unknown-key",
    /// A key of another host that is preserved and has no effect here.
    ForeignKey = "foreign-key",
    /// A rule of another host that hides or restricts something is not applied here.
    NotApplied = "not-applied",
    /// A value of the wrong type.
    WrongType = "wrong-type",
    /// A keyword that is not one of the allowed ones.
    UnknownValue = "unknown-value",
    /// A number, duration, size or string outside the allowed range.
    OutOfRange = "out-of-range",
    /// A required key is missing.
    MissingKey = "missing-key",
    /// Two keys contradict each other.
    Contradiction = "contradiction",
    /// A bundle, an agent or a layer is not used because of its errors.
    Disabled = "disabled",
    /// A server refers to a variable, a file or an input that has no value here.
    UnresolvedReference = "unresolved-reference",
    /// The program of a server does not exist.
    MissingProgram = "missing-program",
    /// The directory that a server is to run in is not there.
    MissingDirectory = "missing-directory",
    /// A server runs Trunkline with the configuration that it is in.
    StartsItself = "starts-itself",
    /// No provider supplies credentials for an ID.
    UnknownAuthProvider = "unknown-auth-provider",
    /// A bundle mode that is not served here.
    NotServed = "not-served",
    /// An invalid name.
    BadName = "bad-name",
    /// A server has both a command and a URL.
    CommandAndUrl = "command-and-url",
    /// A server has neither a command nor a URL.
    NoCommandOrUrl = "no-command-or-url",
    /// A server's type does not fit its other keys.
    TypeMismatch = "type-mismatch",
    /// An unsupported transport.
    UnsupportedTransport = "unsupported-transport",
    /// Not an HTTP URL.
    BadUrl = "bad-url",
    /// The name or value of a header cannot be sent.
    BadHeader = "bad-header",
    /// The name or value of an environment variable cannot be set.
    BadVariable = "bad-variable",
    /// Settings of OAuth lack something that they need.
    IncompleteOAuth = "incomplete-oauth",
    /// The command looks like a whole command line.
    CommandLine = "command-line",
    /// A timeout too short for the unit of its dialect.
    AmbiguousTimeout = "ambiguous-timeout",
    /// An entry only toggles a server that no lower layer defines.
    NothingToSwitch = "nothing-to-switch",
    /// A malformed reference such as `${…}`.
    BadReference = "bad-reference",
    /// A reference to an input that the file does not declare.
    UnknownInput = "unknown-input",
    /// Several servers whose names have the same prefix.
    SharedPrefix = "shared-prefix",
    /// A bundle names a server that does not exist.
    UnknownServer = "unknown-server",
    /// An allow-list that allows nothing.
    EmptyAllowList = "empty-allow-list",
    /// A malformed name pattern.
    BadPattern = "bad-pattern",
    /// A list of patterns that allows nothing.
    AllowsNothing = "allows-nothing",
    /// Two agents have the same name.
    DuplicateAgent = "duplicate-agent",
    /// The frontmatter of an agent cannot be read.
    AgentSyntax = "agent-syntax",
    /// An agent in a file with several agents has no name.
    AgentWithoutName = "agent-without-name",
    /// An untrusted server, or a bundle that contains one, has no allow-list.
    UntrustedWithoutAllowList = "untrusted-without-allow-list",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Another location that helps to understand a problem.
#[derive(Clone, Debug)]
pub struct RelatedLocation {
    /// The location.
    pub location: Location,
    /// Description of the text at the location.
    pub label: String,
}

/// One problem in a configuration.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The kind of problem.
    pub code: Code,
    /// Description of the problem, in one sentence.
    pub message: String,
    /// The location; `None` when the problem concerns no text, such as a missing file.
    pub location: Option<Location>,
    /// The expected content, shown below the quoted text.
    pub label: Option<String>,
    /// Other relevant locations.
    pub related: Vec<RelatedLocation>,
    /// Suggested fix.
    pub help: Option<String>,
    /// The affected server.
    pub server: Option<ServerName>,
}

impl Diagnostic {
    /// Creates a diagnostic without a location.
    pub(crate) fn new(severity: Severity, code: Code, message: impl Into<String>) -> Self {
        Self {
            severity,
            code,
            message: message.into(),
            location: None,
            label: None,
            related: Vec::new(),
            help: None,
            server: None,
        }
    }

    pub(crate) fn at(mut self, source: &Arc<Source>, span: Span) -> Self {
        self.location = Some(Location::new(source, span));
        self
    }

    pub(crate) fn at_location(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }

    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }

    pub(crate) fn related(mut self, location: Location, label: impl Into<String>) -> Self {
        self.related.push(RelatedLocation { location, label: label.into() });
        self
    }

    pub(crate) fn of_server(mut self, server: &ServerName) -> Self {
        self.server = Some(server.clone());
        self
    }

    /// Returns whether this problem fails a check; under `strict`, hints and warnings do as well.
    pub fn is_error(&self, strict: bool) -> bool {
        self.severity >= if strict { Severity::Hint } else { Severity::Error }
    }
}
