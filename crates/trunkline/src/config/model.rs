//! The validated configuration: complete, with secrets still as references.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use super::agent::{Agent, AgentPattern, Agents, ItemToolSettings};
use super::audit_settings::AuditSettings;
use super::identity::ConfigIdentity;
use super::inherit::InheritEnv;
pub use super::keywords::{Access, Protocol, Share, StartPolicy, ToolMode, Trust, UriStyle};
use super::oauth::{OAuthMode, OAuthSettings};
pub use super::origin::{ConsentHold, ConsentHoldReason, FileOrigin, FileReach, FoundBy, Origin};
use super::secret::Secret;
use super::secret_settings::SecretSettings;
use super::source::Location;
use super::template::Template;
pub use super::transport::{Remote, RemoteTransport, Stdio, Transport};
use crate::name::{BundleName, ServerName};

/// The configuration of a host, merged from all layers.
#[derive(Clone, Default)]
pub struct Config {
    pub(crate) servers: BTreeMap<ServerName, Server>,
    pub(crate) broken: Vec<ServerName>,
    pub(crate) unreadable_settings: Vec<Box<str>>,
    pub(crate) bundles: BTreeMap<BundleName, Bundle>,
    pub(crate) disabled_bundles: Vec<BundleName>,
    pub(crate) agents: Agents,
    pub(crate) naming: Naming,
    pub(crate) surface: ToolSurface,
    pub(crate) defaults: ServerSettings,
    /// The location of `maxResultBytes` for all servers, if a layer sets it.
    pub(crate) max_result_place: Option<Location>,
    pub(crate) secrets: SecretSettings,
    pub(crate) audit: AuditSettings,
    pub(crate) unknown: Vec<UnknownKey>,
    pub(crate) identity: ConfigIdentity,
}

impl Config {
    /// Sets the identity of the configuration and of its servers.
    pub(crate) fn identify(&mut self, identity: ConfigIdentity) {
        self.servers.values_mut().for_each(|server| server.identity = identity.clone());
        self.identity = identity;
    }

    /// Returns whether both were loaded from the same file or the same text, at least in part.
    pub fn shares_layer_with(&self, other: &Self) -> bool {
        self.identity.shares_layer_with(&other.identity)
    }

    /// All usable servers, also disabled ones, ordered by name.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = &Server> {
        self.servers.values()
    }

    /// Returns a server by name.
    pub fn server(&self, name: &str) -> Option<&Server> {
        self.servers.get(name)
    }

    /// Servers that cannot be used because their entries have errors.
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

    /// Bundles that cannot be used because their entries have errors (BUN-2).
    pub fn disabled_bundles(&self) -> &[BundleName] {
        &self.disabled_bundles
    }

    /// The agents, and the files that define more.
    pub fn agents(&self) -> &Agents {
        &self.agents
    }

    /// Settings for exposed names.
    pub fn naming(&self) -> &Naming {
        &self.naming
    }

    /// The form in which models receive tools.
    pub fn tool_surface(&self) -> ToolSurface {
        self.surface
    }

    /// Default settings of servers.
    pub fn defaults(&self) -> &ServerSettings {
        &self.defaults
    }

    /// Unknown top-level keys, preserved as written.
    pub fn unknown(&self) -> &[UnknownKey] {
        &self.unknown
    }

    /// Applies the limits of an embedding host, which no file can raise (CFG-13).
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

    /// Sets the working directory of programs whose entry has none. By default they run in that of the host.
    #[must_use]
    pub fn with_directories(mut self, directory: impl Fn(&Server) -> Box<Path>) -> Self {
        for server in self.servers.values_mut() {
            let path = directory(server);
            if let Transport::Stdio(stdio) = &mut server.transport
                && stdio.cwd.is_none()
            {
                stdio.cwd = Some(Template::literal(&path.to_string_lossy()));
            }
        }
        self
    }

    /// Starts servers only when they are used, regardless of configuration.
    pub(crate) fn start_lazily(&mut self) {
        for server in self.servers.values_mut() {
            server.behaviour.connect = StartPolicy::Lazy;
        }
    }

    /// Sets the mode of scopes that have none of their own, regardless of configuration.
    pub(crate) fn override_mode(&mut self, mode: ToolMode) {
        self.surface.mode = mode;
    }

    /// Sets the access rule of every server, regardless of configuration.
    pub(crate) fn override_access(&mut self, access: Access) {
        self.defaults.access = access;
        for server in self.servers.values_mut() {
            server.set_access(access, AccessOverride::Run);
        }
    }
}

/// An unknown member of an object, preserved as written.
#[derive(Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// Its key.
    pub key: Box<str>,
    /// Its value: JSON text, which may contain a secret.
    pub json: Secret,
}

/// One server: its transport, rules and origin.
#[derive(Clone)]
pub struct Server {
    /// Its key in the file.
    pub name: ServerName,
    /// Whether it is used.
    pub enabled: bool,
    /// Its transport.
    pub transport: Transport,
    /// Whether its output is trusted.
    pub trust: Trust,
    /// ID of the credential provider that the embedding host supplies.
    pub auth_provider: Option<Box<str>>,
    /// Prefix of its tools' names instead of its name; empty for none.
    pub prefix: Option<Box<str>>,
    /// Its allow-list and deny-list of tools.
    pub tools: ToolLists,
    /// Limits and rules.
    pub behaviour: ServerSettings,
    /// Locations of its rules, where configured.
    pub places: RuleLocations,
    /// Its origin.
    pub provenance: Provenance,
    /// The reason why it may not be started although the file enables it; `enabled` is false then.
    pub hold: Option<Arc<ConsentHold>>,
    /// Unknown keys.
    pub unknown: Vec<UnknownKey>,
    pub(crate) inputs: Arc<Inputs>,
    /// Identity of its configuration.
    pub(crate) identity: ConfigIdentity,
}

impl Server {
    /// Its settings of OAuth; `None` if it is a program, or OAuth is switched off for it.
    pub fn oauth_settings(&self) -> Option<&OAuthSettings> {
        match &self.transport {
            Transport::Remote(Remote { oauth: OAuthMode::Enabled(settings), .. }) => Some(settings),
            _ => None,
        }
    }

    fn set_access(&mut self, access: Access, by: AccessOverride) {
        self.behaviour.access = access;
        self.places.access = None;
        self.places.access_override = Some(by);
    }
}

/// Locations of the rules of a server, where configured.
#[derive(Clone, Debug, Default)]
pub struct RuleLocations {
    /// The key that enables or disables it.
    pub enabled: Option<Location>,
    /// Its level of trust.
    pub trust: Option<Location>,
    /// Its access rule, or the one for all servers.
    pub access: Option<Location>,
    /// The override of its access rule, if one applies.
    pub access_override: Option<AccessOverride>,
    /// Its lists of tools.
    pub tools: ListLocations,
}

/// Source of an access rule that overrides the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessOverride {
    /// The caller, for this run: [`LoadOptions::access`](super::LoadOptions::access).
    Run,
    /// The limit of the embedding host.
    Host,
}

/// Locations of tool lists, where configured.
#[derive(Clone, Debug, Default)]
pub struct ListLocations {
    /// The allow-list.
    pub allow: Option<Location>,
    /// The deny-list.
    pub deny: Option<Location>,
}

/// Allow-list and deny-list of one server's tools, by upstream name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolLists {
    /// The only visible tools; `None` for all.
    pub allow: Option<Vec<Box<str>>>,
    /// Hidden tools; takes precedence over `allow`.
    pub deny: Vec<Box<str>>,
}

/// A named selection of tools of one server.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The server.
    pub server: ServerName,
    /// The form in which a model receives the tools.
    pub mode: ToolMode,
    /// Whether resources and prompts are offered as tools.
    pub item_tools: ItemToolSettings,
    /// The selected tools.
    pub tools: ToolLists,
    /// Locations of its lists.
    pub places: ListLocations,
    /// Location of its definition.
    pub location: Location,
}

/// The form in which models receive the tools of a scope (BUN-3, TOOL-14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolSurface {
    /// The mode; bundles have their own, and agents can.
    pub mode: ToolMode,
    /// Tokens of the definitions that `auto` lists directly.
    pub token_budget: u32,
    /// Whether there are tools to list and read resources, where the scope does not decide.
    pub resources_as_tools: bool,
    /// Whether there are tools to list and get prompts, where the scope does not decide.
    pub prompts_as_tools: bool,
}

impl Default for ToolSurface {
    fn default() -> Self {
        Self {
            mode: ToolMode::Direct,
            token_budget: 10_000,
            resources_as_tools: false,
            prompts_as_tools: false,
        }
    }
}

/// Rules for exposed names (TOOL-1, TOOL-2, TOOL-3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    /// Separator between server and tool.
    pub separator: Box<str>,
    /// Maximum length of a name.
    pub max_length: u32,
    /// Whether descriptions start with `[server]`.
    pub describe_server: bool,
    /// When resource URIs are qualified with their server.
    pub addresses: UriStyle,
}

impl Naming {
    /// Longest name that every model provider accepts.
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

/// Limits and rules of a server, with all defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// Tools that may be seen, by their annotations (TOOL-5).
    pub access: Access,
    /// When it is connected (CON-3).
    pub connect: StartPolicy,
    /// The protocol era used with it (CON-2).
    pub protocol: Protocol,
    /// Whether it is restarted (CON-5).
    pub restart: Restart,
    /// Host variables that it inherits in addition to the default ones (CON-7).
    pub inherit_env: InheritEnv,
    /// Timeouts for every kind of wait (CON-8).
    pub timeouts: Timeouts,
    /// Maximum number of concurrent calls; `None` for no limit (CALL-7).
    pub concurrency: Option<u32>,
    /// Whether all clients of a gateway share the server, or each has a dedicated one.
    pub share: Share,
    /// Whether the configuration sets `share`.
    pub is_share_set: bool,
    /// Whether secrets of the configuration are also masked in its results (SEC-2).
    pub redact: bool,
    /// Lifetime of a cached list of tools (CON-9).
    pub tools_ttl: Duration,
    /// Idle time after which it is stopped; `None` for never (CON-14).
    pub idle_timeout: Option<Duration>,
    /// Maximum size of a result before truncation (CALL-5).
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
            is_share_set: false,
            redact: false,
            // A fallback for servers that do not announce changes.
            tools_ttl: Duration::from_secs(300),
            idle_timeout: None,
            max_result_bytes: 5 * 1024 * 1024,
        }
    }
}

/// Restart policy of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Restart {
    /// It stays down.
    Never,
    /// It is restarted with exponential backoff, up to a limit.
    OnFailure(Backoff),
}

impl Default for Restart {
    fn default() -> Self {
        Self::OnFailure(Backoff::default())
    }
}

impl Restart {
    /// Applies the limit of an embedding host (CFG-13). A restart policy without details becomes
    /// that of the host.
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

/// Delays between restart attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Backoff {
    /// Maximum number of consecutive attempts.
    pub limit: u32,
    /// The delay before the first attempt.
    pub delay: Duration,
    /// The longest delay.
    pub max_delay: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { limit: 5, delay: Duration::from_millis(500), max_delay: Duration::from_secs(30) }
    }
}

/// Timeouts for every kind of wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timeouts {
    /// Connecting to the server.
    pub connect: Duration,
    /// The handshake; package runners may download first.
    pub handshake: Duration,
    /// Listing tools, resources or prompts.
    pub list: Duration,
    /// One call, excluding the time in which a server request waits for its response.
    pub call: Duration,
    /// One server request during a call; a person may have to respond to it.
    pub question: Duration,
    /// Graceful shutdown of the server (CON-6).
    pub shutdown: Duration,
    /// Maximum time that a list waits for servers that are still starting (CON-15).
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

/// Origin of a server.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// The layer that defines it.
    pub origin: Origin,
    /// The location in that layer.
    pub location: Location,
    /// A higher layer that only enables or disables it.
    pub switched_by: Option<(Origin, Location)>,
}

/// Values that the user can be prompted for, by ID, with their defaults.
pub(crate) type Inputs = BTreeMap<Box<str>, Option<Secret>>;

/// Implements `Debug` for types whose strings, names included, may contain secrets: it prints the
/// type name only. `display.rs` has the forms for display.
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
