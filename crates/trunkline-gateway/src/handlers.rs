//! Handlers of the protocol's methods, all on one shared `Gateway`.

pub(crate) mod errors;
pub(crate) mod availability;
pub(crate) mod discover;
pub(crate) mod list_cache;
pub(crate) mod gateway;
pub(crate) mod list_pages;
pub(crate) mod list;
pub(crate) mod route_fallback;
pub(crate) mod mrtr;
pub(crate) mod tasks;
pub(crate) mod relay;
pub(crate) mod listen;
pub(crate) mod notify;
