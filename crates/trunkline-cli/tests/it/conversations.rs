//! Toggles of projects and conversations: `enable`, `disable`, and what clients of each gateway see (TOOL-9).

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::gateway::{Serving, post};
use crate::support::processes::{LONGEST_START, marker, wait_until};
use crate::support::program::Folder;
use crate::support::service::{Client, Machine, config};
use crate::tools_command::folder;

const LIST_CHANGED: &str = "notifications/tools/list_changed";

fn state_file(folder: &Folder) -> PathBuf {
    folder.project().with_file_name("home").join(".local/state/trunkline/state.redb")
}

/// The tools that a modern client gets at an address.
fn tools(url: &str, headers: &[(&str, &str)]) -> Vec<String> {
    let version = "2026-07-28";
    let prefix = "io.modelcontextprotocol";
    let meta = json!({
        format!("{prefix}/protocolVersion"): version,
        format!("{prefix}/clientCapabilities"): {},
        format!("{prefix}/clientInfo"): { "name": "test", "version": "1" },
    });
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta },
    });
    let own = [("MCP-Protocol-Version", version), ("Mcp-Method", "tools/list")];
    let (code, text) = post(url, &[&own, headers].concat(), &body.to_string());
    assert_eq!(code, 200, "{text}");
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    let answer: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{text}"));
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{text}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits for the notification after which a list is as it should be. Others may come before it.
fn notified(client: &mut Client, is_expected: impl Fn(&[String]) -> bool) {
    loop {
        client.notification(LIST_CHANGED);
        if is_expected(&client.tools()) {
            return;
        }
    }
}

fn has(tools: &[String], server: &str) -> bool {
    tools.iter().any(|name| name.starts_with(server))
}

#[test]
fn toggles_are_kept_per_project_and_conversation() {
    let folder = folder();
    folder.trust();
    let names = |more: &[&str]| folder.run(&[&["tools"], more].concat()).output;
    let run = folder.run(&["disable", "words"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.output.starts_with("the server `words` is off in [folder]/project"), "{run}");
    assert!(!names(&[]).contains("words_") && names(&[]).contains("numbers_"));
    // A conversation may have it, and may have less of the rest.
    let chat = ["--conversation", "chat-7"];
    assert_eq!(folder.run(&[&["enable", "words"], &chat[..]].concat()).code, 0);
    assert_eq!(folder.run(&[&["disable", "numbers_add"], &chat[..]].concat()).code, 0);
    assert!(names(&chat).contains("words_") && !names(&chat).contains("numbers_add"));
    assert!(names(&[]).contains("numbers_add"));
    let run = folder.run(&["call", "words_shout", "--arg", "text=a"]);
    assert_eq!(run.code, 4, "{run}");
    assert!(run.messages.contains("switched off"), "{run}");

    let run = folder.run(&["disable"]);
    for line in
        ["  off  server words\n", "in the conversation `chat-7`\n", "  off  tool numbers_add"]
    {
        assert!(run.output.contains(line), "{run}");
    }
    let json = folder.run(&["disable", "--format", "json"]).json();
    assert_eq!(json["project"]["servers"]["words"], false, "{json}");
    assert_eq!(json["conversations"]["chat-7"]["servers"]["words"], true, "{json}");
    assert_eq!(folder.run(&["enable", "words"]).code, 0);
    assert!(names(&[]).contains("words_"));
}

#[test]
fn quiet_toggles_print_only_errors() {
    let folder = folder();
    for command in ["disable", "enable"] {
        let run = folder.run(&[command, "words", "-q"]);
        let shown = (run.code, run.output.as_str(), run.messages.as_str());
        assert_eq!(shown, (0, "", ""), "{run}");
    }
    let run = folder.run(&["disable", "words", "-q", "--format", "json"]);
    assert!(run.json()["switched"].is_array(), "{run}");
}

#[test]
fn a_name_that_does_not_exist_switches_nothing() {
    let folder = folder();
    folder.trust();
    let run = folder.run(&["disable", "words", "wrods_shout"]);
    assert_eq!(run.code, 4, "{run}");
    assert!(run.messages.contains("did you mean `words_shout`?"), "{run}");
    assert!(folder.run(&["disable"]).output.starts_with("nothing is switched off in [folder]"));
    let run = folder.run(&["disable", "words", "--conversation", ""]);
    assert_eq!(run.code, 2, "{run}");
}

#[test]
fn what_stays_off_is_said() {
    let folder = folder();
    folder.trust();
    let run = folder.run(&["enable", "asleep"]);
    assert!(run.messages.contains("\"enabled\": false"), "{run}");
    folder.run(&["tools"]);
    folder.run(&["disable", "words"]);
    let run = folder.run(&["enable", "words_shout"]);
    assert!(run.messages.contains("`trunkline enable words`"), "{run}");
}

/// A mistake in a rule fails closed: toggles that cannot be read may have switched anything off.
#[test]
fn unreadable_toggles_switch_everything_off() {
    let folder = folder();
    folder.trust();
    folder.run(&["disable", "words"]);
    fs::write(state_file(&folder), "damaged").unwrap();
    let run = folder.run(&["tools"]);
    assert!(run.output.is_empty(), "{run}");
    assert!(run.messages.contains("state.redb cannot be read"), "{run}");
    assert!(run.messages.contains("every server is switched off"), "{run}");
    let run = folder.run(&["enable", "words"]);
    assert_eq!(run.code, 1, "{run}");
    assert_eq!(fs::read(state_file(&folder)).unwrap(), b"damaged");
}

/// No disk is full on demand; a limit on the size of files gives the same error.
#[test]
fn a_full_disk_loses_no_toggle() {
    let folder = folder();
    folder.trust();
    assert_eq!(folder.run(&["disable", "words"]).code, 0);
    let program = env!("CARGO_BIN_EXE_trunkline");
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -f 8; exec '{program}' disable numbers")]);
    shell.current_dir(folder.project()).env_clear();
    let environment = folder.command(&[]);
    let variables = environment.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let run = folder.finish(shell.envs(variables));
    // Either there was room in the file, or the change is refused; what was stored stays.
    let json = folder.run(&["disable", "--format", "json"]).json();
    assert_eq!(json["project"]["servers"]["words"], false, "{run}\n{json}");
    assert_eq!(json["project"]["servers"]["numbers"] == false, run.code == 0, "{run}\n{json}");
}

#[test]
fn http_clients_name_their_conversation_by_address_or_header() {
    let folder = folder();
    folder.trust();
    folder.run(&["disable", "words", "--conversation", "chat 7"]);
    let serving = Serving::start(&folder, &[]);
    let url = serving.url();
    assert!(has(&tools(url, &[]), "words_"));
    let addressed = format!("{url}?conversation=chat%207");
    for (url, headers) in
        [(&*addressed, vec![]), (url, vec![("Trunkline-Conversation", "chat%207")])]
    {
        let listed = tools(url, &headers);
        assert!(!has(&listed, "words_") && has(&listed, "numbers_"), "{listed:?}");
    }
    // A running gateway takes over what another process stores.
    folder.run(&["enable", "words", "--conversation", "chat 7"]);
    wait_until("the toggle is applied", LONGEST_START, || has(&tools(&addressed, &[]), "words_"));
    let (code, text) = post(&format!("{url}?conversation=a&conversation=b"), &[], "{}");
    assert!(code == 400 && text.ends_with("the request names two conversations\n"), "{text}");
}

#[test]
fn clients_of_the_service_are_notified_of_toggles_of_their_conversation() {
    let machine = Machine::new(&config(&marker()));
    let mut other = machine.session();
    let command = machine.folder.bare_command(&["connect", "--conversation", "chat"]);
    let mut client = Client::start(command);
    client.open();
    assert!(has(&client.tools(), "words_") && has(&other.tools(), "words_"));
    let run =
        |arguments: &[&str]| machine.folder.finish(&mut machine.folder.bare_command(arguments));
    let switched = run(&["disable", "words", "--conversation", "chat"]);
    assert_eq!(switched.code, 0, "{switched}");
    notified(&mut client, |tools| !has(tools, "words_"));
    assert!(has(&other.tools(), "words_"));
    let answer = client.call("words_shout", &json!({ "text": "a" }));
    assert!(answer["error"].is_object(), "{answer}");
    assert_eq!(other.shout("a"), "A");
    // The toggle survives a restart of the service.
    assert_eq!(run(&["restart"]).code, 0);
    assert!(!has(&client.tools(), "words_") && has(&other.tools(), "words_"));
    assert_eq!(run(&["enable", "words", "--conversation", "chat"]).code, 0);
    notified(&mut client, |tools| has(tools, "words_"));
    assert_eq!(client.shout("b"), "B");
    // A toggle of the project is one of every client.
    assert_eq!(run(&["disable", "words_shout"]).code, 0);
    wait_until("the toggle is applied", LONGEST_START, || {
        !other.tools().contains(&"words_shout".to_owned())
    });
    assert!(other.tools().contains(&"words_count_words".to_owned()));
}

/// A state file that is damaged while a gateway runs costs neither the gateway nor the toggles; when it is whole again,
/// changes are applied again.
#[test]
fn damage_while_a_gateway_runs_is_reported_and_repaired() {
    let folder = folder();
    folder.trust();
    folder.run(&["disable", "words"]);
    let serving = Serving::start(&folder, &[]);
    let (path, whole) = (state_file(&folder), fs::read(state_file(&folder)).unwrap());
    let mut damaged = whole.clone();
    damaged[4096..24_000].iter_mut().for_each(|byte| *byte = 0xff);
    fs::write(&path, damaged).unwrap();
    serving.wait_for("the toggles stay as they were");
    assert!(
        !has(&tools(serving.url(), &[]), "words_") && has(&tools(serving.url(), &[]), "numbers_")
    );
    fs::write(&path, whole).unwrap();
    serving.wait_for("the toggles can be read again");
    assert_eq!(folder.run(&["enable", "words"]).code, 0);
    wait_until("the toggle is applied", LONGEST_START, || {
        has(&tools(serving.url(), &[]), "words_")
    });
}

/// Toggles that could not be read at the start are read as soon as they can be.
#[test]
fn a_gateway_that_starts_with_a_damaged_file_recovers() {
    let folder = folder();
    folder.trust();
    folder.run(&["disable", "words"]);
    let whole = fs::read(state_file(&folder)).unwrap();
    fs::write(state_file(&folder), "").unwrap();
    let serving = Serving::start(&folder, &[]);
    assert!(tools(serving.url(), &[]).is_empty(), "it fails closed");
    serving.wait_for("every server is switched off");
    fs::write(state_file(&folder), whole).unwrap();
    wait_until("the toggles are read", LONGEST_START, || {
        has(&tools(serving.url(), &[]), "numbers_")
    });
    assert!(!has(&tools(serving.url(), &[]), "words_"));
}

#[test]
fn a_project_is_one_however_its_path_is_spelled() {
    let folder = folder();
    folder.trust();
    let link = folder.project().with_file_name("link");
    std::os::unix::fs::symlink(folder.project(), &link).unwrap();
    let config = link.join("trunkline.json");
    let run = folder.run(&["disable", "words", "--config", config.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{run}");
    assert!(!folder.run(&["tools"]).output.contains("words_"));
}

#[test]
fn toggles_that_cannot_be_read_are_not_listed_as_none() {
    let folder = folder();
    folder.trust();
    folder.run(&["disable", "words"]);
    fs::write(state_file(&folder), "damaged").unwrap();
    let run = folder.run(&["disable", "-q", "--format", "json"]);
    assert!(run.code == 1 && run.messages.contains("move the file away"), "{run}");
}
