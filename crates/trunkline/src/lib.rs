//! Trunkline: one line to every MCP server.
//!
//! The host side of MCP as a library: configuration, connections to servers, one catalog of their
//! items, policy per caller, and calls. This is a whole host, with the feature `env`:
//!
#![cfg_attr(feature = "env", doc = "```no_run")]
#![cfg_attr(not(feature = "env"), doc = "```ignore")]
//! use serde_json::json;
//! use trunkline::Host;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let host = Host::builder().config_file("mcp.json").inherit_env().start().await?;
//! for tool in host.tools().await {
//!     println!("{} {}", tool.name(), tool.description());
//! }
//! let outcome = host.call_tool("docs_search", json!({ "query": "mcp" })).await?;
//! println!("{}", outcome.text());
//! host.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! - [`Host`] is the entry point, built by a [`HostBuilder`].
//! - [`HostCaller`] is an agent or another limited caller of a host; a [`Tool`] is resolved once and
//!   called as a value, and gives an [`Outcome`] or a [`CallError`].
//! - [`config`] turns the configuration files of any MCP client into a validated [`Config`]: all
//!   problems are reported at once, and every secret is still a reference.
//! - [`CallHandler`] receives the progress, log messages and server requests of a call.
//!
//! The modules below are listed in reading order: each uses only the modules above it. Without the
//! feature `env`, the crate reads no environment variables and no files; callers pass in the values
//! it needs.

pub mod name;
pub mod principal;
pub mod error;
pub mod channel;
pub mod timer;
mod wake_filter;
mod hexadecimal;

pub mod protocol;
pub mod message;

pub mod config;
pub mod secrets;
pub mod auth;

mod sanitize;
pub mod item;

mod transport;

mod headers_command;
pub mod oauth;

pub mod connection;
pub mod registry;

pub mod catalog;
pub mod policy;
pub mod view;
pub mod content;
pub mod meta;

pub mod call;
#[cfg(feature = "env")]
pub mod env;
pub mod host;

pub use call::{CallError, Outcome};
pub use config::{Config, Diagnostic};
pub use connection::CallHandler;
pub use error::Error;
pub use host::{Host, HostBuilder, HostCaller, Tool, ToolCall};

/// The examples of the page, which have to compile.
#[cfg(all(doctest, feature = "env"))]
#[doc = include_str!("../../../docs/embedding.md")]
mod embedding_page {}
