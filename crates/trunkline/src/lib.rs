//! Trunkline: one line to every MCP server.
//!
//! The host side of MCP as a library: configuration, connections to servers, one catalog of their
//! items, policy per caller, and calls. [`Host`] is the entry point. The modules below are listed
//! in reading order: each uses only the modules above it.
//!
//! [`config`] turns the configuration files of any MCP client into a validated [`Config`]: all
//! problems are reported at once, and every secret is still a reference. A [`View`] is the part of
//! the catalog that one caller may see.
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
//! The crate reads no environment variables, no home directory and no terminal; callers pass in the
//! values it needs.
//!
//! [`View`]: view::View

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
