//! Templates of the control page: plain functions from the types of the control API to HTML.

mod text;
mod address;
mod format;
mod part;
mod schema;
mod arguments;
mod assets;
mod layout;
mod notice;
mod servers;
mod tools;
mod result;
mod tool;
mod calls;
mod conversations;
mod trust;

pub(crate) use arguments::{call_preview, form_arguments};
pub(crate) use assets::asset;
pub(crate) use calls::{CallPage, CallQuery, call_list, calls};
pub(crate) use conversations::{
    ConversationPage, SwitchKind, conversation, conversation_address, conversation_list,
    conversations, parse_switch,
};
pub(crate) use layout::{Nonce, PageFrame, Section, content_security_policy, layout, trust_count};
pub(crate) use notice::{error, error_notice, login_required};
pub(crate) use result::call_result;
pub(crate) use servers::servers;
pub(crate) use tool::tool;
pub(crate) use tools::{PAGE_ROWS, ToolPage, ToolQuery, Visibility, tool_list, tools};
pub(crate) use trust::{trust, trust_changes};
