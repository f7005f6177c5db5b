//! Standard output and standard error, problem reports, and exit codes.

pub(crate) mod stdio;
mod hidden_input;
mod pager;
mod inline_image;
pub(crate) mod text_layout;
pub(crate) mod terminal;
pub(crate) mod log;
pub(crate) mod report;
pub(crate) mod exit;
