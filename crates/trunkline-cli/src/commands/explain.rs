//! `trunkline explain`: shows every rule that applies to an item, and which one decides.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use trunkline::catalog::{Entry, ItemKind};
use trunkline::config::escape_control;
use trunkline::error::Error;
use trunkline::name::{HOST_TOOL_NAMES, ServerName};
use trunkline::policy::{RuleResult, Verdict};
use trunkline::view::View;

use crate::arguments::{ExplainArguments, Format};
use crate::environment::ProcessEnv;
use crate::host::caller::CallerOptions;
use crate::host::command_host::{ProblemDetail, report_failures, with_host};
use crate::host::listing::{reason_json, renamed_text};
use crate::host::resolve::{NameSearch, TimeLimit, owners, silent_server};
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::{Settings, Verbosity};

/// A substring of every URI and of no exposed name.
const ADDRESS_SIGN: &str = "://";

/// The hint for a name in [`HOST_TOOL_NAMES`].
const OF_HOST: &str = "the name is reserved for a tool of Trunkline itself";

/// Suggestions for a name that does not exist.
const MAX_SUGGESTIONS: usize = 3;

pub(crate) fn run(
    arguments: &ExplainArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let time = TimeLimit::new(arguments.timeout);
    let who = CallerOptions::read(&arguments.who, settings, environment)?;
    with_host(ProblemDetail::Counted, settings, environment, terminal, async |hosted, terminal| {
        // Reports an unknown agent before anything is started.
        hosted.view_with_warnings(&who, terminal)?;
        let server = arguments.server.as_deref().map(|name| hosted.find(name)).transpose()?;
        let search = NameSearch { hosted, who: &who, name: &arguments.name, server, time };
        let kinds = kinds(search.name);
        let view = hosted.view(&who)?;
        let known = match arguments.refresh {
            true => BTreeSet::new(),
            false => remembered(&search, kinds, &view),
        };
        let failures = match known.is_empty() {
            true => time.refresh(&asked(&search), kinds, hosted, terminal).await?,
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
        report_failures(&failures.iter().filter(is_of).cloned().collect::<Vec<_>>(), terminal);
        let explained: Vec<_> =
            found.iter().map(|entry| (*entry, view.explain_uri(entry, search.name))).collect();
        terminal.print(&match settings.format {
            Format::Text => all_as_text(search.name, &explained),
            Format::Json | Format::Raw => {
                report::document(&all_as_json(&explained), settings.format)
            }
        })?;
        Ok(Outcome::Good)
    })
}

/// The servers of all items with this name and the kinds of the items, if all these lists are cached. Empty for a URI, because
/// servers without cached lists may have it too.
fn remembered(
    search: &NameSearch<'_>,
    kinds: &[ItemKind],
    view: &View,
) -> BTreeSet<(ServerName, ItemKind)> {
    if search.name.contains(ADDRESS_SIGN) {
        return BTreeSet::new();
    }
    let found = found(search, kinds, view);
    let lists: BTreeSet<_> =
        found.iter().map(|entry| (entry.server().name.clone(), entry.kind())).collect();
    let is_cached = |(server, kind): &(ServerName, ItemKind)| {
        !search.hosted.cached(std::slice::from_ref(server), &[*kind]).is_empty()
    };
    if lists.iter().all(is_cached) { lists } else { BTreeSet::new() }
}

fn not_started((server, kind): &(ServerName, ItemKind)) -> String {
    let (server, items) = (escape_control(server.as_str()), kind.list_key());
    format!(
        "server `{server}` was not started: its {items} are those of the last run; `--refresh` asks again\n"
    )
}

fn kinds(name: &str) -> &'static [ItemKind] {
    match name.contains(ADDRESS_SIGN) {
        true => &[ItemKind::Resource, ItemKind::ResourceTemplate],
        false => &[ItemKind::Tool, ItemKind::Prompt],
    }
}

/// The servers that may have the name; if there are none, those that may have a similar one.
fn asked(search: &NameSearch<'_>) -> Vec<ServerName> {
    let servers = could_have(search);
    if !servers.is_empty() {
        return servers;
    }
    search.unknown(search.hosted.all(), &[ItemKind::Tool])
}

/// The servers that may have the name. A URI does not identify its server.
fn could_have(search: &NameSearch<'_>) -> Vec<ServerName> {
    match &search.server {
        Some(server) => vec![server.clone()],
        None if search.name.contains(ADDRESS_SIGN) => search.hosted.all(),
        None => owners(search.hosted, search.name),
    }
}

/// All items that the name may refer to. A URI may exist on several servers, and is ambiguous then:
/// the closest match on each is returned.
fn found<'v>(search: &NameSearch<'_>, kinds: &[ItemKind], view: &'v View) -> Vec<&'v Entry> {
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
    let has_resource = meant.iter().any(|entry| entry.kind() == ItemKind::Resource);
    let mut servers = BTreeSet::new();
    let is_closest = |entry: &&Entry| !has_resource || entry.kind() == ItemKind::Resource;
    meant.into_iter().filter(is_closest).filter(|it| servers.insert(&it.server().name)).collect()
}

fn nothing(
    search: &NameSearch<'_>,
    view: &View,
    failures: &[Error],
    terminal: &Terminal,
) -> Failure {
    // A name without a known prefix may be a server's own name.
    let owners = could_have(search);
    let is_owner = |it: &ServerName| owners.is_empty() || owners.contains(it);
    let is_of_owner = |server: Option<&ServerName>| server.is_some_and(is_owner);
    let silent: Vec<_> = failures.iter().filter(|it| is_of_owner(it.server())).cloned().collect();
    let held = || {
        let is_uri = search.name.contains(ADDRESS_SIGN);
        let held = search.hosted.all_held();
        held.into_iter().find(|it| is_uri || is_of_owner(it.server()))
    };
    if let Some(failure) = silent_server(search.name, &silent, held, terminal) {
        return failure;
    }
    let what = match search.name.contains(ADDRESS_SIGN) {
        true => "resource",
        false => "tool or prompt",
    };
    let mut message = format!("there is no {what} `{}`", escape_control(search.name));
    let alike = kinds(search.name).iter().flat_map(|kind| view.existing_like(*kind, search.name));
    let alike: Vec<_> = alike.take(MAX_SUGGESTIONS).collect();
    if !alike.is_empty() {
        message += &format!("; did you mean `{}`?", alike.join("` or `"));
    }
    let failure = Failure::new(FailureKind::Unknown, message).suggesting(alike);
    let of_host = HOST_TOOL_NAMES.contains(&search.name).then(|| OF_HOST.to_owned());
    match of_host.or_else(|| search.hidden_reason()) {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

/// An item with every rule that applies to it.
type Explanation<'v> = (&'v Entry, Vec<RuleResult<'v>>);

fn all_as_text(name: &str, explained: &[Explanation<'_>]) -> String {
    let text = |(entry, steps): &Explanation<'_>| as_text(name, entry, steps);
    let texts: Vec<_> = explained.iter().map(text).collect();
    match texts.as_slice() {
        [one] => one.clone(),
        several => {
            let (name, count) = (escape_control(name), several.len());
            format!("`{name}` may mean {count} things.\n\n{}", several.join("\n"))
        }
    }
}

fn all_as_json(explained: &[Explanation<'_>]) -> Value {
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

fn as_text(name: &str, entry: &Entry, steps: &[RuleResult<'_>]) -> String {
    let (kind, exposed) = (entry.kind().as_str(), escape_control(entry.exposed()));
    let (own, server) =
        (escape_control(entry.name()), escape_control(entry.server().name.as_str()));
    let decisive = steps.iter().find(|step| step.decides);
    let fate = match decisive.map(|step| step.verdict) {
        None | Some(Verdict::Pass) => match entry.kind() {
            ItemKind::Tool => "can be seen and called",
            ItemKind::Prompt => "can be seen and used",
            ItemKind::Resource | ItemKind::ResourceTemplate => "can be seen and read",
        },
        Some(Verdict::Hide) => "is hidden",
        Some(Verdict::Deny) => "is not available",
    };
    let mut text = match is_fitting(name, entry) {
        true => format!(
            "The address {} {fate}. It fits the {kind} {own} of server {server}.\n",
            escape_control(name)
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

/// Whether the name is a URI that matches a template, and not the template itself.
fn is_fitting(name: &str, entry: &Entry) -> bool {
    entry.kind() == ItemKind::ResourceTemplate && !name.ends_with(entry.name())
}

fn row(step: &RuleResult<'_>) -> [String; 4] {
    let reason = &step.reason;
    let place = reason.location().map(|place| format!("  {}", escape_control(&place.to_string())));
    let mark = if step.decides { ">" } else { " " };
    [
        format!("{mark} {}", word(step.verdict)),
        reason.rule().as_str().to_owned(),
        escape_control(&reason.to_string()),
        place.unwrap_or_default(),
    ]
}

fn as_json(entry: &Entry, steps: &[RuleResult<'_>]) -> Value {
    let step_json = |step: &RuleResult<'_>| {
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
