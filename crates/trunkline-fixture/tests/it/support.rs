//! Shared code of the tests.

pub(crate) mod http_fixture;
pub(crate) mod gateway;
pub(crate) mod program;
