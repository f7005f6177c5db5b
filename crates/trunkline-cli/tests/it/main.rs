//! Tests of the program as a user runs it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod run;
mod listening;
mod log;
mod host;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod gateway;
mod check;
mod inspecting;
mod last_words;
mod waiting;
mod config;
mod general;
mod schema;
mod demo;
mod servers;
mod seeing;
mod explaining;
mod calling;
mod naming;
mod reference;
mod faults;
mod secrets;
#[cfg(target_os = "linux")]
mod orphans;
#[cfg(target_os = "linux")]
mod escapes;
#[cfg(target_os = "linux")]
mod soak;
#[cfg(target_os = "linux")]
mod leftovers;
#[cfg(target_os = "linux")]
mod watching;
#[cfg(target_os = "linux")]
mod serving;
#[cfg(target_os = "linux")]
mod chain;
#[cfg(target_os = "linux")]
mod serving_streams;
#[cfg(target_os = "linux")]
mod serving_failures;
#[cfg(target_os = "linux")]
mod reloading;
#[cfg(target_os = "linux")]
mod tokens;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod memory_resuming;
#[cfg(target_os = "linux")]
mod trusting;
#[cfg(target_os = "linux")]
mod unanswering;
#[cfg(target_os = "linux")]
mod embedding_page;
