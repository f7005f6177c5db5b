//! A resolver that never returns blocks only the start of its own server.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use serde_json::json;
use tokio::runtime;
use tokio::sync::Notify;
use tokio::time::timeout;
use trunkline::Host;
use trunkline::config::{self, Environment, Resolver, Secret};
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

/// Configuration files on an unresponsive file system.
#[derive(Default)]
struct HungConfig {
    is_read: Notify,
}

impl Environment for HungConfig {
    fn variable(&self, _: &str) -> Option<OsString> {
        None
    }

    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        self.is_read.notify_one();
        loop {
            thread::park();
        }
    }
}

/// Seen before: the file was read on the blocking pool, and dropping the runtime waits for that.
#[test]
fn a_runtime_ends_while_a_configuration_file_does_not_answer() {
    let (done, ended) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let files = Arc::new(HungConfig::default());
            let start = Host::builder().environment(files.clone()).config_file("mcp.json").start();
            tokio::select! {
                _ = start => unreachable!("the file does not answer"),
                () = files.is_read.notified() => {}
            }
        });
        drop(runtime);
        done.send(()).unwrap();
    });
    ended.recv_timeout(PATIENCE).expect("the runtime has ended");
}
