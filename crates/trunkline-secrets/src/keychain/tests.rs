//! Tests of the keychain with stores that misbehave. `tests/it/keychain.rs` uses a real one.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use keyring_core::mock;

use super::*;

fn silent() -> WaitNotice {
    Arc::new(|_| ())
}

fn token() -> SecretKey {
    SecretKey::user("TOKEN")
}

#[test]
fn a_keychain_that_cannot_be_reached_says_what_to_do() {
    let connect = || Err(Error::PlatformFailure("no bus".into()));
    let store = KeychainStore::with_connect("locks".into(), silent(), Box::new(connect));
    let error = store.get(&token()).unwrap_err();
    assert_eq!(error.to_string(), "the keychain cannot be read: no bus");
    assert!(error.hint().unwrap().contains(r#""secrets": { "store": "file" }"#), "{error:?}");
    assert!(store.set(&token(), &Secret::new("x")).is_err());
    assert!(store.keys().is_err());
}

#[test]
fn a_broken_connection_is_opened_again() {
    let connections = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&connections);
    let connect = move || {
        count.fetch_add(1, Ordering::Relaxed);
        let store: Arc<CredentialStore> = mock::Store::new()?;
        Ok(store)
    };
    let worker = Worker::start(Box::new(connect), silent());
    let run = |result: Result<(), Error>| worker.run(KEYCHAIN_TIMEOUT, "read", move |_| result);
    run(Ok(())).unwrap();
    run(Err(Error::NoEntry)).unwrap_err();
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    run(Err(Error::PlatformFailure("gone".into()))).unwrap_err();
    run(Ok(())).unwrap();
    assert_eq!(connections.load(Ordering::Relaxed), 2);
}

#[test]
fn an_operation_that_takes_long_is_announced_and_given_up() {
    let said = Arc::new(Mutex::new(Vec::new()));
    let notices = Arc::clone(&said);
    let notice: WaitNotice = Arc::new(move |text| notices.lock().unwrap().push(text.to_owned()));
    let connect = || {
        let store: Arc<CredentialStore> = mock::Store::new()?;
        Ok(store)
    };
    let worker = Worker::start(Box::new(connect), notice);
    let timeout = Duration::from_millis(20);
    let hang = |_: &CredentialStore| {
        thread::sleep(Duration::from_secs(600));
        Ok(())
    };
    let error = worker.run(timeout, "read", hang).unwrap_err();
    assert_eq!(error.to_string(), "the keychain did not answer within 0 s");
    assert!(error.hint().unwrap().starts_with("unlock it, if it asks for its password, or use"));
    assert_eq!(said.lock().unwrap().len(), 1);
    let error = worker.run(timeout, "read", |_| Ok(())).unwrap_err();
    assert_eq!(error.to_string(), "the keychain did not answer within 0 s");
}

#[test]
fn errors_do_not_quote_values() {
    let value = b"canary".to_vec();
    for error in
        [Error::BadEncoding(value.clone()), Error::BadDataFormat(value.clone(), "canary".into())]
    {
        let error = failed("read", error);
        assert!(!format!("{error} {error:?}").contains("canary"));
    }
}

#[test]
fn locks_need_no_keychain() {
    let connect = || Err(Error::PlatformFailure("no bus".into()));
    let folder = std::env::temp_dir().join(format!("trunkline-locks-{}", std::process::id()));
    let store = KeychainStore::with_connect(folder.clone(), silent(), Box::new(connect));
    drop(store.lock(&token()).unwrap());
    drop(store.lock(&token()).unwrap());
    assert!(Path::new(&folder).is_dir());
    std::fs::remove_dir_all(folder).unwrap();
}
