//! One incoming request and its response, in either era.

pub(crate) mod trace_context;
pub(crate) mod errors;
pub(crate) mod malformed;
pub(crate) mod record;
pub(crate) mod incoming;
pub(crate) mod mcp_headers;
pub(crate) mod response;
pub(crate) mod panics;
pub(crate) mod translate;
