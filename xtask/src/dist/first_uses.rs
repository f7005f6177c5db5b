//! The functions that most processes ran, in the order of their first use.

use std::collections::HashMap;

/// A function is listed if at least one in this many processes ran it.
const ONE_IN: usize = 3;

/// Reads the temporal profile traces that `llvm-profdata show` prints: the functions of each process, as they ran first.
pub(super) fn functions(printed: &str) -> Vec<&str> {
    let traces = traces(printed);
    let mut uses: HashMap<&str, FirstUses> = HashMap::new();
    for trace in &traces {
        for (position, function) in trace.iter().enumerate() {
            let uses = uses.entry(function).or_default();
            uses.processes += 1;
            uses.earliest = uses.earliest.min(position);
        }
    }
    uses.retain(|_, uses| uses.processes * ONE_IN >= traces.len());
    let mut listed: Vec<_> = uses.into_iter().collect();
    listed.sort_unstable_by_key(|(function, uses)| (uses.earliest, *function));
    listed.into_iter().map(|(function, _)| function).collect()
}

/// Where processes ran a function first.
struct FirstUses {
    processes: usize,
    /// The earliest position in the trace of a process.
    earliest: usize,
}

impl Default for FirstUses {
    fn default() -> Self {
        Self { processes: 0, earliest: usize::MAX }
    }
}

/// The functions of each process.
fn traces(printed: &str) -> Vec<Vec<&str>> {
    let mut traces: Vec<Vec<&str>> = Vec::new();
    for line in printed.lines() {
        if line.trim_start().starts_with("Temporal Profile Trace ") {
            traces.push(Vec::new());
        } else if let Some(trace) = traces.last_mut() {
            // Functions that are local to a file have its name before theirs.
            let name = line.rsplit(';').next().unwrap_or(line).trim();
            trace.push(name);
        }
    }
    traces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_a_third_of_the_processes_are_listed_by_their_first_use() {
        let printed = "\
Instrumentation level: IR
Temporal Profile Traces (samples=4 seen=4):
  Temporal Profile Trace 0 (weight=1 count=3):
    main
    file.rs;local
    rare
  Temporal Profile Trace 1 (weight=1 count=2):
    main
    late
  Temporal Profile Trace 2 (weight=1 count=3):
    early
    main
    late
  Temporal Profile Trace 3 (weight=1 count=3):
    main
    early
    local
";
        assert_eq!(functions(printed), ["early", "main", "late", "local"]);
        assert_eq!(functions(""), Vec::<&str>::new());
    }
}
