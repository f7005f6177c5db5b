//! Several processes that use one store, and processes that are killed.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, thread};

use trunkline::config::Secret;
use trunkline::secrets::{SecretKey, SecretStore as _};
use trunkline_secrets::KeychainStore;

use crate::support::{
    TestFolder, file_store, helper, helper_command, helper_folder, long_value, silent, token,
};

/// Increments of each process in a race.
const INCREMENTS: u32 = 50;

/// Rounds in which a writer is killed.
const KILLS: u32 = 40;

#[test]
#[ignore = "a helper process of other tests"]
fn increments() {
    let Some(folder) = helper_folder() else { return };
    let store = file_store(&folder);
    for _ in 0..INCREMENTS {
        let _lock = store.lock(&token()).unwrap();
        let value: u32 = store.get(&token()).unwrap().map_or(0, |it| it.expose().parse().unwrap());
        store.set(&token(), &Secret::new((value + 1).to_string())).unwrap();
    }
}

/// FIELD: two hosts refreshed one token at once, and one of the new ones was lost.
#[test]
fn no_change_is_lost_between_processes_that_lock() {
    let folder = TestFolder::new();
    let children: Vec<_> = (0..4).map(|_| helper("processes::increments", folder.path())).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let value = file_store(folder.path()).get(&token()).unwrap().unwrap();
    assert_eq!(value.expose(), (4 * INCREMENTS).to_string());
}

#[test]
fn modes_do_not_depend_on_the_umask() {
    for umask in ["0000", "0777"] {
        let folder = TestFolder::new();
        let helper = helper_command("true", "processes::increments", folder.path());
        let mut command = Command::new("sh");
        command.args(["-c", &format!(r#"umask {umask}; exec "$0" "$@""#)]);
        command.arg(env::current_exe().unwrap()).args(helper.get_args());
        command.envs(helper.get_envs().filter_map(|(name, value)| Some((name, value?))));
        assert!(command.stdout(Stdio::null()).status().unwrap().success(), "{umask}");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let directory = folder.path().join("secrets");
        assert_eq!((mode(&directory), mode(&folder.path().join("key.txt"))), (0o700, 0o600));
        for entry in fs::read_dir(directory).unwrap() {
            assert_eq!(mode(&entry.unwrap().path()), 0o600, "{umask}");
        }
    }
}

#[test]
#[ignore = "a helper process of other tests"]
fn writes_for_ever() {
    let Some(folder) = helper_folder() else { return };
    let store = file_store(&folder);
    println!("\nready");
    loop {
        store.set(&token(), &long_value('a')).unwrap();
        store.set(&token(), &long_value('b')).unwrap();
    }
}

#[test]
fn a_killed_writer_leaves_the_old_or_the_new_value() {
    let folder = TestFolder::new();
    let store = file_store(folder.path());
    store.set(&token(), &long_value('a')).unwrap();
    for round in 0..KILLS {
        let mut child = helper("processes::writes_for_ever", folder.path());
        wait_for_line(&mut child, "ready");
        thread::sleep(Duration::from_micros(u64::from(round) * 731 % 9_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let value = store.get(&token()).unwrap().unwrap();
        assert!([long_value('a'), long_value('b')].contains(&value), "round {round}");
        assert_eq!(store.keys().unwrap(), [token()]);
    }
    store.set(&SecretKey::user("OTHER"), &Secret::new("x")).unwrap();
    let names = fs::read_dir(folder.path().join("secrets")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(names.into_iter().all(|name| !name.ends_with(".tmp")));
}

#[test]
#[ignore = "a helper process of other tests"]
fn holds_locks() {
    let Some(folder) = helper_folder() else { return };
    let _file = file_store(&folder).lock(&token()).unwrap();
    let _keychain = KeychainStore::new(folder.join("locks"), silent()).lock(&token()).unwrap();
    println!("\nready");
    loop {
        thread::park();
    }
}

#[test]
fn the_locks_of_a_killed_process_are_released() {
    let folder = TestFolder::new();
    let mut child = helper("processes::holds_locks", folder.path());
    wait_for_line(&mut child, "ready");
    let waiting = thread::spawn({
        let (file, locks) = (file_store(folder.path()), folder.path().join("locks"));
        move || {
            drop(file.lock(&token()).unwrap());
            drop(KeychainStore::new(locks, silent()).lock(&token()).unwrap());
        }
    });
    drop(file_store(folder.path()).lock(&SecretKey::user("OTHER")).unwrap());
    thread::sleep(Duration::from_millis(50));
    assert!(!waiting.is_finished());
    child.kill().unwrap();
    child.wait().unwrap();
    waiting.join().unwrap();
}

#[test]
fn a_store_whose_lock_file_is_garbage_still_works() {
    let folder = TestFolder::new();
    let store = file_store(folder.path());
    store.set(&token(), &Secret::new("value")).unwrap();
    let path = folder.path().join("secrets/store.lock");
    OpenOptions::new().write(true).open(path).unwrap().write_all(b"garbage").unwrap();
    store.set(&token(), &Secret::new("other")).unwrap();
    assert_eq!(store.get(&token()).unwrap(), Some(Secret::new("other")));
}

fn wait_for_line(child: &mut Child, expected: &str) {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let found = lines.map_while(Result::ok).any(|line| line == expected);
    assert!(found, "the helper ended without `{expected}`");
}
