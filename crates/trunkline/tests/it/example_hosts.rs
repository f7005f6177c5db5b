//! Runs the example hosts, which check themselves.

use std::env;
use std::path::PathBuf;
use std::process::Output;

use tokio::process::Command;

use crate::support::file_driven_server::within;

/// The program of an example, which is built with the tests.
fn program(name: &str) -> PathBuf {
    let test = env::current_exe().unwrap();
    let target = test.parent().and_then(|deps| deps.parent()).unwrap();
    let program = target.join("examples").join(name);
    assert!(program.exists(), "run `cargo build --examples -p trunkline` first");
    program
}

async fn assert_runs(name: &str) {
    let Output { status, stdout, stderr } =
        within(Command::new(program(name)).kill_on_drop(true).output()).await.unwrap();
    let printed = String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{printed}");
}

#[tokio::test]
async fn boocode_has_one_registry_for_native_tools_and_those_of_servers() {
    assert_runs("boocode").await;
}

#[tokio::test]
async fn toolloop_reaches_servers_when_a_bundle_needs_them() {
    assert_runs("toolloop").await;
}

#[tokio::test]
async fn dispatch_has_tools_per_folder_and_switches_per_conversation() {
    assert_runs("dispatch").await;
}
