//! How much of its log a server is asked to tell.

use crate::principal::Requester;

/// The most that is wanted of a server's log, and the client that wanted it; `None` for nobody in
/// particular.
pub(in crate::connection) type RequestedLogLevel = (LogLevel, Option<Requester>);

/// How important a line of a log is; less important ones are less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// For those who look for a mistake.
    Debug,
    /// That something went as it should.
    Info,
    /// Something that is normal, and worth knowing.
    Notice,
    /// Something that may become a problem.
    Warning,
    /// Something that failed.
    Error,
    /// A part that does not work.
    Critical,
    /// Something has to be done at once.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LogLevel {
    /// All of them, the least important first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The level of a word of the protocol.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }

    /// The word of the protocol for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_words_in_an_order() {
        assert!(LogLevel::ALL.is_sorted());
        for level in LogLevel::ALL {
            assert_eq!(LogLevel::parse(level.as_str()), Some(level));
        }
        assert_eq!(LogLevel::parse("Debug"), None);
    }
}
