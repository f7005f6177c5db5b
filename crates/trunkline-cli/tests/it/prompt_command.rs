//! `trunkline prompt` and `complete`: arguments are checked before they are sent.

use serde_json::json;

use crate::support::canned_server::{canned_server, with_canned_server};
use crate::support::program::Folder;
#[cfg(target_os = "linux")]
use crate::support::pseudo_terminal::on_terminal;

/// A server with a prompt and a template, which repeats what it receives.
fn results() -> serde_json::Value {
    let page = json!({ "name": "page", "description": "The page to use", "required": true });
    let arguments = json!([page, { "name": "style" }, { "name": "language", "required": true }]);
    json!({
        "prompts/list": { "prompts": [{ "name": "summarise", "arguments": arguments }, { "name": "plain" }] },
        "prompts/get": { "messages": [{ "role": "user", "content": { "type": "text", "text": "@PARAMS" } }] },
        "resources/list": { "resources": [] },
        "resources/templates/list": { "resourceTemplates": [
            { "name": "pages", "uriTemplate": "x://{+folder}/{name:3}{?sort,order*}" }
        ] },
        "completion/complete": { "completion": { "values": ["@PARAMS"] } },
    })
}

fn folder() -> Folder {
    with_canned_server(&results())
}

/// Seen: `pgae=start` was sent, and the server complained about a missing page, or ignored it.
#[test]
fn arguments_of_prompts_are_checked_before_they_are_sent() {
    let folder = folder();
    let run = folder.run(&["prompt", "s_summarise", "page=start", "language=en"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.output.contains(r#""arguments": {"page": "start", "language": "en"}"#), "{run}");
    for (arguments, message) in [
        (
            &["s_summarise", "pgae=start", "language=en"][..],
            "the prompt `s_summarise` has no argument `pgae`; did you mean `page`?\n  it has page, language, style; `--no-check` sends it anyway\n",
        ),
        (
            &["s_summarise", "page=x", "zzzzz=x"],
            "the prompt `s_summarise` has no argument `zzzzz`; it has page, language, style\n  write one of these as `name=value`; `--no-check` sends it anyway\n",
        ),
        (
            &["s_plain", "--arg", "page=x"],
            "the prompt `s_plain` has no arguments, and `page` is one\n  leave it out; `--no-check` sends it anyway\n",
        ),
        (
            &["s_summarise", "style=short"],
            "the prompt `s_summarise` needs `page` and `language`, which are missing\n  add `page=… language=…`; `--no-check` sends the others anyway\n",
        ),
        (&["s_summarise", "page=x"], "the prompt `s_summarise` needs `language`, which is missing"),
        (&["s_summarise"], "add `page=… language=…`; `--no-check` gets it without them\n"),
    ] {
        let run = folder.run(&[&["prompt"], arguments].concat());
        assert_eq!((run.code, run.output.as_str()), (6, ""), "{run}");
        assert!(run.messages.contains(message), "{message}: {run}");
        assert!(run.messages.contains("`--no-check` "), "{run}");
    }
    // Seen: `--arg`, which was not typed.
    for (arguments, message) in [
        (&["page=x", "page=y"][..], "error: `page=…` is given twice\n  leave one out\n"),
        (&["page=x", "--arg", "page=y"], "error: `page=…` is given twice\n"),
        (&["page"], "error: an argument is written as `name=value`, and not as `page`\n"),
    ] {
        let run = folder.run(&[&["prompt", "s_summarise"], arguments].concat());
        assert_eq!((run.code, run.messages.as_str().starts_with(message)), (2, true), "{run}");
    }
    let run = folder.run(&["prompt", "s_summarise", "pgae=start", "--no-check"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.output.contains(r#""arguments": {"pgae": "start"}"#), "{run}");
}

#[cfg(target_os = "linux")]
#[test]
fn missing_arguments_of_prompts_are_asked_for() {
    let folder = folder();
    let answers = [("page (string): ", "5\n"), ("language (string): ", "en\n")];
    let shown = on_terminal(&folder, 120, &["prompt", "s_summarise"], &answers);
    assert_eq!(shown.code, 0, "{}", shown.text);
    assert!(shown.text.contains("The page to use\n"), "{}", shown.text);
    assert!(shown.text.contains(r#"{"page": "5", "language": "en"}"#), "{}", shown.text);
    let shown = on_terminal(&folder, 120, &["prompt", "s_summarise", "--yes"], &[]);
    assert_eq!(shown.code, 6, "{}", shown.text);
}

#[test]
fn the_argument_to_complete_has_to_exist() {
    let folder = folder();
    let template = "x://{+folder}/{name:3}{?sort,order*}";
    for (arguments, sent) in [
        (&["s_summarise", "style=s", "--arg", "page=a"][..], r#"{"name": "style", "value": "s"}"#),
        (&[template, "folder"], r#"{"name": "folder", "value": ""}"#),
        (&[template, "order=a", "--arg", "name=b"], r#"{"name": "order", "value": "a"}"#),
        (&["s_summarise", "other", "--no-check"], r#"{"name": "other", "value": ""}"#),
    ] {
        let run = folder.run(&[&["complete"], arguments].concat());
        assert_eq!(run.code, 0, "{run}");
        assert!(run.output.contains(sent), "{run}");
    }
    for (arguments, message) in [
        (&["s_summarise", "pgae=s"][..], "has no argument `pgae`; did you mean `page`?"),
        (&["s_summarise", "page", "--arg", "stile=a"], "did you mean `style`?"),
        (&[template, "zzzzz"], "has no argument `zzzzz`; it has folder, name, sort, order"),
    ] {
        let run = folder.run(&[&["complete"], arguments].concat());
        assert_eq!((run.code, run.output.as_str()), (6, ""), "{run}");
        assert!(run.messages.contains(message), "{message}: {run}");
    }
}

/// As for `call` and `read`: only this server is started, and its own names work.
#[test]
fn complete_takes_a_server() {
    let leaves_a_file = json!({ "command": "/bin/sh", "args": ["-c", "echo > started"] });
    let servers = json!({ "s": canned_server(&results()), "other": leaves_a_file });
    let config = json!({ "mcpServers": servers });
    let folder = Folder::new().file("trunkline.json", config.to_string());
    for name in ["summarise", "x://{+folder}/{name:3}{?sort,order*}"] {
        let argument = if name == "summarise" { "page" } else { "folder" };
        let run = folder.run(&["complete", "--server", "s", name, argument]);
        assert_eq!(run.code, 0, "{run}");
        assert!(run.output.contains(&format!(r#"{{"name": "{argument}""#)), "{run}");
    }
    assert!(!folder.project().join("started").exists());
    let run = folder.run(&["complete", "s", "summarise", "page=x"]);
    assert!(run.code == 0 && run.output.contains(r#""value": "x""#), "{run}");
    let run = folder.run(&["complete", "s", "no-such-prompt", "page"]);
    assert!(run.code == 4 && run.messages.contains("server `s` has no prompt"), "{run}");
    let run = folder.run(&["complete", "--server", "r", "summarise", "page"]);
    assert_eq!(run.code, 4, "{run}");
}
