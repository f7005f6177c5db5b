//! `trunkline token`: adds, lists and removes tokens for a gateway.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use trunkline::config::{Access, closest_match, escape_control};
use trunkline_gateway::{Scope, digest_of, new_token};

use crate::arguments::{Format, TokenAddArguments, TokenCommand, quoted};
use crate::environment::ProcessEnv;
use crate::gateway::tokens::{StoredToken, TokenFile, check_name};
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::settings::Settings;

pub(crate) fn run(
    command: &TokenCommand,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    match command {
        TokenCommand::Add(arguments) => add(arguments, settings.format, environment, terminal),
        TokenCommand::List { file } => {
            let file = TokenFile::read(TokenFile::place(file.file.as_deref(), environment)?)?;
            file.warn_if_open(terminal);
            list(&file, settings.format, terminal)
        }
        TokenCommand::Remove { name, file } => {
            let place = TokenFile::place(file.file.as_deref(), environment)?;
            remove(name, TokenFile::read(place)?, settings.format, terminal)
        }
    }
}

fn add(
    arguments: &TokenAddArguments,
    format: Format,
    environment: &ProcessEnv,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let name = &arguments.name;
    check_name(name)?;
    let place = TokenFile::place(arguments.file.file.as_deref(), environment)?;
    let hold = place.hold().with_context(|| cannot_write(&place))?;
    let mut file = TokenFile::read(place)?;
    file.warn_if_open(terminal);
    if file.kept.contains_key(name) {
        bail!(
            "there is a token `{name}` in {} already\n  `trunkline token remove {}{}` removes it",
            file.shown(),
            quoted(name),
            file.option(arguments.file.file.as_deref())
        );
    }
    let scope = Scope {
        agent: arguments.agent.clone(),
        bundles: arguments.bundles.clone(),
        access: arguments.access.map(Access::from),
        conversation: None,
    };
    let token = new_token();
    let kept = StoredToken { digest: digest_of(&token), scope, created: Some(ProcessEnv::today()) };
    file.kept.insert(name.clone(), kept.clone());
    file.file.replace(&hold, &file.as_text()).with_context(|| cannot_write(&file.file))?;
    terminal.print(&match format {
        Format::Text => format!("{token}\n"),
        Format::Json | Format::Raw => {
            let mut json = as_json(name, &kept);
            json["token"] = token.into();
            report::document(&json, format)
        }
    })?;
    terminal.tell(&format!(
        "This is the token `{name}`, for {}. It cannot be shown again; its digest is in {}.\n\
         Clients send it as `Authorization: Bearer TOKEN` to `trunkline serve --tokens`.\n",
        kept.shown_scope(),
        file.shown()
    ));
    Ok(Outcome::Good)
}

fn list(file: &TokenFile, format: Format, terminal: &mut Terminal) -> Result<Outcome> {
    if format != Format::Text {
        let tokens: Vec<_> = file.kept.iter().map(|(name, kept)| as_json(name, kept)).collect();
        let json = json!({ "file": file.file.path().to_string_lossy(), "tokens": tokens });
        terminal.print(&report::document(&json, format))?;
        return Ok(Outcome::Good);
    }
    if file.kept.is_empty() {
        terminal.tell(&format!("there are no tokens in {}\n", file.shown()));
        return Ok(Outcome::Good);
    }
    let head = ["name", "limited to", "created", "digest"].map(str::to_owned);
    let row = |(name, kept): (&String, &StoredToken)| {
        let created = kept.created.as_deref().map(escape_control).unwrap_or_default();
        [escape_control(name), kept.shown_scope(), created, kept.shown_digest()]
    };
    let rows: Vec<_> = std::iter::once(head).chain(file.kept.iter().map(row)).collect();
    terminal.print(&report::table_with_head(&rows, terminal.layout()))?;
    Ok(Outcome::Good)
}

fn remove(name: &str, file: TokenFile, format: Format, terminal: &mut Terminal) -> Result<Outcome> {
    // An unknown token is reported before a directory for the lock is created.
    let unknown = |file: &TokenFile| no_token(name, file);
    if !file.kept.contains_key(name) {
        return Err(unknown(&file).into());
    }
    let hold = file.file.hold().with_context(|| cannot_write(&file.file))?;
    let mut file = TokenFile::read(file.file)?;
    let Some(kept) = file.kept.remove(name) else { return Err(unknown(&file).into()) };
    file.file.replace(&hold, &file.as_text()).with_context(|| cannot_write(&file.file))?;
    if format != Format::Text {
        terminal.print(&report::document(&json!({ "removed": as_json(name, &kept) }), format))?;
    }
    terminal.tell(&format!(
        "The token `{}` is removed from {}: its bearer is not let in any more.\n",
        escape_control(name),
        file.shown()
    ));
    Ok(Outcome::Good)
}

fn no_token(name: &str, file: &TokenFile) -> Failure {
    let message = format!("there is no token `{}` in {}", escape_control(name), file.shown());
    match closest_match(name, file.kept.keys().map(String::as_str)) {
        Some(near) => {
            let message = format!("{message}; did you mean `{}`?", escape_control(near));
            Failure::new(FailureKind::Unknown, message).suggesting(vec![near.to_owned()])
        }
        None => Failure::new(FailureKind::Unknown, message),
    }
}

fn cannot_write(file: &crate::environment::PrivateFile) -> String {
    format!("cannot write {}", escape_control(&file.path().to_string_lossy()))
}

fn as_json(name: &str, kept: &StoredToken) -> Value {
    json!({
        "name": name,
        "agent": kept.scope.agent,
        "bundles": kept.scope.bundles,
        "access": kept.scope.access.map(Access::as_str),
        "created": kept.created,
        "digest": kept.shown_digest(),
    })
}
