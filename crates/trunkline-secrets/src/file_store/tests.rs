//! Tests of the store of encrypted files.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::*;
use crate::private::tests::TestFolder;

const CANARY: &str = "canary-c0ffee-value";

fn store(folder: &TestFolder) -> FileStore {
    let key = KeySource::GeneratedFile(folder.path().join("key.txt"));
    FileStore::new(folder.path().join("secrets"), key)
}

fn token() -> SecretKey {
    SecretKey::user("GITHUB_TOKEN")
}

/// The file of the only entry.
fn only_entry(store: &FileStore) -> PathBuf {
    let directory = store.directory().unwrap().unwrap();
    let names = entry_names(&directory).unwrap();
    assert_eq!(names.len(), 1);
    directory.join(&names[0])
}

fn value(store: &FileStore, key: &SecretKey) -> Option<String> {
    store.get(key).unwrap().map(|value| value.expose().to_owned())
}

#[test]
fn values_are_set_listed_and_removed() {
    let folder = TestFolder::new();
    let store = store(&folder);
    let login = SecretKey::credential("abc");
    store.set(&token(), &Secret::new("first")).unwrap();
    store.set(&token(), &Secret::new("two\nlines\n")).unwrap();
    store.set(&login, &Secret::new("")).unwrap();
    let again = FileStore::new(folder.path().join("secrets"), store.key.clone());
    assert_eq!(value(&again, &token()).as_deref(), Some("two\nlines\n"));
    assert_eq!(value(&again, &login).as_deref(), Some(""));
    assert_eq!(again.keys().unwrap(), [token(), login.clone()]);
    assert!(again.remove(&login).unwrap());
    assert!(!again.remove(&login).unwrap());
    assert_eq!(store.keys().unwrap(), [token()]);
}

#[test]
fn a_store_that_does_not_exist_is_empty_and_stays_so() {
    let folder = TestFolder::new();
    let store = store(&folder);
    assert_eq!(store.get(&token()).unwrap(), None);
    assert!(store.keys().unwrap().is_empty());
    assert!(!store.remove(&token()).unwrap());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn neither_names_nor_values_are_visible() {
    let folder = TestFolder::new();
    let store = store(&folder);
    store.set(&token(), &Secret::new(CANARY)).unwrap();
    drop(store.lock(&token()).unwrap());
    for entry in fs::read_dir(folder.path().join("secrets")).unwrap() {
        let entry = entry.unwrap();
        let content = String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned();
        let name = entry.file_name().into_string().unwrap();
        assert!(!content.contains(CANARY) && !content.contains("GITHUB"), "{name}");
        assert!(!name.contains("GITHUB"), "{name}");
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert!(!format!("{store:?}").contains(CANARY));
}

#[test]
fn a_passphrase_is_checked_before_anything_is_written() {
    let folder = TestFolder::new();
    let path = folder.path().join("secrets");
    let with = |passphrase: &str| {
        let key = KeySource::Passphrase(Secret::new(passphrase), "a test".to_owned());
        FileStore::new(&path, key)
    };
    let store = with("correct horse");
    store.set(&token(), &Secret::new("value")).unwrap();
    let before = fs::read(only_entry(&store)).unwrap();
    let wrong = with("wrong");
    for error in [
        wrong.get(&token()).unwrap_err(),
        wrong.set(&token(), &Secret::new("other")).unwrap_err(),
        wrong.remove(&token()).unwrap_err(),
        wrong.keys().unwrap_err(),
        wrong.lock(&token()).unwrap_err(),
    ] {
        assert!(error.to_string().starts_with("the passphrase in a test is wrong: "), "{error}");
        assert!(error.hint().unwrap().contains("TRUNKLINE_SECRETS_PASSPHRASE"));
    }
    assert_eq!(fs::read(only_entry(&store)).unwrap(), before);
    assert_eq!(value(&with("correct horse"), &token()).as_deref(), Some("value"));
}

/// Changes a file in several ways, and expects an error each time.
fn spoil(path: &Path, mut expect_error: impl FnMut(&str)) {
    let good = fs::read(path).unwrap();
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    let half = good[..good.len() / 2].to_vec();
    let last = good[..good.len() - 1].to_vec();
    let huge = [&good[..], &vec![0; MAX_ENTRY_BYTES]].concat();
    let longer = [&good[..], b"x"].concat();
    for (what, bytes) in [
        ("empty", Vec::new()),
        ("half", half),
        ("without its last byte", last),
        ("with a longer end", longer),
        ("huge", huge),
        ("text", b"hello".to_vec()),
        ("with another first byte", flipped(0)),
        ("with another last byte", flipped(good.len() - 1)),
        ("with another middle", flipped(good.len() / 2)),
    ] {
        fs::write(path, &bytes).unwrap();
        expect_error(what);
        assert_eq!(fs::read(path).unwrap(), bytes, "{what} was overwritten");
    }
    fs::write(path, good).unwrap();
}

#[test]
fn a_damaged_entry_is_an_error_and_is_kept() {
    let folder = TestFolder::new();
    let store = store(&folder);
    store.set(&token(), &Secret::new("value")).unwrap();
    spoil(&only_entry(&store), |what| {
        let error = store.get(&token()).expect_err(what).to_string();
        assert!(error.contains(" is damaged: "), "{what}: {error}");
        assert!(store.keys().is_err(), "{what}");
    });
    assert_eq!(value(&store, &token()).as_deref(), Some("value"));
    fs::write(only_entry(&store), "").unwrap();
    store.set(&token(), &Secret::new("new")).unwrap();
    assert_eq!(value(&store, &token()).as_deref(), Some("new"));
}

#[test]
fn a_damaged_identity_is_an_error_and_is_kept() {
    let folder = TestFolder::new();
    let store = store(&folder);
    store.set(&token(), &Secret::new("value")).unwrap();
    spoil(&folder.path().join("secrets/identity.age"), |what| {
        assert!(store.get(&token()).is_err(), "{what}");
        assert!(store.set(&token(), &Secret::new("other")).is_err(), "{what}");
    });
    fs::remove_file(folder.path().join("secrets/identity.age")).unwrap();
    let error = store.set(&token(), &Secret::new("other")).unwrap_err().to_string();
    assert!(error.ends_with("identity.age is missing"), "{error}");
}

#[test]
fn an_entry_under_the_name_of_another_is_refused() {
    let folder = TestFolder::new();
    let store = store(&folder);
    let other = SecretKey::user("OTHER");
    store.set(&token(), &Secret::new("value")).unwrap();
    let first = only_entry(&store);
    let unlocked = store.unlock(&store.directory().unwrap().unwrap()).unwrap().unwrap();
    fs::rename(first, folder.path().join("secrets").join(unlocked.name(&other) + ENTRY)).unwrap();
    assert!(store.get(&other).is_err());
    assert!(store.keys().is_err());
}

#[test]
fn a_missing_key_file_is_not_replaced() {
    let folder = TestFolder::new();
    let store = store(&folder);
    store.set(&token(), &Secret::new("value")).unwrap();
    fs::remove_file(folder.path().join("key.txt")).unwrap();
    let again = FileStore::new(folder.path().join("secrets"), store.key.clone());
    let error = again.set(&token(), &Secret::new("other")).unwrap_err().to_string();
    assert!(error.starts_with("the key file ") && error.ends_with(" does not exist"), "{error}");
    assert!(!folder.path().join("key.txt").exists());
}

#[test]
fn a_store_that_was_created_anew_is_unlocked_again() {
    let folder = TestFolder::new();
    let store = store(&folder);
    store.set(&token(), &Secret::new("value")).unwrap();
    fs::remove_dir_all(folder.path().join("secrets")).unwrap();
    let other = FileStore::new(folder.path().join("secrets"), store.key.clone());
    other.set(&token(), &Secret::new("new")).unwrap();
    assert_eq!(value(&store, &token()).as_deref(), Some("new"));
}

#[test]
fn keys_and_values_have_limits() {
    let folder = TestFolder::new();
    let store = store(&folder);
    let value = |length| Secret::new("x".repeat(length));
    store.set(&token(), &value(MAX_VALUE_BYTES)).unwrap();
    assert_eq!(store.get(&token()).unwrap(), Some(value(MAX_VALUE_BYTES)));
    let error = store.set(&token(), &value(MAX_VALUE_BYTES + 1)).unwrap_err().to_string();
    assert_eq!(error, "`secret:GITHUB_TOKEN` has more than 256 KiB");
    for name in ["a\nb".to_owned(), "x".repeat(MAX_KEY_ID_BYTES)] {
        assert!(store.set(&SecretKey::user(name), &value(1)).is_err());
    }
}
