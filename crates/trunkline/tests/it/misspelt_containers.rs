//! BUN-2: duplicate or misspelt objects of servers, bundles and agents.

use trunkline::config::{self, Code, LoadOptions, LoadedConfig, Overrides};
use trunkline::policy::CallerSpec;

use crate::fail_closed::{File, Visible, visible};

fn over(lower: &'static str, text: &str) -> LoadedConfig {
    let overrides = Some(Overrides::Text(text.to_owned()));
    let path = Some("mcp.json".into());
    config::load(&File(lower), &LoadOptions { path, overrides, ..LoadOptions::default() })
}

fn has_error(loaded: &LoadedConfig) -> bool {
    loaded.diagnostics.iter().any(|found| found.is_error(false))
}

/// Hosts disagree on which of two containers counts, so their names are not used.
#[test]
fn names_in_a_container_that_is_written_twice_are_not_used() {
    let limits = [r#""allowTools":["read"]"#, r#""enabled":false"#, r#""access":"read-only""#];
    for key in ["mcpServers", "servers", "mcp", "context_servers"] {
        for limit in limits {
            let open = format!(r#""{key}":{{"fs":{{"command":"x"}},"web":{{"command":"x"}}}}"#);
            let limited = format!(r#""{key}":{{"fs":{{"command":"x",{limit}}}}}"#);
            for text in [format!("{{{open},{limited}}}"), format!("{{{limited},{open}}}")] {
                let loaded = config::parse("x", &text);
                assert_eq!(visible(&loaded, CallerSpec::default()), Visible::new(), "{text}");
                assert_eq!(loaded.config.broken().len(), 2, "{text}");
                let codes = loaded.diagnostics.iter().map(|found| found.code);
                assert!(codes.into_iter().any(|code| code == Code::DuplicateKey), "{text}");
            }
        }
    }
    let nested = r#"{"mcp":{"servers":{"fs":{"command":"x"}},
                            "servers":{"fs":{"command":"x","allowTools":["read"]}}}}"#;
    let loaded = config::parse("x", nested);
    assert_eq!(visible(&loaded, CallerSpec::default()), Visible::new());
    assert!(has_error(&loaded));
}

#[test]
fn bundles_and_agents_that_are_written_twice_are_disabled() {
    let servers = r#""servers":{"fs":{"command":"x"}}"#;
    let bundles = [
        r#""bundles":{"b":{"serverId":"fs"}}"#,
        r#""bundles":{"b":{"serverId":"fs","allowTools":["read"]},"c":{"serverId":"fs"}}"#,
    ];
    let agents = [r#""agents":{"a":{}}"#, r#""agents":{"a":{"tools":["fs_read"]}}"#];
    for (first, last) in [(0, 1), (1, 0)] {
        let text = format!("{{{servers},{},{}}}", bundles[first], bundles[last]);
        let loaded = config::parse("x", &text);
        assert_eq!(loaded.config.bundles().len(), 0, "{text}");
        assert_eq!(loaded.config.disabled_bundles().len(), 2, "{text}");
        let text = format!("{{{servers},{},{}}}", agents[first], agents[last]);
        assert!(config::parse("x", &text).config.agents().named["a"].is_disabled, "{text}");
    }
    for twice in
        [r#""agents":"AGENTS.md","agents":{"a":{}}"#, r#""agents":{"a":{}},"agents":["b.md"]"#]
    {
        let loaded = config::parse("x", format!("{{{servers},{twice}}}"));
        let agent = CallerSpec { agent: Some("a"), ..CallerSpec::default() };
        assert!(loaded.config.agents().files.is_empty(), "{twice}");
        assert_eq!(visible(&loaded, agent), Visible::new(), "{twice}");
    }
}

/// A misspelt container of a layer may deny something, so it disables the layers below.
#[test]
fn a_misspelt_container_in_a_layer_disables_what_is_below_it() {
    let lower = r#"{"mcpServers":{"fs":{"command":"x"},"t":{"command":"y"}},
                    "bundles":{"b":{"serverId":"fs"}},"agents":{"a":{}}}"#;
    for key in ["mcpServer", "mcpservers", "mcp_servers", "Servers", "server", "mcpSevrers", "MCP"]
    {
        let loaded = over(lower, &format!(r#"{{"{key}":{{"t":{{"enabled":false}}}}}}"#));
        assert_eq!(visible(&loaded, CallerSpec::default()), Visible::new(), "{key}");
        assert!(has_error(&loaded), "{key}");
        assert!(loaded.diagnostics.iter().any(|found| found.code == Code::Disabled), "{key}");
    }
    for key in ["bundle", "Bundles", "bundels"] {
        let text = format!(r#"{{"{key}":{{"b":{{"serverId":"fs","allowTools":["read"]}}}}}}"#);
        let loaded = over(lower, &text);
        assert_eq!(loaded.config.bundles().len(), 0, "{key}");
        assert!(has_error(&loaded), "{key}");
    }
    for key in ["agent", "Agents", "agnets"] {
        let loaded = over(lower, &format!(r#"{{"{key}":{{"a":{{"tools":["fs_read"]}}}}}}"#));
        assert!(loaded.config.agents().named["a"].is_disabled, "{key}");
        assert!(has_error(&loaded), "{key}");
    }
}

/// Keys of whole settings files that resemble a container, but are none.
#[test]
fn keys_of_other_hosts_that_resemble_a_container_are_left_alone() {
    for other in [
        r#""server":{"port":4096,"hostname":"127.0.0.1"}"#,
        r#""lspServers":{"go":{"command":"gopls"}}"#,
        r#""map":{"x":{"y":1}}"#,
        r#""events":{"x":{"y":1}}"#,
        r#""_mcpServers":{"fs":{"command":"x","enabled":false}}"#,
        r#""mcpServers_old":{"fs":{"command":"x","enabled":false}}"#,
        r#""agent":"reviewer""#,
        r#""disable_ai":true"#,
        r#""tools":{"bash":false}"#,
    ] {
        let text = format!(r#"{{"mcpServers":{{"fs":{{"command":"x"}}}},{other}}}"#);
        let loaded = config::parse("settings.json", &text);
        assert_eq!(visible(&loaded, CallerSpec::default()).len(), 3, "{other}");
    }
    let opencode = r#"{"mcp":{"fs":{"type":"local","command":["x"]}},"agent":{"build":{"tools":{"bash":false}}}}"#;
    let loaded = config::parse("opencode.json", opencode);
    assert_eq!(visible(&loaded, CallerSpec::default()).len(), 3);
}

/// With servers elsewhere, `mcp` holds Gemini CLI's rules: an unknown list in it may exclude any
/// server.
#[test]
fn misspelt_lists_of_gemini_switch_everything_off() {
    for rule in [
        r#""exclude":["t"]"#,
        r#""exlcuded":["t"]"#,
        r#""alowed":["fs"]"#,
        r#""allow":["fs"]"#,
        r#""deny":["t"]"#,
        r#""blocked":["t"]"#,
        r#""Allowed":["fs"]"#,
        r#""others":["t"]"#,
        r#""disabled":true"#,
    ] {
        let text = format!(
            r#"{{"mcpServers":{{"fs":{{"command":"x"}},"t":{{"command":"y"}}}},"mcp":{{{rule}}}}}"#
        );
        let loaded = config::parse("settings.json", &text);
        assert_eq!(visible(&loaded, CallerSpec::default()), Visible::new(), "{rule}");
        assert!(has_error(&loaded), "{rule}");
    }
}

/// A limit in an unsupported object is not applied, so the servers it was meant for are disabled.
#[test]
fn a_limit_in_an_object_of_settings_disables_the_servers() {
    for other in [
        r#""naming":{"access":"read-only"}"#,
        r#""naming":{"denyTools":["write"]}"#,
        r#""timeouts":{"access":"read-only"}"#,
    ] {
        let text = format!(r#"{{"mcpServers":{{"fs":{{"command":"x"}}}},{other}}}"#);
        let loaded = config::parse("x", &text);
        assert_eq!(visible(&loaded, CallerSpec::default()), Visible::new(), "{other}");
        assert!(has_error(&loaded), "{other}");
    }
}
