//! `trunkline types`: writes the types of the tools that a caller sees, for programs that call them.

use std::sync::Arc;

use anyhow::Result;
use serde_json::json;
use trunkline::catalog::ItemKind;

use crate::arguments::{Format, TypesArguments};
use crate::environment::ProcessEnv;
use crate::host::caller::CallerOptions;
use crate::host::command_host::{ProblemDetail, with_host};
use crate::host::listed_tools::ListedTools;
use crate::output::exit::Outcome;
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::Settings;
use crate::tool_types::{TypedTool, render};

pub(crate) fn run(
    arguments: &TypesArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let who = CallerOptions::read(&arguments.who, settings, environment)?;
    let problems = ProblemDetail::of_list(arguments.server.as_deref());
    with_host(problems, settings, environment, terminal, async |hosted, terminal| {
        let server = arguments.server.as_deref();
        let listed =
            ListedTools::of(&who, (server, &arguments.lists), settings, hosted, terminal).await?;
        let is_meant = |name: &str| server.is_none_or(|server| server == name);
        let entries = listed.view.entries(ItemKind::Tool);
        let entries = entries.filter(|entry| is_meant(entry.server().name.as_str()));
        let tools: Vec<_> = entries
            .map(|entry| TypedTool::new(entry.exposed(), &entry.definition().to_value()))
            .collect();
        let source = render(&tools, arguments.language.into());
        terminal.print(&match settings.format {
            Format::Text => source,
            Format::Json | Format::Raw => {
                let language = arguments.language.as_str();
                let mut json = json!({ "language": language, "source": source });
                listed.add_to(&mut json);
                report::document(&json, settings.format)
            }
        })?;
        Ok(listed.report(terminal))
    })
}
