//! The transports to clients: stdio and Streamable HTTP.

pub(crate) mod ndjson;
pub(crate) mod limiter;
pub(crate) mod stdio;
pub(crate) mod http;
