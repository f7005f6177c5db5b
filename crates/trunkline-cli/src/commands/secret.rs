//! `trunkline secret`: stores, lists, removes and migrates secrets.

use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use trunkline::config::{Secret, closest_match, escape_control, is_valid_secret_name};
use trunkline::secrets::{SecretKey, SecretStore};
use trunkline_secrets::{StoreKind, migrate, open_kind, remember_kind};

use crate::arguments::{Format, SecretCommand, StoreArgument};
use crate::config::secrets::{chosen_store, store_options};
use crate::environment::ProcessEnv;
use crate::output::exit::{Failure, FailureKind, Outcome};
use crate::output::report::{self, plural};
use crate::output::terminal::Terminal;
use crate::settings::Settings;

/// Largest value of a secret, as typed or piped.
const MAX_SECRET_BYTES: usize = 64 << 10;

pub(crate) fn run(
    command: &SecretCommand,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let command_with = |store: Option<StoreArgument>| StoreCommand {
        store: store.map(StoreKind::from),
        settings,
        environment,
    };
    match command {
        SecretCommand::Set { name, store } => command_with(store.store).set(name, terminal),
        SecretCommand::List { store } => command_with(store.store).list(terminal),
        SecretCommand::Remove { name, store } => command_with(store.store).remove(name, terminal),
        SecretCommand::Migrate { to } => command_with(None).migrate((*to).into(), terminal),
        SecretCommand::Store => command_with(None).describe(terminal),
    }
}

struct StoreCommand<'a> {
    /// The store on the command line.
    store: Option<StoreKind>,
    settings: &'a Settings,
    environment: &'a ProcessEnv,
}

impl StoreCommand<'_> {
    /// The store to use, and its kind.
    fn open(&self) -> Result<(Arc<dyn SecretStore>, StoreKind), Failure> {
        match self.store {
            Some(kind) => {
                Ok((open_kind(kind, &store_options(self.settings, self.environment)?), kind))
            }
            None => {
                let chosen = chosen_store(self.settings, self.environment)?;
                Ok((Arc::clone(&chosen.store), chosen.kind))
            }
        }
    }

    fn set(&self, name: &str, terminal: &mut Terminal) -> Result<Outcome> {
        check_name(name)?;
        let (store, kind) = self.open()?;
        let value = read_value(name, terminal)?;
        let key = SecretKey::user(name);
        let lock = store.lock(&key).map_err(Failure::from)?;
        store.set(&key, &value).map_err(Failure::from)?;
        drop(lock);
        self.print(&json!({ "stored": { "name": name, "store": kind.as_str() } }), terminal)?;
        let place = store.description();
        terminal.tell(&format!(
            "The secret `{name}` is stored in {place}. Refer to it as `${{secret:{name}}}`.\n"
        ));
        Ok(Outcome::Good)
    }

    fn list(&self, terminal: &mut Terminal) -> Result<Outcome> {
        let (store, kind) = self.open()?;
        let keys = store.keys().map_err(Failure::from)?;
        let names = user_names(&keys);
        let logins = keys.len() - names.len();
        if self.settings.format == Format::Text {
            let lines = names.iter().map(|name| escape_control(name) + "\n");
            terminal.print(&lines.collect::<String>())?;
        }
        let json = json!({
            "store": { "kind": kind.as_str(), "description": store.description() },
            "secrets": names,
            "logins": logins,
        });
        self.print(&json, terminal)?;
        let (secrets, logins) = (plural(names.len(), "secret"), plural(logins, "login"));
        terminal.tell(&format!("{secrets} and {logins} in {}\n", store.description()));
        Ok(Outcome::Good)
    }

    fn remove(&self, name: &str, terminal: &mut Terminal) -> Result<Outcome> {
        let (store, kind) = self.open()?;
        let key = SecretKey::user(name);
        // An unknown secret is reported before a file for the lock is created.
        let keys = store.keys().map_err(Failure::from)?;
        if !keys.contains(&key) {
            return Err(no_secret(name, &user_names(&keys), store.as_ref()).into());
        }
        let lock = store.lock(&key).map_err(Failure::from)?;
        store.remove(&key).map_err(Failure::from)?;
        drop(lock);
        self.print(&json!({ "removed": { "name": name, "store": kind.as_str() } }), terminal)?;
        terminal.tell(&format!("The secret `{name}` is removed from {}.\n", store.description()));
        Ok(Outcome::Good)
    }

    fn migrate(&self, to: StoreKind, terminal: &mut Terminal) -> Result<Outcome> {
        let options = store_options(self.settings, self.environment)?;
        let other = match to {
            StoreKind::Keychain => StoreKind::File,
            StoreKind::File => StoreKind::Keychain,
        };
        let (from, target) = (open_kind(other, &options), open_kind(to, &options));
        let switch = || remember_kind(&options.state, to);
        let migration = migrate(from.as_ref(), target.as_ref(), switch).map_err(Failure::from)?;
        let moved = user_names(&migration.moved);
        let logins = migration.moved.len() - moved.len();
        let json = json!({
            "store": to.as_str(),
            "moved": { "secrets": moved, "logins": logins },
            "changedMeanwhile": migration.changed.len(),
        });
        self.print(&json, terminal)?;
        let (secrets, logins) = (plural(moved.len(), "secret"), plural(logins, "login"));
        let (old, new) = (from.description(), target.description());
        terminal.tell(&format!("{secrets} and {logins} moved from {old} to {new}.\n"));
        if !migration.changed.is_empty() {
            let left = migration.changed.len();
            terminal.warn(&format!(
                "{left} changed while they were copied and are in both stores; run it again"
            ));
        }
        if options.kind.is_some_and(|kind| kind != to) {
            let to = to.as_str();
            terminal.warn(&format!(
                "the configuration still names the other store: write `\"secrets\": {{ \"store\": \"{to}\" }}`"
            ));
        }
        Ok(Outcome::Good)
    }

    fn describe(&self, terminal: &mut Terminal) -> Result<Outcome> {
        let chosen = chosen_store(self.settings, self.environment)?;
        let options = store_options(self.settings, self.environment)?;
        let key = (chosen.kind == StoreKind::File).then(|| options.key_source().description());
        let place = chosen.store.description();
        if self.settings.format == Format::Text {
            let mut rows = vec![
                ["store".to_owned(), place.clone()],
                ["reason".to_owned(), chosen.reason.clone()],
            ];
            rows.extend(key.clone().map(|key| ["key".to_owned(), key]));
            terminal.print(&report::table(&rows))?;
        }
        let json = json!({
            "kind": chosen.kind.as_str(),
            "description": place,
            "reason": chosen.reason,
            "key": key,
        });
        self.print(&json, terminal)?;
        Ok(Outcome::Good)
    }

    /// Prints a document, unless the output is text.
    fn print(&self, json: &Value, terminal: &mut Terminal) -> Result<()> {
        if self.settings.format != Format::Text {
            terminal.print(&report::document(json, self.settings.format))?;
        }
        Ok(())
    }
}

/// The names of secrets that the user entered.
fn user_names(keys: &[SecretKey]) -> Vec<&str> {
    let mut names = Vec::new();
    for key in keys {
        if let SecretKey::User(name) = key {
            names.push(&**name);
        }
    }
    names
}

fn check_name(name: &str) -> Result<(), Failure> {
    if is_valid_secret_name(name) {
        return Ok(());
    }
    let message = format!("`{}` cannot be the name of a secret", escape_control(name));
    let hint = "use 1 to 128 letters, digits, `_`, `-` and `.`";
    Err(Failure::new(FailureKind::Usage, message).with_hint(hint))
}

/// Reads the value of a secret from the terminal or from standard input.
fn read_value(name: &str, terminal: &mut Terminal) -> Result<Secret> {
    let text = terminal.read_secret(&format!("Value of {name}: "), MAX_SECRET_BYTES + 2)?;
    let text = text.strip_suffix('\n').map_or(&*text, |it| it.strip_suffix('\r').unwrap_or(it));
    let problem = match text.len() {
        0 => "the value is empty".to_owned(),
        length if length > MAX_SECRET_BYTES => {
            format!("the value has more than {} KiB", MAX_SECRET_BYTES >> 10)
        }
        _ => return Ok(Secret::new(text)),
    };
    Err(Failure::new(FailureKind::Usage, format!("{problem}; nothing is stored")).into())
}

fn no_secret(name: &str, names: &[&str], store: &dyn SecretStore) -> Failure {
    let message =
        format!("there is no secret `{}` in {}", escape_control(name), store.description());
    match closest_match(name, names.iter().copied()) {
        Some(near) => {
            let message = format!("{message}; did you mean `{}`?", escape_control(near));
            Failure::new(FailureKind::Unknown, message).suggesting(vec![near.to_owned()])
        }
        None => Failure::new(FailureKind::Unknown, message),
    }
}
