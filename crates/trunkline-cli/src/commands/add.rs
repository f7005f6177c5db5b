//! `trunkline add`, `remove` and `init`: change Trunkline's own configuration file.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};
use trunkline::config::{self, closest_match, escape_control};
use trunkline::name::ServerName;

use crate::arguments::{AddArguments, Format, RemoveArguments, TargetArguments, quoted};
use crate::config::inspection::PlannedFile;
use crate::config::trusted_edit::TrustedEdit;
use crate::environment::ProcessEnv;
use crate::host_files::{FileChange, TargetChoice, TargetFile, credential_notes};
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::{Settings, Verbosity};

/// The error if a new entry cannot be used.
const NOT_ADDED: &str = "the server is not added";

/// The text of a new file.
const TEMPLATE: &str = r#"{
  // The MCP servers of this directory. `trunkline add NAME -- COMMAND…` adds one, `trunkline check` reports problems.
  "mcpServers": {}
}
"#;

pub(crate) fn run(
    arguments: &AddArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let name = ServerName::new(&arguments.name);
    let name =
        name.map_err(|reason| usage(format!("the server cannot be called that: {reason}")))?;
    let entry = entry(arguments)?;
    // Problems are reported before a file is changed.
    let checked = config::parse(
        "the new entry",
        json!({ "mcpServers": { name.as_str(): entry } }).to_string(),
    );
    if checked.has_errors(false) {
        let problems = report::problems(&checked, Verbosity::Normal, terminal.message_style());
        terminal.say(&problems);
        bail!(NOT_ADDED);
    }
    let mut target = TargetFile::read(choice(&arguments.target), settings, environment)?;
    let is_there = target.loaded.config.server(name.as_str()).is_some()
        || target.loaded.config.broken().contains(&name);
    if is_there && !arguments.force {
        let shown = escape_control(name.as_str());
        let path = escape_control(&target.path().to_string_lossy());
        bail!("{path} has a server `{shown}` already\n  `--force` replaces it");
    }
    target.insert(name.as_str(), &entry)?;
    inspect_server(&name, &target, (settings, environment), terminal)?;
    let done = format!("server `{}` added to", escape_control(name.as_str()));
    finish(&target.change(), arguments.dry_run, &done, (settings, environment), terminal)
}

/// Reports the problems of a new server that `trunkline check` would report, and refuses one with errors.
fn inspect_server(
    name: &ServerName,
    target: &TargetFile,
    (settings, environment): (&Settings, &ProcessEnv),
    terminal: &Terminal,
) -> Result<()> {
    let file = PlannedFile { path: target.path().to_owned(), text: target.text().to_owned() };
    let mut loaded = file.inspected(environment)?;
    loaded.diagnostics.retain(|it| it.server.as_ref() == Some(name));
    let problems = report::problems(&loaded, settings.verbosity, terminal.message_style());
    terminal.say(&problems);
    if loaded.diagnostics.iter().any(|it| it.is_error(false)) {
        bail!(NOT_ADDED);
    }
    let shown = escape_control(name.as_str());
    for note in loaded.config.server(name.as_str()).map(credential_notes).unwrap_or_default() {
        terminal.tell(&format!("note: {shown}: {note}\n"));
    }
    Ok(())
}

pub(crate) fn remove(
    arguments: &RemoveArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let mut target = TargetFile::read(choice(&arguments.target), settings, environment)?;
    let shown = escape_control(&arguments.name);
    if !target.remove(&arguments.name)? {
        let path = escape_control(&target.path().to_string_lossy());
        let names = target.loaded.config.servers().map(|server| server.name.as_str());
        let of_user = user_file_with(arguments, settings, environment);
        let near = closest_match(&arguments.name, names).filter(|_| of_user.is_none());
        let message = match near {
            Some(near) => format!("{path} has no server `{shown}`; did you mean `{near}`?"),
            None => format!("{path} has no server `{shown}`"),
        };
        let hint = match of_user {
            Some(file) => {
                let word = escape_control(&quoted(&arguments.name));
                format!("`trunkline remove {word} --user` removes the one in {file}")
            }
            None => "`trunkline config` shows where each server is written".to_owned(),
        };
        return Err(Failure::new(FailureKind::Unknown, message).with_hint(hint).into());
    }
    let done = format!("server `{shown}` removed from");
    finish(&target.change(), arguments.dry_run, &done, (settings, environment), terminal)
}

/// The file of the user, if it has the server and is not the file that was meant.
fn user_file_with(
    arguments: &RemoveArguments,
    settings: &Settings,
    environment: &ProcessEnv,
) -> Option<String> {
    if arguments.target.user || settings.config.is_some() {
        return None;
    }
    let mut file = TargetFile::read(TargetChoice::User, settings, environment).ok()?;
    let path = escape_control(&file.path().to_string_lossy());
    file.remove(&arguments.name).ok()?.then_some(path)
}

pub(crate) fn init(
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let target = TargetFile::read(TargetChoice::Project, settings, environment)?;
    let path = escape_control(&target.path().to_string_lossy());
    if target.exists() {
        bail!("{path} exists already\n  `trunkline add NAME -- COMMAND…` adds a server to it");
    }
    let change = target.with_text(TEMPLATE).change();
    let outcome = finish(
        &change,
        false,
        "an empty configuration written to",
        (settings, environment),
        terminal,
    )?;
    terminal.tell("`trunkline add NAME -- COMMAND…` adds a server, `trunkline import --project` those of other hosts\n");
    Ok(outcome)
}

/// Writes a change, or shows it.
fn finish(
    change: &FileChange,
    is_dry: bool,
    done: &str,
    (settings, environment): (&Settings, &ProcessEnv),
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let path = escape_control(&change.path().to_string_lossy());
    let (backup, is_trusted) = match is_dry {
        true => (None, false),
        false => write_trusted(change, environment, terminal)?,
    };
    if settings.format != Format::Text {
        let json = json!({ "file": change.path(), "written": !is_dry, "backup": backup });
        terminal.print(&report::document(&json, settings.format))?;
        return Ok(Outcome::Good);
    }
    if is_dry {
        terminal.print(&change.diff())?;
        terminal.tell(&format!("nothing was written to {path}\n"));
        return Ok(Outcome::Good);
    }
    terminal.tell(&format!("{done} {path}\n"));
    if let Some(backup) = backup {
        let backup = escape_control(&backup.to_string_lossy());
        terminal.tell(&format!("the file as it was is {backup}\n"));
    }
    if is_trusted {
        terminal.tell("the file was trusted and still is\n");
    } else if change.path().starts_with(environment.working_directory()) {
        terminal.tell("`trunkline trust` lets its servers run where the file is found\n");
    }
    Ok(Outcome::Good)
}

/// Writes a change, and keeps the trust in the file: the user has named the change. Returns the backup, and whether the
/// file is trusted still.
fn write_trusted(
    change: &FileChange,
    environment: &ProcessEnv,
    terminal: &Terminal,
) -> Result<(Option<PathBuf>, bool)> {
    let old = change.old_text();
    let trusted = old.and_then(|old| TrustedEdit::of(change.path(), old, environment));
    let backup = change.write()?;
    let renewed = trusted.map(|it| it.renew(change.text(), environment));
    let is_trusted = renewed.unwrap_or(Ok(false)).unwrap_or_else(|error| {
        terminal.warn(&format!("the file is not trusted any more: {error:#}"));
        false
    });
    Ok((backup, is_trusted))
}

fn choice(target: &TargetArguments) -> TargetChoice {
    match (target.project, target.user) {
        (true, _) => TargetChoice::Project,
        (_, true) => TargetChoice::User,
        _ => TargetChoice::InUse,
    }
}

/// The entry of the server on the command line.
fn entry(arguments: &AddArguments) -> Result<Value> {
    let mut entry = Map::new();
    match (arguments.program.as_slice(), &arguments.url) {
        ([command, args @ ..], _) => {
            entry.insert("command".to_owned(), command.as_str().into());
            if !args.is_empty() {
                entry.insert("args".to_owned(), json!(args));
            }
        }
        ([], Some(url)) => {
            entry.insert("url".to_owned(), url.as_str().into());
        }
        ([], None) => {
            let message = "give the program of the server after `--`, or its URL";
            return Err(usage(format!(
                "{message}: `trunkline add {} -- COMMAND…`",
                arguments.name
            ))
            .into());
        }
    }
    let pairs = [("env", &arguments.variables, "="), ("headers", &arguments.headers, ":")];
    for (key, words, sign) in pairs {
        let mut members = Map::new();
        for (at, word) in words.iter().enumerate() {
            // The word may be a secret without its name.
            let option = if key == "env" { "--env" } else { "--header" };
            let Some((name, value)) = word.split_once(sign) else {
                let message =
                    format!("`{option}` number {} has no `{sign}` after its name", at + 1);
                return Err(usage(message).into());
            };
            let value = if key == "env" { value } else { value.trim_start() };
            if members.insert(name.trim().to_owned(), value.into()).is_some() {
                let shown = escape_control(name.trim());
                return Err(usage(format!("`{option} {shown}…` is given twice")).into());
            }
        }
        if !members.is_empty() {
            entry.insert(key.to_owned(), members.into());
        }
    }
    Ok(entry.into())
}

fn usage(message: String) -> Failure {
    Failure::new(FailureKind::Usage, message)
}
