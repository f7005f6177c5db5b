//! Tokens: created, stored as digests, and required by the gateway.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::serve_http::demo;
use crate::support::gateway::{INITIALIZE, Serving, post, tools_at};
use crate::support::processes::{LONGEST_START, marker, wait_until};
use crate::support::program::Folder;

/// Two demo servers with write access, with agents and a bundle.
fn folder() -> Folder {
    let config = json!({
        "mcpServers": { "words": demo("words", &marker()), "numbers": demo("numbers", &marker()) },
        "access": "read-write",
        "agents": { "reader": { "tools": ["words_*"] }, "adder": { "tools": ["numbers_add"] } },
        "bundles": { "sums": { "serverId": "numbers", "mode": "direct", "allowTools": ["add"] } },
    });
    Folder::new().file("trunkline.json", config.to_string())
}

/// Makes a token in the file `tokens.json` of the folder.
pub(crate) fn add(folder: &Folder, arguments: &[&str]) -> String {
    let run = folder.run(&[&["token", "add", "--file", "tokens.json"], arguments].concat());
    assert_eq!(run.code, 0, "{run}");
    assert!(run.messages.contains("It cannot be shown again"), "{run}");
    let token = run.output.trim_end().to_owned();
    assert!(token.starts_with("trunkline_") && !run.messages.contains(&token), "{run}");
    token
}

fn content(folder: &Folder) -> String {
    fs::read_to_string(folder.project().join("tokens.json")).unwrap()
}

pub(crate) fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[test]
fn a_token_is_shown_once_and_kept_as_a_digest_for_its_owner_only() {
    let folder = Folder::new();
    let run = folder.run(&["token", "add", "ann"]);
    assert_eq!(run.code, 0, "{run}");
    let path = folder.project().join("../home/.config/trunkline/tokens.json");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let kept: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let digest = kept["tokens"]["ann"]["digest"].as_str().unwrap();
    assert!(digest.starts_with("sha256:") && digest.len() == 50, "{digest}");
    assert!(!kept.to_string().contains(run.output.trim_end()));
    let again = folder.run(&["token", "add", "ann"]);
    assert_eq!((again.code, again.output.as_str()), (1, ""), "{again}");
    assert!(again.messages.contains("there is a token `ann`"), "{again}");
    let list = folder.run(&["token", "list"]);
    assert!(list.output.contains("\nann   everything  "), "{list}");
    assert!(!list.output.contains(digest), "{list}");
    let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().flatten().collect();
    assert!(left.iter().all(|it| !it.path().to_string_lossy().ends_with(".new")), "{left:?}");
}

#[test]
fn tokens_are_listed_with_their_scope_and_removed_by_name() {
    let folder = Folder::new();
    let file = ["--file", "tokens.json"];
    add(&folder, &["ann", "--agent", "reader", "--bundle", "a", "--bundle", "b"]);
    add(&folder, &["bob", "--access", "read-only-strict"]);
    let run = folder.run(&[&["token", "list"], &file[..]].concat());
    assert!(run.output.contains("ann   agent reader, bundle a, bundle b  "), "{run}");
    assert!(run.output.contains("bob   read-only-strict  "), "{run}");
    let json = folder.run(&[&["token", "list", "--format", "json"], &file[..]].concat()).json();
    assert_eq!(json["tokens"][0]["bundles"], json!(["a", "b"]));
    let wrong = folder.run(&[&["token", "remove", "bop"], &file[..]].concat());
    assert_eq!(wrong.code, 4, "{wrong}");
    assert!(wrong.messages.contains("did you mean `bob`?"), "{wrong}");
    let removed = folder.run(&[&["token", "remove", "bob"], &file[..]].concat());
    assert_eq!(removed.code, 0, "{removed}");
    assert!(!content(&folder).contains("bob") && content(&folder).contains("ann"));
    for name in ["", " a", "a\nb", &"x".repeat(65)] {
        let run = folder.run(&[&["token", "add", name], &file[..]].concat());
        assert_eq!(run.code, 1, "{name:?}: {run}");
    }
}

#[test]
fn many_at_the_same_time_lose_nothing() {
    let folder = Folder::new();
    let names: Vec<_> = (0..8).map(|number| format!("token{number}")).collect();
    let add = |name| folder.command(&["token", "add", name, "--file", "tokens.json"]);
    let output = || std::process::Stdio::null();
    let running: Vec<_> = names
        .iter()
        .map(|name| add(name).stdout(output()).stderr(output()).spawn().unwrap())
        .collect();
    for mut process in running {
        assert!(process.wait().unwrap().success());
    }
    assert!(names.iter().all(|name| content(&folder).contains(name)));
}

#[test]
fn token_admits_its_scope_and_nothing_else() {
    let folder = folder();
    let ann = add(&folder, &["ann", "--agent", "reader"]);
    let bob = add(&folder, &["bob", "--access", "read-only"]);
    let eve = add(&folder, &["eve", "--bundle", "sums"]);
    let serving = Serving::start(&folder, &["--tokens", "tokens.json"]);
    let url = serving.url();
    serving.wait_for(r#""headers": { "Authorization": "Bearer TOKEN" }"#);

    let seen = tools_at(&folder, url, Some(&ann));
    assert_eq!(seen, ["words_count_words", "words_remember", "words_shout"]);
    let seen = tools_at(&folder, url, Some(&bob));
    assert!(seen.contains(&"numbers_add".to_owned()), "{seen:?}");
    assert!(!seen.contains(&"words_remember".to_owned()), "{seen:?}");
    assert_eq!(tools_at(&folder, url, Some(&eve)), ["numbers_add"]);

    let other = format!("{url}/agents/adder");
    let status = |url: &str, token| post(url, &[("authorization", &bearer(token))], INITIALIZE).0;
    // The endpoint and the token each allow only items that the other does not: none is in both.
    assert_eq!(tools_at(&folder, &other, Some(&ann)), [""; 0]);
    assert_eq!(tools_at(&folder, &other, Some(&bob)), ["numbers_add"]);
    assert_eq!(status(&format!("{url}/agents/reader"), &ann), 200);
    assert_eq!(status(&other, &bob), 200);
    let (code, answer) = post(url, &[], INITIALIZE);
    assert!(code == 401 && answer.contains("\r\nwww-authenticate: Bearer\r\n"), "{answer}");
    let (code, answer) = post(url, &[("authorization", "Bearer trunkline_no")], INITIALIZE);
    assert!(code == 401 && answer.contains("error=\"invalid_token\""), "{answer}");

    let (code, all) = serving.ended_by("TERM");
    assert_eq!(code, Some(0));
    let kept: Value = serde_json::from_str(&content(&folder)).unwrap();
    for (name, token) in [("ann", &ann), ("bob", &bob), ("eve", &eve)] {
        let digest = kept["tokens"][name]["digest"].as_str().unwrap();
        assert!(!all.contains(token.as_str()) && !all.contains(digest), "{all}");
    }
}

#[test]
fn a_token_that_is_added_or_removed_counts_while_the_gateway_runs() {
    let folder = folder();
    let ann = add(&folder, &["ann"]);
    let serving = Serving::start(&folder, &["--tokens", "tokens.json"]);
    let status =
        |token: &str| post(serving.url(), &[("authorization", &bearer(token))], INITIALIZE).0;
    assert_eq!(status(&ann), 200);
    let bob = add(&folder, &["bob"]);
    wait_until("the new one is let in", LONGEST_START, || status(&bob) == 200);
    let remove = |name| folder.run(&["token", "remove", name, "--file", "tokens.json"]);
    assert_eq!(remove("ann").code, 0);
    wait_until("the removed one is not", LONGEST_START, || status(&ann) == 401);
    assert_eq!(status(&bob), 200);
    fs::write(folder.project().join("tokens.json"), "{").unwrap();
    serving.wait_for("the tokens that were there before are still accepted");
    assert_eq!(status(&bob), 200);
    fs::write(folder.project().join("tokens.json"), r#"{"tokens":{}}"#).unwrap();
    wait_until("the last is gone", LONGEST_START, || status(&bob) == 401);
    assert_eq!(post(serving.url(), &[], INITIALIZE).0, 401);
}

#[test]
fn request_rate_of_a_token_is_limited() {
    let folder = folder();
    let (ann, bob) = (add(&folder, &["ann"]), add(&folder, &["bob"]));
    let serving = Serving::start(&folder, &["--tokens", "tokens.json", "--rate", "1"]);
    let ask = |token: &str| post(serving.url(), &[("authorization", &bearer(token))], "{}");
    let answers: Vec<_> = (0..10).map(|_| ask(&ann)).collect();
    let refused = answers.iter().find(|(status, _)| *status == 429);
    let (_, answer) = refused.expect("one is refused");
    assert!(answer.contains("retry-after: 1"), "{answer}");
    assert_ne!(ask(&bob).0, 429);
}

#[test]
fn a_file_that_cannot_be_used_starts_nothing_and_is_explained() {
    let serve = |folder: &Folder| {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--tokens", "tokens.json"];
        let run = folder.run(&arguments);
        assert_eq!((run.code, run.output.as_str()), (1, ""), "{run}");
        assert!(run.messages.contains("[folder]/project/tokens.json"), "{run}");
        run.messages
    };
    assert!(serve(&folder()).contains("there are no tokens in"));
    let digest = "sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    for (text, said) in [
        ("{ oops".to_owned(), "not JSON: line 1"),
        (r#"{"tokens":{}}"#.to_owned(), "`trunkline token add NAME --file"),
        (
            json!({ "tokens": { "a": { "digest": digest, "agnet": "x" } } }).to_string(),
            "did you mean `agent`?",
        ),
        (
            json!({ "tokens": { "a": { "digest": "trunkline_abc" } } }).to_string(),
            "`digest` is not what",
        ),
        (
            json!({ "tokens": { "a": { "digest": digest, "access": "all" } } }).to_string(),
            "`access` has to be one of",
        ),
    ] {
        let said_of_it = serve(&folder().file("tokens.json", text));
        assert!(said_of_it.contains(said), "{said} is missing in {said_of_it}");
        assert!(!said_of_it.contains("trunkline_abc"), "{said_of_it}");
    }
}

#[test]
fn readable_token_file_and_unknown_agent_are_warned_about() {
    let folder = folder();
    add(&folder, &["ann", "--agent", "raeder"]);
    let path = folder.project().join("tokens.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let serving = Serving::start(&folder, &["--tokens", "tokens.json"]);
    serving.wait_for("others can read or change");
    serving.wait_for("chmod 600");
    serving.wait_for(
        "the token `ann` is of no use: there is no agent `raeder`; did you mean `reader`?",
    );
}

#[test]
fn a_token_that_a_change_makes_useless_is_warned_about() {
    let folder = folder();
    add(&folder, &["ann", "--agent", "reader"]);
    let serving = Serving::start(&folder, &["--tokens", "tokens.json"]);
    let config = json!({ "mcpServers": { "words": demo("words", &marker()) } });
    fs::write(folder.project().join("trunkline.json"), config.to_string()).unwrap();
    folder.trust();
    serving.wait_for("the token `ann` is of no use: there is no agent `reader`");
    add(&folder, &["bob", "--bundle", "sums"]);
    serving.wait_for("the token `bob` is of no use: there is no bundle `sums`");
}

#[test]
fn duplicate_token_is_rejected_with_the_command_to_remove_it() {
    let folder = folder();
    add(&folder, &["ann"]);
    let again = folder.run(&["token", "add", "ann", "--file", "tokens.json"]);
    assert_eq!(again.code, 1, "{again}");
    let advice = "`trunkline token remove ann --file [folder]/project/tokens.json` removes it";
    assert!(again.messages.contains(advice), "{again}");
}

#[test]
fn an_address_that_others_reach_is_served_with_tokens() {
    let folder = folder();
    let ann = add(&folder, &["ann"]);
    let serving =
        Serving::start_with(&folder, &["--listen", "0.0.0.0:0", "--tokens", "tokens.json"]);
    assert!(serving.url().starts_with("http://127.0.0.1:"), "{}", serving.url());
    serving.wait_for("`--allow-host NAME` allows one");
    assert_eq!(post(serving.url(), &[], INITIALIZE).0, 401);
    assert_eq!(post(serving.url(), &[("authorization", &bearer(&ann))], INITIALIZE).0, 200);
}
