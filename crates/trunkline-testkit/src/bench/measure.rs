//! Time measurement that is robust on a busy machine.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time spent on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Enough to see that everything runs.
    Quick,
    /// Enough to compare.
    Thorough,
}

impl Effort {
    /// Rounds of short work.
    pub(crate) fn rounds(self) -> usize {
        match self {
            Self::Quick => 3,
            Self::Thorough => 15,
        }
    }

    /// Rounds of very short work. On a busy machine some of many short rounds are undisturbed.
    pub(crate) fn many_rounds(self) -> u32 {
        match self {
            Self::Quick => 8,
            Self::Thorough => 60,
        }
    }

    /// Rounds of work that takes seconds.
    pub(crate) fn few_rounds(self) -> u32 {
        match self {
            Self::Quick => 1,
            Self::Thorough => 3,
        }
    }
}

/// Measures the elapsed time of some work.
pub(crate) fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(work());
    start.elapsed()
}

/// Measures the processor time of this thread per round, which excludes the peer and other
/// processes. Zero where the system does not report it.
pub(crate) fn processor_time<T>(rounds: u32, mut work: impl FnMut() -> T) -> Duration {
    let start = on_processor();
    for _ in 0..rounds {
        black_box(work());
    }
    on_processor().saturating_sub(start) / rounds
}

fn on_processor() -> Duration {
    scheduled(Path::new("/proc/thread-self/schedstat"))
}

/// Processor time of all threads of another process since its start.
pub(crate) fn on_processor_of(process: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.map(|thread| scheduled(&thread.path().join("schedstat"))).sum()
}

fn scheduled(file: &Path) -> Duration {
    let text = fs::read_to_string(file).unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// The median of measurements.
pub(crate) fn median<T: Copy + Ord>(mut measured: Vec<T>) -> Option<T> {
    measured.sort_unstable();
    measured.get(measured.len() / 2).copied()
}

/// The shortest time of several rounds: noise only adds.
pub(crate) fn shortest<T>(effort: Effort, mut work: impl FnMut() -> T) -> Duration {
    (0..effort.rounds()).map(|_| time(&mut work)).min().unwrap_or_default()
}

/// The shortest times of two alternatives. Rounds alternate, so that load on the machine slows both
/// down.
pub(crate) fn in_turn(
    rounds: u32,
    mut one: impl FnMut() -> Duration,
    mut other: impl FnMut() -> Duration,
) -> (Duration, Duration) {
    let mut shortest = (Duration::MAX, Duration::MAX);
    for _ in 0..rounds {
        shortest.0 = shortest.0.min(one());
        shortest.1 = shortest.1.min(other());
    }
    shortest
}
