//! `trunkline skill`: writes a skill file, by which an agent uses the tools of a server from its shell.

use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use trunkline::catalog::{Entry, ItemKind};
use trunkline::config::escape_control;
use trunkline::message::Raw;
use trunkline::meta::{parameter_list, signature};
use trunkline::name::ServerName;
use trunkline::view::DescriptionStyle;

use crate::arguments::{CommandLineServer, Format, SkillArguments, quoted};
use crate::environment::ProcessEnv;
use crate::host::caller::CallerOptions;
use crate::host::command_host::{CommandHost, ProblemDetail, with_host};
use crate::host::listed_tools::ListedTools;
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

/// Longest name and description of a skill, the limits of its format.
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1_024;

/// Characters of a tool in the description of its skill.
const MAX_PURPOSE: usize = 120;

pub(crate) fn run(
    arguments: &SkillArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    if settings.server.as_ref().is_some_and(CommandLineServer::may_hold_secret) {
        let message = "a part of the command line may be a secret, which a skill would keep";
        let hint = "put the server into a configuration with `trunkline add NAME -- COMMAND`, and run `trunkline \
                    skill NAME`";
        return Err(Failure::new(FailureKind::Usage, message).with_hint(hint).into());
    }
    if let (Some(name), Some(CommandLineServer::Program(_))) =
        (arguments.server(), &settings.server)
    {
        return Err(two_servers(name).into());
    }
    let who = CallerOptions::read(&arguments.who, settings, environment)?;
    with_host(ProblemDetail::OfServer, settings, environment, terminal, async |hosted, terminal| {
        let server = match arguments.server() {
            Some(name) => hosted.find(name)?,
            None => only_server(hosted)?,
        };
        let only = (Some(server.as_str()), &arguments.lists);
        let mut listed = ListedTools::of(&who, only, settings, hosted, terminal).await?;
        // A skill without its tools would replace a good one.
        if let Some(failure) = listed.failures.pop() {
            return Err(failure.into());
        }
        let entries = listed.view.entries(ItemKind::Tool);
        let entries = entries.filter(|it| it.server().name == server);
        let tool = |entry: &Entry| SkillTool {
            name: entry.exposed().to_owned(),
            definition: listed.view.definition(entry, DescriptionStyle::AsWritten),
        };
        let skill = SkillFile {
            server: server.as_str(),
            options: settings.written_config() + &arguments.who.written(),
            on_command_line: settings.written_server(),
            tools: entries.map(tool).collect(),
        };
        terminal.print(&match settings.format {
            Format::Text => skill.as_text(),
            format => {
                let mut json = json!({ "name": skill.name(), "text": skill.as_text() });
                listed.add_to(&mut json);
                report::document(&json, format)
            }
        })?;
        Ok(listed.report(terminal))
    })
}

/// The error for the name of a server together with a command after `--`.
fn two_servers(name: &str) -> Failure {
    let name = escape_control(name);
    let message =
        format!("`{name}` and the command after `--` are two servers; a skill is for one");
    let hint = format!(
        "leave out `{name}` for a skill of the command, or the command for the server `{name}` of the configuration"
    );
    Failure::new(FailureKind::Usage, message).with_hint(hint)
}

/// The server on the command line, the only one there is.
fn only_server(hosted: &CommandHost) -> Result<ServerName> {
    let name = hosted.loaded.config.servers().next().map(|server| server.name.as_str());
    hosted.find(name.unwrap_or_default())
}

/// The content of a skill file.
struct SkillFile<'a> {
    server: &'a str,
    /// Options that each command needs, each after a space.
    options: String,
    /// The server on the command line as it is written before and after the words of a command.
    on_command_line: (String, String),
    tools: Vec<SkillTool>,
}

/// A tool of a skill.
struct SkillTool {
    name: String,
    definition: Raw,
}

impl SkillTool {
    /// What it does: the first sentence of its description, or else its name.
    fn purpose(&self) -> String {
        let description = self.definition.get("description");
        let description = description.as_ref().and_then(Raw::as_str).unwrap_or_default();
        let line = description.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let sentence = line.split(". ").next().unwrap_or(line).trim().trim_end_matches('.');
        match sentence.is_empty() {
            true => self.name.clone(),
            false => sentence.chars().take(MAX_PURPOSE).collect(),
        }
    }

    /// Whether its signature has only some of its parameters.
    fn is_cut(&self) -> bool {
        parameter_list(&self.definition).ends_with(" more)")
    }
}

impl SkillFile<'_> {
    /// The name of the skill: lower-case letters, digits and hyphens.
    fn name(&self) -> String {
        let plain =
            |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' };
        self.server.chars().map(plain).take(MAX_NAME).collect()
    }

    /// What the skill is for, by which an agent decides to read it: as many tools as fit, and the number of the others.
    fn description(&self) -> String {
        let mut text = format!("Use the MCP server {} from the shell. Its tools: ", self.server);
        let purposes: Vec<_> =
            self.tools.iter().map(|tool| escape_control(&tool.purpose())).collect();
        for (at, purpose) in purposes.iter().enumerate() {
            let more = format!("; and {} more", purposes.len() - at);
            let separator = if at == 0 { "" } else { "; " };
            let length = |text: &str| text.chars().count();
            let needed = length(&text) + length(separator) + length(purpose) + length(&more);
            if needed > MAX_DESCRIPTION {
                return text + &more;
            }
            text += separator;
            text += purpose;
        }
        escape_control(&text)
    }

    /// A command with the options and the server that each command needs.
    fn command(&self, name: &str, words: &str) -> String {
        let (before, after) = &self.on_command_line;
        escape_control(&format!("trunkline {name}{}{before} {words}{after}", self.options))
    }

    fn as_text(&self) -> String {
        let server = escape_control(self.server);
        // A JSON string is a YAML string, whatever is in it.
        let description = Value::from(self.description());
        let call = self.command("call", "TOOL key=value list[]=item object:='{\"a\": 1}'");
        let tool = self.command("tool", "TOOL");
        let mut text = format!(
            "---\nname: {}\ndescription: {description}\n---\n\n# {server}\n\n\
             Call a tool of the MCP server `{server}` with its arguments:\n\n\
             ```sh\n{call}\n```\n\n\
             `{tool}` prints the types, limits and meaning of the arguments. Exit code 3 means that \
             the tool failed and printed why, 6 that the arguments do not fit.\n\n\
             ## Tools\n\n",
            self.name()
        );
        for tool in &self.tools {
            let _ = write!(text, "- {}", signature(&tool.definition));
            if tool.is_cut() {
                let command = self.command("tool", &quoted(&tool.name));
                let _ = write!(text, " (`{command}` prints all parameters)");
            }
            text.push('\n');
        }
        text
    }
}
