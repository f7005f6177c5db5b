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
pub use agents::AgentFile;
pub use agents::LoadedAgents;
pub use agents::load_agents;
pub use agents::parse_agents;
pub use chain::CHAIN_HEADER;
pub use chain::CHAIN_VARIABLE;
pub use chain::Chain;
pub use chain::ChainError;
pub(crate) use chain::Link;
pub(crate) use chain::LocalProcess;
pub use chain::MAX_NESTED_PROCESSES;
pub use chain::MISCONFIGURED_EXIT_STATUS;
pub(crate) use chain::links;
pub use conversation::Conversation;
pub use conversation::WrittenSwitch;
pub use conversation::parse_conversation;
pub use diagnostic::Code;
pub use diagnostic::Diagnostic;
pub use diagnostic::Related;
pub use diagnostic::Severity;
pub use discovery::Candidate;
pub use discovery::Places;
pub use discovery::Walk;
pub use discovery::discover;
pub use fingerprint::Fingerprint;
#[cfg(test)]
pub(crate) use identity::ConfigIdentity;
pub use identity::FileIdentity;
pub use inherit::InheritEnv;
pub(crate) use inherit::inherited_secrets;
pub use inherit::inherited_variables;
pub use inherit::shown_variable;
pub use inspect::Inspector;
pub use inspect::inspect;
pub use inspect::unserved_bundles;
pub use load::DiscoveredFiles;
pub use load::LoadOptions;
pub use load::Loaded;
pub use load::Overrides;
pub use load::load;
pub use load::parse;
pub use model::Access;
pub use model::AccessOverride;
pub use model::Addresses;
pub use model::Agent;
pub use model::AgentPattern;
pub use model::Agents;
pub use model::Backoff;
pub use model::Behaviour;
pub use model::Bundle;
pub use model::BundleMode;
pub use model::Config;
pub use model::Connect;
pub use model::FileOrigin;
pub use model::FileReach;
pub use model::Found;
pub use model::Hold;
pub use model::HoldReason;
pub use model::Kept;
pub use model::ListPlaces;
pub use model::Naming;
pub use model::Origin;
pub use model::Protocol;
pub use model::Provenance;
pub use model::Remote;
pub use model::RemoteProtocol;
pub use model::Restart;
pub use model::RulePlaces;
pub use model::Server;
pub use model::Share;
pub use model::Stdio;
pub use model::Timeouts;
pub use model::ToolLists;
pub use model::Transport;
pub use model::Trust;
pub(crate) use redact::is_harmless_variable;
pub use redact::is_hidden;
pub(crate) use redact::is_like_credential;
pub use redact::printable;
pub use render::Style;
pub use resolve::NoReferences;
pub use resolve::ResolvedRemote;
pub use resolve::ResolvedStdio;
pub use resolve::ResolvedTransport;
pub use resolve::Resolver;
pub use resolve::env_file_names;
pub use resolve::resolve;
pub use schema::schema;
pub use secret::MASK;
pub use secret::Secret;
pub use source::Location;
pub use source::MAX_SOURCE_BYTES;
pub use source::Position;
pub use source::Source;
pub use source::Span;
pub(crate) use suggest::Suggestions;
pub use suggest::nearest;
pub use surroundings::Consent;
pub use surroundings::ContentDigest;
pub use surroundings::DiscoveredFile;
pub use surroundings::FileRefusal;
pub use surroundings::Surroundings;
pub use template::Reference;
pub use template::Target;
pub use template::Template;
pub use uses::Use;
pub use uses::UsedFile;
