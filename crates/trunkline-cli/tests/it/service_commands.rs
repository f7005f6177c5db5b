//! `up`, `down`, `restart` and `logs`: unknown servers and `--quiet`.

use crate::support::processes::marker;
use crate::support::service::{Machine, config};

/// Seen: the exit code was 1, as for a service that fails.
#[test]
fn an_unknown_server_of_the_service_is_corrected() {
    let machine = Machine::new(&config(&marker()));
    let mut client = machine.session();
    client.shout("a");
    for command in ["restart", "logs"] {
        let run = machine.folder.run(&[command, "wrods"]);
        assert_eq!((run.code, run.output.as_str()), (4, ""), "{run}");
        let message = "error: the service has no server `wrods`; did you mean `words`?";
        assert!(run.messages.contains(message), "{run}");
        let run = machine.folder.run(&[command, "wrods", "--format", "json"]);
        let error = &run.json()["error"];
        assert_eq!(
            (&error["kind"], &error["suggestions"][0]),
            (&"unknown".into(), &"words".into())
        );
        let run = machine.folder.run(&[command, "zzzzzzzz"]);
        assert_eq!(run.code, 4, "{run}");
        assert!(run.messages.contains("`trunkline ps` lists its servers"), "{run}");
    }
}

#[test]
fn a_server_of_a_service_that_does_not_run_is_unavailable() {
    let machine = Machine::new(&config(&marker()));
    for command in ["restart", "logs"] {
        let run = machine.folder.run(&[command, "words"]);
        assert_eq!(run.code, 5, "{run}");
    }
}

#[test]
fn quiet_commands_of_the_service_print_only_errors() {
    let machine = Machine::new(&config(&marker()));
    let client = machine.session();
    for arguments in [&["up"][..], &["restart", "words"], &["restart"], &["down"], &["down"]] {
        let run = machine.folder.run(&[arguments, &["-q"]].concat());
        let shown = (run.code, run.output.as_str(), run.messages.as_str());
        assert_eq!(shown, (0, "", ""), "{arguments:?}: {run}");
    }
    drop(client);
    let run = machine.folder.run(&["up", "-q", "--format", "json"]);
    assert_eq!((run.code, &run.json()["started"]), (0, &true.into()), "{run}");
}
