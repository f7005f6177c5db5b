//! Behaviour of all commands: help, usage errors, colours, pipes, full disks.

use std::process::Stdio;

use trunkline_testkit::samples;

use crate::support::program::Folder;

#[test]
fn help_teaches() {
    let folder = Folder::new();
    for arguments in [
        &["--help"][..],
        &["check", "--help"],
        &["config", "--help"],
        &["status", "--help"],
        &["tools", "--help"],
        &["call", "--help"],
        &["resources", "--help"],
        &["read", "--help"],
        &["prompts", "--help"],
        &["prompt", "--help"],
        &["complete", "--help"],
        &["explain", "--help"],
        &["serve", "--help"],
        &["token", "--help"],
        &["token", "add", "--help"],
        &["token", "list", "--help"],
        &["token", "remove", "--help"],
        &["login", "--help"],
        &["logout", "--help"],
        &["secret", "--help"],
        &["secret", "set", "--help"],
        &["secret", "list", "--help"],
        &["secret", "remove", "--help"],
        &["secret", "migrate", "--help"],
        &["secret", "store", "--help"],
        &["trust", "--help"],
        &["demo", "--help"],
        &["connect", "--help"],
        &["up", "--help"],
        &["down", "--help"],
        &["ps", "--help"],
        &["restart", "--help"],
        &["logs", "--help"],
        &["schema", "--help"],
        &["completions", "--help"],
    ] {
        let run = folder.run(arguments);
        assert_eq!(run.code, 0);
        assert!(run.output.contains("\nExample"), "{arguments:?} has no example");
        insta::assert_snapshot!(arguments.join(" "), run.output);
    }
}

#[test]
fn every_command_and_every_exit_code_is_documented() {
    let documented = include_str!("../../../../docs/commands.md");
    let help = Folder::new().run(&["--help"]).output;
    let section = |start: &str| help.split_once(start).unwrap().1.split_once("\n\n").unwrap().0;
    for line in section("Commands:\n").lines() {
        let command = line.split_whitespace().next().unwrap();
        let is_there = documented.contains(&format!("trunkline {command}"))
            || documented.lines().any(|it| it.starts_with("## ") && it.contains(command));
        assert!(is_there || command == "help", "{command} is not documented");
    }
    for line in section("Exit codes:\n").lines() {
        let code = line.split_whitespace().next().unwrap();
        assert!(documented.contains(&format!("\n| {code} | ")), "{line} is not documented");
    }
}

#[test]
fn a_wrong_command_is_corrected_with_exit_code_two() {
    let run = Folder::new().run(&["chekc"]);
    assert_eq!(run.code, 2);
    assert!(run.messages.contains("check"), "{run}");
}

#[test]
fn two_files_to_check_are_refused() {
    for arguments in [["check", "--config", "a", "b"], ["--config", "a", "check", "b"]] {
        let run = Folder::new().run(&arguments);
        assert_eq!(run.code, 2);
        assert!(run.messages.contains("not both"), "{run}");
    }
}

#[test]
fn manual_pages_are_written() {
    let folder = Folder::new();
    let run = folder.run(&["man"]);
    assert!(run.code == 0 && run.output.contains(".TH trunkline 1"), "{run}");
    let run = folder.run(&["man", "pages"]);
    assert!(run.code == 0 && run.messages.contains("pages written to"), "{run}");
    let page = std::fs::read_to_string(folder.project().join("pages/trunkline-call.1")).unwrap();
    assert!(page.contains("key=@file") && page.contains("\\-\\-no\\-check"), "{page}");
    assert_eq!(folder.run(&["man", "--install"]).code, 0);
    let home = folder.project().with_file_name("home");
    assert!(home.join(".local/share/man/man1/trunkline.1").is_file());
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let run = Folder::new().run(&["completions", shell]);
        assert_eq!((run.code, run.messages.as_str()), (0, ""), "{run}");
        assert!(run.output.contains("trunkline complete-line -- "), "{shell}");
    }
}

#[test]
fn bash_accepts_its_completions() {
    let folder = Folder::new();
    let script = folder.run(&["completions", "bash"]).output;
    let folder = folder.file("completions.bash", script);
    let status = std::process::Command::new("bash")
        .args(["-n", "completions.bash"])
        .current_dir(folder.project())
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn colours_are_used_only_on_request_or_on_a_terminal() {
    let folder = Folder::new().file("trunkline.json", r#"{ "mcpServers": { "s": {} } }"#);
    let colored = |arguments: &[&str], variable: Option<&str>| {
        let mut command = folder.command(arguments);
        if let Some(name) = variable {
            command.env(name, "1");
        }
        folder.finish(&mut command).output.contains('\u{1b}')
    };
    assert!(!colored(&["check"], None));
    assert!(colored(&["check", "--color", "always"], None));
    assert!(colored(&["check"], Some("CLICOLOR_FORCE")));
    assert!(!colored(&["check", "--color", "never"], Some("CLICOLOR_FORCE")));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new();
    for arguments in [&["schema"][..], &["--help"], &["completions", "bash"]] {
        let mut child = folder
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {:?}", output.status);
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[cfg_attr(not(target_os = "linux"), ignore = "needs /dev/full")]
#[test]
fn full_disk_is_reported_as_an_error() {
    let folder = Folder::new().file("trunkline.json", samples::BOOCODE.text);
    for arguments in [&["schema"][..], &["config"], &["check", "--format", "json"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = folder.command(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let messages = String::from_utf8_lossy(&output.stderr);
        let expected = "error: standard output cannot be written: No space left on device";
        assert!(messages.contains(expected), "{messages}");
    }
}

/// Regression: the system ended the program with SIGXFSZ, without a message, and no server was
/// stopped.
#[cfg(target_os = "linux")]
#[test]
fn file_size_limit_is_reported_as_an_error() {
    let folder = Folder::new();
    let program = folder.command(&["schema"]);
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg("ulimit -f 0; \"$0\" \"$@\" > schema.json");
    shell.arg(program.get_program()).args(program.get_args()).current_dir(folder.project());
    let run = folder.finish(&mut shell);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.messages.contains("standard output cannot be written: File too large"), "{run}");
}

#[test]
fn a_working_directory_that_is_gone_is_survived() {
    let folder = Folder::new().file("sub/x", "");
    let mut command = folder.command(&["check"]);
    let script = "rmdir_target=\"$PWD\"; rm -r \"$rmdir_target\"; exec \"$0\" \"$@\"";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script]).arg(command.get_program()).args(command.get_args());
    shell.current_dir(folder.project().join("sub")).env_clear();
    let run = folder.finish(&mut shell);
    assert_eq!(run.code, 0, "{run}");
    let _ = command.current_dir("/");
}
