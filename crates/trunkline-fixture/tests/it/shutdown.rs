//! The server ends with its parent process.

use std::process::Command;

use crate::support::http_fixture::Listening;

#[test]
fn it_ends_when_its_input_is_closed() {
    let mut server = Listening::new("both");
    drop(server.process.stdin.take());
    assert!(server.process.wait().unwrap().success());
}

#[test]
fn server_ends_on_request() {
    let mut server = Listening::new("both");
    let told = Command::new("kill").arg(server.process.id().to_string()).status();
    assert!(told.unwrap().success());
    assert!(server.process.wait().unwrap().success());
}
