//! Trunkline as a server: what it serves itself, over streams and over HTTP.
//!
//! What is here today is the demonstration: two small MCP servers, complete enough for any client.
//!
//! The crate reads no environment and touches no terminal: streams and listeners are passed in.

pub mod demo;
