//! Development only: shared support for tests and benchmarks of all crates.

pub mod samples;
pub mod generate;
pub mod invariants;
pub mod exchanges;
pub mod peers;
pub mod browser;
pub mod oauth_server;
pub mod clients;
pub mod conformance;
