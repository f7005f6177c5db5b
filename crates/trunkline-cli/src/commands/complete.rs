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
use crate::host::tool_name::TypedName;
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
    let (server, name, argument) = arguments.words();
    let (argument, value) = argument.split_once('=').unwrap_or((argument, ""));
    let who = CallerOptions::read(&arguments.who, settings, environment)?;
    with_host(ProblemDetail::Counted, settings, environment, terminal, async |hosted, terminal| {
        let is_address = name.contains("://");
        let name = match is_address {
            true => name.to_owned(),
            false => {
                let words = [name.to_owned()];
                let (typed, _) = TypedName::split(ItemKind::Prompt, &words, server, hosted);
                typed.within(time).exposed(hosted, &who, terminal).await?
            }
        };
        let server = server.filter(|_| is_address);
        let server = server.map(|name| hosted.find(name)).transpose()?;
        let search = NameSearch { hosted, who: &who, name: &name, server, time };
        let found = match is_address {
            true => search.address(terminal).await?,
            false => search.named(ItemKind::Prompt, terminal).await?,
        };
        let ResolvedName { caller, view, server } = found;
        let address = search.address_in(&view);
        let of = match is_address {
            true => CompletionRef::Template(&address),
            false => CompletionRef::Prompt(&name),
        };
        let completion = Completion { of, argument, value, known };
        if !arguments.no_check {
            check(&completion, &view)?;
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
            check: None,
        };
        shown
            .run(terminal, async |options: CallOptions<'_>| {
                caller.complete(&completion, options).await
            })
            .await
    })
}

/// Checks that the prompt or template has the arguments.
fn check(completion: &Completion<'_>, view: &View) -> Result<()> {
    let Some(schema) = schema_of(view, completion.of) else { return Ok(()) };
    let known = completion.known.map(Raw::members).unwrap_or_default();
    let known = known.iter().map(|(name, _)| name.as_str());
    schema.check_names(std::iter::once(completion.argument).chain(known))
}

/// The arguments of a prompt or a template, if it is listed.
fn schema_of(view: &View, of: CompletionRef<'_>) -> Option<ArgumentSchema> {
    match of {
        CompletionRef::Prompt(name) => {
            let entry = view.catalog().get(ItemKind::Prompt, name)?;
            Some(ArgumentSchema::of_prompt(entry.definition()).named(name))
        }
        CompletionRef::Template(address) => {
            let entry = view.route_resource(address).ok()?.entry;
            let is_template = entry.kind() == ItemKind::ResourceTemplate;
            is_template.then(|| ArgumentSchema::of_template(entry.name()).named(entry.name()))
        }
    }
}
