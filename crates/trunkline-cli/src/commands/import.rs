//! `trunkline import`: copies the servers of other hosts into Trunkline's own file.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use trunkline::config::{Secret, closest_match, escape_control, is_valid_secret_name};
use trunkline::secrets::SecretKey;
use trunkline_hosts::hosts::{self, AiHost, HOSTS};
use unicode_width::UnicodeWidthStr as _;

use crate::arguments::{Format, ImportArguments};
use crate::config::secrets::chosen_store;
use crate::environment::ProcessEnv;
use crate::host_files::{
    FoundServers, ImportPlan, PlannedServer, SelectedServers, TargetChoice, TargetFile,
};
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::output::text_layout::TextLayout;
use crate::settings::Settings;

/// Characters of a command line or URL in the table.
const MAX_ENDPOINT: usize = 60;

/// The same on a narrow terminal, where the table is wider than the terminal rather than without commands.
const MIN_ENDPOINT: usize = 16;

/// Columns between two cells.
const GAP: usize = 2;

pub(crate) fn run(
    arguments: &ImportArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let only: Vec<_> =
        arguments.hosts.iter().map(|id| find_host(id)).collect::<Result<_, Failure>>()?;
    let found = FoundServers::read(environment, &only);
    let mut target = TargetFile::read(target_choice(arguments), settings, environment)?;
    let beside = found.notes.clone();
    let parts: String = beside.iter().map(|note| format!("note: {note}\n")).collect();
    let SelectedServers { meant, others, failures } =
        SelectedServers::of(found, arguments.target.project);
    let mut plan = ImportPlan::new(meant, &target.loaded.config);
    let count = plan.added().count();
    if settings.format == Format::Text {
        terminal.print(&table(&plan, terminal.layout()))?;
        failures.iter().for_each(|it| terminal.say(&format!("warning: {it}\n")));
        terminal.tell(&(notes(&plan, arguments.move_secrets) + &parts));
        terminal.tell(&(elsewhere(others, arguments.target.project) + &summary(&plan)));
    }
    let is_chosen = arguments.all || !arguments.hosts.is_empty();
    let is_possible = count > 0 && !arguments.dry_run;
    let is_unasked = is_possible && !is_chosen && !terminal.can_ask();
    let is_wanted = is_possible && !is_unasked && (is_chosen || wants(count, &target, terminal)?);
    let should_move = arguments.move_secrets || is_wanted && offers_to_move(&plan, terminal)?;
    let moved = match should_move && is_wanted {
        true => move_to_store(&mut plan, settings, environment)?,
        false => move_nothing(&mut plan, arguments)?,
    };
    for (name, server) in plan.added() {
        target.insert(name, &server.entry)?;
    }
    for secret in &moved {
        secret.store(settings, environment)?;
    }
    let moved: Vec<_> = moved.into_iter().map(|secret| secret.name).collect();
    let path = escape_control(&target.path().to_string_lossy());
    let change = target.change();
    let backup = if is_wanted { change.write()? } else { None };
    // A host that was asked for, and whose file cannot be read, is a failure.
    let is_incomplete = !arguments.hosts.is_empty() && !failures.is_empty();
    let outcome = if is_incomplete { Outcome::Bad } else { Outcome::Good };
    let written = WrittenImport { path, is_written: is_wanted, moved, backup };
    if settings.format != Format::Text {
        let json = written.to_json(&plan, &failures, &beside);
        terminal.print(&report::document(&json, settings.format))?;
    } else if arguments.dry_run && count > 0 {
        terminal.print(&change.diff())?;
    }
    if is_unasked {
        return Err(cannot_ask(count, arguments, settings).into());
    }
    if settings.format == Format::Text {
        terminal.tell(&written.as_text(count, arguments));
    }
    Ok(outcome)
}

fn target_choice(arguments: &ImportArguments) -> TargetChoice {
    match arguments.target.project {
        true => TargetChoice::Project,
        false => TargetChoice::User,
    }
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
    fn to_json(&self, plan: &ImportPlan, failures: &[String], notes: &[String]) -> Value {
        json!({
            "servers": plan.to_json(),
            "failures": failures,
            "notes": notes,
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

/// The error if nothing says which servers to import, and the user cannot be asked.
fn cannot_ask(count: usize, arguments: &ImportArguments, settings: &Settings) -> Failure {
    let project = if arguments.target.project { " --project" } else { "" };
    let command = format!("trunkline import{}{project}", settings.written_config());
    let servers = report::plural(count, "server");
    let message = "nothing was written: without a terminal, nothing can be asked";
    Failure::new(FailureKind::Usage, message).with_hint(format!(
        "`{command} --all` writes all {servers}, `{command} HOST…` those of some hosts"
    ))
}

fn wants(count: usize, target: &TargetFile, terminal: &Terminal) -> Result<bool> {
    let path = escape_control(&target.path().to_string_lossy());
    let question = format!("Write {} to {path}?", report::plural(count, "server"));
    Ok(terminal.ask(&question)?)
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

/// A credential for the store for secrets.
struct MovedSecret {
    name: String,
    value: String,
}

impl MovedSecret {
    fn store(&self, settings: &Settings, environment: &ProcessEnv) -> Result<()> {
        let store = &chosen_store(settings, environment)?.store;
        let key = SecretKey::user(self.name.as_str());
        let lock = store.lock(&key).map_err(Failure::from)?;
        store.set(&key, &Secret::new(self.value.as_str())).map_err(Failure::from)?;
        drop(lock);
        Ok(())
    }
}

/// Replaces literal credentials by references to secrets that are to be stored, beside those of the store.
fn move_to_store(
    plan: &mut ImportPlan,
    settings: &Settings,
    environment: &ProcessEnv,
) -> Result<Vec<MovedSecret>> {
    let store = Arc::clone(&chosen_store(settings, environment)?.store);
    move_secrets(plan, |name| store.get(&SecretKey::user(name)).map_err(Failure::from))
}

/// Stores no secret. With `--dry-run`, credentials that would move are replaced by their references nevertheless; the store is
/// not opened for it, since that could ask for a passphrase.
fn move_nothing(plan: &mut ImportPlan, arguments: &ImportArguments) -> Result<Vec<MovedSecret>> {
    if arguments.dry_run && arguments.move_secrets {
        move_secrets(plan, |_| Ok(None))?;
    }
    Ok(Vec::new())
}

/// Replaces literal credentials by references to secrets that are to be stored. No stored secret is replaced by another.
fn move_secrets(
    plan: &mut ImportPlan,
    stored: impl Fn(&str) -> Result<Option<Secret>, Failure>,
) -> Result<Vec<MovedSecret>> {
    let mut moved: Vec<MovedSecret> = Vec::new();
    for (name, server) in plan.added_mut() {
        for literal in &server.literals {
            let wanted = secret_name(name, &literal.name());
            let numbered = (2..).map(|number| format!("{wanted}-{number}"));
            let mut names = std::iter::once(wanted.clone()).chain(numbered);
            let secret = loop {
                let Some(secret) = names.next() else { break wanted.clone() };
                let is_planned =
                    moved.iter().any(|it| it.name == secret && it.value != literal.value);
                let is_free = stored(&secret)?.is_none_or(|it| it.expose() == literal.value);
                if !is_planned && is_free {
                    break secret;
                }
            };
            if let Some(place) = literal.place(&mut server.entry) {
                *place = Value::from(format!("${{secret:{secret}}}"));
            }
            // Servers may share a credential.
            if moved.iter().all(|it| it.name != secret) {
                moved.push(MovedSecret { name: secret, value: literal.value.clone() });
            }
        }
    }
    Ok(moved)
}

/// The name of a secret of a server: `github.GITHUB_TOKEN`.
fn secret_name(server: &str, name: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "_-.".contains(it);
    let name = format!("{server}.{name}");
    let name: String = name.chars().map(|it| if is_plain(it) { it } else { '_' }).collect();
    match is_valid_secret_name(&name) {
        true => name,
        false => "imported".to_owned(),
    }
}

/// The servers that were found, and what happens to each.
fn table(plan: &ImportPlan, layout: TextLayout) -> String {
    if plan.servers.is_empty() {
        return "no servers of other hosts were found\n".to_owned();
    }
    let head = ["host", "server", "transport", "what it runs", "import"].map(str::to_owned);
    let row = |planned: &PlannedServer| {
        let found = &planned.found;
        let off = if found.is_enabled { "" } else { " (off)" };
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
            found.endpoint.clone(),
            escape_control(&outcome),
        ]
    };
    let mut rows: Vec<_> = std::iter::once(head).chain(plan.servers.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let others: usize = [0, 1, 2, 4].map(|column| width(column) + GAP).iter().sum();
    let room = layout.width.map_or(MAX_ENDPOINT, |width| width.saturating_sub(others));
    let room = room.clamp(MIN_ENDPOINT, MAX_ENDPOINT);
    rows.iter_mut().for_each(|row| row[3] = shortened(&row[3], room));
    report::table_with_head(&rows, layout)
}

/// The beginning of a text.
fn shortened(text: &str, room: usize) -> String {
    match text.chars().count() > room {
        true => text.chars().take(room.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// Everything of the imported servers that is not carried over, or is written in a file although it is secret.
fn notes(plan: &ImportPlan, moves_secrets: bool) -> String {
    let mut text = String::new();
    let advice = match moves_secrets {
        true => ", and moves to the store for secrets",
        false => "; `--move-secrets` moves it to the store for secrets",
    };
    for (name, server) in plan.added() {
        let name = escape_control(name);
        for note in &server.notes {
            let _ = writeln!(text, "note: {name}: {note}");
        }
        for literal in &server.literals {
            let _ = writeln!(
                text,
                "note: {name}: {} is a credential in plain text{advice}",
                escape_control(&literal.name())
            );
        }
    }
    text
}

/// How many servers were found, and how many of them are written.
fn summary(plan: &ImportPlan) -> String {
    let (found, added) = (plan.servers.len(), plan.added().count());
    let servers = report::plural(found, "server");
    match found - added {
        _ if found == 0 => String::new(),
        0 => format!("{servers} found: {added} to write\n"),
        same => format!("{servers} found: {added} to write, {same} the same as another\n"),
    }
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
