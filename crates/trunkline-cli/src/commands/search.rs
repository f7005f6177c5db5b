//! `trunkline search`: finds tools by what they do, as the meta tool `trunkline_search` does.

use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use trunkline::config::escape_control;
use trunkline::meta::{SearchArguments, SearchHit, signature};
use trunkline::view::{DescriptionStyle, View};

use crate::arguments::{Format, SearchCommandArguments};
use crate::environment::ProcessEnv;
use crate::host::caller::CallerOptions;
use crate::host::command_host::{ProblemDetail, with_host};
use crate::host::listed_tools::ListedTools;
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

pub(crate) fn run(
    arguments: &SearchCommandArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let search = SearchArguments {
        queries: arguments.queries.clone(),
        server: arguments.server.clone(),
        limit: arguments.limit.into(),
    };
    let is_valid = search.validate();
    is_valid.map_err(|error| Failure::new(FailureKind::Usage, error.problem().to_owned()))?;
    let who = CallerOptions::read(&arguments.who, settings, environment)?;
    let problems = ProblemDetail::of_list(arguments.server.as_deref());
    with_host(problems, settings, environment, terminal, async |hosted, terminal| {
        let listed = ListedTools::of(
            &who,
            (arguments.server.as_deref(), &arguments.lists),
            settings,
            hosted,
            terminal,
        )
        .await?;
        let view = &listed.view;
        let hits = hosted.host.search_tools(view, &search).await;
        let text = match settings.format {
            Format::Text => {
                let index = hosted.host.tool_index(view.catalog()).await;
                as_text(view, &hits, |hit| match arguments.explain {
                    true => Some(index.explain(view, &search, hit.entry)),
                    false => None,
                })
            }
            Format::Json => {
                let hits: Value = hits.iter().map(|hit| as_json(view, hit)).collect();
                let mut json = json!({ "tools": hits });
                listed.add_to(&mut json);
                report::document(&json, settings.format)
            }
            Format::Raw => {
                let line = |hit: &SearchHit<'_>| format!("{}\n", definition(view, hit));
                hits.iter().map(line).collect()
            }
        };
        terminal.print(&text)?;
        if hits.is_empty() && listed.is_complete() {
            terminal.tell("no tool fits; try other words, or `trunkline tools`\n");
        }
        Ok(listed.report(terminal))
    })
}

fn definition(view: &View, hit: &SearchHit<'_>) -> String {
    view.definition(hit.entry, DescriptionStyle::AsWritten).text().to_owned()
}

fn as_text(
    view: &View,
    hits: &[SearchHit<'_>],
    explain: impl Fn(&SearchHit<'_>) -> Option<Vec<String>>,
) -> String {
    let mut text = String::new();
    for hit in hits {
        let reasons = explain(hit);
        if reasons.is_some() {
            let _ = write!(text, "{:.2}  ", hit.score);
        }
        let line = signature(&view.definition(hit.entry, DescriptionStyle::AsWritten));
        let _ = writeln!(text, "{line}");
        if !hit.similar.is_empty() {
            let names: Vec<_> = hit.similar.iter().map(|entry| entry.exposed()).collect();
            let _ = writeln!(text, "  similar: {}", names.join(", "));
        }
        for reason in reasons.iter().flatten() {
            let _ = writeln!(text, "      {}", escape_control(reason));
        }
    }
    text
}

fn as_json(view: &View, hit: &SearchHit<'_>) -> Value {
    let definition = view.definition(hit.entry, DescriptionStyle::AsWritten);
    json!({
        "name": hit.entry.exposed(),
        "server": hit.entry.server().name.as_str(),
        "score": hit.score,
        "similar": hit.similar.iter().map(|entry| entry.exposed()).collect::<Value>(),
        "signature": signature(&definition),
    })
}
