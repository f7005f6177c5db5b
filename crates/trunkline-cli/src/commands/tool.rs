//! `trunkline tool`: describes one tool, with its arguments and an example call.

use std::sync::Arc;

use anyhow::Result;
use trunkline::catalog::ItemKind;
use trunkline::view::View;

use crate::arguments::{Format, ToolArguments};
use crate::environment::ProcessEnv;
use crate::host::caller::CallerOptions;
use crate::host::command_host::{CommandHost, ProblemDetail, with_host};
use crate::host::remembered_lists::RememberedLists;
use crate::host::resolve::{NameSearch, TimeLimit};
use crate::host::tool_name::TypedName;
use crate::host::tool_text;
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

pub(crate) fn run(
    arguments: &ToolArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let (_, words) = arguments.split_url();
    let time = TimeLimit::new(arguments.lists.timeout);
    let who = CallerOptions::read(&arguments.who, settings, environment)?;
    with_host(ProblemDetail::Counted, settings, environment, terminal, async |hosted, terminal| {
        let (typed, rest) = TypedName::split(ItemKind::Tool, words, None, hosted);
        if let [other, ..] = rest {
            let message = format!("`{other}` is too much: describe one tool at a time");
            return Err(Failure::new(FailureKind::Usage, message).into());
        }
        let name = &*typed.within(time).exposed(hosted, &who, terminal).await?;
        let (view, remembered) =
            match cached(name, &who, hosted)?.filter(|_| !arguments.lists.refresh) {
                Some(cached) => cached,
                None => {
                    let search = NameSearch { hosted, who: &who, name, server: None, time };
                    let view = search.named(ItemKind::Tool, terminal).await?.view;
                    (view, RememberedLists::default())
                }
            };
        let entry = view.route(ItemKind::Tool, name);
        let entry =
            entry.map_err(|error| Failure::from(trunkline::call::CallError::from(error)))?;
        let definition = view.definition(entry, hosted.host.description_style());
        match settings.format {
            Format::Json => terminal.print(&report::indented(&definition))?,
            Format::Raw => terminal.print(&format!("{definition}\n"))?,
            Format::Text => {
                let (before, after) = settings.written_server();
                let options = settings.written_config() + &before;
                let text = tool_text::render(entry, terminal.layout(), (&options, &after));
                terminal.page(&text)?;
                terminal.tell(&remembered.notice());
            }
        }
        Ok(Outcome::Good)
    })
}

/// A view with the tool, if its server has not been started and its list is cached.
fn cached(
    name: &str,
    who: &CallerOptions<'_>,
    hosted: &CommandHost,
) -> Result<Option<(View, RememberedLists)>> {
    let view = hosted.view(who)?;
    let Ok(entry) = view.route(ItemKind::Tool, name) else { return Ok(None) };
    let servers = [entry.server().name.clone()];
    let remembered = RememberedLists::of(hosted, &servers, &[ItemKind::Tool]);
    Ok((!remembered.is_empty()).then_some((view, remembered)))
}
