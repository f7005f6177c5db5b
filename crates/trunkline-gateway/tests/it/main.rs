//! Tests of the gateway as a client sees it, over both transports, also with third-party clients.

#![expect(clippy::unwrap_used, reason = "what tests share may fail like the tests themselves")]

mod wire;
mod answers;
mod tools;
mod strangers;
mod streams;
mod http;
mod clients;
mod hosting;
mod comparing;
mod differential;
mod channel;
mod asker;
mod manners;
mod resuming;
mod retrying;
mod identities;
mod own;
mod parting;
mod piped;
mod foreign_text;
mod pausing;
mod tasks;
mod listening;
mod telling;
mod crossing;
mod fairness;
mod visiting;
mod recalling;
mod canned;
mod limits;
mod changing;
#[cfg(target_os = "linux")]
mod load;
