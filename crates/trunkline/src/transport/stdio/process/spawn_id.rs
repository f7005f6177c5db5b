//! The spawn ID that a server's process and its descendants carry in their environment.

use std::ffi::{OsStr, OsString};
use std::fmt;

use ring::rand::{SecureRandom as _, SystemRandom};

use crate::hexadecimal::hexadecimal;

/// The variable that holds it. Its value is a list of spawn IDs, separated by colons: those of the
/// hosts around this one, if it is itself a server of another, and the server's own at the end.
pub(super) const VARIABLE: &str = "TRUNKLINE_SPAWN_ID";

/// Limit on spawn IDs in one environment: more hosts than are ever nested. Of a longer list the
/// last ones are kept.
const MAX_NESTED: usize = 16;

const SEPARATOR: char = ':';

/// Identifies one start of one server. It is unguessable, so that no other process carries it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SpawnId(Box<str>);

impl SpawnId {
    /// A new ID; `None` where the system provides no randomness.
    pub(super) fn generate() -> Option<Self> {
        let mut bytes = [0; 16];
        SystemRandom::new().fill(&mut bytes).ok()?;
        Some(Self(hexadecimal(&bytes).into()))
    }

    /// 32 hexadecimal digits.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The value of [`VARIABLE`] for a server with this ID, below hosts with the value `outer`.
    pub(super) fn below(&self, outer: Option<&OsStr>) -> OsString {
        let outer = outer.and_then(OsStr::to_str).unwrap_or("");
        let mut ids: Vec<&str> = outer.split(SEPARATOR).filter(|id| is_spawn_id(id)).collect();
        ids.push(self.as_str());
        let first = ids.len().saturating_sub(MAX_NESTED);
        ids.split_off(first).join(":").into()
    }

    /// Whether a value of [`VARIABLE`] belongs to this server or to a descendant of it.
    #[cfg(target_os = "linux")]
    pub(super) fn is_in(&self, value: &str) -> bool {
        value.split(SEPARATOR).any(|id| id == self.as_str())
    }
}

fn is_spawn_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl fmt::Debug for SpawnId {
    /// Omits the digits: with them, a process could pass off another one as a process of the
    /// server.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SpawnId")
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_server_carries_its_own_id_and_those_of_the_hosts_around_it() {
        let (outer, inner) = (SpawnId::generate().unwrap(), SpawnId::generate().unwrap());
        let value = inner.below(Some(&outer.below(None)));
        let value = value.to_str().unwrap();
        assert!(outer.is_in(value) && inner.is_in(value));
        assert!(!inner.is_in(outer.below(None).to_str().unwrap()));
        assert_eq!(inner.below(Some(OsStr::new("no id: at all"))), *inner.as_str());
    }

    #[test]
    fn a_long_list_keeps_the_last() {
        let id = SpawnId::generate().unwrap();
        let long = vec!["0123456789abcdef0123456789abcdef"; 1000].join(":");
        let value = id.below(Some(OsStr::new(&long)));
        assert!(id.is_in(value.to_str().unwrap()));
        assert_eq!(value.len(), 33 * MAX_NESTED - 1);
    }
}
