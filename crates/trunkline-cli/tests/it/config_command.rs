//! `trunkline config`: the effective configuration with its locations, without secrets.

use trunkline_testkit::samples;

use crate::support::program::Folder;

const CONFIG: &str = r#"{
  // Two servers, a bundle, and settings that are not the defaults.
  "access": "read-write",
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "--token", "handwritten", "/tmp"],
      "env": { "KEY": "handwritten", "REF": "${FILES_REF}" },
      "timeouts": { "call": "1m" },
    },
    "docs": {
      "type": "http",
      "url": "https://user:handwritten@docs.example.com/mcp?key=handwritten",
      "headers": { "Authorization": "Bearer handwritten" },
    },
  },
  "bundles": { "read": { "serverId": "files", "allowTools": ["read_file"] } },
}
"#;

#[test]
fn servers_are_shown_with_their_origin_and_without_secrets() {
    let folder = Folder::new().file(".trunkline/mcp.json", CONFIG);
    let mut command = folder.command(&["config"]);
    command.env("TRUNKLINE_CONFIG_JSON", r#"{ "mcpServers": { "docs": { "enabled": false } } }"#);
    command.env("FILES_REF", "resolved-value");
    let run = folder.finish(&mut command);
    assert!(!run.output.contains("handwritten") && !run.output.contains("resolved-value"));
    insta::assert_snapshot!(run);
}

#[test]
fn verbose_shows_every_setting() {
    let run = Folder::new().file("trunkline.json", CONFIG).run(&["config", "-v"]);
    insta::assert_snapshot!(run);
}

/// CON-7: the variables that a server would inherit are shown, with secrets masked.
#[test]
fn verbose_shows_inherited_settings() {
    let text = r#"{ "inheritEnv": ["APP_*"], "mcpServers": {
        "some": { "command": "x", "env": { "LANG": "C" } },
        "all": { "command": "x", "inheritEnv": true },
        "away": { "url": "http://127.0.0.1:1/mcp" } } }"#;
    let folder = Folder::new().file("trunkline.json", text);
    let run = |arguments: &[&str]| {
        let mut command = folder.command(arguments);
        command
            .env("HTTPS_PROXY", "http://ann:hunter2hunter2@proxy.example:8080")
            .envs([("LANG", "de"), ("APP_TOKEN", "hunter2hunter2"), ("APP_MODE", "fast")])
            .env("GITHUB_TOKEN", "hunter2hunter2");
        folder.finish(&mut command)
    };
    let shown = run(&["config", "-v"]);
    assert!(!shown.output.contains("hunter2"), "{shown}");
    let some = "inherits: APP_MODE=fast  APP_TOKEN=***  HOME=[folder]/home  HTTPS_PROXY=http://***@proxy.example:8080\n";
    assert!(shown.output.contains(some), "{shown}");
    assert!(shown.output.contains("GITHUB_TOKEN=***"), "{shown}");
    assert!(shown.output.contains("inheritEnv: APP_*"), "{shown}");
    let json = run(&["config", "-v", "--format", "json"]).json();
    let servers = &json["mcpServers"];
    assert_eq!(servers["some"]["inherits"]["APP_TOKEN"], "***", "{json}");
    assert_eq!(servers["some"]["inherits"].get("GITHUB_TOKEN"), None, "{json}");
    assert_eq!(servers["all"]["inherits"]["GITHUB_TOKEN"], "***", "{json}");
    assert_eq!(servers["away"]["inherits"], serde_json::json!({}), "{json}");
}

#[test]
fn mistake_in_inherited_settings_adds_nothing() {
    for wrong in ["7", r#""AWS_*""#, "[7]", r#"["AWS_?"]"#, r#"[""]"#] {
        let text = format!(
            r#"{{ "mcpServers": {{ "s": {{ "command": "x", "inheritEnv": {wrong} }} }} }}"#
        );
        let run = Folder::new().file("trunkline.json", text).run(&["config", "--format", "json"]);
        assert_eq!((run.code, &run.json()["broken"][0]), (1, &"s".into()), "{wrong}: {run}");
        let text = format!(
            r#"{{ "inheritEnv": {wrong}, "mcpServers": {{ "s": {{ "command": "x" }} }} }}"#
        );
        let run = Folder::new().file("trunkline.json", text).run(&["config", "--format", "json"]);
        assert_eq!(run.json()["mcpServers"]["s"].get("inheritEnv"), None, "{wrong}: {run}");
        assert_eq!(run.code, 1, "{wrong}: {run}");
    }
}

#[test]
fn machines_get_json_without_secrets() {
    let run = Folder::new().file("trunkline.json", CONFIG).run(&["config", "--format", "json"]);
    assert_eq!(run.code, 0);
    assert!(!run.output.contains("handwritten"), "{run}");
    let json = run.json();
    let files = &json["mcpServers"]["files"];
    assert_eq!(files["env"]["REF"], "${FILES_REF}");
    assert_eq!(files["env"]["KEY"], "***");
    assert_eq!(files["provenance"]["line"], 5);
    assert_eq!(files["provenance"]["found"], "discovered");
    assert_eq!(files["access"], "read-write");
    assert_eq!(files["timeouts"]["call"], 60_000);
    assert_eq!(json["bundles"]["read"]["serverId"], "files");
}

#[test]
fn problems_go_beside_the_output() {
    let text = r#"{ "mcpServers": { "good": { "command": "x" }, "bad": { "url": "nope" } } }"#;
    let run = Folder::new().file("trunkline.json", text).run(&["config"]);
    insta::assert_snapshot!(run);
}

#[test]
fn the_users_own_file_is_used_last() {
    let folder = Folder::new();
    let own = folder.project().parent().unwrap().join("home/.config/trunkline");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("mcp.json"), samples::JETBRAINS.text).unwrap();
    let run = folder.run(&["config"]);
    if cfg!(target_os = "linux") {
        insta::assert_snapshot!(run);
    }
}

#[test]
fn nothing_in_a_file_can_act_on_the_terminal() {
    let text = r#"{"mcpServers":{"a\u202e":{"command":"x\u001b[2J","cwd":"/t\nb  stdio  rm","env":{"E\u001b[31m":"v"},"allowTools":["t\u001b[2J"]}},"agents":{"g":{"tools":["\u001b[2J"]}}}"#;
    let run = Folder::new().file("trunkline.json", text).run(&["config", "-v"]);
    assert!(!run.output.contains(['\u{1b}', '\u{202e}']), "{run}");
    assert!(!run.output.contains("\nb  stdio"), "{run}");
}
