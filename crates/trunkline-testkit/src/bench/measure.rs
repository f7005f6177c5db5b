//! How long something takes, measured so that a busy machine disturbs little.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// How much time is spent on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Enough to see that everything runs.
    Quick,
    /// Enough to compare.
    Thorough,
}

impl Effort {
    fn rounds(self) -> usize {
        match self {
            Self::Quick => 3,
            Self::Thorough => 15,
        }
    }
}

/// The shortest time of several rounds: noise only ever adds.
pub(crate) fn shortest<T>(effort: Effort, mut work: impl FnMut() -> T) -> Duration {
    let round = |_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed()
    };
    (0..effort.rounds()).map(round).min().unwrap_or_default()
}
