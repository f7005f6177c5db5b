//! CFG-4, CFG-5, CFG-6: precedence of configuration layers, and the search paths of embedding
//! hosts.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;
use trunkline::config::{
    self, Code, Config, Consent, ConsentHoldReason, ContentDigest, DiscoveredFile, DiscoveredFiles,
    Environment, FileReach, FoundBy, LoadOptions, LoadedConfig, Origin, Overrides, SearchFile,
    SearchPath, SearchScope,
};
use trunkline_testkit::samples;

/// Files and variables in memory.
#[derive(Default)]
struct World {
    files: HashMap<PathBuf, Vec<u8>>,
    failures: HashMap<PathBuf, io::ErrorKind>,
    variables: HashMap<String, OsString>,
    /// The only content that may run without being named.
    trusted: Option<ContentDigest>,
}

impl World {
    fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }

    fn failing(mut self, path: &str, kind: io::ErrorKind) -> Self {
        self.failures.insert(path.into(), kind);
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.into());
        self
    }

    fn load(&self, options: &LoadOptions) -> LoadedConfig {
        config::load(self, options)
    }
}

impl Environment for World {
    fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.get(name).cloned()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if let Some(kind) = self.failures.get(path) {
            return Err((*kind).into());
        }
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn consent(&self, file: &DiscoveredFile) -> Consent {
        match self.trusted == Some(file.digest) {
            true => Consent::Given(FileReach::Workspace),
            false => Consent::Withheld(ConsentHoldReason::NotTrusted),
        }
    }
}

fn options(places: SearchPath) -> LoadOptions {
    let working_directory = "/home/me/project/deep".into();
    // Most of these tests are about discovery and merging.
    LoadOptions {
        places,
        working_directory,
        discovered: DiscoveredFiles::Run,
        ..Default::default()
    }
}

fn trunkline() -> LoadOptions {
    options(SearchPath::trunkline(Some(Path::new("/home/me/.config/trunkline"))))
}

/// A file with one server, whose command identifies the file.
fn one(server: &str, command: &str) -> String {
    json!({ "mcpServers": { server: { "command": command } } }).to_string()
}

fn commands(config: &Config) -> Vec<String> {
    config.servers().map(|server| format!("{}={}", server.name, server.endpoint())).collect()
}

fn codes(loaded: &LoadedConfig) -> Vec<Code> {
    loaded.diagnostics.iter().map(|found| found.code).collect()
}

#[test]
fn no_file_is_no_servers_and_no_error() {
    let loaded = World::default().load(&trunkline());
    assert_eq!(loaded.config.servers().len(), 0);
    assert!(loaded.diagnostics.is_empty() && loaded.origins.is_empty());
}

#[test]
fn file_precedence_is_option_variable_discovered_user() {
    let world = World::default()
        .file("/home/me/project/deep/asked.json", &one("s", "asked"))
        .file("/etc/variable.json", &one("s", "variable"))
        .file("/home/me/project/.mcp.json", &one("s", "discovered"))
        .file("/home/me/.config/trunkline/mcp.json", &one("s", "own"));
    let asked = LoadOptions { path: Some("asked.json".into()), ..trunkline() };
    let found = |loaded: &LoadedConfig| match &loaded.origins[0] {
        Origin::File(file) => file.found.clone(),
        other => panic!("{other:?}"),
    };

    let loaded = world.load(&trunkline());
    assert_eq!(commands(&loaded.config), ["s=discovered"]);
    assert_eq!(found(&loaded), FoundBy::Discovered);

    let world = world.variable("MCP_CONFIG_PATH", "/etc/variable.json");
    let loaded = world.load(&trunkline());
    assert_eq!(commands(&loaded.config), ["s=variable"]);
    assert_eq!(found(&loaded), FoundBy::Variable("MCP_CONFIG_PATH".into()));

    let world = world.variable("TRUNKLINE_CONFIG", "asked.json");
    assert_eq!(commands(&world.load(&trunkline()).config), ["s=asked"]);

    let loaded = world.load(&asked);
    assert_eq!(commands(&loaded.config), ["s=asked"]);
    assert_eq!(found(&loaded), FoundBy::Asked);

    let only_own = World::default().file("/home/me/.config/trunkline/mcp.json", &one("s", "own"));
    let loaded = only_own.load(&trunkline());
    assert_eq!(commands(&loaded.config), ["s=own"]);
    assert_eq!(found(&loaded), FoundBy::Fallback);
}

#[test]
fn layers_merge_per_server_and_the_higher_entry_replaces_the_lower_whole() {
    let file = json!({ "mcpServers": {
        "kept": { "command": "file" },
        "replaced": { "command": "file", "args": ["lost"], "access": "read-only" },
        "over": { "command": "file" },
    } });
    let world = World::default()
        .file("/home/me/project/trunkline.json", &file.to_string())
        .variable(
            "TRUNKLINE_CONFIG_JSON",
            &json!({ "servers": { "replaced": { "command": "inline" }, "over": { "command": "inline" } } })
                .to_string(),
        );
    let overrides = json!({ "mcpServers": { "over": { "command": "override" }, "new": { "command": "override" } } });
    let options = LoadOptions { overrides: Some(Overrides::Value(overrides)), ..trunkline() };
    let loaded = world.load(&options);

    assert_eq!(
        commands(&loaded.config),
        ["kept=file", "new=override", "over=override", "replaced=inline"]
    );
    let replaced = loaded.config.server("replaced").unwrap();
    assert_eq!(replaced.behaviour.access, config::Access::ReadWrite);
    assert_eq!(replaced.provenance.origin, Origin::Variable("TRUNKLINE_CONFIG_JSON".into()));
    assert_eq!(
        loaded.origins[..2],
        [Origin::Overrides, Origin::Variable("TRUNKLINE_CONFIG_JSON".into())]
    );
    // `replaced` once, `over` twice.
    assert_eq!(codes(&loaded), [Code::ShadowedServer; 3]);
}

#[test]
fn a_bare_switch_only_switches() {
    let file = json!({ "mcpServers": {
        "a": { "command": "x", "args": ["kept"] },
        "b": { "command": "x", "enabled": false },
    } });
    let world = World::default().file("/home/me/project/trunkline.json", &file.to_string());
    let switches = r#"{ "mcpServers": { "a": { "enabled": false }, "b": { "disabled": false } } }"#;
    let options =
        LoadOptions { overrides: Some(Overrides::Text(switches.to_owned())), ..trunkline() };
    let loaded = world.load(&options);
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    let (a, b) = (loaded.config.server("a").unwrap(), loaded.config.server("b").unwrap());
    assert_eq!((a.enabled, b.enabled), (false, true));
    assert_eq!(a.endpoint(), "x kept");
    let (switched_by, _) = a.provenance.switched_by.as_ref().unwrap();
    assert_eq!(*switched_by, Origin::Overrides);
    assert_eq!(a.provenance.location.to_string(), "/home/me/project/trunkline.json:1:16");
}

#[test]
fn an_entry_with_errors_hides_the_one_below_it() {
    let world = World::default()
        .file("/home/me/project/trunkline.json", &one("s", "old"))
        .variable("TRUNKLINE_CONFIG_JSON", r#"{ "mcpServers": { "s": { "command": 5 } } }"#);
    let loaded = world.load(&trunkline());
    assert!(loaded.config.server("s").is_none());
    assert_eq!(loaded.config.broken()[0].as_str(), "s");
}

#[test]
fn settings_of_a_higher_layer_win_key_by_key() {
    let world = World::default()
        .file(
            "/home/me/project/trunkline.json",
            r#"{ "access": "read-write", "separator": "__", "mcpServers": { "s": { "command": "x" } } }"#,
        )
        .variable("TRUNKLINE_CONFIG_JSON", r#"{ "access": "read-only-strict" }"#);
    let config = world.load(&trunkline()).config;
    assert_eq!(config.server("s").unwrap().behaviour.access, config::Access::ReadOnlyStrict);
    assert_eq!(&*config.naming().separator, "__");
}

#[test]
fn a_bundle_may_be_of_a_server_in_another_layer() {
    let world = World::default()
        .file("/home/me/project/trunkline.json", &one("s", "x"))
        .variable("TRUNKLINE_CONFIG_JSON", r#"{ "bundles": { "b": { "serverId": "s" } } }"#);
    let loaded = world.load(&trunkline());
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    assert_eq!(loaded.config.bundles().len(), 1);
}

#[test]
fn discovery_takes_the_nearest_file_and_warns_about_others() {
    let names = [
        "trunkline.json",
        "trunkline.jsonc",
        ".trunkline/mcp.json",
        ".mcp.json",
        ".dispatch/mcp.json",
        "opencode.json",
        "opencode.jsonc",
    ];
    let opencode = r#"{ "mcp": { "s": { "type": "local", "command": ["opencode"] } } }"#;
    for (index, first) in names.iter().enumerate() {
        let mut world = World::default().file("/home/me/trunkline.json", &one("s", "too far"));
        for name in &names[index..] {
            let text = if name.starts_with("opencode") { opencode.into() } else { one("s", name) };
            world = world.file(&format!("/home/me/project/{name}"), &text);
        }
        let (found, diagnostics) =
            config::discover(&world, &trunkline().places, Path::new("/home/me/project/deep"));
        assert_eq!(found, Some(format!("/home/me/project/{first}").into()));
        assert_eq!(diagnostics.len(), names.len() - index - 1);
        assert!(diagnostics.iter().all(|found| found.code == Code::ShadowedFile));
    }
}

#[test]
fn an_opencode_file_without_servers_is_passed_over() {
    let world = World::default()
        .file("/home/me/project/opencode.json", r#"{ "theme": "x" }"#)
        .file("/home/me/trunkline.json", &one("s", "x"));
    let loaded = world.load(&trunkline());
    assert_eq!(commands(&loaded.config), ["s=x"]);
    assert!(loaded.diagnostics.is_empty());
}

#[test]
fn requested_file_must_exist() {
    let message = |world: World, options: LoadOptions| {
        let loaded = world.load(&options);
        let found = &loaded.diagnostics[0];
        (found.code, found.message.clone())
    };
    let asked = |path: &str| LoadOptions { path: Some(path.into()), ..trunkline() };
    assert_eq!(
        message(World::default(), asked("gone.json")),
        (Code::FileMissing, "the configuration file gone.json does not exist".to_owned())
    );
    let world = World::default().variable("TRUNKLINE_CONFIG", "/gone.json");
    let (code, text) = message(world, trunkline());
    assert_eq!(code, Code::FileMissing);
    assert!(text.contains("/gone.json") && text.contains("TRUNKLINE_CONFIG"), "{text}");
    let world = World::default().failing("/dir", io::ErrorKind::IsADirectory);
    assert_eq!(message(world, asked("/dir")).0, Code::FileIsDirectory);
    let world = World::default().failing("/secret", io::ErrorKind::PermissionDenied);
    assert_eq!(message(world, asked("/secret")).0, Code::FileUnreadable);
}

#[test]
fn an_unreadable_file_on_the_way_up_is_passed_over_with_a_warning() {
    let world = World::default()
        .failing("/home/me/project/.mcp.json", io::ErrorKind::PermissionDenied)
        .file("/home/me/.mcp.json", &one("s", "x"));
    let loaded = world.load(&trunkline());
    assert_eq!(commands(&loaded.config), ["s=x"]);
    assert_eq!(codes(&loaded), [Code::FileUnreadable]);
    assert!(!loaded.has_errors(false));
}

#[test]
fn unreadable_discovered_file_is_an_error_without_fallback() {
    for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::IsADirectory] {
        let world = World::default()
            .failing("/home/me/project/deep/trunkline.json", kind)
            .file("/home/me/.mcp.json", &one("s", "x"));
        let loaded = world.load(&trunkline());
        assert!(loaded.has_errors(false) && loaded.config.servers().len() == 0);
    }
}

#[test]
fn file_in_a_hidden_directory_belongs_to_the_parent_directory() {
    let path = "/home/me/project/deep/.trunkline/mcp.json";
    let world = World::default().file(path, &one("s", "x"));
    let asked = LoadOptions { path: Some(path.into()), ..trunkline() };
    for options in [trunkline(), asked] {
        let loaded = world.load(&options);
        let origin = &loaded.config.server("s").unwrap().provenance.origin;
        assert_eq!(origin.workspace(), Path::new("/home/me/project/deep"));
    }
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let world = World::default()
        .variable("TRUNKLINE_CONFIG", "")
        .variable("TRUNKLINE_CONFIG_JSON", "")
        .file("/home/me/project/trunkline.json", &one("s", "x"));
    let loaded = world.load(&trunkline());
    assert_eq!(commands(&loaded.config), ["s=x"]);
    assert!(loaded.diagnostics.is_empty());
}

#[test]
fn non_text_file_is_rejected_with_a_reason() {
    let load = |bytes: &[u8]| config::parse("x.json", bytes);
    assert_eq!(codes(&load(b"{ \"a\": \"\xff\" }")), [Code::NotUtf8]);
    assert_eq!(codes(&load(b"\xff\xfe{\0}\0")), [Code::NotUtf8]);
    let large = vec![b' '; config::MAX_SOURCE_BYTES + 1];
    assert_eq!(codes(&load(&large)), [Code::TooLarge]);
}

/// `BooCode`: one variable, one well-known path, no discovery.
#[test]
fn boocode_finds_its_file() {
    let places = SearchPath {
        path_variables: vec!["MCP_CONFIG_PATH".into()],
        fallbacks: vec!["/data/mcp.json".into()],
        ..SearchPath::default()
    };
    let world = World::default()
        .file("/data/mcp.json", samples::BOOCODE.text)
        .file("/home/me/project/.mcp.json", &one("s", "not looked for"));
    let loaded = world.load(&options(places.clone()));
    let enabled: Vec<_> = loaded.config.servers().map(|s| (s.name.as_str(), s.enabled)).collect();
    assert_eq!(enabled, [("codecontext", false), ("context7", true)]);
    assert!(loaded.diagnostics.is_empty());

    let world =
        world.file("/srv/mcp.json", &one("s", "x")).variable("MCP_CONFIG_PATH", "/srv/mcp.json");
    assert_eq!(commands(&world.load(&options(places.clone())).config), ["s=x"]);

    // A missing file means no servers, so that MCP is opt-in.
    let loaded = World::default().load(&options(places));
    assert!(loaded.config.servers().len() == 0 && loaded.diagnostics.is_empty());
}

/// `ToolLoop`: overrides over inline text over a path over two names in all ancestors.
#[test]
fn toolloop_finds_its_file_and_lays_its_layers() {
    let places = SearchPath {
        inline_variables: vec!["CODEX_TOOLLOOP_MCP_CONFIG_JSON".into()],
        path_variables: vec!["CODEX_TOOLLOOP_MCP_CONFIG_PATH".into()],
        candidates: vec![
            SearchFile::file("codex-toolloop.mcp.json"),
            SearchFile::file(".codex-toolloop/mcp.json"),
        ],
        ..SearchPath::default()
    };
    let world = World::default()
        .file("/home/me/.codex-toolloop/mcp.json", samples::TOOLLOOP.text)
        .file("/home/me/project/.mcp.json", &one("s", "not looked for"));
    let loaded = world.load(&options(places.clone()));
    assert_eq!(commands(&loaded.config), ["repo=http://localhost:4010/mcp"]);
    assert_eq!(loaded.config.bundles().len(), 1);

    let inline = r#"{ "servers": { "repo": { "transport": { "type": "sse", "url": "http://localhost:1/sse" } } } }"#;
    let world = world.variable("CODEX_TOOLLOOP_MCP_CONFIG_JSON", inline);
    let loaded = world.load(&options(places.clone()));
    assert_eq!(commands(&loaded.config), ["repo=http://localhost:1/sse"]);

    let overrides =
        json!({ "servers": { "repo": { "transport": { "type": "stdio", "command": "repo" } } } });
    let options = LoadOptions { overrides: Some(Overrides::Value(overrides)), ..options(places) };
    let loaded = world.load(&options);
    assert_eq!(commands(&loaded.config), ["repo=repo"]);
    // The bundle of the file belongs to the server that won.
    assert_eq!(loaded.config.bundles().next().unwrap().1.server.as_str(), "repo");
}

/// Dispatch: its own file over opencode's, in the working directory only, with a warning.
#[test]
fn dispatch_prefers_its_own_file_and_warns_about_the_other() {
    let places = SearchPath {
        candidates: vec![
            SearchFile::file(".dispatch/mcp.json"),
            SearchFile::with_key("opencode.json", "mcp"),
        ],
        walk: SearchScope::Stay,
        ..SearchPath::default()
    };
    let world = World::default()
        .file("/home/me/project/deep/opencode.json", samples::DISPATCH_OPENCODE.text)
        .file("/home/me/project/.dispatch/mcp.json", &one("s", "too far"));
    let loaded = world.load(&options(places.clone()));
    assert_eq!(commands(&loaded.config), ["freecad=uvx freecad-mcp"]);
    assert!(loaded.diagnostics.is_empty());

    let world = world.file("/home/me/project/deep/.dispatch/mcp.json", samples::DISPATCH.text);
    let loaded = world.load(&options(places.clone()));
    assert_eq!(loaded.config.servers().len(), 3);
    assert_eq!(codes(&loaded), [Code::ShadowedFile]);
    assert!(loaded.diagnostics[0].message.contains("opencode.json"));

    let loaded = World::default().load(&options(places));
    assert!(loaded.config.servers().len() == 0 && loaded.diagnostics.is_empty());
}

#[test]
fn an_unreadable_file_behind_a_good_one_is_only_warned_about() {
    let world = World::default()
        .file("/home/me/project/deep/trunkline.json", &one("s", "x"))
        .failing("/home/me/project/deep/.mcp.json", io::ErrorKind::IsADirectory);
    let loaded = world.load(&trunkline());
    assert_eq!(commands(&loaded.config), ["s=x"]);
    assert!(!loaded.has_errors(false));
}

/// SEC-1: by default, an embedding host starts no servers of discovered files.
#[test]
fn servers_of_a_discovered_file_are_held_without_consent() {
    let text = r#"{ "access": "read-only", "naming": { "separator": "." },
        "mcpServers": { "a": { "command": "x" }, "off": { "command": "x", "enabled": false } },
        "bundles": { "b": { "serverId": "a", "allowTools": ["t"] } },
        "agents": { "r": { "tools": ["*"] } } }"#;
    let mut world = World::default().file("/home/me/project/.mcp.json", text);
    let asking = LoadOptions { discovered: DiscoveredFiles::NeedConsent, ..trunkline() };
    let switch = r#"{ "mcpServers": { "a": { "enabled": true }, "own": { "command": "y" } } }"#;
    let asking =
        LoadOptions { overrides: Some(Overrides::Text(switch.to_owned())), ..asking.clone() };

    let loaded = world.load(&asking);
    let held = loaded.config.server("a").unwrap();
    assert!(!held.enabled, "a switch of another layer is no consent");
    assert_eq!(
        held.hold.as_ref().unwrap().to_string(),
        "/home/me/project/.mcp.json was found here and is not trusted yet"
    );
    assert!(loaded.config.server("off").unwrap().hold.is_none(), "it would not run anyway");
    assert!(loaded.config.server("own").unwrap().enabled, "other layers are not concerned");
    assert_eq!(loaded.config.defaults().access.as_str(), "read-write");
    assert_eq!(&*loaded.config.naming().separator, "_");
    assert_eq!(loaded.config.bundles().len(), 0);
    assert!(loaded.config.agents().named.is_empty());

    world.trusted = Some(loaded.consent_holds().unwrap().0.digest);
    let loaded = world.load(&asking);
    assert!(loaded.config.server("a").unwrap().enabled && loaded.consent_holds().is_none());
    assert_eq!(loaded.config.defaults().access.as_str(), "read-only");
    let world = world.file("/home/me/project/.mcp.json", &format!("{text} "));
    assert!(world.load(&asking).consent_holds().is_some(), "other content is another file");
}

/// Named files and the user's own file need no consent.
#[test]
fn servers_of_named_files_are_not_held() {
    let world = World::default()
        .file("/etc/named.json", &one("s", "x"))
        .file("/home/me/.config/trunkline/mcp.json", &one("s", "x"));
    let asking = LoadOptions { discovered: DiscoveredFiles::NeedConsent, ..trunkline() };
    let named = LoadOptions { path: Some("/etc/named.json".into()), ..asking.clone() };
    for options in [&named, &asking] {
        assert!(world.load(options).config.server("s").unwrap().enabled);
    }
    let world = world.variable("TRUNKLINE_CONFIG", "/etc/named.json");
    assert!(world.load(&asking).config.server("s").unwrap().enabled);
}
