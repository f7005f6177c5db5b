//! Arguments of `trunkline secret`.

use clap::{Args, Subcommand, ValueEnum};
use trunkline_secrets::StoreKind;

/// The commands of `secret`.
#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    /// Stores a value under a name
    ///
    /// Reads the value from the terminal without echo. If standard input is not a
    /// terminal, reads all of it, up to 64 KiB, and removes one line ending at the end.
    #[command(after_help = "Examples:
  trunkline secret set GITHUB_TOKEN
  trunkline secret set GITHUB_TOKEN < token.txt")]
    Set {
        /// Name, in letters, digits, `_`, `-` and `.`
        name: String,

        #[command(flatten)]
        store: StoreSelection,
    },

    /// Lists the names of secrets, and the number of stored logins
    #[command(after_help = "Examples:
  trunkline secret list
  trunkline secret list --format json")]
    List {
        #[command(flatten)]
        store: StoreSelection,
    },

    /// Removes a secret
    #[command(after_help = "Example:
  trunkline secret remove GITHUB_TOKEN")]
    Remove {
        /// Name of the secret
        name: String,

        #[command(flatten)]
        store: StoreSelection,
    },

    /// Moves all secrets and logins from the other store to this one
    ///
    /// Everything is copied and read back before anything is removed. An interrupted
    /// migration loses nothing and can be repeated.
    #[command(after_help = "Examples:
  trunkline secret migrate --to file
  trunkline secret migrate --to keychain")]
    Migrate {
        /// Store to move to
        #[arg(long, value_enum)]
        to: StoreArgument,
    },

    /// Prints which store is used, and why
    #[command(after_help = "Examples:
  trunkline secret store
  trunkline secret store --format json")]
    Store,
}

/// The store that a command uses.
#[derive(Debug, Args)]
pub(crate) struct StoreSelection {
    /// Uses this store instead of the one in use
    #[arg(long, value_enum)]
    pub(crate) store: Option<StoreArgument>,
}

/// A store on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreArgument {
    /// The keychain of the operating system
    Keychain,
    /// Encrypted files
    File,
}

impl From<StoreArgument> for StoreKind {
    fn from(store: StoreArgument) -> Self {
        match store {
            StoreArgument::Keychain => Self::Keychain,
            StoreArgument::File => Self::File,
        }
    }
}
