//! Shared code of the tests.

pub(crate) mod wait;
pub(crate) mod demo_server;
pub(crate) mod gateway;
pub(crate) mod comparison;
pub(crate) mod http_connection;
pub(crate) mod client;
pub(crate) mod file_driven_server;
pub(crate) mod tokens;
pub(crate) mod echoing_server;
pub(crate) mod server_requests;
pub(crate) mod http_server;
pub(crate) mod stdio_client;
pub(crate) mod recording_server;
pub(crate) mod subscription;
pub(crate) mod client_notifications;
