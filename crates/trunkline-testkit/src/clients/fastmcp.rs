//! Runs the command line of FastMCP.

use serde_json::Value;
use tokio::process::Command;

use super::bounded::ProcessOutput;
use super::program::{Home, names, take, text};
use super::report::{PROMPT, PROMPT_ARGUMENTS, RESOURCE, Report};
use super::{Ability, Endpoint};
use crate::peers;

pub(super) const ABILITIES: &[Ability] =
    &[Ability::Resources, Ability::Prompts, Ability::Elicitation, Ability::Failure];

/// Input for every field of an elicitation.
const TYPED: &str = "Ada\nAda\n";

pub(super) async fn run(endpoint: &Endpoint<'_>) -> Report {
    let fastmcp = FastMcp { home: Home::new(), endpoint };
    let mut report = Report::default();
    let it = &mut report;

    let done = fastmcp.ask("list", &["--resources", "--prompts"], "").await;
    it.tools = take(it, "tools", &done, |found| names(&found["tools"], "name"));
    it.resources = take(it, "resources", &done, |found| names(&found["resources"], "uri"));
    it.prompts = take(it, "prompts", &done, |found| names(&found["prompts"], "name"));

    let done = fastmcp.ask("call", &["--target", "test_simple_text"], "").await;
    it.text = take(it, "text", &done, said);
    let done = fastmcp.ask("call", &["--target", "test_error_handling"], "").await;
    it.error = take(it, "error", &done, said).filter(|_| done.status.code() == Some(1));
    let done = fastmcp.ask("call", &["--target", RESOURCE], "").await;
    it.resource = take(it, "resource", &done, |found| text(&found[0]["text"]));
    let arguments = PROMPT_ARGUMENTS.map(|(name, value)| (name, Value::from(value)));
    let arguments = Value::from_iter(arguments).to_string();
    let done = fastmcp
        .ask("call", &["--target", PROMPT, "--prompt", "--input-json", &arguments], "")
        .await;
    it.prompt = take(it, "prompt", &done, |found| text(&found["messages"][0]["content"]["text"]));
    let asking = ["--target", "test_elicitation", "--input-json", r#"{"message":"Who are you?"}"#];
    let done = fastmcp.ask("call", &asking, TYPED).await;
    it.elicited = take(it, "elicited", &done, |found| said(found).map(|said| vec![said]));
    report
}

/// The text of a tool result.
fn said(found: &Value) -> Option<String> {
    text(&found["content"][0]["text"])
}

struct FastMcp<'a> {
    home: Home,
    endpoint: &'a Endpoint<'a>,
}

impl FastMcp<'_> {
    /// Runs one command with this input on stdin.
    async fn ask(&self, verb: &str, arguments: &[&str], input: &str) -> ProcessOutput {
        let mut command = Command::new(peers::python().with_file_name("fastmcp"));
        command.arg(verb).args(arguments).arg("--json");
        // Disables its check for a newer version.
        command.env("FASTMCP_CHECK_FOR_UPDATES", "off");
        match self.endpoint {
            Endpoint::Url(url) => command.args(["--server-spec", url]),
            Endpoint::Command(words) => command.arg("--command").arg(shell_words(words)),
        };
        self.home.finish(command, input).await
    }
}

/// Quotes a command line for a shell.
fn shell_words(words: &[&str]) -> String {
    let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ")
}
