//! Starts of many processes: none holds up or ends another.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::sleep;
use trunkline::connection::{Connection, State};
use trunkline_testkit::peers;

use crate::support::file_driven_server::{Folder, call, config, options, within};

/// Holds a lease on a file, so that opening it takes until the lease ends: a program on a disk that does not respond.
const LEASE: &str = "
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_RDWR)
try:
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
except OSError:
    sys.exit(print('no leases'))
print('held', flush=True)
sys.stdin.read()
";

/// Less than the time after which the kernel ends a lease by itself.
const LEASE_TIME: Duration = Duration::from_secs(40);

/// More starts hang than threads are started at first.
const HANGING: usize = 6;

/// As long as the survey of processes, which inspects the children of this process, may take to begin.
const SURVEY: Duration = Duration::from_secs(3);

fn connection(entry: &Value) -> Connection {
    let config = config(&json!({ "s": entry }));
    Connection::new(config.server("s").unwrap().clone(), options())
}

/// Holds a lease on a program; `None` on a file system that has no leases.
fn hold(program: &Path) -> Option<Child> {
    let mut holder = Command::new(peers::python());
    holder.args(["-c", LEASE]).arg(program).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut holder = holder.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    if line.starts_with("no leases") {
        holder.wait().unwrap();
        return None;
    }
    assert_eq!(line, "held\n");
    Some(holder)
}

/// CON-8: programs that cannot be read hold up neither the start nor the end of another server.
#[tokio::test]
async fn a_program_on_a_disk_that_hangs_holds_up_no_other_server() {
    let folder = Folder::new();
    let program = folder.path().join("program");
    fs::copy("/bin/true", &program).unwrap();
    let Some(mut holder) = hold(&program) else {
        eprintln!("skipped: files on this disk have no leases");
        return;
    };
    let held_since = Instant::now();
    let entry =
        json!({ "command": program, "timeouts": { "handshake": "1s" }, "restart": "never" });
    let hanging: Vec<_> = (0..HANGING).map(|_| connection(&entry)).collect();
    let first = folder.connection("legacy", &json!({}));
    let failed = join_all(hanging.iter().map(Connection::connect));
    let (failed, ready) = within(async { tokio::join!(failed, first.connect()) }).await;
    assert!(failed.iter().all(Result::is_err), "{failed:?}");
    ready.unwrap();
    sleep(SURVEY).await;
    let later = folder.connection("legacy", &json!({}));
    within(later.connect()).await.unwrap();
    within(async { tokio::join!(first.close(), later.close()) }).await;
    assert!(held_since.elapsed() < LEASE_TIME, "nothing waited for the end of the lease");
    holder.kill().unwrap();
    holder.wait().unwrap();
    within(join_all(hanging.iter().map(Connection::close))).await;
}

/// CON-8: the kernel ends a process that asks for it when the thread ends that created it.
#[tokio::test]
async fn a_server_that_ends_with_its_parent_is_not_ended_by_other_starts() {
    let folder = Folder::new();
    let plain = folder.server("legacy", &json!({}));
    let mut arguments = vec![json!("--pdeathsig"), json!("KILL"), plain["command"].clone()];
    arguments.extend(plain["args"].as_array().unwrap().clone());
    let bound = json!({ "command": "setpriv", "args": arguments, "restart": "never" });
    let servers: Vec<_> =
        (0..12).map(|number| connection(if number % 4 == 3 { &bound } else { &plain })).collect();
    let started = within(join_all(servers.iter().map(Connection::connect))).await;
    assert!(started.iter().all(Result::is_ok), "{started:?}");
    for server in &servers {
        call(server, "started").await;
        assert_eq!(server.status().state, State::Ready);
    }
    within(join_all(servers.iter().map(Connection::close))).await;
}
