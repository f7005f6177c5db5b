//! BUN-2: the objects that hold servers, bundles and agents, written twice or under a misspelt key.

use trunkline::config::{self, Code, LoadedConfig};
use trunkline::policy::CallerSpec;

use crate::closed::{Visible, visible};

fn has_error(loaded: &LoadedConfig) -> bool {
    loaded.diagnostics.iter().any(|found| found.is_error(false))
}

/// Nothing says which of two containers counts, and hosts disagree: what they name is not used.
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
