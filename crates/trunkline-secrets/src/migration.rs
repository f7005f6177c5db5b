//! Migration of all entries from one store to another.

use trunkline::config::Secret;
use trunkline::secrets::{SecretKey, SecretStore, StoreError};

/// Entries that a migration moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Migration {
    /// Entries that are in the new store, and no longer in the old one.
    pub moved: Vec<SecretKey>,
    /// Entries that changed in the old store after they were copied. They are in both stores.
    pub changed: Vec<SecretKey>,
}

/// Moves all entries from one store to another.
///
/// Every entry is copied and read back before `switch` is called, which makes the new store the one in use.
/// Only then are entries removed from the old store. A migration that is interrupted loses nothing and can
/// be repeated. A value that the user entered and that differs in the new store is not overwritten: the
/// migration fails before it changes anything. Of two credentials of one login, that of the old store is
/// kept, because it was in use.
pub fn migrate(
    from: &dyn SecretStore,
    to: &dyn SecretStore,
    switch: impl FnOnce() -> Result<(), StoreError>,
) -> Result<Migration, StoreError> {
    let keys = from.keys()?;
    refuse_conflicts(&keys, from, to)?;
    let mut copies = Vec::new();
    for key in keys {
        copies.extend(copy(&key, from, to)?.map(|value| (key, value)));
    }
    switch()?;
    let mut migration = Migration::default();
    for (key, value) in copies {
        let list = if remove_copied(&key, &value, from)? {
            &mut migration.moved
        } else {
            &mut migration.changed
        };
        list.push(key);
    }
    Ok(migration)
}

fn refuse_conflicts(
    keys: &[SecretKey],
    from: &dyn SecretStore,
    to: &dyn SecretStore,
) -> Result<(), StoreError> {
    let mut names = Vec::new();
    for key in keys {
        let SecretKey::User(name) = key else { continue };
        let (old, new) = (from.get(key)?, to.get(key)?);
        if new.is_some() && old != new {
            names.push(format!("`{name}`"));
        }
    }
    if names.is_empty() {
        return Ok(());
    }
    let (names, store) = (names.join(", "), to.description());
    let message = format!("{store} has other values for {names}; nothing was moved");
    Err(StoreError::new(message).with_hint("remove them from one of the stores first"))
}

/// Copies an entry and reads it back. Returns its value, if it still has one.
fn copy(
    key: &SecretKey,
    from: &dyn SecretStore,
    to: &dyn SecretStore,
) -> Result<Option<Secret>, StoreError> {
    let _old = from.lock(key)?;
    let _new = to.lock(key)?;
    let Some(value) = from.get(key)? else { return Ok(None) };
    if to.get(key)?.as_ref() != Some(&value) {
        to.set(key, &value)?;
    }
    if to.get(key)?.as_ref() == Some(&value) {
        return Ok(Some(value));
    }
    let (id, store) = (key.id(), to.description());
    Err(StoreError::new(format!("{store} returned another value for `{id}`; nothing was removed")))
}

/// Removes an entry that was copied, unless it has changed since. Returns whether it is gone.
fn remove_copied(
    key: &SecretKey,
    value: &Secret,
    from: &dyn SecretStore,
) -> Result<bool, StoreError> {
    let _lock = from.lock(key)?;
    match from.get(key)? {
        Some(current) if current != *value => Ok(false),
        Some(_) => from.remove(key).map(|_| true),
        None => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use trunkline::secrets::{MemoryStore, StoreGuard};

    use super::*;

    fn filled(entries: &[(SecretKey, &str)]) -> MemoryStore {
        let store = MemoryStore::default();
        for (key, value) in entries {
            store.set(key, &Secret::new(*value)).unwrap();
        }
        store
    }

    fn value(store: &dyn SecretStore, key: &SecretKey) -> Option<String> {
        store.get(key).unwrap().map(|value| value.expose().to_owned())
    }

    #[test]
    fn entries_are_moved_once_all_are_copied() {
        let (user, login) = (SecretKey::user("A"), SecretKey::credential("b"));
        let from = filled(&[(user.clone(), "1"), (login.clone(), "2")]);
        let to = filled(&[(login.clone(), "stale")]);
        let switched = Cell::new(false);
        let migration = migrate(&from, &to, || {
            assert_eq!(from.keys().unwrap().len(), 2);
            assert_eq!(to.keys().unwrap().len(), 2);
            switched.set(true);
            Ok(())
        });
        assert!(switched.get());
        assert_eq!(migration.unwrap().moved, [user.clone(), login.clone()]);
        assert!(from.keys().unwrap().is_empty());
        assert_eq!(value(&to, &user).as_deref(), Some("1"));
        assert_eq!(value(&to, &login).as_deref(), Some("2"));
    }

    #[test]
    fn another_value_of_the_user_stops_before_anything_is_moved() {
        let (first, second) = (SecretKey::user("A"), SecretKey::user("B"));
        let from = filled(&[(first.clone(), "1"), (second.clone(), "2")]);
        let to = filled(&[(second.clone(), "other")]);
        let error = migrate(&from, &to, || Ok(())).unwrap_err().to_string();
        assert_eq!(error, "the memory of this process has other values for `B`; nothing was moved");
        assert_eq!(value(&to, &first), None);
        assert_eq!(from.keys().unwrap().len(), 2);
    }

    #[test]
    fn a_migration_that_was_interrupted_can_be_repeated() {
        let key = SecretKey::user("A");
        let from = filled(&[(key.clone(), "1")]);
        let to = MemoryStore::default();
        let failure = || Err(StoreError::new("interrupted"));
        assert_eq!(migrate(&from, &to, failure).unwrap_err().to_string(), "interrupted");
        assert_eq!(value(&from, &key), value(&to, &key));
        assert_eq!(migrate(&from, &to, || Ok(())).unwrap().moved, [key]);
    }

    #[test]
    fn an_entry_that_changes_meanwhile_is_kept() {
        let key = SecretKey::credential("a");
        let from = filled(&[(key.clone(), "1")]);
        let to = MemoryStore::default();
        let refresh = || from.set(&key, &Secret::new("2"));
        let migration = migrate(&from, &to, refresh).unwrap();
        assert_eq!((migration.moved.len(), migration.changed.len()), (0, 1));
        assert_eq!(value(&from, &key).as_deref(), Some("2"));
    }

    /// Loses every value.
    struct LossyStore(MemoryStore);

    impl SecretStore for LossyStore {
        fn description(&self) -> String {
            "a store that loses values".to_owned()
        }

        fn get(&self, key: &SecretKey) -> Result<Option<Secret>, StoreError> {
            self.0.get(key)
        }

        fn set(&self, _: &SecretKey, _: &Secret) -> Result<(), StoreError> {
            Ok(())
        }

        fn remove(&self, key: &SecretKey) -> Result<bool, StoreError> {
            self.0.remove(key)
        }

        fn keys(&self) -> Result<Vec<SecretKey>, StoreError> {
            self.0.keys()
        }

        fn lock(&self, key: &SecretKey) -> Result<StoreGuard, StoreError> {
            self.0.lock(key)
        }
    }

    #[test]
    fn a_copy_that_cannot_be_read_back_removes_nothing() {
        let key = SecretKey::user("A");
        let from = filled(&[(key.clone(), "1")]);
        let error = migrate(&from, &LossyStore(MemoryStore::default()), || Ok(())).unwrap_err();
        assert!(error.to_string().ends_with("nothing was removed"), "{error}");
        assert_eq!(value(&from, &key).as_deref(), Some("1"));
    }
}
