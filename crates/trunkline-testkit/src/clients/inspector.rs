//! Runs the command line of the inspector.

use serde_json::Value;
use tokio::process::Command;

use super::bounded::ProcessOutput;
use super::program::{Home, names, take, text};
use super::report::{PROMPT, PROMPT_ARGUMENTS, RESOURCE, Report};
use super::{Ability, Endpoint, Era};
use crate::peers;

pub(super) const ABILITIES: &[Ability] =
    &[Ability::Resources, Ability::Templates, Ability::Prompts, Ability::Failure];

/// The exit code for a tool that reported a failure.
const TOOL_FAILED: i32 = 5;

pub(super) async fn run(era: Era, endpoint: &Endpoint<'_>) -> Report {
    let inspector = Inspector { home: Home::new(), era, endpoint };
    let mut report = Report::default();
    let it = &mut report;

    let done = inspector.ask(&["tools/list"]).await;
    it.tools = take(it, "tools", &done, |found| names(&found["result"]["tools"], "name"));
    let done = inspector.ask(&["resources/list"]).await;
    it.resources =
        take(it, "resources", &done, |found| names(&found["result"]["resources"], "uri"));
    let done = inspector.ask(&["resources/templates/list"]).await;
    it.templates = take(it, "templates", &done, |found| {
        names(&found["result"]["resourceTemplates"], "uriTemplate")
    });
    let done = inspector.ask(&["prompts/list"]).await;
    it.prompts = take(it, "prompts", &done, |found| names(&found["result"]["prompts"], "name"));

    let done = inspector.ask(&["tools/call", "--tool-name", "test_simple_text"]).await;
    it.text = take(it, "text", &done, said);
    let done = inspector.ask(&["tools/call", "--tool-name", "test_error_handling"]).await;
    // It prints the result to stdout, and a line about the failure to stderr.
    it.error = take(it, "error", &done, said).filter(|_| done.status.code() == Some(TOOL_FAILED));
    let done = inspector.ask(&["resources/read", "--uri", RESOURCE]).await;
    it.resource =
        take(it, "resource", &done, |found| text(&found["result"]["contents"][0]["text"]));
    let [first, second] = PROMPT_ARGUMENTS.map(|(name, value)| format!("{name}={value}"));
    let done = inspector
        .ask(&["prompts/get", "--prompt-name", PROMPT, "--prompt-args", &first, &second])
        .await;
    it.prompt =
        take(it, "prompt", &done, |found| text(&found["result"]["messages"][0]["content"]["text"]));
    report
}

/// The text of a tool result.
fn said(found: &Value) -> Option<String> {
    text(&found["result"]["content"][0]["text"])
}

struct Inspector<'a> {
    home: Home,
    era: Era,
    endpoint: &'a Endpoint<'a>,
}

impl Inspector<'_> {
    /// Runs one command: a method and its arguments.
    async fn ask(&self, method: &[&str]) -> ProcessOutput {
        let launcher = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";
        let mut command = Command::new(peers::conformance_node());
        command.arg(peers::node_modules().join(launcher)).arg("--cli");
        // The default store is the keyring of the machine.
        command.env("MCP_INSPECTOR_SECRET_STORE", "memory");
        command.args(["--format", "json", "--quiet", "--protocol-era", self.era.name()]);
        command.arg("--method").args(method);
        match self.endpoint {
            Endpoint::Url(url) => command.args(["--transport", "http", "--server-url", url]),
            Endpoint::Command(words) => command.arg("--").args(*words),
        };
        self.home.finish(command, "").await
    }
}
