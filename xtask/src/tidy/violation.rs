//! One broken rule, with the place and the way out.

use std::fmt;

/// A rule broken at a place; ordered by place, so that a report reads file by file.
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
