//! Programs that are not servers, or cannot be started.

use serde_json::json;

use super::{assert_fails, beside_healthy, impatiently, scripted, shell};

#[test]
fn a_program_that_is_missing() {
    let server = json!({ "command": "no-such-program-anywhere" });
    assert_fails(&server, "no-such-program-anywhere: not found", "is it installed");
}

#[test]
fn a_program_that_echoes_its_input() {
    let server = impatiently(json!({ "command": "/bin/cat" }));
    assert_fails(&server, "it repeats what it is sent", "is this an MCP server?");
}

#[test]
fn a_program_that_never_answers() {
    let server = impatiently(shell("exec sleep 1000"));
    assert_fails(&server, "it did not answer in time", "is this an MCP server?");
}

#[test]
fn a_program_that_ends_at_once_with_a_reason() {
    let server = shell("echo 'the key is missing' >&2; exit 3");
    assert_fails(&server, "the process ended (exit status: 3)", "it said: the key is missing");
}

/// CON-4: there is a hint in this case too, for every command.
#[test]
fn a_program_that_ends_without_a_word() {
    let (error, hint) = ("the process ended (exit status: 3)", "run its command in a terminal");
    assert_fails(&shell("exit 3"), error, hint);
    let folder = beside_healthy(&shell("exit 3"));
    for command in ["status", "tools", "resources", "prompts"] {
        let run = folder.run(&[command]);
        let said = format!("{}{}", run.output, run.messages);
        assert!(
            said.contains(error)
                && said.contains(&format!("\n  it said nothing on standard error: {hint}")),
            "{run}"
        );
    }
}

#[test]
fn a_program_that_closes_its_output_and_lives_on() {
    let server = impatiently(shell("exec >&-; exec sleep 1000"));
    assert_fails(&server, "it closed its output and is still running", "");
}

#[test]
fn a_program_that_answers_text() {
    let server = impatiently(shell("while read -r line; do echo hello; done"));
    assert_fails(&server, "it did not answer in time", "is this an MCP server?");
}

#[test]
fn a_program_that_answers_json_that_is_not_json_rpc() {
    let error = "the answer is not a JSON-RPC message";
    assert_fails(&scripted("not-rpc"), error, "is this an MCP server?");
}

#[test]
fn a_variable_that_is_not_set() {
    let server = json!({ "command": "/bin/cat", "args": ["${TRUNKLINE_TEST_UNSET}"] });
    assert_fails(&server, "the variable `TRUNKLINE_TEST_UNSET` is not set", "");
}
