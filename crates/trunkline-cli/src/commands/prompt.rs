//! `trunkline prompt`: gets one prompt with its arguments.

use std::sync::Arc;

use anyhow::Result;
use trunkline::call::CallOptions;
use trunkline::catalog::ItemKind;
use trunkline::config::escape_control;
use trunkline::message::Raw;

use crate::arguments::PromptArguments;
use crate::environment::ProcessEnv;
use crate::host::caller::CallerOptions;
use crate::host::command_host::{ProblemDetail, with_host};
use crate::host::elicitation::UserInput;
use crate::host::missing_arguments;
use crate::host::resolve::{NameSearch, ResolvedName, TimeLimit};
use crate::host::run_call::{CallRunner, pairs};
use crate::host::tool_name::TypedName;
use crate::output::exit::Outcome;
use crate::output::terminal::Terminal;
use crate::settings::Settings;
use crate::typed::ArgumentSchema;

pub(crate) fn run(
    arguments: &PromptArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let time = TimeLimit::new(arguments.bounds.timeout);
    // Arguments of prompts are always strings.
    let (_, words) = arguments.split_url();
    let pairs_of =
        |words: &[String]| pairs(&[&arguments.arguments, words].concat(), Raw::from_string);
    pairs_of(&[])?;
    let who = CallerOptions::read(&arguments.who, settings, environment)?;
    with_host(ProblemDetail::Counted, settings, environment, terminal, async |hosted, terminal| {
        let (typed, rest) = TypedName::split(ItemKind::Prompt, words, None, hosted);
        let given = pairs_of(rest)?;
        let name = &*typed.within(time).exposed(hosted, &who, terminal).await?;
        let search = NameSearch { hosted, who: &who, name, server: None, time };
        let ResolvedName { caller, view, server } =
            search.named(ItemKind::Prompt, terminal).await?;
        let entry = view.catalog().get(ItemKind::Prompt, name).filter(|_| !arguments.no_check);
        let given =
            match entry.map(|entry| ArgumentSchema::of_prompt(entry.definition()).named(name)) {
                Some(schema) => checked(given, &schema, arguments.yes, terminal).await?,
                None => given,
            };
        let shown = CallRunner {
            settings,
            environment,
            bounds: &arguments.bounds,
            time,
            hosted,
            server: &server,
            doing: format!("getting {}", escape_control(name)),
            input: &UserInput::default(),
            check: None,
        };
        shown
            .run(terminal, async |options: CallOptions<'_>| {
                caller.get_prompt(name, given, options).await
            })
            .await
    })
}

/// The arguments, if the prompt has all of them. Those that are missing are asked for on a terminal.
async fn checked(
    given: Raw,
    schema: &ArgumentSchema,
    asks_nothing: bool,
    terminal: &Terminal,
) -> Result<Raw> {
    schema.check_names(given.members().iter().map(|(name, _)| name.as_str()))?;
    let given = match asks_nothing {
        true => given,
        false => missing_arguments::ask(given, schema, terminal).await?,
    };
    schema.check_required(&given)?;
    Ok(given)
}
