//! Configuration as meant: checked, complete, and with secrets still as references.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use super::agent::{Agent, AgentPattern, Agents};
use super::identity::ConfigIdentity;
use super::inherit::InheritEnv;
pub use super::keywords::{Access, BundleMode, Protocol, Share, StartPolicy, Trust, UriStyle};
pub use super::origin::{ConsentHold, ConsentHoldReason, FileOrigin, FileReach, FoundBy, Origin};
use super::secret::Secret;
use super::source::Location;
use super::template::Template;
use crate::name::{BundleName, ServerName};

/// Everything a host needs to know, from all layers together.
#[derive(Clone, Default)]
pub struct Config {
    pub(crate) servers: BTreeMap<ServerName, Server>,
    pub(crate) broken: Vec<ServerName>,
    pub(crate) unreadable_settings: Vec<Box<str>>,
    pub(crate) bundles: BTreeMap<BundleName, Bundle>,
    pub(crate) disabled_bundles: Vec<BundleName>,
    pub(crate) agents: Agents,
    pub(crate) naming: Naming,
    pub(crate) defaults: ServerSettings,
    pub(crate) unknown: Vec<UnknownKey>,
    pub(crate) identity: ConfigIdentity,
}

impl Config {
    /// Sets the identity of the configuration, also for its servers.
    pub(crate) fn identify(&mut self, identity: ConfigIdentity) {
        self.servers.values_mut().for_each(|server| server.identity = identity.clone());
        self.identity = identity;
    }

    /// Whether both were loaded from the same file, or from the same text, at least in part.
    pub fn shares_layer_with(&self, other: &Self) -> bool {
        self.identity.shares_layer_with(&other.identity)
    }

    /// All servers that can be used, in the order of their names; also those switched off.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = &Server> {
        self.servers.values()
    }

    /// A server by its name.
    pub fn server(&self, name: &str) -> Option<&Server> {
        self.servers.get(name)
    }

    /// Servers whose entries have errors, so that they cannot be used.
    pub fn broken(&self) -> &[ServerName] {
        &self.broken
    }

    /// The keys of settings for all servers that cannot be read and that disable servers. A layer above can
    /// replace such a setting, so that its servers are used after all.
    pub fn unreadable_settings(&self) -> &[Box<str>] {
        &self.unreadable_settings
    }

    /// All bundles, in the order of their names.
    pub fn bundles(&self) -> impl ExactSizeIterator<Item = (&BundleName, &Bundle)> {
        self.bundles.iter()
    }

    /// Bundles whose entries have errors, so that they cannot be used (BUN-2).
    pub fn disabled_bundles(&self) -> &[BundleName] {
        &self.disabled_bundles
    }

    /// The agents, and the files that hold more of them.
    pub fn agents(&self) -> &Agents {
        &self.agents
    }

    /// How exposed names are made.
    pub fn naming(&self) -> &Naming {
        &self.naming
    }

    /// How servers behave that say nothing else.
    pub fn defaults(&self) -> &ServerSettings {
        &self.defaults
    }

    /// Top-level keys that are not known here, kept as they were written.
    pub fn unknown(&self) -> &[UnknownKey] {
        &self.unknown
    }

    /// The same within what an embedding host allows at most, which no file can raise (CFG-13).
    #[must_use]
    pub fn within(mut self, max_access: Access, restart: Option<Restart>) -> Self {
        let within = |own: Restart| restart.map_or(own, |most| own.within(most));
        self.defaults.restart = within(self.defaults.restart);
        self.defaults.access = self.defaults.access.strictest(max_access);
        for server in self.servers.values_mut() {
            let behaviour = &mut server.behaviour;
            behaviour.restart = within(behaviour.restart);
            let access = behaviour.access.strictest(max_access);
            if access != behaviour.access {
                server.set_access(access, AccessOverride::Host);
            }
        }
        self
    }

    /// Sets the access rule of every server, whatever was written.
    pub(crate) fn override_access(&mut self, access: Access) {
        self.defaults.access = access;
        for server in self.servers.values_mut() {
            server.set_access(access, AccessOverride::Run);
        }
    }
}

/// A member of an object that nothing here understands, kept as it was written.
#[derive(Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// Its key.
    pub key: Box<str>,
    /// Its value: JSON text, which may hold anything.
    pub json: Secret,
}

/// One server: how to reach it, what may be seen of it, and where that was written.
#[derive(Clone)]
pub struct Server {
    /// Its key in the file.
    pub name: ServerName,
    /// Whether it is used.
    pub enabled: bool,
    /// How it is reached.
    pub transport: Transport,
    /// Whether it is taken at its word.
    pub trust: Trust,
    /// The provider of credentials that the embedding host supplies under this id.
    pub auth_provider: Option<Box<str>>,
    /// What goes before the names of its tools instead of its name; empty for nothing.
    pub prefix: Option<Box<str>>,
    /// Which of its tools may be seen at all.
    pub tools: ToolLists,
    /// Bounds and rules.
    pub behaviour: ServerSettings,
    /// Where its rules were written, those that were.
    pub places: RuleLocations,
    /// Where it comes from.
    pub provenance: Provenance,
    /// Why it may not be started although it is meant to be; `enabled` is false then.
    pub hold: Option<Arc<ConsentHold>>,
    /// Keys that are not known here.
    pub unknown: Vec<UnknownKey>,
    pub(crate) inputs: Arc<Inputs>,
    /// Identity of the configuration it is part of.
    pub(crate) identity: ConfigIdentity,
}

impl Server {
    fn set_access(&mut self, access: Access, by: AccessOverride) {
        self.behaviour.access = access;
        self.places.access = None;
        self.places.access_override = Some(by);
    }
}

/// Where the rules of a server were written, those that were.
#[derive(Clone, Debug, Default)]
pub struct RuleLocations {
    /// What switches it on or off.
    pub enabled: Option<Location>,
    /// Its level of trust.
    pub trust: Option<Location>,
    /// Its access rule, or the one for all servers.
    pub access: Option<Location>,
    /// What set its access rule instead of a file.
    pub access_override: Option<AccessOverride>,
    /// Its lists of tools.
    pub tools: ListLocations,
}

/// What sets the access rule of a server instead of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessOverride {
    /// The caller, for this run: [`LoadOptions::access`](super::LoadOptions::access).
    Run,
    /// The embedding host, which allows no more than that.
    Host,
}

/// Where lists of tools were written, those that were.
#[derive(Clone, Debug, Default)]
pub struct ListLocations {
    /// The tools that may be seen.
    pub allow: Option<Location>,
    /// The tools that may not.
    pub deny: Option<Location>,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A child process that speaks over its standard input and output.
    Stdio(Stdio),
    /// A server at an HTTP address.
    Remote(Remote),
}

/// A child process.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Stdio {
    /// The program.
    pub command: Template,
    /// Its arguments.
    pub args: Vec<Template>,
    /// The directory it runs in.
    pub cwd: Option<Template>,
    /// Variables set, or removed where there is no value.
    pub env: Vec<(Box<str>, Option<Template>)>,
    /// A file with more variables; those in `env` win.
    pub env_file: Option<Template>,
}

/// A server at an HTTP address.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Remote {
    /// The address.
    pub url: Template,
    /// Headers sent with every request.
    pub headers: Vec<(Box<str>, Template)>,
    /// What is spoken there.
    pub protocol: RemoteTransport,
}

/// What is spoken at an HTTP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RemoteTransport {
    /// Streamable HTTP.
    Streamable,
    /// HTTP+SSE, of the first protocol revision.
    Sse,
    /// Not declared: Streamable HTTP first, HTTP+SSE if that is not spoken.
    Detect,
}

/// Tools of one server that may, or may not, be seen, in the server's own names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolLists {
    /// The only ones that may; absent when all may.
    pub allow: Option<Vec<Box<str>>>,
    /// Those that may not, whatever `allow` says.
    pub deny: Vec<Box<str>>,
}

/// A named choice of tools of one server.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The server.
    pub server: ServerName,
    /// How the tools reach the model.
    pub mode: BundleMode,
    /// Which tools.
    pub tools: ToolLists,
    /// Where its lists were written.
    pub places: ListLocations,
    /// Where it was written.
    pub location: Location,
}

/// How exposed names are made (TOOL-1, TOOL-2, TOOL-3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    /// What stands between server and tool.
    pub separator: Box<str>,
    /// How long a name may be.
    pub max_length: u32,
    /// Whether descriptions start with `[server]`.
    pub describe_server: bool,
    /// When addresses of resources say whose they are.
    pub addresses: UriStyle,
}

impl Naming {
    /// Longest name every model provider accepts.
    pub const MAX_LENGTH: u32 = 64;
}

impl Default for Naming {
    fn default() -> Self {
        Self {
            separator: "_".into(),
            max_length: Self::MAX_LENGTH,
            describe_server: true,
            addresses: UriStyle::Bare,
        }
    }
}

/// Bounds and rules of a server, all filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// Which of its tools may be seen (TOOL-5).
    pub access: Access,
    /// When it is connected (CON-3).
    pub connect: StartPolicy,
    /// Which generation of the protocol it is spoken to in (CON-2).
    pub protocol: Protocol,
    /// Whether it is started again (CON-5).
    pub restart: Restart,
    /// Variables of the host that it inherits beside those that every server does (CON-7).
    pub inherit_env: InheritEnv,
    /// Bounds on every kind of wait (CON-8).
    pub timeouts: Timeouts,
    /// How many calls may run at once; absent for no limit (CALL-7).
    pub concurrency: Option<u32>,
    /// Whether all clients of a gateway use the same server, or each one of its own.
    pub share: Share,
    /// Whether secrets of the configuration are also masked in what it answers (SEC-2).
    pub redact: bool,
    /// How long a list of tools is used (CON-9).
    pub tools_ttl: Duration,
    /// How long it may be idle before it is stopped; absent for ever (CON-14).
    pub idle_timeout: Option<Duration>,
    /// How large a result may be before it is cut (CALL-5).
    pub max_result_bytes: u64,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            access: Access::ReadWrite,
            connect: StartPolicy::Lazy,
            protocol: Protocol::Auto,
            restart: Restart::default(),
            inherit_env: InheritEnv::default(),
            timeouts: Timeouts::default(),
            concurrency: None,
            share: Share::All,
            redact: false,
            // Servers announce changes; this only catches those that do not.
            tools_ttl: Duration::from_secs(300),
            idle_timeout: None,
            max_result_bytes: 5 * 1024 * 1024,
        }
    }
}

/// Whether and how a server is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Restart {
    /// It stays down.
    Never,
    /// It is started again, with growing pauses, up to a limit.
    OnFailure(Backoff),
}

impl Default for Restart {
    fn default() -> Self {
        Self::OnFailure(Backoff::default())
    }
}

impl Restart {
    /// The same within what an embedding host allows (CFG-13). Whoever asks for a restart without
    /// details gets the host's.
    #[must_use]
    pub fn within(self, most: Self) -> Self {
        match (self, most) {
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (restart, most) if restart == Self::default() => most,
            (Self::OnFailure(own), Self::OnFailure(most)) => Self::OnFailure(Backoff {
                limit: own.limit.min(most.limit),
                delay: own.delay.max(most.delay),
                max_delay: own.max_delay.max(most.max_delay),
            }),
        }
    }
}

/// Pauses between attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Backoff {
    /// How many attempts in a row.
    pub limit: u32,
    /// The pause before the first.
    pub delay: Duration,
    /// The longest pause.
    pub max_delay: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { limit: 5, delay: Duration::from_millis(500), max_delay: Duration::from_secs(30) }
    }
}

/// Bounds on every kind of wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timeouts {
    /// Reaching the server.
    pub connect: Duration,
    /// Agreeing on the protocol; package runners may download first.
    pub handshake: Duration,
    /// Listing tools, resources or prompts.
    pub list: Duration,
    /// One call, without the time in which a question of the server waits for an answer.
    pub call: Duration,
    /// One question that the server asks during a call: people answer some of them.
    pub question: Duration,
    /// Ending by itself when asked to (CON-6).
    pub shutdown: Duration,
    /// How long a list waits for servers that are still starting (CON-15).
    pub grace: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            handshake: Duration::from_secs(30),
            list: Duration::from_secs(30),
            call: Duration::from_secs(300),
            question: Duration::from_secs(600),
            shutdown: Duration::from_secs(5),
            grace: Duration::from_secs(2),
        }
    }
}

/// Where a server comes from.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// The layer that wrote it.
    pub origin: Origin,
    /// Where in it.
    pub location: Location,
    /// A higher layer that only switched it on or off.
    pub switched_by: Option<(Origin, Location)>,
}

/// Values the user can be asked for, by id, with what stands in for them.
pub(crate) type Inputs = BTreeMap<Box<str>, Option<Secret>>;

/// Types whose texts, names included, may be anything somebody wrote: they print nothing but what
/// they are. What may be shown of them is in `show.rs`.
macro_rules! silent {
    ($($name:ident),*) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

silent!(UnknownKey, Transport, Stdio, Remote, Agents);
