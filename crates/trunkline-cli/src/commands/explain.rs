//! `trunkline explain`: every rule that has a say about something, and which one decides.

use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use trunkline::catalog::{Entry, Kind};
use trunkline::config::printable;
use trunkline::policy::{Step, Verdict};
use trunkline::view::View;

use crate::arguments::{ExplainArguments, Format};
use crate::environment::Environment;
use crate::exit::{Failure, FailureKind, Outcome};
use crate::finding::{Search, owners};
use crate::listing::reason_json;
use crate::report;
use crate::servers::{Asked, Hosted, say_failures, with_host};
use crate::settings::Settings;
use crate::terminal::Terminal;

/// What stands in every address and in no name.
const ADDRESS_SIGN: &str = "://";

pub(crate) fn run(
    arguments: &ExplainArguments,
    settings: &Settings,
    environment: &Arc<Environment>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    with_host(settings, environment, terminal, async |hosted, terminal| {
        let view = gathered(arguments, hosted, terminal).await?;
        let Some(entry) = find(&view, &arguments.name) else {
            return Err(unknown(arguments, hosted, &view).into());
        };
        let steps = view.explain(entry);
        terminal.print(&match settings.format {
            Format::Text => as_text(entry, &steps),
            Format::Json | Format::Raw => {
                report::document(&as_json(entry, &steps), settings.format)
            }
        })?;
        Ok(Outcome::Good)
    })
}

/// A view of everything that may have the name.
async fn gathered(
    arguments: &ExplainArguments,
    hosted: &Hosted,
    terminal: &mut Terminal,
) -> Result<View> {
    let name = arguments.name.as_str();
    // An agent that does not exist is said before anything is started.
    hosted.view(&arguments.who)?;
    let (owners, kinds) = if name.contains(ADDRESS_SIGN) {
        (Vec::new(), [Kind::Resource, Kind::ResourceTemplate])
    } else {
        (owners(hosted, name), [Kind::Tool, Kind::Prompt])
    };
    let asked = if owners.is_empty() { Asked::All } else { Asked::Only(&owners) };
    let failures = hosted.gather(asked, &kinds, terminal).await;
    say_failures(&failures, terminal);
    hosted.view(&arguments.who)
}

fn find<'v>(view: &'v View, name: &str) -> Option<&'v Entry> {
    let catalog = view.catalog();
    let named = [Kind::Tool, Kind::Prompt].into_iter().find_map(|kind| catalog.get(kind, name));
    named.or_else(|| catalog.resolve(name).first().map(|(entry, _)| *entry))
}

fn unknown(arguments: &ExplainArguments, hosted: &Hosted, view: &View) -> Failure {
    let name = arguments.name.as_str();
    let mut message = format!("there is nothing of the name `{}`", printable(name));
    let mut alike = Kind::ALL.into_iter().flat_map(|kind| view.existing_like(kind, name));
    if let Some(near) = alike.next() {
        message += &format!("; did you mean `{near}`?");
    }
    let failure = Failure::new(FailureKind::Unknown, message);
    let search = Search { hosted, who: &arguments.who, name };
    match search.switched_off() {
        Some(server) => failure.with_hint(format!("its server `{server}` is switched off")),
        None => failure,
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Hide => "hide",
        Verdict::Deny => "deny",
    }
}

fn as_text(entry: &Entry, steps: &[Step<'_>]) -> String {
    let (kind, exposed) = (entry.kind().as_str(), printable(entry.exposed()));
    let (own, server) = (printable(entry.name()), printable(entry.server().name.as_str()));
    let decisive = steps.iter().find(|step| step.decides);
    let fate = match decisive.map(|step| step.verdict) {
        None | Some(Verdict::Pass) => "can be seen and called",
        Some(Verdict::Hide) => "is hidden",
        Some(Verdict::Deny) => "is not available",
    };
    let mut text = format!("The {kind} {exposed} {fate}. It is {own} of server {server}.\n\n");
    let rows: Vec<_> = steps.iter().map(row).collect();
    text += &report::table(&rows);
    if let Some(hint) = decisive.and_then(|step| step.reason.hint()) {
        let _ = writeln!(text, "\nTo change that: {hint}.");
    }
    text
}

fn row(step: &Step<'_>) -> [String; 4] {
    let reason = &step.reason;
    let place = reason.location().map(|place| format!("  {}", printable(&place.to_string())));
    let mark = if step.decides { ">" } else { " " };
    [
        format!("{mark} {}", word(step.verdict)),
        reason.rule().as_str().to_owned(),
        printable(&reason.to_string()),
        place.unwrap_or_default(),
    ]
}

fn as_json(entry: &Entry, steps: &[Step<'_>]) -> Value {
    let step_json = |step: &Step<'_>| {
        let mut json = reason_json(&step.reason);
        json["verdict"] = word(step.verdict).into();
        json["decides"] = step.decides.into();
        json
    };
    let decisive = steps.iter().find(|step| step.decides);
    json!({
        "kind": entry.kind().as_str(),
        "name": entry.exposed(),
        "server": entry.server().name.as_str(),
        "own": entry.name(),
        "decision": decisive.map_or("allow", |step| word(step.verdict)),
        "steps": steps.iter().map(step_json).collect::<Vec<_>>(),
    })
}
