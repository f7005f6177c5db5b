//! One client: the channel back to it, its session, and its calls that wait for input.

pub(crate) mod log_filter;
pub(crate) mod cancellation;
pub(crate) mod channel;
pub(crate) mod in_flight;
pub(crate) mod url_elicitations;
pub(crate) mod input_queue;
pub(crate) mod parked;
pub(crate) mod state_codec;
pub(crate) mod arguments_digest;
pub(crate) mod tool_revisions;
pub(crate) mod shown_tools;
pub(crate) mod session;
pub(crate) mod caller;
pub(crate) mod call_handler;
