//! `trunkline explain`: every rule that has a say about something, and which one decides.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use trunkline::catalog::{Entry, Kind};
use trunkline::config::printable;
use trunkline::error::Error;
use trunkline::name::ServerName;
use trunkline::policy::{Step, Verdict};
use trunkline::view::View;

use crate::arguments::{ExplainArguments, Format};
use crate::environment::Environment;
use crate::exit::{Failure, FailureKind, Outcome};
use crate::finding::{Search, TimeLimit, owners, unanswered};
use crate::listing::{reason_json, renamed_text};
use crate::report;
use crate::servers::{Problems, say_failures, with_host};
use crate::settings::{Settings, Verbosity};
use crate::terminal::Terminal;
use crate::who::Asker;

/// What stands in every address and in no name.
const ADDRESS_SIGN: &str = "://";

/// Most names that are suggested for one that does not exist.
const MAX_SUGGESTIONS: usize = 3;

pub(crate) fn run(
    arguments: &ExplainArguments,
    settings: &Settings,
    environment: &Arc<Environment>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let who = Asker::read(&arguments.who, settings, environment)?;
    with_host(Problems::Counted, settings, environment, terminal, async |hosted, terminal| {
        // An agent that does not exist is said before anything is started.
        hosted.meet(&who, terminal)?;
        let server = arguments.server.as_deref().map(|name| hosted.find(name)).transpose()?;
        let time = TimeLimit::new(None);
        let search = Search { hosted, who: &who, name: &arguments.name, server, time };
        let kinds = kinds(search.name);
        let view = hosted.view(&who)?;
        let known = match arguments.refresh {
            true => Vec::new(),
            false => remembered(&search, kinds, &view),
        };
        let failures = match known.is_empty() {
            true => hosted.gather(&asked(&search), kinds, terminal).await,
            false => Vec::new(),
        };
        if settings.verbosity > Verbosity::Quiet && settings.format == Format::Text {
            known.iter().for_each(|it| terminal.say(&not_started(it)));
        }
        let view = hosted.view(&who)?;
        let found = found(&search, kinds, &view);
        if found.is_empty() {
            return Err(nothing(&search, &view, &failures, terminal).into());
        }
        let is_of =
            |error: &&Error| found.iter().any(|it| error.server() == Some(&it.server().name));
        say_failures(&failures.iter().filter(is_of).cloned().collect::<Vec<_>>(), terminal);
        let explained: Vec<_> =
            found.iter().map(|entry| (*entry, view.explain_address(entry, search.name))).collect();
        terminal.print(&match settings.format {
            Format::Text => all_as_text(search.name, &explained),
            Format::Json | Format::Raw => {
                report::document(&all_as_json(&explained), settings.format)
            }
        })?;
        Ok(Outcome::Good)
    })
}

/// The servers of what the name means, if all of it is known from an earlier run. An address may also be
/// of a server whose list is not known.
fn remembered(search: &Search<'_>, kinds: &[Kind], view: &View) -> Vec<ServerName> {
    if search.name.contains(ADDRESS_SIGN) {
        return Vec::new();
    }
    let found = found(search, kinds, view);
    let servers: BTreeSet<_> = found.iter().map(|entry| entry.server().name.clone()).collect();
    let servers: Vec<_> = servers.into_iter().collect();
    let remembered = search.hosted.remembered(&servers, &[Kind::Tool]);
    if remembered == servers { servers } else { Vec::new() }
}

fn not_started(server: &ServerName) -> String {
    let server = printable(server.as_str());
    format!(
        "server `{server}` was not started: its tools are those of the last run; `--refresh` asks again\n"
    )
}

fn kinds(name: &str) -> &'static [Kind] {
    match name.contains(ADDRESS_SIGN) {
        true => &[Kind::Resource, Kind::ResourceTemplate],
        false => &[Kind::Tool, Kind::Prompt],
    }
}

/// The servers that may have the name; if nobody can, those that may have something like it.
fn asked(search: &Search<'_>) -> Vec<ServerName> {
    let servers = could_have(search);
    if !servers.is_empty() {
        return servers;
    }
    search.unknown(search.hosted.all(), &[Kind::Tool])
}

/// The servers that may have the name. Addresses do not say whose they are.
fn could_have(search: &Search<'_>) -> Vec<ServerName> {
    match &search.server {
        Some(server) => vec![server.clone()],
        None if search.name.contains(ADDRESS_SIGN) => search.hosted.all(),
        None => owners(search.hosted, search.name),
    }
}

/// Everything that the name may mean. An address may be of several servers, and leads nowhere
/// without saying whose then: of each it is explained what it comes closest to.
fn found<'v>(search: &Search<'_>, kinds: &[Kind], view: &'v View) -> Vec<&'v Entry> {
    let (catalog, name) = (view.catalog(), search.name);
    let is_of = |server: &ServerName| search.server.as_ref().is_none_or(|it| it == server);
    if search.server.is_some() {
        let entries = kinds.iter().flat_map(|kind| catalog.entries(*kind));
        let mine = entries.filter(|entry| is_of(&entry.server().name));
        let named = |entry: &&Entry| entry.exposed() == name || entry.name() == name;
        let exact: Vec<_> = mine.filter(named).collect();
        if !exact.is_empty() {
            return exact;
        }
    }
    let named: Vec<_> = kinds.iter().filter_map(|kind| catalog.get(*kind, name)).collect();
    if !named.is_empty() {
        return named.into_iter().filter(|entry| is_of(&entry.server().name)).collect();
    }
    let meant = catalog.resolve(name).into_iter().map(|(entry, _)| entry);
    let meant: Vec<_> = meant.filter(|entry| is_of(&entry.server().name)).collect();
    let has_resource = meant.iter().any(|entry| entry.kind() == Kind::Resource);
    let mut servers = BTreeSet::new();
    let is_closest = |entry: &&Entry| !has_resource || entry.kind() == Kind::Resource;
    meant.into_iter().filter(is_closest).filter(|it| servers.insert(&it.server().name)).collect()
}

fn nothing(search: &Search<'_>, view: &View, failures: &[Error], terminal: &Terminal) -> Failure {
    let owners = could_have(search);
    let is_owner = |error: &&Error| error.server().is_some_and(|it| owners.contains(it));
    let silent: Vec<_> = failures.iter().filter(is_owner).cloned().collect();
    if let [others @ .., last] = silent.as_slice() {
        say_failures(others, terminal);
        return unanswered(search.name, last);
    }
    let mut message = format!("there is nothing of the name `{}`", printable(search.name));
    let alike = kinds(search.name).iter().flat_map(|kind| view.existing_like(*kind, search.name));
    let alike: Vec<_> = alike.take(MAX_SUGGESTIONS).collect();
    if !alike.is_empty() {
        message += &format!("; did you mean `{}`?", alike.join("` or `"));
    }
    let failure = Failure::new(FailureKind::Unknown, message).suggesting(alike);
    match search.why_not() {
        Some(reason) => failure.with_hint(reason),
        None => failure,
    }
}

/// Something with every rule that has a say about it.
type Explained<'v> = (&'v Entry, Vec<Step<'v>>);

fn all_as_text(name: &str, explained: &[Explained<'_>]) -> String {
    let text = |(entry, steps): &Explained<'_>| as_text(name, entry, steps);
    let texts: Vec<_> = explained.iter().map(text).collect();
    match texts.as_slice() {
        [one] => one.clone(),
        several => {
            let (name, count) = (printable(name), several.len());
            format!("`{name}` may mean {count} things.\n\n{}", several.join("\n"))
        }
    }
}

fn all_as_json(explained: &[Explained<'_>]) -> Value {
    let all: Vec<_> = explained.iter().map(|(entry, steps)| as_json(entry, steps)).collect();
    match <[Value; 1]>::try_from(all) {
        Ok([one]) => one,
        Err(several) => json!({ "several": several }),
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Hide => "hide",
        Verdict::Deny => "deny",
    }
}

fn as_text(name: &str, entry: &Entry, steps: &[Step<'_>]) -> String {
    let (kind, exposed) = (entry.kind().as_str(), printable(entry.exposed()));
    let (own, server) = (printable(entry.name()), printable(entry.server().name.as_str()));
    let decisive = steps.iter().find(|step| step.decides);
    let fate = match decisive.map(|step| step.verdict) {
        None | Some(Verdict::Pass) => match entry.kind() {
            Kind::Tool => "can be seen and called",
            Kind::Prompt => "can be seen and used",
            Kind::Resource | Kind::ResourceTemplate => "can be seen and read",
        },
        Some(Verdict::Hide) => "is hidden",
        Some(Verdict::Deny) => "is not available",
    };
    let mut text = match is_fitting(name, entry) {
        true => format!(
            "The address {} {fate}. It fits the {kind} {own} of server {server}.\n",
            printable(name)
        ),
        false => format!("The {kind} {exposed} {fate}. It is {own} of server {server}.\n"),
    };
    if entry.renamed().is_some() {
        let _ = writeln!(text, "Its name was changed: {}.", renamed_text(entry));
    }
    text += "\n";
    let rows: Vec<_> = steps.iter().map(row).collect();
    text += &report::table(&rows);
    if let Some(hint) = decisive.and_then(|step| step.reason.hint()) {
        let _ = writeln!(text, "\nTo change that: {hint}.");
    }
    text
}

/// Whether a name is an address that fits a template, and not the template itself.
fn is_fitting(name: &str, entry: &Entry) -> bool {
    entry.kind() == Kind::ResourceTemplate && !name.ends_with(entry.name())
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
        "renamed": entry.renamed().map(|(plain, reason)| json!({ "plain": plain, "reason": reason })),
        "decision": decisive.map_or("allow", |step| word(step.verdict)),
        "steps": steps.iter().map(step_json).collect::<Vec<_>>(),
    })
}
