//! CFG-9, SEC-2: references are resolved on request, and resolved values are never shown.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::json;
use trunkline::config::{
    self, Config, ResolvedRemote, ResolvedStdio, ResolvedTransport, Resolver, Secret, resolve,
};
use trunkline::error::{Error, ErrorKind};
use trunkline_testkit::invariants;

#[derive(Default)]
struct Vault {
    variables: HashMap<&'static str, &'static str>,
    files: HashMap<&'static str, &'static str>,
    inputs: HashMap<&'static str, &'static str>,
}

impl Resolver for Vault {
    fn variable(&self, name: &str) -> Option<Secret> {
        self.variables.get(name).map(|value| Secret::new(*value))
    }

    fn file(&self, path: &Path) -> io::Result<Secret> {
        let content = path.to_str().and_then(|path| self.files.get(path));
        content.map(|content| Secret::new(*content)).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn input(&self, id: &str) -> Option<Secret> {
        self.inputs.get(id).map(|value| Secret::new(*value))
    }

    fn user_home(&self) -> Option<PathBuf> {
        Some("/home/me".into())
    }

    fn working_directory(&self) -> PathBuf {
        "/work".into()
    }
}

fn parse(text: &str) -> Config {
    let loaded = config::parse("mcp.json", text);
    assert!(!loaded.has_errors(false), "{:?}", loaded.diagnostics);
    loaded.config
}

fn resolved(text: &str, vault: &Vault) -> Result<ResolvedTransport, Vec<Error>> {
    resolve(parse(text).server("s").unwrap(), vault)
}

fn program(text: &str, vault: &Vault) -> ResolvedStdio {
    match resolved(text, vault) {
        Ok(ResolvedTransport::Stdio(stdio)) => stdio,
        other => panic!("{other:?}"),
    }
}

fn remote(text: &str, vault: &Vault) -> ResolvedRemote {
    match resolved(text, vault) {
        Ok(ResolvedTransport::Remote(remote)) => remote,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_form_of_reference_is_filled_in() {
    let vault = Vault {
        variables: [("A", "1"), ("EMPTY", "")].into(),
        files: [("/work/key", "from-file\n"), ("/home/me/key", "from-home")].into(),
        inputs: [("gh", "typed")].into(),
    };
    let text = json!({
        "inputs": [{ "id": "gh" }, { "id": "other", "default": "fallback" }],
        "servers": { "s": { "command": "${workspaceFolder}${/}bin", "args": [
            "${A}", "${env:A}-x", "${MISSING:-def}", "${EMPTY:-def}", "${file:key}", "${file:~/key}",
            "${input:gh}", "${input:other}", "${userHome}", "$${A}", "${workspaceFolderBasename}",
            "${file:gone:-def}",
        ], "cwd": "sub" } },
    });
    let program = program(&text.to_string(), &vault);
    assert_eq!(program.command.expose(), "/work/bin");
    let args: Vec<_> = program.args.iter().map(Secret::expose).collect();
    assert_eq!(
        args,
        [
            "1",
            "1-x",
            "def",
            "def",
            "from-file",
            "from-home",
            "typed",
            "fallback",
            "/home/me",
            "${A}",
            "work",
            "def"
        ]
    );
    assert_eq!(program.cwd.as_ref().map(Secret::expose), Some("/work/sub"));
}

/// Resolved values are recorded separately, to be found in the server's output.
#[test]
fn resolved_values_are_recorded_separately() {
    let variables = [("A", "one"), ("B", "two"), ("HOME", "/home/ann")].into();
    let vault = Vault { variables, ..Vault::default() };
    let filled = |all: &[Secret]| all.iter().map(|it| it.expose().to_owned()).collect::<Vec<_>>();
    let text = r#"{ "mcpServers": { "s": { "command": "x", "env": { "E": "e-${B}" },
        "args": ["--key=${A}", "${workspaceFolder}/x", "${HOME}/x", "${C:-three}"] } } }"#;
    assert_eq!(filled(&program(text, &vault).filled_in), ["two", "one", "three"]);
    let text =
        r#"{ "mcpServers": { "s": { "url": "https://x/${A}", "headers": { "H": "h ${B}" } } } }"#;
    assert_eq!(filled(&remote(text, &vault).filled_in), ["one", "two"]);
}

#[test]
fn opencodes_references_are_filled_in_in_its_files_only() {
    let vault = Vault { variables: [("T", "t")].into(), ..Vault::default() };
    let opencode = r#"{ "mcp": { "s": { "type": "remote", "url": "https://x/", "headers": { "A": "Bearer {env:T}" } } } }"#;
    assert_eq!(remote(opencode, &vault).headers[0].1.expose(), "Bearer t");
    let other =
        r#"{ "servers": { "s": { "url": "https://x/", "headers": { "A": "Bearer {env:T}" } } } }"#;
    assert_eq!(remote(other, &vault).headers[0].1.expose(), "Bearer {env:T}");
}

#[test]
fn everything_missing_is_named_at_once() {
    let text = r#"{ "servers": { "s": { "command": "x", "args": ["${A}", "${file:gone}"], "env": { "T": "${B}" } } } }"#;
    let errors = resolved(text, &Vault::default()).unwrap_err();
    let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "server `s`: the variable `B` is not set",
            "server `s`: the variable `A` is not set",
            "server `s`: `${file:gone}` cannot be read: there is no such file",
        ]
    );
    assert!(errors.iter().all(|error| error.kind() == ErrorKind::MissingSecret));
    assert_eq!(errors[0].hint(), Some("set it, or write `${B:-default}`"));
}

#[test]
fn an_env_file_adds_variables_and_env_wins_over_it() {
    let vault = Vault {
        files: [("/work/.env", "# comment\nA=file\nexport B='two words'\n")].into(),
        ..Vault::default()
    };
    let text = r#"{ "servers": { "s": { "command": "x", "envFile": "${workspaceFolder}/.env", "env": { "A": "own", "C": null } } } }"#;
    let env = program(text, &vault).env;
    let value = |name: &str| env[name].as_ref().map(Secret::expose);
    assert_eq!((value("A"), value("B"), value("C")), (Some("own"), Some("two words"), None));
}

#[test]
fn unusable_resolved_value_is_rejected_without_showing_it() {
    let vault = Vault {
        variables: [("BASE", "hunter2"), ("T", "hunter2\r\nX: y")].into(),
        ..Vault::default()
    };
    let text = r#"{ "servers": { "s": { "url": "${BASE}/mcp", "headers": { "A": "${T}" } } } }"#;
    let errors = resolved(text, &vault).unwrap_err();
    assert_eq!(errors.len(), 2);
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::UnusableValue);
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[test]
fn effective_configuration_masks_literal_secrets() {
    let config = parse(
        r#"{ "mcpServers": {
            "s": { "command": "srv", "args": ["--token", "sesame1", "--api-key=sesame2", "plain"],
                   "env": { "KEY": "sesame3", "REF": "${REF}" } },
            "r": { "url": "https://me:sesame4@example.com/mcp?api_key=sesame5&x=1",
                   "headers": { "Authorization": "Bearer sesame6" } } } }"#,
    );
    let shown = format!("{} {config:?}", config.to_json());
    assert!(!shown.contains("sesame"), "{shown}");
    assert!(shown.contains("${REF}") && shown.contains("plain"));
    assert_eq!(config.server("s").unwrap().endpoint(), "srv --token *** --api-key=*** plain");
    assert_eq!(
        config.server("r").unwrap().endpoint(),
        "https://***@example.com/mcp?api_key=***&x=***"
    );
}

/// Text that is unlikely to be a secret, for entries.
fn word() -> impl Strategy<Value = String> {
    "[a-z./:@?&=-]{0,12}"
}

/// A value with references of all kinds.
fn value() -> impl Strategy<Value = String> {
    let reference = prop::sample::select(vec![
        "${A}",
        "${env:B}",
        "${C:-x}",
        "${file:f}",
        "${input:i}",
        "{env:D}",
        "{file:g}",
        "${bad ref}",
    ]);
    (word(), reference, word())
        .prop_map(|(before, reference, after)| format!("{before}{reference}{after}"))
}

fn entry() -> impl Strategy<Value = serde_json::Value> {
    let local = (value(), value(), value(), any::<bool>()).prop_map(|(command, arg, env, odd)| {
        let args = if odd { json!(arg) } else { json!(["--token", arg]) };
        json!({ "command": command, "args": args, "env": { "K": env }, "envFile": "e", "cwd": arg })
    });
    let remote = (value(), value()).prop_map(|(url, header)| {
        json!({ "url": format!("https://{url}"), "headers": { "Authorization": header }, "typo": url })
    });
    prop_oneof![local, remote]
}

proptest! {
    /// The resolved value of a reference is never shown, in any configuration.
    #[test]
    fn no_resolved_value_appears_in_any_rendering(
        entries in prop::collection::vec(entry(), 1..4),
        root in prop::sample::select(vec!["mcpServers", "servers", "mcp", "context_servers"]),
        cut in 0.5..1.5_f64,
    ) {
        let servers: serde_json::Map<_, _> =
            entries.into_iter().enumerate().map(|(i, entry)| (format!("s{i}"), entry)).collect();
        let mut text = json!({ root: servers, "inputs": [{ "id": "i" }] }).to_string();
        // The text may end early, so that diagnostics quote broken text.
        let length = text.len();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss,
                 reason = "a place somewhere in a short text")]
        let end = (length as f64 * cut) as usize;
        if let Some(head) = text.get(..end) {
            text = head.to_owned();
        }
        invariants::check(text.as_bytes());
    }

    /// Literal credentials in their usual places are never shown either.
    #[test]
    fn no_handwritten_credential_appears_in_any_rendering(
        noise in "[ -~]{0,20}",
        place in 0..6_usize,
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        let secret = "HANDWRITTEN";
        let noise = json!(noise);
        let mut text = match place {
            0 => format!(r#"{{ "servers": {{ "s": {{ "command": 1, "env": {{ "A": "{secret}", "B": {noise} }}, "x": {noise} }} }} }}"#),
            1 => format!(r#"{{ "servers": {{ "s": {{ "url": {noise}, "headers": {{ "A": "{secret}" }} }} }} }}"#),
            2 => format!(r#"{{ "servers": {{ "s": {{ "command": {noise}, "args": ["--password", "{secret}"], "y": 1 }} }} }}"#),
            3 => format!(r#"{{ "servers": {{ "s": {{ "url": "nohttp://u:{secret}@h/?token={secret}", "z": {noise} }} }} }}"#),
            4 => format!(r#"{{ "servers": {{ "s": {{ "command": "x", "oauth": {{ "clientSecret": "{secret}" }}, "w": {noise} }} }} }}"#),
            _ => format!(r#"{{ "servers": {{ "s": {{ "command": "x", "environment": {{ "A" "{secret}" }}, "v": {noise} }} }} }}"#),
        };
        if cuts {
            text = text.get(..cut.index(text.len())).unwrap().to_owned();
        }
        let loaded = config::parse("mcp.json", &text);
        let shown = invariants::everything_shown(&loaded);
        prop_assert!(!shown.contains("HANDWRITTEN"), "{text}\n{shown}");
    }
}
