//! The sockets of the background service and of gateways: where they are, the first lines on them, and processes that
//! are kept for commands.

pub(crate) mod runtime_dir;
pub(crate) mod endpoint;
pub(crate) mod source_files;
pub(crate) mod hello;
pub(crate) mod dial;
pub(crate) mod process_frames;
pub(crate) mod kept_processes;
