//! Routes server messages without a request ID to clients.

pub(crate) mod active_calls;
pub(crate) mod dedicated;
