//! Where the program is that this benchmark measures.

use std::env;
use std::env::consts::EXE_SUFFIX;
use std::path::PathBuf;

/// Variable with the path of a program to measure instead of the one beside this one.
const PROGRAM: &str = "TRUNKLINE_PROGRAM";

/// The program to measure.
pub(crate) fn program_path() -> Option<PathBuf> {
    env::var_os(PROGRAM).map(PathBuf::from).or_else(release_path)
}

/// The program beside this one, which was built in the same way. `None` if it is the one that is measured
/// anyway.
pub(crate) fn other_build_path() -> Option<PathBuf> {
    env::var_os(PROGRAM).and_then(|_| release_path())
}

fn release_path() -> Option<PathBuf> {
    Some(env::current_exe().ok()?.with_file_name(format!("trunkline{EXE_SUFFIX}")))
}
