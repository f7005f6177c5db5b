//! Completion of command lines, by the program and by the scripts for shells.

use std::process::Command;

use serde_json::json;
use trunkline_testkit::peers;

use crate::support::program::Folder;

/// A project with the reference server and a demo server, whose lists are cached.
fn folder() -> Folder {
    let package = "@modelcontextprotocol/server-everything/dist/index.js";
    let script = peers::node_modules().join(package);
    let program = env!("CARGO_BIN_EXE_trunkline");
    let servers = json!({
        "everything": { "command": "node", "args": [script, "stdio"], "connect": "eager" },
        "words": { "command": program, "args": ["demo-server", "words"] },
        "off": { "command": "/bin/sh", "args": ["-c", "touch started"], "connect": "eager" },
    });
    let config = json!({
        "mcpServers": servers,
        "agents": { "reader": { "tools": ["*"] } },
        "bundles": { "loud": { "serverId": "words" } },
    });
    let other = json!({ "mcpServers": { "elsewhere": { "command": "x" } } });
    let folder = Folder::new()
        .file("trunkline.json", config.to_string())
        .file("other.json", other.to_string());
    for command in ["tools", "prompts", "resources"] {
        assert_eq!(folder.run(&[command, "everything"]).code, 0);
    }
    assert_eq!(folder.run(&["tools", "words"]).code, 0);
    folder
}

#[test]
fn servers_tools_arguments_and_values_are_completed() {
    let folder = folder();
    for (line, expected) in [
        ("trunkline too", "tool\ntools\n"),
        ("trunkline call words_s", "words_shout\n"),
        ("trunkline call words ", "count_words\nremember\nshout\n"),
        ("trunkline call words shout ", "text=\n"),
        ("trunkline call words_shout text=x ", ""),
        ("trunkline call everything get-structured-content location=Ch", "location=Chicago\n"),
        (
            "trunkline call everything get-annotated-message includeImage=",
            "includeImage=false\nincludeImage=true\n",
        ),
        ("trunkline prompt everything_s", "everything_simple-prompt\n"),
        ("trunkline prompt everything arg", "args-prompt\n"),
        ("trunkline prompt everything args-prompt ", "city=\nstate=\n"),
        ("trunkline complete everything_comp", "everything_completable-prompt\n"),
        (
            "trunkline complete demo://resource/dynamic/t",
            "demo://resource/dynamic/text/{resourceId}\n",
        ),
        (
            "trunkline read demo://resource/static/document/a",
            "demo://resource/static/document/architecture.md\n",
        ),
        ("trunkline tools --server w", "words\n"),
        ("trunkline ls w", "words\n"),
        ("trunkline --config other.json tools ", "elsewhere\n"),
        ("trunkline tools --agent ", "reader\n"),
        ("trunkline tools --bundle ", "loud\n"),
        ("trunkline tools --access read-w", "read-write\n"),
        ("trunkline install zed", "zed\n"),
        ("trunkline completions z", "zsh\n"),
        ("trunkline secret l", "list\n"),
        ("trunkline tools --ref", "--refresh\n"),
        ("trunkline no-such-command ", ""),
        ("", ""),
    ] {
        let run = folder.run(&["complete-line", "--", line]);
        if expected.is_empty() {
            assert_eq!(run.code, 0, "{line}: {run}");
            continue;
        }
        assert_eq!(
            (run.code, run.output.as_str(), run.messages.as_str()),
            (0, expected, ""),
            "{line}"
        );
    }
    assert!(!folder.project().join("started").exists(), "no server is started for a completion");
}

#[test]
fn a_broken_configuration_is_no_output() {
    let folder = Folder::new().file("trunkline.json", "{ \"mcpServers\": ");
    let run = folder.run(&["complete-line", "--", "trunkline call "]);
    assert_eq!((run.code, run.output.as_str(), run.messages.as_str()), (0, "", ""), "{run}");
}

/// The script for bash, in bash: it splits words at `=` and `:`.
#[test]
fn bash_completes_words() {
    let folder = folder();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_trunkline")).parent().unwrap();
    let script = r#"
        source <(trunkline completions bash)
        compopt() { :; }
        for COMP_LINE in "trunkline call words_sh" "trunkline call everything get-structured-content location=" \
            "trunkline read demo://resource/static/document/a"; do
            COMP_POINT=${#COMP_LINE}
            _trunkline
            printf '%s\n' "${COMPREPLY[@]}"
        done
    "#;
    let environment = folder.command(&[]);
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script]).current_dir(folder.project()).env_clear();
    bash.envs(environment.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let path = std::env::join_paths([program, "/usr/bin".as_ref(), "/bin".as_ref()]).unwrap();
    let output = bash.env("PATH", path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        text,
        "words_shout\nChicago\nLos\\ Angeles\nNew\\ York\n//resource/static/document/architecture.md\n",
        "{:?}",
        String::from_utf8_lossy(&output.stderr)
    );
}
