//! A long-lived host: repeated starts and stops leak no descriptor, socket or process.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use trunkline_testkit::peers;

use crate::support::embedding_host::Host;
use crate::support::listening_server::{self, Listening};
use crate::support::processes::{LONGEST_END, Process, children, marked, marker};
use crate::support::program::Folder;

const ROUNDS: usize = 20;

/// Open descriptors by kind.
type Descriptors = BTreeMap<String, usize>;

/// Resources of a host and its servers.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    by_host: Descriptors,
    by_servers: [Descriptors; 2],
    children: usize,
    marked: Vec<String>,
}

/// The open descriptors of a process by kind: `socket`, `pipe`, `anon_inode`, or the path of a
/// file.
fn descriptors(process: u32) -> Descriptors {
    let mut kinds = Descriptors::new();
    for descriptor in fs::read_dir(format!("/proc/{process}/fd")).unwrap().flatten() {
        // The descriptor of the directory itself is closed by now.
        let Ok(target) = fs::read_link(descriptor.path()) else { continue };
        let target = target.to_string_lossy().into_owned();
        let kind = target.split_once(":[").map_or(target.as_str(), |(kind, _)| kind);
        *kinds.entry(kind.to_owned()).or_default() += 1;
    }
    kinds.remove(&format!("/proc/{process}/fd"));
    kinds
}

/// How a host ends its servers.
#[derive(Clone, Copy, Debug)]
enum End {
    /// They are used, and shut down.
    Orderly,
    /// They are shut down while they start.
    Early,
    /// They are used, and the host is dropped.
    Dropped,
    /// A call is cancelled, and they are shut down.
    InCall,
}

struct Places {
    folder: Folder,
    marker: String,
    modern: Listening,
    older: Listening,
}

impl Places {
    fn new() -> Self {
        let folder = Folder::new();
        let modern = listening_server::demo(&folder, "words");
        let older = listening_server::scripted("never", "well");
        Self { folder, marker: marker(), modern, older }
    }

    fn servers(&self) -> Value {
        let program = env!("CARGO_BIN_EXE_trunkline");
        let family = format!(
            "trap '' TERM; sleep {0} & sh -c 'sleep {0} & sleep {0}' & exec \"$PROGRAM\" demo-server words",
            self.marker
        );
        let hanging = [json!("-I"), json!(peers::scripted_server()), json!("hang")];
        let soon = json!({ "shutdown": "300ms" });
        json!({
            "plain": { "command": program, "args": ["demo-server", "words"] },
            "family": {
                "command": "/bin/sh", "args": ["-c", family], "env": { "PROGRAM": program },
                "timeouts": soon,
            },
            "hanging": { "command": peers::python(), "args": hanging, "timeouts": soon },
            "missing": { "command": "no-such-program-anywhere" },
            "modern": { "type": "http", "url": self.modern.url },
            "older": { "type": "http", "url": self.older.url },
        })
    }

    /// One lifetime of a host.
    async fn round(&self, end: End) {
        let host = Host::new(&self.folder, &self.servers());
        if let End::Early = end {
            tokio::select! {
                biased;
                _ = host.start() => panic!("all servers started at once"),
                () = tokio::task::yield_now() => {}
            }
            return host.end().await;
        }
        let failures = host.start().await;
        assert_eq!(failures.len(), 1, "{failures:?}");
        for server in ["plain", "family", "modern"] {
            let shouted = host.call(server, "shout", &json!({ "text": "hello" })).await;
            assert_eq!(shouted.unwrap(), "HELLO");
        }
        assert_eq!(host.call("older", "wait", &json!({})).await.unwrap(), "waited");
        if let End::InCall = end {
            let nothing = json!({});
            tokio::select! {
                biased;
                _ = host.call("hanging", "wait", &nothing) => panic!("it answered"),
                () = tokio::task::yield_now() => {}
            }
        }
        match end {
            End::Dropped => drop(host),
            _ => host.end().await,
        }
    }

    /// The open descriptors of the listening servers: the other ends of our sockets.
    fn held_by_servers(&self) -> [Descriptors; 2] {
        [&self.modern, &self.older].map(|server| descriptors(server.process_id()))
    }

    fn held(&self) -> Held {
        let id = std::process::id();
        Held {
            by_host: descriptors(id),
            by_servers: self.held_by_servers(),
            children: children(id).len(),
            marked: marked(&self.marker),
        }
    }

    /// Waits until the resources are as before. Dropped ones are freed with a delay.
    async fn wait_until_held(&self, before: &Held) {
        let deadline = Instant::now() + LONGEST_END;
        while self.held() != *before {
            let now = self.held();
            assert!(Instant::now() < deadline, "before: {before:#?}\nnow: {now:#?}");
            sleep(Duration::from_millis(50)).await;
        }
        let zombies = children(std::process::id()).into_iter().filter(Process::is_zombie);
        assert_eq!(zombies.collect::<Vec<_>>(), []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_holds_nothing_of_servers_that_it_has_ended() {
    let places = Places::new();
    let mut before = places.held();
    places.round(End::Orderly).await;
    // The first server starts a guard process, which lives as long as the host.
    before.children += 1;
    *before.by_host.entry("pipe".to_owned()).or_default() += 1;
    places.wait_until_held(&before).await;
    for round in 0..ROUNDS {
        let end = [End::Orderly, End::Early, End::Dropped, End::InCall][round % 4];
        places.round(end).await;
    }
    places.wait_until_held(&before).await;
}
