//! Two hundred hosts, each ended at a random moment in a random way, leave no process behind
//! (CON-10).

use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};
use trunkline_testkit::peers;

use crate::support::processes::{
    LONGEST_START, Process, children, marked, marker, send, wait_until, wait_until_gone,
};
use crate::support::program::Folder;

const ROUNDS: usize = 200;

/// Hosts that run at the same time.
const AT_ONCE: usize = 4;

/// In one of so many rounds, a server runs on Node.js, which takes long to start.
const NODE_EVERY: usize = 25;

/// The longest random delay before a signal: about the start time of a server.
const LONGEST_DELAY_MS: usize = 150;

const SIGNALS: &[&str] = &["INT", "TERM", "HUP", "KILL"];

/// When a host is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// Usually before it has started anything.
    AtOnce,
    /// While it starts its servers.
    Starting,
    /// When its servers run. One of them is never ready, so the host waits for it.
    Running,
    /// During a call without a response.
    InCall,
}

/// Random numbers, reproducible by their seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn delay(&mut self) -> Duration {
        Duration::from_millis(self.below(LONGEST_DELAY_MS) as u64)
    }
}

/// The seed of this run: always another one, unless a run is to be reproduced.
fn seed() -> u64 {
    match std::env::var("TRUNKLINE_SOAK_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs(),
    }
}

/// One host, and how it ends.
struct Round {
    marker: String,
    servers: Map<String, Value>,
    moment: Moment,
    delay: Duration,
    signal: &'static str,
}

impl Round {
    fn choose(random: &mut Random, number: usize, marker: String) -> Self {
        let moments = [Moment::AtOnce, Moment::Starting, Moment::Running, Moment::InCall];
        let moment = random.one_of(&moments);
        let mut servers = Map::new();
        if moment == Moment::InCall {
            let mode = random.one_of(&["hang", "stubborn"]);
            servers.insert("hanging".to_owned(), hanging(mode, &marker));
        } else {
            let mut choices = vec![("plain", plain()), ("family", family(&marker))];
            choices.push(("stubborn", stubborn(&marker)));
            choices.retain(|_| random.below(2) == 0);
            servers.insert("silent".to_owned(), silent(&marker));
            servers.extend(choices.into_iter().map(|(name, it)| (name.to_owned(), it)));
            if number.is_multiple_of(NODE_EVERY) {
                servers.insert("node".to_owned(), node());
            }
        }
        for server in servers.values_mut() {
            server["env"]["MARKER"] = json!(marker);
            server["timeouts"] = json!({ "shutdown": "300ms" });
        }
        let (delay, signal) = (random.delay(), random.one_of(SIGNALS));
        Self { marker, servers, moment, delay, signal }
    }

    /// Starts the host and ends it. Returns its children.
    fn play(self) -> Vec<Process> {
        let content = json!({ "mcpServers": self.servers }).to_string();
        let folder = Folder::new().file("trunkline.json", content);
        let arguments: &[&str] = match self.moment {
            Moment::InCall => &["call", "hanging_wait"],
            _ => &["status"],
        };
        let mut command = folder.command(arguments);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut host = Ending(command.spawn().unwrap());
        self.wait_for_moment(&folder);
        let started = children(host.0.id());
        send(self.signal, host.0.id());
        let status = host.0.wait().unwrap();
        // The processes of a killed host end a little later.
        if status.code().is_some() {
            let left = marked(&self.marker);
            assert!(left.is_empty(), "{left:?} ({:?}, {})", self.moment, self.signal);
        }
        started
    }

    fn wait_for_moment(&self, folder: &Folder) {
        match self.moment {
            Moment::AtOnce => return,
            Moment::Starting => {}
            Moment::Running => {
                let all_run = || marked(&self.marker).len() >= self.servers.len();
                wait_until("the servers run", LONGEST_START, all_run);
            }
            Moment::InCall => {
                let called = folder.project().join("called");
                wait_until("the tool is called", LONGEST_START, || called.exists());
            }
        }
        thread::sleep(self.delay);
    }
}

/// A host that is killed even if the test fails.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn plain() -> Value {
    json!({ "command": env!("CARGO_BIN_EXE_trunkline"), "args": ["demo-server", "words"], "env": {} })
}

fn shell(script: &str) -> Value {
    let env = json!({ "PROGRAM": env!("CARGO_BIN_EXE_trunkline") });
    json!({ "command": "/bin/sh", "args": ["-c", script], "env": env })
}

/// A server with a child and a grandchild that outlive it.
fn family(marker: &str) -> Value {
    let children = format!("sleep {marker} & sh -c 'sleep {marker} & sleep {marker}' &");
    shell(&format!("{children} exec \"$PROGRAM\" demo-server words"))
}

/// A server that ignores signals, with a child that ignores them too.
fn stubborn(marker: &str) -> Value {
    let rest = format!("sleep {marker} & \"$PROGRAM\" demo-server words; sleep {marker}");
    shell(&format!("trap '' TERM HUP INT; {rest}"))
}

/// A server that is never ready.
fn silent(marker: &str) -> Value {
    shell(&format!("exec sleep {marker}"))
}

/// A server that does not respond to a call, with a child.
fn hanging(mode: &str, marker: &str) -> Value {
    let mut server =
        shell(&format!("sleep {marker} & exec \"$PYTHON\" -I \"$SERVER\" {mode} {marker}"));
    server["env"] = json!({ "PYTHON": peers::python(), "SERVER": peers::scripted_server() });
    server
}

fn node() -> Value {
    let script =
        peers::node_modules().join("@modelcontextprotocol/server-everything/dist/index.js");
    json!({ "command": "node", "args": [script, "stdio"], "env": {} })
}

#[test]
fn nothing_is_left_of_200_hosts_that_were_ended_at_random_moments() {
    let (seed, all) = (seed(), marker());
    println!("to repeat this run: TRUNKLINE_SOAK_SEED={seed}");
    let (next, started) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|threads| {
        for _ in 0..AT_ONCE {
            threads.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= ROUNDS {
                        return;
                    }
                    let mut random = Random(seed.wrapping_add(number as u64));
                    let round = Round::choose(&mut random, number, format!("{all}{number:03}"));
                    let children = round.play();
                    started.lock().unwrap().extend(children);
                }
            });
        }
    });
    wait_until_gone(&all);
    let started = started.into_inner().unwrap();
    assert!(started.len() > ROUNDS, "most hosts had started something: {}", started.len());
    wait_until("no child of a host runs", LONGEST_START, || !started.iter().any(Process::runs));
    let left = children(std::process::id());
    assert!(left.is_empty(), "the test has children of its own: {left:#?}");
}
