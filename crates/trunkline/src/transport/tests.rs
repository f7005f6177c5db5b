//! Tests of transports against third-party servers, and the scripted server they share.

pub(super) mod scripted_server;
mod tls_and_proxies;
mod reference_server;
