//! Runs the command line of mcporter.

use std::path::PathBuf;

use serde_json::{Value, json};
use tokio::process::Command;

use super::bounded::ProcessOutput;
use super::program::{Home, names, take, text};
use super::report::{RESOURCE, Report};
use super::{Ability, Endpoint};
use crate::peers;

pub(super) const ABILITIES: &[Ability] =
    &[Ability::Resources, Ability::Structure, Ability::Failure];

pub(super) async fn run(endpoint: &Endpoint<'_>) -> Report {
    let mcporter = Mcporter::new(endpoint);
    let mut report = Report::default();
    let it = &mut report;

    let done = mcporter.address("list", &["--json"]).await;
    it.tools = take(it, "tools", &done, |found| names(&found["tools"], "name"));
    let calling = ["--tool", "test_simple_text", "--output", "json"];
    let done = mcporter.address("call", &calling).await;
    it.text = take(it, "text", &done, said);
    let done = mcporter
        .name("call", &["fixture.test_structured_content", "city=Paris", "--output", "json"])
        .await;
    // It prints only structured content, if there is any.
    it.structured = take(it, "structured", &done, |found| Some(found.clone()));
    let done = mcporter.name("call", &["fixture.test_error_handling", "--output", "json"]).await;
    it.error = take(it, "error", &done, said).filter(|_| done.status.code() == Some(1));
    let done = mcporter.name("resource", &["fixture", "--json"]).await;
    it.resources = take(it, "resources", &done, |found| names(&found["resources"], "uri"));
    let done = mcporter.name("resource", &["fixture", RESOURCE, "--json"]).await;
    it.resource = take(it, "resource", &done, |found| text(&found["contents"][0]["text"]));
    report
}

/// The text of a tool result.
fn said(found: &Value) -> Option<String> {
    text(&found["content"][0]["text"])
}

struct Mcporter<'a> {
    home: Home,
    config: PathBuf,
    endpoint: &'a Endpoint<'a>,
}

impl<'a> Mcporter<'a> {
    fn new(endpoint: &'a Endpoint<'a>) -> Self {
        let server = match endpoint {
            Endpoint::Url(url) => json!({ "url": url }),
            Endpoint::Command(words) => json!({ "command": words[0], "args": words[1..] }),
        };
        let home = Home::new();
        let config = json!({ "imports": [], "mcpServers": { "fixture": server } });
        let config = home.write("mcporter.json", &config.to_string());
        Self { home, config, endpoint }
    }

    /// Runs one command against the server by URL or command line.
    async fn address(&self, verb: &str, arguments: &[&str]) -> ProcessOutput {
        let mut command = program();
        command.arg(verb);
        match self.endpoint {
            Endpoint::Url(url) => {
                command.args(["--http-url", url, "--allow-http"]);
            }
            Endpoint::Command(words) => {
                command.args(["--stdio", words[0]]);
                for word in &words[1..] {
                    command.args(["--stdio-arg", word]);
                }
            }
        }
        command.args(arguments).arg("--no-oauth");
        self.home.finish(command, "").await
    }

    /// Runs one command against the server by its name in a configuration.
    async fn name(&self, verb: &str, arguments: &[&str]) -> ProcessOutput {
        let mut command = program();
        command.arg("--config").arg(&self.config).arg(verb).args(arguments).arg("--no-oauth");
        self.home.finish(command, "").await
    }
}

fn program() -> Command {
    let mut command = Command::new(peers::conformance_node());
    command.arg(peers::node_modules().join("mcporter/dist/cli.js"));
    command
}
