//! `trunkline complete`: requests completions for an argument of a prompt or a resource template.

use std::sync::Arc;

use anyhow::Result;
use trunkline::call::{CallOptions, Completion, CompletionRef};
use trunkline::catalog::ItemKind;
use trunkline::config::escape_control;
use trunkline::message::Raw;
use trunkline::view::View;

use crate::arguments::CompleteArguments;
use crate::environment::ProcessEnv;
use crate::host::caller::CallerOptions;
use crate::host::command_host::{ProblemDetail, with_host};
use crate::host::elicitation::UserInput;
use crate::host::resolve::{NameSearch, ResolvedName, TimeLimit};
use crate::host::run_call::{CallRunner, pairs};
use crate::output::exit::Outcome;
use crate::output::terminal::Terminal;
use crate::settings::Settings;
use crate::typed::ArgumentSchema;

pub(crate) fn run(
    arguments: &CompleteArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let time = TimeLimit::new(arguments.bounds.timeout);
    let known = pairs(&arguments.arguments, Raw::from_string)?;
    let known = (!arguments.arguments.is_empty()).then_some(&known);
    let (argument, value) = arguments.argument.split_once('=').unwrap_or((&arguments.argument, ""));
    let who = CallerOptions::read(&arguments.who, settings, environment)?;
    with_host(ProblemDetail::Counted, settings, environment, terminal, async |hosted, terminal| {
        let name = arguments.name.as_str();
        let search = NameSearch { hosted, who: &who, name, server: None, time };
        let (found, of) = if name.contains("://") {
            (search.address(terminal).await?, CompletionRef::Template(name))
        } else {
            (search.named(ItemKind::Prompt, terminal).await?, CompletionRef::Prompt(name))
        };
        let ResolvedName { caller, view, server } = found;
        if !arguments.no_check
            && let Some(schema) = schema_of(&view, of)
        {
            let names = known.map(Raw::members).unwrap_or_default();
            let names = names.iter().map(|(name, _)| name.as_str());
            schema.check_names(std::iter::once(argument).chain(names))?;
        }
        let shown = CallRunner {
            settings,
            environment,
            bounds: &arguments.bounds,
            time,
            hosted,
            server: &server,
            doing: format!("completing {}", escape_control(argument)),
            input: &UserInput::default(),
            checked_tool: None,
        };
        shown
            .run(terminal, async |options: CallOptions<'_>| {
                let completion = Completion { of, argument, value, known };
                caller.complete(&completion, options).await
            })
            .await
    })
}

/// The arguments of a prompt or a template, if it is listed.
fn schema_of(view: &View, of: CompletionRef<'_>) -> Option<ArgumentSchema> {
    match of {
        CompletionRef::Prompt(name) => {
            let entry = view.catalog().get(ItemKind::Prompt, name)?;
            Some(ArgumentSchema::of_prompt(entry.definition()))
        }
        CompletionRef::Template(address) => {
            let entry = view.route_resource(address).ok()?.entry;
            let is_template = entry.kind() == ItemKind::ResourceTemplate;
            is_template.then(|| ArgumentSchema::of_template(entry.name()))
        }
    }
}
