//! The store for secrets of the current settings. It is opened when the first secret is needed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trunkline::config::{
    FoundBy, LoadOptions, LoadedConfig, Origin, Resolver, Secret, SecretPlace, SecretSettings,
    SecretStoreChoice,
};
use trunkline::secrets::{SecretKey, SecretStore, StoreError};
use trunkline_secrets::{ChosenStore, KeySource, StoreKind, StoreOptions, WaitNotice, open_kind};

use super::load::load_waiting;
use crate::environment::ProcessEnv;
use crate::output::exit::Failure;
use crate::output::terminal::write_message;
use crate::settings::Settings;

const PASSPHRASE: &str = "TRUNKLINE_SECRETS_PASSPHRASE";
const KEY: &str = "TRUNKLINE_SECRETS_KEY";
const KEY_FILE: &str = "TRUNKLINE_SECRETS_KEY_FILE";

/// Opens the store of the settings, once per environment.
pub(crate) fn open_lazily<'e>(
    load: &LoadOptions,
    environment: &'e ProcessEnv,
) -> Result<&'e Arc<dyn SecretStore>, StoreError> {
    chosen(load.clone(), environment).map(|chosen| &chosen.store).map_err(Clone::clone)
}

/// The store of the settings, and why it was chosen.
pub(crate) fn chosen_store<'e>(
    settings: &Settings,
    environment: &'e ProcessEnv,
) -> Result<&'e ChosenStore, Failure> {
    let chosen = chosen(settings.load_options(environment, None), environment);
    chosen.map_err(|error| error.clone().into())
}

/// Options for opening stores of the settings.
pub(crate) fn store_options(
    settings: &Settings,
    environment: &ProcessEnv,
) -> Result<StoreOptions, Failure> {
    Ok(options(settings.load_options(environment, None), environment)?)
}

/// Lets servers refer to secrets. The store is opened with the first reference.
pub(crate) fn install(settings: &Settings, environment: &ProcessEnv) {
    let load = settings.load_options(environment, None);
    let process = environment.without_secret_lookup();
    environment
        .set_secret_lookup(Box::new(move |place, name| Ok(look_up(&load, &process, place, name)?)));
}

fn look_up(
    load: &LoadOptions,
    environment: &ProcessEnv,
    place: SecretPlace,
    name: &str,
) -> Result<Option<Secret>, StoreError> {
    let key = SecretKey::user(name);
    match place {
        SecretPlace::Store => {
            let chosen = chosen(load.clone(), environment).map_err(Clone::clone)?;
            chosen.store.get(&key)
        }
        SecretPlace::Keychain => {
            let open = || Ok(open_kind(StoreKind::Keychain, &options(load.clone(), environment)?));
            environment
                .stores()
                .keychain
                .get_or_init(open)
                .as_ref()
                .map_err(Clone::clone)?
                .get(&key)
        }
    }
}

fn chosen(load: LoadOptions, environment: &ProcessEnv) -> Result<&ChosenStore, &StoreError> {
    let open = || trunkline_secrets::open_store(&options(load, environment)?);
    environment.stores().chosen.get_or_init(open).as_ref()
}

fn options(load: LoadOptions, environment: &ProcessEnv) -> Result<StoreOptions, StoreError> {
    let settings = secret_settings(load, environment)?;
    let state = environment.state_directory().ok_or_else(|| {
        StoreError::new("there is no home directory to store secrets in")
            .with_hint("set XDG_STATE_HOME")
    })?;
    let kind = match settings.store {
        None | Some(SecretStoreChoice::Auto) => None,
        Some(SecretStoreChoice::Keychain) => Some(StoreKind::Keychain),
        Some(SecretStoreChoice::File) => Some(StoreKind::File),
    };
    let key = key_source(settings.key_file.as_deref(), environment)?;
    Ok(StoreOptions { kind, state, key, notice: notice() })
}

fn notice() -> WaitNotice {
    Arc::new(|text| write_message(&format!("{text}\n")))
}

/// The settings of the configuration in use and, for what it does not set, of the user's own file. A
/// configuration file that was found replaces the user's own for everything else, and may not choose a store.
fn secret_settings(
    mut load: LoadOptions,
    environment: &ProcessEnv,
) -> Result<SecretSettings, StoreError> {
    let loaded = load_readable(load.clone(), environment)?;
    let mut settings = loaded.config.secrets().clone();
    let is_own =
        |origin: &Origin| matches!(origin, Origin::File(it) if it.found == FoundBy::Fallback);
    let own = environment.user_directory().map(|folder| folder.join("mcp.json"));
    let own = own.filter(|path| environment.has_file(path));
    if let Some(own) = own.filter(|_| !loaded.origins.iter().any(is_own)) {
        load.places.inline_variables.clear();
        load.path = Some(own);
        let own = load_readable(load, environment)?.config.secrets().clone();
        settings.store = settings.store.or(own.store);
        settings.key_file = settings.key_file.or(own.key_file);
    }
    Ok(settings)
}

/// Loads a configuration that may choose a store. One that cannot be read may choose another one.
fn load_readable(load: LoadOptions, environment: &ProcessEnv) -> Result<LoadedConfig, StoreError> {
    let (loaded, _) = load_waiting(environment, load)
        .map_err(|error| StoreError::new(format!("no store is chosen: {error:#}")))?;
    if loaded.config.secrets().is_unreadable {
        let message = "the store for secrets is not known, because the configuration has errors";
        let hint = "run `trunkline check` and correct `secrets`";
        return Err(StoreError::new(message).with_hint(hint));
    }
    Ok(loaded)
}

/// The key of encrypted files: in a variable, else in the file that the configuration names.
fn key_source(
    configured: Option<&Path>,
    environment: &ProcessEnv,
) -> Result<Option<KeySource>, StoreError> {
    let variable = |name: &str| {
        let value = Resolver::variable(environment, name);
        value.filter(|value| !value.expose().is_empty())
    };
    let origin = |name: &str| format!("the variable {name}");
    let sources = [
        variable(PASSPHRASE).map(|value| KeySource::Passphrase(value, origin(PASSPHRASE))),
        variable(KEY).map(|value| KeySource::Identity(value, origin(KEY))),
        variable(KEY_FILE)
            .map(|path| KeySource::File(absolute(path.expose().as_ref(), environment))),
    ];
    let mut sources = sources.into_iter().flatten();
    match (sources.next(), sources.next()) {
        (Some(_), Some(_)) => {
            let message = format!("several of {PASSPHRASE}, {KEY} and {KEY_FILE} are set");
            Err(StoreError::new(message)
                .with_hint("set only the one that the store was created with"))
        }
        (Some(source), None) => Ok(Some(source)),
        (None, _) => Ok(configured.map(|path| KeySource::File(absolute(path, environment)))),
    }
}

/// A path under `~/` or relative to the working directory.
fn absolute(path: &Path, environment: &ProcessEnv) -> PathBuf {
    let home = path.strip_prefix("~").ok().zip(environment.user_home());
    match home {
        Some((rest, home)) => home.join(rest),
        None => environment.working_directory().join(path),
    }
}
