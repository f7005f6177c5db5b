//! Problems found in a configuration, as values: what, where, and what to do.

use std::fmt;
use std::sync::Arc;

use super::source::{Location, Source, Span};
use crate::name::ServerName;

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing is wrong: what was written has no effect here, and that may surprise.
    Note,
    /// Probably a slip, such as an unknown key. Fails only under `--strict`.
    Hint,
    /// Works, and perhaps not as meant. Fails only under `--strict`.
    Warning,
    /// The entry it is about cannot be used.
    Error,
}

impl Severity {
    /// The word messages show.
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
        /// Which problem it is. The text form is stable: scripts and documentation use it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code { $($(#[doc = $doc])* $name),* }

        impl Code {
            /// Every code there is.
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
    /// There is nothing in the text.
    EmptyFile = "empty-file",
    /// The text is not an object at the top.
    NotAnObject = "not-an-object",
    /// A file that was asked for does not exist.
    FileMissing = "file-missing",
    /// A directory was given where a file belongs.
    FileIsDirectory = "file-is-directory",
    /// A file exists and cannot be read.
    FileUnreadable = "file-unreadable",
    /// A discovered file can be changed by other users.
    UnsafeFile = "unsafe-file",
    /// A second configuration file beside the one in use is ignored.
    ShadowedFile = "shadowed-file",
    /// A server of a lower layer is replaced by one of a higher layer.
    ShadowedServer = "shadowed-server",
    /// Servers stand at the top of a file instead of under a key for servers.
    NoServers = "no-servers",
    /// One object has a key twice, or two spellings of one key.
    DuplicateKey = "duplicate-key",
    /// Two servers have one name.
    DuplicateServer = "duplicate-server",
    /// A key that nothing here knows.
    UnknownKey = "unknown-key",
    /// A key of another host that is kept and has no effect here.
    ForeignKey = "foreign-key",
    /// A rule of another host that hides or guards something is not applied here.
    NotApplied = "not-applied",
    /// A value of the wrong type.
    WrongType = "wrong-type",
    /// A word that is not one of those allowed.
    UnknownValue = "unknown-value",
    /// A number, duration, size or text outside what is allowed.
    OutOfRange = "out-of-range",
    /// A key that must be there is missing.
    MissingKey = "missing-key",
    /// Two keys contradict each other.
    Contradiction = "contradiction",
    /// A bundle, an agent or a layer is not used because of its errors.
    Disabled = "disabled",
    /// A server refers to a variable, a file or an input that has no value here.
    UnresolvedReference = "unresolved-reference",
    /// The program of a server is not there.
    MissingProgram = "missing-program",
    /// The directory that a server is to run in is not there.
    MissingDirectory = "missing-directory",
    /// A server runs Trunkline with the configuration that it is in.
    StartsItself = "starts-itself",
    /// Nothing provides credentials under an id.
    UnknownAuthProvider = "unknown-auth-provider",
    /// Something that is asked for is not served here.
    NotServed = "not-served",
    /// A name that cannot be used.
    BadName = "bad-name",
    /// A server has both a command and a URL.
    CommandAndUrl = "command-and-url",
    /// A server has neither a command nor a URL.
    NoCommandOrUrl = "no-command-or-url",
    /// A server's type does not fit its other keys.
    TypeMismatch = "type-mismatch",
    /// A way to connect that does not exist here.
    UnsupportedTransport = "unsupported-transport",
    /// Not an HTTP address.
    BadUrl = "bad-url",
    /// The name or value of a header cannot be sent.
    BadHeader = "bad-header",
    /// The name or value of an environment variable cannot be set.
    BadVariable = "bad-variable",
    /// The command looks like a whole command line.
    CommandLine = "command-line",
    /// A timeout that is too short to be in the unit it is written in.
    AmbiguousTimeout = "ambiguous-timeout",
    /// An entry only switches a server that no lower layer has.
    NothingToSwitch = "nothing-to-switch",
    /// A reference such as `${…}` that cannot be read.
    BadReference = "bad-reference",
    /// A reference to an input that the file does not declare.
    UnknownInput = "unknown-input",
    /// Servers whose names start alike.
    SharedPrefix = "shared-prefix",
    /// A bundle names a server that does not exist.
    UnknownServer = "unknown-server",
    /// An allow-list that allows nothing.
    EmptyAllowList = "empty-allow-list",
    /// A pattern of names that cannot be read.
    BadPattern = "bad-pattern",
    /// A list of patterns that allows nothing.
    AllowsNothing = "allows-nothing",
    /// Two agents have one name.
    DuplicateAgent = "duplicate-agent",
    /// The text at the top of an agent cannot be read.
    AgentSyntax = "agent-syntax",
    /// An agent in a file of several has no name.
    AgentWithoutName = "agent-without-name",
    /// An untrusted server, or a bundle of it, has no allow-list.
    UntrustedWithoutAllowList = "untrusted-without-allow-list",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Another place that helps to understand a problem.
#[derive(Clone, Debug)]
pub struct Related {
    /// Where.
    pub location: Location,
    /// What is there.
    pub label: String,
}

/// One problem.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Which problem it is.
    pub code: Code,
    /// What is wrong, in one sentence.
    pub message: String,
    /// Where it is; absent when the problem is about no text, such as a missing file.
    pub location: Option<Location>,
    /// What was expected there, shown under the text.
    pub label: Option<String>,
    /// Other places that matter.
    pub related: Vec<Related>,
    /// What to do about it.
    pub help: Option<String>,
    /// The server it is about.
    pub server: Option<ServerName>,
}

impl Diagnostic {
    /// A problem that is not about a place in a text.
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
        self.related.push(Related { location, label: label.into() });
        self
    }

    pub(crate) fn of_server(mut self, server: &ServerName) -> Self {
        self.server = Some(server.clone());
        self
    }

    /// Whether this problem makes a check fail; under `strict` hints and warnings do as well.
    pub fn is_error(&self, strict: bool) -> bool {
        self.severity >= if strict { Severity::Hint } else { Severity::Error }
    }
}
