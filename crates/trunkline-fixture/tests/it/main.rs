//! Tests of the fixture server: its conformance, and its use by the library, clients and the
//! gateway.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;
mod shutdown;
mod eras;
mod conformance;
mod library;
mod sdk_clients;
mod conformance_via_gateway;
mod sdk_clients_via_gateway;
#[cfg(unix)]
mod sdk_clients_via_service;
