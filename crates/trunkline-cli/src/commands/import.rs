//! `trunkline import`: copies the servers of other hosts into Trunkline's own file.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use trunkline::config::{Secret, closest_match, escape_control, is_valid_secret_name};
use trunkline::secrets::SecretKey;
use trunkline_hosts::hosts::{self, AiHost, ConfigLevel, HOSTS};

use crate::arguments::{Format, ImportArguments};
use crate::config::secrets::chosen_store;
use crate::environment::ProcessEnv;
use crate::host_files::{FoundServers, ImportPlan, PlannedServer, TargetChoice, TargetFile};
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

/// Characters of a command line or URL in the table.
const MAX_ENDPOINT: usize = 60;

pub(crate) fn run(
    arguments: &ImportArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let only: Vec<_> =
        arguments.hosts.iter().map(|id| find_host(id)).collect::<Result<_, Failure>>()?;
    let found = FoundServers::read(environment, &only);
    let choice = match arguments.target.project {
        true => TargetChoice::Project,
        false => TargetChoice::User,
    };
    let mut target = TargetFile::read(choice, settings, environment)?;
    // Servers of a directory are not for all others, and may have been written by anyone.
    let is_meant = |level| (level != ConfigLevel::User) == arguments.target.project;
    let (meant, others): (Vec<_>, Vec<_>) =
        found.servers.into_iter().partition(|server| is_meant(server.level));
    let mut plan = ImportPlan::new(meant, &target.loaded.config);
    let failures: Vec<_> = found.failures.iter().map(|it| format!("warning: {it}\n")).collect();
    let count = plan.added().count();
    if settings.format == Format::Text {
        terminal.print(&table(&plan))?;
        terminal.say(&failures.concat());
        terminal.say(&notes(&plan));
        terminal.tell(&elsewhere(others.len(), arguments.target.project));
    }
    let is_wanted = count > 0 && !arguments.dry_run && wants(arguments, count, &target, terminal)?;
    let should_move = arguments.move_secrets || is_wanted && offers_to_move(&plan, terminal)?;
    let moved = match should_move && is_wanted {
        true => move_secrets(&mut plan, settings, environment)?,
        false => Vec::new(),
    };
    for (name, server) in plan.added() {
        target.insert(name, &server.entry)?;
    }
    let path = escape_control(&target.path().to_string_lossy());
    let change = target.change();
    let secrets: Vec<&str> =
        plan.added().flat_map(|(_, it)| &it.literals).map(|it| it.value.as_str()).collect();
    let backup = if is_wanted { change.write()? } else { None };
    let written = WrittenImport { path, is_written: is_wanted, moved, backup };
    if settings.format != Format::Text {
        let json = written.to_json(&plan, &found.failures);
        terminal.print(&report::document(&json, settings.format))?;
        return Ok(Outcome::Good);
    }
    if arguments.dry_run && count > 0 {
        terminal.print(&change.diff(&secrets))?;
    }
    terminal.tell(&written.as_text(count, arguments));
    Ok(Outcome::Good)
}

/// The result of an import.
struct WrittenImport {
    path: String,
    is_written: bool,
    /// The names of credentials that are in the store for secrets now.
    moved: Vec<String>,
    backup: Option<PathBuf>,
}

impl WrittenImport {
    fn to_json(&self, plan: &ImportPlan, failures: &[String]) -> Value {
        json!({
            "servers": plan.to_json(),
            "failures": failures,
            "file": self.path,
            "written": self.is_written,
            "backup": self.backup,
            "movedSecrets": self.moved,
        })
    }

    fn as_text(&self, count: usize, arguments: &ImportArguments) -> String {
        match (self.is_written, count) {
            (true, _) => {
                let before =
                    |it: &PathBuf| format!(" (before: {})", escape_control(&it.to_string_lossy()));
                let backup = self.backup.as_ref().map(before).unwrap_or_default();
                let (servers, path) = (report::plural(count, "server"), &self.path);
                let steps = next_steps(&self.moved, arguments.target.project);
                format!("{servers} written to {path}{backup}\n{steps}")
            }
            (false, 0) => "nothing to import\n".to_owned(),
            (false, _) if arguments.dry_run => "nothing was written\n".to_owned(),
            (false, _) => {
                "nothing was written; `trunkline import --all` imports them without asking\n"
                    .to_owned()
            }
        }
    }
}

/// The host with an id on the command line.
pub(super) fn find_host(id: &str) -> Result<&'static AiHost, Failure> {
    hosts::find(id).ok_or_else(|| {
        let ids = || HOSTS.iter().map(AiHost::id);
        let shown = escape_control(id);
        let message = match closest_match(id, ids()) {
            Some(near) => format!("there is no host `{shown}`; did you mean `{near}`?"),
            None => format!("there is no host `{shown}`"),
        };
        let hint = format!("the hosts are {}", ids().collect::<Vec<_>>().join(", "));
        Failure::new(FailureKind::Unknown, message).with_hint(hint)
    })
}

fn wants(
    arguments: &ImportArguments,
    count: usize,
    target: &TargetFile,
    terminal: &Terminal,
) -> Result<bool> {
    if arguments.all || !arguments.hosts.is_empty() {
        return Ok(true);
    }
    let path = escape_control(&target.path().to_string_lossy());
    let question = format!("Write {} to {path}?", report::plural(count, "server"));
    Ok(terminal.can_ask() && terminal.ask(&question)?)
}

/// Whether the user wants credentials in the store for secrets instead of the file.
fn offers_to_move(plan: &ImportPlan, terminal: &Terminal) -> Result<bool> {
    let count = plan.added().flat_map(|(_, it)| &it.literals).count();
    if count == 0 || !terminal.can_ask() {
        return Ok(false);
    }
    let credentials = report::plural(count, "credential");
    let question = format!("Move {credentials} of these servers to the store for secrets?");
    Ok(terminal.ask(&question)?)
}

/// Stores literal credentials, and refers to them instead. Returns their names.
fn move_secrets(
    plan: &mut ImportPlan,
    settings: &Settings,
    environment: &ProcessEnv,
) -> Result<Vec<String>> {
    let mut moved = Vec::new();
    let chosen = chosen_store(settings, environment)?;
    for (name, server) in plan.added_mut() {
        for literal in &server.literals {
            let secret = secret_name(name, &literal.name);
            let key = SecretKey::user(secret.as_str());
            let lock = chosen.store.lock(&key).map_err(Failure::from)?;
            chosen.store.set(&key, &Secret::new(literal.value.as_str())).map_err(Failure::from)?;
            drop(lock);
            let place =
                server.entry.get_mut(literal.group).and_then(|it| it.get_mut(&literal.name));
            if let Some(place) = place {
                *place = Value::from(format!("${{secret:{secret}}}"));
            }
            moved.push(secret);
        }
    }
    Ok(moved)
}

/// The name of a secret of a server: `github.GITHUB_TOKEN`.
fn secret_name(server: &str, name: &str) -> String {
    let plain = |it: char| if it.is_ascii_alphanumeric() || "_-".contains(it) { it } else { '_' };
    let name: String = format!("{server}.{name}")
        .chars()
        .map(|it| if it == '.' { it } else { plain(it) })
        .collect();
    match is_valid_secret_name(&name) {
        true => name,
        false => "imported".to_owned(),
    }
}

/// The servers that were found, and what happens to each.
fn table(plan: &ImportPlan) -> String {
    if plan.servers.is_empty() {
        return "no servers of other hosts were found\n".to_owned();
    }
    let head = ["host", "server", "transport", "what it runs", "import"].map(str::to_owned);
    let row = |planned: &PlannedServer| {
        let found = &planned.found;
        let off = if found.is_enabled { "" } else { " (off)" };
        let short: String = found.endpoint.chars().take(MAX_ENDPOINT).collect();
        let mark = if found.endpoint.chars().count() > MAX_ENDPOINT { "…" } else { "" };
        let outcome = match (&planned.name, &planned.same_as, &planned.differs_from) {
            (None, Some(other), _) => format!("no: same as {other}"),
            (Some(name), _, Some(other)) => format!("as {name}: differs from {other}"),
            (Some(name), _, None) => format!("as {name}"),
            (None, None, _) => "no".to_owned(),
        };
        [
            found.host.name().to_owned(),
            escape_control(&found.name),
            format!("{}{off}", found.transport),
            format!("{short}{mark}"),
            escape_control(&outcome),
        ]
    };
    let rows: Vec<_> = std::iter::once(head).chain(plan.servers.iter().map(row)).collect();
    report::table(&rows)
}

/// Everything of the imported servers that is not carried over, or is written in a file although it is secret.
fn notes(plan: &ImportPlan) -> String {
    let mut text = String::new();
    for (name, server) in plan.added() {
        let name = escape_control(name);
        for note in &server.notes {
            let _ = writeln!(text, "note: {name}: {note}");
        }
        for literal in &server.literals {
            let _ = writeln!(
                text,
                "note: {name}: {} is a credential in plain text; `--move-secrets` moves it to the store for secrets",
                escape_control(&literal.name)
            );
        }
    }
    text
}

/// A line on servers of the other level.
fn elsewhere(count: usize, is_project: bool) -> String {
    let servers = report::plural(count, "server");
    match (count, is_project) {
        (0, _) => String::new(),
        (_, true) => format!("{servers} of the user: `trunkline import` without `--project`\n"),
        (_, false) => format!("{servers} of this directory: `trunkline import --project`\n"),
    }
}

fn next_steps(moved: &[String], is_project: bool) -> String {
    let mut text = String::new();
    if !moved.is_empty() {
        let secrets = report::plural(moved.len(), "credential");
        let _ = writeln!(text, "{secrets} moved to the store for secrets: `trunkline secret list`");
    }
    text += match is_project {
        true => {
            "`trunkline trust` lets the servers of this directory run, and `trunkline tools` lists their tools\n"
        }
        false => {
            "`trunkline tools` lists their tools; `trunkline install HOST` lets a host use them through Trunkline\n"
        }
    };
    text
}
