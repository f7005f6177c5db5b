//! The background service: one process that runs the servers of all hosts of a user, and `connect`, which
//! joins a host to it.

pub(crate) mod lock;
pub(crate) mod start;
pub(crate) mod client_session;
pub(crate) mod line_queue;
pub(crate) mod relay;
pub(crate) mod tail;
mod program_directories;
pub(crate) mod projects;
mod process_session;
mod process_relay;
mod process_pool;
mod socket_client;
pub(crate) mod gateway_socket;
pub(crate) mod page;
pub(crate) mod run;
pub(crate) mod unit_files;
