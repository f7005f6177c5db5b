//! Configuration: text in any host's spelling → as written → as meant → ready to run.
//!
//! [`parse`] reads one text; [`load()`] finds and merges all layers; [`discover`] only finds the
//! file. All three report every problem as a [`Diagnostic`] and leave out only the entries that
//! cannot be used. What comes of them is a [`Config`] in which secrets are still references;
//! [`resolve()`] fills them in when a server starts.
//!
//! ```
//! use trunkline::config::{self, Style};
//!
//! let loaded = config::parse("mcp.json", r#"{ "mcpServers": {
//!     "good": { "command": "uvx", "args": ["mcp-server-time"] },
//!     "bad":  { "comand": "uvx" }
//! } }"#);
//!
//! // One bad entry leaves the others usable, and is explained.
//! assert!(loaded.config.server("good").is_some());
//! assert_eq!(loaded.config.broken()[0].as_str(), "bad");
//! let report: String = loaded.diagnostics.iter().map(|found| found.render(Style::Plain)).collect();
//! assert!(report.contains("did you mean `command`?"));
//! ```

mod source;
mod diagnostic;
mod syntax;
mod yaml;
mod secret;
mod suggest;
mod redact;
mod template;
mod render;
mod limits;
mod decode;
mod quantity;
mod words;
mod inherit;
mod origin;
mod identity;
mod agent;
mod model;
mod surroundings;
mod written;
mod dialect;
mod format;
mod meaning;
mod merge;
mod discovery;
mod load;
mod chain;
mod agents;
mod conversation;
mod resolve;
mod fingerprint;
mod show;
mod uses;
mod schema;
mod inspect;

pub(crate) use agent::deciding_pattern;
pub use agents::{AgentFile, LoadedAgents, load_agents, parse_agents};
pub use chain::{
    CHAIN_HEADER, CHAIN_VARIABLE, Chain, ChainError, MAX_NESTED_PROCESSES,
    MISCONFIGURED_EXIT_STATUS,
};
pub(crate) use chain::{Link, LocalProcess, links};
pub use conversation::{Conversation, WrittenSwitch, parse_conversation};
pub use diagnostic::{Code, Diagnostic, Related, Severity};
pub use discovery::{Candidate, Places, Walk, discover};
pub use fingerprint::Fingerprint;
#[cfg(test)]
pub(crate) use identity::ConfigIdentity;
pub use identity::FileIdentity;
pub(crate) use inherit::inherited_secrets;
pub use inherit::{InheritEnv, inherited_variables, shown_variable};
pub use inspect::{Inspector, inspect, unserved_bundles};
pub use load::{DiscoveredFiles, LoadOptions, Loaded, Overrides, load, parse};
pub use model::{
    Access, AccessOverride, Addresses, Agent, AgentPattern, Agents, Backoff, Behaviour, Bundle,
    BundleMode, Config, Connect, FileOrigin, FileReach, Found, Hold, HoldReason, Kept, ListPlaces,
    Naming, Origin, Protocol, Provenance, Remote, RemoteProtocol, Restart, RulePlaces, Server,
    Share, Stdio, Timeouts, ToolLists, Transport, Trust,
};
pub(crate) use redact::{is_harmless_variable, is_like_credential};
pub use redact::{is_hidden, printable};
pub use render::Style;
pub use resolve::{
    NoReferences, ResolvedRemote, ResolvedStdio, ResolvedTransport, Resolver, env_file_names,
    resolve,
};
pub use schema::schema;
pub use secret::{MASK, Secret};
pub use source::{Location, MAX_SOURCE_BYTES, Position, Source, Span};
pub(crate) use suggest::Suggestions;
pub use suggest::nearest;
pub use surroundings::{Consent, ContentDigest, DiscoveredFile, FileRefusal, Surroundings};
pub use template::{Reference, Target, Template};
pub use uses::{Use, UsedFile};
