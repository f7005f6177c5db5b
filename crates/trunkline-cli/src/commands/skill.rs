//! `trunkline skill`: writes a skill file, by which an agent uses the tools of a server from its shell.

use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use trunkline::catalog::{Entry, ItemKind};
use trunkline::config::escape_control;
use trunkline::meta::signature;
use trunkline::view::DescriptionStyle;

use crate::arguments::{Format, SkillArguments};
use crate::environment::ProcessEnv;
use crate::host::caller::CallerOptions;
use crate::host::command_host::{ProblemDetail, with_host};
use crate::host::listed_tools::ListedTools;
use crate::output::exit::Outcome;
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

/// Longest name and description of a skill, the limits of its format.
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1_024;

pub(crate) fn run(
    arguments: &SkillArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let who = CallerOptions::read(&arguments.who, settings, environment)?;
    with_host(ProblemDetail::Shown, settings, environment, terminal, async |hosted, terminal| {
        let server = hosted.find(&arguments.server)?;
        let only = (Some(server.as_str()), &arguments.lists);
        let listed = ListedTools::of(&who, only, settings, hosted, terminal).await?;
        let entries = listed.view.entries(ItemKind::Tool);
        let entries: Vec<&Entry> = entries.filter(|it| it.server().name == server).collect();
        let line =
            |entry: &&Entry| signature(&listed.view.definition(entry, DescriptionStyle::AsWritten));
        let skill = SkillFile {
            server: server.as_str(),
            options: settings.written_config() + &arguments.who.written(),
            own_names: entries.iter().map(|entry| entry.name()).collect(),
            signatures: entries.iter().map(line).collect(),
        };
        // A skill without its tools would replace a good one.
        if listed.failures.is_empty() {
            terminal.print(&match settings.format {
                Format::Text => skill.as_text(),
                format => {
                    let mut json = json!({ "name": skill.name(), "text": skill.as_text() });
                    listed.add_to(&mut json);
                    report::document(&json, format)
                }
            })?;
        }
        Ok(listed.report(terminal))
    })
}

/// The content of a skill file.
struct SkillFile<'a> {
    server: &'a str,
    /// Options that each command needs, each after a space.
    options: String,
    /// The names that the server has for its tools.
    own_names: Vec<&'a str>,
    signatures: Vec<String>,
}

impl SkillFile<'_> {
    /// The name of the skill: lower-case letters, digits and hyphens.
    fn name(&self) -> String {
        let plain =
            |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' };
        self.server.chars().map(plain).take(MAX_NAME).collect()
    }

    /// What the skill is for, by which an agent decides to read it.
    fn description(&self) -> String {
        let names = self.own_names.join(", ");
        let text = format!("Tools of the MCP server {}, from the shell: {names}", self.server);
        escape_control(&text).chars().take(MAX_DESCRIPTION).collect()
    }

    fn as_text(&self) -> String {
        let (server, options) = (escape_control(self.server), escape_control(&self.options));
        // A JSON string is a YAML string, whatever is in it.
        let description = Value::from(self.description());
        let mut text = format!(
            "---\nname: {}\ndescription: {description}\n---\n\n# {server}\n\n\
             Call a tool of the MCP server `{server}` with its arguments:\n\n\
             ```sh\ntrunkline call{options} TOOL key=value list[]=item object:='{{\"a\": 1}}'\n```\n\n\
             `trunkline tool{options} TOOL` prints the types, limits and meaning of the arguments. Exit code 3 means that \
             the tool failed and printed why, 6 that the arguments do not fit.\n\n\
             ## Tools\n\n",
            self.name()
        );
        for signature in &self.signatures {
            let _ = writeln!(text, "- {signature}");
        }
        text
    }
}
