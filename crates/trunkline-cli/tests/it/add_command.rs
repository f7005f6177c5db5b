//! `trunkline add`, `remove` and `uninstall`: entries that `check` reports, and what stays in a file.

use std::fs;

use crate::import_command::{home, own_file, own_servers, write};
use crate::support::program::Folder;

/// Seen: entries were written that `check` refuses.
#[test]
fn an_entry_that_starts_this_program_again_is_not_added() {
    let folder = Folder::new();
    let program = env!("CARGO_BIN_EXE_trunkline");
    for program in ["trunkline", program] {
        let run = folder.run(&["add", "own", "--", program, "serve", "--stdio"]);
        assert!(run.code == 1 && run.messages.contains("error[starts-itself]"), "{run}");
        assert!(run.messages.contains("the server is not added"), "{run}");
        assert!(!own_file(&folder).exists(), "{run}");
    }
    // The same for a file that exists, and for one of the project.
    assert_eq!(folder.run(&["add", "time", "--", "uvx", "mcp-server-time"]).code, 0);
    let before = fs::read_to_string(own_file(&folder)).unwrap();
    let run = folder.run(&["add", "own", "--", program, "serve", "--stdio"]);
    assert!(run.code == 1 && run.messages.contains("error[starts-itself]"), "{run}");
    assert_eq!(fs::read_to_string(own_file(&folder)).unwrap(), before);
    let run = folder.run(&["add", "own", "--project", "--", program, "serve", "--stdio"]);
    assert!(run.code == 1 && !folder.project().join("trunkline.json").exists(), "{run}");
    // `connect` joins the service, which would start it for this configuration.
    let project = folder.project();
    for words in [&["connect"][..], &["connect", "--project", project.to_str().unwrap()]] {
        let run = folder.run(&[&["add", "own", "--", program], words].concat());
        assert!(run.code == 1 && run.messages.contains("error[starts-itself]"), "{run}");
    }
    // Trunkline with another configuration is a server as any other.
    write(&folder.project().join("other.json"), r#"{ "mcpServers": {} }"#);
    let other = ["add", "own", "--", program, "serve", "--stdio", "--config", "other.json"];
    let run = folder.run(&other);
    assert_eq!(run.code, 0, "{run}");
}

/// Seen: a whole command line as the name of a program, and no word about it.
#[test]
fn warnings_on_a_new_entry_are_printed() {
    let folder = Folder::new();
    let run = folder.run(&["add", "line", "--", "npx -y foo"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.messages.contains("warning[command-line]"), "{run}");
    assert!(
        run.messages.contains(r#"write it as `"command": "npx", "args": ["-y","foo"]`"#),
        "{run}"
    );
    // Problems of other servers in the file are not those of the new one.
    let run =
        folder.run(&["add", "own", "--", env!("CARGO_BIN_EXE_trunkline"), "demo-server", "words"]);
    assert!(run.code == 0 && !run.messages.contains("warning"), "{run}");
    let run = folder.run(&["add", "quiet", "-q", "--", "npx -y foo"]);
    assert!(run.code == 0 && run.messages.is_empty(), "{run}");
}

/// Seen: a credential on the command line was written into the file without a note.
#[test]
fn a_credential_in_plain_text_is_noted() {
    const TOKEN: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let folder = Folder::new();
    let header = format!("Authorization: Bearer {TOKEN}");
    let url = format!("https://example.com/mcp?api_key={TOKEN}");
    let variable = format!("TOKEN={TOKEN}");
    let program = env!("CARGO_BIN_EXE_trunkline");
    let plain =
        ["add", "plain", "https://example.com/mcp", "--header", "Authorization: Bearer ${TOKEN}"];
    let cases: [(&[&str], &str); 3] = [
        (
            &["add", "h", "https://example.com/mcp", "--header", &header],
            "note: h: Authorization is",
        ),
        (&["add", "u", &url], "note: u: `url` has"),
        (
            &["add", "e", "--env", &variable, "--", program, "demo-server", "words"],
            "note: e: TOKEN is",
        ),
    ];
    for (arguments, note) in cases {
        let run = folder.run(arguments);
        assert!(run.code == 0 && !run.to_string().contains(TOKEN), "{run}");
        let note = format!("{note} a credential in plain text");
        assert!(run.messages.contains(&note), "{note}: {run}");
        assert!(run.messages.contains("`trunkline secret set NAME`"), "{run}");
        assert!(run.messages.contains("`${secret:NAME}` or `${VARIABLE}`"), "{run}");
    }
    let run = folder.run(&plain);
    assert!(run.code == 0 && !run.messages.contains("credential"), "{run}");
    assert_eq!(own_servers(&folder)["e"]["env"]["TOKEN"], TOKEN);
}

/// Seen: the advice was a command that does not show the server.
#[test]
fn remove_names_the_option_for_a_server_in_the_file_of_the_user() {
    let folder = Folder::new();
    assert_eq!(folder.run(&["add", "gh", "--user", "--", "gh-mcp"]).code, 0);
    assert_eq!(folder.run(&["init"]).code, 0);
    let run = folder.run(&["remove", "gh"]);
    assert_eq!(run.code, 4, "{run}");
    assert!(run.messages.contains("`trunkline remove gh --user` removes the one in "), "{run}");
    assert_eq!(folder.run(&["remove", "gh", "--user"]).code, 0);
}

/// Seen: `uninstall` left an object that was not there before `install`.
#[test]
fn uninstall_leaves_no_empty_object_among_other_settings() {
    let folder = Folder::new();
    let path = home(&folder).join(".config/zed/settings.json");
    let before = "{\n  \"theme\": \"x\"\n}\n";
    write(&path, before);
    assert_eq!(folder.run(&["install", "zed"]).code, 0);
    assert!(fs::read_to_string(&path).unwrap().contains("context_servers"));
    let run = folder.run(&["uninstall", "zed"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

/// Seen: the name was `***` in the warning.
#[test]
fn the_name_of_a_server_is_shown_in_diagnostics() {
    let folder = Folder::new();
    let add = |name: &str| {
        let mut command = folder.command(&["add", name, "--", "nosuch"]);
        folder.finish(command.env("PATH", "/usr/bin"))
    };
    let run = add("ok!");
    assert_eq!(run.code, 0, "{run}");
    assert!(run.messages.contains("server `ok!`: the program `nosuch` is in none"), "{run}");
    // A credential in the place of a name is not.
    let run = add("ghp_0123456789abcdefghij");
    assert!(run.messages.contains("server `***`: the program"), "{run}");
}
