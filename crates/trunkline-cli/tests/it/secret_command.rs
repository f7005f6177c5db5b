//! `trunkline secret`: values go in and are never printed.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::program::Folder;
use crate::support::secrets::{CANARY, command, run, run_with_input, set, write_own_config};

#[test]
fn secrets_are_stored_listed_and_removed() {
    let folder = Folder::new();
    insta::assert_snapshot!("secret set", set(&folder, "GITHUB_TOKEN", CANARY));
    set(&folder, "CI", "x\r\n");
    insta::assert_snapshot!("secret list", run(&folder, &["secret", "list"]));
    let json = run(&folder, &["secret", "list", "--format", "json"]).json();
    assert_eq!(json["secrets"], json!(["CI", "GITHUB_TOKEN"]));
    assert_eq!((&json["logins"], &json["store"]["kind"]), (&json!(0), &json!("file")));
    insta::assert_snapshot!("secret store", run(&folder, &["secret", "store"]));
    let wrong = run(&folder, &["secret", "remove", "GITHUB_TOKEM"]);
    assert_eq!(wrong.code, 4);
    assert!(wrong.messages.contains("did you mean `GITHUB_TOKEN`?"), "{wrong}");
    insta::assert_snapshot!("secret remove", run(&folder, &["secret", "remove", "GITHUB_TOKEN"]));
    assert_eq!(run(&folder, &["secret", "list"]).output, "CI\n");
}

#[test]
fn no_output_contains_a_value() {
    let folder = Folder::new();
    for level in ["-q", "-v", "-vvv"] {
        let run_at = |arguments: &[&str]| {
            let mut command = command(&folder, &[&[level], arguments].concat());
            command.env("TRUNKLINE_SECRETS_PASSPHRASE", format!("pass {CANARY}"));
            run_with_input(&folder, command, CANARY.as_bytes())
        };
        for arguments in [
            &["secret", "set", "A"][..],
            &["secret", "list", "--format", "json"],
            &["secret", "store"],
            &["secret", "set", "B"],
            &["secret", "remove", "B"],
            &["secret", "migrate", "--to", "keychain"],
        ] {
            let run = run_at(arguments);
            assert!(!run.to_string().contains("canary"), "{level} {arguments:?}: {run}");
        }
    }
}

#[test]
fn values_and_names_that_do_not_fit_are_refused() {
    let folder = Folder::new();
    let largest = "x".repeat(64 << 10);
    assert_eq!(set(&folder, "A", &format!("{largest}\n")).code, 0);
    for (name, value, problem) in [
        ("A", format!("{largest}y"), "the value has more than 64 KiB; nothing is stored"),
        ("A", String::new(), "the value is empty; nothing is stored"),
        ("A", "\n".to_owned(), "the value is empty; nothing is stored"),
        ("a b", "x".to_owned(), "`a b` cannot be the name of a secret"),
        ("a/b", "x".to_owned(), "`a/b` cannot be the name of a secret"),
    ] {
        let run = set(&folder, name, &value);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.messages.contains(problem), "{run}");
    }
    let invalid = run_with_input(&folder, command(&folder, &["secret", "set", "A"]), b"\xff\xfe");
    assert_eq!(invalid.code, 1);
    assert!(invalid.messages.contains("the value is not UTF-8"), "{invalid}");
}

#[test]
fn a_typed_value_is_not_echoed() {
    let folder = Folder::new();
    let program = command(&folder, &["secret", "set", "TOKEN"]);
    let words = program.get_args().map(|word| word.to_str().unwrap());
    let line = [env!("CARGO_BIN_EXE_trunkline")].into_iter().chain(words).collect::<Vec<_>>();
    let mut script = Command::new("script");
    script.args(["-qec", &line.join(" "), "/dev/null"]).current_dir(folder.project()).env_clear();
    script.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let piped = || Stdio::piped();
    let mut child = script.stdin(piped()).stdout(piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut shown = Vec::new();
    let mut byte = [0];
    while !shown.ends_with(b"Value of TOKEN: ") && output.read(&mut byte).unwrap() == 1 {
        shown.push(byte[0]);
    }
    // The prompt comes first; whatever is typed before the echo is off is discarded.
    std::thread::sleep(std::time::Duration::from_millis(300));
    input.write_all(b"wrong\x15hunter2-canary\r").unwrap();
    output.read_to_end(&mut shown).unwrap();
    assert!(child.wait().unwrap().success());
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("is stored in") && !shown.contains("canary"), "{shown}");
}

#[test]
fn a_wrong_passphrase_changes_nothing() {
    let folder = Folder::new();
    let with = |passphrase: &str, arguments: &[&str]| {
        let mut command = command(&folder, arguments);
        command.env("TRUNKLINE_SECRETS_PASSPHRASE", passphrase);
        run_with_input(&folder, command, b"value")
    };
    assert_eq!(with("correct", &["secret", "set", "A"]).code, 0);
    let wrong = with("canary", &["secret", "set", "B"]);
    insta::assert_snapshot!("secret set with a wrong passphrase", wrong);
    let without = run(&folder, &["secret", "list"]);
    assert_eq!(without.code, 1);
    assert!(without.messages.contains("is encrypted with a passphrase"), "{without}");
    assert_eq!(with("correct", &["secret", "list"]).output, "A\n");
    let mut both = command(&folder, &["secret", "list"]);
    both.env("TRUNKLINE_SECRETS_PASSPHRASE", "correct").env("TRUNKLINE_SECRETS_KEY_FILE", "x");
    let both = folder.finish(&mut both);
    assert!(both.messages.contains("several of TRUNKLINE_SECRETS_PASSPHRASE"), "{both}");
}

#[test]
fn a_damaged_store_is_an_error_for_programs_too() {
    let folder = Folder::new();
    set(&folder, "A", "value");
    let identity = folder.project().join("../home/.local/state/trunkline/secrets/identity.age");
    fs::write(identity, "").unwrap();
    let run = run(&folder, &["secret", "list", "--format", "json"]);
    assert_eq!(run.code, 1, "{run}");
    let error = &run.json()["error"];
    assert_eq!(error["kind"], "store");
    assert!(error["message"].as_str().unwrap().contains("identity.age is damaged"), "{run}");
}

#[test]
fn a_keychain_that_is_configured_is_not_replaced_by_files() {
    let folder = Folder::new();
    write_own_config(&folder, r#"{ "secrets": { "store": "keychain" } }"#);
    let run = set(&folder, "A", "value");
    assert_eq!(run.code, 1, "{run}");
    assert!(run.messages.contains("the keychain cannot be"), "{run}");
    assert!(run.messages.contains(r#""secrets": { "store": "file" }"#), "{run}");
}

/// A found file replaces the user's own file for servers, and must not for secrets.
#[test]
fn a_found_file_cannot_choose_the_store() {
    let folder = Folder::new()
        .file("trunkline.json", r#"{ "mcpServers": {}, "secrets": { "store": "file" } }"#);
    write_own_config(&folder, r#"{ "secrets": { "store": "keychain" } }"#);
    let store = run(&folder, &["secret", "store", "--format", "json"]).json();
    assert_eq!(store["reason"], "`secrets.store` in the configuration is `keychain`");
    let check = run(&folder, &["check"]);
    assert!(check.output.contains("`secrets` has no effect in a file that was found"), "{check}");
    let named =
        run(&folder, &["secret", "store", "--config", "trunkline.json", "--format", "json"]);
    assert_eq!(named.json()["kind"], "file");
}

#[test]
fn a_choice_that_cannot_be_read_leaves_no_store() {
    for text in [r#"{ "secrets": { "store": "keychian" } }"#, r#"{ "secrets": "#] {
        let folder = Folder::new();
        write_own_config(&folder, text);
        let run = set(&folder, "A", "value");
        assert_eq!(run.code, 1, "{run}");
        assert!(run.messages.contains("the store for secrets is not known"), "{run}");
        assert!(!folder.project().join("../home/.local/state/trunkline/secrets").exists());
    }
}

#[test]
fn a_key_file_that_others_can_read_is_refused() {
    let folder = Folder::new().file("key.txt", "AGE-SECRET-KEY-1QQQ\n");
    let mut command = command(&folder, &["secret", "set", "A"]);
    command.env("TRUNKLINE_SECRETS_KEY_FILE", "key.txt");
    let run = run_with_input(&folder, command, b"value");
    assert_eq!(run.code, 1, "{run}");
    assert!(run.messages.contains("key.txt is open to other users and is not used"), "{run}");
    assert!(run.messages.contains("chmod 600"), "{run}");
}
