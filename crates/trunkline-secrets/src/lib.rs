//! Stores for secrets: the keychain of the operating system, and files encrypted with age.
//!
//! [`open_store`] opens the store that the user chose, or the one that is there. [`KeychainStore`] and
//! [`FileStore`] implement [`SecretStore`](trunkline::secrets::SecretStore); [`migrate`] moves all
//! entries from one to the other.

mod private;
mod sealed;
mod key;
mod file_store;
mod keychain;
mod choice;
mod migration;

pub use choice::{ChosenStore, StoreKind, StoreOptions, open_kind, open_store, remember_kind};
pub use file_store::{FileStore, MAX_VALUE_BYTES};
pub use key::KeySource;
pub use keychain::{KEYCHAIN_TIMEOUT, KeychainStore, WaitNotice};
pub use migration::{Migration, migrate};
