//! Lists items of servers as a caller sees them: as text, as JSON, or as a model gets them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use trunkline::catalog::{Entry, ItemKind};
use trunkline::config::escape_control;
use trunkline::message::Raw;
use trunkline::name::ServerName;
use trunkline::policy::{CallerSpec, Reason, Rule};
use trunkline::view::{DescriptionStyle, UnmatchedName, View};

use super::caller::CallerOptions;
use super::command_host::{CommandHost, ProblemDetail, with_host};
use super::unmatched;
use crate::arguments::{Format, ListArguments, quoted};
use crate::environment::ProcessEnv;
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::{Settings, Verbosity};

/// A list of the items that a caller sees.
pub(crate) struct ListCommand<'v> {
    pub(crate) view: &'v View,
    pub(crate) kinds: &'v [ItemKind],
    /// Limits the list to these servers.
    pub(crate) servers: Option<BTreeSet<ServerName>>,
    /// How descriptions are rendered.
    pub(crate) describe: DescriptionStyle,
    /// Whether hidden items are included.
    pub(crate) shows_hidden: bool,
}

/// Lists all items of some kinds.
pub(crate) fn run(
    kinds: &[ItemKind],
    arguments: &ListArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let who = CallerOptions::read(&arguments.who, settings, environment)?;
    with_host(ProblemDetail::Shown, settings, environment, terminal, async |hosted, terminal| {
        // Reports an unknown agent before anything is started.
        let view = hosted.view_with_warnings(&who, terminal)?;
        let asked = asked(arguments, hosted, &view)?;
        let remembered = if arguments.refresh { Vec::new() } else { hosted.cached(&asked, kinds) };
        let mut unknown_lists = asked.clone();
        unknown_lists.retain(|server| !remembered.contains(server));
        let unavailable = hosted.refresh(&unknown_lists, kinds, terminal).await;
        let view = hosted.view(&who)?;
        let describe = hosted.host.description_style();
        let servers = Some(asked.into_iter().collect());
        let listing =
            ListCommand { view: &view, kinds, servers, describe, shows_hidden: arguments.all };
        let is_whole = arguments.server.is_none() && kinds.contains(&ItemKind::Tool);
        let unknown = if is_whole { view.unmatched_names() } else { Vec::new() };
        let failures: Vec<_> = unavailable.iter().map(Failure::unavailable).collect();
        let failures: Vec<_> =
            failures.into_iter().chain(unknown.iter().filter_map(no_tool)).collect();
        warn_of_ownerless(&unknown, settings, terminal);
        warn_of_lists(is_whole, hosted, settings, terminal).await;
        let held = hosted.all_held();
        match settings.format {
            Format::Json => {
                let failures: Value = failures.iter().chain(&held).map(Failure::as_json).collect();
                let names = remembered.iter().map(ServerName::as_str).collect::<Value>();
                let json = listing.as_written().with("failures", &Raw::from_value(&failures));
                let json = json.with("remembered", &Raw::from_value(&names));
                terminal.print(&report::indented(&json))?;
            }
            Format::Raw => terminal.print(&listing.as_raw())?,
            Format::Text => terminal.print(&listing.as_text())?,
        }
        if settings.format == Format::Text && settings.verbosity > Verbosity::Quiet {
            let options = again(arguments, &who);
            terminal.say(&listing.hint(&options));
            terminal.say(&cached_notice(&remembered));
            if failures.is_empty() && held.is_empty() && !hosted.loaded.origins.is_empty() {
                let is_limited =
                    hosted.all().len() > listing.servers.as_ref().map_or(0, BTreeSet::len);
                terminal.say(&listing.nothing(is_limited && arguments.server.is_none(), &options));
            }
            if hosted.loaded.origins.is_empty() && !hosted.loaded.has_errors(false) {
                terminal.say(report::NOTHING_FOUND);
            }
        }
        failures.iter().for_each(|failure| terminal.say(&format!("error: {failure}\n")));
        let is_good = failures.is_empty() && held.is_empty() && !hosted.loaded.has_errors(false);
        Ok(if is_good { Outcome::Good } else { Outcome::Bad })
    })
}

/// The servers to list: only those that can have something to show.
fn asked(arguments: &ListArguments, hosted: &CommandHost, view: &View) -> Result<Vec<ServerName>> {
    match &arguments.server {
        Some(name) => Ok(vec![hosted.find(name)?]),
        None if arguments.all => Ok(hosted.all()),
        None => Ok(hosted.holders(view)),
    }
}

/// The notice about servers that were not started.
fn cached_notice(servers: &[ServerName]) -> String {
    match servers.len() {
        0 => String::new(),
        count => format!(
            "{} not started: the tools are those of the last run; `--refresh` asks again\n",
            match count {
                1 => "1 server was".to_owned(),
                count => format!("{count} servers were"),
            }
        ),
    }
}

/// The options to repeat the command.
fn again(arguments: &ListArguments, who: &CallerOptions<'_>) -> String {
    let server = arguments.server.as_ref().map(|it| format!(" --server {}", quoted(it)));
    server.unwrap_or_default() + &who.as_flags()
}

impl ListCommand<'_> {
    fn is_meant(&self, entry: &Entry) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.contains(&entry.server().name))
    }

    /// The visible items with their definitions.
    fn seen(&self, kind: ItemKind) -> Vec<(&Entry, Raw)> {
        let definitions = self.view.list(kind, self.describe);
        let seen = self.view.entries(kind).zip(definitions);
        seen.filter(|(entry, _)| self.is_meant(entry)).collect()
    }

    fn hidden(&self) -> Vec<(&Entry, Reason<'_>)> {
        let hidden = self.kinds.iter().flat_map(|kind| self.view.hidden(*kind));
        hidden.filter(|(entry, _)| self.is_meant(entry)).collect()
    }

    /// One line per item.
    pub(crate) fn as_text(&self) -> String {
        let mut text = String::new();
        for (entry, _) in self.kinds.iter().flat_map(|kind| self.seen(*kind)) {
            let server = escape_control(entry.server().name.as_str());
            let line =
                format!("{}  [{server}] {}", escape_control(entry.exposed()), summary(entry));
            let _ = writeln!(text, "{}", line.trim_end());
        }
        for (entry, reason) in self.hidden().into_iter().filter(|_| self.shows_hidden) {
            let _ = writeln!(
                text,
                "{}  ({}: {})",
                escape_control(entry.exposed()),
                fate(&reason),
                escape_control(&reason.to_string())
            );
        }
        text
    }

    /// Items that do not have their default exposed name (TOOL-2).
    fn renamed(&self) -> Vec<&Entry> {
        let all = self.kinds.iter().flat_map(|kind| self.view.catalog().entries(*kind));
        all.filter(|entry| self.is_meant(entry) && entry.renamed().is_some()).collect()
    }

    /// A hint on hidden and renamed items, and how to see them.
    pub(crate) fn hint(&self, options: &str) -> String {
        self.hidden_hint(options) + &self.renamed_hint()
    }

    /// A notice that the list is empty, if there is no other message. Servers without any visible
    /// item have not been started.
    fn nothing(&self, is_limited: bool, options: &str) -> String {
        let is_empty = self.kinds.iter().all(|kind| self.seen(*kind).is_empty());
        if !is_empty || !self.hidden().is_empty() {
            return String::new();
        }
        let what = self.kinds.first().map_or("tools", |kind| kind.list_key());
        match is_limited {
            true => format!(
                "no {what} can be seen; `trunkline {what} --all{options}` shows what there is and why not\n"
            ),
            false => format!("there are no {what}\n"),
        }
    }

    fn renamed_hint(&self) -> String {
        let renamed = self.renamed();
        if renamed.is_empty() || !self.shows_hidden {
            return String::new();
        }
        let mut text = format!("{} had to be changed:\n", report::plural(renamed.len(), "name"));
        for entry in renamed {
            let _ =
                writeln!(text, "  {}: {}", escape_control(entry.exposed()), renamed_text(entry));
        }
        text
    }

    /// The number of hidden items, and the command that shows them, with the same options.
    fn hidden_hint(&self, options: &str) -> String {
        let hidden = self.hidden();
        if hidden.is_empty() {
            return String::new();
        }
        let mut by_server = BTreeMap::new();
        for (entry, _) in &hidden {
            *by_server.entry(&entry.server().name).or_insert(0_usize) += 1;
        }
        let by_server = by_server
            .iter()
            .map(|(server, count)| format!("{count} of {}", escape_control(server.as_str())));
        let (first, _) = &hidden[0];
        let count = report::plural(hidden.len(), first.kind().as_str());
        let verb = if hidden.len() == 1 { "is" } else { "are" };
        let more = match self.shows_hidden {
            true => format!("`trunkline explain NAME{options}` says more of one"),
            false => {
                let command = self.kinds.first().map_or("tools", |kind| kind.list_key());
                format!("`trunkline {command} --all{options}` shows what and why")
            }
        };
        format!("{count} {verb} hidden ({}); {more}\n", by_server.collect::<Vec<_>>().join(", "))
    }

    /// One definition per line, as a model gets it.
    fn as_raw(&self) -> String {
        let seen = self.kinds.iter().flat_map(|kind| self.seen(*kind));
        seen.map(|(_, definition)| format!("{definition}\n")).collect()
    }

    pub(crate) fn as_json(&self) -> Value {
        self.as_written().to_value()
    }

    /// The whole list as JSON, with definitions byte for byte.
    fn as_written(&self) -> Raw {
        let hidden = self.hidden();
        let mut json = Raw::from_value(&json!({ "hiddenCount": hidden.len() }));
        for kind in self.kinds {
            let definitions: Vec<_> = self.seen(*kind).into_iter().map(|(_, raw)| raw).collect();
            json = json.with(kind.list_key(), &Raw::from_items(&definitions));
        }
        if self.shows_hidden {
            let all: Value =
                hidden.iter().map(|(entry, reason)| hidden_json(entry, reason)).collect();
            let renamed: Value = self.renamed().into_iter().map(renamed_json).collect();
            json = json.with("hidden", &Raw::from_value(&all));
            json = json.with("renamed", &Raw::from_value(&renamed));
        }
        json
    }
}

pub(crate) fn hidden_json(entry: &Entry, reason: &Reason<'_>) -> Value {
    let mut json = reason_json(reason);
    json["kind"] = entry.kind().as_str().into();
    json["name"] = entry.exposed().into();
    json["server"] = entry.server().name.as_str().into();
    json
}

/// The reason why an item does not have its default exposed name.
pub(crate) fn renamed_text(entry: &Entry) -> String {
    let (plain, reason) = entry.renamed().unwrap_or_default();
    format!("it cannot be `{}`, because {}", escape_control(plain), escape_control(&reason))
}

fn renamed_json(entry: &Entry) -> Value {
    let renamed = entry.renamed();
    json!({
        "name": entry.exposed(),
        "kind": entry.kind().as_str(),
        "server": entry.server().name.as_str(),
        "own": entry.name(),
        "plain": renamed.as_ref().map(|(plain, _)| *plain),
        "reason": renamed.as_ref().map(|(_, reason)| reason),
    })
}

/// A reason as JSON.
pub(crate) fn reason_json(reason: &Reason<'_>) -> Value {
    json!({
        "rule": reason.rule().as_str(),
        "reason": reason.to_string(),
        "hint": reason.hint(),
        "location": reason.location().map(report::location_json),
    })
}

/// The effect of a reason on an item.
fn fate(reason: &Reason<'_>) -> &'static str {
    match reason.rule() {
        Rule::Available => "not available",
        _ => "hidden",
    }
}

/// The first line of an item's description.
fn summary(entry: &Entry) -> String {
    let [title, name, description] = entry.definition().get_all(["title", "name", "description"]);
    let line = |raw: Option<Raw>| {
        let text = raw.as_ref().and_then(Raw::as_str)?.into_owned();
        let line = text.lines().find(|line| !line.trim().is_empty())?;
        Some(escape_control(line.trim()))
    };
    let called = match entry.kind() {
        ItemKind::Tool | ItemKind::Prompt => None,
        ItemKind::Resource | ItemKind::ResourceTemplate => line(title).or_else(|| line(name)),
    };
    [called, line(description)].into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// The error for a tool name in an agent's patterns that its server does not have.
fn no_tool(unknown: &UnmatchedName<'_>) -> Option<Failure> {
    let suggestions = unknown.suggestion.map(str::to_owned).into_iter().collect();
    let failure = Failure::new(FailureKind::Unknown, unmatched::agent_name(unknown));
    Some(failure.of(unknown.server?).suggesting(suggestions))
}

/// Warns of entries in `allowTools` and `denyTools` that match nothing.
async fn warn_of_lists(
    is_whole: bool,
    hosted: &CommandHost,
    settings: &Settings,
    terminal: &Terminal,
) {
    if !is_whole {
        return;
    }
    unmatched::refresh_prompts(&hosted.host).await;
    if settings.verbosity > Verbosity::Quiet
        && let Ok(view) = hosted.host.view(CallerSpec::default())
    {
        let entries = view.unmatched_list_entries();
        entries.iter().for_each(|it| terminal.warn(&unmatched::list_entry(it)));
    }
}

/// Warns of names that do not start with the prefix of any server.
fn warn_of_ownerless(unknown: &[UnmatchedName<'_>], settings: &Settings, terminal: &Terminal) {
    if settings.verbosity > Verbosity::Quiet {
        let ownerless = unknown.iter().filter(|it| it.server.is_none());
        ownerless.for_each(|it| terminal.warn(&unmatched::agent_name(it)));
    }
}
