//! A thousand concurrent clients of both eras, while servers behind the gateway are killed, hang
//! and end: every call gets exactly its own response, and nothing leaks.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, process};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use trunkline::host::Host;
use trunkline_testkit::peers;

use crate::support::client::{Era, TestClient};
use crate::support::gateway::TestGateway;
use crate::support::http_connection::{Channel, Sent};

const CLIENTS: u64 = 1000;

/// Duration of the load, after a shorter one that sets the baseline.
const WARM_UP: Duration = Duration::from_secs(5);
const LOAD: Duration = Duration::from_secs(20);

/// No call takes nearly as long, even on two cores: a call may take `CALL`, and wait for a server
/// that is starting.
const LONGEST: Duration = Duration::from_secs(60);
const CALL: &str = "2s";

/// Clients that open or close concurrently.
const DOORS: usize = 32;

/// One in so many clients opens a GET stream.
const LISTENING: u64 = 4;

/// File descriptors that all clients and the gateway need together, in one process.
const DESCRIPTORS: u64 = 4096;

/// Tolerated growth of memory since the warm-up, in KiB: the allocator's caches vary.
const MORE_MEMORY: u64 = 48 * 1024;

/// The outcomes of calls.
#[derive(Debug, Default)]
struct Tally {
    results: u64,
    failures: u64,
    errors: u64,
    slowest: Duration,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.results += other.results;
        self.failures += other.failures;
        self.errors += other.errors;
        self.slowest = self.slowest.max(other.slowest);
    }
}

fn server(generation: &str, more: &Value) -> Value {
    let mut entry = json!({
        "command": peers::python(),
        "args": ["-I", peers::echoing_server(), generation],
        "timeouts": { "call": CALL, "shutdown": "1s" },
    });
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    entry
}

fn servers() -> Value {
    let restart = json!({ "policy": "on-failure", "limit": 1000, "delay": "10ms",
        "maxDelay": "100ms" });
    let restarted = json!({ "restart": restart });
    json!({
        "old": server("legacy", &json!({})),
        "new": server("modern", &json!({})),
        "killed": server("legacy", &restarted),
        "hanging": server("modern", &json!({})),
        "ending": server("modern", &restarted),
    })
}

/// The `number`th call of a client: mostly to servers that behave, sometimes to one that does not.
fn call(client: u64, number: u64, token: &str) -> (&'static str, Value) {
    let echo = json!({ "token": token });
    let later = json!({ "token": token, "wait": (client * 7 + number * 13) % 400 });
    match (client + number * 3) % 10 {
        0 | 1 => ("old_echo", echo),
        2 => ("old_echo", later),
        3 | 4 => ("new_echo", echo),
        5 => ("new_echo", later),
        6 => ("killed_echo", later),
        7 => ("killed_echo", echo),
        8 if (client + number).is_multiple_of(97) => ("hanging_hang", echo),
        8 => ("hanging_echo", echo),
        _ if (client + number).is_multiple_of(499) => ("ending_exit", echo),
        _ => ("ending_echo", later),
    }
}

/// Asserts that a response belongs to this call, and counts it.
fn count(tally: &mut Tally, answer: &Value, tool: &str, token: &str) {
    let text = answer.to_string();
    // No response contains a token of another call.
    let foreign =
        text.match_indices("token-").find(|(at, _)| !text.get(*at..).unwrap().starts_with(token));
    assert_eq!(foreign, None, "{tool} {token}: {text}");
    let result = &answer["result"];
    if result["isError"] == true {
        tally.failures += 1;
    } else if result.is_object() {
        assert_eq!(result["content"][0]["text"], token, "{tool}: {text}");
        tally.results += 1;
    } else {
        assert!(answer["error"]["code"].is_i64(), "{tool} {token}: {text}");
        tally.errors += 1;
    }
}

async fn one_call(
    client: &mut TestClient,
    tally: &mut Tally,
    (tool, token): (&str, &str),
    args: Value,
) {
    let written = client.write("tools/call", json!({ "name": tool, "arguments": args }));
    let begin = Instant::now();
    let asked = timeout(LONGEST, client.exchange(&written)).await;
    let asked = asked.unwrap_or_else(|_| panic!("{tool} {token}: no answer in {LONGEST:?}"));
    let (head, messages) = asked.unwrap_or_else(|error| panic!("{tool} {token}: {error}"));
    tally.slowest = tally.slowest.max(begin.elapsed());
    let [answer] = &messages[..] else { panic!("{tool} {token}: {head:?} {messages:?}") };
    assert_eq!(answer["id"], written.id, "{tool} {token}");
    count(tally, answer, tool, token);
}

/// Reads a GET stream until it ends. Returns the number of its messages.
async fn hear(mut channel: Channel) -> usize {
    let mut heard = 0;
    while let Ok(Some(event)) = channel.event().await {
        let message = event.message.map(|it| it.to_string()).unwrap_or_default();
        assert!(!message.contains("token-"), "{message}");
        heard += 1;
    }
    heard
}

async fn one_client(
    address: SocketAddr,
    index: u64,
    length: Duration,
    doors: Arc<Semaphore>,
) -> Tally {
    let era = if index.is_multiple_of(2) { Era::Legacy } else { Era::Modern };
    let mut client = {
        let _door = doors.acquire().await.unwrap();
        let opened = timeout(LONGEST, TestClient::new(era, address)).await;
        opened.expect("a session in time").unwrap()
    };
    let listens = era == Era::Legacy && index.is_multiple_of(LISTENING);
    let hearing = match listens {
        true => {
            let (head, channel) = client.request("GET", &[]).await;
            assert!(head.is_stream(), "{head:?}");
            Some(tokio::spawn(hear(channel)))
        }
        false => None,
    };
    let mut tally = Tally::default();
    let end = Instant::now() + length;
    for number in 0.. {
        if Instant::now() > end {
            break;
        }
        let token = format!("token-{index}-{number}.");
        let (tool, arguments) = call(index, number, &token);
        one_call(&mut client, &mut tally, (tool, &token), arguments).await;
        sleep(Duration::from_millis(100 + (index * 31 + number * 17) % 400)).await;
    }
    let _door = doors.acquire().await.unwrap();
    if era == Era::Legacy {
        close(&mut client).await;
    }
    if let Some(hearing) = hearing {
        let ended = timeout(LONGEST, hearing).await;
        ended.expect("a stream ends with its session").unwrap();
    }
    tally
}

/// Ends a session, and asserts that it is closed.
async fn close(client: &mut TestClient) {
    let headers = client.headers();
    let headers = crate::support::client::borrowed(&headers);
    for status in [204, 404] {
        let sent = Sent { method: "DELETE", path: "/mcp", headers: &headers, body: "" };
        let head = client.channel.send(&sent).await.unwrap();
        assert_eq!(head.status, status);
        client.channel.body().await.unwrap();
    }
}

/// Runs all clients for a while.
async fn load(address: SocketAddr, length: Duration) -> Tally {
    let doors = Arc::new(Semaphore::new(DOORS));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        clients.spawn(one_client(address, client, length, Arc::clone(&doors)));
    }
    let mut all = Tally::default();
    while let Some(tally) = clients.join_next().await {
        all.add(&tally.unwrap());
    }
    all
}

/// Kills a server repeatedly.
async fn kill(host: Host, name: &str) {
    loop {
        sleep(Duration::from_millis(1500)).await;
        let Some(server) = host.servers().get(name) else { return };
        let process = server.status().process_id.and_then(|id| i32::try_from(id).ok());
        if let Some(process) = process.and_then(Pid::from_raw) {
            // It may have ended by itself meanwhile.
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

/// Resources that this process holds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    descriptors: BTreeMap<String, usize>,
    children: usize,
}

impl Held {
    fn now() -> Self {
        let mut descriptors = BTreeMap::new();
        for descriptor in fs::read_dir("/proc/self/fd").unwrap().flatten() {
            // The descriptor of the directory itself is closed by now.
            let Ok(target) = fs::read_link(descriptor.path()) else { continue };
            let target = target.to_string_lossy().into_owned();
            let kind = target.split_once(":[").map_or(&*target, |(kind, _)| kind);
            if !kind.starts_with("/proc/") {
                *descriptors.entry(kind.to_owned()).or_default() += 1;
            }
        }
        Self { descriptors, children: children() }
    }
}

/// The number of child processes that have not been reaped.
fn children() -> usize {
    let is_child = |folder: &Path| {
        let stat = fs::read_to_string(folder.join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(") ").and_then(|(_, it)| it.split(' ').nth(1)?.parse().ok());
        parent == Some(process::id())
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|it| is_child(&it.path())).count()
}

/// Resident memory in kilobytes.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|it| it >= DESCRIPTORS) {
        return;
    }
    let raised = Rlimit { current: Some(DESCRIPTORS), maximum: limit.maximum };
    let result = setrlimit(Resource::Nofile, raised);
    assert!(
        result.is_ok(),
        "this test needs {DESCRIPTORS} descriptors, and the limit is {:?}: raise it with `ulimit -Hn`",
        limit.maximum
    );
}

/// Starts every server that is not running, and waits until all are ready.
async fn all_ready(host: &Host) {
    let failed = timeout(LONGEST, host.servers().connect_all()).await;
    let failed = failed.expect("servers start in time");
    assert!(failed.is_empty(), "{failed:?}");
}

/// Waits until the resources are as before.
async fn settle(host: &Host, before: &Held) {
    let deadline = Instant::now() + LONGEST;
    loop {
        all_ready(host).await;
        let now = Held::now();
        if now == *before {
            return;
        }
        assert!(Instant::now() < deadline, "{now:?} is left instead of {before:?}");
        sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_clients_get_their_own_answers_whatever_happens_to_servers() {
    allow_descriptors();
    let gateway = TestGateway::to(&servers()).await;
    all_ready(&gateway.host).await;
    let before = Held::now();
    let warm_up = load(gateway.address, WARM_UP).await;
    settle(&gateway.host, &before).await;
    let normal = memory();
    let killing = tokio::spawn(kill(gateway.host.clone(), "killed"));
    let begin = Instant::now();
    let loaded = load(gateway.address, LOAD).await;
    let took = begin.elapsed();
    killing.abort();
    settle(&gateway.host, &before).await;
    let after = memory();
    eprintln!("warm-up: {warm_up:?}");
    eprintln!("load: {loaded:?} in {took:?}; {before:?}");
    eprintln!("memory: {normal} kB after the warm-up, {after} kB at the end");
    assert!(loaded.results > CLIENTS * 5, "{loaded:?}");
    assert!(loaded.failures > 0, "nothing went wrong: {loaded:?}");
    assert!(after < normal + MORE_MEMORY, "{normal} kB became {after} kB");
    let servers = gateway.host.servers().connections().len();
    gateway.end().await;
    // The guard that kills servers if this process is killed lives as long as the process.
    assert_eq!(children(), before.children - servers);
}

/// The control: shows that a foreign token is detected.
#[test]
#[should_panic(expected = "token-2-1.")]
fn foreign_token_in_a_response_is_detected() {
    let answer = json!({ "result": { "content": [{ "type": "text", "text": "token-2-1." }] } });
    count(&mut Tally::default(), &answer, "old_echo", "token-1-1.");
}
