//! MCP protocol constants: versions and eras, methods, error codes, `_meta` keys.

pub mod code;
pub mod meta;
mod method;

pub use method::{ELICITATION_COMPLETE, is_mcp_method, request_method, subject_key};

/// A protocol version that Trunkline supports.
///
/// ```
/// use trunkline::protocol::{Era, ProtocolVersion};
///
/// let version = ProtocolVersion::parse("2025-06-18").unwrap();
/// assert_eq!(version.era(), Era::Legacy);
/// assert_eq!(ProtocolVersion::MODERN.as_str(), "2026-07-28");
/// assert_eq!(ProtocolVersion::parse("1999-01-01"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProtocolVersion(&'static str);

/// The two incompatible eras of MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// A session opens with `initialize`, which negotiates version and capabilities once.
    Legacy,
    /// Every request carries version, client info and capabilities in its `_meta`.
    Modern,
}

impl Era {
    /// The era of a protocol version, if Trunkline supports it.
    pub fn of_version(version: &str) -> Option<Self> {
        ProtocolVersion::parse(version).map(ProtocolVersion::era)
    }
}

impl ProtocolVersion {
    /// The version of the modern era.
    pub const MODERN: Self = Self("2026-07-28");

    /// The versions of the legacy era, newest first.
    pub const LEGACY: [Self; 4] =
        [Self("2025-11-25"), Self("2025-06-18"), Self("2025-03-26"), Self("2024-11-05")];

    /// The newest version of the legacy era, which `initialize` requests.
    pub const LATEST_LEGACY: Self = Self::LEGACY[0];

    /// Every version that Trunkline supports, newest first.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::MODERN].into_iter().chain(Self::LEGACY)
    }

    /// The version with this name, if Trunkline supports it.
    pub fn parse(version: &str) -> Option<Self> {
        Self::all().find(|known| known.0 == version)
    }

    /// The version as it is written in messages and headers.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// The era it belongs to.
    pub fn era(self) -> Era {
        if self == Self::MODERN { Era::Modern } else { Era::Legacy }
    }
}
