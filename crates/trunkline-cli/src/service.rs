//! The background service: one process that runs the servers of all hosts of a user, and `connect`, which
//! joins a host to it.

pub(crate) mod runtime_dir;
pub(crate) mod hello;
pub(crate) mod lock;
pub(crate) mod dial;
pub(crate) mod start;
pub(crate) mod client_session;
pub(crate) mod line_queue;
pub(crate) mod relay;
pub(crate) mod tail;
pub(crate) mod projects;
pub(crate) mod page;
pub(crate) mod run;
pub(crate) mod unit_files;
