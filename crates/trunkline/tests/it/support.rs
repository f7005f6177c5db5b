//! Shared code of the tests.

pub(crate) mod file_driven_server;
pub(crate) mod secret_stores;
pub(crate) mod oauth_host;
pub(crate) mod recording_proxy;
