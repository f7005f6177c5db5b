//! State of a server as callers see it: status, retryability, the reason of a failure.

pub(super) mod status;
pub(super) mod retry;
pub(super) mod log_level;
mod stderr_reason;
pub(super) mod error_context;
