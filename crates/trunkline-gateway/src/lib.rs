//! Trunkline served: all MCP servers of a host as one, for clients of either generation of the
//! protocol, over HTTP and over streams.
//!
//! The crate reads no environment and touches no terminal: hosts, streams and listeners are passed
//! in. The demonstration beside it is two small MCP servers, complete enough for any client.

mod lines;
pub mod demo;

mod protocol;
mod seal;
mod scope;
mod tokens;
mod options;

mod level;
mod servers;
mod offer;
mod translate;
mod talk;
mod parked;
mod changes;
mod session;
mod recent;
mod caller;
mod tasks;
mod gateway;
mod lists;
mod calls;

mod streams;
mod http;

pub use http::{listen, router};
pub use offer::client_capabilities;
pub use options::{Limits, Options};
pub use scope::Scope;
pub use streams::serve;
pub use tokens::{Token, Tokens, digest_of, new_token};
