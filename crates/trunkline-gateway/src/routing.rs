//! Which client a message of a server is for that names no request.

pub(crate) mod active_calls;
pub(crate) mod dedicated;
