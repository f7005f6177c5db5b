//! `trunkline tools`: visible and hidden items, by caller.

use serde_json::{Value, json};

use crate::support::program::{Folder, Run};

/// The agents of a project, as users write them.
const AGENTS: &str = "---\nname: Shouter\ntools: [words_*, !words_count_words]\n---\nShout!\n\
                      ---\nname: Counter\ntools: [*, !numbers_*]\n---\nCount.\n\
                      ---\nname: Prompt Builder\ntools: [words_shout]\n---\nBuild.\n\
                      ---\nname: Dreamer\ntools: [words_whisper, words_shout]\n---\nDream.\n";

/// Both demo servers, a disabled one, agents and bundles.
pub(crate) fn folder() -> Folder {
    let program = json!(env!("CARGO_BIN_EXE_trunkline"));
    let text = format!(
        r#"{{
  "mcpServers": {{
    "words": {{ "args": ["demo-server", "words"], "command": {program} }},
    "numbers": {{ "args": ["demo-server", "numbers"], "command": {program} }},
    "asleep": {{ "enabled": false, "command": {program} }}
  }},
  "agents": "AGENTS.md",
  "bundles": {{
    "loud": {{ "serverId": "words", "mode": "direct", "allowTools": ["shout"] }},
    "quiet": {{ "serverId": "words", "mode": "direct", "denyTools": ["shout"] }}
  }},
  "access": "read-only"
}}"#
    );
    Folder::new().file("trunkline.json", text).file("AGENTS.md", AGENTS)
}

/// One demo server with additional keys, and additional settings beside the servers.
pub(crate) fn words_with(entry: &Value, beside: &Value) -> Folder {
    let mut server =
        json!({ "command": env!("CARGO_BIN_EXE_trunkline"), "args": ["demo-server", "words"] });
    let mut content = json!({});
    for (object, more) in [(&mut server, entry), (&mut content, beside)] {
        let members = more.as_object().unwrap().clone();
        object.as_object_mut().unwrap().extend(members);
    }
    content["mcpServers"] = json!({ "words": server });
    Folder::new().file("trunkline.json", content.to_string())
}

/// The same with a server that fails, and leaves a file when it is started.
pub(crate) fn folder_with_failing() -> Folder {
    let folder = folder();
    let text = std::fs::read_to_string(folder.project().join("trunkline.json")).unwrap();
    let other =
        r#""mcpServers": { "other": { "command": "/bin/sh", "args": ["-c", "echo > started"] },"#;
    folder.file("trunkline.json", text.replace(r#""mcpServers": {"#, other))
}

/// The names that a run lists.
fn names(run: &Run) -> Vec<String> {
    assert_eq!(run.code, 0, "{run}");
    let items = run.output.lines().filter_map(|line| line.strip_prefix("  "));
    items.map(|line| line.split(['(', ' ']).next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn tools_that_write_are_hidden_and_counted() {
    insta::assert_snapshot!(folder().run(&["tools"]));
}

#[test]
fn all_option_shows_hidden_tools_with_reasons() {
    insta::assert_snapshot!(folder().run(&["tools", "--all", "--agent", "Shouter"]));
}

#[test]
fn machines_get_the_list_of_a_model_and_the_reasons() {
    let folder = folder();
    let json = folder.run(&["tools", "--format", "json", "--server", "words"]).json();
    assert_eq!(json["tools"][1]["name"], "words_shout");
    let description = json["tools"][1]["description"].as_str().unwrap();
    assert!(description.starts_with("[words] "), "{description}");
    assert_eq!((&json["hiddenCount"], json.get("hidden")), (&json!(1), None));
    let json = folder.run(&["tools", "--format", "json", "--all"]).json();
    let hidden = &json["hidden"][0];
    assert_eq!((&hidden["name"], &hidden["rule"]), (&json!("words_remember"), &json!("access")));
    assert!(hidden["hint"].as_str().unwrap().contains("read-write"), "{hidden}");
}

#[test]
fn status_lists_hidden_tools_with_hints() {
    let folder = folder();
    let run = folder.run(&["status"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.messages.starts_with("1 tool is hidden (1 of words); `trunkline tools --all`"));
    let json = folder.run(&["status", "--format", "json"]).json();
    let [numbers, words] = [0, 1].map(|place| &json["servers"][place]["hidden"]);
    assert_eq!((numbers, &words[0]["name"]), (&json!([]), &json!("words_remember")), "{json}");
    assert!(words[0]["hint"].as_str().unwrap().contains("read-write"), "{json}");
}

/// CON-11: a user interface needs them in order to enable them.
#[test]
fn servers_that_are_switched_off_are_in_the_status() {
    let run = folder().run(&["status"]);
    let row = run.output.lines().find(|line| line.starts_with("asleep ")).unwrap_or_default();
    assert!(
        row.contains("disabled") && row.ends_with("switched off in the configuration"),
        "{run}"
    );
    assert_eq!(run.code, 0, "{run}");
    let json = folder().run(&["status", "--format", "json"]).json();
    let asleep = json["servers"].as_array().unwrap().iter().find(|it| it["name"] == "asleep");
    assert_eq!(asleep.unwrap()["state"], "disabled", "{json}");
}

#[test]
fn raw_is_one_definition_a_line() {
    let run = folder().run(&["tools", "--format", "raw", "--bundle", "loud"]);
    assert_eq!((run.code, run.messages.as_str(), run.output.lines().count()), (0, "", 1), "{run}");
    assert!(run.output.contains(r#""name":"words_shout""#), "{run}");
}

#[test]
fn bundle_and_agent_restrict_the_list() {
    let folder = folder();
    let seen = |arguments: &[&str]| names(&folder.run(&[&["tools"], arguments].concat()));
    assert_eq!(seen(&["--bundle", "loud"]), ["words_shout"]);
    assert_eq!(seen(&["--bundle", "quiet"]), ["words_count_words"]);
    assert_eq!(seen(&["--bundle", "loud", "--bundle", "quiet"]), Vec::<String>::new());
    assert_eq!(seen(&["--agent", "Shouter"]), ["words_shout"]);
    assert_eq!(seen(&["--agent", "Counter"]), ["words_count_words", "words_shout"]);
    assert_eq!(seen(&["--agent", "Counter", "--bundle", "quiet"]), ["words_count_words"]);
    assert_eq!(seen(&["--off", "numbers", "--agent", "Shouter"]), ["words_shout"]);
    assert_eq!(seen(&["--off", "words", "--agent", "Shouter"]), Vec::<String>::new());
}

#[test]
fn servers_without_admitted_tools_are_not_started() {
    let folder = folder_with_failing();
    for who in [
        &["--bundle", "loud"][..],
        &["--agent", "Shouter"],
        &["--agent", "Prompt Builder"],
        &["--off", "other"],
    ] {
        let run = folder.run(&[&["tools"], who].concat());
        assert!(names(&run).contains(&"words_shout".to_owned()), "{run}");
        assert!(!folder.project().join("started").exists(), "{who:?}");
    }
    let run = folder.run(&["tools", "--agent", "Counter"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(folder.project().join("started").exists());
}

#[test]
fn hidden_tools_are_listed_for_all_servers_with_the_same_options() {
    let folder = folder();
    let run = folder.run(&["tools", "--bundle", "loud"]);
    let hint = "2 tools are hidden (2 of words); `trunkline tools --all --bundle loud` shows";
    assert!(run.messages.starts_with(hint), "{run}");
    let run = folder.run(&["tools", "--all", "--bundle", "loud"]);
    assert!(run.output.contains("numbers_add  (hidden: no bundle asked for is of its server)"));
    let run = folder.run(&["--config", "trunkline.json", "tools", "--server", "words"]);
    let hint = "`trunkline tools --all --server words --config trunkline.json` shows";
    assert!(run.messages.contains(hint), "{run}");
}

#[test]
fn partial_list_names_missing_servers_in_json() {
    let run = folder_with_failing().run(&["tools", "--format", "json"]);
    let json = run.json();
    assert_eq!((run.code, &json["tools"][0]["name"]), (1, &json!("numbers_add")), "{run}");
    let failure = &json["failures"][0];
    let expected = (&json!("unavailable"), &json!("other"));
    assert_eq!((&failure["kind"], &failure["server"]), expected, "{run}");
    let run = folder().run(&["tools", "--format", "json", "--agent", "Dreamer"]);
    assert_eq!((run.code, &run.json()["failures"][0]["kind"]), (1, &json!("unknown")), "{run}");
    let run = folder().run(&["tools", "--format", "json"]);
    assert_eq!((run.code, &run.json()["failures"]), (0, &json!([])), "{run}");
}

#[test]
fn hidden_tools_are_absent_from_the_model_format() {
    for command in ["tools", "resources", "prompts"] {
        let run = folder().run(&[command, "--all", "--format", "raw"]);
        assert_eq!((run.code, run.output.as_str()), (2, ""), "{run}");
        assert!(run.messages.contains("use `--all` with `--format json`"), "{run}");
    }
}

#[test]
fn a_conversation_switches_servers_off() {
    let folder = folder().file("talk.json", r#"{"servers": {"numbers": false, "wrds": false}}"#);
    let run = folder.run(&["tools", "--toggles", "talk.json"]);
    assert_eq!(names(&run), ["words_count_words", "words_shout"]);
    let warning = "warning: talk.json:1:32: there is no server `wrds`; did you mean `words`?";
    assert!(run.messages.starts_with(warning), "{run}");
    let run = folder.run(&["tools", "--toggles", "talk.json", "--off", "words", "-q"]);
    assert_eq!((names(&run), run.messages.as_str()), (Vec::new(), ""));
    let run = folder.run(&["call", "numbers_add", "--toggles", "talk.json", "--json", "{}"]);
    assert_eq!(run.code, 4, "{run}");
    assert!(run.messages.contains("there is no tool `numbers_add`"), "{run}");
}

#[test]
fn a_conversation_that_cannot_be_read_stops_everything() {
    for (text, message) in [
        ("{servers", "talk.json:1:"),
        (r#"{"servers": {"words": "off"}}"#, "talk.json:1:23: `words` in `servers` must be true"),
        (r#"{"server": {"words": false}}"#, "did you mean `servers`?"),
    ] {
        let folder = folder_with_failing().file("talk.json", text);
        for command in [&["tools"][..], &["call", "words_shout"], &["explain", "words_shout"]] {
            let run = folder.run(&[command, &["--toggles", "talk.json"]].concat());
            assert_eq!((run.code, run.output.as_str()), (2, ""), "{run}");
            assert!(run.messages.contains(message), "`{message}` is not in {run}");
        }
        assert!(!folder.project().join("started").exists());
    }
    let run = folder().run(&["tools", "--toggles", "nowhere.json"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.messages.contains("the toggles in nowhere.json cannot be read"), "{run}");
}

#[test]
fn access_decides_about_tools_that_write() {
    let seen = |access: &str| {
        let folder = words_with(&json!({ "access": access }), &json!({}));
        names(&folder.run(&["tools"]))
    };
    let reading = ["words_count_words", "words_shout"];
    assert_eq!(seen("read-only"), reading);
    assert_eq!(seen("read-write"), ["words_count_words", "words_remember", "words_shout"]);
    let strict = seen("read-only-strict");
    assert!(strict.iter().all(|name| reading.contains(&name.as_str())), "{strict:?}");
}

/// TOOL-5: a pasted configuration shows every tool that its original host showed.
#[test]
fn every_tool_is_there_by_default_and_one_run_can_have_less_or_more() {
    let every = ["words_count_words", "words_remember", "words_shout"];
    let reading = ["words_count_words", "words_shout"];
    let folder = words_with(&json!({}), &json!({}));
    assert_eq!(names(&folder.run(&["tools"])), every);
    assert_eq!(names(&folder.run(&["tools", "--access", "read-only"])), reading);
    let run = folder.run(&["tools", "--access", "readonly"]);
    assert_eq!(run.code, 2, "{run}");
    let run = folder.run(&["call", "words_remember", "--access", "read-only", "--arg", "text=x"]);
    assert_eq!(run.code, 4, "{run}");
    assert!(run.messages.contains("access is `read-only` for this run"), "{run}");
    let folder = words_with(&json!({ "access": "read-only" }), &json!({ "access": "read-only" }));
    assert_eq!(names(&folder.run(&["tools"])), reading);
    assert_eq!(names(&folder.run(&["tools", "--access", "read-write"])), every);
    let json = folder.run(&["status", "--access", "read-write", "--format", "json"]).json();
    assert_eq!(json["servers"][0]["hidden"], json!([]), "{json}");
}

/// TOOL-9: a conversation switches single tools off; a mistake in its file switches everything off.
#[test]
fn a_conversation_can_switch_single_tools_off() {
    let folder = words_with(&json!({}), &json!({}))
        .file("talk.json", r#"{ "tools": { "words_shout": false, "words_remember": true } }"#)
        .file("slip.json", r#"{ "tools": { "words_shout": "off" } }"#);
    let talk = ["--toggles", "talk.json"];
    let run = folder.run(&[&["tools"], &talk[..]].concat());
    assert_eq!(names(&run), ["words_count_words", "words_remember"], "{run}");
    let call = ["call", "words_shout", "--arg", "text=x"];
    let run = folder.run(&[&call[..], &talk[..]].concat());
    assert_eq!(run.code, 4, "{run}");
    let why = "it is switched off in this project or conversation (talk.json:1:14)";
    assert!(run.messages.contains(why), "{run}");
    assert_eq!(folder.run(&["tools", "--toggles", "slip.json"]).code, 2);
}

#[test]
fn call_of_a_hidden_tool_reports_the_reason_and_the_remedy() {
    let folder = folder();
    let call = |arguments: &[&str]| {
        let run = folder.run(&[&["call", "words_remember", "--arg", "text=x"], arguments].concat());
        assert_eq!((run.code, run.output.as_str()), (4, ""), "{run}");
        run.messages
    };
    let said = call(&[]);
    let why = "the tool `words_remember` is hidden: it declares that it writes, and access is \
               `read-only` (trunkline.json:12:3)";
    assert!(said.contains(why), "{said}");
    let how = "to see it: set `\"access\": \"read-write\"` on the server, or give `--access \
               read-write` for one run";
    assert!(said.contains(how), "{said}");
    // Cached by the call before: no server is started for an excluded name.
    let said = call(&["--agent", "Prompt Builder", "--access", "read-write"]);
    assert!(said.contains("is hidden: no pattern of agent `Prompt Builder` matches"), "{said}");
    let said = call(&["--bundle", "loud", "--access", "read-write"]);
    assert!(said.contains("is hidden: `allowTools` of bundle `loud` does not name it"), "{said}");
    let said = call(&["--off", "words"]);
    assert!(said.contains("is switched off in this project or conversation"), "{said}");
    let run = folder.run(&["call", "words_whisper"]);
    assert!(run.messages.contains("there is no tool `words_whisper`"), "{run}");
}

#[test]
fn an_agent_in_a_file_may_only_read() {
    let agents = "---\nname: Reader\naccess: read-only\n---\nRead.\n\
                  ---\nname: Slip\naccess: read-olny\n---\nRead.\n";
    let folder =
        words_with(&json!({}), &json!({ "agents": "AGENTS.md" })).file("AGENTS.md", agents);
    let run = folder.run(&["tools", "--agent", "Reader"]);
    assert!(run.output.contains("words_shout") && !run.output.contains("words_remember"), "{run}");
    assert!(run.messages.contains("`read-olny` is not an access rule"), "{run}");
    let run = folder.run(&["tools", "--agent", "Slip"]);
    assert_eq!((run.code, run.output.as_str()), (4, ""), "{run}");
}

#[test]
fn names_are_made_as_the_configuration_wants_them() {
    let folder = words_with(&json!({}), &json!({ "separator": "__", "access": "read-only" }));
    assert_eq!(names(&folder.run(&["tools"])), ["words__count_words", "words__shout"]);
    let folder = words_with(&json!({ "prefix": "" }), &json!({ "access": "read-only" }));
    assert_eq!(names(&folder.run(&["tools"])), ["count_words", "shout"]);
    let run = folder.run(&["call", "shout", "--arg", "text=bare"]);
    assert_eq!((run.code, run.output.trim()), (0, "BARE"), "{run}");
}

#[test]
fn an_untrusted_server_without_an_allow_list_shows_nothing() {
    let folder = words_with(&json!({ "trust": "untrusted" }), &json!({}));
    assert_eq!(names(&folder.run(&["tools"])), Vec::<String>::new());
    let run = folder.run(&["tools", "--all"]);
    let reason =
        "words_shout  (hidden: its server is not trusted, and no list says what may be seen";
    assert!(run.output.contains(reason), "{run}");
    let run = folder.run(&["call", "words_shout", "--arg", "text=hello"]);
    assert_eq!(run.code, 4, "{run}");
}

#[test]
fn untrusted_server_shows_listed_tools_and_marks_results() {
    let entry = json!({ "trust": "untrusted", "allowTools": ["shout"], "access": "read-write" });
    let folder = words_with(&entry, &json!({}));
    assert_eq!(names(&folder.run(&["tools"])), ["words_shout"]);
    let run = folder.run(&["call", "words_shout", "--arg", "text=hello"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.output.contains("untrusted server `words`"), "{run}");
    let run = folder.run(&["call", "words_shout", "--arg", "text=hello", "--format", "json"]);
    assert_eq!(run.json()["_meta"]["io.trunkline/untrusted"], true, "{run}");
}

#[test]
fn unknown_caller_is_reported_before_servers_start() {
    let folder = folder();
    for (arguments, message) in [
        (["--agent", "Shuoter"], "there is no agent `Shuoter`; did you mean `Shouter`?"),
        (["--bundle", "luod"], "there is no bundle `luod`; did you mean `loud`?"),
        (["--off", "word"], "there is no server `word`; did you mean `words`?"),
        (["--server", "word"], "there is no server `word`; did you mean `words`?"),
        (["--server", "elsewhere"], "there is no server `elsewhere`; there are numbers, words"),
        (["--server", "asleep"], "the server `asleep` is switched off"),
    ] {
        let run = folder.run(&[&["tools"], &arguments[..]].concat());
        assert_eq!((run.code, run.output.as_str()), (4, ""), "{run}");
        assert!(run.messages.contains(message), "`{message}` is not in {run}");
    }
}

#[test]
fn a_plain_name_that_nothing_has_is_an_error_of_the_agent() {
    let run = folder().run(&["tools", "--agent", "Dreamer"]);
    assert_eq!(run.code, 1, "{run}");
    let message =
        "error: AGENTS.md:18:9: agent `Dreamer`: server `words` has no tool `words_whisper`";
    assert!(run.messages.contains(message), "{run}");
}

/// A name without the prefix of any server may be a tool of another host: it is a warning.
#[test]
fn a_plain_name_of_no_server_is_warned_about() {
    let agents = "---\nname: Reader\ntools: [words_shout, veiw_file, web_*]\n---\n";
    let folder =
        words_with(&json!({}), &json!({ "agents": "AGENTS.md" })).file("AGENTS.md", agents);
    let run = folder.run(&["tools", "--agent", "Reader"]);
    assert_eq!(names(&run), ["words_shout"]);
    let message = "warning: AGENTS.md:3:22: agent `Reader`: no server has a tool `veiw_file`";
    assert!(run.messages.contains(message), "{run}");
    assert!(!run.messages.contains("web_"), "{run}");
}

/// A list entry that matches nothing is a warning once the server has listed its items; an exposed
/// name in a deny list denies.
#[test]
fn list_entries_that_match_nothing_are_warned_about() {
    let folder = words_with(&json!({ "denyTools": ["Shout", "words_shout"] }), &json!({}));
    for command in ["tools", "status"] {
        let run = folder.run(&[command]);
        assert_eq!(run.code, 0, "{run}");
        assert!(!run.output.contains("words_shout"), "{run}");
        for message in [
            "`denyTools` of server `words`: server `words` has no tool or prompt `Shout`; did you mean `shout`?",
            "has no tool or prompt `words_shout`; that is an exposed name: write `shout`",
        ] {
            assert!(run.messages.contains(message), "`{message}` is not in {run}");
        }
    }
}

/// Seen before: with lists from disk, nothing was said of a wrong name that was added to a known server.
#[test]
fn list_entries_that_match_nothing_are_warned_about_with_lists_from_disk() {
    let folder = words_with(&json!({}), &json!({}));
    assert_eq!(folder.run(&["tools"]).code, 0);
    let text = std::fs::read_to_string(folder.project().join("trunkline.json")).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["mcpServers"]["words"]["denyTools"] = json!(["Shout"]);
    let folder = folder.file("trunkline.json", config.to_string());
    let run = folder.run(&["tools"]);
    assert!(run.output.contains("words_shout"), "{run}");
    let message =
        "`denyTools` of server `words`: server `words` has no tool `Shout`; did you mean `shout`?";
    assert!(run.messages.contains(message), "{run}");
}

#[test]
fn agents_that_cannot_be_used_are_explained() {
    let agents = "---\nname: Twin\n---\n---\nname: Twin\n---\n---\nname: Guesser\ntools: [word?_*]\n---\n\
                  ---\nname: Deep\ntools: [words_**]\n---\n";
    let folder = folder().file("AGENTS.md", agents);
    insta::assert_snapshot!(folder.run(&["check"]));
    let run = folder.run(&["tools", "--agent", "Twin"]);
    assert_eq!(run.code, 4, "{run}");
    assert!(
        run.messages.contains("agent `Twin` is disabled because its entry has errors"),
        "{run}"
    );
}

#[test]
fn agents_may_stand_in_a_folder_one_to_a_file() {
    let folder = words_with(&json!({}), &json!({ "agents": "agents/" }))
        .file("agents/loud.md", "---\ntools: words_shout\n---\nShout!\n")
        .file("agents/notes.txt", "no agent");
    assert_eq!(names(&folder.run(&["tools", "--agent", "loud"])), ["words_shout"]);
}

#[test]
fn missing_configuration_is_reported_and_an_invalid_one_fails() {
    let run = Folder::new().run(&["tools"]);
    assert_eq!((run.code, run.output.as_str()), (0, ""), "{run}");
    assert!(run.messages.starts_with("No configuration found"), "{run}");
    let run = Folder::new().file("trunkline.json", r#"{"mcpServers":{"a":{}}}"#).run(&["tools"]);
    assert_eq!((run.code, run.output.as_str()), (1, ""), "{run}");
}

/// Seen before: only "there are no tools", and no reason.
#[test]
fn a_configuration_without_an_enabled_server_says_so() {
    let off = json!({ "command": "cat", "enabled": false });
    let config = json!({ "mcpServers": { "one": off, "two": off } }).to_string();
    let folder = Folder::new().file("trunkline.json", config);
    let reason = "no server is enabled: 2 servers are switched off (one, two); \
                  `trunkline config` shows where each is written\n";
    for command in ["tools", "resources", "prompts"] {
        let run = folder.run(&[command]);
        let said = format!("there are no {command}; {reason}");
        assert_eq!((run.code, run.output.as_str(), run.messages), (0, "", said), "{command}");
    }
    let run = folder.run(&["call", "words_shout"]);
    let said = format!("error: there is no tool `words_shout`\n  {reason}");
    assert_eq!((run.code, run.messages), (4, said));
    let run = folder.run(&["check"]);
    assert!(run.output.contains("2 servers, 2 switched off; no problems"), "{run}");
    let run = Folder::new().file("trunkline.json", "{}").run(&["tools"]);
    let said = "there are no tools; the configuration has no servers: add one under `mcpServers`\n";
    assert_eq!(run.messages, said);
}

#[test]
fn servers_without_resources_and_prompts_have_none() {
    let folder = folder();
    for command in ["resources", "prompts"] {
        let run = folder.run(&[command]);
        let said = format!("there are no {command}\n");
        assert_eq!((run.code, run.output.as_str(), run.messages), (0, "", said), "{command}");
    }
}

/// An empty list is never silent: there is a notice and a hint.
#[test]
fn empty_list_names_the_command_that_explains_it() {
    let off = ["tools", "--off", "words", "--off", "numbers"];
    let run = folder().run(&off);
    assert_eq!((run.code, run.output.as_str()), (0, ""), "{run}");
    let advice = "no tools can be seen; `trunkline tools --all --off words --off numbers` shows";
    assert!(run.messages.contains(advice), "{run}");
}
