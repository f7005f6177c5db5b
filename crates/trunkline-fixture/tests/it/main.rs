//! Tests of the server for tests: that it is what it says, and that our own library gets on with it.

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
