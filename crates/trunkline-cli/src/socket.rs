//! The socket of the background service: where it is, the first lines on it, and processes that it keeps for commands.

pub(crate) mod runtime_dir;
pub(crate) mod hello;
pub(crate) mod dial;
pub(crate) mod process_frames;
pub(crate) mod service_processes;
