//! Configuration in three stages: raw (any host's format), validated, resolved.
//!
//! [`parse`] reads one text; [`load()`] finds and merges all layers; [`discover`] only finds the
//! file. All three report every problem as a [`Diagnostic`] and leave out only the entries that
//! cannot be used. The result is a [`Config`] in which secrets are still references; [`resolve()`]
//! replaces them when a server starts.
//!
//! ```
//! use trunkline::config::{self, ColorStyle};
//!
//! let loaded = config::parse("mcp.json", r#"{ "mcpServers": {
//!     "good": { "command": "uvx", "args": ["mcp-server-time"] },
//!     "bad":  { "comand": "uvx" }
//! } }"#);
//!
//! // One bad entry leaves the others usable, and is explained.
//! assert!(loaded.config.server("good").is_some());
//! assert_eq!(loaded.config.broken()[0].as_str(), "bad");
//! let report: String = loaded.diagnostics.iter().map(|found| found.render(ColorStyle::Plain)).collect();
//! assert!(report.contains("did you mean `command`?"));
//! ```

mod source;
mod format;
mod diagnostic;
mod jsonc;
mod yaml;
mod toml;
mod secret;
mod suggest;
mod redact;
mod template;
mod render;
mod limits;
mod decode;
mod units;
mod keywords;
mod audit_settings;
mod secret_settings;
mod inherit;
mod oauth;
mod origin;
mod identity;
mod agent;
mod transport;
mod model;
mod environment;
mod raw;
mod dialect;
mod foreign;
mod validate;
mod stateful;
mod merge;
mod discovery;
mod load;
mod chain;
mod agents;
mod toggles;
mod env_file;
mod resolved;
mod resolver;
mod resolve;
mod fingerprint;
mod display;
mod entry;
mod uses;
mod schema;
mod inspect;

pub(crate) use agent::deciding_pattern;
pub use agents::{AgentFile, LoadedAgents, load_agents, parse_agents};
pub use audit_settings::AuditSettings;
pub use chain::{
    CHAIN_HEADER, CHAIN_VARIABLE, Chain, ChainError, LoopError, MAX_NESTED_PROCESSES,
    MAX_REQUEST_HOPS, MISCONFIGURED_EXIT_STATUS,
};
pub(crate) use chain::{ChainLink, LocalProcess, have_same_chain, links};
pub use diagnostic::{Code, Diagnostic, RelatedLocation, Severity};
pub use discovery::{SearchFile, SearchPath, SearchScope, discover};
pub use env_file::env_file_names;
pub use environment::{Consent, ContentDigest, DiscoveredFile, Environment, FileRefusal};
pub use fingerprint::Fingerprint;
#[cfg(test)]
pub(crate) use identity::ConfigIdentity;
pub use identity::FileIdentity;
pub use inherit::{InheritEnv, inherited_variables, shown_variable};
pub(crate) use inherit::{Inheritance, inherited_secrets};
pub use inspect::{Inspector, inspect};
pub use keywords::SecretStoreChoice;
pub use load::{
    DiscoveredFiles, LoadOptions, LoadedConfig, Overrides, load, parse, parse_section,
    section_names,
};
pub use model::{
    Access, AccessOverride, Agent, AgentPattern, Agents, Backoff, Bundle, Config, ConsentHold,
    ConsentHoldReason, FileOrigin, FileReach, FoundBy, ItemToolSettings, ListLocations, Naming,
    Origin, Protocol, Provenance, Remote, RemoteTransport, Restart, RuleLocations, Server,
    ServerSettings, Share, StartPolicy, Stdio, Timeouts, ToolLists, ToolMode, ToolSurface,
    Transport, Trust, UnknownKey, UriStyle,
};
pub use oauth::{IdentityProvider, OAuthGrant, OAuthMode, OAuthSettings, ResolvedOAuth};
pub use redact::{escape_control, is_credential, is_hidden};
pub(crate) use redact::{is_harmless_variable, is_like_credential};
pub use render::ColorStyle;
pub(crate) use resolve::unknown_provider;
pub use resolve::{ResolvedRemote, ResolvedStdio, ResolvedTransport, resolve};
pub use resolver::{EmptyResolver, Resolver};
pub use schema::schema;
pub use secret::{MASK, Secret};
pub use secret_settings::SecretSettings;
pub use source::{Location, MAX_SOURCE_BYTES, Position, Source, Span};
pub(crate) use suggest::Suggestions;
pub use suggest::closest_match;
pub use template::{Reference, ReferenceSource, SecretPlace, Template, is_valid_secret_name};
pub use toggles::{ConversationToggles, ToggleEntry, parse_toggles};
pub(crate) use transport::TRANSPORT_HEADERS;
pub use uses::{Use, UsedFile};
pub(crate) use validate::is_command_line;
