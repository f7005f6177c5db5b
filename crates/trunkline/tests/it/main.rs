//! Tests of the library through its public interface.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;
mod agent_files;
mod host_formats;
mod host_fixtures;
mod host_files;
mod diagnostics;
mod fail_closed;
mod misspelt_containers;
mod mistaken_rules;
mod config_layers;
mod secrets;
mod secret_leaks;
mod malformed_config;
mod config_schema;
mod messages;
mod connection_lifecycle;
#[cfg(target_os = "linux")]
mod process_starts;
mod hanging_resolver;
mod resource_subscriptions;
mod unbound_server_requests;
mod input_timeouts;
mod registry;
mod races;
mod http_servers;
mod oauth_login;
mod oauth_refresh;
mod oauth_refresh_failures;
mod oauth_misbehaviour;
mod oauth_scopes;
mod oauth_clients;
mod oauth_dpop;
mod oauth_device;
mod oauth_secrecy;
mod auth_providers;
mod headers_commands;
mod hosts;
mod example_hosts;
mod nested_hosts;
mod actor_panics;
