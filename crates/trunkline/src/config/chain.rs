//! The chain of Trunkline processes above this one, to prevent a configuration from starting itself
//! in an endless loop (CON-16).

mod gateways;

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::str::FromStr;
use std::sync::Arc;

use super::identity::{CONFIGURATION, ConfigIdentity, ID_LETTERS};
use super::model::Config;
use crate::name::digest;
pub use gateways::{LoopError, MAX_REQUEST_HOPS};

/// The variable that passes the configurations in use above to a child process.
pub const CHAIN_VARIABLE: &str = "TRUNKLINE_CHAIN";

/// Exit status of a process that rejects its configuration because of its chain: `EX_CONFIG` of
/// `sysexits.h`. A server that exits with it is not restarted, because the result would be the
/// same.
pub const MISCONFIGURED_EXIT_STATUS: u8 = 78;

/// The header with IDs of processes. In a request: the processes that forwarded it. In a response
/// to such a request: the gateway itself, and the gateways behind its servers.
pub const CHAIN_HEADER: &str = "trunkline-chain";

/// Maximum number of nested Trunkline processes. The gateways of a user, a project and a team are
/// three; more than eight are a mistake that creates a new configuration each time.
pub const MAX_NESTED_PROCESSES: usize = 8;

/// Maximum number of IDs read from one chain: enough for [`MAX_NESTED_PROCESSES`] processes with
/// three layers of configuration each, in a variable of less than 8 KiB.
const MAX_IDS: usize = 64;

/// Maximum number of configuration IDs of one process.
const MAX_CONFIGURATION_IDS: usize = 32;

/// The first character of process IDs.
const PROCESS: char = 'p';

/// The processes and configurations above this process, and this process itself.
///
/// A process passes it to its children in [`CHAIN_VARIABLE`], with the configuration of each child,
/// and to gateways in [`CHAIN_HEADER`]. Clones represent the same process.
#[derive(Clone, Debug)]
pub struct Chain(Arc<ChainLinks>);

#[derive(Debug)]
struct ChainLinks {
    /// The processes above, the nearest last.
    above: Vec<ChainLink>,
    own: ProcessMark,
    /// All of them as in the header of a request.
    in_requests: Box<str>,
}

/// A Trunkline process, and the configurations with which it started the next process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChainLink {
    pub(crate) process: ProcessMark,
    configurations: Vec<Box<str>>,
}

/// A Trunkline process: a random ID, and its local process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessMark {
    id: Box<str>,
    pub(crate) local: Option<LocalProcess>,
}

/// A process of this machine, to check whether it still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocalProcess {
    /// The process ID.
    pub(crate) id: i32,
    /// Clock ticks from boot to its start; 0 if unknown.
    pub(crate) started: u64,
    /// The namespace of the process ID; 0 if there is none.
    pub(crate) namespace: u64,
}

/// The reason why a configuration is rejected.
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
    /// How to fix it.
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
    /// A process without any above it.
    fn default() -> Self {
        Self::new(Vec::new(), None)
    }
}

impl Chain {
    /// A process below others: `above` are the processes above it, the nearest last.
    pub(crate) fn new(above: Vec<ChainLink>, local: Option<LocalProcess>) -> Self {
        let id = format!("{PROCESS}{}", random_id()).into();
        let own = ProcessMark { id, local };
        let in_requests = gateways::in_requests(&above, &own);
        Self(Arc::new(ChainLinks { above, own, in_requests }))
    }

    /// The same process with another ID.
    pub(crate) fn with_another_id(&self) -> Self {
        Self::new(self.0.above.clone(), self.0.own.local)
    }

    /// Whether this process may run a configuration. Every start of a server checks it; a program
    /// checks it before it starts anything, to exit with this error.
    ///
    /// # Errors
    ///
    /// When a process above uses the configuration, or too many processes are above.
    pub fn check(&self, config: &Config) -> Result<(), ChainError> {
        self.check_identity(&config.identity)
    }

    /// [`check`](Self::check) by the identity of a configuration.
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
        let ChainLinks { above, own, .. } = &*self.0;
        let configurations = identity.ids().take(MAX_CONFIGURATION_IDS).map(Into::into).collect();
        let link = ChainLink { process: own.clone(), configurations };
        joined(above.iter().chain([&link]))
    }

    /// The same for a child that another process would have started with `variable`: this process takes its
    /// place.
    pub(crate) fn variable_in_place(&self, variable: &str) -> String {
        let mut links = links(variable);
        if let Some(last) = links.last_mut() {
            last.process = self.0.own.clone();
        }
        joined(&links)
    }
}

/// The text of links, as in [`CHAIN_VARIABLE`].
fn joined<'l>(links: impl IntoIterator<Item = &'l ChainLink>) -> String {
    let links: Vec<_> = links.into_iter().map(ChainLink::to_string).collect();
    links.join(",")
}

/// Whether two values of [`CHAIN_VARIABLE`] name the same processes above the one that wrote it, which may be
/// another one, and the same configurations.
pub(crate) fn have_same_chain(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (links(one), links(other));
    let last = |links: &mut Vec<ChainLink>| links.pop().map(|link| link.configurations);
    last(&mut one) == last(&mut other) && one == other
}

/// The number of distinct processes. A process with several registries occurs more than once.
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

    /// Adds the configurations of another link of the same process.
    pub(crate) fn join(&mut self, other: Self) {
        for id in other.configurations {
            if self.configurations.len() < MAX_CONFIGURATION_IDS && !self.has(&id) {
                self.configurations.push(id);
            }
        }
    }
}

/// Parses a value that [`Chain::variable`] wrote, up to the limit. Ignores invalid IDs, which
/// Trunkline did not write.
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

    /// A process started by another one, with the configurations of both.
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
        // A child started for another configuration of the same process may use it.
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
