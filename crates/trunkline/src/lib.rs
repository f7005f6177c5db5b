//! Trunkline: one line to every MCP server.
//!
//! This crate is the part every AI host needs and none should have to write again. It is built from
//! rooms, listed here in reading order: each uses only the rooms above it.
//!
//! What is here today: configuration, where text in any host's spelling becomes a checked
//! [`Config`], with every problem reported at once and every secret still a reference; connections
//! to servers; and the rules for what a caller sees of them ([`UnescapedText`]).
//!
//! ```
//! use trunkline::config;
//!
//! let parsed = config::parse(
//!     "mcp.json",
//!     r#"{ "mcpServers": { "time": { "command": "uvx", "args": ["mcp-server-time"] } } }"#,
//! );
//! assert!(parsed.diagnostics.is_empty());
//! assert!(parsed.config.server("time").is_some());
//! ```
//!
//! The crate reads no environment, no home directory and no terminal: what it needs of them is
//! passed in.
//!
//! [`Config`]: config::Config
//! [`UnescapedText`]: view::View

pub mod name;
pub mod principal;
pub mod error;
pub mod channel;

pub mod protocol;
pub mod message;

pub mod config;

mod sanitize;
pub mod item;

mod transport;

pub mod connection;
pub mod registry;

pub mod catalog;
pub mod policy;
pub mod view;
pub mod content;

pub mod call;
#[cfg(feature = "env")]
pub mod env;
pub mod host;

pub use call::{CallError, Outcome};
pub use config::{Config, Diagnostic};
pub use connection::CallHandler;
pub use error::Error;
pub use host::{Host, HostBuilder, HostCaller, Tool, ToolCall};
