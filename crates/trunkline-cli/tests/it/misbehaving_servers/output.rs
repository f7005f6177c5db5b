//! Servers that write more than responses.

use serde_json::json;

use super::{assert_ready, scripted, shell_then_words};
use crate::support::program::Folder;

#[test]
fn noise_before_the_first_message_does_no_harm() {
    let folder = assert_ready(&shell_then_words("echo noise; echo '{\"more\": \"noise\"}'"));
    assert_shouts(&folder);
}

#[test]
fn a_line_of_100_megabytes_before_the_first_message_does_no_harm() {
    let line = "head -c 100000000 /dev/zero | tr '\\0' x; echo";
    assert_shouts(&assert_ready(&shell_then_words(line)));
}

#[test]
fn half_a_line_before_the_first_message_spoils_no_more_than_that_message() {
    // The first response is on a line that starts with noise. The server is tried again in the
    // legacy era.
    let mut server = shell_then_words("printf 'Loading... '");
    server["timeouts"] = json!({ "connect": "10s", "handshake": "2s" });
    assert_shouts(&assert_ready(&server));
}

fn assert_shouts(folder: &Folder) {
    let run = folder.run(&["call", "faulty_shout", "--arg", "text=hello"]);
    assert_eq!((run.code, run.output.trim()), (0, "HELLO"), "{run}");
}

#[test]
fn a_flood_on_standard_error_does_no_harm() {
    assert_ready(&shell_then_words("yes flood | head -c 5000000 >&2"));
}

#[test]
fn answers_to_nothing_do_no_harm() {
    for mode in ["wrong-id", "twice"] {
        let folder = assert_ready(&scripted(mode));
        let run = folder.run(&["call", "faulty_wait"]);
        assert_eq!((run.code, run.output.trim()), (0, "waited"), "{mode}: {run}");
    }
}
