//! The Trunkline processes above this one, so that a configuration never starts itself without end
//! (CON-16).

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::identity::{CONFIGURATION, ID_LETTERS};
use super::load::Loaded;
use crate::name::digest;

/// The variable that tells a child process which configurations are in use above it.
pub const CHAIN_VARIABLE: &str = "TRUNKLINE_CHAIN";

/// Exit status of a process that refuses its configuration because of its chain: `EX_CONFIG` of
/// `sysexits.h`. A server that ends with it is not started again by itself, as nothing would change.
pub const MISCONFIGURED_EXIT_STATUS: u8 = 78;

/// The header that tells a gateway through which processes a request has come.
pub const CHAIN_HEADER: &str = "trunkline-chain";

/// Most Trunkline processes that may start one another. A gateway of a person over one of a project
/// over one of a team is three; more than eight is a mistake that makes a new configuration each time.
pub const MAX_NESTED_PROCESSES: usize = 8;

/// Most ids of clients and of configurations that a process keeps, and half of those that it reads:
/// far above what honest nesting has, and a header of less than 4 KiB.
const MAX_IDS: usize = 32;

/// How ids of processes start.
const PROCESS: char = 'p';

/// The processes and configurations above this process, and this process itself.
///
/// A process passes it to its children in [`CHAIN_VARIABLE`] and to gateways in [`CHAIN_HEADER`].
/// Clones are the same process.
#[derive(Clone, Debug)]
pub struct Chain(Arc<Links>);

#[derive(Debug)]
struct Links {
    /// Ids that were passed to this process.
    above: Vec<Box<str>>,
    own: Box<str>,
    /// Configurations that this process runs or has run, the latest last.
    configurations: Mutex<Vec<Box<str>>>,
    /// Processes that are clients of this one, the latest last: requests of this one may be for them.
    clients: Mutex<Vec<Box<str>>>,
}

/// Why a configuration is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainError {
    /// A process above this one uses it.
    Repeated {
        /// The layer that is used above.
        origin: String,
    },
    /// More processes have started one another than [`MAX_NESTED_PROCESSES`].
    TooDeep,
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repeated { origin } => write!(
                f,
                "the configuration {origin} is already used by the Trunkline that started this one: \
                 it would start itself without end"
            ),
            Self::TooDeep => write!(
                f,
                "{MAX_NESTED_PROCESSES} Trunkline processes have started one another, and no more may"
            ),
        }
    }
}

impl std::error::Error for ChainError {}

impl ChainError {
    /// How to correct it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Repeated { .. } => {
                "remove the server that runs `trunkline` from it, or give that server a \
                 configuration of its own with `--config`"
            }
            Self::TooDeep => "look for a server that runs `trunkline` where none is needed",
        }
    }
}

impl Default for Chain {
    /// A process with nothing above it.
    fn default() -> Self {
        Self::below("")
    }
}

impl Chain {
    /// A new process below others: `value` is what [`CHAIN_VARIABLE`] holds. Anything in it that is no
    /// id was not written by Trunkline and is ignored.
    pub fn below(value: &str) -> Self {
        let above = ids(value).map(Into::into).collect();
        let own = format!("{PROCESS}{}", random_id()).into();
        Self(Arc::new(Links {
            above,
            own,
            configurations: Mutex::default(),
            clients: Mutex::default(),
        }))
    }

    /// Notes a configuration that this process is going to run, for the children that it starts from
    /// now on.
    ///
    /// # Errors
    ///
    /// When a process above uses the configuration, or too many processes are above.
    pub fn enter(&self, loaded: &Loaded) -> Result<(), ChainError> {
        let above = &self.0.above;
        for (id, origin) in loaded.ids.iter().zip(loaded.origins.iter().rev()) {
            if above.contains(id) {
                return Err(ChainError::Repeated { origin: origin.to_string() });
            }
        }
        if above.iter().filter(|id| id.starts_with(PROCESS)).count() >= MAX_NESTED_PROCESSES {
            return Err(ChainError::TooDeep);
        }
        note(&self.0.configurations, loaded.ids.iter().map(|id| &**id));
        Ok(())
    }

    /// Whether one of the layers is used by this process or above it.
    pub fn has_any_of(&self, loaded: &Loaded) -> bool {
        let configurations = lock(&self.0.configurations);
        self.0.above.iter().chain(&*configurations).any(|id| loaded.ids.contains(id))
    }

    /// The value of [`CHAIN_VARIABLE`] for children of this process.
    pub(crate) fn variable(&self) -> String {
        let Links { above, own, configurations, .. } = &*self.0;
        joined(above.iter().chain([own]).chain(&*lock(configurations)))
    }

    /// The value of [`CHAIN_HEADER`] for requests of this process: processes only, because paths of
    /// configurations mean nothing on another machine.
    pub(crate) fn header(&self) -> String {
        let Links { above, own, clients, .. } = &*self.0;
        let above = above.iter().filter(|id| id.starts_with(PROCESS));
        joined(above.chain([own]).chain(&*lock(clients)))
    }

    /// Whether a request with this [`CHAIN_HEADER`] comes from this process itself, perhaps by way of
    /// others. Notes who its clients are otherwise.
    pub fn is_loop(&self, header: &str) -> bool {
        let Links { above, own, clients, .. } = &*self.0;
        if ids(header).any(|id| id == &**own) {
            return true;
        }
        let is_new = |id: &&str| !above.iter().any(|above| &**above == *id);
        note(clients, ids(header).filter(|id| id.starts_with(PROCESS)).filter(is_new));
        false
    }
}

fn lock(ids: &Mutex<Vec<Box<str>>>) -> MutexGuard<'_, Vec<Box<str>>> {
    ids.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds ids that are not yet among others; the oldest make room.
fn note<'i>(noted: &Mutex<Vec<Box<str>>>, ids: impl Iterator<Item = &'i str>) {
    let mut noted = lock(noted);
    for id in ids {
        if noted.iter().any(|it| &**it == id) {
            continue;
        }
        if noted.len() >= MAX_IDS {
            noted.remove(0);
        }
        noted.push(id.into());
    }
}

fn joined<'i>(ids: impl Iterator<Item = &'i Box<str>>) -> String {
    ids.map(|id| &**id).collect::<Vec<_>>().join(",")
}

/// The ids in a text, within the bound.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    let is_id = |id: &&str| {
        let mut letters = id.chars();
        let kind = letters.next();
        matches!(kind, Some(PROCESS | CONFIGURATION))
            && letters.clone().count() == ID_LETTERS
            && letters.all(|letter| letter.is_ascii_alphanumeric())
    };
    text.split(',').map(str::trim).filter(is_id).take(2 * MAX_IDS)
}

fn random_id() -> String {
    let random = [(); 2].map(|()| RandomState::new().hash_one(0_u8).to_le_bytes());
    digest(&[&random[0], &random[1]], ID_LETTERS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn entered(chain: Chain, text: &str) -> Result<Chain, ChainError> {
        chain.enter(&parse("x", text)).map(|()| chain)
    }

    fn process(above: &Chain, text: &str) -> Result<Chain, ChainError> {
        entered(Chain::below(&above.variable()), text)
    }

    #[test]
    fn a_configuration_is_refused_below_itself_and_nowhere_else() {
        let top = entered(Chain::default(), "{}").unwrap();
        let child = process(&top, "{ }").unwrap();
        assert!(matches!(process(&top, "{}"), Err(ChainError::Repeated { .. })));
        assert!(matches!(process(&child, "{}"), Err(ChainError::Repeated { .. })));
        assert!(process(&Chain::default(), "{}").is_ok());
        assert!(top.has_any_of(&parse("x", "{}")) && !top.has_any_of(&parse("x", "{  }")));
    }

    #[test]
    fn honest_nesting_has_a_bound() {
        let mut chain = Chain::default();
        for depth in 1..MAX_NESTED_PROCESSES {
            chain = process(&chain, &format!("{{{}}}", " ".repeat(depth))).unwrap();
        }
        let deeper = process(&chain, "{ /* once more */ }");
        assert_eq!(deeper.unwrap_err(), ChainError::TooDeep);
    }

    #[test]
    fn a_process_finds_itself_behind_any_number_of_others() {
        let (first, second, stranger) = (Chain::default(), Chain::default(), Chain::default());
        assert!(first.is_loop(&first.header()));
        assert!(!second.is_loop(&first.header()));
        // The second serves the first, and asks the first itself.
        assert!(first.is_loop(&second.header()));
        assert!(!stranger.is_loop(&second.header()));
        let child = Chain::below(&first.variable());
        assert!(first.is_loop(&child.header()));
    }

    #[test]
    fn whatever_is_in_the_variable_is_survived_and_bounded() {
        for text in ["", ",,", "x", "p", "pé", &"p".repeat(100_000), &"paaaa,".repeat(100_000)] {
            assert!(Chain::below(text).variable().len() < 4096, "{}", text.len());
        }
        let many = format!("p{},", "a".repeat(ID_LETTERS)).repeat(100_000);
        let chain = Chain::below(&many);
        assert!(chain.variable().len() < 4096);
        assert_eq!(chain.enter(&parse("x", "{}")).unwrap_err(), ChainError::TooDeep);
    }
}
