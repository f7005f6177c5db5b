//! `trunkline install` and `uninstall`: puts Trunkline into the configuration of a host, and takes it out.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use trunkline::config::{self, SearchPath, escape_control};
use trunkline::name::ServerName;
use trunkline_hosts::edit::{self, FileFormat};
use trunkline_hosts::entry::GatewayCommand;
use trunkline_hosts::file::ConfigFile;
use trunkline_hosts::hosts::{AiHost, HostFile};

use super::import::find_host;
use crate::arguments::{Format, InstallArguments};
use crate::environment::ProcessEnv;
use crate::host_files::{
    FileChange, file_failure, is_trunkline, parse_host_text, user_environment,
};
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

/// Whether the entry is put in or taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InstallAction {
    Install,
    Uninstall,
}

pub(crate) fn run(
    arguments: &InstallArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    change(InstallAction::Install, arguments, settings, environment, terminal)
}

/// Takes the entry out again.
pub(crate) fn undo(
    arguments: &InstallArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    change(InstallAction::Uninstall, arguments, settings, environment, terminal)
}

fn change(
    action: InstallAction,
    arguments: &InstallArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let host = find_host(&arguments.host)?;
    if let Err(reason) = ServerName::new(&arguments.name) {
        let message = format!("the entry cannot be called that: {reason}");
        return Err(Failure::new(FailureKind::Usage, message).into());
    }
    let file = host_file(action, host, arguments, environment)?;
    if action == InstallAction::Install {
        refuse_own_file(&file.path, environment)?;
    }
    let read = ConfigFile::read(&file.path).map_err(|error| file_failure(&error))?;
    let shown = escape_control(&file.path.to_string_lossy());
    let edited = edited(action, arguments, (&file, read.text()), environment);
    let Some(text) = edited.map_err(|error| error.context(format!("{shown} is not changed")))?
    else {
        let name = escape_control(&arguments.name);
        terminal.tell(&format!("there is no server `{name}` in {shown}; nothing to remove\n"));
        print_json(&install_json(host, &file, arguments), settings.format, terminal)?;
        return Ok(Outcome::Good);
    };
    let change = FileChange::new(read, file.format, text);
    let is_new = !change.is_empty();
    if arguments.dry_run {
        if settings.format == Format::Text {
            terminal.print(&change.diff())?;
        }
        terminal.tell(&format!("nothing was written to {shown}\n"));
    }
    let backup = if is_new && !arguments.dry_run { change.write()? } else { None };
    let mut json = install_json(host, &file, arguments);
    json["changed"] = (is_new && !arguments.dry_run).into();
    json["backup"] = json!(backup);
    json["diff"] = change.diff().into();
    print_json(&json, settings.format, terminal)?;
    if !arguments.dry_run {
        terminal.tell(&outcome(action, host, &shown, is_new));
        if let Some(backup) = backup {
            terminal.tell(&format!(
                "the file as it was is {}\n",
                escape_control(&backup.to_string_lossy())
            ));
        }
    }
    Ok(Outcome::Good)
}

/// The document of a command that changes nothing.
fn install_json(host: &AiHost, file: &HostFile, arguments: &InstallArguments) -> Value {
    json!({
        "host": host.id(), "file": file.path, "name": arguments.name,
        "changed": false, "backup": null, "diff": "",
    })
}

fn print_json(json: &Value, format: Format, terminal: &mut Terminal) -> Result<()> {
    if format != Format::Text {
        terminal.print(&report::document(json, format))?;
    }
    Ok(())
}

/// The text of the file with the change; `None` if there is nothing to take out.
fn edited(
    action: InstallAction,
    arguments: &InstallArguments,
    (file, text): (&HostFile, &str),
    environment: &ProcessEnv,
) -> Result<Option<String>> {
    let (key_path, name) = (file.key_path_in(text)?, &arguments.name);
    if edit::contains(text, file.format, &key_path, name)?
        && !arguments.force
        && !is_own_entry(file, text, name)
    {
        let shown = escape_control(name);
        bail!(
            "its server `{shown}` is not Trunkline\n  `--force` replaces or removes it, `--name` uses another name"
        );
    }
    match action {
        InstallAction::Install => {
            let entry = gateway(arguments, environment)?.entry(file.host, &key_path);
            Ok(Some(edit::insert(text, file.format, &key_path, name, &entry)?))
        }
        InstallAction::Uninstall => {
            let removed = edit::remove(text, file.format, &key_path, name)?;
            match file.format {
                FileFormat::Json => {
                    Ok(removed.map(|it| edit::remove_empty(&it, &key_path)).transpose()?)
                }
                FileFormat::Toml | FileFormat::Yaml => Ok(removed),
            }
        }
    }
}

/// Whether the entry of that name starts Trunkline.
fn is_own_entry(file: &HostFile, text: &str, name: &str) -> bool {
    let loaded = parse_host_text("the file", text, file.format);
    loaded.config.server(name).is_some_and(|server| is_trunkline(&server.to_entry()))
}

fn outcome(action: InstallAction, host: &AiHost, path: &str, is_new: bool) -> String {
    match (action, is_new) {
        (_, false) => format!("{path} has this entry already\n"),
        (InstallAction::Install, true) => format!(
            "{host} starts Trunkline now, by {path}. Restart {host}, and remove servers from its file that Trunkline \
             has too.\n"
        ),
        (InstallAction::Uninstall, true) => format!("{host} does not start Trunkline any more\n"),
    }
}

/// The file of the host to change: the one that has the entry, else the first that exists, else the first.
fn host_file(
    action: InstallAction,
    host: &'static AiHost,
    arguments: &InstallArguments,
    environment: &ProcessEnv,
) -> Result<HostFile> {
    let files = match arguments.project {
        true => host.project_files(environment.working_directory()),
        false => {
            let user = user_environment(environment).context("there is no home directory")?;
            host.user_files(&user)
        }
    };
    let has_entry = |file: &&HostFile| {
        let text =
            ConfigFile::read(&file.path).map(|read| read.text().to_owned()).unwrap_or_default();
        is_own_entry(file, &text, &arguments.name)
    };
    let with_entry = files.iter().find(has_entry).filter(|_| action == InstallAction::Uninstall);
    let existing = files.iter().find(|file| file.path.exists());
    let Some(file) = with_entry.or(existing).or_else(|| files.first()) else {
        let other = if arguments.project { "without" } else { "with" };
        bail!("{host} has no such file on this system\n  try it {other} `--project`");
    };
    Ok(file.clone())
}

/// Refuses a file that Trunkline itself would read, and so start itself.
fn refuse_own_file(path: &Path, environment: &ProcessEnv) -> Result<()> {
    let places = SearchPath::trunkline(environment.user_directory().as_deref());
    let folder = environment.working_directory();
    let is_candidate = places.candidates.iter().any(|it| folder.join(&it.path) == path);
    let used = config::discover(environment, &places, folder).0;
    let would_be_used = is_candidate
        && used.as_deref().is_none_or(|used| used == path || !used.starts_with(folder));
    if would_be_used || used.as_deref() == Some(path) {
        let shown = escape_control(&path.to_string_lossy());
        bail!(
            "Trunkline would start itself: it reads {shown} too\n  `trunkline import --project --all` copies its \
             servers to trunkline.json, or `trunkline init` creates an empty one, which is read instead; then install \
             again"
        );
    }
    Ok(())
}

/// The command that a host starts. Hosts may have another PATH, so that the program is named by its path.
fn gateway(arguments: &InstallArguments, environment: &ProcessEnv) -> Result<GatewayCommand> {
    let program = environment.program().context("the path of this program is not known")?;
    let args: &[&str] = if cfg!(unix) { &["connect"] } else { &["serve", "--stdio"] };
    Ok(GatewayCommand {
        name: arguments.name.clone(),
        command: program.to_string_lossy().into_owned(),
        args: args.iter().map(|&it| it.to_owned()).collect(),
    })
}
