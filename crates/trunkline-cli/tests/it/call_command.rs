//! `trunkline call`: output and exit code for every outcome of a call.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};
use trunkline_testkit::peers;

use crate::support::program::Folder;
use crate::tools_command::{folder, folder_with_failing, words_with};

/// Asserts the exit code and the message of a call to the demo servers.
fn assert_ends(arguments: &[&str], code: i32, message: &str) {
    let run = folder().run(&[&["call"], arguments].concat());
    assert_eq!((run.code, run.output.as_str()), (code, ""), "{run}");
    assert!(run.messages.contains(message), "`{message}` is not in {run}");
}

#[test]
fn arguments_come_one_by_one_or_as_json_or_from_standard_input() {
    let folder = folder();
    for arguments in [&["--arg", "a=2", "--arg", "b=40"][..], &["--json", r#"{"a":2,"b":40}"#]] {
        let run = folder.run(&[&["call", "numbers_add"], arguments].concat());
        assert_eq!((run.code, run.output.trim(), run.messages.as_str()), (0, "42", ""), "{run}");
    }
    let mut command = folder.command(&["call", "numbers_add", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(br#"{"a":2,"b":40}"#).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "42");
}

#[test]
fn text_keeps_its_tabs_and_line_ends() {
    let folder = folder();
    let run = folder.run(&["call", "words_shout", "text=a\tb\r\nc\u{1b}[2Jd\re\n"]);
    // Only what a terminal would act on is replaced.
    assert_eq!(run.output, "A\tB\r\nC\u{fffd}[2JD\u{fffd}E\n", "{run}");
}

#[test]
fn a_truncated_result_says_so_on_standard_error() {
    let folder = words_with(&json!({ "maxResultBytes": 1000 }), &json!({}));
    let text = format!("text={}", "a".repeat(3000));
    let run = folder.run(&["call", "words_shout", &text]);
    assert!(run.code == 0 && run.output.len() < 2000, "{run}");
    let expected = "bytes of the result are missing: the limit is 1000 bytes\n  set `maxResultBytes` of server `words`";
    assert!(run.messages.contains(expected), "{run}");
}

#[test]
fn only_the_server_that_has_the_tool_is_started() {
    let folder = folder_with_failing();
    let run = folder.run(&["call", "words_shout", "--arg", "text=alone"]);
    assert_eq!((run.code, run.output.trim(), run.messages.as_str()), (0, "ALONE", ""), "{run}");
    assert_eq!(folder.run(&["tools", "--server", "words"]).code, 0);
    assert!(!folder.project().join("started").exists());
}

#[test]
fn a_name_that_does_not_exist_is_corrected() {
    let did_you_mean = "there is no tool `words_shuot`; did you mean `words_shout`?";
    assert_ends(&["words_shuot"], 4, did_you_mean);
    assert_ends(&["worsd_shout"], 4, "did you mean `words_shout`?");
    let off = "its server `asleep` is switched off; enable it at trunkline.json:";
    assert_ends(&["asleep_snore"], 4, off);
    assert_ends(&["words_shout", "--agent", "Missing"], 4, "there is no agent `Missing`");
}

#[test]
fn tool_hidden_by_name_is_explained_without_starting_its_server() {
    let hint = "`trunkline tools` lists the tools";
    assert_ends(&["words_zzzzzzzz", "--arg", "text=x"], 4, hint);
    let hint = "if there is one, a rule hides it: `trunkline explain numbers_add --agent Shouter --bundle loud` says more";
    assert_ends(&["numbers_add", "--agent", "Shouter", "--bundle", "loud"], 4, hint);
    let hint = "`trunkline explain numbers_add --agent 'Prompt Builder'` says more";
    assert_ends(&["numbers_add", "--agent", "Prompt Builder"], 4, hint);
}

#[test]
fn caller_without_access_does_not_learn_that_a_server_is_down() {
    let folder = folder_with_failing();
    let run = folder.run(&["call", "other_thing", "--bundle", "loud"]);
    assert_eq!(run.code, 4, "{run}");
    assert!(!folder.project().join("started").exists(), "{run}");
    assert_eq!(folder.run(&["call", "other_thing"]).code, 5);
}

#[test]
fn programs_get_failures_as_a_document() {
    let folder = folder_with_failing();
    let cases = [
        (&["call", "words_shuot"][..], "unknown", 4),
        (&["call", "other_thing"], "unavailable", 5),
        (&["call", "words_shout", "--json", "[]"], "bad-arguments", 6),
        (&["call", "words_shout", "--arg", "text"], "usage", 2),
        (&["tools", "--agent", "Missing"], "unknown", 4),
        (&["explain", "other_thing"], "unavailable", 5),
    ];
    for (arguments, kind, code) in cases {
        for format in ["json", "raw"] {
            let run = folder.run(&[arguments, &["--format", format]].concat());
            let error = &run.json()["error"];
            assert_eq!((run.code, &error["exitCode"]), (code, &json!(code)), "{run}");
            assert_eq!(error["kind"], kind, "{run}");
            let said = run.messages.contains(error["message"].as_str().unwrap());
            assert!(said && (format == "json" || run.output.lines().count() == 1), "{run}");
        }
    }
    let run = folder.run(&["call", "words_shuot", "--format", "json"]);
    assert_eq!(run.json()["error"]["suggestions"], json!(["words_shout"]), "{run}");
    let run = folder.run(&["call", "other_thing", "--format", "json"]);
    assert_eq!(run.json()["error"]["server"], "other", "{run}");
}

#[test]
fn problems_elsewhere_in_the_configuration_are_counted_and_not_shown() {
    let beside = json!({ "bundles": { "ghost": { "serverId": "missing" } }, "agents": "gone.md" });
    let folder = words_with(&json!({}), &beside);
    let call = ["call", "words_shout", "--arg", "text=hello"];
    let run = folder.run(&call);
    assert_eq!((run.code, run.output.trim(), run.messages.lines().count()), (0, "HELLO", 1));
    assert!(run.messages.starts_with("2 errors in "), "{run}");
    assert!(run.messages.contains("`trunkline check` shows more"), "{run}");
    let run = folder.run(&[&call[..], &["-q"]].concat());
    assert_eq!((run.code, run.output.trim(), run.messages.as_str()), (0, "HELLO", ""), "{run}");
    let run = folder.run(&[&call[..], &["-v"]].concat());
    assert!(run.messages.contains("error[unknown-server]"), "{run}");
    // Without any server, the errors are shown, because they are the reason for the failure.
    let broken = Folder::new().file("trunkline.json", "{ \"mcpServers\": ");
    let run = broken.run(&["call", "words_shout", "-q"]);
    assert_eq!(run.code, 4, "{run}");
    assert!(run.messages.contains("error[syntax]"), "{run}");
    // An agent that could not be read is unknown, with a hint on the errors.
    let run = folder.run(&["call", "words_shout", "-q", "--agent", "Gone"]);
    assert_eq!(run.code, 4, "{run}");
    assert!(run.messages.contains("the configuration has errors: `trunkline check`"), "{run}");
}

#[test]
fn call_to_a_server_with_an_invalid_entry_names_the_mistake() {
    let folder = folder();
    let path = folder.project().join("trunkline.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let broken = r#""mcpServers": { "broken": { "comand": "x" },"#;
    let folder = folder.file("trunkline.json", text.replace(r#""mcpServers": {"#, broken));
    for arguments in [
        &["call", "broken_thing"][..],
        &["explain", "broken_thing"],
        &["explain", "thing", "--server", "broken"],
    ] {
        let run = folder.run(&[arguments, &["-q"]].concat());
        assert_eq!(run.code, 4, "{run}");
        assert!(run.messages.contains("the entry of server `broken` has errors"), "{run}");
    }
}

#[test]
fn arguments_that_cannot_be_used_are_refused_before_anything_starts() {
    assert_ends(&["words_shout", "--json", "{text"], 6, "`--json` is not JSON: key must be");
    assert_ends(&["words_shout", "--json", "[1]"], 6, "`--json` is JSON, and not an object");
    assert_ends(&["words_shout", "--json", "[1]"], 6, r#"--json '{"text": "hello"}'"#);
    assert_ends(&["words_shout", "--arg", "text"], 2, "`--arg` needs a name and a value");
    assert_ends(&["words_shout", "--arg", "=x"], 2, "`--arg` needs a name and a value");
    let twice = ["words_shout", "--arg", "text=a", "--arg", "text=b"];
    assert_ends(&twice, 2, "`text=…` is given twice");
}

#[test]
fn keys_that_servers_would_disagree_about_are_refused() {
    for (json, key) in
        [(r#"{"text":"a","text":"b"}"#, "text"), (r#"{"a":[{"b":{"c":1,"\u0063":2}}]}"#, "c")]
    {
        let message = format!("`--json` has the key `{key}` twice");
        assert_ends(&["words_shout", "--json", json], 6, &message);
    }
    let run = folder().run(&["call", "words_shout", "--json", r#"{"text":"text"}"#]);
    assert_eq!(run.code, 0, "{run}");
    let twice = ["words_shout", r#"text:={"x":1,"x":2}"#];
    assert_ends(&twice, 6, "`text=…` has the key `x` twice");
    // The schema wants a string, and a string is what is sent.
    let run = folder().run(&["call", "words_shout", r#"text={"x":1,"x":2}"#]);
    assert_eq!((run.code, run.output.trim()), (0, r#"{"X":1,"X":2}"#), "{run}");
    assert_ends(&["words_shout", "--json", "-"], 6, "`-` without `--json` reads");
}

/// Numbers in results and arguments keep their spelling.
#[test]
fn numbers_stay_as_they_were_written() {
    let result = r#"{"z":12345678901234567890.123450,"content":[],"a":1E+2,"n":-0}"#;
    let folder = lively(&["say"]).file("say.json", result);
    let json = folder.run(&["call", "s_say", "--format", "json"]);
    let expected = "{\n  \"z\": 12345678901234567890.123450,\n  \"content\": [],\n  \"a\": 1E+2,\n  \"n\": -0\n}\n";
    assert_eq!((json.code, json.output.as_str()), (0, expected), "{json}");
    let arguments = ["--arg", "n=12345678901234567890123.10", "--arg", "b=1e2", "--arg", "a=x"];
    folder.run(&[&["call", "s_say"][..], &arguments].concat());
    let sent = std::fs::read_to_string(folder.project().join("said")).unwrap();
    assert!(sent.contains(r#"{"n":12345678901234567890123.10,"b":1e2,"a":"x"}"#), "{sent}");
}

#[test]
fn arguments_are_validated_before_they_are_sent() {
    let run = folder().run(&["call", "words_shout"]);
    assert_eq!(run.code, 6, "{run}");
    assert!(run.messages.contains("`text` is missing"), "{run}");
    assert!(run.messages.contains("`trunkline tool words_shout` shows its arguments"), "{run}");
    let run = folder().run(&["call", "words_shout", "--arg", "txet=hello"]);
    assert_eq!(run.code, 6, "{run}");
    assert!(run.messages.contains("no argument `txet`; did you mean `text`?"), "{run}");
    let run = folder().run(&["call", "words_shout", "--json", r#"{"text":5}"#]);
    assert_eq!(run.code, 6, "{run}");
    let run = folder().run(&["call", "words_shout", "text:=5"]);
    assert_eq!(run.code, 6, "{run}");
    assert!(
        run.messages.contains("  `:=` takes JSON; `text=5` passes text; `trunkline tool"),
        "{run}"
    );
    let run = folder().run(&["call", "words_shout", "text:=[1]"]);
    assert!(run.messages.contains("`text=…` passes text; "), "{run}");
}

#[test]
fn response_of_the_server_to_wrong_arguments_is_passed_on() {
    let run = folder().run(&["call", "words_shout", "--no-check", "txet=hello"]);
    assert_eq!((run.code, run.messages.as_str()), (3, ""), "{run}");
    assert!(run.output.contains("unknown field `txet`"), "{run}");
}

#[test]
fn call_ends_at_the_requested_timeout() {
    let server =
        json!({ "command": peers::python(), "args": ["-I", peers::scripted_server(), "hang"] });
    let content = json!({ "mcpServers": { "hanging": server } }).to_string();
    let folder = Folder::new().file("trunkline.json", content);
    let run = folder.run(&["call", "hanging_wait", "--timeout", "700ms"]);
    assert_eq!((run.code, run.output.as_str()), (8, ""), "{run}");
    assert!(run.messages.contains("700ms"), "{run}");
    for wrong in ["0s", "5", "soon", "5d", "99999999999999999999h"] {
        let run = folder.run(&["call", "hanging_wait", "--timeout", wrong]);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.messages.contains("a number and a unit"), "{run}");
    }
}

#[test]
fn oversized_result_is_truncated_with_a_notice() {
    let folder = words_with(&json!({ "maxResultBytes": "2KiB" }), &json!({}));
    let text = format!("text={}", "long ".repeat(1000));
    let run = folder.run(&["call", "words_shout", "--arg", &text]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.output.len() < 2500 && run.output.contains("bytes are missing]"), "{run}");
}

/// SEC-2, CFG-9: the value of a reference is not shown, even in the name of a program.
#[test]
fn missing_program_does_not_reveal_the_value_of_its_reference() {
    let content = r#"{ "mcpServers": { "n": { "command": "no-such-${TOK}" } } }"#;
    let folder = Folder::new().file("trunkline.json", content);
    for arguments in [&["call", "n_x"][..], &["status"], &["status", "--format", "json"]] {
        let mut command = folder.command(arguments);
        command.env("TOK", "sup3rS3cretTOKEN");
        let run = folder.finish(&mut command);
        let all = run.to_string();
        assert!(!all.contains("sup3rS3cretTOKEN"), "{run}");
        assert!(all.contains("the program `no-such-${TOK}` was not found"), "{run}");
    }
}

/// Seen: the server whose tools were known was called, also if another had a tool of the same name.
#[test]
fn a_name_without_prefix_is_compared_with_servers_that_were_never_asked() {
    let program = env!("CARGO_BIN_EXE_trunkline");
    let words = |name: &str| json!({ "command": program, "args": ["demo-server", "words"], "env": { "DB": name } });
    let config = json!({ "mcpServers": { "one": words("one"), "two": words("two") } });
    let folder = Folder::new().file("trunkline.json", config.to_string());
    assert_eq!(folder.run(&["call", "one", "shout", "a"]).code, 0);
    let run = folder.run(&["call", "shout", "a"]);
    assert_eq!(run.code, 4, "{run}");
    assert!(run.messages.contains("several servers have a tool `shout`"), "{run}");
    let dead = json!({ "command": "/bin/sh", "args": ["-c", "exit 3"] });
    let config = json!({ "mcpServers": { "one": words("one"), "dead": dead } });
    let folder = Folder::new().file("trunkline.json", config.to_string());
    let run = folder.run(&["call", "shout", "a"]);
    assert_eq!((run.code, run.output.as_str()), (0, "A\n"), "{run}");
    assert!(run.messages.contains("1 server cannot be asked"), "{run}");
    assert!(run.messages.contains("write `one_shout` to ask no other server"), "{run}");
}

#[test]
fn a_root_has_to_be_a_directory() {
    let folder = folder().file("file.txt", "x").file("sub/x.txt", "x");
    for root in ["nothing", "file.txt"] {
        let run = folder.run(&["call", "words_shout", "a", "--root", root]);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.messages.contains("there is no directory"), "{run}");
    }
    assert_eq!(folder.run(&["call", "words_shout", "a", "--root", "sub/.."]).code, 0);
}

#[test]
fn a_tool_in_place_of_a_prompt_is_recognized() {
    let run = folder().run(&["prompt", "words_shout"]);
    assert_eq!(run.code, 4, "{run}");
    assert!(run.messages.contains("it is a tool: `trunkline call words_shout`"), "{run}");
}

#[test]
fn a_value_with_a_hyphen_gets_no_wrong_advice() {
    let run = folder().run(&["call", "words_shout", "-x"]);
    assert!(run.code == 2 && !run.messages.contains("use '-- -x'"), "{run}");
}

#[test]
fn tools_are_named_by_server_or_without_prefix() {
    let folder = folder();
    for words in [
        &["words_shout", "hello"][..],
        &["words", "shout", "hello"],
        &["shout", "text=hello"],
        &["--server", "words", "shout", "hello"],
        &["words", "words_shout", "hello"],
    ] {
        let run = folder.run(&[&["call"], words].concat());
        assert_eq!((run.code, run.output.trim()), (0, "HELLO"), "{words:?}: {run}");
    }
    let run = folder.run(&["call", "words", "shuot", "hello"]);
    assert_eq!(run.code, 4, "{run}");
    assert!(
        run.messages.contains("server `words` has no tool `shuot`; did you mean `shout`?"),
        "{run}"
    );
    let run = folder.run(&["call", "remember", "x"]);
    assert!(run.code == 4 && run.messages.contains("is hidden"), "{run}");
    let run = folder.run(&["call", "words"]);
    assert!(run.code == 4 && run.messages.contains("`words` is a server"), "{run}");
    let program = env!("CARGO_BIN_EXE_trunkline");
    let twice = json!({ "mcpServers": {
        "a": { "command": program, "args": ["demo-server", "words"] },
        "b": { "command": program, "args": ["demo-server", "words"] },
    } });
    let twice = Folder::new().file("trunkline.json", twice.to_string());
    let run = twice.run(&["call", "shout", "hello", "--format", "json"]);
    assert_eq!(run.code, 4, "{run}");
    assert_eq!(run.json()["error"]["suggestions"], json!(["a_shout", "b_shout"]), "{run}");
}

#[test]
fn values_have_the_types_of_the_schema() {
    let folder = folder();
    let run = folder.run(&["call", "numbers_add", "a=2", "b=40"]);
    assert_eq!((run.code, run.output.trim()), (0, "42"), "{run}");
    let run = folder.run(&["call", "words_shout", "text=12"]);
    assert_eq!((run.code, run.output.trim()), (0, "12"), "{run}");
    let folder = folder.file("note.txt", "from a file");
    let run = folder.run(&["call", "words_shout", "text=@note.txt"]);
    assert_eq!((run.code, run.output.trim()), (0, "FROM A FILE"), "{run}");
    let run = folder.run(&["call", "words_shout", "text=@missing.txt"]);
    assert_eq!(run.code, 6, "{run}");
    assert!(run.messages.contains("the file `missing.txt` cannot be read"), "{run}");
    let run = folder.run(&["call", "numbers_add", "2", "40"]);
    assert_eq!(run.code, 6, "{run}");
    assert!(run.messages.contains("write `a=2`"), "{run}");
    let run = folder.run(&["call", "words_shout", "text=a", "-"]);
    assert_eq!(run.code, 2, "{run}");
    let run = folder.run(&["call", "words_shout", "hello", "--json", r#"{"text":"a"}"#]);
    assert_eq!(run.code, 2, "a value is not dropped: {run}");
    let run = folder.run(&["call", "numbers_add", "a=-2", "b=-3"]);
    assert_eq!((run.code, run.output.trim()), (0, "-5"), "{run}");
}

/// A server needs no configuration, neither one that is there nor a new one.
#[test]
fn a_server_on_the_command_line_is_used_instead_of_the_configuration() {
    let folder = folder();
    let server = ["--", env!("CARGO_BIN_EXE_trunkline"), "demo-server", "words"];
    let run = folder.run(&[&["call", "shout", "hello"][..], &server].concat());
    assert_eq!((run.code, run.output.trim(), run.messages.as_str()), (0, "HELLO", ""), "{run}");
    let run = folder.run(&[&["tools"][..], &server].concat());
    assert!(run.code == 0 && run.output.contains("  remember(text: string)"), "{run}");
    let run = folder.run(&[&["tool", "shout"][..], &server].concat());
    assert!(run.code == 0 && run.output.contains("trunkline call shout text=TEXT -- "), "{run}");
    let run = folder.run(&[&["status"][..], &server].concat());
    assert!(
        run.code == 0 && run.output.contains("ready") && !run.output.contains("numbers"),
        "{run}"
    );
    let run = folder.run(&[&["call", "shuot"][..], &server].concat());
    assert!(run.code == 4 && run.messages.contains("did you mean `shout`?"), "{run}");
    let run = folder.run(&[&["tools", "--config", "trunkline.json"][..], &server].concat());
    assert!(run.code == 2 && run.messages.contains("not both"), "{run}");
    let run = folder.run(&[&["tools", "https://example.com/mcp"][..], &server].concat());
    assert!(run.code == 2 && run.messages.contains("not both"), "{run}");
    let run = folder.run(&["tools", "--"]);
    assert!(run.code == 2 && run.messages.contains("after it"), "{run}");
    let run = folder.run(&["tools", "--", "no-such-program"]);
    assert!(run.code == 1 && run.messages.contains("`no-such-program` was not found"), "{run}");
    let run = folder.run(&["call", "http://127.0.0.1:9/mcp", "shout", "hello"]);
    assert_eq!(run.code, 5, "{run}");
}

/// Regression: a caller learned of a hidden server by the error "the process ended".
#[test]
fn a_server_is_not_started_for_a_name_that_is_taken_away() {
    let script = "touch started; exit 3";
    let server = json!({ "command": "/bin/sh", "args": ["-c", script] });
    let mut untrusted = server.clone();
    untrusted["trust"] = "untrusted".into();
    untrusted["allowTools"] = json!(["k"]);
    let content = json!({
        "mcpServers": { "bad": server, "badu": untrusted },
        "agents": { "noa": { "tools": ["*", "!bad_*"] } },
    });
    let folder = Folder::new().file("trunkline.json", content.to_string());
    let run = folder.run(&["call", "badu_zz"]);
    assert_eq!((run.code, run.messages.contains("the process ended")), (4, false), "{run}");
    let content = json!({ "mcpServers": { "bad": server }, "agents": content["agents"] });
    let folder = Folder::new().file("trunkline.json", content.to_string());
    let run = folder.run(&["call", "bad_zz", "--agent", "noa"]);
    assert_eq!((run.code, run.messages.contains("the process ended")), (4, false), "{run}");
    assert!(!folder.project().join("started").exists());
    assert_eq!(folder.run(&["call", "bad_zz"]).code, 5);
}

/// TOOL-10: output of a server is not mistaken for that of the program.
#[test]
fn log_lines_name_their_server() {
    let run = lively(&[]).run(&["-v", "call", "s_work"]);
    assert!(run.messages.contains("[s] info: worked\n"), "{run}");
    let untrusted = json!({ "trust": "untrusted", "allowTools": ["work"] });
    let run = lively_with(&[], &untrusted).run(&["-v", "call", "s_work"]);
    assert!(run.messages.contains("[s, untrusted] info: worked\n"), "{run}");
}

/// A script would take any output for a value.
#[test]
fn nothing_is_printed_where_nothing_is_completed() {
    let folder = lively(&[]).file("prompts", "greet");
    let run = folder.run(&["complete", "s_greet", "name=A", "--no-check"]);
    assert_eq!((run.code, run.output.as_str()), (0, ""), "{run}");
}

/// A directory whose server `s` has additional tools, with results from files of their names.
pub(crate) fn lively(tools: &[&str]) -> Folder {
    lively_with(tools, &json!({}))
}

/// The same with additional keys.
pub(crate) fn lively_with(tools: &[&str], more: &Value) -> Folder {
    let folder = Folder::new().file("tools", tools.join("\n"));
    let place = folder.project();
    let mut server = json!({
        "command": peers::python(), "args": ["-I", peers::lively_server(), place, "legacy"],
    });
    for (key, value) in more.as_object().unwrap() {
        server[key] = value.clone();
    }
    let content = json!({ "mcpServers": { "s": server } }).to_string();
    folder.file("trunkline.json", content)
}

/// Seen: a name without a prefix was an unknown one (4) while a server that could have it was down.
#[test]
fn an_item_that_a_silent_server_could_have_is_unavailable() {
    let words =
        json!({ "command": env!("CARGO_BIN_EXE_trunkline"), "args": ["demo-server", "words"] });
    let config = json!({ "mcpServers": { "gone": { "command": "/nowhere/x" }, "words": words } });
    let folder = Folder::new().file("c.json", config.to_string());
    for arguments in
        [&["call", "frob"][..], &["prompt", "frob"], &["tool", "frob"], &["explain", "frob"]]
    {
        let run = folder.run(&[arguments, &["--config", "c.json"]].concat());
        assert_eq!(run.code, 5, "{arguments:?}: {run}");
        let said = "server `gone` could not be asked whether it has `frob`: ";
        assert_eq!(run.messages.matches(said).count(), 1, "{arguments:?}: {run}");
        assert_eq!(run.messages.matches("was not found").count(), 1, "{arguments:?}: {run}");
    }
    let run = folder.run(&["call", "wrods_shout", "--config", "c.json", "--format", "json"]);
    assert!(run.code == 5 && run.messages.contains("did you mean `words_shout`?"), "{run}");
    assert_eq!(run.json()["error"]["suggestions"], json!(["words_shout"]), "{run}");
    // A name with the prefix of a server that responds can be of no other.
    assert_eq!(folder.run(&["call", "words_frob", "--config", "c.json"]).code, 4);
    assert_eq!(folder.run(&["call", "shout", "text=a", "--config", "c.json"]).code, 0);
}
