//! Processes that misbehave in a call.

use serde_json::{Value, json};

use super::{
    assert_call_fails, assert_healthy_answer, assert_ready, in_one_host, scripted, with_healthy,
};
use crate::support::embedding_host::Host;
use crate::support::program::Folder;

/// The server with a short call timeout. `timeouts.connect` must not extend it.
fn impatiently(mut server: Value) -> Value {
    server["timeouts"] = json!({ "call": "1s", "connect": "10m" });
    server
}

#[test]
fn a_server_that_hangs_in_a_call() {
    let server = impatiently(scripted("hang"));
    assert_call_fails(
        &server,
        "it did not answer the call within 1s\n  `timeouts.call` is the bound",
    );
}

#[test]
fn a_server_that_dies_in_a_call() {
    let message = "the process ended (exit status: 7)\n  it said: out of cheese";
    assert_call_fails(&scripted("die"), message);
}

#[test]
fn a_server_that_answers_half_a_line() {
    let server = impatiently(scripted("half"));
    assert_call_fails(&server, "it did not answer the call within 1s");
}

#[test]
fn a_server_that_answers_with_rubbish() {
    let server = impatiently(scripted("rubbish"));
    assert_call_fails(
        &server,
        "`timeouts.call` is the bound; some of what it wrote was no message, and may have been the \
         answer",
    );
}

#[test]
fn a_server_that_answers_in_another_encoding() {
    assert_call_fails(&scripted("latin-1"), "the answer is not UTF-8");
}

#[test]
fn a_server_that_answers_half_a_line_and_dies() {
    assert_call_fails(&scripted("half-then-die"), "the process ended (exit status: 7)");
}

/// CALL-5: a response above the limit is truncated, not an error.
#[test]
fn a_server_that_answers_a_line_of_100_megabytes() {
    let folder = assert_ready(&scripted("huge"));
    let run = folder.run(&["call", "faulty_wait"]);
    let output = run.output.trim_end();
    assert_eq!(run.code, 0, "{}", run.messages);
    // White space between tokens is not counted.
    assert!(output.ends_with(" of 100000039 bytes are missing]"), "{}", run.messages);
    assert!(output.len() < 6 * 1024 * 1024, "{}", output.len());
}

#[test]
fn a_server_that_answered_too_much_can_be_called_again() {
    let folder = Folder::new();
    in_one_host(async {
        let host = Host::new(&folder, &with_healthy(&scripted("huge")));
        assert!(host.start().await.is_empty());
        let process = host.status("faulty").process_id;
        let nothing = json!({});
        let (cut, ()) =
            tokio::join!(host.call("faulty", "wait", &nothing), assert_healthy_answer(&host));
        let kept = cut.unwrap().len();
        assert!((1..=16 * 1024 * 1024).contains(&kept), "{kept}");
        assert_eq!(host.call("faulty", "wait", &json!({})).await.unwrap(), "waited");
        assert!(process.is_some());
        assert_eq!(host.status("faulty").process_id, process, "it is the same process");
        host.end().await;
    });
}
