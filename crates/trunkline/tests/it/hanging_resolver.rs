//! A resolver that never returns blocks only the start of its own server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;
use trunkline::config::{self, Resolver, Secret};
use trunkline::connection::{ChildOptions, ConnectionOptions, HttpOptions};
use trunkline::error::ErrorKind;
use trunkline::registry::{Registry, ServerSet};

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Files on an unresponsive file system. Signals every read.
struct HungMount(Arc<Notify>);

impl Resolver for HungMount {
    fn variable(&self, _: &str) -> Option<Secret> {
        None
    }

    fn file(&self, _: &Path) -> io::Result<Secret> {
        self.0.notify_one();
        loop {
            thread::park();
        }
    }
}

fn servers(connect: &str) -> ServerSet {
    servers_on(HungMount(Arc::default()), connect)
}

fn servers_on(mount: HungMount, connect: &str) -> ServerSet {
    let stuck =
        json!({ "command": "x", "env": { "K": "${file:x}" }, "timeouts": { "connect": connect } });
    let other = json!({ "command": "no-such-program" });
    let text = json!({ "mcpServers": { "stuck": stuck, "other": other } }).to_string();
    let child = ChildOptions::from_environment(std::env::vars_os());
    let options = ConnectionOptions::new(Arc::new(mount), child, HttpOptions::default());
    Registry::new(options).open(&config::parse("test", text).config)
}

/// Seen before: reading the file blocked the runtime thread, and with it all servers.
#[tokio::test(flavor = "current_thread")]
async fn a_file_that_does_not_answer_fails_only_its_server() {
    let servers = servers("1s");
    let stuck = servers.get("stuck").unwrap();
    stuck.start();
    let other = timeout(PATIENCE, servers.get("other").unwrap().connect()).await.unwrap();
    assert_eq!(other.unwrap_err().kind(), ErrorKind::CommandNotFound);
    let error = timeout(PATIENCE, stuck.connect()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnreadableSecret);
    assert!(error.hint().unwrap().contains("file system that does not answer"));
    timeout(PATIENCE, servers.close()).await.unwrap();
}

#[tokio::test(flavor = "current_thread")]
async fn an_end_does_not_wait_for_a_file_that_does_not_answer() {
    let reads = Arc::<Notify>::default();
    let servers = servers_on(HungMount(Arc::clone(&reads)), "1h");
    servers.get("stuck").unwrap().start();
    timeout(PATIENCE, reads.notified()).await.expect("the file is read");
    timeout(PATIENCE, servers.close()).await.unwrap();
}
