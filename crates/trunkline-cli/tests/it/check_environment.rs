//! `trunkline check` with the environment: values, programs, and unsupported settings.

use serde_json::{Value, json};

use crate::support::program::{Folder, Run};

/// The result of `check` for one server named `s`, with a shell on PATH.
fn checked(server: &Value) -> Run {
    checked_file(&json!({ "mcpServers": { "s": server } }))
}

fn checked_file(config: &Value) -> Run {
    let folder = Folder::new().file("mcp.json", config.to_string());
    let mut command = folder.command(&["check", "mcp.json"]);
    folder.finish(command.env("PATH", "/usr/bin:/bin"))
}

fn assert_found(run: &Run, code: &str, words: &[&str]) {
    assert!(run.output.contains(code), "{code}: {run}");
    assert!(run.output.contains("server `s`"), "{run}");
    for word in words {
        assert!(run.output.contains(word), "{word}: {run}");
    }
}

#[test]
fn values_that_are_not_there_are_warned_of() {
    let env = json!({ "A": "${UNSET_HERE}", "B": "${file:gone.txt}", "C": "${SET_HERE:-x}" });
    let run = checked(&json!({ "command": "sh", "env": env }));
    let words = ["`UNSET_HERE` is not set", "gone.txt", "environment of this command"];
    assert_found(&run, "warning[unresolved-reference]", &words);
    assert!(!run.output.contains("SET_HERE:-x"), "{run}");
    assert_eq!(run.code, 0, "{run}");
    let inputs = json!([{ "id": "key", "type": "promptString" }]);
    let servers = json!({ "s": { "command": "sh", "args": ["${input:key}"] } });
    let run = checked_file(&json!({ "servers": servers, "inputs": inputs }));
    let words = ["the input `key` has no answer", "TRUNKLINE_INPUT_KEY"];
    assert_found(&run, "warning[unresolved-reference]", &words);
    let run = checked(&json!({ "command": "sh", "envFile": "gone.env" }));
    assert_found(&run, "warning[unresolved-reference]", &["envFile", "/gone.env cannot be read"]);
}

/// Regression: the summary was "nothing that stops a server" for a server that does not start.
#[test]
fn the_summary_counts_servers_that_do_not_start_here() {
    let run =
        checked(&json!({ "command": "sh", "env": { "A": "${UNSET_HERE}", "B": "${UNSET_TOO}" } }));
    assert!(run.output.contains("1 server does not start in this environment"), "{run}");
    let servers = json!({ "s": { "command": "no-such-program" }, "t": { "command": "sh", "cwd": "/no/such" } });
    let run = checked_file(&json!({ "mcpServers": servers }));
    assert!(run.output.contains("2 servers do not start in this environment"), "{run}");
    assert!(!run.output.contains("nothing that stops"), "{run}");
}

/// Regression: nothing was said, although only remote servers have an `Authorization` header.
#[test]
fn a_provider_of_credentials_for_a_program_is_warned_of() {
    let run = checked(&json!({ "command": "sh", "authProviderId": "github" }));
    assert!(run.output.contains("`authProviderId` has no effect on a program"), "{run}");
}

#[test]
fn programs_that_are_not_there_are_warned_of() {
    let run = checked(&json!({ "command": "no-such-program-anywhere" }));
    let words = ["`no-such-program-anywhere`", "2 folders of the PATH"];
    assert_found(&run, "warning[missing-program]", &words);
    let run = checked(&json!({ "command": "no-such-program", "args": ["${UNSET_HERE}"] }));
    assert_found(&run, "warning[missing-program]", &["warning[unresolved-reference]"]);
    let run = checked(&json!({ "command": "/no/such/program" }));
    assert_found(
        &run,
        "warning[missing-program]",
        &["`program` is not at its path /no/such/program"],
    );
    let run = checked(&json!({ "command": "./nope.sh", "cwd": "/usr" }));
    assert_found(&run, "warning[missing-program]", &["is not at its path /usr/./nope.sh"]);
    // Also for a server with the same name as the key.
    let servers = json!({ "cwd": { "command": "sh", "cwd": "/no/such/folder" } });
    let run = checked_file(&json!({ "mcpServers": servers }));
    for word in ["warning[missing-directory]: server `cwd`:", "/no/such/folder does not exist"] {
        assert!(run.output.contains(word), "{word}: {run}");
    }
    for good in [json!({ "command": "sh" }), json!({ "command": "/bin/sh", "cwd": "/" })] {
        let run = checked(&good);
        assert!(run.output.contains("no problems"), "{run}");
    }
    let env = json!({ "PATH": "/no/such/folder" });
    let run = checked(&json!({ "command": "sh", "env": env }));
    assert_found(&run, "warning[missing-program]", &["PATH of its `env`"]);
}

#[test]
fn servers_that_are_switched_off_need_nothing() {
    let run = checked(&json!({ "command": "no-such-program", "enabled": false }));
    assert!(run.output.contains("no problems"), "{run}");
}

#[test]
fn an_id_that_no_provider_serves_is_an_error() {
    let server = json!({ "url": "https://example.com/mcp", "authProviderId": "corp" });
    let run = checked(&server);
    assert_found(&run, "error[unknown-auth-provider]", &["`corp`"]);
    assert_eq!(run.code, 1);
    let folder =
        Folder::new().file("mcp.json", json!({ "mcpServers": { "s": server } }).to_string());
    let run = folder.run(&["tools", "--config", "mcp.json"]);
    assert!(run.messages.contains("server `s`") && run.messages.contains("`corp`"), "{run}");
    let headers = json!({ "authorization": "Bearer x" });
    let run = checked(
        &json!({ "url": "https://example.com/mcp", "authProviderId": "corp", "headers": headers }),
    );
    assert!(run.output.contains("no problems"), "{run}");
}

#[test]
fn a_missing_program_for_headers_is_reported() {
    let server =
        json!({ "url": "https://example.com/mcp", "headersCommand": ["no-such-program", "x"] });
    let run = checked(&server);
    assert_found(&run, "warning[missing-program]", &["`headersCommand`", "no-such-program"]);
}

#[test]
fn every_mode_of_a_bundle_is_served() {
    for mode in ["direct", "meta", "auto"] {
        let config = json!({
            "mcpServers": { "s": { "command": "sh" } },
            "bundles": { "b": { "serverId": "s", "mode": mode } },
        });
        let run = checked_file(&config);
        assert!(run.output.contains("no problems"), "{run}");
        assert_eq!(run.code, 0);
    }
}

#[test]
fn cap_above_the_message_limit_is_rejected() {
    let run = checked(&json!({ "command": "sh", "maxResultBytes": "1GiB" }));
    assert_found(&run, "error[out-of-range]", &["`maxResultBytes`", "16777216"]);
    assert_eq!(run.code, 1);
    let run = checked_file(
        &json!({ "maxResultBytes": 17_000_000, "servers": { "s": { "command": "sh" } } }),
    );
    assert_eq!(run.output.matches("error[out-of-range]").count(), 1, "{run}");
    let text =
        "{\n\"mcpServers\": { \"s\": { \"command\": \"sh\" } },\n\"maxResultBytes\": \"1GiB\"\n}";
    let run = Folder::new().file("mcp.json", text).run(&["check", "mcp.json"]);
    assert!(run.output.contains("error[out-of-range]: `maxResultBytes`"), "{run}");
    assert!(run.output.contains("mcp.json:3:"), "{run}");
    let run = checked(&json!({ "command": "sh", "maxResultBytes": "16MiB" }));
    assert!(run.output.contains("no problems"), "{run}");
}

/// CON-16: a server that would be this program with this configuration.
#[test]
fn a_configuration_that_runs_itself_is_an_error() {
    let entry = json!({ "command": "trunkline", "args": ["serve", "--stdio"] });
    let folder =
        Folder::new().file(".mcp.json", json!({ "mcpServers": { "s": entry } }).to_string());
    let run = folder.run(&["check"]);
    assert_found(&run, "error[starts-itself]", &["without end", "--config"]);
    assert_eq!(run.code, 1);
    for (command, args) in [
        ("env", json!(["-i", "trunkline", "serve", "--stdio"])),
        ("sh", json!(["-c", "exec trunkline serve --stdio"])),
    ] {
        let entry = json!({ "command": command, "args": args });
        let config = json!({ "mcpServers": { "s": entry } }).to_string();
        let run = Folder::new().file(".mcp.json", config).run(&["check"]);
        assert_found(&run, "error[starts-itself]", &["without end"]);
    }
    let args = json!(["serve", "--stdio", "--config", "other.json"]);
    let entry = json!({ "command": "trunkline", "args": args });
    let config = json!({ "mcpServers": { "s": entry } }).to_string();
    let folder = Folder::new().file("mcp.json", config).file("other.json", "{}");
    let run = folder.run(&["check", "mcp.json"]);
    assert!(!run.output.contains("starts-itself"), "{run}");
}

#[test]
fn other_formats_are_read_too() {
    for (text, broken) in [
        ("[mcp_servers.s]\ncommand = \"sh\"\n", "[mcp_servers.s]\ncommand = \n"),
        ("mcpServers:\n  s:\n    command: sh\n", "mcpServers:\n  s: [\n"),
    ] {
        let run = Folder::new().file("config", text).run(&["check", "config"]);
        assert!(run.code == 0 && run.output.contains("1 server"), "{run}");
        let run = Folder::new().file("config", broken).run(&["check", "config"]);
        assert!(run.code == 1 && run.output.contains("error[syntax]"), "{run}");
    }
}

#[test]
fn messages_about_a_server_name_it() {
    let text = "{\n\"mcpServers\": {\n\"s\": {\n\"command\": \"sh\",\n\"args\": \"x\"\n}}}";
    let run = Folder::new().file("mcp.json", text).run(&["check", "mcp.json"]);
    assert!(run.output.contains("error[wrong-type]: server `s`: `args` must be"), "{run}");
}
