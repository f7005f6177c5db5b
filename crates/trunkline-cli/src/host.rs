//! The host that a command runs on: its caller, the items that names resolve to, lists and calls.

pub(crate) mod caller;
pub(crate) mod state;
pub(crate) mod tokenizer;
pub(crate) mod signals;
mod enum_choices;
pub(crate) mod elicitation;
pub(crate) mod host_builder;
pub(crate) mod relay_thread;
pub(crate) mod command_host;
pub(crate) mod remembered_lists;
pub(crate) mod rejected_items;
pub(crate) mod resolve;
pub(crate) mod server_lists;
pub(crate) mod tool_name;
pub(crate) mod resource_links;
pub(crate) mod unmatched;
pub(crate) mod listing;
pub(crate) mod listing_text;
pub(crate) mod list_command;
pub(crate) mod tool_text;
pub(crate) mod server_status;
pub(crate) mod listed_tools;
pub(crate) mod run_call;
pub(crate) mod missing_arguments;
