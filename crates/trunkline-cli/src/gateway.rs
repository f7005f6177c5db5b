//! Parts of the commands that serve a gateway: tokens, reload, health, and entries for clients.

pub(crate) mod tokens;
pub(crate) mod reload;
pub(crate) mod health;
pub(crate) mod client_config;
