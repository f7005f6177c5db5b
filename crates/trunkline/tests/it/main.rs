//! Tests of the library through its public interface.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agents;
mod dialects;
mod mistakes;
mod closed;
mod containers;
mod mistaken_rules;
mod layers;
mod secrets;
mod leaks;
mod robustness;
mod schema;
mod messages;
mod lively;
mod connections;
mod unanswering;
mod announcing;
mod asides;
mod pausing;
mod registries;
mod races;
mod remote;
mod hosts;
mod embeddings;
mod nesting;
mod panics;
