//! Tests of the gateway as a client sees it, over both transports, also with third-party clients.

#![expect(clippy::unwrap_used, reason = "what tests share may fail like the tests themselves")]

mod support;
mod demo_requests;
mod demo_tools;
mod unauthenticated;
mod demo_stdio;
mod demo_http;
mod third_party_clients;
mod differential;
mod hostile_clients;
mod sse_resume;
mod unavailable_servers;
mod authorization;
mod dedicated_servers;
mod cancellation;
mod hostile_stdio_clients;
mod foreign_text;
mod input_timeouts;
mod tasks;
mod ended_subscriptions;
mod item_tools;
mod meta_mode;
mod meta_changes;
mod unready_servers;
mod notifications;
mod client_isolation;
mod fairness;
mod url_elicitation;
mod withdrawn_requests;
mod scopes;
mod changed_tools;
mod observer;
#[cfg(target_os = "linux")]
mod load;
