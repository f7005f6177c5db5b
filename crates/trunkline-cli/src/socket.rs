//! The socket of the background service: where it is, the first lines on it, and streams to servers behind it.

pub(crate) mod runtime_dir;
pub(crate) mod hello;
pub(crate) mod dial;
pub(crate) mod server_streams;
