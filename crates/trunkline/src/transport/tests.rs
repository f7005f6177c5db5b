//! Tests of transports against servers of others, and the scripted server they share.

pub(super) mod scripted_server;
mod tls_and_proxies;
mod reference_server;
