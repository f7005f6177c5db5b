//! Shared code of the tests.

pub(crate) mod file_driven_server;
