//! A real keychain: gnome-keyring on a D-Bus session of its own.

use std::path::Path;
use std::process::{Command, Output};
use std::{env, fs};

use trunkline::config::Secret;
use trunkline::secrets::{SecretKey, SecretStore as _};
use trunkline_secrets::{
    KeychainStore, StoreKind, StoreOptions, migrate, open_kind, open_store, remember_kind,
};

use crate::support::{TestFolder, helper_command, helper_folder, silent, token};

/// Runs a helper in a D-Bus session after a shell command, with a home directory of its own.
fn in_session(setup: &str, test: &str, folder: &Path) -> Output {
    for name in ["home", "run"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    let helper = helper_command("true", test, folder);
    let program = env::current_exe().unwrap();
    let script = format!(r#"{setup}; exec "$0" "$@""#);
    let mut command = Command::new("timeout");
    command.args(["120", "dbus-run-session", "--", "sh", "-c", &script]).arg(program);
    command.args(helper.get_args());
    for (name, value) in helper.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("HOME", folder.join("home")).env("XDG_RUNTIME_DIR", folder.join("run"));
    for name in ["XDG_DATA_HOME", "XDG_CONFIG_HOME", "DISPLAY", "WAYLAND_DISPLAY"] {
        command.env_remove(name);
    }
    command.output().expect("the tests need dbus-run-session; run `cargo xtask peers`")
}

fn assert_success(output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    assert!(stdout.contains("1 passed"), "{stdout}\n{stderr}");
}

/// Starts gnome-keyring with an unlocked login keyring.
const UNLOCKED: &str =
    "printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null";

/// Starts gnome-keyring with an existing login keyring that is locked.
const LOCKED: &str = "gnome-keyring-daemon --start --components=secrets >/dev/null";

fn store(folder: &Path) -> KeychainStore {
    KeychainStore::new(folder.join("locks"), silent())
}

#[test]
#[ignore = "a helper process of other tests"]
fn uses_an_unlocked_keychain() {
    let Some(folder) = helper_folder() else { return };
    KeychainStore::probe().unwrap();
    let store = store(&folder);
    let login = SecretKey::credential("abc");
    assert_eq!(store.get(&token()).unwrap(), None);
    assert!(store.keys().unwrap().is_empty());
    assert!(!store.remove(&token()).unwrap());
    let long = Secret::new("x".repeat(100_000));
    for value in [Secret::new("first"), Secret::new("größe\n"), long] {
        store.set(&token(), &value).unwrap();
        assert_eq!(store.get(&token()).unwrap(), Some(value));
    }
    store.set(&login, &Secret::new("second")).unwrap();
    assert_eq!(store.keys().unwrap(), [token(), login.clone()]);
    assert!(store.remove(&login).unwrap());
    assert_eq!(store.keys().unwrap(), [token()]);
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "Secret Service is the keychain of Linux")]
fn values_are_set_listed_and_removed() {
    let folder = TestFolder::new();
    assert_success(&in_session(UNLOCKED, "keychain::uses_an_unlocked_keychain", folder.path()));
}

#[test]
#[ignore = "a helper process of other tests"]
fn finds_a_locked_keychain() {
    let Some(folder) = helper_folder() else { return };
    KeychainStore::probe().unwrap();
    let store = store(&folder);
    for error in
        [store.get(&token()).unwrap_err(), store.set(&token(), &Secret::new("x")).unwrap_err()]
    {
        assert!(error.to_string().contains("it is locked"), "{error:?}");
        let hint = error.hint().unwrap();
        assert!(hint.starts_with("unlock it, or use encrypted files"), "{hint}");
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "Secret Service is the keychain of Linux")]
fn a_locked_keychain_is_named() {
    let folder = TestFolder::new();
    assert_success(&in_session(UNLOCKED, "keychain::uses_an_unlocked_keychain", folder.path()));
    assert_success(&in_session(LOCKED, "keychain::finds_a_locked_keychain", folder.path()));
}

#[test]
#[ignore = "a helper process of other tests"]
fn finds_no_collection() {
    let Some(folder) = helper_folder() else { return };
    let error = KeychainStore::probe().unwrap_err();
    assert_eq!(error.to_string(), "the keychain cannot be opened: it has no default collection");
    let error = store(&folder).set(&token(), &Secret::new("x")).unwrap_err();
    assert_eq!(error.to_string(), "the keychain cannot be written: it has no default collection");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "Secret Service is the keychain of Linux")]
fn a_keychain_without_a_collection_is_named() {
    let folder = TestFolder::new();
    assert_success(&in_session(LOCKED, "keychain::finds_no_collection", folder.path()));
}

#[test]
#[ignore = "a helper process of other tests"]
fn finds_no_session() {
    let Some(folder) = helper_folder() else { return };
    let error = KeychainStore::probe().unwrap_err();
    assert!(error.to_string().starts_with("the keychain cannot be opened: "), "{error}");
    let error = store(&folder).get(&token()).unwrap_err();
    assert!(error.to_string().starts_with("the keychain cannot be read: "), "{error}");
    assert!(error.hint().unwrap().contains(r#""store": "file""#), "{error:?}");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "Secret Service is the keychain of Linux")]
fn a_missing_session_is_named() {
    let folder = TestFolder::new();
    let missing = "export DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent";
    assert_success(&in_session(missing, "keychain::finds_no_session", folder.path()));
}

fn options(folder: &Path) -> StoreOptions {
    StoreOptions { kind: None, state: folder.join("state"), key: None, notice: silent() }
}

#[test]
#[ignore = "a helper process of other tests"]
fn migrates_to_files_and_back() {
    let Some(folder) = helper_folder() else { return };
    let options = options(&folder);
    let chosen = open_store(&options).unwrap();
    assert_eq!((chosen.kind, &*chosen.reason), (StoreKind::Keychain, "there is a keychain"));
    let login = SecretKey::credential("abc");
    chosen.store.set(&token(), &Secret::new("first")).unwrap();
    chosen.store.set(&login, &Secret::new("second")).unwrap();
    for to in [StoreKind::File, StoreKind::Keychain, StoreKind::File] {
        let from = open_store(&options).unwrap().store;
        let target = open_kind(to, &options);
        let switch = || remember_kind(&options.state, to);
        let migration = migrate(from.as_ref(), target.as_ref(), switch).unwrap();
        assert_eq!(migration.moved, [token(), login.clone()]);
        assert!(from.keys().unwrap().is_empty());
        let chosen = open_store(&options).unwrap();
        assert_eq!(chosen.kind, to);
        assert_eq!(chosen.store.get(&token()).unwrap(), Some(Secret::new("first")));
        assert_eq!(chosen.store.get(&login).unwrap(), Some(Secret::new("second")));
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "Secret Service is the keychain of Linux")]
fn entries_are_moved_to_files_and_back() {
    let folder = TestFolder::new();
    assert_success(&in_session(UNLOCKED, "keychain::migrates_to_files_and_back", folder.path()));
}

/// A store that was chosen on a desktop is not replaced by another one in a session without a keychain.
#[test]
fn a_choice_is_remembered_with_the_first_value() {
    let folder = TestFolder::new();
    let options = options(folder.path());
    remember_kind(&options.state, StoreKind::Keychain).unwrap();
    assert_eq!(open_store(&options).unwrap().kind, StoreKind::Keychain);
    fs::write(options.state.join("secrets/store"), "cellar").unwrap();
    let error = open_store(&options).unwrap_err().to_string();
    assert!(error.ends_with("secrets/store names no store"), "{error}");
}

#[test]
#[ignore = "a helper process of other tests"]
fn chooses_files() {
    let Some(folder) = helper_folder() else { return };
    let options = options(&folder);
    let chosen = open_store(&options).unwrap();
    assert_eq!(chosen.kind, StoreKind::File);
    assert!(chosen.reason.starts_with("the keychain cannot be opened: "), "{}", chosen.reason);
    assert!(!options.state.exists());
    chosen.store.set(&token(), &Secret::new("value")).unwrap();
    let reason = open_store(&options).unwrap().reason;
    assert_eq!(reason, "it was used before");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "Secret Service is the keychain of Linux")]
fn files_are_chosen_without_a_keychain() {
    let folder = TestFolder::new();
    let missing = "export DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent";
    assert_success(&in_session(missing, "keychain::chooses_files", folder.path()));
}
