//! Builds hosts from configurations with errors, and with agents that were loaded before.

use trunkline::Host;
use trunkline::config::{self, AgentFile};

#[tokio::test]
async fn a_host_without_usable_servers_starts_only_if_errors_are_allowed() {
    let text = r#"{ "mcpServers": { "a": { "command": 7 } } }"#;
    let builder = || Host::builder().config_text("mcp.json", text);
    let error = builder().start().await.err().expect("no server can be used");
    let host = builder().allow_errors().start().await.unwrap();
    assert_eq!(host.diagnostics().len(), error.diagnostics().len());
    assert!(host.config().servers().len() == 0 && !error.diagnostics().is_empty());
    host.shutdown().await;
}

/// Without an environment, an agent file cannot be read.
#[tokio::test]
async fn given_agents_are_used_instead_of_the_agent_files_of_the_configuration() {
    let builder = || Host::builder().config_text("mcp.json", r#"{ "agents": ["AGENTS.md"] }"#);
    assert!(builder().start().await.is_err(), "the file is read");
    let text = "---\nname: reviewer\n---\n";
    let agents = config::parse_agents("AGENTS.md", text, AgentFile::Several).agents;
    let host = builder().agents(agents).start().await.unwrap();
    assert!(host.diagnostics().is_empty(), "{:?}", host.diagnostics());
    assert!(host.for_agent("reviewer").is_ok());
    host.shutdown().await;
}
