//! A violation of a rule, with its location and remedy.

use std::fmt;

/// A violation at a location; ordered by location, so that a report goes file by file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) problem: String,
    pub(crate) remedy: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, problem, remedy } = self;
        write!(formatter, "{path}:{line}: {problem}; {remedy}")
    }
}
