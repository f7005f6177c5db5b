//! Tests of the program as a user runs it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;
mod check_command;
mod check_environment;
mod startup_stderr;
mod command_timeouts;
mod completion;
mod config_command;
#[cfg(target_os = "linux")]
mod control;
#[cfg(target_os = "linux")]
mod conversations;
mod all_commands;
mod schema_command;
#[cfg(target_os = "linux")]
mod json_output;
mod demo_command;
mod third_party_servers;
mod tool_command;
mod tools_command;
mod search_command;
mod skill_command;
mod server_lists;
#[cfg(target_os = "linux")]
mod cached_items;
mod explain_command;
mod call_command;
mod binary_content;
mod prompt_command;
mod exposed_names;
mod reference_servers;
#[cfg(target_os = "linux")]
mod meta_tasks;
mod misbehaving_servers;
#[cfg(target_os = "linux")]
mod import_command;
#[cfg(target_os = "linux")]
mod import_fields;
#[cfg(target_os = "linux")]
mod add_command;
#[cfg(target_os = "linux")]
mod log;
mod secrets;
#[cfg(target_os = "linux")]
mod secret_command;
#[cfg(target_os = "linux")]
mod stored_secrets;
#[cfg(target_os = "linux")]
mod login_command;
#[cfg(target_os = "linux")]
mod on_a_terminal;
#[cfg(target_os = "linux")]
mod orphan_processes;
#[cfg(target_os = "linux")]
mod page;
#[cfg(target_os = "linux")]
mod escaped_processes;
#[cfg(target_os = "linux")]
mod soak;
#[cfg(target_os = "linux")]
mod resource_leaks;
#[cfg(target_os = "linux")]
mod status_watch;
#[cfg(target_os = "linux")]
mod serve_http;
#[cfg(target_os = "linux")]
mod gateway_rings;
#[cfg(target_os = "linux")]
mod serve_stdio;
#[cfg(target_os = "linux")]
mod service;
#[cfg(target_os = "linux")]
mod service_commands;
#[cfg(target_os = "linux")]
mod through_service;
#[cfg(target_os = "linux")]
mod through_gateway;
#[cfg(target_os = "linux")]
mod serve_failures;
#[cfg(target_os = "linux")]
mod reload;
#[cfg(target_os = "linux")]
mod tokens;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod memory_sse_replay;
#[cfg(target_os = "linux")]
mod trust;
mod types_command;
#[cfg(target_os = "linux")]
mod hanging_files;
#[cfg(target_os = "linux")]
mod embedding_page;
