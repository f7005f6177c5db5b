//! The Trunkline processes above this one, so that a configuration never starts itself without end
//! (CON-16).

mod gateways;

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::str::FromStr;
use std::sync::Arc;

use super::identity::{CONFIGURATION, ConfigIdentity, ID_LETTERS};
use super::model::Config;
use crate::name::digest;
pub use gateways::{LoopError, MAX_REQUEST_HOPS};

/// The variable that tells a child process which configurations are in use above it.
pub const CHAIN_VARIABLE: &str = "TRUNKLINE_CHAIN";

/// Exit status of a process that refuses its configuration because of its chain: `EX_CONFIG` of
/// `sysexits.h`. A server that ends with it is not started again by itself, as nothing would change.
pub const MISCONFIGURED_EXIT_STATUS: u8 = 78;

/// The header with ids of processes. In a request: those it has come through. In a response to such a
/// request: the gateway itself, and the gateways that its servers lead to.
pub const CHAIN_HEADER: &str = "trunkline-chain";

/// Most Trunkline processes that may start one another. A gateway of a person over one of a project
/// over one of a team is three; more than eight is a mistake that makes a new configuration each time.
pub const MAX_NESTED_PROCESSES: usize = 8;

/// Most ids that are read of one chain: those of [`MAX_NESTED_PROCESSES`] processes with three layers of
/// configuration each, and a variable of less than 8 KiB.
const MAX_IDS: usize = 64;

/// Most ids of configurations that belong to one process.
const MAX_CONFIGURATION_IDS: usize = 32;

/// How ids of processes start.
const PROCESS: char = 'p';

/// The processes and configurations above this process, and this process itself.
///
/// A process passes it to its children in [`CHAIN_VARIABLE`], with the configuration of each child, and
/// to gateways in [`CHAIN_HEADER`]. Clones are the same process.
#[derive(Clone, Debug)]
pub struct Chain(Arc<ChainLinks>);

#[derive(Debug)]
struct ChainLinks {
    /// The processes above, the nearest last.
    above: Vec<ChainLink>,
    own: ProcessMark,
}

/// A Trunkline process, and the configurations with which it started the next process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChainLink {
    pub(crate) process: ProcessMark,
    configurations: Vec<Box<str>>,
}

/// A Trunkline process: a random id, and where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessMark {
    id: Box<str>,
    pub(crate) local: Option<LocalProcess>,
}

/// A process of this machine. Tells whether the process still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocalProcess {
    /// The number of the process.
    pub(crate) id: i32,
    /// Clock ticks from boot to its start; 0 where that is not known.
    pub(crate) started: u64,
    /// The namespace in which the number is valid; 0 where there are none.
    pub(crate) namespace: u64,
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
                 configuration of its own with `--config`; if no server started this process, \
                 `unset TRUNKLINE_CHAIN`"
            }
            Self::TooDeep => {
                "look for a server that runs `trunkline` where none is needed; if no server started \
                 this process, `unset TRUNKLINE_CHAIN`"
            }
        }
    }
}

impl Default for Chain {
    /// A process with nothing above it.
    fn default() -> Self {
        Self::new(Vec::new(), None)
    }
}

impl Chain {
    /// A process below others: `above` are the processes above it, the nearest last.
    pub(crate) fn new(above: Vec<ChainLink>, local: Option<LocalProcess>) -> Self {
        let id = format!("{PROCESS}{}", random_id()).into();
        Self(Arc::new(ChainLinks { above, own: ProcessMark { id, local } }))
    }

    /// Says whether this process may run a configuration. Every server is started only if it may; a
    /// program asks before it starts anything, to end with this error.
    ///
    /// # Errors
    ///
    /// When a process above uses the configuration, or too many processes are above.
    pub fn check(&self, config: &Config) -> Result<(), ChainError> {
        self.check_identity(&config.identity)
    }

    /// The same, by the identity of a configuration.
    pub(crate) fn check_identity(&self, identity: &ConfigIdentity) -> Result<(), ChainError> {
        let above = &self.0.above;
        let is_above = |id: &str| above.iter().any(|link| link.has(id));
        if let Some(layer) = identity.layers().iter().find(|layer| layer.ids().any(is_above)) {
            return Err(ChainError::Repeated { origin: layer.origin.to_string() });
        }
        match depth(above) >= MAX_NESTED_PROCESSES {
            true => Err(ChainError::TooDeep),
            false => Ok(()),
        }
    }

    /// The value of [`CHAIN_VARIABLE`] for a child that is started for a configuration.
    pub(crate) fn variable(&self, identity: &ConfigIdentity) -> String {
        let ChainLinks { above, own } = &*self.0;
        let configurations = identity.ids().take(MAX_CONFIGURATION_IDS).map(Into::into).collect();
        let link = ChainLink { process: own.clone(), configurations };
        let links: Vec<_> = above.iter().chain([&link]).map(ChainLink::to_string).collect();
        links.join(",")
    }
}

/// Distinct processes among links. A process may be there more than once, with several registries.
fn depth(links: &[ChainLink]) -> usize {
    let is_same =
        |one: &ChainLink, other: &ChainLink| match (one.process.local, other.process.local) {
            (Some(one), Some(other)) => one == other,
            _ => one.process.id == other.process.id,
        };
    let is_first = |(index, link): &(usize, &ChainLink)| {
        !links.iter().take(*index).any(|it| is_same(it, link))
    };
    links.iter().enumerate().filter(is_first).count()
}

impl ChainLink {
    fn has(&self, configuration: &str) -> bool {
        self.configurations.iter().any(|id| &**id == configuration)
    }

    /// Takes the configurations of another link of the same process.
    pub(crate) fn join(&mut self, other: Self) {
        for id in other.configurations {
            if self.configurations.len() < MAX_CONFIGURATION_IDS && !self.has(&id) {
                self.configurations.push(id);
            }
        }
    }
}

/// The links of a text that [`Chain::variable`] wrote, within the bound. Anything in it that is no id was
/// not written by Trunkline and is ignored.
pub(crate) fn links(text: &str) -> Vec<ChainLink> {
    let mut links: Vec<ChainLink> = Vec::new();
    for word in text.split(',').map(str::trim).take(MAX_IDS) {
        if let Ok(process) = word.parse() {
            links.push(ChainLink { process, configurations: Vec::new() });
        } else if is_id(word, CONFIGURATION)
            && let Some(link) = links.last_mut()
            && link.configurations.len() < MAX_CONFIGURATION_IDS
        {
            link.configurations.push(word.into());
        }
    }
    links
}

impl fmt::Display for ChainLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.process.id)?;
        if let Some(LocalProcess { id, started, namespace }) = self.process.local {
            write!(f, ".{id}.{started}.{namespace}")?;
        }
        self.configurations.iter().try_for_each(|id| write!(f, ",{id}"))
    }
}

impl FromStr for ProcessMark {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        let (id, local) = word.split_once('.').map_or((word, None), |(id, rest)| (id, Some(rest)));
        if !is_id(id, PROCESS) {
            return Err(());
        }
        let local = local.map(str::parse).transpose()?;
        Ok(Self { id: id.into(), local })
    }
}

impl FromStr for LocalProcess {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split('.');
        let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok()).ok_or(());
        let id = i32::try_from(number()?).map_err(drop)?;
        Ok(Self { id, started: number()?, namespace: number()? })
    }
}

fn is_id(word: &str, kind: char) -> bool {
    word.strip_prefix(kind).is_some_and(|letters| {
        letters.len() == ID_LETTERS && letters.chars().all(|letter| letter.is_ascii_alphanumeric())
    })
}

fn random_id() -> String {
    let random = [(); 2].map(|()| RandomState::new().hash_one(0_u8).to_le_bytes());
    digest(&[&random[0], &random[1]], ID_LETTERS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn admitted(chain: Chain, text: &str) -> Result<Chain, ChainError> {
        chain.check(&parse("x", text).config).map(|()| chain)
    }

    /// A process that another one starts, with the configurations of both.
    fn process(above: &Chain, outer: &str, own: &str) -> Result<Chain, ChainError> {
        let variable = above.variable(&parse("x", outer).config.identity);
        admitted(Chain::new(links(&variable), None), own)
    }

    #[test]
    fn a_configuration_is_refused_below_itself_and_nowhere_else() {
        let top = Chain::default();
        assert!(matches!(process(&top, "{}", "{}"), Err(ChainError::Repeated { .. })));
        let child = process(&top, "{}", "{ }").unwrap();
        assert!(matches!(process(&child, "{ }", "{}"), Err(ChainError::Repeated { .. })));
        assert!(admitted(Chain::default(), "{}").is_ok());
        // A child that was started for another configuration of the same process may have it.
        assert!(process(&top, "{ }", "{}").is_ok());
    }

    #[test]
    fn honest_nesting_has_a_bound() {
        let text = |depth: usize| format!("{{{}}}", " ".repeat(depth));
        let mut chain = Chain::default();
        for depth in 1..MAX_NESTED_PROCESSES {
            chain = process(&chain, &text(depth - 1), &text(depth)).unwrap();
        }
        let deeper = process(&chain, &text(MAX_NESTED_PROCESSES - 1), "{ /* once more */ }");
        assert_eq!(deeper.unwrap_err(), ChainError::TooDeep);
    }

    #[test]
    fn a_process_with_several_registries_is_one_level() {
        let local = LocalProcess { id: 1, started: 2, namespace: 3 };
        let marks = (0..=MAX_NESTED_PROCESSES).map(|_| Chain::new(Vec::new(), Some(local)));
        let text: Vec<_> = marks.map(|chain| chain.variable(&ConfigIdentity::default())).collect();
        let above = links(&text.join(","));
        assert_eq!((above.len(), depth(&above)), (MAX_NESTED_PROCESSES + 1, 1));
        assert_eq!(above[0].process.local, Some(local));
    }

    #[test]
    fn whatever_is_in_the_variable_is_survived_and_bounded() {
        let variable =
            |text: &str| Chain::new(links(text), None).variable(&parse("x", "{}").config.identity);
        let mark = "a".repeat(ID_LETTERS);
        let cut = ["p.", ".1", ".1.2", ".1.2.x", ".99999999999.1.1", ".-1.2.3"];
        let odd = cut.map(|rest| format!("p{mark}{rest}"));
        for text in ["", ",,", "x", "p", "pé", &"p".repeat(100_000), &"paaaa,".repeat(100_000)] {
            assert!(variable(text).len() < 8192, "{}", text.len());
        }
        assert_eq!(links(&odd.join(",")), []);
        let many = format!("p{mark}.2147483647.{0}.{0},", u64::MAX).repeat(100_000);
        assert!(variable(&many).len() < 8192);
        assert_eq!(
            links(&format!("p{mark}{}", format!(",c{mark}").repeat(100_000)))[0]
                .configurations
                .len(),
            MAX_CONFIGURATION_IDS
        );
    }
}
