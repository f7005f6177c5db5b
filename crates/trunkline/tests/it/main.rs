//! Tests of the library through its public interface.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;
mod agent_files;
mod host_formats;
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
mod hanging_resolver;
mod resource_subscriptions;
mod unbound_server_requests;
mod input_timeouts;
mod registry;
mod races;
mod http_servers;
mod hosts;
mod example_hosts;
mod nested_hosts;
mod actor_panics;
