//! The two transports to clients: stdio and HTTP.

pub(crate) mod ndjson;
pub(crate) mod limiter;
pub(crate) mod stdio;
pub(crate) mod http;
