//! `trunkline man`: prints or installs the manual pages, which are made of the help texts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::{Command as ClapCommand, CommandFactory as _};
use clap_mangen::Man;
use serde_json::json;
use trunkline::config::{Environment as _, escape_control};

use crate::arguments::{Arguments, Format, ManArguments};
use crate::environment::ProcessEnv;
use crate::output::exit::Outcome;
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

pub(crate) fn run(
    arguments: &ManArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let pages = pages()?;
    let directory = match (&arguments.directory, arguments.install) {
        (Some(directory), _) => environment.working_directory().join(directory),
        (None, true) => user_directory(environment)?,
        (None, false) => {
            let first = pages.first().map(|(_, page)| page.as_str()).unwrap_or_default();
            terminal.print(first)?;
            return Ok(Outcome::Good);
        }
    };
    write(&directory, &pages)?;
    let shown = escape_control(&directory.to_string_lossy());
    if settings.format != Format::Text {
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        let json = json!({ "directory": directory, "pages": names });
        terminal.print(&report::document(&json, settings.format))?;
    }
    terminal.tell(&format!(
        "{} written to {shown}; `man trunkline` shows the first\n",
        report::plural(pages.len(), "page")
    ));
    Ok(Outcome::Good)
}

/// The pages of the program and of every command, each with its file name.
fn pages() -> Result<Vec<(String, String)>> {
    let mut root = Arguments::command();
    root.build();
    let mut pages = vec![page(&root, "trunkline")?];
    for command in root.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help")
    {
        pages.push(page(command, &format!("trunkline-{}", command.get_name()))?);
    }
    Ok(pages)
}

fn page(command: &ClapCommand, name: &str) -> Result<(String, String)> {
    let mut text = Vec::new();
    Man::new(command.clone()).title(name).render(&mut text)?;
    Ok((format!("{name}.1"), String::from_utf8_lossy(&text).into_owned()))
}

/// The directory in which `man` looks for pages of the user.
fn user_directory(environment: &ProcessEnv) -> Result<PathBuf> {
    let data = environment.variable("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.filter(|path| path.is_absolute());
    let home = || environment.home_directory().map(|home| home.join(".local/share"));
    let data = data.or_else(home).context("there is no home directory; name a directory")?;
    Ok(data.join("man/man1"))
}

fn write(directory: &Path, pages: &[(String, String)]) -> Result<()> {
    let shown = escape_control(&directory.to_string_lossy());
    fs::create_dir_all(directory).with_context(|| format!("{shown} cannot be created"))?;
    for (name, page) in pages {
        fs::write(directory.join(name), page)
            .with_context(|| format!("{name} cannot be written to {shown}"))?;
    }
    Ok(())
}
