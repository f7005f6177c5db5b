//! `trunkline check`, with all kinds of problems in a file.

use std::os::unix::ffi::OsStrExt as _;

use trunkline_testkit::samples;

use crate::support::program::Folder;

const MIXED: &str = r#"{
  "mcpServers": {
    "time": { "command": "uvx", "args": ["mcp-server-time"] },
    "typo": { "comand": "npx", "env": { "TOKEN": "handwritten" }, "args": "x" },
    "both": { "command": "x", "url": "https://example.com" }
  }
}
"#;

#[test]
fn valid_file_is_reported_as_valid() {
    let folder = Folder::new().file("trunkline.json", samples::DISPATCH.text);
    insta::assert_snapshot!(folder.run(&["check"]));
}

#[test]
fn all_problems_are_shown_and_handwritten_secrets_are_not() {
    let run = Folder::new().file("trunkline.json", MIXED).run(&["check"]);
    assert!(!run.output.contains("handwritten"));
    insta::assert_snapshot!(run);
}

#[test]
fn quiet_shows_errors_only_and_verbose_shows_notes() {
    let text = r#"{ "mcpServers": { "s": { "command": "x", "title": "T", "odd": 1 } } }"#;
    let folder = Folder::new().file("mcp.json", text);
    let quiet = folder.run(&["check", "-q", "mcp.json"]);
    assert_eq!((quiet.code, quiet.output.as_str()), (0, ""));
    let normal = folder.run(&["check", "mcp.json"]);
    assert!(normal.output.contains("hint[unknown-key]") && !normal.output.contains("note["));
    let verbose = folder.run(&["check", "-v", "mcp.json"]);
    assert!(verbose.output.contains("note[foreign-key]"));
}

#[test]
fn strict_fails_on_hints() {
    let text = r#"{ "mcpServers": { "s": { "command": "x", "odd": 1 } } }"#;
    let folder = Folder::new().file("mcp.json", text);
    assert_eq!(folder.run(&["check", "mcp.json"]).code, 0);
    assert_eq!(folder.run(&["check", "--strict", "mcp.json"]).code, 1);
    let quiet = folder.run(&["check", "--strict", "-q", "mcp.json"]);
    assert!(quiet.code == 1 && quiet.output.contains("unknown-key"), "{quiet}");
}

#[test]
fn machines_get_json() {
    let run = Folder::new().file("trunkline.json", MIXED).run(&["check", "--format", "json"]);
    assert_eq!(run.code, 1);
    let json = run.json();
    assert_eq!(json["ok"], false);
    assert_eq!(json["servers"][0]["name"], "time");
    assert_eq!(json["servers"][0]["usable"], true);
    assert_eq!(json["counts"]["errors"], 2);
    let problem = json["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .find(|problem| problem["code"] == "command-and-url");
    let problem = problem.unwrap();
    assert_eq!(problem["file"], "trunkline.json");
    assert_eq!((problem["line"].as_u64(), problem["column"].as_u64()), (Some(5), Some(31)));
    assert_eq!(problem["server"], "both");
    assert_eq!(problem["related"][0]["line"], 5);
}

#[test]
fn nothing_found_is_not_an_error() {
    insta::assert_snapshot!(Folder::new().run(&["check"]));
}

#[test]
fn a_missing_file_is_named() {
    insta::assert_snapshot!(Folder::new().run(&["check", "gone.json"]));
}

#[test]
fn a_missing_file_of_a_variable_is_named_with_the_variable() {
    let folder = Folder::new();
    let mut command = folder.command(&["check"]);
    insta::assert_snapshot!(folder.finish(command.env("TRUNKLINE_CONFIG", "gone.json")));
}

#[test]
fn a_directory_is_not_a_file() {
    let folder = Folder::new().file("some/file", "");
    insta::assert_snapshot!(folder.run(&["check", "some"]));
}

#[test]
fn a_file_without_permission_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new().file("secret.json", "{}");
    let path = folder.project().join("secret.json");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = folder.command(&["check", "secret.json"]);
    if std::fs::read(&path).is_ok() {
        // Root may read everything, so the test runs as another user.
        let program = folder.project().join("trunkline");
        std::fs::copy(command.get_program(), &program).unwrap();
        command = std::process::Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
        command.args(["check", "secret.json"]).current_dir(folder.project());
    }
    let run = folder.finish(&mut command);
    assert_eq!(run.code, 1);
    assert!(run.output.contains("error[file-unreadable]"), "{run}");
}

#[test]
fn empty_file_array_and_invalid_utf8_have_distinct_messages() {
    let folder = Folder::new()
        .file("empty.json", "")
        .file("array.json", "[1]")
        .file("bytes.json", b"{ \"a\": \"\xff\xfe\" }")
        .file("utf16.json", b"\xff\xfe{\0}\0");
    for (file, code) in [
        ("empty.json", "error[empty-file]"),
        ("array.json", "error[not-an-object]"),
        ("bytes.json", "error[not-utf8]"),
        ("utf16.json", "error[not-utf8]"),
    ] {
        let run = folder.run(&["check", file]);
        assert_eq!(run.code, 1, "{file}");
        assert!(run.output.contains(code) && run.output.contains(file), "{run}");
    }
}

#[test]
fn an_endless_file_is_refused() {
    let run = Folder::new().run(&["check", "/dev/zero"]);
    assert_eq!(run.code, 1);
    assert!(run.output.contains("error[file-unreadable]"), "{run}");
    assert!(run.output.contains("/dev/zero cannot be read: it is not a regular file"), "{run}");
}

#[test]
fn the_shadowed_file_of_a_folder_is_warned_about() {
    let folder = Folder::new()
        .file(".dispatch/mcp.json", samples::DISPATCH.text)
        .file("opencode.json", samples::DISPATCH_OPENCODE.text);
    insta::assert_snapshot!(folder.run(&["check"]));
}

#[test]
fn inline_configuration_goes_over_the_file() {
    let folder = Folder::new().file(".mcp.json", samples::CLAUDE_DESKTOP.text);
    let mut command = folder.command(&["check", "--strict"]);
    command.env("TRUNKLINE_CONFIG_JSON", r#"{"mcpServers":{"filesystem":{"command":1}}}"#);
    insta::assert_snapshot!(folder.finish(&mut command));
}

#[test]
fn file_with_a_non_utf8_name_is_read() {
    let folder = Folder::new();
    let name = std::ffi::OsStr::from_bytes(b"odd-\xff.json");
    std::fs::write(folder.project().join(name), "{}").unwrap();
    let mut command = folder.command(&["check"]);
    assert_eq!(folder.finish(command.arg(name)).code, 0);
    let mut command = folder.command(&["check"]);
    assert_eq!(folder.finish(command.env("TRUNKLINE_CONFIG", name)).code, 0);
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_passed_over() {
    let folder = Folder::new();
    let made =
        std::process::Command::new("mkfifo").arg(folder.project().join(".mcp.json")).status();
    assert!(made.unwrap().success());
    let run = folder.run(&["check"]);
    assert_eq!(run.code, 0, "{run}");
    let said = run.messages.clone() + &run.output;
    assert!(said.contains(".mcp.json") && said.contains("it is passed over"), "{run}");
}

#[test]
fn exit_code_is_kept_when_the_output_pipe_closes() {
    let text =
        trunkline_testkit::generate::configuration(3000, trunkline_testkit::generate::Entries::Bad);
    let folder = Folder::new().file("many.json", text);
    let mut child = folder
        .command(&["check", "many.json"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
