//! Handlers of the protocol's methods. They share the state of one `Gateway`, and each calls only
//! those above it.

pub(crate) mod observe;
pub(crate) mod request_log;
pub(crate) mod error_codes;
pub(crate) mod availability;
pub(crate) mod list_cache;
pub(crate) mod gateway;
pub(crate) mod list_pages;
pub(crate) mod list;
pub(crate) mod parking;
pub(crate) mod meta_tools;
pub(crate) mod discover;
pub(crate) mod route_fallback;
pub(crate) mod call_guard;
pub(crate) mod tasks;
pub(crate) mod relay;
pub(crate) mod item_tools;
pub(crate) mod custom;
pub(crate) mod subscribe;
pub(crate) mod listen;
pub(crate) mod notify;
pub(crate) mod dispatch;
