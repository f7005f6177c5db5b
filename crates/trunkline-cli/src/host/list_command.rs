//! Lists items for `tools`, `prompts` and `resources`: starts servers whose lists are not known, and reports those that
//! are missing.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use serde_json::Value;
use trunkline::catalog::ItemKind;
use trunkline::message::Raw;
use trunkline::name::ServerName;
use trunkline::policy::CallerSpec;
use trunkline::view::{UnmatchedName, View};

use super::caller::CallerOptions;
use super::command_host::{CommandHost, ProblemDetail, with_host};
use super::listing::ListCommand;
use super::rejected_items::RejectedItems;
use super::remembered_lists::RememberedLists;
use super::server_lists::ServerLists;
use super::{listing_text, unmatched};
use crate::arguments::{Format, ListArguments, quoted};
use crate::environment::ProcessEnv;
use crate::host_files::import_offer;
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::{Settings, Verbosity};

/// Lists all items of some kinds.
pub(crate) fn run(
    kinds: &[ItemKind],
    arguments: &ListArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let who = CallerOptions::read(&arguments.who, settings, environment)?;
    let problems = ProblemDetail::of_list(arguments.server());
    with_host(problems, settings, environment, terminal, async |hosted, terminal| {
        // Reports an unknown agent before anything is started.
        let view = hosted.view_with_warnings(&who, terminal)?;
        let asked = asked(arguments, hosted, &view)?;
        let ServerLists { remembered, failures } =
            ServerLists::load(&arguments.lists, &asked, kinds, hosted, terminal).await;
        let rejected = RejectedItems::of(hosted, asked.iter(), kinds);
        let view = hosted.view(&who)?;
        let describe = hosted.host.description_style();
        let servers = Some(asked.into_iter().collect());
        let listing =
            ListCommand { view: &view, kinds, servers, describe, shows_hidden: arguments.all };
        let is_whole = arguments.server().is_none() && kinds.contains(&ItemKind::Tool);
        let unknown = if is_whole { view.unmatched_names() } else { Vec::new() };
        let failures: Vec<_> =
            failures.into_iter().chain(unknown.iter().filter_map(no_tool)).collect();
        warn_of_ownerless(&unknown, settings, terminal);
        warn_of_lists(is_whole, hosted, settings, terminal).await;
        let held = hosted.all_held();
        match settings.format {
            Format::Json => {
                let failures: Value = failures.iter().chain(&held).map(Failure::as_json).collect();
                let json = document(&listing, failures, &remembered, &rejected);
                terminal.print(&report::raw_document(&json))?;
            }
            Format::Raw => terminal.print(&listing.as_raw())?,
            Format::Text => terminal.page(&listing_text::render(&listing, terminal.layout()))?,
        }
        if settings.format == Format::Text && settings.verbosity > Verbosity::Quiet {
            let options = again(arguments, &who);
            terminal.say(&listing.hint(&options));
            terminal.say(&remembered.notice());
            rejected.notices().iter().for_each(|notice| terminal.warn(notice));
            if failures.is_empty() && held.is_empty() && !hosted.loaded.origins.is_empty() {
                let is_limited =
                    hosted.all().len() > listing.servers.as_ref().map_or(0, BTreeSet::len);
                let is_limited = is_limited && arguments.server().is_none();
                let reason = report::why_no_server(&hosted.loaded, &settings.written_config());
                terminal.say(&listing.nothing(is_limited, &options, reason));
            }
            if hosted.loaded.origins.is_empty() && !hosted.loaded.has_errors(false) {
                terminal.say(&(report::NOTHING_FOUND.to_owned() + &import_offer(environment)));
            }
        }
        failures.iter().for_each(|failure| terminal.say(&format!("error: {failure}\n")));
        let is_good = failures.is_empty() && held.is_empty() && !hosted.loaded.has_errors(false);
        Ok(if is_good { Outcome::Good } else { Outcome::Bad })
    })
}

/// The list as JSON, with what is missing in it and its age.
fn document(
    listing: &ListCommand<'_>,
    failures: Value,
    remembered: &RememberedLists,
    rejected: &RejectedItems,
) -> Raw {
    let members = [
        ("failures", failures),
        ("remembered", remembered.names_json()),
        ("rememberedAt", remembered.times_json()),
        ("setAside", rejected.as_json()),
    ];
    members.iter().fold(listing.as_written(), |document, (key, value)| {
        document.with(key, &Raw::from_value(value))
    })
}

/// The servers to list: only those that can have something to show.
fn asked(arguments: &ListArguments, hosted: &CommandHost, view: &View) -> Result<Vec<ServerName>> {
    match arguments.server() {
        Some(name) => Ok(vec![hosted.find(name)?]),
        None if arguments.all => Ok(hosted.all()),
        None => Ok(hosted.holders(view)),
    }
}

/// The options to repeat the command.
fn again(arguments: &ListArguments, who: &CallerOptions<'_>) -> String {
    let server = arguments.server().map(|it| format!(" --server {}", quoted(it)));
    server.unwrap_or_default() + &who.as_flags()
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
