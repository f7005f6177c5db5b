//! Tests of the fixture server: its conformance, and its use by the library, clients and the
//! gateway.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod listening;
mod ending;
mod generations;
mod suite;
mod library;
mod clients;
mod gateway;
mod through;
mod program;
mod served;
