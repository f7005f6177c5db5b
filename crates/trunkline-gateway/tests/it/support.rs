//! Shared code of the tests.

pub(crate) mod demo_server;
pub(crate) mod gateway;
pub(crate) mod comparison;
pub(crate) mod http_connection;
pub(crate) mod client;
pub(crate) mod file_driven_server;
