//! Shared code of the tests.

pub(crate) mod wait;
pub(crate) mod output_schema;
pub(crate) mod program;
pub(crate) mod canned_server;
#[cfg(target_os = "linux")]
pub(crate) mod pseudo_terminal;
pub(crate) mod listening_server;
pub(crate) mod embedding_host;
#[cfg(target_os = "linux")]
pub(crate) mod processes;
#[cfg(target_os = "linux")]
pub(crate) mod gateway;
#[cfg(target_os = "linux")]
pub(crate) mod secrets;
#[cfg(target_os = "linux")]
pub(crate) mod service;
